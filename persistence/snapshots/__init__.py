"""Snapshots: what sessions were after one of their records, so that not all before it need be read."""
