"""What the store tells of itself while it runs: one event for each thing that an operator would want to know."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Final, NamedTuple

from .safe_log import LOGGER

LOG_AGAIN_S: Final = 60.0
"""What happens again and again, with the same error at the same path or session, is logged once in so long."""
_GOOD: Final = frozenset({"healthy", "taken_over", "backlog_free"})


class StoreEvent(NamedTuple):
    """One thing that happened to a store. Never holds content of a conversation."""

    name: str
    """What happened, such as "degraded"; a failure of the disk ends in "_failed"."""
    measurements: Mapping[str, float]
    """Numbers, each with its unit as the end of its name."""
    metadata: Mapping[str, object]
    """`store`: its directory; `error`: what the system said, when that is the news; and where."""


OnEvent = Callable[[StoreEvent], None]


class Events:
    """Tells events to the hook, if there is one, and logs them. All calls come on the store's loop."""

    __slots__ = ("_logged", "_root", "on_event")

    def __init__(self, root: str, on_event: OnEvent | None) -> None:
        """`root`: the store's directory. `on_event`: told every event; one that raises is detached and reported."""
        self.on_event = on_event
        self._root = root
        self._logged: dict[str, tuple[str, float]] = {}

    def tell(self, name: str, measurements: Mapping[str, float] | None = None, **metadata: object) -> None:
        """An event happened."""
        measurements = measurements or {}
        self._log(name, {**metadata, **measurements})
        self.report(name, measurements, **metadata)

    def report(self, name: str, measurements: Mapping[str, float], **metadata: object) -> None:
        """An event that is no news: it is told, and not logged."""
        if self.on_event is not None:
            self._call(self.on_event, StoreEvent(name, measurements, {"store": self._root, **metadata}))

    def _call(self, on_event: OnEvent, event: StoreEvent) -> None:
        try:
            copy_context().run(on_event, event)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - the watcher's fault, also a CancelledError, is not the store's
            self.on_event = None
            self._log("event_hook_detached", {"error": type(error).__name__})

    def _log(self, name: str, values: dict[str, object]) -> None:
        text, now_s = f"{values.get('error')} {values.get('path')} {values.get('session')}", time.monotonic()
        last_text, last_s = self._logged.get(name, ("", 0.0))
        if text == last_text and now_s - last_s < LOG_AGAIN_S:
            return
        self._logged[name] = text, now_s
        log = LOGGER.info if name in _GOOD else LOGGER.warning
        log(f"store.{name}", store=self._root, **values)
