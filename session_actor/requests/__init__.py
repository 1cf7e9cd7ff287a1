"""Requests: the ledger in the form of one dialect, complete for its SDK."""
