"""Telling what is not as it should be."""
