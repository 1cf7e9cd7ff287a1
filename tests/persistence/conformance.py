"""What every store must keep: one suite, run for each of them.

A test module derives a class from `StoreConformance`, names the levels that its store reaches, and gives it a fixture
`new_store`: a function that returns a store that is not open, on the same data at every call. `Model` in
`conformance_model` is the same as a state machine.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from session_actor.persistence import (
    LEVELS,
    Fenced,
    Lease,
    Level,
    LevelUnreachable,
    Record,
    SessionTombstoned,
    SessionUnknown,
    Store,
    StoreClosed,
    StoreLocked,
    UnusableId,
    decode_typed,
    dumps,
    loads,
)
from session_actor.persistence.record import NO_SUM

NewStore = Callable[[], Store]
AT_US = 1_769_851_800_000_001
HOSTILE_IDS = [
    "../../etc/passwd", "/", "..", "\x00", "CON", "con", "a\nb", "user", "User", "\u00e9", "e\u0301", "\ud800", "$esc",
    "\U0001f600", "\ud83d\ude00", '"', "x" * 512, " ", "%", "_",
]  # fmt: skip


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record's data, as the session floor would give it."""

    text: str
    more: tuple[str, ...] = ()
    raw: msgspec.Raw = msgspec.Raw(b"null")


@asynccontextmanager
async def opened(store: Store, *, working: bool = True) -> AsyncIterator[Store]:
    """The store, open, and its workers running if `working`; closed at the end."""
    await store.open()
    jobs = [asyncio.ensure_future(job()) for job in store.workers().values()] if working else []
    try:
        yield store
    finally:
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        await store.close()


def say(store: Store, lease: Lease, *texts: str) -> int:
    """Append one record a text; returns the last one's position."""
    position = 0
    for text in texts:
        seq = lease.appended_seq + 1
        position = store.append(lease, seq, AT_US + seq, "said", Said(text), len(text))
    return position


async def said(store: Store, lease: Lease) -> list[str]:
    """The texts of all records of the session, which must be numbered, timed and chained as they should."""
    records = (await store.load(lease)).records
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert [record.at_us for record in records] == [AT_US + record.seq for record in records]
    assert [record.prev for record in records] == [NO_SUM, *(record.sum for record in records)][: len(records)]
    assert {record.kind for record in records} <= {"said"}
    return [text_of(record) for record in records]


def text_of(record: Record) -> str:
    return decode_typed(record.data, Said).text


async def listed(store: Store, prefix: str = "") -> list[str]:
    return [info.id async for info in store.sessions(prefix)]


class StoreConformance:
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

    # --- ids ----------------------------------------------------------------------------------------------------------

    async def test_any_text_is_an_id_and_each_has_its_own_place(self, store, new_store):
        for session in HOSTILE_IDS:
            say(store, await store.acquire(session, create=True), f"of {session!r}")
        await store.flush(self.levels[-1])
        assert await listed(store) == sorted(HOSTILE_IDS)
        for session in HOSTILE_IDS:
            assert await said(store, await store.acquire(session, create=False)) == [f"of {session!r}"]

    @pytest.mark.parametrize("session", ["", "x" * 513, None, 7, b"user", ("user",)])
    async def test_an_unusable_id_is_refused_by_name(self, store, session):
        for create in (True, False):
            with pytest.raises(UnusableId):
                await store.acquire(session, create=create)
        assert await listed(store) == []

    # --- leases -------------------------------------------------------------------------------------------------------

    async def test_a_session_that_was_never_made_is_unknown(self, store):
        with pytest.raises(SessionUnknown) as caught:
            await store.acquire("user-42", create=False)
        assert caught.value.session == "user-42"

    async def test_a_session_exists_from_its_first_record_on(self, store):
        lease = await store.acquire("user-42", create=True)
        assert await listed(store) == []
        store.release(lease)
        with pytest.raises(SessionUnknown):
            await store.acquire("user-42", create=False)
        say(store, await store.acquire("user-42", create=True), "a")
        assert await listed(store) == ["user-42"]
        assert await said(store, await store.acquire("user-42", create=False)) == ["a"]

    async def test_acquiring_again_ends_the_earlier_lease(self, store):
        earlier = await store.acquire("user-42", create=True)
        say(store, earlier, "a", "b")
        later = await store.acquire("user-42", create=False)
        assert later.token > earlier.token
        assert later.birth == earlier.birth
        with pytest.raises(Fenced):
            say(store, earlier, "never")
        with pytest.raises(Fenced):
            await store.load(earlier)
        with pytest.raises(Fenced):
            await store.delete(earlier)
        store.release(earlier)
        assert await said(store, later) == ["a", "b"]
        say(store, later, "c")
        assert await said(store, later) == ["a", "b", "c"]

    async def test_a_lease_knows_what_is_in_the_store_when_it_is_loaded(self, store):
        say(store, await store.acquire("user-42", create=True), "a", "b")
        lease = await store.acquire("user-42", create=True)
        await store.load(lease)
        assert lease.appended_seq == 2

    async def test_a_released_lease_is_over(self, store):
        lease = await store.acquire("user-42", create=True)
        say(store, lease, "a")
        store.release(lease)
        store.release(lease)
        with pytest.raises(Fenced) as caught:
            say(store, lease, "b")
        assert caught.value.session == "user-42"
        with pytest.raises(Fenced):
            await store.load(lease)
        assert await said(store, await store.acquire("user-42", create=False)) == ["a"]

    async def test_what_was_queued_before_a_release_is_kept(self, store, new_store):
        lease = await store.acquire("user-42", create=True)
        position = say(store, lease, "a", "b")
        store.release(lease)
        await store.flush(self.levels[-1], position)
        assert await said(store, await store.acquire("user-42", create=False)) == ["a", "b"]

    async def test_of_many_who_acquire_at_once_one_owns_the_session(self, store):
        say(store, await store.acquire("user-42", create=True), "a")
        leases = await asyncio.gather(*(store.acquire("user-42", create=True) for _ in range(10)))
        owners = [lease for lease in leases if lease.live]
        assert [lease.token for lease in owners] == [max(lease.token for lease in leases)]
        assert len({lease.birth for lease in leases}) == 1
        assert await said(store, owners[0]) == ["a"]

    # --- delete -------------------------------------------------------------------------------------------------------

    async def test_a_deleted_session_is_gone_and_its_lease_is_over(self, store):
        lease = await store.acquire("user-42", create=True)
        other = await store.acquire("user-43", create=True)
        say(store, lease, "a")
        say(store, other, "b")
        await store.delete(lease)
        with pytest.raises(SessionTombstoned) as caught:
            await store.acquire("user-42", create=False)
        assert caught.value.session == "user-42"
        with pytest.raises(Fenced):
            say(store, lease, "never")
        with pytest.raises(Fenced):
            await store.delete(lease)
        assert await listed(store) == ["user-43"]
        assert await said(store, other) == ["b"]

    async def test_an_id_made_again_is_a_new_session(self, store, new_store):
        lease = await store.acquire("user-42", create=True)
        say(store, lease, "a", "b", "c")
        await store.delete(lease)
        again = await store.acquire("user-42", create=True)
        assert again.birth != lease.birth
        assert again.appended_seq == 0
        assert await said(store, again) == []
        say(store, again, "new")
        assert await said(store, again) == ["new"]
        with pytest.raises(Fenced):
            say(store, lease, "never")

    async def test_a_delete_whose_caller_is_cancelled_completes(self, store):
        lease = await store.acquire("user-42", create=True)
        say(store, lease, "a")
        deleting = asyncio.ensure_future(store.delete(lease))
        await asyncio.sleep(0)
        deleting.cancel()
        await asyncio.gather(deleting, return_exceptions=True)
        await store.flush(self.levels[-1])
        with pytest.raises(SessionTombstoned):
            await store.acquire("user-42", create=False)

    async def test_deleting_a_session_without_records_leaves_it_unknown(self, store):
        await store.delete(await store.acquire("user-42", create=True))
        with pytest.raises(SessionUnknown):
            await store.acquire("user-42", create=False)

    async def test_a_deleted_id_made_again_without_a_record_stays_deleted(self, store):
        lease = await store.acquire("user-42", create=True)
        say(store, lease, "a")
        await store.delete(lease)
        again = await store.acquire("user-42", create=True)
        for _ in range(2):
            with pytest.raises(SessionTombstoned):
                await store.acquire("user-42", create=False)
            store.release(again)

    # --- listing ------------------------------------------------------------------------------------------------------

    async def test_a_listing_has_the_ids_with_the_prefix_in_order(self, store):
        ids = ["b", "a", "a-2", "a-10", "A", "\U0001f600", "\uffff", "\ud800", "\u00e9", "%", "_a"]
        for session in ids:
            say(store, await store.acquire(session, create=True), "x")
        assert await listed(store) == sorted(ids)
        for prefix in ("a", "a-", "%", "_", "\ud800", "\U0001f600", "none"):
            assert await listed(store, prefix) == sorted(session for session in ids if session.startswith(prefix))

    async def test_a_listing_tells_birth_creation_and_number(self, store):
        lease = await store.acquire("user-42", create=True)
        say(store, lease, "a", "b")
        (info,) = [info async for info in store.sessions()]
        assert (info.id, info.birth, info.created_at_us, info.seq) == ("user-42", lease.birth, AT_US + 1, 2)

    async def test_sessions_may_come_and_go_while_somebody_reads_a_listing(self, store):
        leases = [await store.acquire(f"user-{number}", create=True) for number in range(6)]
        for lease in leases:
            say(store, lease, "a")
        seen: list[str] = []
        async for info in store.sessions():
            seen.append(info.id)
            if len(seen) == 1:
                await store.delete(leases[5])
                say(store, await store.acquire("user-9", create=True), "a")
        assert seen[:5] == [f"user-{number}" for number in range(5)]

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


def reached(store: Store, level: Level) -> int:
    """How far a level is."""
    positions = {"written": store.written_position, "synced": store.synced_position}
    return positions.get(level, store.health().appended_position)
