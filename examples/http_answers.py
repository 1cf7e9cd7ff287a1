"""What a web server answers when session-actor refuses something: one handler for all of its errors, for Starlette.

    app = Starlette(…, exception_handlers={SessionActorError: failed})

FastAPI takes the same: `app.add_exception_handler(SessionActorError, failed)`. Without it they are answered with 500.

An `asyncio.TaskGroup`, as for tools that run side by side, raises them inside of an ExceptionGroup, which no handler of
`SessionActorError` sees. So do so around it:

    with ungrouped():
        async with asyncio.TaskGroup() as group:
            …
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from session_actor import (
    AssumptionUnknown,
    BacklogFull,
    BranchAttached,
    CallAlreadyAnswered,
    CallAmbiguous,
    CallTimeout,
    CallUnknown,
    CompactionUnknown,
    ContextOverflow,
    EmptyStack,
    FrameUnknown,
    FrameUnreadable,
    HandedOver,
    HeadMoved,
    HookUnknown,
    InsideHook,
    InvalidArgument,
    KeyConflict,
    LevelUnreachable,
    MailboxFull,
    MomentUnknown,
    NameTaken,
    NameUnknown,
    NotDurable,
    NothingToSend,
    PlanUsed,
    RecordsLost,
    RecordTooLarge,
    RequestForgotten,
    ServiceClosed,
    SessionActorError,
    SessionBusy,
    SessionChanged,
    SessionDeleted,
    SessionDiverged,
    SessionEnded,
    SessionExists,
    SessionNotFound,
    SessionNotQuarantined,
    StalePlan,
    StoreDegraded,
    SummaryRejected,
    TransferError,
    UnusableId,
    ValueNotStorable,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from starlette.requests import Request
    from starlette.responses import Response

STATUS: dict[type[SessionActorError], int] = {
    UnusableId: 400,
    InvalidArgument: 400,
    ValueNotStorable: 400,
    LevelUnreachable: 400,
    SessionNotFound: 404,
    SessionDeleted: 404,
    FrameUnknown: 404,
    NameUnknown: 404,
    CallUnknown: 404,
    CompactionUnknown: 404,
    AssumptionUnknown: 404,
    HookUnknown: 404,
    MomentUnknown: 404,
    InsideHook: 409,
    SessionBusy: 409,
    SessionExists: 409,
    SessionNotQuarantined: 409,
    HeadMoved: 409,
    NameTaken: 409,
    BranchAttached: 409,
    EmptyStack: 409,
    CallAmbiguous: 409,
    CallAlreadyAnswered: 409,
    RecordsLost: 409,
    NothingToSend: 409,
    RequestForgotten: 409,
    StalePlan: 409,
    SessionDiverged: 409,
    SessionChanged: 409,
    PlanUsed: 409,
    SessionEnded: 410,
    RecordTooLarge: 413,
    ContextOverflow: 413,
    KeyConflict: 422,
    SummaryRejected: 422,
    TransferError: 422,
    CallTimeout: 504,
}
"""Every other error is a 503."""

SOON = (
    BacklogFull,
    FrameUnreadable,
    HandedOver,
    MailboxFull,
    NotDurable,
    ServiceClosed,
    StoreDegraded,
)
"""These pass: the client is told to come again, with the same Idempotency-Key."""

RETRY_AFTER_S = 1


async def failed(_request: Request, error: Exception) -> Response:
    """Answer with the status that fits the error. What it says names ids and numbers, and nothing that was said."""
    headers = {"Retry-After": str(RETRY_AFTER_S)} if isinstance(error, SOON) else None
    return JSONResponse({"error": str(error)}, status_of(type(error)), headers)


@contextmanager
def ungrouped() -> Generator[None]:
    """Raise the first error of the library out of an ExceptionGroup that holds nothing else; others as they are."""
    try:
        yield
    except BaseExceptionGroup as group:
        ours, others = group.split(SessionActorError)
        if ours is None or others is not None:
            raise
        first: BaseException = ours
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from group


def status_of(error: type[Exception]) -> int:
    """Return the status of an error of this kind."""
    return next((status for kind, status in STATUS.items() if issubclass(error, kind)), 503)
