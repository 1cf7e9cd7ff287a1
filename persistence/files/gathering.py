"""Questions to a thread that are asked in one turn of the loop go to it together, and together the answers come.

A hundred sessions that wake at once cost a few changes between threads instead of two hundred; and while one thread
has Python, the other one waits for it after every system call.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar, cast

from session_actor.persistence.errors import StoreClosed

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from .disk_thread import DiskThread

GROUP: Final = 16
"""So many are answered in one go: those that come later, and the first answers, do not wait for all."""

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class _Answered(NamedTuple, Generic[Answer]):
    answer: Answer | None
    error: BaseException | None


class Gathering(Generic[Question, Answer]):
    """One kind of question to one thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        thread: DiskThread,
        answer: Callable[[list[Question]], list[Answer]],
    ) -> None:
        """`answer`: called in the thread with the questions of a group; when it raises, with each of them alone."""
        self._loop = loop
        self._thread = thread
        self._answer = answer
        self._asked: list[tuple[Question, asyncio.Future[Answer]]] = []

    async def ask(self, question: Question) -> Answer:
        """Wait for the answer, or raise its error. Cancelling gives up the wait. Raises `StoreClosed`, too."""
        future: asyncio.Future[Answer] = self._loop.create_future()
        if not self._asked:
            self._loop.call_soon(self._send)
        self._asked.append((question, future))
        return await future

    def _send(self) -> None:
        asked, self._asked = self._asked, []
        for first in range(0, len(asked), GROUP):
            group = asked[first : first + GROUP]
            futures = [future for _, future in group]
            try:
                self._thread.submit(
                    partial(self._answers, [question for question, _ in group]), partial(_deliver, futures)
                )
            except StoreClosed as error:
                _deliver(futures, [_Answered(None, StoreClosed(*error.args)) for _ in group], None)

    def _answers(self, questions: list[Question]) -> list[_Answered[Answer]]:
        try:
            return [_Answered(answer, None) for answer in self._answer(questions)]
        except Exception as error:  # noqa: BLE001 - it belongs to whoever asked
            if len(questions) == 1:
                return [_Answered(None, error)]
        return [answered for question in questions for answered in self._answers([question])]


def _deliver(
    futures: list[asyncio.Future[Answer]], answered: list[_Answered[Answer]] | None, error: BaseException | None
) -> None:
    for index, future in enumerate(futures):
        if future.done():  # whoever asked has given up
            continue
        found, why = (None, error) if answered is None else answered[index]
        if why is not None:
            future.set_exception(why)
        else:
            future.set_result(cast("Answer", found))
