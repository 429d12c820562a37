"""Where a kernel or task ran, as part of what identifies it: chips do the same work on other cores and planes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tracker.columns import Columns, objects
from tracker.units import format_numbers

Names = Mapping[tuple[Any, ...], str]
"""Key -> what its cores or planes are called."""


def paired_cores(baseline: Columns, candidate: Columns, key: Sequence[str]) -> list[Columns]:
    """Both tables with one `core_type` for a `key` that each side runs on one kind of core, such as
    `AI_CORE -> AI_VECTOR_CORE`.

    A chip with one kind of core calls it AI_CORE, one with two runs the same kernel on a vector core: that is the
    same kernel, and not one removed and one added. Where one side does not say, the other one's word stands. A key
    with several kinds of cores on a side keeps them apart.
    """
    told = core_names(baseline, candidate, key)
    return [with_cores(table, key, told) for table in (baseline, candidate)]


def core_names(baseline: Columns, candidate: Columns, key: Sequence[str]) -> Names:
    """What `paired_cores` calls the cores of each `key` that the sides run on other cores."""
    if len({*baseline.listed("core_type"), *candidate.listed("core_type")}) < 2:
        return {}
    before, after = (
        {own: cores.pop() for own, cores in _distinct(table, key, "core_type").items() if len(cores) == 1}
        for table in (baseline, candidate)
    )
    pairs = {own: (before[own], after[own]) for own in before.keys() & after.keys() if before[own] != after[own]}
    return {own: f"{old} -> {new}" if old and new else old or new for own, (old, new) in pairs.items()}


def with_cores(table: Columns, key: Sequence[str], names: Names) -> Columns:
    """`table` with the cores of `names`, an answer of `core_names` for this `key`."""
    return _renamed(table, key, "core_type", names)


def paired_planes(baseline: Columns, candidate: Columns, key: Sequence[str]) -> list[Columns]:
    """Both tables with one `plane` for the tasks of a `key` that the sides run on other planes, such as `0 -> 1-7`.

    How many planes a collective uses is a matter of chip and algorithm; its tasks are then one row, of all planes.
    """
    tables = (baseline, candidate)
    before, after = (
        {own: _planes(planes) for own, planes in _distinct(table, key, "plane").items()} for table in tables
    )
    told = {own: f"{before[own]} -> {after[own]}" for own in before.keys() & after.keys() if before[own] != after[own]}
    return [_renamed(table, key, "plane", told) for table in tables]


def _planes(planes: Iterable[str]) -> str:
    distinct = sorted(planes)
    if all(plane.isdecimal() for plane in distinct):
        return format_numbers(sorted(map(int, distinct)))
    return ",".join(distinct)


def _distinct(table: Columns, key: Sequence[str], column: str) -> dict[tuple[Any, ...], set[str]]:
    """Each key with the distinct texts of `column`."""
    found: dict[tuple[Any, ...], set[str]] = {}
    for text, *own in table.rows(column, *key):
        found.setdefault(tuple(own), set()).add(text)
    return found


def _renamed(table: Columns, key: Sequence[str], column: str, told: Names) -> Columns:
    """`table` with the text of `told` in `column`, where there is one."""
    if not told:
        return table
    return table.having(**{column: objects([told.get(tuple(own), old) for old, *own in table.rows(column, *key)])})
