"""The shared log that everything goes to first, and which of its lines count after a crash."""
