"""The index of the journals, in SQLite."""
