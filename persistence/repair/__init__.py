"""Mending that, and what can be kept of damaged sessions."""
