"""The page docs/replay.md: its reasons, its examples, and the tests that it names."""

from __future__ import annotations

import re
from pathlib import Path

from session_actor import SessionService
from session_actor.replay import REASONS

from ...named_tests import missing_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")


def test_every_reason_is_explained():
    table = PAGE[PAGE.index("| reason |") :].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \| ", table, re.MULTILINE) == list(REASONS)


def test_the_tests_that_the_page_names_exist():
    assert missing_of(PAGE) == []


async def test_the_examples_run(folder, capsys):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        await session.configure(system="Be brief.", model="gpt-4o")
        await session.add_user("Hello")
        await session.build_request("openai_chat")
        await session.flush("written")
        known: dict[str, object] = {}
        for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
            exec(code, known)
        await known["look"](str(folder), "user-42")
        assert known["count"](str(folder)) == {"session_created": 1, "added": 1, "pushed": 1, "requested": 1}
    told = capsys.readouterr().out
    assert "the same" in told
    assert "frame 2: it is in the request, whole" in told
