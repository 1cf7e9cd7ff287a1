"""Whatever catalog is put into a store, nothing that is done then destroys a sound record that is nowhere else.

A store lives at random: sessions are pushed to, deleted and made again, salvaged, cut. Then it gets a catalog that it
had before, and sessions go on, journals are damaged, it is repaired and salvaged: after each of these, every sound
record that was in a journal or the log is in some file, those under aside/ included.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from pathlib import Path

from session_actor.persistence import FileStore, PersistenceError
from session_actor.persistence.checking.verify import check
from session_actor.persistence.format.record import verify
from session_actor.persistence.repair.repair import repair

from ..persistence.conformance_tools import AT_US, opened
from ..persistence.stores import SMALL, flip, journals
from ..scale import Faults

LIVES = 20
PLACES = 4
SESSIONS = "abc"
Key = tuple[int, str]


def say(store: FileStore, lease, rng: random.Random) -> None:
    """Some records that no other birth has."""
    for _ in range(rng.randrange(1, 15)):
        seq = lease.appended_seq + 1
        data = b'{"id":%d,"user_input":"%d"}' % (seq, rng.getrandbits(rng.choice([40, 300])))
        store.append(lease, seq, AT_US + seq, "pushed", data, 200)


class Past:
    """A store that lives at random, and the catalogs that it had."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.rng = random.Random(seed)
        self.births: dict[str, str] = {}
        self.catalogs: list[bytes] = []

    async def live(self, days: int) -> None:
        for _ in range(days):
            options = {**SMALL, "journal_bytes": self.rng.choice([900, 2_000, 1 << 20])}
            async with opened(FileStore(self.root, **options), working=False) as store:
                for session in SESSIONS:
                    await self._live_one(store, session)
                    self._keep_catalog()
                if self.rng.random() < 0.7:
                    store._engine.log.seal()
                    while await store._engine.cutter.cut():
                        self._keep_catalog()
            self._keep_catalog()

    async def _live_one(self, store: FileStore, session: str) -> None:
        what = self.rng.random()
        if what < 0.2 and session in self.births:
            await store.delete(await store.acquire(session, create=False))
            del self.births[session]
        elif what < 0.3 and session in self.births:
            lease = await store.acquire(session, create=False)
            await store.salvage(lease, "readable")
            self.births[session] = lease.birth
            store.release(lease)
        if self.rng.random() < 0.8:
            lease = await store.acquire(session, create=True)
            await store.load(lease, snapshots=False)
            say(store, lease, self.rng)
            await store.flush("synced")
            self.births[session] = lease.birth
            store.release(lease)

    def _keep_catalog(self) -> None:
        self.catalogs.append((self.root / "catalog.db").read_bytes())


def records(root: Path, births: dict[str, str] | None = None) -> set[Key]:
    """Number and sum of each sound record in any file; `births`: of these alone, in journals and log."""
    found: set[Key] = set()
    for path in root.rglob("*.ndjson*"):
        if births is not None and path.parts[len(root.parts)] == "aside":
            continue
        owner = (None, None)
        for line in path.read_bytes().splitlines(keepends=True):
            if not verify(line):
                continue
            content = json.loads(line)
            if "session" in content:
                owner = content["session"], content["birth"]
            if "r" in content:
                owner, content = (content["s"], content["birth"]), content["r"]
            if content.get("kind") in {None, "store.gap", "store.deleted"}:
                continue
            if births is None or births.get(owner[0]) == owner[1]:
                found.add((content["seq"], content["sum"]))
    return found


async def cut(root: Path, **options) -> None:
    async with opened(FileStore(root, **SMALL, **options), working=False) as store:
        store._engine.log.seal()
        while await store._engine.cutter.cut():
            pass


async def go_on(root: Path, rng: random.Random, *, is_loaded: bool) -> None:
    """Sessions go on, new ones in place of those that the catalog does not know; some without having been loaded."""
    async with opened(FileStore(root, **SMALL), working=False) as store:
        for session in SESSIONS:
            with contextlib.suppress(PersistenceError):
                lease = await store.acquire(session, create=True)
                if is_loaded:
                    await store.load(lease, snapshots=False)
                say(store, lease, rng)
                await store.flush("synced")
    for _ in range(2):
        with contextlib.suppress(PersistenceError):
            await cut(root)


async def do(root: Path, what: str, rng: random.Random) -> None:
    match what:
        case "go on" | "go on without loading":
            await go_on(root, rng, is_loaded=what == "go on")
        case "open and salvage":
            with contextlib.suppress(PersistenceError):
                async with opened(FileStore(root, **SMALL, recovery="readable"), working=False) as store:
                    for session in SESSIONS:
                        with contextlib.suppress(PersistenceError):
                            await store.load(await store.acquire(session, create=False), snapshots=False)
        case "cut":
            with contextlib.suppress(PersistenceError):
                await cut(root)
        case "damage":
            for path in rng.sample(journals(root), min(1, len(journals(root)))):
                flip(path, rng.randrange(path.stat().st_size))
        case "repair":
            repair(root, write=True)
        case _:
            repair(root, write=True, salvage="prefix" if what == "salvage prefix" else "readable")


DEEDS = [
    "damage",
    "go on",
    "go on without loading",
    "open and salvage",
    "cut",
    "repair",
    "salvage prefix",
    "salvage readable",
]


async def test_an_older_catalog_makes_nothing_destroy_a_record_that_is_nowhere_else(faults: Faults, tmp_path):
    for _ in range(faults.count(LIVES)):
        seed = faults.number()
        past = Past(tmp_path / f"{seed}", seed)
        await past.live(past.rng.randrange(2, 5))
        for number in range(PLACES):
            root = shutil.copytree(past.root, tmp_path / f"{seed}-{number}")
            (root / "catalog.db").write_bytes(past.rng.choice(past.catalogs))
            deeds = [*past.rng.choices(DEEDS, k=3), "salvage readable"]
            await go_through(root, deeds, past, f"--faults-seed={faults.seed}: {seed}, {number}")
            assert not check(root).damaged, (faults.seed, seed, number)
            shutil.rmtree(root)


async def go_through(root: Path, deeds: list[str], past: Past, how: str) -> None:
    hurt: set[Key] = set()
    """What the log may still have of a damaged journal, of whatever birth since a salvage, and does not keep."""
    for what in deeds:
        there, in_journals = records(root, past.births), records(root / "journals")
        await do(root, what, past.rng)
        if what == "damage":
            hurt |= in_journals - records(root / "journals")
        assert there - hurt <= records(root), f"{how}: {what} of {deeds}"
