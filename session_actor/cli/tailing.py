"""What `session-actor tail DIR [ID]` does: records as they come, of a store that a server has open."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import click

from session_actor.events import Pushed, decode_event
from session_actor.persistence.errors import LineDamaged
from session_actor.service.reserved import is_reserved
from session_actor.service_errors import SessionDeleted, SessionNotFound

from .asking import check_own, check_there, opened
from .codes import CORRUPT, note, say
from .harmless import block, one_line, shown_id
from .lines import TailGone, TailRecord
from .moments import change_of
from .output import iso, styled, tell, when

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence import Record, SessionInfo
    from session_actor.replay import Reader

_SLOWER: Final = 4
"""A look that takes long is followed by a pause of so many times as long, at least."""


def run(
    directory: str,
    session: str | None,
    *,
    lines: int | None,
    follow: bool,
    interval: float,
    content: bool,
    as_json: bool,
) -> int:
    """Run the command; see there."""
    if session is None and (lines is not None or not follow):
        raise click.UsageError("--lines and --no-follow need an ID", click.get_current_context())
    if math.isnan(interval):  # which no range refuses
        raise click.UsageError("--interval is no number", click.get_current_context())
    with opened(directory) as reader:
        tail = Tail(reader, session, as_json=as_json, content=content)
        tail.begin(10 if lines is None else lines)
        while follow:
            time.sleep(max(interval, _SLOWER * tail.looked_s))
            tail.look()
        return CORRUPT if tail.damaged else 0


class Tail:
    """What was seen of a store, and what comes."""

    def __init__(self, reader: Reader, session: str | None, *, as_json: bool, content: bool) -> None:
        """`session`: only this one; None: all."""
        self._reader = reader
        self._session = session
        self._print: Callable[[str, Record], None] = self._tell if as_json else self._say
        self._as_json = as_json
        self._content = content
        self._seen: dict[str, tuple[str, int]] = {}
        """By session its birth and the newest record that was seen."""
        self._stamp: object = None
        self.damaged: set[str] = set()
        """Sessions whose damage was told."""
        self.looked_s = 0.0
        """How long the newest look took."""

    def begin(self, lines: int) -> None:
        """Look for the first time: what is there is seen; of one session the newest records are printed."""
        self._stamp = self._stamped()
        if self._session is None:
            self._seen = {info.id: (info.birth, info.seq) for info in self._infos()}
            note(f"following {self._reader.root}; Ctrl-C ends it")
            return
        check_own(self._session)
        check_there(self._reader, self._session)
        info = self._reader.session(self._session)
        self._seen[info.id] = (info.birth, info.seq)
        if lines:
            for record in self._newest(info, lines):
                self._print(info.id, record)
        sys.stdout.flush()

    def _newest(self, info: SessionInfo, lines: int) -> deque[Record]:
        """The newest records; read from where they can begin."""
        records = self._reader.records(info.id, max(0, info.seq - lines))
        newest = deque(records, maxlen=lines)
        self._told_damage(info.id, records.damage)
        return newest

    def look(self) -> None:
        """Print what is new."""
        began = time.perf_counter()
        stamp = self._stamped()
        if stamp == self._stamp:
            return
        self._reader.refresh()
        self._stamp = stamp
        there: set[str] = set()
        for info in self._infos():
            there.add(info.id)
            seen = self._seen.get(info.id)
            if seen is not None and seen[0] != info.birth:  # deleted since, and made anew
                self._forget(info.id)
                seen = None
            if seen != (info.birth, info.seq):
                self._follow(info, 0 if seen is None else seen[1])
        for gone in self._seen.keys() - there:
            self._forget(gone)
        sys.stdout.flush()
        self.looked_s = time.perf_counter() - began

    def _forget(self, gone: str) -> None:
        del self._seen[gone]
        self.damaged.discard(gone)
        if self._as_json:
            tell(TailGone(id=gone))
        else:
            say(styled(f"{shown_id(gone)} was deleted", "yellow"))

    def _follow(self, info: SessionInfo, seq: int) -> None:
        try:
            records = self._reader.records(info.id, seq)
            for record in records:
                self._print(info.id, record)
                seq = record.seq
        except SessionDeleted:
            return  # the next look finds it gone, or made anew
        self._seen[info.id] = (info.birth, max(seq, info.seq) if records.damage else seq)
        self._told_damage(info.id, records.damage)

    def _told_damage(self, session: str, damage: object) -> None:
        if damage is not None and session not in self.damaged:
            self.damaged.add(session)
            note(f"{shown_id(session)}: {damage}; what is behind it is not seen")

    def _infos(self) -> list[SessionInfo]:
        if self._session is None:
            return [info for info in self._reader.sessions() if not is_reserved(info.id)]
        try:
            return [self._reader.session(self._session)]
        except (SessionDeleted, SessionNotFound):
            return []

    def _stamped(self) -> object:
        """What changes with the store: the names, sizes and times of its log and its catalog."""
        root = self._reader.root
        found: list[object] = []
        try:
            with os.scandir(f"{root}/log") as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    found.append((entry.name, status.st_size, status.st_mtime_ns))
            status = os.stat(f"{root}/catalog.db")  # noqa: PTH116 - looked at again and again
            found.append((status.st_size, status.st_mtime_ns))
        except FileNotFoundError:
            return object()  # it is just being moved
        return sorted(map(str, found))

    # --- printing -----------------------------------------------------------------------------------------------------

    def _say(self, session: str, record: Record) -> None:
        from session_actor.errors import RecordUnknown, RecordUnreadable

        try:
            told = change_of(decode_event(record.kind, record.data))
        except (RecordUnknown, RecordUnreadable) as error:
            told = one_line(str(error))
        head = f"{when(_at(record))}  {shown_id(session)}  {record.seq:,}"
        say(f"{head}  {styled(told, 'cyan')}")
        if self._content:
            say(f"  {one_line(block(bytes(record.data).decode('utf-8', 'replace')))}")

    def _tell(self, session: str, record: Record) -> None:
        data = bytes(record.data)
        tell(
            TailRecord(
                id=session,
                seq=record.seq,
                at=iso(_at(record)) or "",
                kind=record.kind,
                size_bytes=len(data),
                frame=_frame(record),
                data=_loaded(data) if self._content else None,
            )
        )


def _at(record: Record) -> int | None:
    try:
        return record.at_us
    except LineDamaged:
        return None


def _frame(record: Record) -> int | None:
    if record.kind not in {"pushed", "added"}:
        return None
    event = decode_event(record.kind, record.data)
    return event.id if isinstance(event, Pushed) else None


def _loaded(data: bytes) -> Any:
    return json.loads(data)
