"""Small file systems of one's own, for root on Linux; elsewhere the tests that want them are skipped."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TOOLS = ("mount", "umount", "mkfs.ext4", "e2fsck", "losetup")


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=60)


def why_not() -> str | None:
    """Why no file system can be mounted here; None: it can."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "mounting needs root on Linux"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"there is no {', '.join(missing)} here" if missing else None


def need_mounts() -> None:
    """Skip the test unless file systems can be mounted."""
    why = why_not()
    if why is not None:
        pytest.skip(why)


@contextlib.contextmanager
def tmpfs(folder: Path, size_bytes: int) -> Iterator[Path]:
    """A file system in memory of so many bytes."""
    folder.mkdir()
    try:
        run("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", folder)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no tmpfs can be mounted here: {error.stderr.decode().strip()}")
    with _mounted(folder):
        yield folder


@contextlib.contextmanager
def ext4(image: Path, folder: Path, *options: str) -> Iterator[Path]:
    """The ext4 file system in a file."""
    folder.mkdir()
    try:
        run("mount", "-o", ",".join(("loop", *options)), image, folder)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no image can be mounted here: {error.stderr.decode().strip()}")
    with _mounted(folder):
        yield folder


@contextlib.contextmanager
def _mounted(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        try:
            run("umount", folder)
        except subprocess.CalledProcessError:
            run("umount", "-l", folder)


def make_ext4(image: Path, size_bytes: int, *features: str) -> None:
    with image.open("wb") as file:
        file.truncate(size_bytes)
    run("mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", *(("-O", ",".join(features)) if features else ()), image)


def write_single_pages(image: Path) -> None:
    """Have the loop device of a mounted image write one page at a time.

    It takes a write that was cut short for a whole one: a page alone is written or fails.
    """
    found = subprocess.run(["losetup", "-j", str(image)], capture_output=True, text=True, check=True, timeout=60)
    device = found.stdout.partition(":")[0].rpartition("/")[2]
    try:
        Path(f"/sys/block/{device}/queue/max_sectors_kb").write_text("4", encoding="ascii")
    except OSError as error:
        pytest.skip(f"the loop device cannot be told to write single pages: {error}")


def fill(path: Path) -> None:
    """Fill the rest of a file system with a file."""
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    offset = 0
    try:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    offset += os.pwrite(descriptor, b"x" * size, offset)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Meanwhile nothing in a folder can be changed."""
    try:
        run("mount", "--bind", folder, folder)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no folder can be mounted here: {error.stderr.decode().strip()}")
    with _mounted(folder):
        run("mount", "-o", "remount,bind,ro", folder)
        yield
