"""Measurements: `python -m bench NAME [--json] [--quick]`. Speed is measured here and never in a test."""
