"""How a service says it is: levels, what waits, what went wrong, ages."""

from __future__ import annotations

import asyncio

from session_actor import FileStore, MemoryStore, ServiceHealth, SessionService, StoreHealth, telemetry
from session_actor.server import snapshots

SECOND_US = 1_000_000


def health(at_us: int, **store: int) -> ServiceHealth:
    levels = {"appended_position": 0, "written_position": 0, "synced_position": 0}
    return ServiceHealth(live=0, quarantined=(), store=StoreHealth(**levels, **store), at_us=at_us)


def test_ages_are_told_of_the_moment_at_which_health_was_asked():
    found = health(
        100 * SECOND_US,
        degraded_since_us=90 * SECOND_US,
        last_error_at_us=95 * SECOND_US,
        last_cut_us=40 * SECOND_US,
        last_snapshot_us=int(99.5 * SECOND_US),
    )
    assert (found.degraded_s, found.error_age_s, found.cut_age_s, found.snapshot_age_s) == (10.0, 5.0, 60.0, 0.5)


def test_what_never_happened_has_no_age():
    found = health(100)
    assert (found.degraded_s, found.error_age_s, found.cut_age_s, found.snapshot_age_s) == (None, None, None, None)


def test_no_age_is_negative_after_the_system_clock_was_set_back():
    assert health(100, last_cut_us=3_600 * SECOND_US).cut_age_s == 0


async def test_health_tells_how_far_each_level_is_and_when_the_last_cut_and_snapshot_were(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "EVERY_RECORDS", 10)
    store = FileStore(tmp_path / "store", segment_bytes=4_000)
    async with SessionService.open(store, durability="synced") as service:
        session = await service.session("a", create=True)
        for number in range(30):
            await session.push(str(number), "x" * 200)
        async with asyncio.timeout(20):
            while None in {service.health().cut_age_s, service.health().snapshot_age_s}:  # noqa: ASYNC110 - threads do it
                await asyncio.sleep(0.005)
        found = service.health()
        assert found.store.appended_position == found.store.written_position == found.store.synced_position == 31
        assert (found.store.backlog_records, found.store.backlog_bytes) == (0, 0)
        assert 0 <= found.cut_age_s < 60
        assert 0 <= found.snapshot_age_s < 60
        assert (found.live, found.quarantined, found.error_age_s, found.degraded_s) == (1, (), None, None)


def test_a_store_of_one_s_own_tells_the_telemetry_unless_it_has_somebody_to_tell(tmp_path):
    plain = FileStore(tmp_path / "plain")
    SessionService.open(plain)
    assert plain.on_event is telemetry.store_event

    def mine(_):
        """Told instead."""

    own = FileStore(tmp_path / "own", on_event=mine)
    SessionService.open(own)
    assert own.on_event is mine
    SessionService.open(MemoryStore())
