"""Which process groups of two sides are the same: those of one role and size; and what one without a role is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tracker.columns import Columns, objects
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded

Names = Mapping[int, str]
"""Size of a group without a role -> the role of the group on the other side that it is paired with."""


def roles_by_size(baseline: Loaded, candidate: Loaded) -> tuple[Names, Names]:
    """For either side the roles that its groups without one are given.

    Groups are paired by role and size. One whose role no source says, of known size, is paired with the only group of
    that size on the other side that has no partner; with several there it stays by itself: it may be any of them.
    """
    before, after = _groups(baseline), _groups(candidate)
    return _roles(before - after, after - before), _roles(after - before, before - after)


def with_roles(table: Columns, roles: Names) -> Columns:
    """`table` (columns group_role, group_size) with the `roles` that its groups without one are given."""
    if not roles:
        return table
    groups = table.rows("group_role", "group_size")
    return table.having(
        group_role=objects([role or roles.get(-1 if size is None else size, "") for role, size in groups])
    )


def _groups(side: Loaded) -> set[tuple[str, int]]:
    if side.lacks(queries.communication):
        return set()
    groups = side.ask(queries.communication).rows("group_role", "group_size")
    return {(role, size) for role, size in groups if size is not None and size > 0}


def _roles(own: set[tuple[str, int]], others: set[tuple[str, int]]) -> Names:
    found = {}
    for role, size in own:
        alike = [name for name, count in others if count == size and name]
        if not role and len(alike) == 1:
            found[size] = alike[0]
    return found
