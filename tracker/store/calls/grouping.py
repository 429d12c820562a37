"""The numbers of the process groups of a run: its captures name the same group each in its own way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from sqlalchemy import Connection, text

from tracker.profile import I64
from tracker.store import bulk
from tracker.store.calls.members import NO_GROUP

_KNOWN: Final = text(
    "SELECT number, process_group_id, ranks FROM run_group WHERE run_id = :run_id AND number >= 0 ORDER BY number"
)
_UNNAMED: Final = text("SELECT COUNT(*) FROM run_group WHERE run_id = :run_id AND number = :number")
_Key = tuple[int, str, int]


class Named(Struct, frozen=True, eq=False):
    """The groups of one capture: `process_group_id` and `ranks` of each, in its order. `no_group`: the process group of
    calls that name none, None where it has no such calls.
    """

    rank: int
    process_group_id: I64
    ranks: Sequence[str]
    no_group: int | None


class Numbered(Struct, frozen=True, eq=False):
    """Per capture, by rank, the number of each of its groups, and NO_GROUP behind them. `is_new`: the run has got
    groups with these captures.
    """

    numbers: Mapping[int, I64]
    is_new: bool


def number_groups(connection: Connection, run_id: int, captures: Sequence[Named]) -> Numbered:
    """Number the groups of captures of a run which the transaction holds; those that are new get a row.

    Groups of equal role, size and members are one. Of those without members the n-th of a role and size is the n-th
    that another capture has.
    """
    known: dict[_Key, int] = {}
    seen: Counter[tuple[int, str]] = Counter()
    for row in connection.execute(_KNOWN, {"run_id": run_id}):
        known[_key((row.process_group_id, row.ranks), seen)] = row.number
    before = len(known)
    found = {}
    for capture in captures:
        own: Counter[tuple[int, str]] = Counter()
        keys = [_key(each, own) for each in zip(capture.process_group_id.tolist(), capture.ranks, strict=True)]
        numbers = [known.setdefault(key, len(known)) for key in keys]
        found[capture.rank] = np.array([*numbers, NO_GROUP], dtype=np.int64)
    rows = [(run_id, number, group, ranks) for (group, ranks, _), number in list(known.items())[before:]]
    unnamed = next((capture.no_group for capture in captures if capture.no_group is not None), None)
    which = {"run_id": run_id, "number": NO_GROUP}
    if unnamed is not None and not connection.execute(_UNNAMED, which).scalar():
        rows.append((run_id, NO_GROUP, unnamed, ""))
    bulk.insert(connection, "run_group", ("run_id", "number", "process_group_id", "ranks"), rows)
    return Numbered(found, len(known) > before)


def _key(group: tuple[int, str], seen: Counter[tuple[int, str]]) -> _Key:
    """What a group is known by; those without members by how many alike came before."""
    place = seen[group] if not group[1] else 0
    seen[group] += 1
    return (*group, place)
