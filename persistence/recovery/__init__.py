"""Opening: what of the log counts after a crash."""
