"""Whose turn it is in Gemini's contents, and whether every function call is answered.

Sources: docs "Function calling" (all responses of a turn in the next content, matched by id when there are ids),
"Thought signatures" (from Gemini 3 on, in the current turn, the first call of each step has one); and what the API
answers: "Please ensure that the number of function response parts is equal to the number of function call parts of the
function call turn" (github.com/google-gemini/gemini-cli/issues/3814), "Please ensure that function call turn comes
immediately after a user turn or after a function response turn".
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from .gemini_parts import part
from .problems import named

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping, Sequence

    from .gemini_parts import Part
    from .problems import Problems

_RESPONDERS: Final = ("tool", "function")  # other words for a user's turn of nothing but responses
_ROLES: Final = ("user", "model", *_RESPONDERS)


class Turns:
    """The conversation up to a content."""

    def __init__(self, problems: Problems, name_form: re.Pattern[str], *, asks_signature: bool) -> None:
        """Nothing was said yet. `asks_signature`: the model refuses calls of the current turn that are not signed."""
        self._problems = problems
        self._name_form = name_form
        self._side: str | None = None
        self._path = "contents"
        self._calls: list[tuple[object, object]] = []  # of the turn before: id and name
        self._asks_signature = asks_signature
        self._unsigned: list[str] = []  # the paths of calls after the last thing that the user said

    def broken(self) -> None:
        """A content of no role at all stands here: the next one is compared with nothing."""
        self._side = "?"

    def content(
        self, path: str, content: Mapping[str, Any], *, alone: bool, paths: Sequence[str] | None = None
    ) -> None:
        """Check the next content; `alone`: there is no other, so that it needs no role. `paths`: of its parts."""
        role = content.get("role")
        if role is None and alone:
            role = "user"
        if role not in _ROLES:
            self._problems.add(f"{path}.role", "unknown", f"is {named(role)}; it must be 'user' or 'model'")
            self._side, self._path, self._calls = "?", path, []
            return
        of_model = role == "model"
        self._turn(path, "model" if of_model else "user")
        value = self._problems.required(path, content, "parts")
        listed = () if value is None else self._problems.sequence(f"{path}.parts", value) or ()
        parts = (
            part(
                self._problems,
                f"{path}.parts[{place}]" if paths is None else paths[place],
                item,
                self._name_form,
                of_model=of_model,
            )
            for place, item in enumerate(listed)
        )
        found = [checked for checked in parts if checked is not None]
        if of_model:
            self._called(path, [checked for checked in found if checked.kind == "function_call"])
            return
        self._responses(path, found)
        if any(checked.kind != "function_response" for checked in found):
            self._unsigned.clear()  # the user said something: only the calls after it must be signed
            if role in _RESPONDERS:
                self._problems.add(path, "unknown", f"is of role '{role}' and holds more than function responses")

    def close(self) -> None:
        """Nothing follows: the model can only go on after a user's turn."""
        for path in self._unsigned:
            self._problems.add(path, "signature", "the first call of a turn must have its thought_signature")
        if self._side == "model":
            self._problems.add(self._path, "last", "the last content must be a user's")
            self._unanswered(self._path)

    def _turn(self, path: str, side: str) -> None:
        if self._side is None and side != "user":
            self._problems.add(path, "first", "is of role 'model'; the first content must be a user's")
        elif side == self._side:
            self._problems.add(path, "alternate", "is of the same side as the content before: merge the two")
            if side == "model":
                self._unanswered(self._path)
        self._side, self._path = side, path

    def _unanswered(self, path: str) -> None:
        if self._calls:
            self._problems.add(
                path, "unanswered", f"has {len(self._calls)} function calls and no content after it that answers"
            )
        self._calls = []

    def _called(self, path: str, calls: list[Part]) -> None:
        """Remember the calls of a turn."""
        self._calls = [(call.inner.get("id"), call.inner.get("name")) for call in calls]
        if calls and self._asks_signature and not calls[0].signed:
            self._unsigned.append(calls[0].path)
        ids = Counter(call_id for call_id, _ in self._calls if isinstance(call_id, str))
        for call_id, times in ids.items():
            if times > 1:
                self._problems.add(path, "duplicate-id", f"{times} function calls have the id {named(call_id)}")

    def _responses(self, path: str, found: list[Part]) -> None:
        """Check that the responses stand first and are those of the calls before."""
        calls, self._calls = self._calls, []
        responses = [checked for checked in found if checked.kind == "function_response"]
        for place, response in enumerate(responses):
            if found[place] is not response:
                self._problems.add(response.path, "order", "a function response must stand before all other parts")
        if responses and not calls:
            self._problems.add(path, "no-call", "has function responses, and no function call in the content before")
        elif calls and not responses:
            self._problems.add(path, "unanswered", f"must answer the {len(calls)} function calls of the content before")
        elif len(responses) != len(calls):
            self._problems.add(
                path, "count", f"has {len(responses)} function responses for {len(calls)} function calls"
            )
        else:
            self._match(calls, responses)

    def _match(self, calls: list[tuple[object, object]], responses: list[Part]) -> None:
        """Find the call of each response: by its id, or the first one of its name that has none."""
        left = list(calls)
        for response in responses:
            call_id, name = response.inner.get("id"), response.inner.get("name")
            if (call_id, name) in left:
                left.remove((call_id, name))
            else:
                mine = f"{named(call_id)} " if isinstance(call_id, str) else ""
                self._problems.add(
                    response.path, "no-call", f"no open function call {mine}of {named(name)} in the content before"
                )
