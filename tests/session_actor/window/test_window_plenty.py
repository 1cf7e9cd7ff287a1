"""Long histories that no request has shown: most of them is passed over, and the request is as good as any."""

from __future__ import annotations

import pytest

from session_actor.blocks import ToolCall
from session_actor.commands import AddAssistant, AddToolResult, AddUser, NoteArtifact, Push
from session_actor.server.cold import Shelf
from session_actor.server.snapshots import snapshot_of, state_from
from session_actor.window import long_history
from session_actor.window.rendered import Rendered

from ..live import Archive
from .asked import Asked, same, shown
from .test_window_limits import step


def imported(live: Asked, frames: int = 3_000) -> None:
    for number in range(frames):
        live.do(Push(f"question {number} " + "why " * 200, "thus " * 200))


@pytest.fixture
def rendered(monkeypatch):
    """How many frames were rendered."""
    taken: list[int] = []
    grow = Rendered.grow

    def counted(self, frames, *known) -> None:
        taken.append(len(frames))
        grow(self, frames, *known)

    monkeypatch.setattr(Rendered, "grow", counted)
    return taken


def test_few_frames_of_an_imported_history_are_rendered(live, dialect, rendered):
    imported(live)
    request = live.ask(dialect)
    assert sum(rendered) < 1_500
    assert "question 2999 " in shown(request)
    assert "question 0 " not in shown(request)
    assert live.asked.made is not None
    del rendered[:]
    assert same(live.ask(dialect), request)
    live.do(AddUser("And?"))
    live.ask(dialect)
    assert sum(rendered) < 10


def test_the_request_is_the_one_that_looking_at_all_of_it_gives(live, dialect, monkeypatch):
    imported(live, 1_500)
    request = live.again(dialect)
    monkeypatch.setattr(long_history, "FRAMES", 10_000)
    assert same(live.again(dialect), request)


def test_what_is_pinned_the_current_question_and_artifacts_are_kept_of_it(live, dialect):
    live.do(AddAssistant("", tool_calls=[ToolCall("p", "ls")]))
    live.do(AddToolResult("p", "never push to master"))
    live.do(Push("pinned question", "pinned answer", pinned=True))
    live.do(NoteArtifact("a.py", "modified"))
    imported(live, 200)
    live.do(AddUser("Do it all."))
    for number in range(1_200):
        live.do(AddAssistant("hm " * 600, tool_calls=[ToolCall(f"c{number}", "ls")]))
        live.do(AddToolResult(f"c{number}", "x"))
    text = shown(live.ask(dialect))
    assert "pinned question" in text
    assert "pinned answer" in text
    assert "Do it all." in text
    assert "a.py" in text
    assert "question 199" not in text
    step(live, 5_000, "hay")
    assert "Do it all." in shown(live.ask(dialect))


def test_a_history_whose_frames_are_on_the_disk_gives_the_same(live, dialect):
    imported(live)
    archive = Archive(live.records)
    state = state_from(snapshot_of(live.state), live.state.seq, Shelf(live.state.session, archive))
    assert same(live.again(dialect, state), live.ask(dialect))


def test_a_history_that_fits_is_shown_whole_however_many_frames_it_has(dialect):
    live = Asked("gpt-4.1")
    for number in range(1_100):
        live.do(Push(f"question {number}", "thus"))
    assert "question 0" in shown(live.ask(dialect))
    assert live.state.marks == ()
