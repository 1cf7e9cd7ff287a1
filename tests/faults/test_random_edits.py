"""Files of a store are changed at random, doubled, swapped, lost: a session is refused, or holds what it once held."""

from __future__ import annotations

from random import Random

import pytest

from session_actor.persistence import FileStore, PersistenceError

from ..persistence.conformance_tools import say
from ..simulation.loop import SimLoop, simulated
from .conftest import Faults
from .specimen import SESSIONS, Files, Living, Specimen, opened, refused, specimen, wrong

EDITS = 100_000
OF_JOURNALS = 0.6
PARTS = 10
SEGMENT_BYTES = 2000


async def sixty_records(store: FileStore) -> list[tuple[str, str | None]]:
    """Journals of several cuts, and behind them a log of several segments; one session was deleted and made again."""
    history: list[tuple[str, str | None]] = []
    leases = {session: await store.acquire(session, create=True) for session in SESSIONS}
    for number in range(60):
        session = SESSIONS[number * 7 % 3]
        if number == 25:
            await store.delete(leases["ben"])
            history.append(("ben", None))
            leases["ben"] = await store.acquire("ben", create=True)
        text = f"{number} " + "é\ud800 x" * (number % 9)
        say(store, leases[session], text)
        history.append((session, text))
        if number % 5 == 4:
            await store.flush("synced")
        if number == 40:
            while await store._engine.cutter.cut():
                pass
    await store.flush("synced")
    return history


@pytest.mark.parametrize("part", range(PARTS))
def test_no_edit_of_a_journal_changes_what_its_session_holds(faults: Faults, part):
    with simulated(part) as (loop, _):
        made = specimen(loop, sixty_records, segment_bytes=SEGMENT_BYTES)
        living = Living(loop, made.files, segment_bytes=SEGMENT_BYTES)
        whole = made.state()
        paths = [path for path in made.files if "/journals/" in path]
        for count in range(faults.count(int(EDITS * OF_JOURNALS) // PARTS)):
            path = faults.rng.choice(paths)
            edited, name = edit(made.files[path], faults.rng)
            living.put(path, edited)
            found = living.found(*SESSIONS) if count % 8 == 0 else living.found(owner(path))
            untouched = edited.startswith(made.files[path])
            assert refused(found) == (set() if untouched else {owner(path)}), name
            assert all(found[session] == whole[session] for session in found.keys() - refused(found)), name
            living.put(path, made.files[path])
        living.close()


def owner(path: str) -> str:
    name = path.rpartition("/")[2]
    return next((session for session in SESSIONS if name.startswith(session)), SESSIONS[2])


@pytest.mark.parametrize("part", range(PARTS))
def test_no_edit_of_any_file_makes_a_session_hold_what_it_never_held(faults: Faults, part):
    with simulated(part) as (loop, _):
        made = specimen(loop, sixty_records, segment_bytes=SEGMENT_BYTES, settled=part % 2 == 0)
        states = made.states()
        for _ in range(faults.count(int(EDITS * (1 - OF_JOURNALS)) // PARTS)):
            files, name = damaged(made, faults.rng)
            check(loop, files, states, name)


def check(loop: SimLoop, files: Files, states: dict[str, set[tuple[str, ...]]], name: str) -> None:
    found = opened(loop, files, segment_bytes=SEGMENT_BYTES, quick="catalog" not in name).found
    assert wrong(found, states) == [], name
    for texts in found.values():
        assert not isinstance(texts, PersistenceError) or str(texts), name


def damaged(made: Specimen, rng: Random) -> tuple[Files, str]:
    """One or two files are changed."""
    files, names = dict(made.files), []
    for _ in range(rng.choice((1, 1, 1, 2))):
        path = rng.choice([path for path in files if rng.random() < 0.5 or "/log/" in path] or sorted(files))
        kind = rng.choice(("edit", "edit", "edit", "edit", "lose", "swap", "double"))
        other = rng.choice([other for other in files if part_of(other) == part_of(path)])
        data = files[path]
        if kind == "edit":
            files[path], kind = edit(data, rng)
        elif kind == "lose":
            del files[path]
        elif kind == "swap":
            files[path], files[other] = files[other], data
        else:
            files[doubled(path, files, rng)] = data
        names.append(f"{kind} {path} {other}")
        if not files:
            break
    return files, "; ".join(names)


def part_of(path: str) -> str:
    return path.split("/")[3]


def doubled(path: str, files: Files, rng: Random) -> str:
    """A name for a copy: of a segment, that of another."""
    folder, _, name = path.rpartition("/")
    if part_of(path) == "log":
        return f"{folder}/{rng.randint(1, len(files) + 20):08d}.ndjson"
    return f"{folder}/{name.replace('-1.ndjson', '-2.ndjson')}"


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
