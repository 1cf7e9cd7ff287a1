"""The breaker of one hook."""

from __future__ import annotations

from session_actor.hooks.breaker import REST_S, WINDOW_S, Breaker


def failed(breaker: Breaker, *at_s: float) -> list[bool]:
    return [breaker.fail(now_s, decides=breaker.begin()) for now_s in at_s]


def test_three_failures_within_a_minute_open_it():
    breaker = Breaker()
    assert failed(breaker, 0.0, 30.0, 60.0) == [False, False, True]
    assert breaker.open
    assert breaker.wait_s(60.0) == REST_S


def test_three_failures_in_more_than_a_minute_do_not():
    breaker = Breaker()
    assert failed(breaker, 0.0, 30.0, WINDOW_S + 0.1, WINDOW_S + 30.2) == [False] * 4
    assert not breaker.open


def test_a_success_in_between_starts_the_count_again():
    breaker = Breaker()
    failed(breaker, 0.0, 1.0)
    assert breaker.succeed() is False
    assert failed(breaker, 2.0, 3.0, 4.0) == [False, False, True]


def test_after_a_rest_one_try_is_let_through_and_decides():
    breaker = Breaker()
    failed(breaker, 0.0, 0.0, 0.0)
    assert breaker.wait_s(REST_S - 1) == 1.0
    assert breaker.wait_s(REST_S) == 0.0
    assert breaker.begin() is True
    assert breaker.wait_s(REST_S) is None
    assert breaker.fail(REST_S, decides=True) is False
    assert breaker.wait_s(REST_S) == REST_S
    assert breaker.begin() is True
    assert breaker.succeed() is True
    assert breaker.wait_s(REST_S) == 0.0
    assert breaker.begin() is False


def test_a_try_that_began_before_it_opened_decides_nothing():
    breaker = Breaker()
    early = [breaker.begin() for _ in range(4)]
    assert [breaker.fail(0.0, decides=decides) for decides in early] == [False, False, True, False]
    assert breaker.wait_s(0.0) == REST_S


def test_a_try_that_ended_without_a_word_leaves_the_decision_to_another():
    breaker = Breaker()
    failed(breaker, 0.0, 0.0, 0.0)
    breaker.begin()
    breaker.leave()
    assert breaker.wait_s(REST_S) == 0.0
