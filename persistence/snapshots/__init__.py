"""What sessions were after one of their records."""
