"""Opening, finding, ending, deleting: what a service does with its sessions."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from session_actor import MemoryStore, SessionService
from session_actor.errors import (
    InvalidArgument,
    RecordTooLarge,
    SessionActorError,
    SessionEnded,
    StoreLocked,
    UnusableId,
)
from session_actor.service_errors import (
    ServiceClosed,
    SessionBusy,
    SessionDeleted,
    SessionExists,
    SessionNotFound,
    SessionNotQuarantined,
)

from .conftest import reopened, seen


async def test_a_session_that_does_not_exist_is_not_found_unless_it_is_to_be_created(service):
    with pytest.raises(SessionNotFound, match="create=True"):
        await service.session("nobody")
    made = await service.session("nobody", create=True)
    assert (await service.session("nobody")).id == made.id


async def test_metadata_over_the_size_of_one_record_is_refused_and_no_session_is_made(service):
    with pytest.raises(RecordTooLarge):
        await service.session("large", create=True, metadata="x" * 68_000_000)
    with pytest.raises(RecordTooLarge):
        await service.fork((await service.session("small", create=True)).id, "large", metadata="x" * 68_000_000)
    assert [info.id async for info in service.sessions()] == ["small"]
    with pytest.raises(SessionNotFound):
        await service.session("large")


class Scales(MemoryStore):
    """A store that keeps the weight of the newest record."""

    newest = 0

    def append(self, lease, seq, at_us, kind, data, weight):
        self.newest = weight
        return super().append(lease, seq, at_us, kind, data, weight)


async def test_the_first_record_of_a_session_has_its_true_weight():
    store = Scales()
    async with SessionService.open(store) as service:
        await service.session("large", create=True, metadata="x" * 3_000_000)
        assert store.newest >= 3_000_000


@pytest.mark.parametrize("prefix", [None, 5, b"a", ["a"]], ids=str)
async def test_a_prefix_that_is_no_text_is_refused(service, prefix):
    with pytest.raises(InvalidArgument, match="prefix must be a str"):
        [info async for info in service.sessions(prefix)]


async def test_two_callers_who_create_the_same_session_at_once_share_one(service):
    one, two = await asyncio.gather(
        service.session("twin", create=True), service.session("twin", create=True, metadata={"late": True})
    )
    await one.push("a", "b")
    assert len(await two.stack()) == 1
    assert await two.metadata() is None


async def test_a_caller_who_creates_is_not_failed_by_one_who_only_looks(service):
    looks, makes = await asyncio.gather(
        service.session("twin"), service.session("twin", create=True), return_exceptions=True
    )
    assert makes.id == "twin"
    assert isinstance(looks, SessionNotFound) or looks.id == "twin"


@pytest.mark.parametrize("unusable", ["", "x" * 513, None, 7, b"user"])
async def test_an_unusable_id_is_refused_by_name(service, unusable):
    with pytest.raises(UnusableId):
        await service.session(unusable, create=True)


@pytest.mark.parametrize("odd", ["../../etc/passwd", "a\0b", "CON", "x" * 512, "ä", "a\u0308", "\ud800", ".", "/"])
async def test_any_other_id_names_a_session_of_its_own(folder, odd):
    async with SessionService.open(folder) as service:
        session = await service.session(odd, create=True)
        await session.push("who", "me")
        await session.flush("synced")
    async with reopened(folder, odd) as again:
        assert (await again.stack())[0].user_input == "who"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


async def test_ids_that_differ_only_in_case_or_normal_form_are_different_sessions(folder):
    names = ["User", "user", "USER", "\u00e9", "e\u0301"]
    async with SessionService.open(folder) as service:
        for name in names:
            await (await service.session(name, create=True)).push(name, "")
    async with SessionService.open(folder) as service:
        for name in names:
            assert [frame.user_input for frame in await (await service.session(name)).stack()] == [name]
        assert [info.id async for info in service.sessions()] == sorted(names)


async def test_metadata_creation_time_and_id_survive_a_restart(folder):
    metadata = {"team": "blue", "limits": [1, 2.5, None], "raw": b"\x00\xff"}
    before = datetime.now(UTC)
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True, metadata=metadata)
        created_at = await session.created_at()
    assert before - timedelta(seconds=1) < created_at < datetime.now(UTC) + timedelta(seconds=1)
    async with reopened(folder) as session:
        assert await session.created_at() == created_at
        assert await session.metadata() == metadata
        assert session.id == "user-42"


async def test_metadata_that_cannot_be_kept_is_refused_and_makes_no_session(service):
    with pytest.raises(SessionActorError):
        await service.session("user-1", create=True, metadata={"when": object()})
    with pytest.raises(SessionNotFound):
        await service.session("user-1")


async def test_an_ended_session_is_read_and_not_changed(service, session):
    await session.push("a", "b")
    await service.end("user-42", reason="resolved")
    with pytest.raises(SessionEnded):
        await session.push("c", "d")
    assert len(await session.stack()) == 1
    assert await session.ended() == "resolved"


async def test_a_deleted_session_is_gone_for_ever_even_if_its_id_is_made_again(service, session):
    await session.push("secret", "text")
    await service.delete("user-42")
    for use in (session.push("a", "b"), session.stack(), session.get(1), session.flush("async")):
        with pytest.raises(SessionDeleted):
            await use
    with pytest.raises(SessionNotFound):
        await service.session("user-42")
    again = await service.session("user-42", create=True)
    assert len(await again.stack()) == 0
    with pytest.raises(SessionDeleted):
        await session.stack()


async def test_a_session_that_is_not_loaded_can_be_deleted(folder):
    async with SessionService.open(folder) as service:
        await (await service.session("user-42", create=True)).push("a", "b")
    async with SessionService.open(folder) as service:
        await service.delete("user-42")
        with pytest.raises(SessionNotFound):
            await service.delete("user-42")
    async with SessionService.open(folder) as service:
        assert [info.id async for info in service.sessions()] == []


async def test_a_fork_of_a_session_keeps_history_ids_times_and_names_when_its_source_is_deleted(service, session):
    for number in range(4):
        await session.push(f"q{number}", f"a{number}")
    await session.checkpoint("two", 2)
    await session.fork(2, user_input="other", branch="idea")
    stack = [seen(frame) for frame in await session.stack()]
    copy = await service.fork("user-42", "eval-1")
    await service.delete("user-42")
    assert [seen(frame) for frame in await copy.stack()] == stack
    assert await copy.branches() == {"main": 4, "idea": 5}
    assert await copy.checkpoints() == {"two": 2}
    assert (await copy.push("on", "")).id == 6


async def test_a_fork_at_a_frame_has_only_the_path_to_it(service, session):
    for number in range(4):
        await session.push(f"q{number}", f"a{number}")
    copy = await service.fork("user-42", "eval-1", at=2)
    assert [frame.id for frame in await copy.stack()] == [1, 2]
    assert await copy.branches() == {"main": 2}


async def test_a_fork_onto_an_id_that_exists_is_refused(service, session):
    await service.session("eval-1", create=True)
    with pytest.raises(SessionExists):
        await service.fork("user-42", "eval-1")


async def test_one_exchange_at_a_time(session, service):
    other = await service.session("user-42")
    async with session.exchange():
        with pytest.raises(SessionBusy):
            async with other.exchange():
                pass
        with pytest.raises(SessionBusy):
            async with other.exchange(wait_s=0.01):
                pass
        await other.push("still", "works")
    async with other.exchange():
        pass
    assert len(await session.stack()) == 1


async def test_an_exchange_that_is_waited_for_comes_in_order_of_arrival(session):
    order: list[int] = []

    async def talk(number: int) -> None:
        async with session.exchange(wait_s=5.0):
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(talk(number) for number in range(5)))
    assert order == [0, 1, 2, 3, 4]


async def test_a_second_service_on_the_same_directory_is_refused_by_name(folder):
    async with SessionService.open(folder):
        with pytest.raises(StoreLocked, match="this process has it open already: go on with the service"):
            async with SessionService.open(folder):
                pass


async def test_a_closed_service_refuses_and_leaves_no_task(folder):
    service = SessionService.open(folder)
    async with service:
        session = await service.session("user-42", create=True)
        await session.push("a", "b")
    for use in (session.push("a", "b"), session.stack(), service.session("user-42")):
        with pytest.raises(ServiceClosed):
            await use
    await service.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_service_can_be_opened_again_after_it_was_closed(folder):
    service = SessionService.open(folder)
    for expected in range(3):
        async with service:
            session = await service.session("user-42", create=True)
            assert len(await session.stack()) == expected
            await session.push("a", "b")


async def test_closing_answers_what_is_queued(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        pushes = [asyncio.ensure_future(session.push(str(n), "", durability="synced")) for n in range(50)]
        await asyncio.sleep(0)
    assert [(await push).id for push in pushes] == list(range(1, 51))
    async with reopened(folder) as session:
        assert len(await session.stack()) == 50


@pytest.mark.parametrize("wrong", [{"durability": "fast"}, {"max_live": 0}, {"mailbox_limit": 0}])
def test_options_that_can_never_be_right_are_refused(wrong):
    with pytest.raises(InvalidArgument):
        SessionService.open(MemoryStore(), **wrong)


async def test_health_counts_sessions_and_shows_the_store(service, session):
    await session.push("a", "b")
    health = service.health()
    assert health.live == 1
    assert health.quarantined == ()
    assert health.store.appended_position == 2


async def test_nothing_of_a_conversation_is_in_a_repr(session):
    frame = await session.push("the secret word", "another secret", assumptions=["secret"])
    shown = repr([frame, session, await session.stack(), session.recovery, session.on("main")])
    assert "secret" not in shown


async def test_a_session_that_is_not_quarantined_cannot_be_released(service):
    await service.session("a", create=True)
    for name in ("a", "nobody"):
        with pytest.raises(SessionNotQuarantined, match=f"'{name}' is not quarantined"):
            service.release(name)
