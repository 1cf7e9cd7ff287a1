"""Import and export: transcripts of others and our own export into sessions, and sessions out of a store."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .errors import SessionChanged as SessionChanged
    from .errors import SessionDiverged as SessionDiverged
    from .errors import TranscriptUnreadable as TranscriptUnreadable
    from .errors import TransferError as TransferError
    from .exporting import export_session as export_session
    from .importing import ImportReport as ImportReport
    from .importing import import_transcript as import_transcript
    from .notes import NotWhole as NotWhole
    from .source import SessionReader as SessionReader

_HOMES: Final = {
    "ImportReport": ".importing",
    "NotWhole": ".notes",
    "SessionChanged": ".errors",
    "SessionDiverged": ".errors",
    "SessionReader": ".source",
    "TranscriptUnreadable": ".errors",
    "TransferError": ".errors",
    "export_session": ".exporting",
    "import_transcript": ".importing",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - one table, above, is public  # pyright: ignore[reportUnsupportedDunderAll]


if not TYPE_CHECKING:  # a type checker that saw it would take any name for one of this module

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(home, __name__), name)
