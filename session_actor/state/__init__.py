"""The state of one session, as a fold of its records; and histories as a whole. Pure: no `await`, no disk."""
