"""The commands that look after a store: `verify` and `repair`. Exit codes are in `codes`."""
