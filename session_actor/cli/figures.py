"""What `session-actor stats DIR [ID]` does: figures of a store, or of one session. No text is shown."""

from __future__ import annotations

import heapq
import os
from collections import Counter
from typing import TYPE_CHECKING, Final

import click

from session_actor.state.history import live_runs
from session_actor.state.runs import count

from .asking import ended_by, moment_at, opened, replayed
from .codes import counted, say
from .harmless import one_line, shown_id
from .lines import StatsSession, StatsStore
from .listing import listed, own_sessions
from .output import fullness, iso, size, styled, tell, weighed
from .telling import budget_part, usage_part

if TYPE_CHECKING:
    from session_actor.persistence import SessionInfo
    from session_actor.replay import Moment

_LARGEST: Final = 5


def run(directory: str, session: str | None, *, profiles: str | None, as_json: bool) -> int:
    """Run the command; see there."""
    if session is None and profiles is not None:
        raise click.UsageError("--profiles needs an ID", click.get_current_context())
    if session is not None:
        return _of_session(directory, session, profiles, as_json=as_json)
    found = _of_store(directory)
    if as_json:
        tell(found)
    else:
        _say_store(found)
    return 0


def _of_store(directory: str) -> StatsStore:
    sessions = records = journal_bytes = 0
    oldest: SessionInfo | None = None
    newest: SessionInfo | None = None
    largest: list[tuple[int, int, SessionInfo]] = []
    with opened(directory) as reader:
        root = reader.root
        for info in own_sessions(reader):
            sessions += 1
            records += info.seq
            journal_bytes += info.size_bytes
            oldest = info if oldest is None or info.created_at_us < oldest.created_at_us else oldest
            newest = info if newest is None or info.created_at_us > newest.created_at_us else newest
            heapq.heappush(largest, (info.seq, -sessions, info))
            if len(largest) > _LARGEST:
                heapq.heappop(largest)
    return StatsStore(
        path=root,
        sessions=sessions,
        records=records,
        journal_bytes=journal_bytes,
        files=_weighed(root),
        oldest=None if oldest is None else iso(oldest.created_at_us),
        newest=None if newest is None else iso(newest.created_at_us),
        largest=tuple(listed(info) for *_, info in sorted(largest, reverse=True)),
    )


def _weighed(root: str) -> dict[str, int]:
    """Bytes below a directory, by the first name: the folders of a store, and its files."""
    found: Counter[str] = Counter()
    for folder, _, names in os.walk(root):
        for name in names:
            path = f"{folder}/{name}"
            kind = path[len(root) + 1 :].split("/", 1)[0]
            try:
                found[kind] += os.lstat(path).st_size
            except FileNotFoundError:
                continue  # a store in use moves its files
    return dict(sorted(found.items()))


def _say_store(found: StatsStore) -> None:
    say(styled(one_line(found.path), "bold"))
    say(f"{counted(found.sessions, 'session')}, {counted(found.records, 'record')}")
    if found.oldest and found.newest:
        say(f"made from {found.oldest} to {found.newest}")
    for kind, count_bytes in found.files.items():
        say(f"  {one_line(kind):<12} {size(count_bytes):>10}")
    if found.largest:
        say("most records:")
    for info in found.largest:
        say(f"  {info.records:>9,}  {shown_id(info.id)}")


def _of_session(directory: str, session: str, profiles: str | None, *, as_json: bool) -> int:
    kinds: Counter[str] = Counter()
    with opened(directory) as reader, replayed(directory, session, profiles) as replay:
        size_bytes = reader.session(session).size_bytes
        moment = moment_at(replay, None)
        records = reader.records(session)
        for record in records:
            if record.seq > moment.seq:
                break
            kinds[record.kind] += 1
        found = _figures(moment, kinds, size_bytes, None if replay.damage is None else str(replay.damage))
        if as_json:
            tell(found)
        else:
            _say_session(found, fullness(moment))
        return ended_by(replay)


def _figures(moment: Moment, kinds: Counter[str], size_bytes: int, damage: str | None) -> StatsSession:
    return StatsSession(
        id=moment.session,
        created_at=iso(moment.state.created_at_us),
        last_at=iso(moment.at_us),
        records=kinds.total(),
        size_bytes=size_bytes,
        kinds=dict(kinds.most_common()),
        frames=len(moment.state.table),
        held=count(live_runs(moment.state)),
        stack=len(moment.stack()),
        branches=len(moment.branches),
        checkpoints=len(moment.checkpoints),
        requests=kinds["requested"],
        compactions=moment.state.generation,
        ended=None if moment.ended is None else "ended",
        usage=usage_part(moment.usage),
        budget=budget_part(weighed(moment)),
        damage=damage,
    )


def _say_session(found: StatsSession, full: str) -> None:
    say(styled(f"session {shown_id(found.id)}", "bold") + (" (ended)" if found.ended else ""))
    say(f"made {found.created_at}, last changed {found.last_at}")
    say(f"{counted(found.records, 'record')}, {size(found.size_bytes)} in its journals")
    say(f"{counted(found.frames, 'frame')}, {found.held:,} held, {found.stack:,} on the stack")
    say(f"branches {found.branches:,}, checkpoints {found.checkpoints:,}, compactions {found.compactions:,}")
    say(full)
    if found.usage is not None:
        say(f"charged {found.usage.input_tokens:,} tokens in, {found.usage.output_tokens:,} out")
    for kind, number in found.kinds.items():
        say(f"  {number:>9,}  {one_line(kind)}")
