"""The part of the conformance suite about sessions: ids, leases, deletion, listings."""

from __future__ import annotations

import asyncio

import pytest

from session_actor.persistence import Fenced, Level, SessionTombstoned, SessionUnknown, UnusableId

from .conformance_tools import AT_US, HOSTILE_IDS, listed, said, say


class SessionsConformance:
    """Needs a fixture `store`, open and with its workers running."""

    levels: tuple[Level, ...]

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
