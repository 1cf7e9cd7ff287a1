"""What an embedder holds: the handle of a session, a live feed."""
