"""Exposed communication by process group, for the overall table: how much of it waits for other ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from tracker.columns import Columns, objects
from tracker.compare import reduction
from tracker.compare.call_splits import one_split, split_of_groups, split_otherwise
from tracker.compare.group_pairs import Names, with_roles
from tracker.compare.metric import Metric, Sum, Sums
from tracker.store import queries
from tracker.table import Numbered, number_distinct_rows, number_tables

if TYPE_CHECKING:
    from tracker.columns import F64, Flags
    from tracker.compare.sides import Loaded

EXPOSED: Final = "exposed_communication_ns"
AT_ONCE: Final = "groups_at_once_ns"
_WAIT: Final = "exposed_wait_ns"
_IN_PROPORTION: Final = "exposed_wait_in_proportion"
_TRANSMIT: Final = "exposed_transmit_ns"
_TOTAL: Final = "group_total_ns"
_SYNCHRONIZATION: Final = "group_synchronization_ns"
_TRANSIT: Final = "group_transit_ns"
_IDLE: Final = "group_idle_ns"
_STATED: Final = {
    _WAIT: "exposed_wait_ns",
    _TOTAL: "total_ns",
    _SYNCHRONIZATION: "synchronization_ns",
    _TRANSIT: "transit_ns",
    _IDLE: "idle_ns",
}
"""Key of the overall table -> column of the collectives that it sums, where that is known of all of them."""
_WHOLE: Final = {
    _WAIT: "exposed_ns", _SYNCHRONIZATION: _TOTAL, _TRANSIT: _TOTAL, _IDLE: _TOTAL,
}  # fmt: skip
"""Part of the time of a group -> the time that it is a part of."""

_PARTS: Final = (_WAIT, _TRANSMIT, _SYNCHRONIZATION, _TRANSIT, _IDLE)
"""Those that depend on where wait and transit come from."""


def group_sums(side: Loaded, exposed_ns: float | None, roles: Names) -> Sums | None:
    """`exposed_communication_ns:<group>` with the collectives of each group; how many there are (`communication_ns`).
    `roles`: what groups without a role are taken for.

    Of the exposed time the waiting (`exposed_wait_ns:<group>`, see `_exposed_wait`) and all but waiting
    (`exposed_transmit_ns:<group>`), where the waiting of all collectives of the group is known in all runs, on the
    ranks that state exposed time. Of the collectives as a whole, hidden by compute or not, what the profiler states of
    all of them: `group_synchronization_ns:<group>` (a part of the waiting), `group_transit_ns:<group>`,
    `group_idle_ns:<group>`, beside `group_total_ns:<group>`.

    All is of the steps that state their exposed time, and in none of them more than that.

    Time in which collectives of several groups are exposed at once counts in each of them.
    `groups_at_once_ns`, the rest, takes that back: it is what the groups lack to sum to `exposed_ns`, the exposed
    communication of the side, and what their medians leave over. It is left out where the exposed time is not
    computed from the same events (host timeline). None where no rank knows its exposed time.
    """
    if not side.steps.known(EXPOSED).any():
        return None
    if side.lacks(queries.communication):
        return {}
    side, table = _within_steps(side, one_split(_grouped(side, roles), ["group"]))
    found: dict[str, Sum] = {}
    wait, in_part = _exposed_wait(table)
    stated = table.having(**{name: table[column] for name, column in _STATED.items()} | {_WAIT: wait})
    (own,), keys = number_tables([stated], ["group"])
    numbers = reduction.of_side(side, own, ["exposed_ns", "calls", *_STATED], list(_STATED), _WHOLE)
    exposed = Numbered(stated.taken(table.known("exposed_ns")), own.number[table.known("exposed_ns")], own.count)
    numbers |= reduction.of_side(side, exposed, ["exposed_ns", _WAIT], [_WAIT], {_WAIT: "exposed_ns"})
    numbers[_TRANSMIT] = numbers["exposed_ns"] - numbers[_WAIT]
    for group, *row in keys.having(**numbers).rows("group", *numbers):
        of_group = dict(zip(numbers, row, strict=True))
        found[f"{EXPOSED}:{group}"] = Sum(of_group["exposed_ns"], of_group["calls"])
        found |= {f"{name}:{group}": Sum(of_group[name]) for name in (*_STATED, _TRANSMIT)}
    for group in dict.fromkeys(table["group"][in_part].tolist()):
        found[f"{_IN_PROPORTION}:{group}"] = Sum(1.0)
    of_groups = [summed.ns or 0.0 for key, summed in found.items() if key.startswith(f"{EXPOSED}:")]
    every = Numbered(table, np.zeros(len(table), dtype=np.int64), 1)
    (calls,) = reduction.of_side(side, every, ["calls"])["calls"].tolist()
    found["communication_ns"] = Sum(None, calls)
    if side.side.timeline == "device":
        is_known = table.known("exposed_ns").all()
        found[AT_ONCE] = Sum(exposed_ns - sum(of_groups) if exposed_ns is not None and is_known else None)
    return found


def _exposed_wait(table: Columns) -> tuple[F64, Flags]:
    """The waiting that no compute hides, and which rows estimate it. No source says whether compute hides waiting or
    transfer: where it hides a part of a collective, the exposed part is taken to wait as much as all of it.
    """
    exposed, wait, total = (table.reals(name) for name in ("exposed_ns", "wait_ns", "total_ns"))
    lacking = ~table.known("exposed_wait_ns") & ~np.isnan(exposed + wait) & (total > 0)
    found = np.where(lacking, wait * exposed / np.where(total > 0, total, 1.0), table.reals("exposed_wait_ns"))
    return found, lacking & (wait > 0) & (wait < total) & (exposed > 0) & (exposed < total)


def _within_steps(side: Loaded, table: Columns) -> tuple[Loaded, Columns]:
    """The side with the steps that state their exposed time, and their collectives. Where those of a group run at the
    same time, their exposed time adds up to more than that of the step: they share it then.
    """
    stated = side.steps.taken(side.steps.known(EXPOSED))
    key = ("run_id", "rank", "step")
    (rows, steps), _ = number_tables([table, stated], key)
    whole = np.full(rows.count, np.nan)
    whole[steps.number] = stated.reals(EXPOSED) * stated.reals("steps")
    inside = ~np.isnan(whole[rows.number])
    table, limit = table.taken(inside), whole[rows.number[inside]]
    cell, first = number_distinct_rows([table[name] for name in (*key, "group")])
    sums = np.bincount(cell, np.nan_to_num(table.reals("exposed_ns")), len(first))[cell]
    part = np.where(sums > limit, limit / np.where(sums > 0, sums, 1.0), 1.0)
    exposed = {name: table.reals(name) * part for name in ("exposed_ns", "exposed_wait_ns")}
    return replace(side, steps=stated, answers={}), table.having(**exposed)


def group_splits(side: Loaded, roles: Names) -> dict[str, str]:
    """Where wait and transit of each process group come from: see `call_splits`."""
    return {} if side.lacks(queries.communication) else split_of_groups(_grouped(side, roles))


def without_other_splits(sides: Sequence[Sums], splits: Sequence[Mapping[str, str]]) -> list[Sums]:
    """The sides without the parts of groups whose wait and transit come from the ranks on one side alone."""
    dropped = {f"{part}:{group}" for group in split_otherwise(*splits) for part in _PARTS}
    return [{key: found for key, found in side.items() if key not in dropped} for side in sides]


def _grouped(side: Loaded, roles: Names) -> Columns:
    """The collectives of a side with the name of their `group`."""
    table = with_roles(side.ask(queries.communication), roles)
    names = [group_name(role, size) for role, size in table.rows("group_role", "group_size")]
    return table.having(group=objects(names))


def group_name(role: str, size: int | None) -> str:
    """A process group by what it is for and its size, which mean the same in every run.

    >>> group_name("dp", 8), group_name("", 4), group_name("", None)
    ('dp x8', 'group x4', 'group not named')
    """
    count = "" if size is None or size < 0 else f"x{size}"
    return " ".join(filter(None, (role or ("group" if count else "group not named"), count)))


def with_absent(sides: Sequence[Sums | None]) -> list[Sums]:
    """The sides with 0 for each group that only another side has: its collectives did not run there. A side that does
    not know its exposed time (None) has none.
    """
    known = {
        key: Sum(0.0, None if found.calls is None else 0.0) for side in sides for key, found in (side or {}).items()
    }
    absent = {key: nothing for key, nothing in known.items() if ":" in key}
    return [{} if side is None else {**absent, **side} for side in sides]


def _parts(sides: Sequence[Sums], group: str) -> list[Metric]:
    """The rows below one group. The profiler states transit, idle time and synchronization of whole collectives: where
    compute hides some of them, how much of that is exposed is not told.
    """

    def ns(side: Sums, name: str) -> float | None:
        return side[f"{name}:{group}"].ns if f"{name}:{group}" in side else None

    stated = any(ns(side, _TRANSIT) is not None for side in sides if ns(side, _TOTAL))
    hidden = any((ns(side, _TOTAL) or 0.0) > (ns(side, EXPOSED) or 0.0) for side in sides)
    of_all = ", hidden or not" if hidden else ""
    in_part = " (of calls hidden in part: in proportion)" if any(ns(side, _IN_PROPORTION) for side in sides) else ""
    return [
        Metric(f"{_WAIT}:{group}", f"Wait{in_part}", 3, in_step=True),
        Metric(f"{_SYNCHRONIZATION}:{group}", f"Synchronization{of_all}", 4, in_step=not hidden),
        Metric(f"{_TRANSMIT}:{group}", "All but wait" if stated else "Transmit (all but wait)", 3, in_step=True),
        Metric(f"{_TRANSIT}:{group}", f"Transit{of_all}", 4, in_step=not hidden),
        Metric(f"{_IDLE}:{group}", f"Idle{of_all}", 4, in_step=not hidden),
    ]


def group_metrics(sides: Sequence[Sums]) -> list[Metric]:
    """The rows of the groups that either side has, the largest first."""
    size: dict[str, float] = {}
    for side in sides:
        for key, found in side.items():
            if key.startswith(f"{EXPOSED}:"):
                group = key.removeprefix(f"{EXPOSED}:")
                size[group] = max(size.get(group, 0.0), found.ns or 0.0)
    rows = []
    for group in sorted(size, key=lambda group: (-size[group], group)):
        rows.append(Metric(f"{EXPOSED}:{group}", group, 2, in_step=True))
        rows += _parts(sides, group)
    if any(side[AT_ONCE].ns for side in sides if AT_ONCE in side):
        title = "Rest (collectives at the same time count twice above; medians do not add up)"
        rows.append(Metric(AT_ONCE, title, 2, in_step=True))
    return rows
