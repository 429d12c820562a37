"""The process groups of a run: their numbers, and who is in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Final

import numpy as np
from msgspec import Struct
from sqlalchemy import Connection, text

from tracker.profile import I64
from tracker.store import bulk

_KNOWN_GROUPS: Final = text(
    "SELECT number, process_group_id, ranks FROM run_group WHERE run_id = :run_id AND number >= 0 ORDER BY number"
)
_UNNAMED_GROUPS: Final = text("SELECT COUNT(*) FROM run_group WHERE run_id = :run_id AND number = :number")
_Key = tuple[int, str, int]

NO_GROUP: Final = -1
"""The number of the group of calls that name none."""


class NamedGroups(Struct, frozen=True, eq=False):
    """The groups of one capture: `process_group_id` and `ranks` of each, in its order. `no_group`: the process group of
    calls that name none, None where it has no such calls.
    """

    rank: int
    process_group_id: I64
    ranks: Sequence[str]
    no_group: int | None


class NumberedGroups(Struct, frozen=True, eq=False):
    """Per capture, by rank, the number of each of its groups, and NO_GROUP behind them. `is_new`: the run has got
    groups with these captures.
    """

    numbers: Mapping[int, I64]
    is_new: bool


def number_groups(connection: Connection, run_id: int, captures: Sequence[NamedGroups]) -> NumberedGroups:
    """Number the groups of captures of a run which the transaction holds; those that are new get a row.

    Groups of equal role, size and members are one. Of those without members the n-th of a role and size is the n-th
    that another capture has.
    """
    known: dict[_Key, int] = {}
    seen: Counter[tuple[int, str]] = Counter()
    for row in connection.execute(_KNOWN_GROUPS, {"run_id": run_id}):
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
    if unnamed is not None and not connection.execute(_UNNAMED_GROUPS, which).scalar():
        rows.append((run_id, NO_GROUP, unnamed, ""))
    bulk.insert(connection, "run_group", ("run_id", "number", "process_group_id", "ranks"), rows)
    return NumberedGroups(found, len(known) > before)


def _key(group: tuple[int, str], seen: Counter[tuple[int, str]]) -> _Key:
    """Return what a group is known by; those without members by how many alike came before."""
    place = seen[group] if not group[1] else 0
    seen[group] += 1
    return (*group, place)


class Group(Struct, frozen=True):
    """A group of a run. `size`: None where the source does not say; `ranks`: its members, none: not said."""

    number: int
    role: str
    size: int | None
    ranks: tuple[int, ...]

    @property
    def count(self) -> int | None:
        """How many members it has."""
        return len(self.ranks) or self.size


def members_of(groups: Sequence[Group], world_size: int | None, linked: Set[int]) -> Mapping[int, tuple[int, ...]]:
    """Return the members of each group by its number, none where they cannot be told.

    A group whose members no source says is that of all ranks where it is as large, or where the run has no other group
    of several ranks; calls that name no group are of the only one. `world_size`: of the job, None where no file says
    it: then `linked`, the ranks at the ends of links, are all of them.
    """
    world = tuple(range(world_size)) if world_size else tuple(sorted(linked))
    several = [group for group in groups if group.number != NO_GROUP and (group.count is None or group.count > 1)]

    def members(group: Group) -> tuple[int, ...]:
        if group.ranks:
            return group.ranks
        if group.number == NO_GROUP and len(several) == 1:
            return several[0].ranks or members(several[0])
        is_only = not several or several == [group]
        if not world and is_only:
            return tuple(range(group.size or 0))
        if group.size is not None:
            return world if group.size == len(world) else ()
        return world if is_only else ()

    return {group.number: members(group) for group in groups}
