"""Collectives of two sides: which process groups and collectives are the same, how their time splits, and their links.

Collectives are matched by the most specific key that both sides know. The full key is kind, group role, group size,
data type and size class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isclose
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Column, Columns, objects
from tracker.compare import coverage, match
from tracker.compare.filters import matching
from tracker.compare.side import GRAIN
from tracker.results import COMMUNICATION_KEY, DIFF_COLUMNS, LINK, LINK_KEY, PACKET, TRANSPORT
from tracker.schema.column_names import (
    BANDWIDTH_GB_PER_S,
    BYTES,
    CALLS,
    GROUP,
    GROUP_ROLE,
    GROUP_SIZE,
    KIND,
    LARGE_PACKET_RATIO,
    PACKET_BYTES,
    PACKETS,
    RANK,
    RUN_ID,
    SIZE_CLASS_BYTES,
    SOURCE_RANK,
    SPLIT_BY,
    STEP,
    STEPS,
    TRANSIT_NS,
)
from tracker.schema.column_names import TRANSPORT as TRANSPORT_COLUMN
from tracker.store import queries
from tracker.table import add_up_rows, is_among, number_distinct_rows, number_tables
from tracker.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracker.columns import F64
    from tracker.compare.side import LoadedSide
    from tracker.results import DiffOptions, Selection
    from tracker.table import Numbered


Names = Mapping[int, str]
"""Size of a group without a role -> the role of the group on the other side that it is paired with."""

BY_RANKS: Final = "ranks"
BY_TASKS: Final = "tasks"
BY_PROFILER: Final = "profiler"
PARTS: Final = ("wait_ns", "transit_ns", "synchronization_ns", "idle_ns", "exposed_wait_ns")
_NO_GROUP: Final = -1
_WORDS: Final = {BY_RANKS: "all ranks", BY_TASKS: "the tasks of the calls", BY_PROFILER: "the profiler"}

Key = tuple[str, str, int, str, int]
"""The columns COMMUNICATION_KEY of one collective; "" and -1 for what is not known."""

Calls = Mapping[Key, float]
"""The collectives of a side, with the calls per step and rank."""

_ROLE, _GROUP_SIZE, _TYPE, _SIZE = range(1, 5)
_UNKNOWN: Final = ("", "", -1, "", -1)
_GROUP, _PAYLOAD = (_ROLE, _GROUP_SIZE), (_TYPE, _SIZE)

_LINK_KEY: Final = list(LINK_KEY)
_LINK_NUMBERS: Final = ("group_size", "source_rank", "target_rank")
_LINK_SUMS: Final = [CALLS, PACKETS, BYTES, TRANSIT_NS]
_LINK_COLLECTIVE: Final = (RUN_ID, RANK, STEP, KIND, GROUP_ROLE, GROUP_SIZE)
_PARTS_OF_SDMA: Final = ["HCCS", "PCIE", "SIO"]
_LINK_ENDS: Final = ["source_rank", "target_rank", "packet_bytes"]


def roles_by_size(baseline: LoadedSide, candidate: LoadedSide) -> tuple[Names, Names]:
    """Return for either side the roles that its groups without one are given.

    Groups are paired by role and size. One whose role no source says, of known size, is paired with the only group of
    that size on the other side that has no partner; with several there it stays by itself: it may be any of them.
    """
    before, after = _groups(baseline), _groups(candidate)
    return _roles(before - after, after - before), _roles(after - before, before - after)


def with_roles(table: Columns, roles: Names) -> Columns:
    """Return `table` (columns group_role, group_size) with the `roles` that its groups without one are given."""
    if not roles:
        return table
    groups = table.rows(GROUP_ROLE, GROUP_SIZE)
    return table.having(
        group_role=objects([role or roles.get(-1 if size is None else size, "") for role, size in groups])
    )


def _groups(side: LoadedSide) -> set[tuple[str, int]]:
    if side.is_empty(queries.communication):
        return set()
    groups = side.query(queries.communication).rows(GROUP_ROLE, GROUP_SIZE)
    return {(role, size) for role, size in groups if size is not None and size > 0}


def _roles(own: set[tuple[str, int]], others: set[tuple[str, int]]) -> Names:
    found = {}
    for role, size in own:
        alike = [name for name, count in others if count == size and name]
        if not role and len(alike) == 1:
            found[size] = alike[0]
    return found


def name_task_waits(side: LoadedSide, table: Columns, *, by: Sequence[str] = GRAIN, in_steps: bool = True) -> Columns:
    """Return collectives of a side, the answer at the grain `by`, with `tasks` as `split_by` where their waiting is
    that of tasks which name the rank that they wait for.

    The profiler's own column counts the first plane of a call alone, and its synchronization and idle time are parts
    of that split: they stand beside the waiting of the tasks.
    """
    if not len(table) or side.is_empty(queries.communication_waits):
        return table
    waits = side.query(queries.communication_waits, by=by, in_steps=in_steps)
    key = [name for name in (RUN_ID, RANK, STEP, *COMMUNICATION_KEY) if name in table and name in waits]
    sizes = (GROUP_SIZE, SIZE_CLASS_BYTES)
    known = [one.having(**{name: one.integers(name, missing=-1) for name in sizes}) for one in (table, waits)]
    (calls, waiting), _ = number_tables(known, key)
    is_by_tasks = np.isin(calls.number, waiting.number)
    words = [word or "" for word in table.listed(SPLIT_BY)]
    named = objects([BY_TASKS if own and word else word or None for own, word in zip(is_by_tasks, words, strict=True)])
    return table.having(split_by=named)


def one_split(table: Columns, key: Sequence[str]) -> Columns:
    """Collectives without the parts of those whose rows with one `key` (of several runs) were split in two ways."""
    split = table.texts(SPLIT_BY)
    words = objects([word or "" for word in split])
    place, first = number_distinct_rows([table[name] for name in key])
    ways = sum((np.bincount(place, words == word, len(first)) > 0).astype(np.int64) for word in _WORDS)
    mixed = np.asarray(ways > 1)[place]
    if not mixed.any():
        return table.having(split_by=words)
    parts = {name: np.where(mixed, np.nan, table.reals(name)) for name in PARTS}
    return table.having(**parts, split_by=objects(np.where(mixed, "", words).tolist()))


def split_of_groups(table: Columns) -> dict[str, str]:
    """Return where wait and transit of each `group` of a side come from; "" where that is unknown, or both.

    They measure different things: the ranks together show how long each of them waited for the last one, the tasks
    of a call how long it stood still for a rank, and a profiler's own column counts what stands still on one plane.
    Numbers of one kind are not compared with numbers of another.
    """
    found: dict[str, set[str]] = {}
    for group, word in table.rows(GROUP, SPLIT_BY):
        found.setdefault(group, set()).add(word or "")
    return {group: words.pop() if len(words) == 1 else "" for group, words in found.items()}


def split_otherwise(baseline: Mapping[str, str], candidate: Mapping[str, str]) -> list[str]:
    """Return the groups whose wait the two sides have from different places, in order."""
    return sorted(
        group
        for group in baseline.keys() & candidate.keys()
        if baseline[group] and candidate[group] and baseline[group] != candidate[group]
    )


def notes_of_difference(baseline: Mapping[str, str], candidate: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence where wait and transit of the two sides come from different places."""
    groups_of: dict[tuple[str, str], list[str]] = {}
    for group in split_otherwise(baseline, candidate):
        groups_of.setdefault((baseline[group], candidate[group]), []).append(group)
    for (before, after), groups in sorted(groups_of.items()):
        yield (
            f"Wait and transit of {', '.join(groups)} come from {_WORDS[before]} in the baseline and from "
            f"{_WORDS[after]} in the candidate: they are not compared."
        )


def notes_of_groups(sides: Sequence[LoadedSide]) -> Iterator[str]:
    """Yield why wait and transit of a side are not computed across ranks, and where clocks were corrected for it."""
    for side in {side.side.label: side for side in sides}.values():
        often = Counter(side.captures.listed(RUN_ID))
        several = {run_id for run_id, count in often.items() if count > 1}
        if several and not side.is_empty(queries.communication):
            yield from dict.fromkeys(_notes_of_rows(side.side.label, side.query_with(queries.run_groups), several))


def _notes_of_rows(label: str, groups: Columns, several: set[int]) -> Iterator[str]:
    columns = ("run_id", "number", "group_role", "members", "captured", "clock_offset_ns")
    for run_id, number, role, members, captured, offset_ns in groups.rows(*columns):
        if run_id not in several:
            continue
        if offset_ns is not None:
            offset = format_ns(abs(offset_ns))
            yield f"{label}: the clocks of its hosts differ by up to {offset}; corrected to match calls across ranks."
        if captured is not None and 1 < captured < members:
            name = f"group {role} of" if role else "group of"
            yield f"{label}: {name} {members}, {captured} captured: wait and transit are not computed across ranks."
        if number == _NO_GROUP and captured is None:
            yield (
                f"{label}: collectives name no process group and the run may have several: wait and transit are not "
                "computed across ranks."
            )


class Pairing(Struct, frozen=True):
    """Of each side the keys that are summed up to coarser ones.

    `dropped`: the kinds of which size or type were left out, and those of which the group was.
    """

    names: tuple[Mapping[Key, Key], Mapping[Key, Key]]
    dropped: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def pair_collectives(
    baseline: Calls, candidate: Calls, *, by_name: bool = False, other_vendor: bool = False
) -> Pairing:
    """Return how the collectives of two sides are paired.

    A collective that both sides have is neither ADDED nor REMOVED because a profiler does not state its size.
    Rows without a partner lose first their group, then data type and size class:

    - the group (role, size) where one side does not know it, or `other_vendor`;
    - type and size each where one side does not know it;
    - both where the rows that are left are equally many calls on both sides: the n-th is the n-th (a changed payload);
    - both for all rows of a kind and group `by_name`, or where another vendor's profiler wrote the other side.
    """
    sides = (_Side.of(baseline), _Side.of(candidate))
    without_group = _coarsened(
        sides, lambda key: (key[0],), lambda before, after: _groups_to_drop(before, after, other_vendor)
    )
    whole = by_name or other_vendor
    without_payload = _coarsened(
        sides, lambda key: key[:3], lambda before, after: _payload_to_drop(before, after, whole), whole=whole
    )
    return Pairing((sides[0].names, sides[1].names), (_kinds(without_payload), _kinds(without_group)))


def rename_to_pairs(table: Columns, names: Mapping[Key, Key]) -> Columns:
    """Return `table` with the keys that a `Pairing` gives its rows."""
    if not names or not len(table):
        return table
    keys = [names.get(key, key) for key in table.rows(*COMMUNICATION_KEY)]
    columns: dict[str, Any] = {}
    for name, unknown, values in zip(COMMUNICATION_KEY, _UNKNOWN, zip(*keys, strict=True), strict=True):
        columns[name] = objects(values) if unknown == "" else np.array(values, dtype=np.int64)
    return table.having(**columns)


def calls_of(side: LoadedSide, table: Columns) -> Calls:
    """Return the collectives of a side (sizes -1 where unknown), with the calls per step and rank over all of
    its runs.
    """
    steps = sum(max(steps, 1) for steps in side.captures.listed(STEPS))
    found: dict[Key, float] = {}
    for calls, *key in table.rows(CALLS, *COMMUNICATION_KEY):
        name: Key = (key[0], key[1], key[2], key[3], key[4])
        found[name] = found.get(name, 0.0) + (calls or 0) / steps
    return found


class _Side(Struct):
    """The rows of a side under their present keys; `names`: original key -> present key, where they differ."""

    rows: dict[Key, list[Key]]
    calls: Calls
    names: dict[Key, Key]

    @classmethod
    def of(cls, calls: Calls) -> _Side:
        return cls({key: [key] for key in calls}, calls, {})

    def coarsen(self, keys: Iterable[Key], dropped: Sequence[int]) -> None:
        """Drops columns of these keys, and sums up what is then equal."""
        for key in keys:
            cells: list[Any] = list(key)
            for column in dropped:
                cells[column] = _UNKNOWN[column]
            coarse: Key = (cells[0], cells[1], cells[2], cells[3], cells[4])
            if coarse == key:
                continue
            originals = self.rows.pop(key)
            self.rows.setdefault(coarse, []).extend(originals)
            self.names.update(dict.fromkeys(originals, coarse))

    def total(self, keys: Iterable[Key]) -> float:
        return sum(self.calls[original] for key in keys for original in self.rows[key])


_Rest = tuple[_Side, Sequence[Key]]
"""A side, and those of its keys in a bucket that the other side does not have."""


def _coarsened(
    sides: tuple[_Side, _Side],
    bucket: Callable[[Key], tuple[Any, ...]],
    dropped_of: Callable[[_Rest, _Rest], tuple[int, ...]],
    *,
    whole: bool = False,
) -> list[str]:
    """Drops in each bucket the columns that `dropped_of` says for the keys without a partner; the kinds in which any
    were. `whole`: of all keys in the bucket.
    """
    before, after = (_count_by(side.rows, bucket) for side in sides)
    kinds = []
    for name in before.keys() & after.keys():
        own = before[name], after[name]
        shared = set(own[0]) & set(own[1])
        rest = [[key for key in keys if key not in shared] for keys in own]
        if not any(rest) or not (all(rest) or whole):
            continue
        dropped = dropped_of((sides[0], rest[0]), (sides[1], rest[1]))
        if not dropped:
            continue
        kinds.append(str(name[0]))
        for side, keys, left in zip(sides, own, rest, strict=True):
            side.coarsen(keys if whole else left, dropped)
    return kinds


def _count_by(keys: Iterable[Key], bucket: Callable[[Key], tuple[Any, ...]]) -> dict[tuple[Any, ...], list[Key]]:
    found: dict[tuple[Any, ...], list[Key]] = {}
    for key in keys:
        found.setdefault(bucket(key), []).append(key)
    return found


def _groups_to_drop(before: _Rest, after: _Rest, other_vendor: bool) -> tuple[int, ...]:
    """Return both columns of the group, where the groups without a partner cannot be told apart on one side."""
    groups = [{key[1:3] for key in keys} for _, keys in (before, after)]
    if not (groups[0] - groups[1] and groups[1] - groups[0]):
        return ()
    lacking = _lacks(before, after, _ROLE) or _lacks(before, after, _GROUP_SIZE)
    return _GROUP if other_vendor or lacking else ()


def _payload_to_drop(before: _Rest, after: _Rest, whole: bool) -> tuple[int, ...]:
    if whole:
        return _PAYLOAD
    unknown = tuple(column for column in _PAYLOAD if _lacks(before, after, column))
    if unknown and _agree(before, after, unknown):
        return unknown
    equal = isclose(before[0].total(before[1]), after[0].total(after[1]), rel_tol=1e-9)
    return _PAYLOAD if unknown or equal else ()


def _agree(before: _Rest, after: _Rest, dropped: Sequence[int]) -> bool:
    """Return whether without these columns each key has a partner."""
    kept = [column for column in range(len(_UNKNOWN)) if column not in dropped]
    first, second = ({tuple(key[column] for column in kept) for key in keys} for _, keys in (before, after))
    return first == second


def _lacks(before: _Rest, after: _Rest, column: int) -> bool:
    """Return whether one side does not know a column of some row that the other side knows of one."""
    first, second = ([key[column] == _UNKNOWN[column] for key in keys] for _, keys in (before, after))
    return (any(first) and not all(second)) or (any(second) and not all(first))


def _kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(kinds)))


def links_of_side(side: LoadedSide, options: Selection, by: Sequence[str], *, in_steps: bool) -> Columns:
    """Return the links of a side at the grain `by`, with `bandwidth_gb_per_s` (bytes per ns of transit).

    A transport of which the source only says single links gets a row for all of them together. SDMA of collectives
    whose HCCS, PCIE or SIO is there as well is left out: it stands for these together. The share of large packets is
    missing where no packets were counted. `level` says which rows state the same bytes: sum up those of one only.
    `options.minimum_ns` drops rows, but no part of a sum.
    """
    asked = side.query(queries.communication_links, by=by, in_steps=in_steps)
    table = matching(matching(asked, "kind", options.kind), GROUP_ROLE, options.group)
    table = _with_totals(_without_sums(table))
    if options.minimum_ns is not None:
        table = table.taken(table.integers(TRANSIT_NS) >= options.minimum_ns)
    transit = table.reals(TRANSIT_NS)
    return _by_level(
        table.having(
            large_packet_ratio=np.where(table.known(PACKETS), table.reals(LARGE_PACKET_RATIO), np.nan),
            bandwidth_gb_per_s=table.reals(BYTES) / np.where(transit > 0, transit, np.nan),
        )
    )


def _by_level(table: Columns) -> Columns:
    """Return `table` with its `level`, level by level, the order within a level kept."""
    place = table.known(SOURCE_RANK).astype(np.int64)
    if PACKET_BYTES in table:
        place[table.known(PACKET_BYTES)] = 2
    level = objects([TRANSPORT, LINK, PACKET])[place]
    names = list(table.arrays)
    at = names.index("kind")
    return table.having(level=level).only([*names[:at], "level", *names[at:]]).taken(place.argsort(kind="stable"))


def _without_sums(table: Columns) -> Columns:
    """Return `table` without SDMA where its parts have rows of their own: the bytes would be there twice."""
    place, first = number_distinct_rows([table[name] for name in table.arrays if name in _LINK_COLLECTIVE])
    has_parts = np.bincount(place, is_among(table[TRANSPORT_COLUMN], _PARTS_OF_SDMA), len(first)) > 0
    return table.taken(~((table[TRANSPORT_COLUMN] == "SDMA") & has_parts[place]))


def _with_totals(table: Columns) -> Columns:
    """Return `table` and, per collective and transport without a row for all links together, the sum of its single
    links; a sum is missing where any of its numbers is: a sum of the others would look whole.
    """
    of_links, of_packets = table.known(SOURCE_RANK), table.known(PACKET_BYTES)
    if not (of_links & ~of_packets).any():
        return table
    key = [name for name in table.arrays if name not in (*_LINK_SUMS, *_LINK_ENDS, LARGE_PACKET_RATIO)]
    sums = add_up_rows(table.taken(of_links & ~of_packets), key, dict.fromkeys(_LINK_SUMS, "sum"))
    (whole, own), _ = number_tables([table.taken(~of_links & ~of_packets), sums], key)
    added = sums.taken(~np.isin(own.number, whole.number))
    none = np.ones(len(added), dtype=bool)
    ends = {name: Column(np.zeros(len(added), dtype=np.int64), none) for name in _LINK_ENDS}
    added = added.having(**ends, large_packet_ratio=np.full(len(added), np.nan))
    return Columns.stacked([added.only(list(table.arrays)), table])


def compare_links(baseline: LoadedSide, candidate: LoadedSide, options: DiffOptions) -> Columns:
    """Return the `communication_links` of a Diff, of the ranks that use a link."""
    tables = []
    sides = coverage.blank_unless_both(baseline, candidate, coverage.COLLECTIVES)
    if all(side.is_empty(queries.communication_links) for side in sides):
        return match.empty_table("communication_links")
    for side, roles in zip(sides, roles_by_size(*sides), strict=True):
        table = links_of_side(side, replace(options, minimum_ns=None), ("run", *GRAIN), in_steps=True)
        tables.append(_with_shares(with_roles(table.taken(~table.known(PACKET_BYTES)), roles)))
    rows, keys = number_tables(tables, _LINK_KEY)
    numbers = [_numbers_of(side, own) for side, own in zip(sides, rows, strict=True)]
    joined = match.add_difference(match.match_rows(keys, rows, numbers), TRANSIT_NS)
    joined = match.keep_large(joined, TRANSIT_NS, options.minimum_ns)
    joined = joined.having(**{name: Column(joined[name], joined[name] < 0) for name in _LINK_NUMBERS})
    return _by_level(joined).only(DIFF_COLUMNS["communication_links"])


def _with_shares(table: Columns) -> Columns:
    """Return the rows with the bytes in `large` packets, those of which the share is `stated`, and -1 for
    unknown ends.
    """
    ratio, size = table.reals(LARGE_PACKET_RATIO), table.reals(BYTES)
    ends = {name: table.integers(name, missing=-1) for name in _LINK_NUMBERS}
    return table.having(**ends, large=ratio * size, stated=np.where(np.isnan(ratio), np.nan, size))


def _numbers_of(side: LoadedSide, rows: Numbered) -> dict[str, F64]:
    found = match.reduce_side(
        side, rows, [*_LINK_SUMS, "large", "stated"], _LINK_SUMS, dict.fromkeys(("large", "stated"), "bytes")
    )
    transit, stated = found[TRANSIT_NS], found.pop("stated")
    found[BANDWIDTH_GB_PER_S] = found[BYTES] / np.where(transit != 0, transit, np.nan)
    found[LARGE_PACKET_RATIO] = found.pop("large") / np.where(stated != 0, stated, np.nan)
    return found
