"""Models: what is known of each family, as data."""
