"""A file that takes its name only when all of it is there."""

from __future__ import annotations

import asyncio
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from session_actor.given.given_paths import must_be_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class NewFile:
    """An async context manager: the file to write to. At its end it replaces what was there; an error leaves that."""

    def __init__(self, path: str) -> None:
        """`path`: where it will be. A link stays, and what it names is replaced."""
        self._path = path
        self._target = ""
        self._unfinished = ""
        self._file: BinaryIO | None = None

    async def __aenter__(self) -> BinaryIO:
        """Make it, beside what it will replace. Raises InvalidArgument for what is no file, OSError."""
        await self._in_thread(self._open)
        return cast("BinaryIO", self._file)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Name it, or remove it. Raises OSError."""
        await self._in_thread(self._keep if kind is None else self._drop)

    async def _in_thread(self, step: Callable[[], None]) -> None:
        """A step off the loop. Whoever is cancelled meanwhile leaves nothing behind: it is done, and then undone."""
        job = asyncio.get_running_loop().run_in_executor(None, step)
        cancelled: asyncio.CancelledError | None = None
        while not job.done():
            try:
                await asyncio.wait([job])
            except asyncio.CancelledError as error:  # again and again, it may be: the step goes on all the same
                cancelled = error
        if cancelled is None:
            job.result()
            return
        job.exception()
        self._drop()
        raise cancelled

    def _open(self) -> None:
        self._target = os.path.realpath(self._path)
        must_be_file(self._target, "out")
        unfinished = f"{self._target}.{secrets.token_hex(4)}.part"
        try:
            self._file = cast("BinaryIO", Path(unfinished).open("xb"))  # noqa: SIM115 - closed by the steps below
        except OSError as error:
            error.filename = self._target  # what was asked for
            raise
        self._unfinished = unfinished
        try:
            with suppress(FileNotFoundError):
                os.fchmod(self._file.fileno(), stat.S_IMODE(Path(self._target).stat().st_mode))  # as what was there
        except BaseException:
            self._drop()
            raise

    def _keep(self) -> None:
        file = cast("BinaryIO", self._file)
        try:
            file.flush()
            os.fsync(file.fileno())
            file.close()
            Path(self._unfinished).replace(self._target)
            self._unfinished = ""
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        """Again: no effect."""
        if self._file is not None:
            with suppress(OSError):  # what it could not write is not wanted
                self._file.close()
        if self._unfinished:
            Path(self._unfinished).unlink(missing_ok=True)
            self._unfinished = ""
