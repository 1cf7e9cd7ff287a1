"""What one generation of the code hands to the next: a session's state as a plain, versioned value.

It holds no object of a class of ours, because the next generation has other classes: it is a dict of strings and
numbers, which may as well be JSON. Frames are not in it. They are in the store, also those that are not yet written,
and the next generation reads them when somebody asks. So its size does not depend on the length of the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import msgspec

from session_actor.server.snapshots import SnapshotUnusable, may_be_saved, snapshot_of, state_from
from session_actor.supervisors import CrashSummary

from .errors import HandoverUnusable

if TYPE_CHECKING:
    from session_actor.persistence import Lease
    from session_actor.server.cold import Shelf
    from session_actor.state.state import State

Value: TypeAlias = dict[str, Any]
"""`session`, `birth`, `seq`: whose it is, and its newest record; `state`: see `snapshots`, None where only the records
tell it; `saved_seq`, `saved_next_id`: the newest record and the next frame when a snapshot was last saved."""

CodeChange: TypeAlias = Callable[[int, Value], Value]
"""Turns a value of an older version into one of this version, or raises (OTP: code_change)."""

VERSION: Final = 1
"""The version of the values that this code hands over and takes."""

STEPS: Final[Mapping[int, Callable[[Value], Value]]] = {}
"""The chain: the step of a version makes of its values those of the next version. In a step `state` is a dict."""


def exported(state: State, lease: Lease, saved_seq: int, saved_next_id: int) -> Value:
    """The value of a session."""
    return {
        "session": lease.session,
        "birth": lease.birth,
        "seq": state.seq,
        "state": snapshot_of(state).decode() if may_be_saved(state) else None,
        "saved_seq": saved_seq,
        "saved_next_id": saved_next_id,
    }


def changed(
    version: int,
    value: Value,
    *,
    own: CodeChange | None = None,
    steps: Mapping[int, Callable[[Value], Value]] = STEPS,
    newest: int = VERSION,
) -> Value:
    """The value in the newest version: each step of the chain in turn, then `own`, the embedder's (None: it has none).

    The value that is given stays as it is. Raises HandoverUnusable for a version that cannot be, and what a step
    raises.
    """
    if type(version) is not int or not 1 <= version <= newest:
        raise HandoverUnusable(f"a value of version {version!r} was handed over; this code takes 1 to {newest}")
    if version == newest and own is None:
        return value
    value = value | {"state": None if value["state"] is None else msgspec.json.decode(value["state"])}
    for number in range(version, newest):
        if number not in steps:
            raise HandoverUnusable(f"there is no step from version {number} to {number + 1} of handed over values")
        value = steps[number](value)
    if own is not None:
        value = _by_own_step(own, version, value)
    if type(cast("object", value)) is not dict or "state" not in value:
        raise HandoverUnusable("code_change must return the value, changed or not")
    return value | {"state": None if value["state"] is None else msgspec.json.encode(value["state"]).decode()}


def _by_own_step(own: CodeChange, version: int, value: Value) -> Value:
    """Whatever it raises refuses the value, and ends neither a session nor who takes it over."""
    try:
        return own(version, value)
    except (Exception, SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - the embedder's code may raise anything
        raise HandoverUnusable(f"code_change: {CrashSummary.of(error)}") from None


def check_form(value: Value) -> None:
    """Raises HandoverUnusable for a value that no session can go on from: what `code_change` returned is not whole."""
    names: dict[str, tuple[type, ...]] = dict.fromkeys(("session", "birth"), (str,))
    names |= dict.fromkeys(("seq", "saved_seq", "saved_next_id"), (int,)) | {"state": (str, type(None))}
    wrong = [name for name, kinds in names.items() if name not in value or type(value[name]) not in kinds]
    if wrong or not 0 <= value["saved_seq"] <= value["seq"] or value["saved_next_id"] < 0:
        raise HandoverUnusable(f"code_change must leave {', '.join(wrong) or 'saved_seq'} of the value as handed over")


def arrived(value: Value, lease: Lease, shelf: Shelf) -> State | None:
    """The state of a value, its frames cold on `shelf`; None: only the records tell it.

    Raises HandoverUnusable when it is not the value of this session as it is now.
    """
    check_form(value)
    whose = value["session"], value["birth"], value["seq"]
    if whose != (lease.session, lease.birth, lease.appended_seq):
        raise HandoverUnusable(f"the value is not of session {lease.session!r} as it is now: hand it over again")
    if value["state"] is None:
        return None
    try:
        return state_from(value["state"].encode(), value["seq"], shelf)
    except SnapshotUnusable as error:
        raise HandoverUnusable(f"the state of session {lease.session!r} cannot be taken: {error}") from None
