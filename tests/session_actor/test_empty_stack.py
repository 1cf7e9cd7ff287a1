"""Going back to before the first frame: 0 is the empty stack wherever a frame is named, live, recovered and copied."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from session_actor import (
    EmptyStack,
    Fork,
    Goto,
    InvalidArgument,
    MemoryStore,
    NothingToSend,
    Replay,
    SessionService,
    export_session,
    import_transcript,
)
from session_actor.change import Change

from .live import picture


def texts(stack) -> list[str]:
    return [turn.text for turn in stack.turns()]


async def talked(service: SessionService):
    """A session of two questions and answers."""
    session = await service.session("user-42", create=True)
    for text in ("Which ship?", "The Mole.", "When?", "At noon."):
        await (session.add_user(text) if text.endswith("?") else session.add_assistant(text))
    return session


async def test_the_first_message_is_edited_and_sent_again(service):
    session = await talked(service)
    first = (await session.stack())[0]
    assert first.parent is None
    edited = await session.fork(first.parent or 0, user_input="Which train?")

    assert (edited.id, edited.parent, edited.forked_from, edited.depth) == (5, None, None, 1)
    assert texts(await session.stack()) == ["Which train?"]
    assert await session.branches() == {"main": 4, "b5": 5}
    await session.goto("main")
    assert len(await session.stack()) == 4


async def test_no_frame_is_never_taken_for_the_head(service):
    session = await talked(service)
    first = (await session.stack())[0]
    for change in (
        lambda: session.fork(first.parent, user_input="Which train?"),
        lambda: session.fork(first.parent, key="k"),
        lambda: session.branch_off("edited", first.parent),
        lambda: session.checkpoint("before", first.parent),
        lambda: session.goto(first.parent),
        lambda: session.pin(first.parent),
    ):
        with pytest.raises(InvalidArgument, match=r"pass frame\.parent or 0"):
            await change()
    with pytest.raises(EmptyStack):
        await session.checkpoint("before", 0)
    assert await session.branches() == {"main": 4}
    assert len(await session.stack()) == 4


async def test_a_branch_of_its_own_begins_at_the_empty_stack(service):
    session = await talked(service)
    anew = await session.branch_off("anew", 0)
    assert (await anew.head(), texts(await anew.stack()), await anew.pending_calls()) == (None, [], [])
    with pytest.raises(NothingToSend):
        await anew.build_request("anthropic", model="claude-sonnet-5")
    await anew.add_user("Which train?", expect_head=0)
    assert await session.branches() == {"main": 4, "anew": 5}
    assert (await session.head(), await session.branch()) == (4, "main")
    request = await anew.build_request("openai_chat", model="gpt-4o")
    assert request["messages"] == [{"role": "user", "content": "Which train?"}]


async def test_the_head_of_a_session_goes_to_the_empty_stack_and_to_a_new_branch(service):
    session = await talked(service)
    async with session.changes() as feed:
        assert await session.goto(0) is None
        assert (await session.head(), await session.branch(), await session.instructions()) == (None, None, None)
        with pytest.raises(NothingToSend):
            await session.build_request("anthropic", model="claude-sonnet-5")
        new = await service.session("new", create=True)
        assert await session.budget("gpt-4o") == await new.budget("gpt-4o")
        assert await session.pop(3) == []
        assert await session.prepare_compaction("gpt-4o") is None
        frame = await session.add_user("Which train?", expect_head=0)
        assert (frame.parent, await session.branch()) == (None, "b5")
        assert await session.fork(0, branch="empty") is None
        told = [await anext(feed) for _ in range(4)]
    assert [(one.kind, one.frame, one.branch, one.name) for one in told] == [
        ("moved", None, None, None),
        ("popped", None, None, None),
        ("pushed", 5, "b5", None),
        ("branched", None, None, "empty"),
    ]
    assert told[0] == Change(told[0].seq, "moved", told[0].at_us)


async def test_a_key_gives_the_first_reply_again_at_0_too(service):
    session = await talked(service)
    for _ in range(2):
        assert await session.goto(0, key="away") is None
        assert await session.fork(0, branch="empty", key="branch") is None
        assert (await session.fork(0, user_input="Which train?", key="anew")).id == 5
    assert (await session.send(Fork(0, "empty", key="branch"))) is None
    assert await session.branches() == {"main": 4, "empty": None, "b5": 5}
    await session.goto("main")
    assert await session.send(Goto(0, key="away")) is None
    assert await session.head() == 4


@pytest.mark.parametrize("crash", [False, True])
async def test_what_began_at_the_empty_stack_is_recovered(tmp_path: Path, crash: bool):
    async with SessionService.open(tmp_path) as service:
        session = await talked(service)
        await session.fork(0, user_input="Which train?", branch="anew")
        await session.branch_off("empty", 0)
        await session.goto(0)
        before = picture(session._cell.state)
        if crash:
            await session.flush("written")
            session.ref.kill()
            await asyncio.sleep(0)
            again = await service.session("user-42")
            assert (await again.head(), picture(again._cell.state)) == (None, before)
            return
    async with SessionService.open(tmp_path) as service:
        session = await service.session("user-42")
        assert picture(session._cell.state) == before
        assert (await session.branch(), await session.branches()) == (None, {"main": 4, "anew": 5, "empty": None})
        assert (await session.push("And by air?", "No.")).id == 6
        assert await session.branch() == "b6"


async def test_a_session_is_forked_at_the_empty_stack(service):
    session = await talked(service)
    await session.checkpoint("here")
    first = (await session.stack())[0]
    copy = await service.fork("user-42", "copy", first.parent or 0)

    assert (await copy.branches(), await copy.checkpoints()) == ({"main": None}, {})
    source = copy._cell.state.source
    assert (source.session, source.frame) == ("user-42", 0)
    assert (await copy.add_user("Which train?")).parent is None
    assert len(await session.stack()) == 4
    assert len(await (await service.fork("user-42", "whole")).stack()) == 4
    await session.branch_off("empty", 0)
    empty = await service.fork("user-42", "of-a-branch", "empty")
    assert (await empty.branches(), empty._cell.state.source.frame) == ({"main": None}, 0)


async def test_its_past_is_replayed(tmp_path: Path):
    async with SessionService.open(tmp_path) as service:
        session = await talked(service)
        await session.branch_off("empty", 0)
        await session.goto(0)
        await session.add_user("Which train?")
        await session.flush("written")
        with await Replay.open(tmp_path, "user-42") as replay:
            assert (replay.at(seq=7).head, replay.moment.branch) == (None, None)
            assert (len(replay.at(frame=0).stack()), replay.moment.seq) == (0, 1)
            changed = replay.diff(5, 8)
    assert (changed.head, changed.added, changed.removed) == ((4, 5), (5,), (1, 2, 3, 4))
    assert changed.branches == {"empty": (None, 0), "b5": (None, 5)}


@pytest.mark.parametrize("at", ["goto", "fork", "branch_off"])
async def test_it_is_exported_and_imported(tmp_path: Path, at: str):
    async with SessionService.open(MemoryStore()) as service, SessionService.open(MemoryStore()) as other:
        session = await talked(service)
        await {"goto": session.goto, "fork": session.fork, "branch_off": lambda at: session.branch_off("b", at)}[at](0)
        await session.on("main").add_user("And back?")
        await export_session(service, "user-42", tmp_path / "out.ndjson")
        await import_transcript(other, tmp_path / "out.ndjson")
        copy = await other.session("user-42")
        assert await copy.branches() == await session.branches()
        assert (await copy.head(), await copy.branch()) == (await session.head(), await session.branch())
        assert (await copy.add_user("Which train?")).parent == await session.head()
