"""What hooks are refused, and what is said of them."""

from __future__ import annotations

from session_actor.errors import Refused


class InsideHook(Refused):
    """A hook wanted to change the very session that it was called for."""

    def __init__(self, session: str) -> None:
        """`session`: the id."""
        super().__init__(
            f"a hook may not change the session that it was called for ({session!r}), nor may tasks that it starts; "
            "nothing was changed: keep what you have to keep elsewhere, or in another session"
        )
        self.session = session


class HookUnknown(Refused):
    """There is no such hook to be driven or discarded: it ran since, or was never pending here."""

    def __init__(self, key: str, what: str) -> None:
        """`key`: of the hook. `what`: as what it was looked for."""
        super().__init__(
            f"there is no {what} with the key {key}; service.hooks.pending() and .dead_letters() list what there is"
        )
        self.key = key
