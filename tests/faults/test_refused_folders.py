"""A folder of journals is really read-only: only what belongs there stays in the log."""

from __future__ import annotations

from session_actor import FileStore, SessionService
from session_actor.persistence.files.names import journal_path

from .mounts import need_mounts, read_only
from .verified import damage_in

SESSIONS = ("a", "b", "c")


async def grow(service: SessionService, count: int) -> None:
    for name in SESSIONS:
        session = await service.session(name, create=True)
        for _ in range(count):
            await session.push("question", "x" * 300)


async def texts(service: SessionService) -> list[int]:
    return [len(await (await service.session(name)).stack()) for name in SESSIONS]


async def test_a_read_only_folder_of_journals_keeps_what_belongs_there_in_the_log_and_nothing_else(tmp_path):
    need_mounts()
    root = tmp_path / "store"
    async with SessionService.open(FileStore(root, segment_bytes=20_000)) as service:
        await grow(service, 20)
    folder = (root / "journals" / journal_path("a", 1)).parent
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with read_only(folder):
        for opening in (1, 2):
            store = FileStore(root, segment_bytes=20_000)
            async with SessionService.open(store) as service:
                assert await texts(service) == [20 * opening] * 3
                await grow(service, 20)
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
            assert list((root / "log").glob("*.ndjson"))
        async with SessionService.open(FileStore(root, segment_bytes=20_000)) as service:
            assert await texts(service) == [60] * 3
            whole = {name: service._store._logs[name].extent.seq > 60 for name in SESSIONS}
            assert whole == {"a": False, "b": True, "c": True}
    async with SessionService.open(FileStore(root, segment_bytes=20_000)) as service:
        assert await texts(service) == [60] * 3
    assert list((root / "log").glob("*.ndjson")) == []
    assert damage_in(root) == []
