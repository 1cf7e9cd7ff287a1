"""Replies: what a provider answered, in any dialect, as one turn."""
