"""Opening a service where no store can be."""

from __future__ import annotations

import pytest

from session_actor import InvalidArgument, NotAStore, SessionService, StoreError, StoreUnusable


def test_an_empty_path_is_refused():
    with pytest.raises(InvalidArgument, match="store must be the path"):
        SessionService.open("")


@pytest.mark.parametrize("below", ["", "deeper"])
async def test_a_path_that_is_a_file_or_in_one_is_an_error_of_the_store_that_names_it(tmp_path, below):
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / below
    with pytest.raises(StoreUnusable, match=str(tmp_path / "file")) as caught:
        await SessionService.open(path).start()
    assert isinstance(caught.value, StoreError)
    assert isinstance(caught.value.__cause__, OSError)
    assert (tmp_path / "file").read_text() == "in the way"


async def test_a_path_with_nul_is_an_error_of_the_library(tmp_path):
    with pytest.raises((StoreUnusable, InvalidArgument)):
        await SessionService.open(f"{tmp_path}/a\0b").start()


async def test_a_service_that_could_not_open_opens_once_the_way_is_free(tmp_path):
    (tmp_path / "store").write_text("in the way")
    service = SessionService.open(tmp_path / "store")
    with pytest.raises(StoreUnusable):
        await service.start()
    (tmp_path / "store").unlink()
    async with service:
        assert (await service.session("user-42", create=True)).id == "user-42"


async def test_a_level_that_is_none_is_refused_with_those_that_are(tmp_path):
    async with SessionService.open(tmp_path / "store") as service:
        session = await service.session("user-42", create=True)
        with pytest.raises(InvalidArgument, match="durability must be one of async, written, synced, got 'disk'"):
            await session.add_user("hello", durability="disk")


async def test_a_directory_of_somebody_else_s_is_refused_and_left_as_it_is(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "x").write_text("mine")
    with pytest.raises(NotAStore, match="holds what is not a store's: x; give a directory"):
        await SessionService.open(tmp_path).start()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert tmp_path.stat().st_mode & 0o777 == 0o755


async def test_a_store_opens_whatever_somebody_put_beside_it(tmp_path):
    async with SessionService.open(tmp_path / "store"):
        pass
    (tmp_path / "store" / "notes.txt").write_text("mine")
    async with SessionService.open(tmp_path / "store") as service:
        assert [info async for info in service.sessions()] == []
