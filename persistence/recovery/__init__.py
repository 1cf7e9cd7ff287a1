"""Opening a store: what of the log and the catalog counts, and whose it is."""
