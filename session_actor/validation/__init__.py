"""Whether a provider takes a request: the rules of each dialect, of our own, pure."""
