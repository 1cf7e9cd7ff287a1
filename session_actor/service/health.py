"""How a service is, at one moment."""

from __future__ import annotations

import msgspec

from session_actor.hooks.report import HooksHealth
from session_actor.persistence import StoreHealth


class ServiceHealth(msgspec.Struct, frozen=True):
    """How a service is. `store`: the disk's side of it."""

    live: int
    """Sessions that are loaded, loading, restarting or quarantined."""
    quarantined: tuple[str, ...]
    """Ids of the sessions that kept crashing."""
    store: StoreHealth
    at_us: int
    """When this was said, microseconds since the epoch; the ages are told of that moment."""
    hooks: HooksHealth = HooksHealth()
    """The mandatory hooks that are still to run."""

    @property
    def degraded_s(self) -> float | None:
        """For how long the disk has taken no records [seconds]; None: it takes them."""
        return self._age_s(self.store.degraded_since_us)

    @property
    def error_age_s(self) -> float | None:
        """How long ago the disk last failed [seconds]; None: never since the store was opened."""
        return self._age_s(self.store.last_error_at_us)

    @property
    def cut_age_s(self) -> float | None:
        """How long ago the log was last moved into journals [seconds]; None: not since the store was opened."""
        return self._age_s(self.store.last_cut_us)

    @property
    def snapshot_age_s(self) -> float | None:
        """How long ago a snapshot was last made durable [seconds]; None: not since the store was opened."""
        return self._age_s(self.store.last_snapshot_us)

    def _age_s(self, since_us: int | None) -> float | None:
        """Never negative, though the system's clock may have been set back."""
        return None if since_us is None else max(0, self.at_us - since_us) / 1e6
