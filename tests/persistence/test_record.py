"""Lines of journals and logs: what is written is read back, and nothing damaged passes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.persistence.errors import LineDamaged, RecordTooLarge
from session_actor.persistence.format.record import (
    MAX_RECORD_BYTES,
    NO_SUM,
    SUFFIX_BYTES,
    Record,
    close_line,
    decode_record,
    decode_records,
    encode_log_line,
    encode_owner,
    encode_record,
    encode_watermark,
    parse_time,
    times_of,
    verify,
)
from session_actor.persistence.format.values import dumps, loads

from .log_lines import decode_log_line, decode_log_lines

AT_US = 1_769_851_800_000_001  # 2026-01-31T09:30:00.000001Z
FIRST_US = -62_135_596_800_000_000
LAST_US = 253_402_300_799_999_999

texts = st.text(alphabet=st.characters(exclude_categories=[]))  # lone surrogates and NUL included
ids = st.text(alphabet=st.characters(exclude_categories=[]), min_size=1, max_size=40)
kinds = st.from_regex(r"[a-z][a-z0-9_.\-]{0,20}", fullmatch=True)
times = st.integers(FIRST_US, LAST_US)


def a_record(seq: int = 12, data: bytes = b'{"text":"hello"}', prev: str = "9ae0daaf") -> bytes:
    return encode_record(seq, AT_US, "push", data, prev)[0]


def lines() -> dict[str, bytes]:
    """One line of each form."""
    record = a_record()
    return {
        "record": record,
        "log line": encode_log_line(4096, "1c291ca3", encode_owner("user-42", "5e0f5e0f5e0f5e0f"), record)[0],
        "watermark": encode_watermark(4096, "1c291ca3")[0],
    }


@given(seq=st.integers(1, 2**63 - 1), at_us=times, kind=kinds, text=texts)
def test_a_record_is_read_back_as_it_was_written(seq, at_us, kind, text):
    data = dumps(text)
    line, total = encode_record(seq, at_us, kind, data, "9ae0daaf")
    record = decode_record(line)
    assert (record.seq, record.at_us, record.kind, record.prev, record.sum) == (seq, at_us, kind, "9ae0daaf", total)
    assert loads(bytes(record.data)) == text
    assert line.count(b"\n") == 1


@given(session=ids, synced=st.integers(0, 2**40), text=texts)
def test_a_log_line_holds_the_record_verbatim_and_names_its_session(session, synced, text):
    record = a_record(data=dumps(text))
    line, total = encode_log_line(synced, "1c291ca3", encode_owner(session, "5e0f"), record)
    read = decode_log_line(line)
    assert (read.w, read.p, read.session, read.birth, read.sum) == (synced, "1c291ca3", session, "5e0f", total)
    assert bytes(read.r) + b"\n" == record
    assert line.count(b"\n") == 1


def test_a_watermark_line_has_neither_session_nor_record():
    read = decode_log_line(encode_watermark(4096, "1c291ca3")[0])
    assert (read.w, read.p, read.session, read.birth, bytes(read.r)) == (4096, "1c291ca3", "", "", b"")


def test_many_lines_are_read_in_one_call():
    records = [a_record(seq, b"%d" % seq) for seq in range(1, 6)]
    owner = encode_owner("user-42", "5e0f")
    log = [encode_log_line(0, NO_SUM, owner, record)[0] for record in records] + [encode_watermark(9, NO_SUM)[0]]
    assert decode_records(b"".join(records)) == [decode_record(record) for record in records]
    assert decode_log_lines(b"".join(log)) == [decode_log_line(line) for line in log]


@pytest.mark.parametrize("form", ["record", "log line", "watermark"])
def test_every_truncation_of_a_line_is_found(form):
    line = lines()[form]
    assert verify(line)
    assert [length for length in range(len(line)) if verify(line[:length])] == []
    assert [start for start in range(1, len(line)) if verify(line[start:])] == []


@pytest.mark.parametrize("form", ["record", "log line", "watermark"])
def test_every_flip_of_one_bit_of_a_line_is_found(form):
    line = lines()[form]
    passed = []
    for index in range(len(line)):
        for bit in range(8):
            flipped = bytearray(line)
            flipped[index] ^= 1 << bit
            if verify(bytes(flipped)):
                passed.append((index, bit))
    assert passed == []


@pytest.mark.parametrize("change", [bytes.upper, lambda total: total.lstrip(b"0").rjust(8), lambda _: b"0x" + b"0" * 6])
def test_a_sum_written_in_another_way_is_not_the_sum(change):
    bodies = (b'{"n":%d' % number for number in range(100_000))
    line = next(line for line, total in map(close_line, bodies) if total.startswith("0") and total.upper() != total)
    total = line[-11:-3]
    assert verify(line)
    assert not verify(line[:-11] + change(total) + line[-3:])


@given(st.binary(max_size=60))
def test_bytes_that_are_no_line_are_refused_and_nothing_else_is_raised(garbage):
    for decode in (decode_record, decode_log_line):
        with pytest.raises(LineDamaged):
            decode(garbage)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"seq":1',
        b"{" + b"[" * 100_000,
        b'{"seq":"1","at":"x","kind":"k","data":1,"prev":"0"',
        b'{"seq":1,"at":"x","kind":"k","data":' + b"[" * 100_000 + b"]" * 100_000 + b',"prev":"0"',
        b'{"w":1,"p":2',
        b'{"w":1,"p":"0","s":7,"birth":"b","r":{}',
        b'{"w":1,"p":"0","s":{"$esc":1},"birth":"b","r":{}',
    ],
    ids=lambda body: body[:30].decode(),
)
def test_a_line_whose_sum_fits_but_whose_form_does_not_is_refused(body):
    line = close_line(body)[0]
    for decode in (decode_record, decode_log_line):
        with pytest.raises(LineDamaged):
            decode(line)


def test_a_suffix_alone_is_no_line():
    line = close_line(b"")[0]
    assert len(line) == SUFFIX_BYTES
    assert not verify(line)
    assert not verify(b"")
    assert not verify(b"\x00" * 100)


@given(times)
def test_times_are_exact_to_the_microsecond(at_us):
    record = decode_record(encode_record(1, at_us, "push", b"1", NO_SUM)[0])
    assert record.at_us == at_us
    assert len(record.at) == len("2026-01-31T09:30:00.000001Z")


@pytest.mark.parametrize("at_us", [FIRST_US - 1, LAST_US + 1])
def test_a_time_outside_the_years_1_to_9999_is_refused(at_us):
    with pytest.raises(ValueError, match="years 1 to 9999"):
        encode_record(1, at_us, "push", b"1", NO_SUM)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-31T09:30:00Z",
        "2026-01-31T09:30:00.00001Z",
        "2026-01-31T09:30:00.000001+",
        "2026-01-31 09:30:00.000001Z",
        "2026-13-31T09:30:00.000001Z",
        "2026-01-31T09:30:00.+00001Z",
        "2026-01-31T09:30:00.00000\u0661Z",
        "2026-W05-6T09:30:00.000001Z",
    ],
)
def test_a_time_of_another_form_is_damage(text):
    with pytest.raises(LineDamaged):
        parse_time(text)
    with pytest.raises(LineDamaged):
        times_of([timed("2026-01-31T09:30:00.000001Z"), timed(text)])


def timed(text: str) -> Record:
    return Record(1, text, "push", msgspec.Raw(b"1"), NO_SUM, NO_SUM)


@given(st.lists(times, max_size=5))
def test_many_times_are_read_as_each_by_itself(several):
    records = [decode_record(encode_record(1, at_us, "push", b"1", NO_SUM)[0]) for at_us in several]
    assert times_of(records) == several


def test_two_times_that_only_together_have_the_right_length_are_damage():
    whole = "2026-01-31T09:30:00.000001Z"
    with pytest.raises(LineDamaged):
        times_of([timed(whole + whole[:1]), timed(whole[1:])])


@pytest.mark.parametrize("kind", ["", "Push", "1", 'a"b', "a b", "a" * 65, "ä", "a\n"])
def test_an_unusable_kind_is_refused(kind):
    with pytest.raises(ValueError, match="a kind is"):
        encode_record(1, AT_US, kind, b"1", NO_SUM)


def test_a_record_over_the_cap_is_refused_with_both_sizes():
    data = b'"' + b"x" * (MAX_RECORD_BYTES - 1) + b'"'
    with pytest.raises(RecordTooLarge) as caught:
        encode_record(1, AT_US, "push", data, NO_SUM)
    assert (caught.value.size_bytes, caught.value.limit_bytes) == (MAX_RECORD_BYTES + 1, MAX_RECORD_BYTES)


def test_the_text_of_a_record_shows_no_content():
    secret = "what the user said"
    record = decode_record(a_record(data=dumps(secret)))
    line = decode_log_line(encode_log_line(0, NO_SUM, encode_owner("user-42", "5e0f"), a_record(data=dumps(secret)))[0])
    assert secret not in repr(record)
    assert secret not in repr(line)
    assert "seq=12" in repr(record)


def test_the_json_of_a_line_is_plain_json_for_any_other_reader():
    assert msgspec.json.decode(lines()["record"]) == {
        "seq": 12,
        "at": "2026-01-31T09:30:00.000001Z",
        "kind": "push",
        "data": {"text": "hello"},
        "prev": "9ae0daaf",
        "sum": lines()["record"][-11:-3].decode(),
    }
