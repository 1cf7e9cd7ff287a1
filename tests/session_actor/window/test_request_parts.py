"""Texts, names, arguments and media as providers take them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.blocks import Document, Image
from session_actor.requests import media
from session_actor.requests.texts import EMPTY, arguments_of, clean, visible, wire_name

any_text = st.text(st.characters(codec=None, categories=None))


@given(any_text)
def test_a_cleaned_text_can_be_sent_and_a_sound_one_is_left_as_it_is(text):
    once = clean(text)
    once.encode()
    assert clean(once) is once
    try:
        text.encode()
    except UnicodeEncodeError:
        assert len(clean(text)) <= len(text)
    else:
        assert clean(text) is text


def test_halves_of_a_pair_are_joined_and_a_lone_half_is_marked():
    assert clean("a\ud83d\ude00b\ud83d") == "a\U0001f600b\ufffd"


@given(any_text)
def test_a_visible_text_is_never_blank(text):
    assert visible(text).strip()
    assert visible(" \n") == EMPTY


@given(any_text)
def test_every_name_of_a_tool_fits_every_dialect(name):
    made = wire_name(name)
    assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", made)
    assert wire_name(made) == made


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("read_file", "read_file"),
        ("functions.read", "functions_read"),
        ("1st", "_1st"),
        ("", "_"),
        ("x" * 70, "x" * 64),
    ],
)
def test_names_change_as_little_as_they_must(name, made):
    assert wire_name(name) == made


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":[1,2.5,"x",null,{"b":true}]}', {"a": [1, 2.5, "x", None, {"b": True}]}),
        ('{"n":123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        ('{"a":NaN,"b":1e999,"c":"\\ud800"}', {"a": None, "b": None, "c": "\ufffd"}),
        ("[1]", {}),
        ('{"a":', {}),
        ('{"a":' * 300 + "1" + "}" * 300, {}),
        ("[" * 100_000, {}),
    ],
)
def test_arguments_are_an_object_that_can_be_sent(text, value):
    assert arguments_of(text) == value


PNG = Image(data=b"x", media_type="image/png")


@pytest.mark.parametrize(
    ("block", "carried_by"),
    [
        (PNG, "acrg"),
        (Image(data=b"x", media_type="IMAGE/PNG; charset=binary"), "acrg"),
        (Image(data=b"x", media_type="image/gif"), "acr"),
        (Image(data=b"x", media_type="image/heic"), "g"),
        (Image(data=b"", media_type="image/png"), ""),
        (Image(url="https://example.org/a.png"), "acrg"),
        (Image(url="gs://bucket/a.png"), "g"),
        (Image(url="data:image/png;base64,AAAA"), "acrg"),
        (Image(url="data:image/png;base64,A"), ""),
        (Image(file_id="f", dialect="anthropic"), "a"),
        (Image(file_id="f", dialect="openai_chat"), "r"),
        (Document(file_id="f", dialect="openai_responses"), "cr"),
        (Document(file_id="f"), "acrg"),
        (Document(data=b"x", media_type="application/pdf"), "acrg"),
        (Document(data=b"x", media_type="text/markdown"), "acrg"),
        (Document(data=b"x", media_type="application/ld+json"), "acrg"),
        (Document(data=b"x", media_type="application/msword"), "r"),
        (Document(data=b"x", media_type="application/zip"), ""),
        (Document(url="https://example.org/a.pdf"), "arg"),
        (Document(url="https://example.org/a.txt"), "rg"),
    ],
)
def test_each_dialect_carries_the_media_that_it_has_a_form_for(block, carried_by):
    names = {"a": "anthropic", "c": "openai_chat", "r": "openai_responses", "g": "gemini"}
    assert {short for short, name in names.items() if media.carries(name, block)} == set(carried_by)


def test_a_url_that_holds_its_data_is_unpacked():
    assert media.unpacked(Image(url="data:image/webp;base64,AAAA")) == Image(data=b"\0\0\0", media_type="image/webp")
    broken = Image(url="data:image/webp;base64,A")
    assert media.unpacked(broken) is broken
    assert media.unpacked(PNG) is PNG


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        (Image(url="https://example.org/a.WEBP?x=1.gif"), "image/webp"),
        (Image(url="https://example.org/a"), "image/jpeg"),
        (Document(file_id="f", name="a.md"), "text/markdown"),
        (Document(url="https://example.org/a"), "application/pdf"),
        (Document(url="https://example.org/a.pdf", media_type="Text/HTML; charset=utf-8"), "text/html"),
    ],
)
def test_the_type_of_media_is_what_it_says_or_what_its_name_tells(block, kind):
    assert media.media_type(block) == kind


def test_a_text_document_is_shown_with_its_name():
    assert media.as_text(Document(data=b"a\xff", media_type="text/plain", name="n.txt")) == "Document n.txt:\n\na\ufffd"
    assert media.as_text(Document(data=b"  ", media_type="text/plain")) == f"Document:\n\n{EMPTY}"
