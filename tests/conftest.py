"""What every test gets: the event loop to run on, and a look for what a test left behind."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import random
import signal
import threading
import time
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

LOOPS = ("asyncio", "uvloop")
HERE = Path(__file__).parent

# Importing the providers' SDKs takes seconds: tests that do are next to each other, so that most processes need not.
WITH_SDKS = (
    "examples/test_agent_server.py",
    "session_actor/compaction/test_overlay_machine.py",
    "session_actor/replay",
    "session_actor/transfer/test_requests.py",
    "session_actor/window",
    "test_readme.py",
)

# Tests that take long are met in the middle of a run, so that at its end nobody waits for one of them alone; those of
# `distributions` follow one another, so that one process alone builds them.
LONG = (
    "faults/test_kills.py",
    "faults/test_refused_syncs.py",
    "session_actor/handover/test_process.py",
    "session_actor/hooks/test_kills.py",
)

# How long an example takes says more of what else the machine does than of the example. Each run draws others.
settings.register_profile("any load", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any load")


def pytest_addoption(parser: pytest.Parser) -> None:
    """How much of tests/faults is run, and from where its random choices start."""
    group = parser.getgroup("faults", "cases of damage, loss of power and failing disks (tests/faults)")
    group.addoption("--faults", choices=("tenth", "full"), default="tenth", help="a tenth of the cases, or all")
    group.addoption("--faults-seed", type=int, metavar="N", help="the same cases again; default: others every time")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Chooses the seed once, also for all processes of pytest-xdist; FAULTS_SEED chooses it where no option does."""
    if os.environ.get("SESSION_ACTOR_TEST_LOOP") == "uvloop" and config.option.timeout_method is None:
        config.option.timeout_method = "thread"  # pytest-timeout's signal does not reach a loop that waits in C
    if config.option.faults_seed is None:
        given = getattr(config, "workerinput", os.environ).get("FAULTS_SEED")
        config.option.faults_seed = int(given) if given else random.SystemRandom().randrange(1_000_000)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in the background of a shell; children would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a process of pytest-xdist, which reads the options anew, the seed that was chosen."""
    node.workerinput["FAULTS_SEED"] = str(node.config.option.faults_seed)


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item):
    """The loop of the whole run: SESSION_ACTOR_TEST_LOOP=uvloop runs the same suite on uvloop."""
    name = os.environ.get("SESSION_ACTOR_TEST_LOOP", "asyncio")
    if name not in LOOPS:
        raise pytest.UsageError(f"SESSION_ACTOR_TEST_LOOP is {name!r}: use one of {', '.join(LOOPS)}")
    if name == "uvloop":
        import uvloop

        return {"uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.new_event_loop}


def _give_time(sweeps: list[pytest.Item]) -> None:
    """A sweep that does all its cases may take longer than other tests."""
    for item in sweeps:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(600))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Brings tests that need the same together; in each part they stay in the order that chance gave them."""
    some = config.option.faults == "tenth"  # else tests/faults says what comes first
    if not some:
        _give_time([item for item in items if "faults" in getattr(item, "fixturenames", ())])
    sdks, long = (tuple(str(HERE / path) for path in paths) for paths in (WITH_SDKS, LONG if some else ()))
    parts: tuple[list[pytest.Item], ...] = [], [], [], []
    for item in items:
        builds = "distributions" in getattr(item, "fixturenames", ())
        path = str(item.path)
        parts[0 if path.startswith(sdks) else 2 if builds else 1 if path.startswith(long) else 3].append(item)
    first, *middle, others = parts
    before = max(0, len(items) // 2 - len(first))
    items[:] = [*first, *others[:before], *chain(*middle), *others[before:]]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keeps the collector from looking through modules and tests again and again while they come to be."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """The same while the tests run; what they make themselves is looked through less often, too."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 20, 50)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Names the loop and the seed, so that a log tells which run it was."""
    return [
        f"event loop: {os.environ.get('SESSION_ACTOR_TEST_LOOP', 'asyncio')}",
        f"faults: {again(config)}",
    ]


def again(config: pytest.Config) -> str:
    """The options that choose the same cases of tests/faults."""
    return f"--faults={config.option.faults} --faults-seed={config.option.faults_seed}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    """A case of damage that fails tells how it is run again."""
    report = yield
    if report.failed and "faults" in getattr(item, "fixturenames", ()):
        report.sections.append(("the same cases again", f"pytest '{item.nodeid}' {again(item.config)}"))
    return report


@pytest.fixture
def faults(request: pytest.FixtureRequest):
    """How many of its cases a sweep runs, and which."""
    from .scale import Faults

    option = request.config.option
    return Faults({"tenth": 0.1, "full": 1.0}[option.faults], option.faults_seed, request.node.name)


@pytest.fixture(autouse=True)
def nothing_is_left_behind(request: pytest.FixtureRequest):
    """Fails a test that leaves a task, a thread that is no daemon, or an open file below its temporary folder."""
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        # Asked for first, so it is torn down after every other fixture of the loop.
        request.getfixturevalue("no_task_is_left_behind")
    threads = set(threading.enumerate())
    yield
    assert left_threads(threads) == []
    if folder is not None:
        assert open_files_below(folder) == []


@pytest.fixture(scope="session", autouse=True)
def cuts_begin_at_once():
    """Has what an earlier opening left in the log cut beside whatever a test does first, as later cuts are."""
    from session_actor.persistence.cutting import cutter

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutter, "CALM_S", 0.0)
        yield


@pytest.fixture
async def no_task_is_left_behind():
    """Looks at the loop's tasks when the test and its fixtures are through."""
    before = asyncio.all_tasks()
    yield
    await asyncio.sleep(0)
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert sorted(repr(task) for task in left) == []


def left_threads(before: set[threading.Thread], patience_s: float = 2.0) -> list[str]:
    """Names the threads that were started since and do not end by themselves within a moment."""
    deadline = time.monotonic() + patience_s
    left = [thread for thread in threading.enumerate() if thread not in before and counts(thread)]
    for thread in left:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [thread.name for thread in left if thread.is_alive()]


def counts(thread: threading.Thread) -> bool:
    """Leaves out daemons and the threads of a loop's own executor, which end when the loop is closed after this."""
    return not thread.daemon and not thread.name.startswith(("asyncio_", "uvloop_"))


def open_files_below(folder: Path) -> list[str]:
    """Lists this process's open files below a folder; empty where the system has no /proc."""
    found: list[str] = []
    try:
        descriptors = os.listdir("/proc/self/fd")  # noqa: PTH208 - after every test, and pathlib takes four times as long
    except FileNotFoundError:
        return found
    for descriptor in descriptors:
        try:
            target = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
        except OSError:
            continue  # closed meanwhile: the listing's own descriptor
        if f"{target}/".startswith(f"{folder}/"):
            found.append(target)
    return found
