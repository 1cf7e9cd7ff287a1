"""What the tests ask of strace: to kill or to interrupt a process at chosen system calls."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

PATIENCE_S = 20


@functools.cache
def why_not_traced() -> str | None:
    """Why strace cannot inject signals here; None: it can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    command = ["strace", "-qq", "-o", os.devnull, "-e", "inject=exit_group:signal=KILL:when=1"]
    done = subprocess.run([*command, sys.executable, "-c", ""], capture_output=True, text=True, timeout=60, check=False)
    return None if done.returncode == -signal.SIGKILL else f"strace injects nothing here: {done.stderr.strip()[-200:]}"


def stop() -> None:
    """In the process that is to be traced: wait until strace is there."""
    os.kill(os.getpid(), signal.SIGSTOP)


def trace(pid: int, calls: str, what: str) -> subprocess.Popen[bytes]:
    """Attach to a child that stops itself, let `what` be injected into its `calls`, and let it go on."""
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
    inject = ["-e", f"trace={calls}", "-e", f"inject={calls}:{what}"]
    strace = subprocess.Popen(
        ["strace", "-f", "-qq", "-o", os.devnull, "-p", str(pid), *inject], stderr=subprocess.DEVNULL
    )
    deadline_s = time.monotonic() + PATIENCE_S
    while "TracerPid:\t0\n" in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < deadline_s, "strace does not attach"
        time.sleep(0.001)
    os.kill(pid, signal.SIGCONT)
    return strace
