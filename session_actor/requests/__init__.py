"""Requests: the ledger in the form of one dialect, complete for its SDK."""

from session_actor.requests.renderer import Renderer, dialect_of

__all__ = ["Renderer", "dialect_of"]
