"""What every store must keep: one suite, run for each of them.

A test module derives a class from `StoreConformance`, names the levels that its store reaches, and gives it a fixture
`new_store`: a function that returns a store that is not open, on the same data at every call. `Model` in
`conformance_model` is the same as a state machine.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator

import msgspec
import pytest

from session_actor.persistence import (
    LEVELS,
    Fenced,
    Level,
    LevelUnreachable,
    SessionTombstoned,
    SessionUnknown,
    Store,
    StoreClosed,
    StoreLocked,
    decode_typed,
    dumps,
    loads,
)

from .conformance_sessions import SessionsConformance
from .conformance_snapshots import SnapshotsConformance
from .conformance_tools import AT_US, HOSTILE_IDS, NewStore, Said, listed, opened, reached, said, say, text_of


class StoreConformance(SessionsConformance, SnapshotsConformance):
    """The suite. Tests get `store`, open and with its workers running, or `new_store` to open one themselves."""

    levels: tuple[Level, ...] = LEVELS
    working = True

    @pytest.fixture
    async def store(self, new_store: NewStore) -> AsyncIterator[Store]:
        async with opened(new_store(), working=self.working) as store:
            yield store

    # --- records ------------------------------------------------------------------------------------------------------

    async def test_a_new_session_is_empty(self, store):
        lease = await store.acquire("user-42", create=True)
        loaded = await store.load(lease)
        assert list(loaded.records) == []
        assert (loaded.report.session, loaded.report.birth, loaded.report.seq) == ("user-42", lease.birth, 0)
        assert loaded.report.clean
        assert lease.appended_seq == 0

    async def test_records_come_back_in_order_and_chained(self, store):
        lease = await store.acquire("user-42", create=True)
        texts = [f"text {number}" for number in range(50)]
        say(store, lease, *texts)
        assert lease.appended_seq == 50
        assert await said(store, lease) == texts
        assert (await store.load(lease)).report.seq == 50

    async def test_data_may_be_json_or_a_struct_with_any_text(self, store, new_store):
        lease = await store.acquire("user-42", create=True)
        value = {"$esc": [1.5, None, "\ud800", b"\x00", 2**70]}
        event = Said("lone \ud800, NUL \x00, line end \n", ("", "\udfff\ud83d\ude00"), msgspec.Raw(dumps(value)))
        for data in (dumps(value), msgspec.Raw(dumps(value)), event):
            store.append(lease, lease.appended_seq + 1, AT_US, "said", data, 10)
        first, second, third = (await store.load(lease)).records
        assert loads(bytes(first.data)) == loads(bytes(second.data)) == value
        read = decode_typed(third.data, Said)
        assert (read.text, read.more, loads(bytes(read.raw))) == (event.text, event.more, value)

    async def test_a_large_record_among_small_ones_comes_back(self, store):
        lease = await store.acquire("user-42", create=True)
        texts = ["a", "x" * 3_000_000, "b"]
        say(store, lease, *texts)
        assert await said(store, lease) == texts

    @pytest.mark.parametrize("at_us", [0, -1, AT_US, 253_402_300_799_999_999, -62_135_596_800_000_000])
    async def test_times_come_back_to_the_microsecond(self, store, at_us):
        lease = await store.acquire("user-42", create=True)
        store.append(lease, 1, at_us, "said", Said("x"), 1)
        assert [record.at_us for record in (await store.load(lease)).records] == [at_us]

    async def test_times_that_go_back_change_no_order(self, store, new_store):
        lease = await store.acquire("user-42", create=True)
        for seq, at_us in enumerate([AT_US, AT_US - 3_600_000_000, AT_US + 1], start=1):
            store.append(lease, seq, at_us, "said", Said(str(seq)), 1)
        assert [text_of(record) for record in (await store.load(lease)).records] == ["1", "2", "3"]

    async def test_another_number_than_the_next_is_refused_and_nothing_changes(self, store):
        lease = await store.acquire("user-42", create=True)
        say(store, lease, "a")
        for seq in (-1, 0, 1, 3):
            with pytest.raises(ValueError, match=str(seq)):
                store.append(lease, seq, AT_US, "said", Said("x"), 1)
        assert await said(store, lease) == ["a"]
        say(store, lease, "b")
        assert await said(store, lease) == ["a", "b"]

    async def test_positions_count_the_records_of_all_sessions(self, store):
        leases = [await store.acquire(f"user-{number}", create=True) for number in range(3)]
        first = say(store, leases[0], "a")
        positions = [say(store, lease, "b") for lease in leases * 2]
        assert positions == list(range(first + 1, first + 7))

    async def test_sessions_do_not_mix(self, store):
        leases = [await store.acquire(f"user-{number}", create=True) for number in range(5)]
        for text, lease in itertools.product("abc", leases):
            say(store, lease, f"{lease.session}: {text}")
        for lease in leases:
            assert await said(store, lease) == [f"{lease.session}: {text}" for text in "abc"]

    # --- levels -------------------------------------------------------------------------------------------------------

    async def test_a_level_out_of_reach_is_refused_at_admission_and_nothing_changes(self, store):
        for level in set(LEVELS) - set(self.levels):
            with pytest.raises(LevelUnreachable, match=level):
                store.admit(level)
            with pytest.raises(LevelUnreachable):
                store.when(level, 1, lambda _: None)
            with pytest.raises(LevelUnreachable):
                await store.flush(level)
        for level in self.levels:
            store.admit(level)
        assert await listed(store) == []

    async def test_a_flush_brings_everything_to_its_level(self, store):
        lease = await store.acquire("user-42", create=True)
        for level in self.levels:
            position = say(store, lease, "a", "b")
            await store.flush(level)
            assert reached(store, level) >= position
            await store.flush(level, position)
            await store.flush(level)
        assert store.synced_position <= store.written_position

    async def test_a_lease_tells_its_newest_record_at_each_level(self, store):
        lease = await store.acquire("user-42", create=True)
        for level in self.levels:
            say(store, lease, "a", "b")
            await store.flush(level)
            assert {"async": lease.appended_seq, "written": lease.written_seq, "synced": lease.synced_seq}[
                level
            ] == lease.appended_seq
        assert lease.synced_seq <= lease.written_seq <= lease.appended_seq

    async def test_what_the_store_admits_is_told_without_asking(self, store):
        def refused(level: object) -> bool:
            try:
                store.admit(level)
            except (LevelUnreachable, StoreClosed):
                return True
            return False

        for level in (*LEVELS, "unheard of", ["not", "hashable"]):
            assert (level not in store.admitted) == refused(level)
        await store.close()
        assert store.admitted == ()
        assert refused("async")

    async def test_whoever_waits_for_a_level_is_told_once_in_the_order_of_positions_and_on_the_loop(self, store):
        lease = await store.acquire("user-42", create=True)
        told: list[tuple[Level, int, BaseException | None, int]] = []
        for _ in range(50):
            position = say(store, lease, "a")
            for level in self.levels:
                tell = lambda error, of=(level, position): told.append((*of, error, threading.get_ident()))  # noqa: E731
                store.when(level, position, tell)
                store.reach(level)
        await store.flush(self.levels[-1])
        for level in self.levels:
            positions = [position for of, position, _, _ in told if of == level]
            assert positions == sorted(positions)
            assert len(set(positions)) == len(positions) == 50
        assert {(error, thread) for _, _, error, thread in told} == {(None, threading.get_ident())}

    async def test_whoever_asks_for_a_level_that_is_reached_is_told_at_once(self, store):
        lease = await store.acquire("user-42", create=True)
        for level in self.levels:
            position = say(store, lease, "a")
            await store.flush(level)
            told: list[BaseException | None] = []
            store.when(level, position, told.append)
            assert told == [None]

    async def test_giving_up_a_flush_takes_nothing_back(self, store):
        lease = await store.acquire("user-42", create=True)
        say(store, lease, *"abc")
        flushing = asyncio.ensure_future(store.flush(self.levels[-1]))
        await asyncio.sleep(0)
        flushing.cancel()
        await asyncio.gather(flushing, return_exceptions=True)
        await store.flush(self.levels[-1])
        assert await said(store, lease) == ["a", "b", "c"]

    async def test_health_counts_what_was_appended(self, store):
        lease = await store.acquire("user-42", create=True)
        before = store.health().appended_position
        position = say(store, lease, "a", "b")
        assert store.health().appended_position == position == before + 2
        await store.flush(self.levels[-1])
        health = store.health()
        assert health.synced_position <= health.written_position <= health.appended_position
        assert (health.last_error, health.degraded_since_us) == (None, None)
        assert health.backlog_records == 0

    # --- open and close -----------------------------------------------------------------------------------------------

    async def test_everything_is_there_after_reopening(self, new_store):
        sessions = [f"user-{number}" for number in range(20)]
        for generation in range(3):
            async with opened(new_store(), working=self.working) as store:
                for session in sessions:
                    lease = await store.acquire(session, create=generation == 0)
                    assert await said(store, lease) == [f"{session} {number}" for number in range(generation)]
                    say(store, lease, f"{session} {generation}")
        async with opened(new_store(), working=self.working) as store:
            assert await listed(store) == sorted(sessions)

    async def test_values_are_there_after_reopening(self, new_store):
        texts = ["lone \ud800", "NUL \x00 and line end \n", "x" * 100_000, "", "\U0001f600"]
        for round_ in range(2):
            async with opened(new_store(), working=self.working) as store:
                for session in HOSTILE_IDS:
                    lease = await store.acquire(session, create=round_ == 0)
                    if round_ == 0:
                        say(store, lease, *texts)
                    assert await said(store, lease) == texts

    async def test_a_deleted_session_stays_deleted_after_reopening(self, new_store):
        async with opened(new_store(), working=self.working) as store:
            gone, again = [await store.acquire(session, create=True) for session in ("gone", "again")]
            say(store, gone, "a")
            say(store, again, "old", "old")
            await store.delete(gone)
            await store.delete(again)
            say(store, await store.acquire("again", create=True), "new")
        for _ in range(2):
            async with opened(new_store(), working=self.working) as store:
                with pytest.raises(SessionTombstoned):
                    await store.acquire("gone", create=False)
                assert await said(store, await store.acquire("again", create=False)) == ["new"]
                assert await listed(store) == ["again"]

    async def test_a_session_without_records_leaves_nothing_behind(self, new_store):
        async with opened(new_store(), working=self.working) as store:
            store.release(await store.acquire("released", create=True))
            await store.acquire("held", create=True)
        async with opened(new_store(), working=self.working) as store:
            for session in ("released", "held"):
                with pytest.raises(SessionUnknown):
                    await store.acquire(session, create=False)
            assert await listed(store) == []

    async def test_an_open_store_cannot_be_opened_again(self, store):
        lease = await store.acquire("user-42", create=True)
        with pytest.raises(StoreLocked):
            await store.open()
        say(store, lease, "a")
        assert await said(store, lease) == ["a"]

    async def test_a_closed_store_says_so_and_its_leases_are_over(self, new_store):
        store = new_store()
        with pytest.raises(StoreClosed):
            await store.acquire("user-42", create=True)
        async with opened(store, working=self.working):
            lease = await store.acquire("user-42", create=True)
            say(store, lease, "a")
        await store.close()
        with pytest.raises(StoreClosed):
            await store.acquire("user-42", create=False)
        with pytest.raises(StoreClosed):
            store.admit("async")
        with pytest.raises(StoreClosed):
            await listed(store)
        with pytest.raises(Fenced):
            say(store, lease, "never")
