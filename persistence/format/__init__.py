"""Lines of the files: records, exact values, headers."""
