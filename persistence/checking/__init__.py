"""Telling what of a store is not as it should be. Nothing is changed."""
