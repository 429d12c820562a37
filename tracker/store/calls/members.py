"""Who is in the process groups of a run, as far as its captures and their files say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final

from msgspec import Struct

NO_GROUP: Final = -1
"""The number of the group of calls that name none."""


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
    """The members of each group by its number, none where they cannot be told.

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
