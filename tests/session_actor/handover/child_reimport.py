"""Run as a process of its own: a service is taken over by a newer version of the library, imported in its place.

usage: python child_reimport.py STORE FOLDER_OF_THE_NEWER_VERSION
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys

import session_actor as old


def imported_anew(folder: str):
    """Import the library of `folder` in the place of the one that is loaded, whose classes live on."""
    for name in old.__all__:  # they are imported when they are first used: here, before others have their names
        getattr(old, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "session_actor"]:
        del sys.modules[name]
    sys.path.insert(0, folder)
    return importlib.import_module("session_actor")


async def suspended(session) -> None:
    while not session._cell.ref.slot.suspended:  # noqa: ASYNC110 - it does not say when
        await asyncio.sleep(0)


async def refused(new, service, session) -> str:
    """Say what a takeover says whose `code_change` raises, with a message that waits meanwhile."""

    def refuse(version, value):
        raise ValueError(f"not of version {version}")

    taking = asyncio.create_task(new.SessionService.take(await service.handover(), code_change=refuse).start())
    await suspended(session)
    push = asyncio.create_task(session.push("2"))
    try:
        await taking
    except new.HandoverFailed as error:
        assert type(await push) is old.Frame
        return str(error)
    raise AssertionError


async def main(store: str, folder: str) -> None:
    service = old.SessionService.open(store)
    await service.start()
    session = await service.session("a", create=True, metadata={"who": "me"})
    resting = await service.session("b", create=True)
    await resting.push("x")
    await session.push("1", key="k")
    await session.checkpoint("here")
    new = imported_anew(folder)
    assert new.Frame is not old.Frame
    said = await refused(new, service, session)
    heir = new.SessionService.take(await service.handover(), durability="written")
    taking = asyncio.create_task(heir.start())
    await suspended(session)
    content = [old.Text("3"), old.Image(data=b"\x89PNG", media_type="image/png")]
    waiting = [session.add_user(content), session.push("4"), session.push("1", key="k"), session.goto("nowhere")]
    tasks = [asyncio.create_task(call) for call in waiting]
    await asyncio.sleep(0)
    session.cast(old.Push("5"))
    await taking
    replies = await asyncio.gather(*tasks, return_exceptions=True)
    try:
        await session.push("late")
    except old.HandedOver as error:
        late = str(error)
    await service.close()

    taken = await heir.session("a")
    await taken.push("6", durability="synced")
    stack = list(await taken.stack())
    again = await (await heir.session("b")).push("y", key="z")
    await heir.close()
    answer = {
        "said": said,
        "late": late,
        "kinds": [type(reply) is new.Frame for reply in replies[:3]] + [type(replies[3]) is old.NameUnknown],
        "repeated": replies[2].id,
        "texts": [[turn.text for turn in frame.turns] for frame in stack],
        "parents": [frame.parent for frame in stack],
        "checkpoints": await checkpoints(new, store),
        "again": again.depth,
        "metadata": taken._cell.state is None,
        "recovered": taken.recovery is None,
    }
    sys.stdout.write(json.dumps(answer))


async def checkpoints(new, store: str) -> dict[str, int]:
    async with new.SessionService.open(store) as service:
        return await (await service.session("a")).checkpoints()


asyncio.run(main(*sys.argv[1:]))
