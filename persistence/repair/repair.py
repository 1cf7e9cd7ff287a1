"""Repairing a store: what verifying finds decides what is done, then it is verified again, until nothing is left to do.

Each step leaves, wherever the process dies, something that the next repair finds and goes on with. Nothing is lost by
it but what is lost already: what is taken out of use is kept under aside/, unless all of it is still in use elsewhere.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from session_actor.persistence.checking.findings import Findings
from session_actor.persistence.checking.tree import LookingDisk
from session_actor.persistence.checking.verify import check_store
from session_actor.persistence.errors import SessionUnknown, StoreLocked
from session_actor.persistence.foreign import check_store_there
from session_actor.persistence.layout import Layout
from session_actor.persistence.lock import StoreLock
from session_actor.persistence.reading.read_lock import read_lock

from .outlook import with_outlooks
from .repair_files import FileRepair
from .repair_salvage import run_salvage
from .repairs import BASIC, SALVAGED, Repairs, Step, is_for, plan

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Generator

    from session_actor.persistence.checking.findings import Finding
    from session_actor.persistence.files.storage import Disk

    from .mending import Salvage
    from .repairs import Key

ROUNDS_MAX: Final = 10
"""Each round mends what could not be judged before the last one; where more is found than is kept, there are more."""


def repair(
    root: str | os.PathLike[str],
    *,
    write: bool = False,
    salvage: Salvage | None = None,
    sessions: Collection[str] | None = None,
    tell: Callable[[Step | Finding], None] | None = None,
    disk: Disk | None = None,
) -> Repairs:
    """Mend the store at `root`, or only tell how; blocks.

    `write`: do it. `salvage`: what to keep of damaged sessions: `prefix`, their records up to the first loss;
    `readable`, all that can be read, with gaps; None: they are left as they are. `sessions`: salvage these alone; None:
    all. `tell`: told each step when it is done, and each damage that is left. `disk`: the system calls; None: the real
    ones.

    Raises `NotAStore`, `StoreLocked` when the store is in use, `SessionUnknown` for one of `sessions`,
    `StoreVersionTooNew`, and OSError when the disk refuses; then what was done until then stays done, and repairing
    again goes on.
    """
    layout = Layout(root)
    check_store_there(layout)
    work = _Repair(layout, LookingDisk() if disk is None else disk, salvage, sessions, tell or _quiet)
    return work.write() if write else work.dry_run()


class _Repair:
    """One repair of one store."""

    def __init__(
        self,
        layout: Layout,
        disk: Disk,
        salvage: Salvage | None,
        sessions: Collection[str] | None,
        tell: Callable[[Step | Finding], None],
    ) -> None:
        self._layout = layout
        self._disk = disk
        self._salvage: Salvage | None = salvage
        self._sessions = sessions
        self._tell = tell
        self._repairs = Repairs()
        self._tried: set[Key] = set()

    def dry_run(self) -> Repairs:
        with read_lock(self._layout):
            steps, left = self._look()
            if self._salvage is not None and any(step.kind in SALVAGED for step in steps):
                steps = with_outlooks(self._layout, steps, self._salvage)
        self._repairs.steps = steps
        return self._end(left, steps)

    def write(self) -> Repairs:
        self._repairs.written = True
        left: list[Finding] = []
        rounds = 0
        while rounds < ROUNDS_MAX:
            rounds += not self._repairs.more
            with write_lock(self._layout):
                steps, left = self._look()
                basic = [step for step in steps if step.kind in BASIC]
                files = FileRepair(self._disk, self._layout)
                for step in basic or [step for step in steps if step.kind not in SALVAGED]:
                    files.do(step)
                    self._done(step)
            salvaged = [] if basic else [step for step in steps if step.kind in SALVAGED]
            if salvaged and self._salvage is not None:
                for step in run_salvage(self._layout.root, self._disk, salvaged, self._salvage):
                    self._done(step)
                self._tried.update(step.key for step in salvaged)
            if not steps:
                break
        else:
            self._repairs.more = True
        return self._end(left)

    def _look(self) -> tuple[list[Step], list[Finding]]:
        findings = Findings(root=self._layout.root, asked=self._sessions or ())
        check_store(self._disk, self._layout, findings)
        for session in sorted(findings.missing):
            raise SessionUnknown(session, "give the id of one that is there, as the store spells it")
        self._repairs.more = is_for(findings.cut)
        return plan(findings.list, self._salvage, self._sessions, self._tried, root=self._layout.root)

    def _done(self, step: Step) -> None:
        self._tried.add(step.key)
        self._repairs.steps.append(step)
        self._tell(step)

    def _end(self, left: list[Finding], steps: Collection[Step] = ()) -> Repairs:
        self._repairs.left = left
        for step in steps:
            self._tell(step)
        for finding in left:
            self._tell(finding)
        return self._repairs


def _quiet(_: Step | Finding) -> None:
    """Nobody wants to be told."""


@contextlib.contextmanager
def write_lock(layout: Layout) -> Generator[None]:
    """Hold the lock of a store, to change it. Raises `StoreLocked`, OSError."""
    lock = StoreLock(layout.lock)
    if not lock.try_acquire():
        with read_lock(layout):  # says who has it
            raise StoreLocked(layout.root, None)
    try:
        yield
    finally:
        lock.release()
