"""What importing and exporting refuse."""

from __future__ import annotations

from session_actor.errors import InvalidArgument, Refused, SessionActorError
from session_actor.given.plain import shown


class TransferError(SessionActorError):
    """An import or an export that cannot go on."""


class TranscriptUnreadable(TransferError):
    """A file that is no transcript of the form that was asked for, or of none that is known."""

    def __init__(self, path: str, offset: int, why: str) -> None:
        """`offset`: the byte of the file where that was seen. `why`: what is wrong, and what to do."""
        super().__init__(f"{path}, byte {offset}: {why}")
        self.path = path
        self.offset = offset


class SessionDiverged(TransferError):
    """The session has other frames than the export that was to be added to it."""

    def __init__(self, session: str, frame: int, why: str) -> None:
        """`frame`: the first one that is another, or cannot be added."""
        super().__init__(
            f"frame {frame} of the export cannot be added to session {session!r}: {why}; "
            "import it under another session_id, where it is restored as it was"
        )
        self.session = session
        self.frame = frame


class UnfitFrame(TransferError):
    """A frame of an export that fits nowhere: its line counts as unread."""


class SessionChanged(Refused):
    """Somebody changed the session while a part of an import was on its way; nothing of that part was added."""

    def __init__(self, session: str) -> None:
        """`session`: its id."""
        super().__init__(
            f"session {session!r} was changed while it was imported into; what was added before stays: import again"
        )
        self.session = session


def unknown_form(form: object, forms: tuple[str, ...], what: str = "form") -> InvalidArgument:
    """The refusal of a form that is none."""
    return InvalidArgument(what, f"must be one of {', '.join(forms)}, got {shown(form)}")
