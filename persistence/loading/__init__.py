"""Finding and reading sessions and single records of an open store."""
