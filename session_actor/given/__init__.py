"""What callers give is checked and kept exactly, and not shown where it is private."""
