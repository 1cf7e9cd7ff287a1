"""The lock: one process per store, whatever happens to the holder or its children."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from session_actor.persistence.errors import NetworkFileSystem, StoreClosed, StoreLocked
from session_actor.persistence.lock import StoreLock, check_local, file_system_of

HOLDER = """
import sys
from session_actor.persistence.lock import StoreLock
lock = StoreLock(sys.argv[1])
assert lock.try_acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "LOCK"


@pytest.fixture
def lock(path):
    lock = StoreLock(path)
    yield lock
    lock.release()


@contextmanager
def another_process_holds(path):
    """A real second process with the lock, killed at the end."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], **pipes) as process:
        try:
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            process.kill()


def in_a_fork(work) -> int:
    """Run `work` in a forked child; returns its exit code: 0 when it returned True."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def open_files() -> list[Path]:
    """The lock files that this process has open."""
    found: list[Path] = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the listing's own descriptor is gone by now
            found.append(descriptor.readlink())
    return [file for file in found if file.name == "LOCK"]


def is_free(path) -> bool:
    """Whether another open file could lock the path now."""
    other = StoreLock(path)
    free = other.try_acquire()
    other.release()
    return free


async def test_a_second_process_is_refused_at_once_with_the_holder_s_pid(path, lock, monkeypatch):
    once, tries = StoreLock.try_acquire, []
    monkeypatch.setattr(StoreLock, "try_acquire", lambda self: tries.append(self) or once(self))
    with another_process_holds(path) as holder:
        with pytest.raises(StoreLocked) as caught:
            await lock.acquire()
        assert tries == [lock]
    assert caught.value.pid == holder.pid
    assert f"process {holder.pid}" in str(caught.value)
    assert "one process per store" in str(caught.value)
    assert "this process" not in str(caught.value)
    assert str(path.parent) in str(caught.value)
    assert not lock.held


async def test_a_lock_is_free_as_soon_as_its_holder_is_killed(path, lock):
    with another_process_holds(path) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        await lock.acquire()
    assert lock.held
    assert path.read_text() == f"{os.getpid()}\n"


async def test_waiting_for_a_lock_ends_when_it_comes_free(path, lock):
    with another_process_holds(path) as holder:
        waiting = asyncio.create_task(lock.acquire(timeout_s=None))
        await asyncio.sleep(0)
        assert not lock.held
        holder.stdin.close()
        await waiting
    assert lock.held


async def test_waiting_for_a_lock_ends_at_the_timeout(path, lock):
    holder = StoreLock(path)
    await holder.acquire()
    with pytest.raises(StoreLocked):
        await lock.acquire(timeout_s=0.01)
    holder.release()
    await lock.acquire(timeout_s=0.01)
    assert lock.held


async def test_cancelling_the_wait_leaves_nothing_held(path, lock):
    holder = StoreLock(path)
    await holder.acquire()
    waiting = asyncio.create_task(lock.acquire(timeout_s=None))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    holder.release()
    assert not lock.held
    assert is_free(path)


async def test_two_stores_of_one_process_exclude_each_other(path, lock):
    await lock.acquire()
    with pytest.raises(StoreLocked) as caught:
        await StoreLock(path).acquire()
    assert caught.value.pid == os.getpid()
    assert "this process has it open already" in str(caught.value)
    with pytest.raises(StoreLocked):
        await lock.acquire()
    lock.release()
    assert is_free(path)


def test_a_lock_that_was_given_up_leaves_an_empty_file(path, lock):
    for _ in range(2):
        assert lock.try_acquire()
        assert path.read_text(encoding="ascii") == f"{os.getpid()}\n"
        lock.release()
        assert path.stat().st_size == 0


def test_a_disk_that_refuses_to_empty_the_file_does_not_keep_the_lock(path, lock, monkeypatch):
    def refused(fd, size):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    assert lock.try_acquire()
    with monkeypatch.context() as patched:
        patched.setattr("session_actor.persistence.lock.os.ftruncate", refused)
        lock.release()
    assert lock.try_acquire()


@pytest.mark.parametrize("call", ["ftruncate", "pwrite"])
async def test_a_disk_that_refuses_the_pid_does_not_refuse_the_lock(path, lock, monkeypatch, call):
    def refused(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(f"session_actor.persistence.lock.os.{call}", refused)
    assert lock.try_acquire()
    assert lock.held
    with pytest.raises(StoreLocked, match=r"its pid is not in LOCK.*fuser") as caught:
        await StoreLock(path).acquire()
    assert caught.value.pid is None
    path.unlink()
    assert not lock.renew()
    assert not is_free(path)
    lock.release()
    assert is_free(path)


def test_releasing_twice_or_without_a_lock_has_no_effect(path, lock):
    lock.release()
    assert lock.try_acquire()
    lock.release()
    lock.release()
    assert is_free(path)


# --- children ---------------------------------------------------------------------------------------------------------


def test_a_forked_child_does_not_hold_the_lock_and_does_not_free_it(path, lock):
    assert lock.try_acquire()

    def child() -> bool:
        lock.release()
        return not lock.held and not is_free(path)

    assert in_a_fork(child) == 0
    assert lock.held
    assert not is_free(path)


def test_a_forked_child_has_no_copy_of_the_lock_file(path, lock):
    assert lock.try_acquire()

    assert open_files() == [path]
    assert in_a_fork(lambda: open_files() == []) == 0


def test_a_child_that_outlives_the_holder_does_not_keep_the_lock(path, lock):
    assert lock.try_acquire()
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write_end)
        os.read(read_end, 1)
        os._exit(0)
    try:
        lock.release()
        assert is_free(path)
    finally:
        os.close(write_end)
        os.close(read_end)
        os.waitpid(pid, 0)


def test_a_forked_child_is_told_why_it_cannot_go_on(lock):
    assert lock.try_acquire()
    lock.ensure_held()

    def child() -> bool:
        try:
            lock.ensure_held()
        except StoreClosed as error:
            return "forked child" in str(error)
        return False

    assert in_a_fork(child) == 0


def test_a_started_program_does_not_inherit_the_lock(path, lock):
    assert lock.try_acquire()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False) as program:
        lock.release()
        assert is_free(path)
        program.kill()


# --- what may stand at the path ---------------------------------------------------------------------------------------


def test_the_lock_file_is_private(path, lock):
    assert lock.try_acquire()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_lock_file_made_anew_while_waiting_is_the_one_that_counts(path, lock, monkeypatch):
    opened = lock._open

    def replaced() -> int:
        fd = opened()
        path.unlink()
        path.touch()
        return fd

    monkeypatch.setattr(StoreLock, "_open", lambda _: replaced())
    assert not lock.try_acquire()
    monkeypatch.undo()
    assert lock.try_acquire()


@pytest.mark.parametrize("content", [b"", b"not a pid", b"\xff\xfe", b"-1", b"9" * 19 + b"x", b"12", b"12\n34\n"])
async def test_an_unreadable_pid_does_not_hide_that_the_store_is_locked(path, lock, content):
    holder = StoreLock(path)
    await holder.acquire()
    path.write_bytes(content)
    with pytest.raises(StoreLocked, match="another process") as caught:
        await lock.acquire()
    assert caught.value.pid is None
    holder.release()


def test_a_fifo_or_a_symlink_in_its_place_is_refused_at_once(path, lock, tmp_path):
    os.mkfifo(path)
    with pytest.raises(StoreLocked, match="not a plain file"):
        lock.try_acquire()
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="LOCK"):
        lock.try_acquire()
    assert not (tmp_path / "elsewhere").exists()


# --- network file systems ---------------------------------------------------------------------------------------------

MOUNTS = """\
22 1 0:21 / / rw,relatime - ext4 /dev/vda rw
23 22 0:22 / /proc rw - proc proc rw
30 22 0:30 / /mnt/nfs rw,relatime shared:1 master:2 - nfs4 server:/export rw
31 30 0:31 / /mnt/nfs/local rw - xfs /dev/vdb rw
32 22 0:32 / /mnt/with\\040space rw - fuse.sshfs host:/ rw
33 22 0:33 / /mnt/twice rw - ext4 /dev/vdc rw
34 22 0:34 / /mnt/twice rw - cifs //host/share rw
35 22 0:35 / /mnt/odd - 9p x
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/data", "ext4"),
        ("/mnt/nfs/data", "nfs4"),
        ("/mnt/nfs", "nfs4"),
        ("/mnt/nfs2", "ext4"),
        ("/mnt/nfs/local/data", "xfs"),
        ("/mnt/with space/data", "fuse.sshfs"),
        ("/mnt/twice/data", "cifs"),
        ("/mnt/odd/x", "9p"),
    ],
)
def test_the_mount_table_tells_the_file_system_of_a_path(tmp_path, path, kind):
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    assert file_system_of(path, str(table)) == kind


def test_without_a_mount_table_nothing_is_known(tmp_path):
    assert file_system_of("/", str(tmp_path / "missing")) is None


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "fuse.glusterfs"])
def test_a_network_file_system_is_refused_unless_asked_for(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("session_actor.persistence.lock.file_system_of", lambda _: kind)
    with pytest.raises(NetworkFileSystem, match=kind) as caught:
        check_local(tmp_path)
    assert "allow_network_fs=True" in str(caught.value)
    check_local(tmp_path, allow_network_fs=True)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuse.encfs", None])
def test_a_local_or_unknown_file_system_is_taken(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("session_actor.persistence.lock.file_system_of", lambda _: kind)
    assert check_local(tmp_path) is None


async def test_a_holder_with_the_same_pid_in_another_container_is_not_taken_for_this_process(path, lock):
    with another_process_holds(path):
        path.write_text(f"{os.getpid()}\n")
        with pytest.raises(StoreLocked, match="one process per store") as caught:
            await lock.acquire()
    assert caught.value.pid == os.getpid()
