"""The blocks of Anthropic's messages, each by itself.

Sources: API reference "Create a Message" (content blocks, media types, image and document sources); docs "Handle tool
calls" (a result holds text, images, documents, search results), "Thinking" (signatures are sent back as they came); and
what the API answers: "server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'"
(github.com/ding113/claude-code-hub/issues/470), "all content must be type 'text' if 'is_error' is true"
(github.com/vellum-ai/vellum-assistant/pull/18387).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from . import media, tools
from .problems import as_mapping, named

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from .anthropic_whole import Whole
    from .problems import Problems

SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})
SERVER_RESULTS: Final = frozenset({
    "advisor_tool_result", "bash_code_execution_tool_result", "code_execution_tool_result", "mcp_tool_result",
    "text_editor_code_execution_tool_result", "tool_search_tool_result", "web_fetch_tool_result",
    "web_search_tool_result",
})  # fmt: skip
THINKING: Final = frozenset({"thinking", "redacted_thinking"})
IN_USER: Final = frozenset({"text", "image", "document", "search_result", "tool_result", "container_upload"})
IN_ASSISTANT: Final = (
    frozenset({"text", "tool_use", "compaction", "container_upload", "fallback", "mcp_tool_listing"})
    | THINKING
    | SERVER_CALLS
    | SERVER_RESULTS
)
IN_RESULT: Final = frozenset({"text", "image", "document", "search_result", "tool_reference", "browser_state"})
CALL_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SERVER_ID: Final = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_CALL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_LONGEST_IMAGE: Final = 10 << 20
"""In base64 (github.com/kolega-ai/kolega-code/pull/354; until 2026 it was half of that)."""
_PDF: Final = frozenset({"application/pdf"})
_PLAIN: Final = frozenset({"text/plain"})


def content(
    problems: Problems, whole: Whole, path: str, value: object, allowed: Collection[str]
) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Check a content, a text or a list of blocks of the `allowed` types; return (path, type, block) of each."""
    if isinstance(value, str):
        problems.text(path, value, blank=False)
        return []
    found: list[tuple[str, str, Mapping[str, Any]]] = []
    for place, item in enumerate(problems.sequence(path, value) or ()):
        where = f"{path}[{place}]"
        block = as_mapping(item)
        kind = None if block is None else block.get("type")
        if block is None:
            problems.add(where, "type", f"must be an object, got {named(item)}")
        elif not isinstance(kind, str) or kind not in allowed:
            problems.add(where, "unknown", f"is of type {named(kind)}, which cannot stand here")
        else:
            found.append((where, kind, block))
            _block(problems, whole, where, kind, block)
    return found


def _block(problems: Problems, whole: Whole, path: str, kind: str, block: Mapping[str, Any]) -> None:
    whole.cache.breakpoint(path, block, allowed=kind not in THINKING)
    whole.block(path, kind, block)
    known = _KEYS.get(kind)
    if known is not None:
        for key in block:
            if key not in known:
                problems.add(path, "unknown", f"has the key {named(key)}, which a {kind} block does not have")
    look = _CHECKS.get(kind)
    if look is not None:
        look(problems, whole, path, block)
    elif kind in SERVER_CALLS | SERVER_RESULTS:
        form = CALL_ID if kind.startswith("mcp_") else SERVER_ID
        _call_id(problems, path, block, "id" if kind in SERVER_CALLS else "tool_use_id", form)


def _text(problems: Problems, _whole: Whole, path: str, block: Mapping[str, Any]) -> None:
    problems.required_text(path, block, "text", blank=False)


def _thinking(problems: Problems, _whole: Whole, path: str, block: Mapping[str, Any]) -> None:
    """Its text may be empty: what was thought is then in the signature alone."""
    text = block.get("thinking")
    if not isinstance(text, str):
        problems.add(f"{path}.thinking", "type", f"must be a str, got {named(text)}")
    signature = block.get("signature")
    if not isinstance(signature, str) or not signature:
        problems.add(f"{path}.signature", "signature", "must be the one that the thinking came with")


def _redacted(problems: Problems, _whole: Whole, path: str, block: Mapping[str, Any]) -> None:
    problems.required_text(path, block, "data")


def _tool_use(problems: Problems, _whole: Whole, path: str, block: Mapping[str, Any]) -> None:
    _call_id(problems, path, block, "id")
    tools.tool_name(problems, path, block, _CALL_NAME)
    if problems.required(path, block, "input") is not None:
        problems.free_object(f"{path}.input", block["input"], "arguments")


def _tool_result(problems: Problems, whole: Whole, path: str, block: Mapping[str, Any]) -> None:
    _call_id(problems, path, block, "tool_use_id")
    if block.get("content") not in (None, ""):  # without one it says that there is nothing to say
        found = content(problems, whole, f"{path}.content", block["content"], IN_RESULT)
        if block.get("is_error") is True:
            for place, kind, _ in found:
                if kind != "text":
                    problems.add(place, "unknown", f"is of type {named(kind)}: a result that is an error holds texts")
    if not isinstance(block.get("is_error", False), bool | None):
        problems.add(f"{path}.is_error", "type", f"must be a bool, got {named(block['is_error'])}")


def _call_id(
    problems: Problems, path: str, block: Mapping[str, Any], key: str, form: re.Pattern[str] = CALL_ID
) -> None:
    call_id = problems.required_text(path, block, key)
    if call_id is not None and not form.fullmatch(call_id):
        problems.add(f"{path}.{key}", "call-id", f"{named(call_id)} must match {form.pattern}")


_Check: TypeAlias = "Callable[[Problems, Whole, str, Mapping[str, Any]], None]"


def _source(problems: Problems, whole: Whole, path: str, block: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
    """Check the one source of media. `kinds`: the types of source, and the key that each has."""
    value = problems.required(path, block, "source")
    if value is None:
        return
    place = f"{path}.source"
    source = problems.mapping(place, value)
    if source is None:
        return
    kind = source.get("type")
    if not isinstance(kind, str) or kind not in kinds:
        problems.add(place, "unknown", f"is of type {named(kind)}; it must be one of {', '.join(kinds)}")
        return
    given = media.one_source(problems, place, source, dict.fromkeys(kinds.values()))
    if given is None:
        return
    if given != kinds[kind]:
        problems.add(place, "source", f"is of type {named(kind)} and has {named(given)}, not {kinds[kind]!r}")
        return
    _SOURCES[kind](problems, whole, place, source)


def _image(problems: Problems, whole: Whole, path: str, block: Mapping[str, Any]) -> None:
    _source(problems, whole, path, block, {"base64": "data", "url": "url", "file": "file_id"})
    source = as_mapping(block.get("source"))
    if source is not None and source.get("type") == "base64":
        media.media_type(problems, f"{path}.source.media_type", source.get("media_type"), media.WEB_IMAGES)
        data = source.get("data")
        if isinstance(data, str) and len(data) > _LONGEST_IMAGE:
            problems.add(f"{path}.source.data", "limit", f"must be at most {_LONGEST_IMAGE} characters long")


def _document(problems: Problems, whole: Whole, path: str, block: Mapping[str, Any]) -> None:
    kinds = {"base64": "data", "text": "data", "content": "content", "url": "url", "file": "file_id"}
    _source(problems, whole, path, block, kinds)
    source = as_mapping(block.get("source"))
    if source is not None and source.get("type") in ("base64", "text"):
        types = _PDF if source["type"] == "base64" else _PLAIN
        media.media_type(problems, f"{path}.source.media_type", source.get("media_type"), types)


def _search_result(problems: Problems, whole: Whole, path: str, block: Mapping[str, Any]) -> None:
    problems.required_text(path, block, "source")
    problems.required_text(path, block, "title")
    if problems.required(path, block, "content") is not None:
        content(problems, whole, f"{path}.content", block["content"], ("text",))


def _from_base64(problems: Problems, _whole: Whole, path: str, source: Mapping[str, Any]) -> None:
    media.base64_text(problems, f"{path}.data", source["data"])


def _from_text(problems: Problems, _whole: Whole, path: str, source: Mapping[str, Any]) -> None:
    problems.text(f"{path}.data", source["data"], blank=False)


def _from_content(problems: Problems, whole: Whole, path: str, source: Mapping[str, Any]) -> None:
    content(problems, whole, f"{path}.content", source["content"], ("text", "image"))


def _from_url(problems: Problems, _whole: Whole, path: str, source: Mapping[str, Any]) -> None:
    media.web_address(problems, f"{path}.url", source["url"])


def _from_file(problems: Problems, _whole: Whole, path: str, source: Mapping[str, Any]) -> None:
    problems.text(f"{path}.file_id", source["file_id"], blank=False)


_SOURCES: Final[dict[str, _Check]] = {
    "base64": _from_base64,
    "text": _from_text,
    "content": _from_content,
    "url": _from_url,
    "file": _from_file,
}
_CHECKS: Final[dict[str, _Check]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
}
# "Extra inputs are not permitted": the API refuses keys that it does not know.
_KEYS: Final[dict[str, frozenset[str]]] = {
    "text": frozenset({"type", "text", "citations", "cache_control"}),
    "image": frozenset({"type", "source", "transformations", "cache_control"}),
    "document": frozenset({"type", "source", "title", "context", "citations", "cache_control"}),
    "thinking": frozenset({"type", "thinking", "signature", "cache_control"}),
    "redacted_thinking": frozenset({"type", "data", "cache_control"}),
    "tool_use": frozenset({"type", "id", "name", "input", "caller", "toolset_name", "cache_control"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "toolset_name", "cache_control"}),
}
