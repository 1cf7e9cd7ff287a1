"""Ends or deletes a session with three mandatory hooks, and dies before a given one of its steps by kill -9.

It has done everything once and forks each worker, so that a life costs some 20 ms. It reads a line of JSON for each:
the store's `root`, the `notes` that workers append to, what to do (`end`, `delete` or `go_on`), and `kill_at`: before
which of the system calls that change something (0: none). It answers with how many there were, or -1 for a kill.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory

import structlog

from session_actor import CallTimeout, FileStore, Hook, SessionEnded, SessionNotFound, SessionService
from session_actor.hooks import mandatory

structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))  # stdout is for answers
CHANGING = ("pwrite", "write", "fsync", "fdatasync", "replace", "unlink", "ftruncate", "posix_fallocate", "mkdir")
mandatory.BACKOFF = replace(mandatory.BACKOFF, initial_s=0.001, max_s=0.002)


class Steps:
    """Counts the system calls that change something, and dies before one of them."""

    def __init__(self, kill_at: int) -> None:
        self.count = 0
        self.kill_at = kill_at
        for name in CHANGING:
            setattr(os, name, self.counted(getattr(os, name)))

    def counted(self, call):
        def step(*args, **options):
            self.count += 1
            if self.count == self.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **options)

        return step


@dataclass
class Notes:
    """What workers leave behind, a line each."""

    path: str

    def add(self, *words: object) -> None:
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, (" ".join(map(str, words)) + "\n").encode())
        os.close(fd)

    def count(self, *words: str) -> int:
        try:
            with open(self.path) as file:  # noqa: PTH123 - beside os.open
                return sum(line.startswith(" ".join(words) + " ") for line in file)
        except FileNotFoundError:
            return 0

    def hook(self, name: str, priority: int, *, fails: int = 0) -> Hook:
        async def fn(ctx) -> None:
            stack = await ctx.view.stack()
            self.add("begin", name, ctx.key, ctx.attempt)
            if self.count("fail", name) < fails:
                self.add("fail", name, ctx.key, ctx.attempt)
                raise OSError("not yet")
            self.add("ok", name, ctx.key, stack[0].user_input)

        return Hook(name, fn, "ended", priority, mandatory=True)


async def idle(service: SessionService) -> None:
    async with asyncio.timeout(20):
        while (health := service.health().hooks).pending or health.deletions:  # noqa: ASYNC110 - nobody tells when
            await asyncio.sleep(0.001)


async def live(root: str, notes: Notes, what: str) -> None:
    """`go_on` opens the store twice: whatever runs the second time ran after it was done."""
    await one_life(root, notes, what)
    if what == "go_on":
        await one_life(root, notes, what)


async def one_life(root: str, notes: Notes, what: str) -> None:
    hooks = [notes.hook("bill", 90), notes.hook("learn", 50, fails=2), notes.hook("export", 10)]
    async with SessionService.open(FileStore(root, cut_at_close=0), hooks=hooks) as service:
        if what in {"end", "delete"}:
            session = await service.session("user-42", create=True)
            with suppress(SessionEnded):
                await session.push("hello", "hi", durability="written")
        if what == "end":
            await service.end("user-42")
            notes.add("acknowledged")
        elif what == "delete":
            with suppress(CallTimeout):
                await service.delete("user-42", timeout_s=0)
            await service.delete("user-42")
            notes.add("acknowledged")
        await idle(service)
        if what == "go_on":
            try:
                ended = await (await service.session("user-42")).ended()
            except SessionNotFound:
                ended = "gone"
            notes.add("found", ended)
            assert service.hooks.dead_letters() == []


def warm_up() -> None:
    """Do everything once: what is imported and made at first use need not be in every worker."""
    with TemporaryDirectory() as folder:
        for what in ("end", "delete", "go_on"):
            asyncio.run(live(f"{folder}/{what}", Notes(f"{folder}/notes {what}"), what))
    gc.collect()
    gc.freeze()


def work(task: dict) -> int:
    steps = Steps(task["kill_at"])
    asyncio.run(live(task["root"], Notes(task["notes"]), task["what"]))
    return steps.count


def main() -> None:
    warm_up()
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            code = 1
            try:
                os.close(reading)
                os.write(writing, str(work(json.loads(line))).encode())
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        answer = os.read(reading, 32).decode()
        os.close(reading)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            answer = "-1"
        sys.stdout.write((answer or "failed") + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
