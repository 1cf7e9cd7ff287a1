"""Markdown for people: all of a session, and nothing in it does anything."""

from __future__ import annotations

import io
import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from session_actor import SessionService
from session_actor.blocks import Document, Image, Native, Thinking, ToolCall
from session_actor.frames import Tool, Usage
from session_actor.replay import read_store
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
    assert "**failed** of `Bash`, `toolu_2`" in page
    assert "*Image* `image/png`, 70 bytes" in page
    assert "Compacted up to here" in page
    assert "*(stopped: `error`)*" in page
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
        "Tools: `ls`, `google_search`",
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


async def test_what_a_reader_asks_of_a_call_is_told():
    async with memory() as service:
        session = await service.session("s", create=True, metadata={"lang": "de"})
        edit = {"path": "a.py", "old": "x = 1\ny = 2", "new": "x\n" * 30}
        calls = [
            ToolCall("c", "edit", json.dumps(edit)),
            ToolCall("d", "run", "{}"),
            ToolCall("", "odd", '{"a":1,"a":2}'),
        ]
        await session.add_assistant(tool_calls=calls, stop_reason="max_tokens", usage=Usage(1_200, 30))
        await session.add_tool_result("c", "")
        page = await page_of(service, "s")

    assert "- tokens charged: 1,200 sent, 30 made" in page
    assert '```json\n{\n  "lang": "de"\n}\n```' in page
    assert '**calls** `edit`\n\n```json\n{\n  "path": "a.py"\n}\n```\n\n`old`:\n\n```\nx = 1\ny = 2\n```' in page
    assert "`new`:\n\n<details><summary>new: 31 lines, 60 characters</summary>" in page
    assert "**calls** `run` *(no result)*\n\n```json\n{}\n```" in page
    assert '```json\n{"a":1,"a":2}\n```' in page
    assert "**result** of `edit`, `c`\n\n*(nothing)*" in page
    assert "*(stopped: `max_tokens`)*" in page
    harmless(page)


async def test_what_a_document_and_a_block_of_the_providers_say_is_there_to_be_read():
    cited = {"type": "text", "text": "It is *3.1* <m>.", "citations": [{"cited_text": "3.1"}]}
    async with memory() as service:
        session = await service.session("s", create=True)
        await session.add_user([Document(data=b"12:00 3.1", media_type="text/plain", name="table <b>")])
        await session.add_user([Document(data=b"%PDF", media_type="application/pdf", name="t.pdf")])
        await session.add_assistant([Native("anthropic", None, cited)], stop_reason="end_turn")
        page = await page_of(service, "s")

    assert "*Document* `table <b>`, `text/plain`, 9 bytes\n\n```\n12:00 3.1\n```" in page
    assert "*Document* `t.pdf`, `application/pdf`, 4 bytes\n\n###" in page
    assert "It is *3.1* &lt;m&gt;.\n\n<details><summary>As given</summary>" in page
    assert "stopped" not in page
    harmless(page)


async def test_every_name_of_a_frame_and_what_was_pinned_is_told():
    async with memory() as service:
        session = await service.session("s", create=True)
        await session.push("a", pinned=True)
        await session.push("b")
        await session.pin(2)
        await session.checkpoint("one", 2)
        await session.checkpoint("two", 2)
        page = await page_of(service, "s")

    assert page.count("*Pinned*") == 2
    assert "*Checkpoint `one`*\n\n*Checkpoint `two`*" in page


async def test_a_damaged_session_says_so_on_its_page(tmp_path):
    folder, out = tmp_path / "conversations", io.BytesIO()
    async with SessionService.open(folder) as service:
        session = await service.session("s", create=True)
        for number in range(9):
            await session.push(f"q{number}")
    (journal,) = (folder / "journals").rglob("*.ndjson")
    journal.write_bytes(journal.read_bytes().replace(b'"q5"', b'"qX"'))
    with read_store(folder) as reader:
        await export_session(reader, "s", out, "markdown")

    assert "- **not whole**, its records are damaged: `" in out.getvalue().decode()
    assert "q4" in out.getvalue().decode()


async def test_no_content_makes_html_wherever_it_stands():
    async with memory() as service:
        session = await service.session(f"s {EVIL}", create=True, metadata={EVIL: EVIL})
        await session.configure(system=EVIL, tools=[Tool("x" + EVIL, EVIL, {})], model=EVIL)
        await session.push(EVIL, f"```{EVIL}\n{EVIL}\n```\n{EVIL}", assumptions=[EVIL], decisions=[EVIL])
        await session.add_reference(EVIL, source=EVIL)
        await session.add_user([Image(url=EVIL), Document(data=EVIL.encode(), media_type="text/" + EVIL, name=EVIL)])
        evil = {EVIL: EVIL, f"more {EVIL}": f"{EVIL}\n```\n" * 30, f"{EVIL} short": f"{EVIL}\n</details>"}
        await session.add_assistant(
            [Native("anthropic", None, {"type": EVIL, "text": EVIL, "cited": EVIL})],
            tool_calls=[ToolCall("x", EVIL, json.dumps(evil))],
            stop_reason=EVIL,
        )
        await session.add_tool_result("x", [Native("anthropic", None, {"type": EVIL, "text": EVIL})])
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
    assert page.count("alert(1)") > 70


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
