"""Any history: every moment is the state that was there, and every request is the one that was given out."""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from session_actor.replay import Replay, playing, read_store, timeline

from ..live import Live, picture
from ..test_state_machine import StateMachine
from ..window.asked import MODELS
from ..window.test_window_machine import Window
from .stored import put


class Watched(Live):
    """Keeps a picture of the state after every record."""

    def __init__(self) -> None:
        self.pictures: list[dict[str, object]] = []
        super().__init__()

    def record(self, event, found=None) -> object:
        reply = super().record(event, found)
        self.pictures.append(picture(self.state))
        return reply


def shown(moment) -> dict[str, object]:
    """A moment as a picture."""
    return picture(moment.state)


class Past(StateMachine):
    """At the end, the records go into a store, and its past is gone through."""

    def __init__(self) -> None:
        super().__init__()
        self.live = Watched()

    def teardown(self) -> None:
        super().teardown()
        wanted = dict(enumerate(self.live.pictures, 1))
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(playing, "PIECE_RECORDS", 9)
            patch.setattr(timeline, "PIECE_RECORDS", 6)
            root = asyncio.run(put(Path(folder) / "store", self.live))
            with read_store(root) as reader, Replay.of(reader, "user-42") as replay:
                assert (replay.seqs(), replay.damage) == (range(1, len(wanted) + 1), None)
                order = random.Random(len(wanted)).sample(sorted(wanted), min(len(wanted), 25))
                for seq in order:
                    assert shown(replay.at(seq=seq)) == wanted[seq]
                    if seq > 1:
                        assert shown(replay.step(-1)) == wanted[seq - 1]


class Sent(Window):
    """At the end, every request is made again from the store."""

    def teardown(self) -> None:
        super().teardown()
        live = self.live
        with tempfile.TemporaryDirectory() as folder:
            root = asyncio.run(put(Path(folder) / "store", live))
            with read_store(root) as reader, Replay.of(reader, "user-42", MODELS) as replay:
                asked = [seq for kind, _, seq, _ in live.records if kind == "requested"]
                assert replay.requests() == asked
                for seq in asked[-12:]:
                    made = replay.request(seq)
                    assert made.matches, made
                    path = {frame.id for frame in replay.at(seq=seq).state.table.path(made.request.head)}
                    for frame in list(path)[-3:]:
                        why = replay.why(frame, request=seq)
                        assert why.reason not in {"popped", "other_branch", "later", "pruned", "nothing_sent"}


FEW = settings(max_examples=8, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
Past.TestCase.settings = FEW
Sent.TestCase.settings = settings(FEW, max_examples=10, stateful_step_count=20)
TestPast = Past.TestCase
TestSent = Sent.TestCase
