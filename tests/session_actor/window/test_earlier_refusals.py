"""Requests and refusals that an earlier version recorded, to the letter, mean today what they meant then."""

from __future__ import annotations

from typing import Any

import pytest

from session_actor.budget.readings import Failure, Key
from session_actor.commands import AddAssistant, AddResponse, AddUser, RequestFailed
from session_actor.errors import RecordUnreadable
from session_actor.events import Requested, decode_event
from session_actor.frames import Turn, Usage
from session_actor.server.cold import Shelf
from session_actor.server.snapshots import SnapshotUnusable, state_from
from session_actor.state.apply import apply
from session_actor.window.earlier import modern

from ..live import Archive
from .asked import Asked, settled

FIRST = (
    '{"quote":[["tiny","anthropic",1,0],0,12,54,1476,0,1530,1683,54,148,false,1.0],"allowance":2750,'
    '"max_output_tokens":1000,"hash":"ffd6cee2f29652168efb61ca1af2672d"}'
)
SECOND = (
    '{"quote":[["tiny","anthropic",1,0],1,12,54,601,0,1295,1425,107,60,false,1.9778431372549021],"allowance":2750,'
    '"max_output_tokens":1000,"hash":"c7fcb0e2162d11fb8d9a43f07eff7a60","made":{"number":1,"at":12,"cut":8,'
    '"allowance":2750}}'
)
RECORDS = [
    ("requested", FIRST),
    ("request_failed", '{"request":14,"too_long":true}'),
    ("requested", SECOND),
    ("request_failed", '{"request":16,"too_long":true}'),
]
"""A request of 1,530 tokens is refused, then one of 655, of which the factor makes 1,295."""

LEARNED = '"learned":[[],[["tiny","anthropic",4.621738314785374,null]]]'
SEALED = (
    '{"branches":[["main",12]],"checkpoints":[],"head":12,"attached":"main","next_id":13,"marks":[{"number":1,"at":12,'
    '"cut":8,"allowance":2750}],' + LEARNED + "}"
)
SNAPSHOT = (
    '{"version":1,"session":"user-42","created_at_us":1700000001000001,"next_id":13,"head":12,"attached":"main",'
    '"branches":[["main",12]],"usage":{},"marks":[{"number":1,"at":12,"cut":8,"allowance":2750}],"requests":[[14,'
    + FIRST
    + "],[16,"
    + SECOND
    + "]],"
    + LEARNED
    + "}"
)
KEY = Key("tiny", "anthropic", 1)


def lived() -> Asked:
    """The conversation of these records."""
    live = Asked(model="tiny")
    for _ in range(5):
        live.do(AddUser("why? " * 150))
        live.do(AddAssistant("so. " * 20))
    live.do(AddUser("and?"))
    return live


def take(live: Asked, kind: str, data: str) -> None:
    seq = live.state.seq + 1
    apply(live.state, decode_event(kind, data.encode()), seq, live.at_us)
    live.records.append((kind, data.encode(), seq, live.at_us))


def test_a_length_with_a_factor_is_read_without_it():
    event = decode_event("requested", SECOND.encode())
    assert isinstance(event, Requested)
    quote = event.quote
    assert (quote.tokens, quote.upper, quote.fixed_tokens) == (655, 720, 54)
    assert (quote.key, quote.view, quote.messages, quote.anchored) == (KEY, 1, 601, False)
    assert decode_event("requested", FIRST.encode()).quote.tokens == 1_530


def test_what_was_refused_is_not_sent_again_after_a_replay():
    live = lived()
    for kind, data in RECORDS:
        take(live, kind, data)
    assert live.state.learned.ceilings[0].tokens == int(655 * 0.8)
    request = live.ask("anthropic")
    assert request.input_tokens < 655
    live.save()
    assert live.again("anthropic", live.recovered()).input_tokens == request.input_tokens


def copied() -> Asked:
    live = lived()
    apply(live.state, decode_event("history_sealed", SEALED.encode()), live.state.seq + 1, live.at_us)
    return live


def snapped() -> Asked:
    live = lived()
    for kind, data in RECORDS:
        take(live, kind, data)
    shelf = Shelf("user-42", Archive(live.records))
    live.state = settled(state_from(SNAPSHOT.encode(), live.state.seq, shelf))
    return live


@pytest.mark.parametrize("made", [copied, snapped])
def test_what_a_model_was_known_to_refuse_is_known(made):
    live = made()
    assert live.state.learned.failures == (Failure("tiny", "anthropic", 4.621738314785374),)
    request = live.ask("anthropic")
    assert request.input_tokens <= 2_750 / 4.6
    assert live.asked.quote.key == KEY
    assert live.ask("openai_chat").input_tokens > request.input_tokens, "another dialect refused nothing"


def test_an_answer_measures_what_the_factor_guessed():
    live = copied()
    request = live.ask("anthropic")
    turn = Turn("assistant", (), Usage(input_tokens=request.input_tokens, output_tokens=1), "tiny", "anthropic")
    live.do(AddResponse(turn, request.seq))
    assert live.state.learned.failures == ()


def test_a_ceiling_of_earlier_is_kept_until_a_longer_request_is_answered():
    live = lived()
    sealed = SEALED.replace("4.621738314785374,null", "1.0,700")
    apply(live.state, decode_event("history_sealed", sealed.encode()), live.state.seq + 1, live.at_us)
    request = live.ask("anthropic")
    assert request.input_tokens <= 700
    live.do(RequestFailed(request.seq))
    assert live.state.learned.failures == (Failure("tiny", "anthropic", 1.0, 700),)
    assert live.ask("anthropic").input_tokens < request.input_tokens


@pytest.mark.parametrize(
    "data",
    [
        "[]",
        "{",
        '{"quote":[1,2,3]}',
        '{"learned":[[],[[]]]}',
        '{"requests":[[1]]}',
        '{"requests":7}',
        '{"learned":[1,[2]]}',
    ],
)
def test_what_is_no_record_of_earlier_stays_as_it_is(data: Any):
    assert modern(data.encode()) in {data.encode(), data.replace(" ", "").encode()}
    with pytest.raises(RecordUnreadable):
        decode_event("history_sealed", data.encode())
    with pytest.raises(SnapshotUnusable):
        state_from(data.encode(), 1, Shelf("user-42", Archive([])))
