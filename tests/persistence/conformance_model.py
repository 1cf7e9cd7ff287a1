"""A store beside a plain model of it, driven by Hypothesis: whatever is done, both hold the same records.

The model is a list of all that was appended. A crash keeps a beginning of it, and at least what was flushed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from session_actor.persistence import Fenced, Lease, SessionTombstoned, SessionUnknown, Store

from .conformance_tools import listed, said, say

SESSIONS = ["user-1", "user-2", "User-1", "\ud800", "../x"]
sessions = st.sampled_from(SESSIONS)
texts = st.sampled_from(["", "a", "lone \ud800", "x" * 700, "line\nend \x00", '{"$esc":"x"}'])


class Home(Protocol):
    """Where the store under test keeps its data."""

    levels: tuple[str, ...]

    def new_store(self) -> Store:
        """A store that is not open, on the data as they are now."""
        ...

    def crash(self, store: Store) -> Coroutine[Any, Any, None] | None:
        """Close the store so that only what it had given away by now is left; None: it cannot crash."""
        ...


class Appended(NamedTuple):
    """One record in the order of the whole store; birth counts the creations of the id."""

    session: str
    birth: int
    text: str


class StoreMachine(RuleBasedStateMachine):
    """The rules; `home` is set by `check_against_model`."""

    home: Callable[[], Home]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.place = type(self).home()
        self.appended: list[Appended] = []
        self.flushed = 0
        self.changed = False
        self.births = dict.fromkeys(SESSIONS, 1)
        self.deleted: set[str] = set()
        self.names: dict[str, str] = {}
        self.leases: dict[str, Lease] = {}
        self.old_leases: list[Lease] = []
        self.store = self.place.new_store()
        self.run(self.store.open())

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(coroutine)

    def expected(self, session: str) -> list[str]:
        birth = self.births[session]
        return [record.text for record in self.appended if record[:2] == (session, birth)]

    def forget_leases(self) -> None:
        self.old_leases += self.leases.values()
        self.leases.clear()

    # --- rules --------------------------------------------------------------------------------------------------------

    @rule(session=sessions, create=st.booleans())
    def acquire(self, session, create):
        if not create and not self.expected(session):
            with pytest.raises(SessionTombstoned if session in self.deleted else SessionUnknown):
                self.run(self.store.acquire(session, create=False))
            return
        lease = self.run(self.store.acquire(session, create=create))
        if session in self.leases:
            self.old_leases.append(self.leases[session])
        self.leases[session] = lease
        if self.expected(session):
            assert lease.birth == self.names.setdefault(session, lease.birth)
        self.names[session] = lease.birth
        assert self.run(said(self.store, lease)) == self.expected(session)
        assert lease.appended_seq == len(self.expected(session))

    @rule(session=sessions, new=st.lists(texts, min_size=1, max_size=8))
    def append(self, session, new):
        if session not in self.leases:
            self.acquire(session, create=True)

        async def on_the_loop() -> None:
            say(self.store, self.leases[session], *new)

        self.run(on_the_loop())
        self.appended += [Appended(session, self.births[session], text) for text in new]
        self.changed = True

    @precondition(lambda self: self.flushed < len(self.appended))
    @rule(data=st.data())
    def flush(self, data):
        self.run(self.store.flush(data.draw(st.sampled_from(self.place.levels))))
        self.flushed = len(self.appended)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def release(self, data):
        lease = self.leases.pop(data.draw(st.sampled_from(sorted(self.leases))))
        self.store.release(lease)
        self.old_leases.append(lease)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def delete(self, data):
        session = data.draw(st.sampled_from(sorted(self.leases)))
        lease = self.leases.pop(session)
        self.old_leases.append(lease)
        self.run(self.store.delete(lease))
        self.changed = True
        if self.expected(session):
            self.deleted.add(session)
            self.births[session] += 1
            self.flushed = len(self.appended)
        self.names.pop(session, None)

    @precondition(lambda self: self.old_leases)
    @rule(data=st.data())
    def use_an_old_lease(self, data):
        lease = data.draw(st.sampled_from(self.old_leases))
        with pytest.raises(Fenced):
            say(self.store, lease, "never")
        self.store.release(lease)

    @precondition(lambda self: self.changed)
    @rule()
    def work(self):
        """Let the workers run for a moment."""

        async def working() -> None:
            jobs = [asyncio.ensure_future(job()) for job in self.store.workers().values()]
            await asyncio.sleep(0.01)
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)

        self.run(working())

    @precondition(lambda self: self.changed)
    @rule()
    def reopen(self):
        self.run(self.store.close())
        self.flushed = len(self.appended)
        self.start_again()

    @precondition(lambda self: self.changed)
    @rule()
    def crash(self):
        crash = self.place.crash(self.store)
        if crash is None:
            return
        self.run(crash)
        self.start_again()
        self.accept_what_is_left()

    def start_again(self) -> None:
        self.forget_leases()
        self.changed = False
        self.store = self.place.new_store()
        self.run(self.store.open())

    def accept_what_is_left(self) -> None:
        """What came back must be a beginning of all that was appended, and hold all that was flushed."""
        found = {session: self.run(self.read(session)) for session in SESSIONS}
        left = list(found.values())
        kept, seen = 0, dict.fromkeys(SESSIONS, 0)
        live = [record for record in self.appended if record.birth == self.births[record.session]]
        for record in live:
            if seen[record.session] == len(found[record.session]):
                break
            assert found[record.session][seen[record.session]] == record.text
            seen[record.session] += 1
            kept += 1
        assert list(seen.values()) == [len(texts) for texts in left]
        flushed = [record for record in self.appended[: self.flushed] if record.birth == self.births[record.session]]
        assert kept >= len(flushed)
        self.appended = live[:kept]
        self.flushed = kept

    async def read(self, session: str) -> list[str]:
        try:
            lease = await self.store.acquire(session, create=False)
        except (SessionUnknown, SessionTombstoned):
            return []
        found = await said(self.store, lease)
        self.store.release(lease)
        return found

    # --- what always holds --------------------------------------------------------------------------------------------

    @invariant()
    def the_listing_has_every_session_with_records(self):
        assert self.run(listed(self.store)) == sorted(session for session in SESSIONS if self.expected(session))

    @invariant()
    def positions_are_in_order(self):
        health = self.store.health()
        assert health.synced_position <= health.written_position <= health.appended_position

    def teardown(self) -> None:
        for session in list(self.leases):
            assert self.run(said(self.store, self.leases[session])) == self.expected(session)
        self.run(self.store.close())
        self.runner.close()


def check_against_model(home: Callable[[], Home], *, examples: int, steps: int) -> None:
    """Run the machine on stores that `home` makes, a fresh one for each example."""
    machine = type("Machine", (StoreMachine,), {"home": staticmethod(home)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
