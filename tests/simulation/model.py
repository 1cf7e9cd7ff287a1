"""The plain model of a store: all that was appended, in order, and how far it was acknowledged."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import msgspec

from session_actor.persistence import FileStore, Lease
from session_actor.persistence.format.record import NO_SUM, parse_time
from session_actor.persistence.format.values import decode_typed

from ..persistence.conformance_tools import AT_US, Said

Texts = tuple[str | None, ...]
"""What a session holds; None for a record that was pruned."""
State = dict[str, Texts]
"""The texts of every session that has any."""

time_of = lru_cache(parse_time)
"""The same few records are read from every state of a disk."""


class Entry(NamedTuple):
    """One record, or with `text` None the deletion of a session."""

    session: str
    text: str | None


class Model:
    """What a store was given since it was made; it holds a beginning of that, at least up to what it acknowledged."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.synced = 0
        """So many entries survive a loss of power."""
        self.written = 0
        """So many entries survive the death of the process."""
        self.pruned: set[str] = set()
        """Sessions whose old records may be missing."""
        self.past: list[list[Entry]] = []
        """What the store was given up to each time that it was opened and had lost some of it."""

    def copy(self) -> Model:
        twin = Model()
        twin.entries, twin.synced, twin.written = list(self.entries), self.synced, self.written
        twin.pruned, twin.past = set(self.pruned), list(self.past)
        return twin

    def state(self, count: int | None = None) -> State:
        found: State = {}
        for entry in self.entries[:count]:
            add(found, entry)
        return found

    def states(self, era: int | None = None) -> list[State]:
        """What is held after none of the entries, after the first, and so on. `era`: index in `past`; None: now."""
        found: list[State] = [{}]
        for entry in self.entries if era is None or era == len(self.past) else self.past[era]:
            found.append(dict(found[-1]))
            add(found[-1], entry)
        return found

    def kept(self, found: State, least: int, most: int, states: list[State] | None = None) -> int | None:
        """How many of the first `most` entries a store holds whose state is `found`; None: not even `least`.

        `states`: those of the model, where more than one question is asked.
        """
        states = self.states() if states is None else states
        size = sum(map(len, found.values()))
        for count in range(most, least - 1, -1):
            state = states[count]
            if (
                sum(map(len, state.values())) == size
                and state.keys() == found.keys()
                and all(self.fits(session, texts, found[session]) for session, texts in state.items())
            ):
                return count
        return None

    def fits(self, session: str, expected: Texts, found: Texts) -> bool:
        """Whether a session holds what it should, but for what was pruned."""
        lost = found.count(None)
        return len(found) == len(expected) and found[lost:] == expected[lost:] and (not lost or session in self.pruned)

    def reopened(self, count: int) -> None:
        """The store that goes on holds `count` entries, and says that all of them are synced."""
        if count < len(self.entries):
            self.past.append(list(self.entries))
        del self.entries[count:]
        self.synced = self.written = count


def add(state: State, entry: Entry) -> None:
    if entry.text is None:
        state.pop(entry.session, None)
    else:
        state[entry.session] = (*state.get(entry.session, ()), entry.text)


def shown(state: State) -> str:
    """The numbers of the texts."""
    return repr(
        {session: " ".join((text or "?").partition(" ")[0] for text in texts) for session, texts in state.items()}
    )


async def state_of(store: FileStore, *, snapshots: bool = True) -> State:
    """All that an open store holds, as it lists and loads it. `snapshots`: whether there are any to be compared."""
    found: State = {}
    unsure = store.health().appended_position - store.synced_position  # what a full disk had no room to make durable
    async for info in store.sessions():
        lease = await store.acquire(info.id, create=False)
        found[info.id] = await texts_of(store, lease, snapshots=snapshots)
        assert found[info.id], f"{info.id} is listed and holds nothing"
        assert lease.synced_seq <= lease.appended_seq == info.seq <= lease.synced_seq + unsure
        store.release(lease)
    return found


async def texts_of(store: FileStore, lease: Lease, *, snapshots: bool = True) -> Texts:
    """All texts of a session. A snapshot is of a record that is there, and what is behind it is the end of them all.

    What was pruned lies before the snapshot.
    """
    records = (await store.load(lease, snapshots=False)).records
    loaded = await store.load(lease) if snapshots else None
    snapshot = loaded.snapshot if loaded else None
    lost = records[0].seq - 1 if records else 0
    sums = [records[0].prev if lost else NO_SUM, *(record.sum for record in records)]
    assert [record.seq for record in records] == list(range(lost + 1, lost + len(records) + 1))
    assert [time_of(record.at) for record in records] == [AT_US + record.seq for record in records]
    assert [record.prev for record in records] == sums[: len(records)]
    assert {record.kind for record in records} <= {"said"}
    if loaded and snapshot:
        assert msgspec.json.decode(snapshot.data) == {"texts": snapshot.seq}
        assert snapshot.sum == sums[snapshot.seq - lost]
        assert [record.sum for record in loaded.records] == sums[snapshot.seq - lost + 1 :]
    assert not lost or (snapshot is not None and snapshot.seq >= lost)
    return (None,) * lost + tuple(text_in(bytes(record.data)) for record in records)


@lru_cache(1000)
def text_in(data: bytes) -> str:
    """The text in the data of a record."""
    return decode_typed(data, Said).text
