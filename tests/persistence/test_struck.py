"""Whatever is raised, between any two lines of the writer and its helpers, no record is missing before another."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, NotDurable, PersistenceError
from session_actor.persistence.log.segment import Segment
from session_actor.persistence.log.session_log import SessionLog
from session_actor.persistence.writing.batch import Backlog, Batch

from .conformance import opened, said, say
from .conformance_tools import Said
from .disks import TroubledDisk

STRUCK = ("writer", "batch_writer", "batch", "syncer", "segments", "log", "segment", "waiters", "cutter")
SESSIONS = ("one", "two", "three")
SHARE = 1 if os.environ.get("SESSION_ACTOR_ALL_LINES") else 24
"""Of the lines every so many is struck, beginning at another one for each kind of error."""


class Tracer:
    """Notes the lines of chosen files that run, or raises `error` before the first one that is `at`."""

    def __init__(self, at: tuple[str, int] | None = None, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.at = at
        self.error = error
        self.lines: dict[tuple[str, int], None] = {}
        self.struck = False

    def __call__(self, frame, event, _):
        path = frame.f_code.co_filename
        name = Path(path).stem
        if name not in STRUCK or "persistence" not in Path(path).parts:
            return None
        if event == "line" and not self.struck:
            line = (name, frame.f_lineno)
            if self.at is None:
                self.lines[line] = None
            elif line == self.at:
                self.struck = True
                raise self.error
        return self


class Talk:
    """Sessions of one store, and what was said in them and acknowledged."""

    def __init__(self, root: Path) -> None:
        self.store = FileStore(root, segment_bytes=6000, cut_at_close=0)
        self.said: dict[str, list[str]] = {session: [] for session in SESSIONS}
        self.acknowledged = dict.fromkeys(SESSIONS, 0)
        self.leases = {}
        self.jobs = []

    async def begin(self) -> None:
        await self.store.open()
        self.leases = {session: await self.store.acquire(session, create=True) for session in SESSIONS}
        self.jobs = [asyncio.ensure_future(job()) for job in self.store.workers().values()]

    def speak(self, session: str) -> None:
        texts = self.said[session]
        texts.append(f"{session} {len(texts)} {'x' * 30}")
        say(self.store, self.leases[session], texts[-1])

    async def flush(self, level) -> None:
        counts = {session: len(texts) for session, texts in self.said.items()}
        await self.store.flush(level)
        self.acknowledged.update(counts)

    async def go_on(self) -> None:
        async with asyncio.timeout(0.5):
            for level in ("written", "synced", "written"):
                for session in SESSIONS:
                    self.speak(session)
                    self.store.reach("written")
                await self.flush(level)
            for number in range(60):
                self.speak(SESSIONS[number % 3])
            await self.flush("written")
            await self.flush("synced")

    async def end(self) -> None:
        with contextlib.suppress(PersistenceError, TimeoutError):
            async with asyncio.timeout(0.25):
                for session in SESSIONS:
                    self.speak(session)
                await self.store.flush("written")
        for job in self.jobs:
            job.cancel()
        await asyncio.gather(*self.jobs, return_exceptions=True)
        with contextlib.suppress(PersistenceError, TimeoutError):
            async with asyncio.timeout(0.25):
                await self.store.close()


def run(loop: asyncio.AbstractEventLoop, talk: Talk, tracer: Tracer) -> None:
    """Talk until it is struck; then do as `asyncio.run` does: let what runs end, in the same loop."""
    loop.run_until_complete(talk.begin())
    sys.settrace(tracer)
    try:
        with contextlib.suppress(KeyboardInterrupt, RuntimeError, PersistenceError, MemoryError, TimeoutError):
            loop.run_until_complete(talk.go_on())
    finally:
        sys.settrace(None)
    loop.call_soon(loop.stop)
    loop.run_forever()  # what talked may have ended in the turn that was struck, which would stop the loop now
    loop.run_until_complete(talk.end())


async def check(root: Path, talk: Talk) -> None:
    async with opened(FileStore(root), working=False) as store:
        for session in SESSIONS:
            if not talk.said[session]:
                continue
            found = await said(store, await store.acquire(session, create=not talk.acknowledged[session]))
            assert found == talk.said[session][: len(found)]
            assert len(found) >= talk.acknowledged[session]


def close_files(root: Path) -> None:
    """What was struck between opening a file and taking note of it leaves that open, until the process ends."""
    for descriptor in list(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):
            if descriptor.readlink().is_relative_to(root):
                os.close(int(descriptor.name))


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    yield loop
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError])
def test_whatever_is_raised_between_two_lines_nothing_is_missing_in_the_middle(tmp_path, loop, error):
    found = Tracer()
    run(loop, Talk(tmp_path / "all"), found)
    lines = list(found.lines)
    assert {name for name, _ in lines} >= {"writer", "batch_writer", "batch", "syncer", "log"}
    for number, line in enumerate(lines[len(error.__name__) % SHARE :: SHARE]):
        root, tracer = tmp_path / str(number), Tracer(line, error)
        talk = Talk(root)
        run(loop, talk, tracer)
        close_files(root)
        try:
            loop.run_until_complete(check(root, talk))
        except BaseException as wrong:
            wrong.add_note(f"{error.__name__} before {line[0]}.py:{line[1]}")
            raise


# --- each as it was found ---------------------------------------------------------------------------------------------


class Short(TroubledDisk):
    """A disk in a process whose memory is full: its next `writes` fail."""

    writes = 0

    def reach(self, call, path=""):
        super().reach(call, path)
        if call == "write" and self.writes:
            self.writes -= 1
            raise MemoryError


@pytest.mark.parametrize("writes", [1, 2])
@pytest.mark.parametrize("count", [5, 500])
async def test_a_write_for_which_there_is_no_memory_is_written_again_at_the_same_place(tmp_path, writes, count):
    disk = Short()
    texts = [str(number) for number in range(count)]
    async with opened(FileStore(tmp_path / "store", disk=disk)) as store:
        lease = await store.acquire("one", create=True)
        say(store, lease, "first")
        await store.flush("synced")
        disk.writes = writes
        say(store, lease, *texts)
        for _ in range(writes):
            with contextlib.suppress(NotDurable):
                await store.flush("written")
        await store.flush("synced")
        assert store.health().degraded_since_us is None
    async with opened(FileStore(tmp_path / "store")) as store:
        assert await said(store, await store.acquire("one", create=False)) == ["first", *texts]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_lines_that_could_not_be_made_leave_all_as_it_was(monkeypatch, error):
    log, segment = SessionLog("a", "0" * 16), Segment(1, "", None, None, (b"header\n", "00000000"))
    queue = Backlog(100, 10**6, lambda: None)
    for seq in range(1, 6):
        queue.append((log, seq, 1, "said", Said(str(seq)), 1))
    batch = Batch(segment, 1)
    batch.take(queue, 2, 10**6)
    encode = sys.modules[Batch.__module__].encode_logged
    before = (segment.end, segment.last_sum, log.tail_sum, list(segment.spans[log]), batch.data, batch.last)

    def struck(*arguments):
        if arguments[3] == 5:
            raise error
        return encode(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(sys.modules[Batch.__module__], "encode_logged", struck)
        with pytest.raises(error):
            batch.take(queue, 5, 10**6)
    after = (segment.end, segment.last_sum, log.tail_sum, list(segment.spans[log]), batch.data, batch.last)
    assert (after, len(queue.entries), queue.held_bytes, batch.midway) == (before, 3, 3, False)
    assert batch.take(queue, 5, 10**6) == []
    assert batch.seqs == [1, 2, 3, 4, 5]
