"""`tail`: records as they come."""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest

from session_actor import SessionService
from session_actor.cli.harmless import shown_id
from session_actor.cli.tailing import Tail
from session_actor.persistence import FileStore
from session_actor.replay import read_store

from ..replay.stored import SMALL


def test_the_newest_records_of_a_session_are_told(run, made):
    lines = run("tail", made, "user-42", "--no-follow", "-n", "3").lines
    assert [line.partition("  user-42  ")[2] for line in lines] == [
        "13  frame 8 was pushed",
        "14  frame 9 was pushed and branch train made",
        "15  the head went to frame 8 on main",
    ]
    assert len(run("tail", made, "user-42", "--no-follow").lines) == 10
    assert len(run("tail", made, "user-42", "--no-follow", "-n", "99").lines) == 15
    assert run("tail", made, "user-42", "--no-follow", "-n", "0").out == ""
    objects = run("tail", made, "user-42", "--no-follow", "-n", "2", "--json", "--content").objects
    assert [(each["seq"], each["kind"], each["frame"]) for each in objects] == [(14, "pushed", 9), (15, "moved", None)]
    assert objects[0]["data"]["user_input"] == "By train."


@pytest.mark.parametrize("options", [["--no-follow"], ["-n", "3"]], ids=" ".join)
def test_options_of_one_session_need_one(run, made, options):
    ran = run("tail", made, *options)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)


@pytest.mark.parametrize("options", [["--interval", "nan"], ["--interval", "inf"], ["-n", "9" * 30]], ids=" ".join)
def test_numbers_that_no_clock_and_no_list_takes_are_refused(run, made, options):
    ran = run("tail", made, "user-42", *options)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)


async def test_a_live_store_is_followed_through_cuts_and_deletions(tmp_path, capsys):
    store = FileStore(tmp_path / "store", **SMALL)
    async with SessionService.open(store, durability="written") as service:
        session = await service.session("user-42", create=True)
        await session.add_user("before")
        with read_store(tmp_path / "store") as reader:
            tail = Tail(reader, None, as_json=False, content=False)
            tail.begin(0)
            tail.look()
            assert capsys.readouterr().out == ""
            expected = []
            for round_ in range(6):
                for number in range(30):
                    await session.push(f"secret {round_} {number}", "x" * 200)
                    expected.append(2 + len(expected) + 1)
                if round_ % 2:
                    await session.flush("synced")
                    while await store._engine.cutter.cut():
                        pass
                tail.look()
            told = capsys.readouterr().out
            assert "secret" not in told
            assert [int(line.split("  ")[2].replace(",", "")) for line in told.splitlines()] == expected
            await (await service.session("chat/7", create=True)).add_user("new")
            tail.look()
            assert [line.split("  ")[1:3] for line in capsys.readouterr().out.splitlines()] == [
                ["chat/7", "1"],
                ["chat/7", "2"],
            ]
            await service.delete("chat/7")
            tail.look()
            assert capsys.readouterr().out == "chat/7 was deleted\n"
            await service.session("chat/7", create=True)
            tail.look()
            assert len(capsys.readouterr().out.splitlines()) == 1
            assert tail.damaged == set()


@pytest.mark.parametrize("only", [None, "user-42"])
async def test_a_session_that_was_deleted_and_made_anew_between_two_looks_is_told_as_deleted(tmp_path, capsys, only):
    async with SessionService.open(tmp_path / "store", durability="written") as service:
        await (await service.session("user-42", create=True)).add_user("before")
        with read_store(tmp_path / "store") as reader:
            tail = Tail(reader, only, as_json=False, content=False)
            tail.begin(0)
            for _ in range(2):
                await service.delete("user-42")
                await service.session("user-42", create=True)
                tail.look()
                first, second = capsys.readouterr().out.splitlines()
                assert (first, second.split("  ")[1:3]) == ("user-42 was deleted", ["user-42", "1"])


async def test_what_did_not_change_is_not_looked_at(made, monkeypatch):
    with read_store(made) as reader:
        tail = Tail(reader, "user-42", as_json=True, content=False)
        tail.begin(0)
        monkeypatch.setattr(reader, "refresh", lambda: pytest.fail("it was looked at"))
        tail.look()


async def test_ctrl_c_ends_it_with_130(tmp_path):
    async with SessionService.open(tmp_path / "store", durability="written") as service:
        session = await service.session("id with 'odd'\x1b characters", create=True)
        command = ("-m", "session_actor", "tail", str(tmp_path / "store"), shown_id(session.id), "--interval", "0.02")
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            assert b"the session was made" in await process.stdout.readline()
            await session.add_user("now")
            assert b"frame 1 was pushed" in await process.stdout.readline()
            process.send_signal(signal.SIGINT)
            out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert (process.returncode, out, err) == (130, b"", b"")
