"""The server of a session, and how it comes and goes."""
