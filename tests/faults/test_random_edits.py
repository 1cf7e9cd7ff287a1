"""Files of a store are changed at random, doubled, swapped, lost: a session is refused, or holds what it held.

The store has everything in it (see `grown`). Sessions are loaded with snapshots and without, and every frame is read by
the archive. Less than all is right only at the end of a damaged log, where no sound line shows that more was synced.
"""

from __future__ import annotations

from random import Random

import pytest

from session_actor.persistence import FileStore, PersistenceError
from session_actor.persistence.names import journal_path

from ..simulation.disk import SimDisk
from ..simulation.life import ROOT
from ..simulation.loop import simulated
from .conftest import Faults
from .grown import SESSIONS, SIZES, Grown, Loaded, grown, judged, least, loaded, opened, shown_by
from .specimen import Files, image_of

EDITS = 100_000
OF_JOURNALS = 0.7
PARTS = 10
OTHERS_EVERY = 16


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
    paths = [path for path in made.files if "/journals/" in path or "/snapshots/" in path]
    for number in range(count):
        path = faults.rng.choice(paths)
        edited, name = edit(made.files[path], faults.rng)
        image.file(path).data[:] = edited
        session, snapshots = owner(path), number % 2 == 0
        truths = made.truths if number % OTHERS_EVERY == 0 else {session: made.truths[session]}
        assert await judged(store, truths, promised, [snapshots]) == [], f"{name} of {path}"
        whole = "/snapshots/" in path or edited.startswith(made.files[path])
        if whole or not snapshots:
            found = await loaded(store, session, snapshots=snapshots)
            assert isinstance(found, Loaded if whole else PersistenceError), f"{name} of {path}"
        image.file(path).data[:] = made.files[path]
    store._engine.let_go()


def owner(path: str) -> str:
    """Whose journal or snapshot a file is."""
    name = path.rpartition("/")[2].rpartition("-")[0]
    return next(session for session in SESSIONS if journal_path(session, 1).endswith(f"/{name}-1.ndjson"))


@pytest.mark.parametrize("part", range(PARTS))
def test_no_edit_of_any_file_makes_a_session_hold_what_it_never_held(faults: Faults, part):
    with simulated(part) as (loop, _):
        made = grown(loop, settled=part % 2 == 0)
        shown = shown_by(made)
        for number in range(faults.count(round(EDITS * (1 - OF_JOURNALS)) // PARTS)):
            files, name = damaged(made, faults.rng)
            some = {session: made.truths[session] for session in faults.rng.sample(SESSIONS, 2)}
            quick = "catalog" not in name
            kept = least(made, shown, files)
            found = opened(loop, files, some, kept, [number % 2 == 0], quick=quick)
            assert isinstance(found, PersistenceError) or found == [], name


def damaged(made: Grown, rng: Random) -> tuple[Files, str]:
    """One or two files are changed."""
    files, names = dict(made.files), []
    for _ in range(rng.choice((1, 1, 1, 2))):
        parts = sorted({part_of(path) for path in files})
        part = rng.choice((*parts, "log", "log", "journals", "snapshots"))
        path = rng.choice(sorted(path for path in files if part_of(path) == part) or sorted(files))
        kind = rng.choice(("edit", "edit", "edit", "edit", "lose", "swap", "double"))
        other = rng.choice([other for other in sorted(files) if part_of(other) == part_of(path)])
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
    return files, "; ".join(names)


def part_of(path: str) -> str:
    return path.split("/")[3]


def doubled(path: str, files: Files, rng: Random) -> str:
    """A name for a copy: of a segment, that of another."""
    folder, _, name = path.rpartition("/")
    if part_of(path) == "log":
        return f"{folder}/{rng.randint(1, len(files) + 20):08d}.ndjson"
    stem, dash, _ = name.rpartition("-")
    slot = rng.choice("ab") if part_of(path) == "snapshots" else str(rng.randint(1, 9))
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
