"""A few sessions that push while their disk is in trouble, and what must be there afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path

from session_actor import NotDurable, SessionActorError, SessionService
from session_actor.persistence import PersistenceError

from .verified import damage_in


class Load:
    """A few sessions that push all the time; knows what was acknowledged, and looks at what is served meanwhile."""

    def __init__(self, service: SessionService) -> None:
        self.service = service
        self.acknowledged: dict[str, list[str]] = {f"session {number}": [] for number in range(4)}
        self.refused = self.not_durable = self.reads = 0
        self.most_waiting_bytes = 0
        self.goes_on = True

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for name in self.acknowledged:
                group.create_task(self.push(name))
            group.create_task(self.watch())

    async def push(self, name: str) -> None:
        """Push one text after the other, each until it is acknowledged, with a key: none may come twice."""
        session = await self.service.session(name, create=True)
        texts = self.acknowledged[name]
        while self.goes_on:
            text = str(len(texts))
            try:
                await session.push(text, "x" * 1000, key=text)
            except NotDurable:
                self.not_durable += 1
                await asyncio.sleep(0.005)
            except (SessionActorError, PersistenceError):
                self.refused += 1
                await asyncio.sleep(0.005)
            else:
                texts.append(text)
            if len(texts) % 50 == 0:
                await asyncio.sleep(0)

    async def watch(self) -> None:
        """Read as a caller would, whatever the disk does."""
        while self.goes_on:
            await asyncio.sleep(0.01)
            for name, texts in self.acknowledged.items():
                known = list(texts)
                shown = [frame.user_input for frame in await (await self.service.session(name)).stack()]
                assert shown[: len(known)] == known
                self.reads += 1
            health = self.service.health()
            assert health.live == len(self.acknowledged)
            self.most_waiting_bytes = max(self.most_waiting_bytes, health.store.backlog_bytes)


async def found_in(folder: Path) -> dict[str, list[str]]:
    """What another process finds; afterwards `verify` finds no damage."""
    async with SessionService.open(folder) as service:
        found = {
            info.id: [frame.user_input for frame in await (await service.session(info.id)).stack()]
            async for info in service.sessions()
        }
    assert damage_in(folder) == []
    return found


def check(load: Load, found: dict[str, list[str]]) -> None:
    """Nothing acknowledged is lost, and nothing is there twice."""
    for name, texts in load.acknowledged.items():
        assert found[name][: len(texts)] == texts
        assert len(found[name]) <= len(texts) + 1


async def until(condition, patience_s: float = 20) -> None:
    async with asyncio.timeout(patience_s):
        while not condition():  # noqa: ASYNC110 - what it waits for happens in threads
            await asyncio.sleep(0.01)
