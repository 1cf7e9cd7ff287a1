"""Mandatory hooks: what is in the book is run, tried again, set aside when it will not go, and never forgotten.

Each has a line of its own, with a breaker. Of one session the hooks begin in their order: one begins when the first try
of the one before it is over or late, or cannot begin at present. What fails after that is tried again by itself.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from contextlib import suppress
from functools import partial
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Final

from session_actor import telemetry
from session_actor.errors import (
    ActorError,
    RecordUnknown,
    RecordUnreadable,
    ReplayError,
    SessionActorError,
    StoreCorrupt,
)
from session_actor.server.cell import Dormant
from session_actor.service_errors import ServiceClosed, SessionNotFound, SessionQuarantined
from session_actor.supervisors import Backoff

from .beside import complain
from .breaker import Breaker
from .hook import HookContext
from .records import HookBegun, HookCut, HookDone, HookFailed, HooksVoid
from .tries import EVENT, about
from .view import view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from session_actor.service.population import Population
    from session_actor.state.state import State

    from .book import Due, Entry
    from .deletions import Deletions
    from .hook import Hook
    from .keeper import BookKeeper
    from .tries import Tries

TRIES: Final = 5
"""So many failures, and a hook is dead."""
UNFINISHED: Final = 10
"""So many tries in which the process died, and it is dead, too: it may be what kills the process."""
BACKOFF: Final = Backoff(initial_s=1.0, factor=4.0, max_s=300.0)
"""How long a hook that failed waits."""
AT_ONCE: Final = 16
"""So many tries of one hook run at the same time, for as many sessions."""
LOAD_S: Final = 30.0
_WAIT_S: Final = 1.0
"""How long to wait for what will pass: a disk that refuses, a session that restarts, a try that a service which was
closed has left behind."""
_LASTING: Final = (SessionNotFound, SessionQuarantined, StoreCorrupt, RecordUnknown, RecordUnreadable, ReplayError)
"""Why a session cannot be shown to its hooks, when waiting helps nobody: the try has failed."""

_active: Final[dict[str, asyncio.Task[object]]] = {}
"""The tries that run in this process, by key, whichever service began them: a closed one may have left some."""


class Job:
    """One hook of one session."""

    __slots__ = ("following", "key", "name", "passed")

    def __init__(self, due: Due) -> None:
        self.key = due.key
        self.name = due.name
        self.following: Job | None = None
        """The one that begins after this one's first try."""
        self.passed = False
        """Whether it waits in a line that stands still, and that one need not."""


class Line:
    """All that is to be run of one hook."""

    __slots__ = ("breaker", "hook", "ready", "running", "waking")

    def __init__(self, hook: Hook | None) -> None:
        self.hook = hook
        """None: no hook of this name is registered."""
        self.breaker = Breaker()
        self.ready: deque[Job] = deque()
        self.running = 0
        self.waking = False


class Try:
    """One try at work."""

    __slots__ = ("decides", "job", "judged", "line", "release")

    def __init__(self, line: Line, job: Job) -> None:
        self.line = line
        self.job = job
        self.decides = line.breaker.begin()
        self.judged = False
        """Whether the breaker knows how it ended."""
        self.release: Callable[[], None] | None = None


class Mandatory:
    """Runs what is in the book of one service."""

    def __init__(self, people: Population, tries: Tries, keeper: BookKeeper, hooks: Iterable[Hook]) -> None:
        """`hooks`: the mandatory ones that are registered."""
        self._people = people
        self._tries = tries
        self.keeper = keeper
        self._lines = {hook.name: Line(hook) for hook in hooks}
        self._jobs: set[str] = set()
        """The hooks that wait for their turn or run, by key."""
        self._woken: set[str] = set()
        """Sessions that were loaded for their hooks alone."""
        self.deletions: Deletions
        self.heir: Mandatory | None = None
        """Of the next generation of the service, which goes on."""

    # --- what is to be done ---

    def take(self, entry: Entry) -> None:
        """Run the hooks of a session."""
        for due in entry.hooks.values():
            if due.unfinished >= UNFINISHED and not due.dead:
                self._fail(entry, due, "Unfinished", dead=True)
        jobs = [Job(due) for due in entry.hooks.values() if not due.dead and due.key not in self._jobs]
        self._jobs.update(job.key for job in jobs)
        for before, job in pairwise(jobs):
            before.following = job
        if jobs:
            self._queue(jobs[0])
        elif entry.delete and not entry.hooks:
            self.deletions.start(entry)

    def drive(self, due: Due) -> None:
        """Run one hook that was dead."""
        if due.key not in self._jobs:
            self._jobs.add(due.key)
            self._queue(Job(due))

    def _queue(self, job: Job) -> None:
        """Run this when its turn comes."""
        line = self._lines.get(job.name)
        if line is None:
            line = self._lines[job.name] = Line(None)
        job.passed = False
        line.ready.append(job)
        self._pump(line)

    def registered(self, name: str) -> bool:
        """Whether there is a mandatory hook of this name."""
        line = self._lines.get(name)
        return line is not None and line.hook is not None

    def open_breakers(self) -> tuple[str, ...]:
        """The hooks that are left alone for a while, because they failed again and again."""
        return tuple(sorted(name for name, line in self._lines.items() if line.breaker.open))

    # --- whose turn it is ---

    def _pump(self, line: Line) -> None:
        """Begin what may begin."""
        while line.ready and not self._tries.leaving:
            wait_s = None if line.hook is None else line.breaker.wait_s(self._tries.clock.monotonic())
            if line.hook is None or wait_s != 0.0:
                self._pass_by(line)
                if wait_s is not None and not line.waking:
                    line.waking = True
                    self._tries.later(wait_s, partial(self._wake, line))
                return
            if line.running >= AT_ONCE:
                return
            self._begin(line, line.hook, line.ready.popleft())

    def _pass_by(self, line: Line) -> None:
        """What waits here holds up no other hook. Those before one that was passed by were so, too."""
        waiting = tuple(takewhile(lambda job: not job.passed, reversed(line.ready)))
        for job in reversed(waiting):
            job.passed = True
            self._go_on(job)

    def _wake(self, line: Line) -> None:
        line.waking = False
        self._pump(line)

    def _go_on(self, job: Job) -> None:
        """Let the session's next hook begin."""
        following, job.following = job.following, None
        if following is not None:
            self._queue(following)

    def _begin(self, line: Line, hook: Hook, job: Job) -> None:
        if _is_running(job.key):
            self._wait_for_other(job)
            return
        line.running += 1
        this = Try(line, job)
        this.release = self._tries.begin()
        if not self._tries.start(job.key, partial(self._run, this, hook)):
            self._over(this)

    def _wait_for_other(self, job: Job) -> None:
        """It runs already: another generation, or a service that was closed, began it."""
        self._go_on(job)
        self._tries.later(_WAIT_S, partial(self._queue, job))

    def _late(self, this: Try) -> None:
        """Its time is up: it counts as failed for the breaker, and others begin, whenever it really ends."""
        self._judge(this, failed=True)
        self._over(this)

    def _over(self, this: Try) -> None:
        """It holds up nobody any more; again: no effect."""
        release, this.release = this.release, None
        if release is not None:
            this.line.running -= 1
            if not this.judged and this.decides:
                this.line.breaker.leave()
            self._go_on(this.job)
            self._pump(this.line)
            release()

    # --- a try ---

    async def _run(self, this: Try, hook: Hook) -> None:
        job, task = this.job, asyncio.current_task()
        try:
            if _is_running(job.key):  # since this was begun: two generations may begin one in the same turn
                self._wait_for_other(job)
                return
            if task is not None:
                _active[job.key] = task
            await self._try(this, hook)
        finally:
            if _active.get(job.key) is task:
                del _active[job.key]
            self._over(this)
        if self.keeper.grown:
            await self.keeper.shorten()

    async def _try(self, this: Try, hook: Hook) -> None:
        job = this.job
        try:
            prepared = await self._prepare(job, hook)
        except ServiceClosed:
            return
        except SessionActorError as error:
            found = self.keeper.book.find(job.key)
            lasting = isinstance(error, _LASTING) or type(error) is ActorError  # its server cannot even start
            if lasting and found is not None:
                complain("hook_failed", {"session": found[0].session, "hook": job.name, "key": job.key}, error)
                self._failed(job, type(error).__name__)
            else:
                self._tries.later(_WAIT_S, partial(self._queue, job))
            return
        if prepared is None:
            self._jobs.discard(job.key)
            found = self.keeper.book.find(job.key)
            if found is None or not found[1].dead:
                self._begin_anew(job, None if found is None else found[0])
            return
        context, marks = prepared
        try:
            failure = await self._tries.call(hook, context, marks, partial(self._late, this))
        except asyncio.CancelledError:
            self._cut(job.key)
            raise
        self._judge(this, failed=failure is not None)
        if failure is None:
            await self._done(job, context.session_id)
        else:
            complain("hook_failed", about(hook, context), failure)
            self._failed(job, type(failure).__name__)

    async def _prepare(self, job: Job, hook: Hook) -> tuple[HookContext, tuple[Hashable, ...]] | None:
        """Note that a try begins, before it does. None: it is not due any more."""
        found = self.keeper.book.find(job.key)
        if found is None:
            return None
        entry, due = found
        state = await self.load(entry)
        if state is None or self.keeper.book.find(job.key) is None or due.dead:
            return None
        self.keeper.admit()
        position = self.keeper.append(HookBegun(job.key))
        try:
            await self.keeper.kept(position)
        except BaseException:
            self._cut(job.key)
            raise
        view = view_of(state)
        context = HookContext(entry.session, hook.phase, job.key, due.attempt, entry.reason, view)
        return context, self._people.hooks.marks(entry.session, entry.birth)

    def _begin_anew(self, job: Job, entry: Entry | None) -> None:
        """This is not due any more: those that are not, either, are forgotten, or the next end would not begin them.

        `entry`: the session's end that came meanwhile, to which they belong now; None: none did.
        """
        following = job.following
        while following is not None and (entry is not None or self.keeper.book.find(following.key) is None):
            self._jobs.discard(following.key)
            following = following.following
        job.following = following
        if entry is not None:
            self._tries.later(0.0, partial(self.take, entry))

    async def load(self, entry: Entry) -> State | None:
        """The state of a session in the book; None: it is none of which anything is due, and the book knows it now.

        Raises what loading raises; ServiceClosed, too, when the session went at once.
        """
        people = self._people
        if isinstance(people.cell(entry.session).ref, Dormant):
            self._woken.add(entry.session)
        cell = await people.load(entry.session, None, LOAD_S)
        state, lease = cell.state, cell.lease
        if state is None or lease is None:
            raise SessionActorError(f"session {entry.session!r} went as soon as it was loaded; it is loaded again")
        if self.keeper.book.entries.get(entry.session) is not entry:
            return None
        # Salvage gives a session a new birth: the moment of its creation stays.
        same = lease.birth == entry.birth or state.created_at_us == entry.created_at_us
        if same and state.ended is not None:
            return state
        self.keeper.append(HooksVoid(entry.session))
        self.deletions.void(entry.session)
        return None

    # --- how it ended ---

    def _judge(self, this: Try, *, failed: bool) -> None:
        """Let the breaker know, once."""
        line, hook = this.line, this.line.hook
        if this.judged or hook is None:
            return
        this.judged = True
        now_s = self._tries.clock.monotonic()
        turned = line.breaker.fail(now_s, decides=this.decides) if failed else line.breaker.succeed()
        if turned and telemetry.attached:
            metadata = {"hook": hook.name, "phase": hook.phase, "state": "open" if failed else "closed"}
            telemetry.emit((*EVENT, "breaker"), {}, metadata)

    def _cut(self, key: str) -> None:
        with suppress(SessionActorError):
            self.keeper.append(HookCut(key))

    def _failed(self, job: Job, error: str) -> None:
        found = self.keeper.book.find(job.key)
        if found is None:
            return
        entry, due = found
        dead = due.failures + 1 >= TRIES
        self._fail(entry, due, error, dead=dead)
        if dead:
            self._jobs.discard(job.key)
        else:
            self._tries.later(BACKOFF.delay_s(due.failures, random.random), partial(self._queue, job))

    def _fail(self, entry: Entry, due: Due, error: str, *, dead: bool) -> None:
        self.keeper.append(HookFailed(due.key, error, dead))
        if dead:
            what: dict[str, object] = {"session": entry.session, "hook": due.name, "key": due.key, "error": error}
            if telemetry.attached:
                telemetry.emit((*EVENT, "dead"), {"attempts": due.attempt}, what)
            complain("hook_dead", {**what, "next_step": "service.hooks.drive(letter)"}, None)

    async def _done(self, job: Job, session: str) -> None:
        found = self.keeper.book.find(job.key)
        self.keeper.append(HookDone(job.key))
        self._jobs.discard(job.key)
        if found is not None and not found[0].hooks:
            await self.through(found[0], session)

    async def through(self, entry: Entry, session: str) -> None:
        """Nothing is left to run for a session: it goes, or rests again."""
        if self.heir is not None:
            await self.heir.through(entry, session)
            return
        woken = session in self._woken
        self._woken.discard(session)
        if entry.delete:
            self.deletions.start(entry)
        elif woken:
            await self._people.rest(session)


def _is_running(key: str) -> bool:
    task = _active.get(key)
    return task is not None and not task.done() and not task.get_loop().is_closed()
