"""The part of the conformance suite about snapshots, the archive of old records, and pruning."""

from __future__ import annotations

from contextlib import suppress

import pytest

from session_actor.persistence import (
    Fenced,
    Lease,
    Level,
    NotDurable,
    Pruned,
    RecordTooLarge,
    SessionTombstoned,
    Store,
    StoreClosed,
    StoreCorrupt,
    decode_typed,
    dumps,
    loads,
)
from session_actor.persistence.format.record import MAX_RECORD_BYTES

from .conformance_tools import AT_US, Added, copied, opened, push


def seqs(loaded) -> list[int]:
    return [record.seq for record in loaded.records]


def ids(records) -> list[int]:
    return [decode_typed(record.data, Added).id for record in records]


async def save(store: Store, lease: Lease, value: object = None) -> int:
    """A durable snapshot of what the session is now; returns its record."""
    seq = lease.appended_seq
    store.save(lease, seq, dumps({"seq": seq} if value is None else value))
    await store.saved(lease, seq)
    return seq


class SnapshotsConformance:
    """Needs a fixture `store`, open and with its workers running, and `new_store`."""

    levels: tuple[Level, ...]
    working: bool
    files: bool = False
    """Whether old records lie in files of a few records each, so that some can be dropped."""

    # --- snapshots ----------------------------------------------------------------------------------------------------

    async def test_a_session_loads_from_its_newest_snapshot_and_what_came_behind(self, store, new_store):
        lease = await store.acquire("user-42", create=True)
        for _ in range(3):
            push(store, lease, 10)
            seq = await save(store, lease)
        push(store, lease, 5)
        loaded = await store.load(lease)
        assert loaded.snapshot is not None
        assert (loaded.snapshot.seq, loads(bytes(loaded.snapshot.data))) == (seq, {"seq": seq}) == (30, {"seq": 30})
        assert seqs(loaded) == [31, 32, 33, 34, 35]
        assert loaded.records[0].prev == loaded.snapshot.sum
        assert (loaded.report.seq, loaded.report.snapshot_seq, loaded.report.rejected) == (35, 30, ())
        assert lease.appended_seq == 35

    async def test_a_snapshot_of_the_newest_record_leaves_nothing_to_replay(self, store):
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 10)
        await save(store, lease)
        loaded = await store.load(lease)
        newest = (await store.load(lease, snapshots=False)).records[-1]
        assert (list(loaded.records), loaded.report.seq) == ([], 10)
        assert loaded.snapshot is not None
        assert (loaded.snapshot.seq, loaded.snapshot.sum) == (newest.seq, newest.sum)

    async def test_a_session_without_snapshots_loads_from_its_first_record(self, store):
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 10)
        loaded = await store.load(lease)
        assert (loaded.snapshot, loaded.report.snapshot_seq, seqs(loaded)) == (None, 0, list(range(1, 11)))

    async def test_older_snapshots_and_none_can_be_asked_for(self, store):
        lease = await store.acquire("user-42", create=True)
        for _ in range(3):
            push(store, lease, 10)
            await save(store, lease)
        push(store, lease, 1)
        older = await store.load(lease, before=30)
        assert older.snapshot is not None
        assert (older.snapshot.seq, seqs(older)) == (20, list(range(21, 32)))
        for loaded in (await store.load(lease, before=20), await store.load(lease, snapshots=False)):
            assert (loaded.snapshot, seqs(loaded)) == (None, list(range(1, 32)))

    async def test_a_snapshot_that_its_owner_cannot_use_is_replaced_before_a_good_one(self, store):
        lease = await store.acquire("user-42", create=True)
        for _ in range(3):
            push(store, lease, 10)
            await save(store, lease)
        assert (await store.load(lease, before=30)).snapshot.seq == 20
        push(store, lease, 10)
        await save(store, lease)
        assert [(await store.load(lease, before=before)).snapshot.seq for before in (None, 40)] == [40, 20]

    async def test_where_its_owner_can_use_none_one_of_the_same_record_takes_the_place(self, store):
        lease = await store.acquire("user-42", create=True)
        for _ in range(2):
            push(store, lease, 10)
            await save(store, lease, "unusable")
        assert (await store.load(lease, before=10)).snapshot is None
        with pytest.raises(NotDurable):
            await store.saved(lease, 20)
        await save(store, lease, "good")
        assert loads(bytes((await store.load(lease)).snapshot.data)) == "good"

    async def test_pruning_does_not_rely_on_a_snapshot_that_its_owner_cannot_use(self, store):
        lease = await store.acquire("user-42", create=True)
        for _ in range(2):
            push(store, lease, 100)
            await save(store, lease, "unusable")
        assert (await store.load(lease, before=100)).snapshot is None
        assert await store.prune(lease, [(1, 50)]) == Pruned()
        assert seqs(await store.load(lease, before=1)) == list(range(1, 201))
        push(store, lease, 100)
        await save(store, lease, "good")
        await store.prune(lease, [(1, 200)])
        assert loads(bytes((await store.load(lease)).snapshot.data)) == "good"
        with suppress(StoreCorrupt):  # where something was dropped
            loaded = await store.load(lease, before=300)
            while loaded.snapshot is not None:  # where nothing was dropped, they may be there still
                loaded = await store.load(lease, before=loaded.snapshot.seq)
            assert seqs(loaded) == list(range(1, 301))

    async def test_snapshots_are_there_after_reopening(self, new_store):
        async with opened(new_store(), working=self.working) as store:
            lease = await store.acquire("user-42", create=True)
            push(store, lease, 40)
            await save(store, lease, ["lone \ud800", 2**70])
            push(store, lease, 2)
        for _ in range(2):
            async with opened(new_store(), working=self.working) as store:
                loaded = await store.load(await store.acquire("user-42", create=False))
                assert loaded.snapshot is not None
                assert (loaded.snapshot.seq, seqs(loaded)) == (40, [41, 42])
                assert loads(bytes(loaded.snapshot.data)) == ["lone \ud800", 2**70]

    async def test_closing_keeps_the_snapshots_that_were_queued(self, new_store):
        async with opened(new_store(), working=self.working) as store:
            leases = [await store.acquire(f"user-{number}", create=True) for number in range(20)]
            for lease in leases:
                push(store, lease, 3)
                store.save(lease, 3, b'"of three"')
        async with opened(new_store(), working=self.working) as store:
            for lease in leases:
                loaded = await store.load(await store.acquire(lease.session, create=False))
                assert (loaded.report.snapshot_seq, seqs(loaded)) == (3, [])

    async def test_of_many_snapshots_queued_the_newest_counts(self, store):
        lease = await store.acquire("user-42", create=True)
        for seq in range(1, 31):
            push(store, lease, 1)
            store.save(lease, seq, dumps(seq))
        store.save(lease, 7, dumps("late"))
        await store.saved(lease, 30)
        await store.saved(lease, 7)
        loaded = await store.load(lease)
        assert loaded.snapshot is not None
        assert (loaded.snapshot.seq, loads(bytes(loaded.snapshot.data))) == (30, 30)

    async def test_snapshots_of_sessions_do_not_mix_and_outlive_no_birth(self, store):
        leases = [await store.acquire(f"user-{number}", create=True) for number in range(5)]
        for lease in leases:
            push(store, lease, 4)
            await save(store, lease, lease.session)
        await store.delete(leases[0])
        again = await store.acquire("user-0", create=True)
        push(store, again, 2)
        assert seqs(loaded := await store.load(again)) == [1, 2]
        assert (loaded.snapshot, loaded.report.rejected) == (None, ())
        for lease in leases[1:]:
            loaded = await store.load(lease)
            assert loaded.snapshot is not None
            assert loads(bytes(loaded.snapshot.data)) == lease.session

    async def test_a_snapshot_that_cannot_be_is_refused_and_nothing_changes(self, store):
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 3)
        for seq in (-1, 0, 4):
            with pytest.raises(ValueError, match=str(seq)):
                store.save(lease, seq, b"{}")
        with pytest.raises(ValueError, match="line"):
            store.save(lease, 3, b"{\n}")
        with pytest.raises(RecordTooLarge):
            store.save(lease, 3, b'"%b"' % (b"x" * MAX_RECORD_BYTES))
        with pytest.raises(NotDurable):
            await store.saved(lease, 3)
        assert (await store.load(lease)).snapshot is None

    async def test_only_the_owner_saves_waits_and_prunes(self, store):
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 3)
        await save(store, lease)
        store.release(lease)
        with pytest.raises(Fenced):
            store.save(lease, 3, b"{}")
        with pytest.raises(Fenced):
            await store.saved(lease, 3)
        with pytest.raises(Fenced):
            store.archive(lease)
        with pytest.raises(Fenced):
            await store.prune(lease, [(1, 3)])

    # --- the archive --------------------------------------------------------------------------------------------------

    async def test_the_archive_reads_the_records_that_add_frames(self, store):
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 100, between=1)
        archive = store.archive(lease)
        whole = {record.seq: record for record in (await store.load(lease, snapshots=False)).records}
        for wanted in ([1], [100], [7, 3, 3, 50], [], [0, 101, 10**12, -5], range(1, 101), [99, 1000]):
            expected = sorted({frame for frame in wanted if 1 <= frame <= 100})
            for found in (archive.read(wanted), await archive.fetch(wanted)):
                assert ids(found) == expected
                assert all(whole[record.seq] == record for record in found)

    async def test_the_archive_reads_what_was_appended_since(self, store):
        lease = await store.acquire("user-42", create=True)
        archive = store.archive(lease)
        assert archive.read([1]) == []
        for number in range(1, 40):
            push(store, lease, 1)
            assert ids(archive.read([number])) == [number]
            await store.flush(self.levels[-1])
            assert ids(await archive.fetch([number, number - 1])) == [max(number - 1, 1), number][number == 1 :]

    async def test_a_record_that_adds_many_frames_is_read_once(self, store):
        lease = await store.acquire("user-42", create=True)
        copied(store, lease, [1, 2, 5, 9])
        copied(store, lease, [10, 12])
        push(store, lease, 2, first=13)
        archive = store.archive(lease)
        assert [record.seq for record in archive.read([2, 9, 12, 13])] == [1, 2, 3]
        assert [record.seq for record in archive.read([3, 4, 11])] == []
        assert [record.seq for record in await archive.fetch([5])] == [1]

    async def test_data_that_names_no_frame_adds_none(self, store):
        lease = await store.acquire("user-42", create=True)
        for data in (b"[]", b'{"id":"x"}', b'{"id":1.5}', b"null", b'{"frames":7}'):
            for kind in ("pushed", "history_copied", "said"):
                store.append(lease, lease.appended_seq + 1, AT_US, kind, data, 10)
        store.append(lease, lease.appended_seq + 1, AT_US, "said", b'{"id":7}', 10)
        store.append(lease, lease.appended_seq + 1, AT_US, "pushed", b'{"a":{"id":8}, "id": 7}', 10)
        assert [record.seq for record in store.archive(lease).read([7, 8, 1])] == [17]

    async def test_an_archive_lives_on_when_its_lease_is_over(self, store):
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 50)
        archive = store.archive(lease)
        store.release(lease)
        await store.flush(self.levels[-1])
        again = await store.acquire("user-42", create=False)
        push(store, again, 50, first=51)
        assert ids(archive.read([1, 50, 100])) == [1, 50, 100]

    async def test_an_archive_ends_with_its_session_and_with_the_store(self, new_store):
        async with opened(new_store(), working=self.working) as store:
            leases = [await store.acquire(f"user-{number}", create=True) for number in range(2)]
            archives = [store.archive(lease) for lease in leases]
            for lease in leases:
                push(store, lease, 30)
            await store.delete(leases[0])
            push(store, await store.acquire("user-0", create=True), 30)
            with pytest.raises(SessionTombstoned):
                archives[0].read([1])
            with pytest.raises(SessionTombstoned):
                await archives[0].fetch([1])
            assert ids(archives[1].read([1])) == [1]
        with pytest.raises(StoreClosed):
            archives[1].read([1])
        async with opened(new_store(), working=self.working):
            with pytest.raises(StoreClosed):
                await archives[1].fetch([1])

    # --- prune --------------------------------------------------------------------------------------------------------

    async def test_pruning_drops_no_frame_that_is_kept_and_changes_no_state(self, store, new_store):
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 300)
        await save(store, lease)
        push(store, lease, 20, first=301)
        await save(store, lease)
        push(store, lease, 3, first=321)
        before = await store.load(lease)
        pruned = await store.prune(lease, [(1, 100), (150, 200), (310, 400)])
        after = await store.load(lease)
        assert (list(after.records), after.snapshot) == (list(before.records), before.snapshot)
        kept = {*range(101, 150), *range(201, 324)}
        archive = store.archive(lease)
        found = {*ids(archive.read(range(1, 400)))}
        assert found >= kept
        assert (pruned.size_bytes > 0) == (len(found) < 323)
        assert ids(await archive.fetch(kept)) == sorted(kept)

    async def test_without_a_snapshot_nothing_is_pruned(self, store):
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 300)
        pruned = await store.prune(lease, [(1, 300)])
        assert (pruned.files, pruned.size_bytes) == (0, 0)
        assert seqs(await store.load(lease)) == list(range(1, 301))

    async def test_what_is_pruned_stays_pruned_and_the_session_goes_on(self, new_store):
        async with opened(new_store(), working=self.working) as store:
            lease = await store.acquire("user-42", create=True)
            for first in range(1, 400, 100):
                push(store, lease, 100, first=first)
                await save(store, lease)
                await store.prune(lease, [(1, first + 50)])
            left = ids(store.archive(lease).read(range(1, 1000)))
            assert set(range(351, 401)) <= set(left)
            push(store, lease, 2, first=401)
        async with opened(new_store(), working=self.working) as store:
            lease = await store.acquire("user-42", create=False)
            loaded = await store.load(lease)
            assert (loaded.report.snapshot_seq, seqs(loaded), loaded.report.seq) == (400, [401, 402], 402)
            assert ids(store.archive(lease).read(range(1, 401))) == left
            push(store, lease, 1, first=403)
            rest = await store.load(lease, snapshots=False)
            assert seqs(rest) == list(range(seqs(rest)[0], 404))
            if seqs(rest)[0] > 1:
                with pytest.raises(StoreCorrupt, match="pruned"):
                    await store.load(lease, before=1)

    async def test_a_run_that_ends_before_it_begins_is_refused(self, store):
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 3)
        with pytest.raises(ValueError, match="ends before it begins"):
            await store.prune(lease, [(3, 1)])
