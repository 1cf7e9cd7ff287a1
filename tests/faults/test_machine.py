"""A store and a plain model of it lead the same life: used in every way, killed, without power, on a failing disk."""

from __future__ import annotations

from random import Random

import pytest

from ..simulation.databases import close_spare_connections
from ..simulation.life import Life, Ways, new_image
from ..simulation.loop import simulated
from ..simulation.model import Model
from .verified import damage_on

PARTS = 4
LIVES = 140
SALVAGING_LIVES = 100
STEPS = 40
TROUBLES = [
    (),
    ("crashes",),
    ("faults",),
    ("faults", "crashes"),
    ("fills",),
    ("fills", "crashes"),
    ("refuses", "crashes"),
    ("salvages", "crashes"),
    ("salvages", "faults", "crashes"),
    ("salvages", "fills", "crashes"),
    ("salvages", "refuses", "crashes"),
]


def ways(
    rng: Random,
    *,
    faults: bool,
    crashes: bool,
    fills: bool = False,
    refuses: bool = False,
    salvages: bool = False,
) -> Ways:
    """One way to live."""
    return Ways(
        segment_bytes=rng.choice((1000, 2000, 4000, 20_000)),
        journal_bytes=rng.choice((500, 2000, 100_000)),
        cut_at_close=rng.choice((0, 64)),
        working=rng.random() < 0.7,
        turns=rng.random() < 0.7,
        faults=faults,
        fills=fills,
        crashes=crashes,
        refuses=refuses,
        salvages=salvages,
    )


def lead(number: int, **troubles: bool) -> Life:
    """Lead the life of that number."""
    rng = Random(number)
    with simulated(number) as (loop, _):
        life = Life(rng, ways(rng, **{"faults": False, "crashes": False, **troubles}))
        try:
            loop.run(life.live(STEPS))
        except BaseException as error:
            error.add_note(f"life {number}, {troubles}: {' '.join(life.steps)}")
            raise
    return life


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("trouble", TROUBLES, ids="-".join)
def test_a_store_does_what_the_model_does(faults, part, trouble):
    for _ in range(faults.count((SALVAGING_LIVES if "salvages" in trouble else LIVES) // PARTS)):
        lead(faults.number(), **dict.fromkeys(trouble, True))


@pytest.mark.parametrize("trouble", TROUBLES, ids="-".join)
def test_verify_finds_nothing_when_a_life_is_over(tmp_path, faults, trouble):
    for case in range(faults.count(20)):
        life = lead(faults.number(), **dict.fromkeys(trouble, True))
        assert damage_on(life.image, tmp_path / str(case)) == [], life.steps


def test_lives_prune_and_fill_the_disk():
    lives = [lead(number, fills=True) for number in range(20)]
    assert {"fill", "prune"} <= {step for life in lives for step in life.steps}
    assert sum(life.pruned_files for life in lives) > 10


def test_the_same_life_is_led_twice_in_the_same_way():
    lives = []
    for _ in range(2):
        close_spare_connections()
        lives.append(lead(4711, faults=True, crashes=True))
    first, second = lives
    assert first.steps == second.steps
    assert first.model.entries == second.model.entries
    assert {path: bytes(inode.data) for path, inode in first.image.files().items()} == {
        path: bytes(inode.data) for path, inode in second.image.files().items()
    }


def test_the_system_clock_set_back_an_hour_changes_nothing(faults):
    for _ in range(faults.count(40)):
        number = faults.number()
        lives = []
        for back_s in (0, 3600):
            with simulated(number) as (loop, clock):
                rng = Random(number)
                life = Life(rng, ways(rng, faults=False, crashes=True))

                async def live(life: Life, back_s: int, clock) -> None:
                    await life.open()
                    for _ in range(20):
                        await life.step()
                    clock.set_forward_s -= back_s
                    for _ in range(20):
                        await life.step()
                    await life.reopen()
                    await life.end()

                loop.run(live(life, back_s, clock))
                lives.append(life)
        assert lives[0].steps == lives[1].steps
        assert lives[0].model.state() == lives[1].model.state()
        assert lives[0].image.files().keys() == lives[1].image.files().keys()


@pytest.mark.parametrize("part", range(PARTS))
def test_any_copy_of_a_store_may_be_restored_written_and_crashed_in_any_order(faults, tmp_path, part):
    """Each copy is of some moment, as the death of the process or a loss of power left it; each goes on by itself."""
    for case in range(faults.count(120 // PARTS)):
        number = faults.number()
        rng = Random(number)
        with simulated(number) as (loop, _):
            kept = [(new_image(), Model())]
            for _ in range(12):
                image, model = rng.choice(kept)
                life = Life(rng, ways(rng, faults=False, crashes=True), image.copy(), model.copy())
                loop.run(some_steps(life, rng))
                if life.crash is not None:
                    life.image, life.model.written, most = life.crash
                    del life.model.entries[most:]
                kept.append((life.image, life.model))
            if case % 10 == 0:
                closed = Life(rng, ways(rng, faults=False, crashes=False), *kept[-1])
                loop.run(closed.live(1))
                assert damage_on(closed.image, tmp_path / str(case)) == []


async def some_steps(life: Life, rng: Random) -> None:
    """Open, do something, die or close."""
    await life.open()
    for _ in range(rng.randrange(12)):
        await life.step()
    if rng.random() < 0.3:
        await life.end()
        return
    life.note_acknowledged()
    power = rng.random() < 0.5
    life.model.written = life.model.synced if power else life.model.written
    life.image = life.image.crash(rng) if power else life.image.copy()
    life.disk.die()
    await life.end()
