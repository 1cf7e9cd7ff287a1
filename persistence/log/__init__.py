"""The shared log that everything goes to first, and how it is read after a crash."""
