"""Kernels, communication, modules and host API calls of two sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.columns import Column, Columns, objects
from tracker.compare import join, knowing, reduction
from tracker.compare.call_splits import one_split
from tracker.compare.collective_pairs import Pairing, calls_of, pair, paired
from tracker.compare.filters import matching
from tracker.compare.group_pairs import roles_by_size, with_roles
from tracker.compare.kernel_rows import canonical
from tracker.compare.operators import own_time
from tracker.compare.placed import paired_cores, paired_planes
from tracker.results import API_KEY, COMMUNICATION_KEY, KERNEL_TYPE_KEY, MODULE_KEY
from tracker.store import queries
from tracker.table import Numbered, number_distinct_rows, number_tables, rank_values, stack_numbered

if TYPE_CHECKING:
    from tracker.columns import F64, Texts
    from tracker.compare.sides import Loaded
    from tracker.results import DiffOptions

_KERNEL_MATCH: Final = ["name", "input_shapes", "category", "core_type"]
_PARTS: Final = {
    "wait_ns": "ns", "transit_ns": "ns", "synchronization_ns": "ns", "idle_ns": "ns", "exposed_wait_ns": "exposed_ns",
}  # fmt: skip
"""Parts of the time of collectives, and of which: no part of all of it where one of them does not say it."""
_COMMUNICATION_SUMS: Final = ["calls", "bytes", "ns", "exposed_ns", *_PARTS]


def kernels(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> tuple[Columns, Columns]:
    """The `kernels` of a Diff: matched by canonical name, shapes, category and core type; `op` is the op that
    `_launching` names, `type` that of most of it; `why` is left empty. And its `kernel_types`.
    """
    sides = knowing.both(baseline, candidate, knowing.KERNELS)
    asked = [
        canonical(side.ask(queries.kernels), names) for side, names in zip(sides, (options.op_map, {}), strict=True)
    ]
    found = [matching(table, "op", options.op) for table in asked]
    tables = paired_cores(found[0], found[1], _KERNEL_MATCH[:-1])
    rows, joined = _timed(sides, tables, _KERNEL_MATCH)
    op, more_ops = _launching(sides, rows)
    type = reduction.dominant(stack_numbered(rows, "type", "ns"), "type", "ns")
    joined = joined.having(op=op, more_ops=more_ops, type=type, why=objects([""] * len(joined)))
    large = join.large(join.with_difference(joined, "ns"), "ns", options.minimum_ns)
    return join.finished("kernels", large), _kernel_types(sides, found, options)


def _launching(sides: Sequence[Loaded], rows: Sequence[Numbered]) -> tuple[Texts, F64]:
    """For each kernel the op whose time in it changed most, of equal ones that with more of it (first on the
    candidate's side), "" for none; and how many others launch it.
    """
    every = stack_numbered(rows, "op")
    ops = every.rows.texts("op")
    place, first = number_distinct_rows([every.number, ops])
    numbers = np.split(place, [len(rows[0].number)])
    before, after = (
        np.nan_to_num(reduction.of_side(side, Numbered(own.rows, number, len(first)), ["ns"])["ns"])
        for side, own, number in zip(sides, rows, numbers, strict=True)
    )
    kernel, names = every.number[first], ops[first]
    change = np.round(np.abs(after - before), 6)
    order = np.lexsort([-rank_values(names), before, after, change, names != "", kernel])
    found = objects([""] * every.count)
    found[kernel[order]] = names[order]  # the last one stays
    named = np.bincount(kernel[names != ""], minlength=every.count)
    return found, np.maximum(named - 1.0, 0.0)


def _kernel_types(sides: Sequence[Loaded], found: Sequence[Columns], options: DiffOptions) -> Columns:
    """The `kernel_types` of a Diff: what an NPU's profiler calls the type of a kernel, on each type of core.

    Without rows where neither side knows types (GPUs; Ascend's Level0). Collectives are left out, as in
    op_statistic.csv: `communication` has them.
    """
    typed = [own.taken((own["type"] != "") & (own["category"] != "communication")) for own in found]
    if not any(map(len, typed)):
        return join.nothing("kernel_types")
    _, joined = _timed(sides, paired_cores(typed[0], typed[1], ["type"]), KERNEL_TYPE_KEY)
    return join.finished("kernel_types", join.large(join.with_difference(joined, "ns"), "ns", options.minimum_ns))


def _timed(
    sides: Sequence[Loaded],
    tables: Sequence[Columns],
    key: Sequence[str],
    sums: Sequence[str] = ("calls", "ns"),
    parts: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[Numbered], Columns]:
    """The rows of all `tables`, and those of both sides, the first two, matched by `key`, with `sums` (see
    `reduction.of_side`), the average and the extremes of a call.
    """
    rows, keys = number_tables(tables, key)
    numbers = [
        reduction.of_side(side, own, sums, list(parts), parts) | reduction.extremes(own, "min_ns", "max_ns")
        for side, own in zip(sides, rows[:2], strict=True)
    ]
    return rows, join.average(join.matched(keys, rows[:2], numbers), "ns", "calls", "average_ns")


def communication(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> tuple[Columns, Columns]:
    """The `communication` and `communication_details` of a Diff: collectives are matched as `collective_pairs` says,
    their tasks by name and plane.
    """
    sides = knowing.both(baseline, candidate, knowing.COLLECTIVES)
    if all(side.lacks(question) for side in sides for question in (queries.communication, queries.communication_tasks)):
        return join.nothing("communication"), join.nothing("communication_details")
    tables = _collectives(sides, queries.communication, options)
    names = _pairing(sides, tables, options).names
    tables = [paired(table, own) for table, own in zip(tables, names, strict=True)]
    tables = [one_split(table, COMMUNICATION_KEY) for table in tables]
    rows, whole = _timed(sides, tables, COMMUNICATION_KEY, _COMMUNICATION_SUMS, _PARTS)
    words = {f"{side}_split_by": _split_words(own) for side, own in zip(("baseline", "candidate"), rows, strict=True)}
    whole = whole.having(**words)
    whole = join.large(join.with_difference(whole, "ns"), "ns", options.minimum_ns)
    key = [*COMMUNICATION_KEY, "name"]
    tasks = _collectives(sides, queries.communication_tasks, options)
    before, after = (paired(table, own) for table, own in zip(tasks, names, strict=True))
    _, parts = _timed(sides, paired_planes(before, after, key), [*key, "plane"])
    details = join.finished("communication_details", join.with_difference(parts, "ns"))
    return _known_sizes(join.finished("communication", whole)), _known_sizes(details)


def _split_words(rows: Numbered) -> Texts:
    """Where transit and wait of each row come from, None where they are unknown."""
    words = reduction.dominant(rows, "split_by", "ns")
    words[words == ""] = None
    return words


def pairing_of(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> Pairing:
    """How the collectives of two sides are paired in `communication`."""
    sides = knowing.both(baseline, candidate, knowing.COLLECTIVES)
    if any(side.lacks(queries.communication) for side in sides):
        return Pairing(({}, {}))
    return _pairing(sides, _collectives(sides, queries.communication, options), options)


def _collectives(sides: tuple[Loaded, Loaded], question: queries.Question, options: DiffOptions) -> list[Columns]:
    """The chosen rows of collectives or their tasks of both sides, with the roles that groups without one are given."""
    roles = roles_by_size(*sides)
    return [_of_kind(with_roles(side.ask(question), names), options) for side, names in zip(sides, roles, strict=True)]


def _pairing(sides: Sequence[Loaded], tables: Sequence[Columns], options: DiffOptions) -> Pairing:
    calls = [calls_of(side, table) for side, table in zip(sides, tables, strict=True)]
    vendors = [{*side.runs.listed("vendor")} - {None, ""} for side in sides]
    other = bool(vendors[0] and vendors[1]) and not vendors[0] & vendors[1]
    return pair(*calls, by_name=options.match == "name", other_vendor=other)


def _known_sizes(table: Columns) -> Columns:
    """The sizes that were -1 to be match keys, as missing again."""
    sizes = {name: table.integers(name) for name in ("group_size", "size_class_bytes")}
    return table.having(**{name: Column(size, size < 0) for name, size in sizes.items()})


def _of_kind(table: Columns, options: DiffOptions) -> Columns:
    sizes = {name: table.integers(name, missing=-1) for name in ("group_size", "size_class_bytes")}
    table = table.having(**sizes, ns=table["total_ns"])
    return matching(matching(table, "kind", options.kind), "group_role", options.group)


def modules(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> Columns:
    """The `modules` of a Diff: own time of the ops of each module and phase; ops outside all modules and phases
    are left out.
    """
    sides = knowing.both(baseline, candidate, knowing.OPS)
    asked = [side.ask(queries.ops) for side in sides]
    placed = [own.taken((own["module"] != "") | (own["phase"] != "")) for own in asked]
    tables = [matching(own, "module", options.module) for own in placed]
    if not any(map(len, tables)):
        return join.nothing("modules")
    timed = [own.having(ns=own[own_time(side)]) for side, own in zip(sides, tables, strict=True)]
    joined = join.with_difference(join.summed(sides, timed, MODULE_KEY, ["calls", "ns"]), "ns")
    return join.finished("modules", join.large(joined, "ns", options.minimum_ns))


def api(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> Columns:
    """The `api` of a Diff: calls of the host into the device runtime and driver."""
    sides = knowing.both(baseline, candidate, knowing.API)
    if all(side.lacks(queries.api) for side in sides):
        return join.nothing("api")
    tables = [side.ask(queries.api).renamed({"total_ns": "ns"}) for side in sides]
    joined = join.average(join.summed(sides, tables, API_KEY, ["calls", "ns", "self_ns"]), "ns", "calls", "average_ns")
    return join.finished("api", join.large(join.with_difference(joined, "ns"), "ns", options.minimum_ns))
