"""Decisions that add a frame: push, add_*, hold_call, configure, fork … Each builds one event and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from session_actor.blocks import Reference, ToolResult
from session_actor.errors import CallAlreadyAnswered, EmptyStack, InvalidArgument
from session_actor.events import Added, Branched, Pushed
from session_actor.frames import Artifact, Hold, Instructions, Turn
from session_actor.given import content
from session_actor.given.content import checked, given_texts
from session_actor.given.plain import is_a, shown
from session_actor.window.requests_made import asked_as, astray

from .calls import find_call, results_in, show
from .grow import BLOCK, place_on
from .keys import Repeat
from .moves import check_new_name, frame_of, frame_or_head
from .names import branch_name, check_name
from .results import bind_results
from .weight import SMALL, SURELY_FITS, check_size, weight_of

if TYPE_CHECKING:
    from session_actor.blocks import ToolCall
    from session_actor.commands import (
        AddReference,
        AddResponse,
        AddToolResult,
        AssistantFields,
        Configure,
        Content,
        ForkFields,
        HoldCall,
        NoteArtifact,
        PushFields,
    )
    from session_actor.events import Place
    from session_actor.frames import Frame

    from .decide import Decision, Made
    from .state import State


def push(  # noqa: C901, PLR0917 - the hot path: calls and keywords cost
    state: State,
    fields: PushFields,
    parent: int | None,
    on: str | None,
    new_branch: str | None = None,
    attach: bool = True,  # noqa: FBT001, FBT002 - the same
    forked: Frame | None = None,
) -> Made:
    """A frame on top of the head, or on a new branch at `forked`. What is plainly right is not checked by a call.

    `new_branch`: of a fork, else None. `forked` None: `parent` is the head, or a fork begins at the empty stack.
    """
    assumptions: Any
    decisions: Any
    user_input, assistant_output, assumptions, decisions, turns, pinned = fields
    if type(user_input) is not str:
        user_input = checked(content.text, user_input, "user_input")
    if type(assistant_output) is not str:
        assistant_output = checked(content.text, assistant_output, "assistant_output")
    if type(assumptions) is not _TUPLE:
        assumptions = given_texts(assumptions, "assumptions")
    if type(decisions) is not _TUPLE:
        decisions = given_texts(decisions, "decisions")
    weight = SMALL + len(user_input) + len(assistant_output)
    for text in assumptions + decisions:
        if type(text) is not str:
            return push(state, _with_texts(fields), parent, on, new_branch, attach, forked)
        weight += len(text)
    if turns is not None:
        turns = bind_results(state, parent, checked(content.turns, turns, "turns"))
    if pinned is not False:
        pinned = checked(content.flag, pinned, "pinned")
    frame_id = state.next_id
    on_branch = on is not None or state.attached is not None
    if on_branch and parent == frame_id - 1 and frame_id & BLOCK and turns is None and new_branch is None:  # most
        event: Pushed = Added(frame_id, None, user_input, assistant_output, assumptions, decisions, None, pinned, on)
        if weight > SURELY_FITS:
            check_size(event)
        return event, weight, state.table.frames[-1] if on is None else None
    texts = user_input, assistant_output, assumptions, decisions
    event = _elsewhere(state, texts, turns, pinned, parent, on, new_branch, attach, forked)
    if turns is not None:
        weight = weight_of(event)
    if weight > SURELY_FITS:
        check_size(event)
    return event, weight, forked


def _elsewhere(  # noqa: PLR0917 - as `push`
    state: State,
    texts: tuple[str, str, tuple[str, ...], tuple[str, ...]],
    turns: tuple[Turn, ...] | None,
    pinned: bool,  # noqa: FBT001 - as `push`
    parent: int | None,
    on: str | None,
    new_branch: str | None,
    attach: bool,  # noqa: FBT001 - as `push`
    forked: Frame | None,
) -> Pushed:
    """The record of a push that is none of the most: with turns, off the head's line, or of a keyframe."""
    frame_id = state.next_id
    on_top = parent == frame_id - 1
    branch = on if new_branch is None else None
    if new_branch is None and on is None and state.attached is None:
        new_branch = branch_name(frame_id, state.branches, state.checkpoints)
    return (Added if on_top else Pushed)(
        frame_id,
        None if on_top else parent,
        *texts,
        turns,
        pinned,
        branch,
        new_branch,
        attach,
        None if forked is None else parent,
        None,
        (),
        None if on_top and frame_id & BLOCK else _place(state, parent) if forked is None else place_on(forked),
    )


def _with_texts(fields: PushFields) -> PushFields:
    """The same with exact strs in its tuples."""
    user_input, assistant_output, assumptions, decisions, turns, pinned = fields
    exact = given_texts(assumptions, "assumptions"), given_texts(decisions, "decisions")
    return user_input, assistant_output, *exact, turns, pinned


def _place(state: State, parent: int | None) -> Place | None:
    """What the record of a keyframe holds: what the frame inherits. None: it is the first of its stack."""
    if parent is None:
        return None
    frame = state.table.get(parent)
    return None if frame is None else place_on(frame)


def add_user(state: State, fields: tuple[Content], head: int | None, on: str | None) -> Made:
    """A frame with one user turn; a text is kept as a push of it is."""
    (given,) = fields
    text = _text(given)
    if text:
        return _pushed(state, on, head, None, user_input=text)
    turn = checked(content.turn, Turn("user", checked(content.blocks, given, "content")), "turn")
    return _pushed(state, on, head, (turn,))


def add_assistant(state: State, fields: AssistantFields, head: int | None, on: str | None) -> Made:
    """A frame with one assistant turn; a text with nothing beside it is kept as a push of it is."""
    given, tool_calls, usage, model, dialect, stop_reason, assumptions, decisions = fields
    text = _text(given)
    calls = _NO_CALLS if tool_calls is _NO_CALLS else checked(content.calls, tool_calls, "tool_calls")
    turns: tuple[Turn, ...] | None = None
    if not text or calls or any(said is not None for said in (usage, model, dialect, stop_reason)):
        blocks = checked(content.blocks, given, "content") + calls
        turn = Turn("assistant", blocks, usage, model, dialect, stop_reason)
        text, turns = "", (checked(content.turn, turn, "turn"),)
    return _pushed(
        state,
        on,
        head,
        turns,
        assistant_output=text,
        assumptions=given_texts(assumptions, "assumptions"),
        decisions=given_texts(decisions, "decisions"),
    )


def add_response(state: State, command: AddResponse, head: int | None) -> Decision:
    """A frame with one assistant turn, as a provider's reply was read."""
    turn = checked(content.turn, command.reply, "reply")
    if turn.role != "assistant":
        raise InvalidArgument("reply", f"must be an assistant turn, got one of the role {turn.role}")
    if command.request is not None:
        turn = asked_as(state, _request(state, command.request), turn)
    event, weight, found = _pushed(
        state,
        command.on,
        head,
        (turn,),
        assumptions=given_texts(command.assumptions, "assumptions"),
        decisions=given_texts(command.decisions, "decisions"),
    )
    if command.request is not None:
        request = _request(state, command.request)
        event = msgspec.structs.replace(event, answers=request, astray=astray(state, request))
    return event, weight, found


def _request(state: State, given: object) -> int:
    """The number of a request's record."""
    seq = checked(content.count, given, "request")
    if not 0 < seq <= state.seq:
        raise InvalidArgument("request", f"this session has no record {shown(seq)}; without it the reply can be added")
    return seq


def add_reference(state: State, command: AddReference, head: int | None) -> Decision:
    """A frame with a user turn of one reference."""
    text = checked(content.text, command.text, "text")
    if not text:
        raise InvalidArgument("text", "must not be empty")
    source = None if command.source is None else checked(content.text, command.source, "source")
    return _pushed(state, command.on, head, (Turn("user", (Reference(text, source),)),))


def note_artifact(state: State, command: NoteArtifact, head: int | None) -> Decision:
    """A frame without turns that notes what was read or modified."""
    artifact = Artifact(checked(content.artifact_path, command.path, "path"), checked(content.how, command.how, "how"))
    event, weight, found = _pushed(state, command.on, head, ())
    return msgspec.structs.replace(event, artifacts=(artifact,)), weight + len(artifact.path), found


def _text(given: object) -> str:
    """The text that is given as content; empty for blocks."""
    if type(given) is str:
        return given
    return checked(content.text, given, "content") if is_a(given, str) else ""


def add_tool_result(state: State, command: AddToolResult, head: int | None) -> Decision:
    """A frame with one result; the same result again: the frame that has it."""
    call = checked(content.call, command.call, "call")
    found = find_call(state.table, state.call_ids, head, call)
    blocks = checked(content.result_blocks, command.content, "content")
    result = ToolResult(found.call.id, blocks, checked(content.flag, command.is_error, "is_error"), found.ref)
    if found.answered_in is None:
        return _pushed(state, command.on, head, (Turn("tool", (result,)),))
    frame = state.table.get(found.answered_in)
    if frame is None or result not in results_in(frame.turns):
        raise CallAlreadyAnswered(show(call), found.answered_in)
    return Repeat(frame, state.seq)


def hold_call(state: State, command: HoldCall, head: int | None) -> Decision:
    """A frame without turns that holds a call back."""
    call = checked(content.call, command.call, "call")
    found = find_call(state.table, state.call_ids, head, call)
    if found.answered_in is not None:
        raise CallAlreadyAnswered(show(call), found.answered_in)
    hold = Hold(found.ref, check_name(command.reason, "reason"))
    return _pushed(state, command.on, head, (), holds=(hold,))


def configure(state: State, command: Configure, head: int | None) -> Decision:
    """A frame without turns that brings complete instructions: the given ones, and for the rest those in force."""
    old = state.instructions(command.on) or Instructions()
    tools, native_tools = old.tools, old.native_tools
    if command.tools is not None:
        tools, native_tools = checked(content.tools, command.tools, "tools")
    new = Instructions(
        old.system if command.system is None else checked(content.text, command.system, "system"),
        tools,
        old.model if command.model is None else checked(content.text, command.model, "model") or None,
        native_tools,
    )
    return _pushed(state, command.on, head, (), instructions=new)


def fork(state: State, fields: ForkFields, head: int | None, on: str | None) -> Made:
    """A branch at a frame, or at the empty stack, with a new frame on it when there is anything to push."""
    target, branch, user_input, assistant_output, assumptions, decisions, turns, pinned, attach = fields
    frame = frame_of(state, target) if type(target) is int else frame_or_head(state, target, head)
    name = None if branch is None else check_new_name(state, branch, "branch")
    if frame is None and type(target) is not int:
        raise EmptyStack("fork", "push one first, or begin at the empty stack: pass 0")
    at = None if frame is None else frame.id
    attach = attach if attach is True else checked(content.flag, attach, "attach")
    attach = attach and on is None
    pushed = user_input, assistant_output, assumptions, decisions, turns, pinned
    if not _pushes(pushed):
        name = name or branch_name(at or 0, state.branches, state.checkpoints)
        return Branched(name, at, attach), SMALL, frame
    name = name or branch_name(state.next_id, state.branches, state.checkpoints)
    return push(state, pushed, at, on, name, attach, frame)


def _pushes(fields: PushFields) -> bool:
    """Whether any field asks for a new frame. Raises `InvalidArgument` for a value that is none of its kind."""
    user_input, assistant_output, assumptions, decisions, turns, pinned = fields
    if type(user_input) is str and user_input:
        return True  # as nearly always; `push` checks the rest
    return bool(
        turns is not None
        or (user_input is not _BLANK and checked(content.text, user_input, "user_input"))
        or (assistant_output is not _BLANK and checked(content.text, assistant_output, "assistant_output"))
        or (pinned is not False and checked(content.flag, pinned, "pinned"))
        or (assumptions is not _NONE and given_texts(assumptions, "assumptions"))
        or (decisions is not _NONE and given_texts(decisions, "decisions"))
    )


def _pushed(
    state: State,
    on: str | None,
    head: int | None,
    turns: tuple[Turn, ...] | None,
    *,
    user_input: str = "",
    assistant_output: str = "",
    assumptions: tuple[str, ...] = (),
    decisions: tuple[str, ...] = (),
    instructions: Instructions | None = None,
    holds: tuple[Hold, ...] = (),
) -> tuple[Pushed, int, None]:
    """A frame of turns, or of one text, on top of the head."""
    frame_id = state.next_id
    on_top = head == frame_id - 1
    event = (Added if on_top else Pushed)(
        frame_id,
        None if on_top else head,
        user_input,
        assistant_output,
        assumptions,
        decisions,
        turns,
        False,  # noqa: FBT003 - by place, because this is the hot path
        on,
        _branch_when_detached(state, on),
        True,  # noqa: FBT003 - the same
        None,
        instructions,
        holds,
        None if on_top and frame_id & BLOCK else _place(state, head),
    )
    weight = weight_of(event)
    if weight > SURELY_FITS:
        check_size(event)
    return event, weight, None


def frame_without_turns(state: State, on: str | None, head: int | None) -> tuple[Pushed, int, None]:
    """A frame that says nothing, on top of the head."""
    return _pushed(state, on, head, ())


def _branch_when_detached(state: State, on: str | None) -> str | None:
    """The name of the branch that a push makes when the session is on none; None when it is on one."""
    if on is not None or state.attached is not None:
        return None
    return branch_name(state.next_id, state.branches, state.checkpoints)


_BLANK: Final = ""
_TUPLE: Final[Any] = tuple
_NO_CALLS: Final[tuple[ToolCall, ...]] = ()
_NONE: Final[tuple[str, ...]] = ()
