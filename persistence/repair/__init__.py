"""Mending a store that is not as it should be, and what can be kept of damaged sessions."""
