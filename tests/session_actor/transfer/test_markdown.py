"""Markdown for people: all of a session, and nothing in it does anything."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from session_actor.blocks import Image, Thinking, ToolCall
from session_actor.frames import Tool
from session_actor.transfer.exporting import export_session
from session_actor.transfer.markdown_text import code, fenced, folded, plain, prose, shown

from .test_export import everything
from .transferring import SAMPLES, imported, memory

EVIL = "<script>alert(1)</script> <img src=x onerror=a> [a](javascript:b) ![c](http://d) &lt; \x1b[31m \u202e"
READER = MarkdownIt("gfm-like", {"html": True, "linkify": False})


async def page_of(service, session_id: str) -> str:
    out = io.BytesIO()
    await export_session(service, session_id, out, "markdown")
    return out.getvalue().decode()


def harmless(page: str) -> list[str]:
    """A reader makes of it no HTML but ours, no link and no image; returns the texts of its headings."""
    headings: list[str] = []
    tokens = READER.parse(page)
    for place, token in enumerate(tokens):
        for inner in (token, *(token.children or ())):
            assert inner.type not in {"link_open", "image"}, inner.content
            if inner.type in {"html_block", "html_inline"}:
                html = re.sub(r"<summary>[^<>]*</summary>", "", inner.content)
                assert re.sub(r"</?details>|\s", "", html) == ""
        if token.type == "heading_open":
            headings.append(tokens[place + 1].content)
    assert not set(page) & set(map(chr, (*range(9), *range(11, 32), 127, 0x202E)))
    return headings


async def test_branches_are_written_from_where_they_leave():
    async with memory() as service:
        report, _ = await imported(service, SAMPLES / "claude_code.jsonl")
        page = await page_of(service, report.sessions[0])

    heads = [line for line in page.splitlines() if line.startswith("## ")]
    assert heads == ["## Branch `main`", "## Branch `b9`", "## Branch `side-de30ae5d`"]
    assert page.count("Fix it with a filter.") == page.count("The gauge jumps") == 1
    assert "## Branch `b9`\n\nGoes on from frame 6.\n\n### 7 · user · 2026-03-03 09:00:12 UTC" in page
    assert "**calls** `Read`" in page
    assert '"file_path": "gauge.py"' in page
    assert "**failed** of `toolu_2`" in page
    assert "*Image* `image/png`, 70 bytes" in page
    assert "Compacted up to here" in page
    assert "*(stopped: error)*" in page
    harmless(page)


async def test_everything_of_a_session_is_there():
    async with memory() as service:
        await everything(service)
        page = await page_of(service, "user-42")

    for part in (
        "# Conversation `user-42`",
        "- branch `idea` (attached): frame 8",
        "- checkpoint `there \ufffd`: frame 5",
        "## Taken back",
        "- assumed: `the disk is \ufffd large`",
        "- decided: `go`",
        "- modified: `a.py`",
        "- held: `approval`",
        "- retracted: `the disk is \ufffd large`",
        "Tools: `ls`",
        "<details><summary>Thinking</summary>",
        "Not trusted text from `https://example.org`:",
        '"n": Infinity',
    ):
        assert part in page
    harmless(page)


async def test_a_long_result_is_folded():
    async with memory() as service:
        session = await service.session("s", create=True)
        await session.add_assistant(tool_calls=[ToolCall("c", "cat"), ToolCall("d", "cat")])
        await session.add_tool_result("c", "line\n" * 500)
        await session.add_tool_result("d", "short")
        page = await page_of(service, "s")

    assert "<details><summary>Result: 501 lines, 2,500 characters</summary>\n\n```\nline\n" in page
    assert "\n```\nshort\n```\n" in page
    assert page.count("line\n") == 500


async def test_no_content_makes_html_wherever_it_stands():
    async with memory() as service:
        session = await service.session(f"s {EVIL}", create=True)
        await session.configure(system=EVIL, tools=[Tool("x" + EVIL, EVIL, {})], model=EVIL)
        await session.push(EVIL, f"```{EVIL}\n{EVIL}\n```\n{EVIL}", assumptions=[EVIL], decisions=[EVIL])
        await session.add_reference(EVIL, source=EVIL)
        await session.add_user([Image(url=EVIL)])
        await session.add_assistant(
            [Thinking(f"</summary>{EVIL}"), f"`{EVIL}"], tool_calls=[ToolCall(EVIL, EVIL, EVIL)], model=EVIL,
            stop_reason="error",
        )  # fmt: skip
        await session.hold_call(EVIL, EVIL)
        await session.add_tool_result(EVIL, f"````\n</details>{EVIL}\n```")
        await session.note_artifact(EVIL)
        await session.checkpoint(EVIL)
        await session.fork(1, branch=f"b{EVIL}", user_input=EVIL)
        page = await page_of(service, session.id)

    assert len(harmless(page)) == sum(line.startswith("#") for line in page.splitlines())
    assert page.count("alert(1)") > 15


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("plain *and* **bold**\n- a\n- b", "plain *and* **bold**\n- a\n- b"),
        ("a <b> & [c](d)", "a &lt;b&gt; &amp; \\[c\\](d)"),
        ("use `a[0]` and ``b`c``", "use ``` a[0] ``` and ``` b`c ```"),
        ("one ` alone <i>", "one \\` alone &lt;i&gt;"),
        ("# not a title\n=====", "\\# not a title\n\\====="),
        ("text\n---", "text\n\\---"),
        ("- # no title\n2) ## nor this", "- \\# no title\n2) \\## nor this"),
        ("* + a\n- -\tb", "* + a\n- -\tb"),
        ("see:\n```python\na < b\n```\nend", "see:\n\n```python\na < b\n```\n\nend"),
        ("~~~\nit never ends", "```\nit never ends\n```"),
        ("````\n```\n````", "````\n```\n````"),
        ("half \ud83c", "half \ufffd"),
        ("a\r\nb\x00", "a\nb\u2400"),
    ],
)
def test_prose_keeps_what_does_no_harm(text: str, page: str):
    assert prose(text) == page


@given(st.text(alphabet=st.sampled_from(list("`~<>[]()!&\\#=- \n\tab")), max_size=60))
@example("```\n<a>")
@example("- a\n- # b\n  1. # c")
@example("`\n<a>`")
@example("``` `\n<a>\n```")
def test_whatever_is_said_is_harmless(text: str):
    said = "\n\n".join([prose(text), code(text), fenced(text), folded("x", fenced(text)), "## end"])

    assert harmless(said) == ["end"]
    assert "<" not in plain(text)


@given(st.text(max_size=60))
def test_a_fence_holds_a_text_as_it_is(text: str):
    made = fenced(text)
    ticks = made.split("\n", 1)[0]

    assert made == f"{ticks}\n{shown(text)}\n{ticks}"
    assert ticks not in shown(text)
