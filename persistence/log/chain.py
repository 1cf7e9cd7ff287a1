"""Which segments of a log count, up to where each, and what of them is damage: pure, for opening and for verifying.

The newest segment names the one that it continues and the offset up to which that one counts, and so on back to the
first that is not cut: this chain is the log. Segments outside it are leftovers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.persistence.format.header import SegmentRef

from .log import number_of
from .scan import Damage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from session_actor.persistence.format.header import SegmentHeader

    from .scan import SegmentScan

Found = list[tuple[int, Damage]]
"""Damage, each with the number of its segment."""


def beheaded(headers: Mapping[int, SegmentHeader | None], synced_of: Callable[[int], int]) -> frozenset[int]:
    """Numbers of the newest segments whose headers are damaged, and which were begun for all that.

    A header is synced before any line says that something is. `synced_of(number)`: the most that a sound line of a
    segment says of how far it was synced. Without such a line the segment was never begun: it is the end of the log.
    """
    newest = max((number for number, header in headers.items() if header is not None), default=0)
    return frozenset(number for number in headers if number > newest and synced_of(number) > 0)


def chain_of(
    headers: Mapping[int, SegmentHeader | None], first_live: int, begun: Collection[int] = (), noted: int = 0
) -> tuple[list[int], list[int]]:
    """Numbers of the segments that count, oldest first, and of those that should, and are missing.

    `headers`: of each segment, None where it cannot be read. `first_live`: the oldest that is not cut. `begun`: see
    `beheaded`. Behind a missing one the chain goes on with the next older: numbers above it are of segments that were
    given up. `noted`: one that was synced, and so must be among them; 0: none is known.
    """
    chain: list[int] = []
    missing: list[int] = []
    wanted = max((number for number, header in headers.items() if header is not None or number in begun), default=0)
    if not wanted:
        wanted = max(headers, default=0)
    wanted = max(wanted, noted)
    while wanted >= first_live:
        if wanted in headers:
            chain.append(wanted)
            wanted = _before(wanted, headers)
        else:
            missing.append(wanted)
            wanted = _older(wanted, headers)
    if noted >= first_live and noted not in {*chain, *missing}:
        missing.append(noted)
    return chain[::-1], missing


def _before(number: int, headers: Mapping[int, SegmentHeader | None]) -> int:
    """Number of the segment that `number` continues; 0 when there is none."""
    header = headers[number]
    if header is None:
        return _older(number, headers)
    before = header.continues.segment if header.continues else 0
    return before if before < number else 0


def _older(number: int, headers: Mapping[int, SegmentHeader | None]) -> int:
    return max((other for other in headers if other < number), default=0)


def limits_of(chain: Sequence[int], headers: Mapping[int, SegmentHeader | None], sizes: Mapping[int, int]) -> list[int]:
    """Up to which offset each segment counts: where the next one took over, or its end."""
    limits = [sizes[number] for number in chain]
    for index, later in enumerate(chain[1:]):
        header = headers[later]
        if header is not None and header.continues is not None and header.continues.segment == chain[index]:
            limits[index] = header.continues.offset
    return limits


def proven(chain: Sequence[SegmentScan]) -> int:
    """How many of the segments were synced as a whole, as a later one shows."""
    return next((index for index in range(len(chain) - 1, 0, -1) if chain[index].synced_bytes > 0), 0)


def judge(
    chain: Sequence[SegmentScan], limits: Sequence[int], noted: SegmentRef | None = None
) -> tuple[list[SegmentScan], Found]:
    """The segments up to the torn end, and the damage before it. The scans are read up to their limits.

    `noted`: up to where the log was surely synced; None: that is not known.
    """
    all_damage: Found = []
    noted = noted or SegmentRef(0, 0)
    whole = proven(chain)
    for index, scan in enumerate(chain):
        number = number_of(scan.path)
        is_proven = index < whole or number < noted.segment
        synced = noted.offset if number == noted.segment else 0
        damage = scan.judge(proven=is_proven, synced=synced)
        last = index == len(chain) - 1
        if scan.end < synced or (not last and scan.end < limits[index]):
            if not is_proven and scan.end >= synced:
                all_damage += [(number, found) for found in damage]
                return list(chain[: index + 1]), all_damage
            if not damage or damage[-1].offset < scan.end:
                damage.append(Damage(scan.path, scan.end, None))
        all_damage += [(number, found) for found in damage]
    return list(chain), all_damage
