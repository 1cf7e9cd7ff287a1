"""Listing sessions from the catalog and from what is not yet in it, in one order, without reading a body."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from session_actor.persistence.store import SessionInfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from session_actor.persistence.catalog.catalog import CatalogRow
    from session_actor.persistence.engine import Engine
    from session_actor.persistence.log.session_log import SessionLog

PAGE: Final = 500


async def list_sessions(engine: Engine, logs: Mapping[str, SessionLog], prefix: str) -> AsyncIterator[SessionInfo]:
    """Every session whose id starts with `prefix`, by code points. `logs`: those with newer facts than the catalog's.

    A session that is made or deleted meanwhile may or may not be among them. Raises `CatalogCorrupt`, OSError.
    """
    fresh = sorted(session for session in logs if session.startswith(prefix))
    index, after = 0, None
    while True:
        rows, sealed = await engine.read_thread.run(partial(_page, engine, prefix, after))
        for row in rows:
            while index < len(fresh) and fresh[index] < row.session:
                if (info := await _newest(engine, logs, fresh[index])) is not None:
                    yield info
                index += 1
            if index < len(fresh) and fresh[index] == row.session:
                index += 1
            size = row.bytes + sealed.get((row.session, row.birth), 0)
            log = logs.get(row.session)
            if (info := _of_row(engine, row, size) if log is None else _of_log(log, row, size)) is not None:
                yield info
        if len(rows) < PAGE:
            break
        after = rows[-1].session
    for session in fresh[index:]:
        if (info := await _newest(engine, logs, session)) is not None:
            yield info


async def _newest(engine: Engine, logs: Mapping[str, SessionLog], session: str) -> SessionInfo | None:
    """What is known of a session that was in `logs`: a cut may have moved it to the catalog since."""
    if session in logs and logs[session].extent is None:
        return _of_log(logs[session], None, 0)
    row, size = await engine.read_thread.run(partial(_one, engine, session))
    if session in logs:
        return _of_log(logs[session], row, size)
    return None if row is None else _of_row(engine, row, size)


def _page(engine: Engine, prefix: str, after: str | None) -> tuple[list[CatalogRow], dict[tuple[str, str], int]]:
    """Rows of the catalog, and the bytes of these sessions' sealed files, as they are at one moment. Blocks."""
    while True:
        changes = engine.catalog.changes
        rows = engine.catalog.rows(prefix, after, PAGE)
        sealed = engine.catalog.files.sizes(rows[0].session, rows[-1].session) if rows else {}
        if changes == engine.catalog.changes:
            return rows, sealed


def _one(engine: Engine, session: str) -> tuple[CatalogRow | None, int]:
    while True:
        changes, row = engine.catalog.changes, engine.catalog.get(session)
        sizes = {} if row is None else engine.catalog.files.sizes(session, session)
        if changes == engine.catalog.changes:
            return row, 0 if row is None else row.bytes + sizes.get((session, row.birth), 0)


def _of_log(log: SessionLog, row: CatalogRow | None, size_bytes: int) -> SessionInfo | None:
    """Of a session in use. `size_bytes`: of its journal, if its birth is that of `row`."""
    if not log.exists:
        return None
    size = size_bytes if row is not None and row.birth == log.birth else 0
    return SessionInfo(log.session, log.birth, log.created_us, log.appended_seq, size)


def _of_row(engine: Engine, row: CatalogRow, size_bytes: int) -> SessionInfo | None:
    if (row.session, row.birth) in engine.cutter.unforgotten:
        return None
    return SessionInfo(row.session, row.birth, row.created_us, row.seq, size_bytes)
