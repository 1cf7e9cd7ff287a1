"""Files of a store are changed at random, doubled, swapped, lost: a session is refused, or holds what it held.

The store has everything in it (see `grown`). Those who read a journal, its frames or a snapshot judge each edit of one.
After one of so many, and after each edit of any file, sessions are loaded with snapshots or without, and every frame is
read by the archive. Less than all is right only at the end of a damaged log, where no sound line shows that more was
synced.
"""

from __future__ import annotations

from random import Random

import pytest

from session_actor.persistence import FileStore, PersistenceError, StoreVersionTooNew
from session_actor.persistence.errors import LineDamaged
from session_actor.persistence.format.frame_index import frames_of
from session_actor.persistence.format.record import decode_records
from session_actor.persistence.journals.journal import read_journal
from session_actor.persistence.snapshots.snapshot import Slot, read_slot

from ..scale import Faults
from ..simulation.disk import SimDisk
from ..simulation.life import ROOT
from ..simulation.loop import simulated
from .grown import (
    REFUSED,
    SESSIONS,
    SIZES,
    Grown,
    Loaded,
    grown,
    judged,
    least,
    loaded,
    opened,
    owner,
    part_of,
    shown_by,
    wrong_frames,
)
from .specimen import Files, image_of

EDITS = 100_000
OF_JOURNALS = 0.9
PARTS = 10
WHOLE_EVERY = 8
OTHERS_EVERY = 64


@pytest.mark.parametrize("part", range(PARTS))
def test_no_edit_of_a_journal_or_snapshot_changes_what_its_session_holds(faults: Faults, part):
    """In a living store, which reads what is there now."""
    with simulated(part) as (loop, _):
        made = grown(loop, settled=part % 2 == 0)
        loop.run(edit_while_it_lives(made, faults, faults.count(int(EDITS * OF_JOURNALS) // PARTS)))


async def edit_while_it_lives(made: Grown, faults: Faults, count: int) -> None:
    image = image_of(made.files)
    store = FileStore(ROOT, disk=SimDisk(image), **SIZES)
    await store.open()
    promised = {session: truth.last for session, truth in made.truths.items()}
    kinds = {path: File(store, made, path) for path in made.files if "/journals/" in path or "/snapshots/" in path}
    paths = list(kinds)
    for number in range(count):
        path = faults.rng.choice(paths)
        edited, name = edit(made.files[path], faults.rng)
        image.file(path).data[:] = edited
        file, session, told = kinds[path], owner(path), f"{name} of {path}"
        whole = file.is_snapshot or edited.startswith(made.files[path])
        assert await file.problems(store, whole=whole) == [], told
        if number % WHOLE_EVERY == 0:
            snapshots = number % (2 * WHOLE_EVERY) == 0
            truths = made.truths if number % OTHERS_EVERY == 0 else {session: made.truths[session]}
            assert await judged(store, truths, promised, [snapshots]) == [], told
            if whole or not snapshots:
                found = await loaded(store, session, snapshots=snapshots)
                assert isinstance(found, Loaded if whole else PersistenceError), told
        image.file(path).data[:] = made.files[path]
    store._engine.let_go()


class File:
    """A journal file or a snapshot of an open store, as each of its own readers gives it."""

    def __init__(self, store: FileStore, made: Grown, path: str) -> None:
        self.disk = store._engine._disk
        self.path = path
        self.session = owner(path)
        self.truth = made.truths[self.session]
        self.is_snapshot = "/snapshots/" in path
        if not self.is_snapshot:
            self.part = part_of(store, path)
            self.lines = self.read()
            records = decode_records(b"".join(self.lines))
            self.frames = [frame for record in records for frame in frames_of(record.kind, record.data)]

    def read(self) -> list[bytes]:
        return read_journal(self.disk, self.path, self.part, (self.session, self.truth.birth))

    async def problems(self, store: FileStore, *, whole: bool) -> list[str]:
        """What is wrong with what they give, or with their giving anything. `whole`: nothing of it was changed."""
        if self.is_snapshot:
            return self.snapshot_problems()
        try:
            problems = [] if self.read() == self.lines and whole else ["it is read"]
        except REFUSED:
            problems = ["it is refused"] if whole else []
        last = self.part.last_seq if whole else 0
        return problems + await wrong_frames(store, self.session, self.truth, last, self.frames)

    def snapshot_problems(self) -> list[str]:
        try:
            found = read_slot(self.disk, Slot("", self.path, 0), self.session, self.truth.birth)
        except (LineDamaged, StoreVersionTooNew):
            return []
        return [f"the snapshot after {found.seq} is read"]


@pytest.mark.parametrize("part", range(PARTS))
def test_no_edit_of_any_file_makes_a_session_hold_what_it_never_held(faults: Faults, part):
    with simulated(part) as (loop, _):
        made = grown(loop, settled=part % 2 == 0)
        shown = shown_by(made)
        for number in range(faults.count(round(EDITS * (1 - OF_JOURNALS)) // PARTS)):
            files, name, concerned = damaged(made, faults.rng)
            some = {session: made.truths[session] for session in concerned}
            quick = "catalog" not in name
            kept = least(made, shown, files)
            found = opened(loop, files, some, kept, [number % 2 == 0], quick=quick)
            assert isinstance(found, PersistenceError) or found == [], name


def damaged(made: Grown, rng: Random) -> tuple[Files, str, set[str]]:
    """One or two files are changed; returns the sessions concerned, too: of the log and the like, one or two of all."""
    files, names, concerned = dict(made.files), [], set[str]()
    for _ in range(rng.choice((1, 1, 1, 2))):
        by_part: dict[str, list[str]] = {}
        for path in sorted(files):
            by_part.setdefault(folder_of(path), []).append(path)
        part = rng.choice((*sorted(by_part), "log", "log", "journals", "snapshots"))
        path = rng.choice(by_part.get(part) or sorted(files))
        kind = rng.choice(("edit", "edit", "edit", "edit", "lose", "swap", "double"))
        other = rng.choice(by_part[folder_of(path)])
        data = files[path]
        if kind == "edit" and data:
            files[path], kind = edit(data, rng)
        elif kind == "lose":
            del files[path]
        elif kind == "swap":
            files[path], files[other] = files[other], data
        else:
            files[doubled(path, files, rng)] = data
        names.append(f"{kind} {path} {other}")
        owned = folder_of(path) in {"journals", "snapshots"}
        concerned |= (
            {owner(path), owner(other)}
            if owned and kind == "swap"
            else {owner(path) if owned else rng.choice(SESSIONS)}
        )
    return files, "; ".join(names), concerned


def folder_of(path: str) -> str:
    return path.split("/")[3]


def doubled(path: str, files: Files, rng: Random) -> str:
    """A name for a copy: of a segment, that of another."""
    folder, _, name = path.rpartition("/")
    if folder_of(path) == "log":
        return f"{folder}/{rng.randint(1, len(files) + 20):08d}.ndjson"
    stem, dash, _ = name.rpartition("-")
    slot = rng.choice("ab") if folder_of(path) == "snapshots" else str(rng.randint(1, 9))
    return f"{folder}/{stem}{dash}{slot}.ndjson"


def edit(data: bytes, rng: Random) -> tuple[bytes, str]:  # noqa: PLR0912 - a branch a kind
    """Change a few bytes, or a piece, or lines; returns what became of it, which is something else, and its name."""
    kind = rng.choice(("bytes", "bytes", "near", "near", "zeros", "garbage", "cut", "insert", "end", "copied",
                       "line lost", "line doubled", "lines swapped"))  # fmt: skip
    used = len(data.rstrip(b"\0")) or len(data)
    content, at = bytearray(data), rng.randrange(used or 1)
    length = min(rng.choice((1, 2, 4, 16, 64, 512)), len(data) - at)
    lines = data.splitlines(keepends=True)
    if kind in {"bytes", "near"}:
        for _ in range(rng.randint(2, 8)):
            place = rng.randrange(used or 1) if kind == "bytes" else min(at + rng.randrange(32), used - 1)
            content[place] = rng.choice((content[place] ^ 1 << rng.randrange(8), rng.randrange(256)))
    elif kind == "zeros":
        content[at : at + length] = bytes(length)
    elif kind == "garbage":
        content[at : at + length] = rng.randbytes(length)
    elif kind == "cut":
        del content[at : at + length]
    elif kind == "insert":
        content[at:at] = rng.randbytes(length)
    elif kind == "end":
        del content[at:]
    elif kind == "copied":
        source = rng.randrange(used or 1)
        content[at : at + length] = data[source : source + length]
    elif len(lines) > 1:
        one, two = rng.sample(range(len(lines)), 2)
        if kind == "line lost":
            del lines[one]
        elif kind == "line doubled":
            lines.insert(two, lines[one])
        else:
            lines[one], lines[two] = lines[two], lines[one]
        content = bytearray(b"".join(lines))
    if content == data:
        return edit(data, rng)
    return bytes(content), f"{kind} at {at}, {length} bytes"
