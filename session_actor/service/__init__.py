"""The service: all sessions of a store."""
