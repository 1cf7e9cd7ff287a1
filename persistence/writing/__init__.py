"""The way of records to the disk."""
