"""What the doctor looks at on a machine: Python, packages, extras, limits, the clock."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import shutil
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Final

from .output import size
from .store_lines import DoctorCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON: Final = (3, 11)
CORE: Final = ("anyio", "orjson", "aiofiles", "structlog", "msgspec")
EXTRAS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "cli": (("click", "rich"), "the commands"),
    "otel": (("opentelemetry-api",), "the OpenTelemetry bridge"),
    "exact": (("quicktok-v1",), "exact counting of tokens"),
}
"""The packages of each extra, and what it is for."""
_FILES: Final = 1024
_OLD_S: Final = 1_735_689_600
"""The start of 2025: no clock that is right shows less."""
_TEMPORARY_BYTES: Final = 64 * 1024 * 1024


def found(check: str, verdict: str, what: str, advice: str = "") -> DoctorCheck:
    """One finding."""
    return DoctorCheck(check=check, verdict=verdict, what=what, advice=advice)


def machine() -> Iterator[DoctorCheck]:
    """All checks that need no store."""
    yield _python()
    yield _system()
    yield from _packages()
    yield from _extras()
    yield _open_files()
    yield _clock()
    yield _temporary()


def _python() -> DoctorCheck:
    told = f"{platform.python_implementation()} {platform.python_version()}"
    if sys.version_info[:2] < PYTHON:
        return found("python", "problem", told, "use Python 3.11 or newer")
    return found("python", "ok", told)


def _system() -> DoctorCheck:
    told = f"{platform.system()} {platform.release()} ({platform.machine()})"
    if os.name != "posix":
        return found(
            "system", "problem", told, "use Linux, macOS or another POSIX system: the store's lock needs flock"
        )
    return found("system", "ok", told)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _packages() -> Iterator[DoctorCheck]:
    from session_actor import __version__

    installed = _version("session-actor")
    if installed is not None and installed != __version__:
        advice = "install it again (pip install), so that one version is there"
        yield found("session-actor", "note", f"{__version__} is imported, {installed} is installed", advice)
    else:
        yield found("session-actor", "ok", __version__)
    missing = [name for name in CORE if _version(name) is None]
    if missing:
        yield found("packages", "problem", f"{', '.join(missing)} not found", "pip install session-actor")
    else:
        yield found("packages", "ok", ", ".join(f"{name} {_version(name)}" for name in CORE))


def _extras() -> Iterator[DoctorCheck]:
    for extra, (packages, purpose) in EXTRAS.items():
        versions = {name: _version(name) for name in packages}
        if all(versions.values()):
            yield found(f"extra {extra}", "ok", ", ".join(f"{name} {version}" for name, version in versions.items()))
        else:
            advice = f"if you want {purpose}: pip install 'session-actor[{extra}]'"
            yield found(f"extra {extra}", "note", "not installed", advice)


def _open_files() -> DoctorCheck:
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < _FILES:
        advice = f"raise it for the server: ulimit -n {_FILES if most == resource.RLIM_INFINITY else min(most, 65_536)}"
        return found("open files", "note", f"at most {limit:,}", advice)
    return found("open files", "ok", "no limit" if limit == resource.RLIM_INFINITY else f"at most {limit:,}")


def _clock() -> DoctorCheck:
    now = time.time()
    told = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(now))
    if now < _OLD_S:
        return found("clock", "problem", told, "set the clock: records keep its time")
    return found("clock", "ok", told)


def _temporary() -> DoctorCheck:
    try:
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        advice = "give a folder in TMPDIR: reading a store in use keeps a copy of its catalog there"
        return found("temporary folder", "problem", str(error), advice)
    if free < _TEMPORARY_BYTES:
        return found("temporary folder", "problem", f"{folder}: {size(free)} free", "make room, or set TMPDIR")
    return found("temporary folder", "ok", f"{folder}: {size(free)} free")
