"""Heads and branches of a state, as its records move them; only `apply` calls what changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .state import State


class Misfit(Exception):
    """Why a record does not fit a state; nothing was changed."""


def move(state: State, branch: str, head: int | None) -> None:
    """Move the head of a branch, and the session's own with it when it is on that branch."""
    if branch == state.attached:
        state.head = head
    state.branches[branch] = head


def make_branch(state: State, name: str, head: int | None, attach: bool) -> None:  # noqa: FBT001 - a keyword costs here
    """Make a branch at a frame (None: at the empty stack); `attach`: and go there."""
    state.branches[name] = head
    if attach:
        state.attached = name
        state.head = head


def check_free(state: State, name: str) -> None:
    """Raises `Misfit` unless neither a branch nor a checkpoint is called so."""
    if name in state.branches or name in state.checkpoints:
        raise Misfit(f"the name {name!r} is taken")


def check_branches(state: State, branch: str | None, new_branch: str | None) -> None:
    """Raises `Misfit` when a frame can be put neither on the one nor on the other; None: it is not to be."""
    if new_branch is not None:
        check_free(state, new_branch)
    elif branch is not None:
        check_branch(state, branch)


def check_branch(state: State, name: str) -> None:
    """Raises `Misfit` unless there is such a branch."""
    if name not in state.branches:
        raise Misfit(f"there is no branch {name!r}")
