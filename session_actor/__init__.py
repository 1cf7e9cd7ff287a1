"""session-actor."""
