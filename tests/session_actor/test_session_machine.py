"""Real sessions on a real store against a plain model, over random operations, crashes, deaths and recoveries.

A branch that saw a frame of another branch or of another session, a frame that came back, or an order that changed
would differ from the model. `max_live` is 1: each use of another session unloads the one before. Snapshots are taken
after every few records, so that nearly every frame is read from the disk again; the newest of them is damaged at times.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from session_actor import FrameUnknown, MemoryStore, Session, SessionService
from session_actor.persistence import FileStore, Store
from session_actor.server import snapshots
from session_actor.service_errors import SessionCrashed
from session_actor.stack import Stack

from ..living import copy_living
from .conftest import Poison
from .live import picture
from .session_model import Model

LEVELS = st.sampled_from(["async", "async", "written", "synced"])
RESTART_WINDOW_S = 0.001
"""So short that no crash is taken for one in a row."""
SEGMENT_BYTES = 8 * 1024
"""So small that records are cut into journals meanwhile."""
JOURNAL_BYTES = 2 * 1024
"""So small that pruning finds whole files to drop."""
TEXTS = st.text(st.characters(), max_size=8)


class SessionMachine(RuleBasedStateMachine):
    """Rules are sync; one runner drives the coroutines. `model` is that of the session in use, `session`."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.roots = (Path(self.folder.name) / str(number) for number in itertools.count())
        self.models = {"user": Model()}
        self.id = "user"
        self.named = 0
        self.damaged = False
        self.taken: list[tuple[Stack, tuple[str, ...]]] = []
        self.intervals = snapshots.EVERY_RECORDS, snapshots.RESTING_RECORDS
        snapshots.EVERY_RECORDS, snapshots.RESTING_RECORDS = 7, 2

    def do(self, coroutine):
        """Run one coroutine on the machine's loop."""
        return self.runner.run(coroutine)

    @initialize()
    def begin(self) -> None:
        self.root = next(self.roots)
        self.open()
        self.session = self.do(self.service.session("user", create=True))

    def level(self, wanted: str) -> str:
        """A level that the store reaches."""
        return wanted

    def new_store(self) -> Store:
        return FileStore(self.root, segment_bytes=SEGMENT_BYTES, journal_bytes=JOURNAL_BYTES, sync_interval_s=0.01)

    def open(self) -> None:
        self.taken.clear()
        self.service = SessionService.open(self.new_store(), max_live=1, restart_window_s=RESTART_WINDOW_S)
        self.do(self.service.start())

    def use(self, session_id: str) -> None:
        """Go on with this session."""
        self.id = session_id
        self.session = self.do(self.service.session(session_id))

    def teardown(self) -> None:
        if hasattr(self, "service"):
            self.compare_all()
            self.do(self.service.close())
        snapshots.EVERY_RECORDS, snapshots.RESTING_RECORDS = self.intervals
        self.runner.close()
        self.folder.cleanup()

    @property
    def model(self) -> Model:
        return self.models[self.id]

    def new_name(self, kind: str) -> str:
        self.named += 1
        return f"{kind}-{self.named}"

    # --- operations ---

    @rule(text=TEXTS, level=LEVELS)
    def push(self, text: str, level: str) -> None:
        model = self.model
        frame = self.do(self.session.push(text, "x", durability=self.level(level)))
        parent = model.head
        if model.attached is None:
            model.attached = f"b{frame.id}"
            assert model.attached not in model.branches
        model.move(model.grow(parent, text))
        assert frame.id == model.head

    @rule(n=st.integers(10, 40))
    def push_many(self, n: int) -> None:
        for number in range(n):
            self.push(f"many {number}", "async")

    @rule(n=st.integers(1, 40), level=LEVELS)
    def pop(self, n: int, level: str) -> None:
        model = self.model
        popped = self.do(self.session.pop(n, durability=self.level(level)))
        assert [frame.user_input for frame in popped] == list(reversed(model.path(model.head)))[:n]
        model.move(model.below(model.head, n))

    @rule(data=st.data())
    def goto_frame(self, data) -> None:
        frame = data.draw(st.sampled_from([0, *sorted(self.model.paths)]))
        self.do(self.session.goto(frame))
        self.model.goto(frame or None, None)

    @rule(data=st.data())
    @precondition(lambda self: self.model.branches)
    def goto_branch(self, data) -> None:
        branch = data.draw(st.sampled_from(sorted(self.model.branches)))
        self.do(self.session.goto(branch))
        self.model.goto(self.model.branches[branch], branch)

    @rule(data=st.data())
    @precondition(lambda self: self.model.checkpoints)
    def goto_checkpoint(self, data) -> None:
        name = data.draw(st.sampled_from(sorted(self.model.checkpoints)))
        self.do(self.session.goto(name))
        self.model.goto(self.model.checkpoints[name], None)

    @rule(data=st.data(), text=TEXTS, grows=st.booleans())
    def fork(self, data, text: str, grows: bool) -> None:
        model = self.model
        at = data.draw(st.sampled_from([0, *sorted(model.paths)]))
        tip = at or None
        name = self.new_name("fork")
        if grows:
            frame = self.do(self.session.fork(at, branch=name, user_input=text, assistant_output="x"))
            assert (frame.parent, frame.forked_from) == (tip, tip)
            tip = model.grow(tip, text)
        else:
            self.do(self.session.fork(at, branch=name))
        model.branches[name] = tip
        model.goto(tip, name)

    @rule()
    @precondition(lambda self: self.model.head)
    def checkpoint(self) -> None:
        name = self.new_name("point")
        self.do(self.session.checkpoint(name))
        self.model.checkpoints[name] = self.model.head

    @rule(data=st.data(), text=TEXTS)
    @precondition(lambda self: self.model.branches)
    def push_on_another_branch(self, data, text: str) -> None:
        model = self.model
        branch = data.draw(st.sampled_from(sorted(model.branches)))
        self.do(self.session.on(branch).push(text, "x"))
        model.move_branch(branch, model.grow(model.branches[branch], text))

    @rule(data=st.data(), n=st.integers(1, 3))
    @precondition(lambda self: self.model.branches)
    def pop_on_another_branch(self, data, n: int) -> None:
        model = self.model
        branch = data.draw(st.sampled_from(sorted(model.branches)))
        tip = model.branches[branch]
        popped = self.do(self.session.on(branch).pop(n))
        assert [frame.user_input for frame in popped] == list(reversed(model.path(tip)))[:n]
        model.move_branch(branch, model.below(tip, n))

    @rule(data=st.data())
    @precondition(lambda self: {*self.model.branches, *self.model.checkpoints})
    def rename(self, data) -> None:
        model = self.model
        name = data.draw(st.sampled_from(sorted([*model.branches, *model.checkpoints])))
        new = self.new_name("renamed")
        session = self.session
        self.do((session.rename_branch if name in model.branches else session.rename_checkpoint)(name, new))
        model.rename(name, new)

    @rule(data=st.data())
    @precondition(lambda self: {*self.model.branches, *self.model.checkpoints} - {self.model.attached})
    def delete(self, data) -> None:
        model = self.model
        name = data.draw(st.sampled_from(sorted({*model.branches, *model.checkpoints} - {model.attached})))
        if name in model.branches:
            self.do(self.session.delete_branch(name))
            del model.branches[name]
        else:
            self.do(self.session.delete_checkpoint(name))
            del model.checkpoints[name]

    # --- frames by id, and stacks ---

    @rule(data=st.data())
    @precondition(lambda self: self.model.newest)
    def get(self, data) -> None:
        frame = data.draw(st.integers(1, self.model.newest))
        path = self.model.paths.get(frame)
        if path is None:
            with pytest.raises(FrameUnknown):
                self.do(self.session.get(frame))
        else:
            assert self.do(self.session.get(frame)).user_input == path[-1]

    @rule(loaded=st.booleans())
    def take_the_stack(self, loaded: bool) -> None:
        stack = self.do(self.session.stack())
        self.taken.append((self.do(stack.load()) if loaded else stack, self.model.path(self.model.head)))

    @rule(data=st.data())
    @precondition(lambda self: self.taken)
    def look_at_a_taken_stack(self, data) -> None:
        stack, path = data.draw(st.sampled_from(self.taken))
        assert len(stack) == len(path)
        if path:
            place = data.draw(st.integers(-len(path), len(path) - 1))
            assert stack[place].user_input == path[place]

    @rule()
    def prune(self) -> None:
        dropped = self.model.dropped()
        assert self.do(self.session.prune()).frames == len(dropped)

    # --- other sessions ---

    @rule(data=st.data(), whole=st.booleans())
    @precondition(lambda self: len(self.models) < 4)
    def fork_into_another_session(self, data, whole: bool) -> None:
        at = None if whole else data.draw(st.sampled_from([0, *sorted(self.model.paths)]))
        new_id = self.new_name("session")
        self.models[new_id] = self.model.copied(at)
        self.session, self.id = self.do(self.service.fork(self.id, new_id, at)), new_id

    @rule(data=st.data())
    @precondition(lambda self: len(self.models) > 1)
    def go_to_another_session(self, data) -> None:
        self.use(data.draw(st.sampled_from(sorted(set(self.models) - {self.id}))))

    # --- what happens to a session ---

    @rule()
    def crash(self) -> None:
        with pytest.raises(SessionCrashed):
            self.do(self.session.send(Poison("x")))
        self.do(asyncio.sleep(RESTART_WINDOW_S))

    @rule()
    def rest(self) -> None:
        """It is unloaded because others are used; its handle stays."""
        ref = self.session.ref
        while ref.alive:
            passer_by = self.do(self.service.session(self.new_name("passer-by"), create=True))
            self.do(passer_by.flush(self.level("written")))

    @rule()
    def come_back_with_every_field(self) -> None:
        self.do(self.session.head())
        before = picture(self.session._cell.state)
        self.rest()
        self.do(self.session.head())
        assert picture(self.session._cell.state) == before

    @rule(damaged=st.booleans())
    def reopen(self, damaged: bool) -> None:
        self.look_at_all_taken_stacks()
        self.do(self.service.close())
        if damaged and not self.damaged:
            self.damage_the_newest_snapshots()
            self.damaged = True  # once: what prune has dropped cannot do without the other one
        self.open()
        self.use(self.id)

    def damage_the_newest_snapshots(self) -> None:
        newest = {path.name.rsplit("-", 1)[0]: path for path in sorted(self.root.rglob("snapshots/*/*"), key=seq_of)}
        for path in newest.values():
            path.write_bytes(path.read_bytes()[:-3])

    @rule()
    def die(self) -> None:
        """The process is killed when everything is written: what goes on is the directory as it is at that moment."""
        for session_id in self.models:
            self.do(self.do(self.service.session(session_id)).flush("written"))
        dead, self.root = self.root, next(self.roots)
        self.do(copy_living(dead, self.root))
        self.do(self.service.close())
        self.open()
        self.use(self.id)

    # --- what must hold ---

    @invariant()
    def the_session_in_use_is_as_it_was_made(self) -> None:
        if hasattr(self, "service"):
            self.do(compare(self.session, self.model))

    def look_at_all_taken_stacks(self) -> None:
        for stack, path in self.taken:
            assert tuple(frame.user_input for frame in stack) == path

    def compare_all(self) -> None:
        self.look_at_all_taken_stacks()
        for session_id, model in self.models.items():
            self.do(compare(self.do(self.service.session(session_id)), model))


async def compare(session: Session, model: Model) -> None:
    """Every name and every branch is where the model has it, and shows what the model shows."""
    assert await session.branches() == model.branches
    assert await session.checkpoints() == model.checkpoints
    assert await session.head() == model.head
    assert await session.branch() == model.attached
    assert tuple(frame.user_input for frame in await session.stack()) == model.path(model.head)
    for branch, tip in model.branches.items():
        stack = await session.on(branch).stack()
        assert tuple(frame.user_input for frame in stack) == model.path(tip)


class MemorySessionMachine(SessionMachine):
    """The same on a store in memory, which outlives its service; its snapshots are of another version at times."""

    def level(self, wanted: str) -> str:
        return "async"

    def new_store(self) -> Store:
        if not hasattr(self, "store"):
            self.store = MemoryStore()
        return self.store

    def die(self) -> None:
        """The memory dies with the process."""

    def damage_the_newest_snapshots(self) -> None:
        for kept in self.store._sessions.values():
            if len(kept._snapshots) > 1:
                kept._snapshots[-1] = (kept._snapshots[-1][0], b'{"version":9}')


def seq_of(path: Path) -> int:
    """The record that the snapshot in a file follows."""
    return json.loads(path.read_bytes().splitlines()[0])["after"]["seq"]


TestSessionMachine = SessionMachine.TestCase
TestMemorySessionMachine = MemorySessionMachine.TestCase
TestSessionMachine.settings = TestMemorySessionMachine.settings = settings(
    max_examples=20, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
