"""Decisions that add a frame: push, add_*, hold_call, configure, fork. Each checks, builds one event, changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from . import content
from .blocks import CallRef, ToolResult
from .calls import find_call, results_in, show
from .errors import CallAlreadyAnswered, EmptyStack, InvalidArgument
from .events import Branched, Pushed
from .frames import Hold, Instructions, Turn
from .keys import Repeat
from .moves import check_new_name, frame_of
from .names import branch_name, check_name
from .results import bind_results

if TYPE_CHECKING:
    from .commands import AddAssistant, AddToolResult, AddUser, Configure, Fork, HoldCall, Push
    from .state import State


def push(state: State, command: Push, head: int | None) -> Pushed:
    """A frame on top of the head."""
    turns = command.turns
    assumptions, decisions = command.assumptions, command.decisions
    user_input, assistant_output = command.user_input, command.assistant_output
    return Pushed(
        state.next_id,
        head,
        user_input if type(user_input) is str else content.text(user_input, "user_input"),
        assistant_output if type(assistant_output) is str else content.text(assistant_output, "assistant_output"),
        content.texts(assumptions, "assumptions") if assumptions != () else (),
        content.texts(decisions, "decisions") if decisions != () else (),
        None if turns is None else bind_results(state, head, content.turns(turns, "turns")),
        command.pinned if command.pinned is False else content.flag(command.pinned, "pinned"),
        command.on,
        _branch_when_detached(state, command.on),
    )


def add_user(state: State, command: AddUser, head: int | None) -> Pushed:
    """A frame with one user turn."""
    turn = content.turn(Turn("user", content.blocks(command.content, "content")), "turn")
    return _pushed(state, command.on, head, (turn,))


def add_assistant(state: State, command: AddAssistant, head: int | None) -> Pushed:
    """A frame with one assistant turn."""
    blocks = content.blocks(command.content, "content") + content.calls(command.tool_calls, "tool_calls")
    turn = Turn("assistant", blocks, command.usage, command.model, command.dialect, command.stop_reason)
    return Pushed(
        state.next_id,
        head,
        assumptions=content.texts(command.assumptions, "assumptions"),
        decisions=content.texts(command.decisions, "decisions"),
        turns=(content.turn(turn, "turn"),),
        branch=command.on,
        new_branch=_branch_when_detached(state, command.on),
    )


def add_tool_result(state: State, command: AddToolResult, head: int | None) -> Pushed | Repeat:
    """A frame with one result; the same result again: the frame that has it."""
    found = find_call(state.table, state.calls, head, _wanted(command.call))
    result = content.struct(
        ToolResult(found.call.id, command.content, command.is_error, found.ref),  # type: ignore[arg-type]  # checked here
        ToolResult,
        "result",
    )
    if found.answered_in is None:
        return _pushed(state, command.on, head, (Turn("tool", (result,)),))
    frame = state.table.get(found.answered_in)
    if frame is None or result not in results_in(frame.turns):
        raise CallAlreadyAnswered(show(command.call), found.answered_in)
    return Repeat(frame, state.seq)


def hold_call(state: State, command: HoldCall, head: int | None) -> Pushed:
    """A frame without turns that holds a call back."""
    found = find_call(state.table, state.calls, head, _wanted(command.call))
    if found.answered_in is not None:
        raise CallAlreadyAnswered(show(command.call), found.answered_in)
    hold = Hold(found.ref, check_name(command.reason, "reason"))
    return _pushed(state, command.on, head, (), holds=(hold,))


def configure(state: State, command: Configure, head: int | None) -> Pushed:
    """A frame without turns that brings complete instructions: the given ones, and for the rest those in force."""
    old = state.instructions(command.on) or Instructions()
    new = Instructions(
        old.system if command.system is None else content.text(command.system, "system"),
        old.tools if command.tools is None else content.tools(command.tools, "tools"),
        old.model if command.model is None else content.text(command.model, "model") or None,
    )
    return _pushed(state, command.on, head, (), instructions=new)


def fork(state: State, command: Fork, head: int | None) -> Pushed | Branched:
    """A branch at a frame, with a new frame on it when there is anything to push."""
    source = head if command.frame is None else frame_of(state, command.frame)
    if source is None:
        raise EmptyStack("fork")
    attach = content.flag(command.attach, "attach") and command.on is None
    turns = command.turns
    event = Pushed(
        state.next_id,
        source,
        content.text(command.user_input, "user_input"),
        content.text(command.assistant_output, "assistant_output"),
        content.texts(command.assumptions, "assumptions"),
        content.texts(command.decisions, "decisions"),
        None if turns is None else bind_results(state, source, content.turns(turns, "turns")),
        content.flag(command.pinned, "pinned"),
        attach=attach,
        forked_from=source,
    )
    name = None if command.branch is None else check_new_name(state, command.branch, "branch")
    if event == Pushed(state.next_id, source, attach=attach, forked_from=source):
        return Branched(name or branch_name(source, state.branches, state.checkpoints), source, attach)
    return msgspec.structs.replace(
        event, new_branch=name or branch_name(state.next_id, state.branches, state.checkpoints)
    )


def _pushed(
    state: State,
    on: str | None,
    head: int | None,
    turns: tuple[Turn, ...],
    *,
    instructions: Instructions | None = None,
    holds: tuple[Hold, ...] = (),
) -> Pushed:
    return Pushed(
        state.next_id,
        head,
        turns=turns,
        branch=on,
        new_branch=_branch_when_detached(state, on),
        instructions=instructions,
        holds=holds,
    )


def _branch_when_detached(state: State, on: str | None) -> str | None:
    """The name of the branch that a push makes when the session is on none; None when it is on one."""
    if on is not None or state.attached is not None:
        return None
    return branch_name(state.next_id, state.branches, state.checkpoints)


def _wanted(call: object) -> str | CallRef:
    if isinstance(call, str):
        return content.text(call, "call")
    if isinstance(call, CallRef):
        return content.call_ref(call, "call")
    raise InvalidArgument("call", f"must be a call id or a CallRef, got {type(call).__name__}")
