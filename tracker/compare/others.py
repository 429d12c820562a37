"""Kernels, communication, memory, modules and host API calls of two sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.compare import join, knowing, means
from tracker.compare.filters import matching
from tracker.compare.group_pairs import roles_by_size, with_roles
from tracker.compare.kernel_rows import canonical
from tracker.compare.keys import Numbered, numbered, places, ranks, together
from tracker.compare.operators import own_time
from tracker.compare.placed import paired_cores, paired_planes
from tracker.lazy import pd
from tracker.results import API_KEY, COMMUNICATION_KEY, KERNEL_TYPE_KEY, MODULE_KEY, OP_KEY
from tracker.store import queries

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracker.compare.keys import F64, Columns
    from tracker.compare.sides import Loaded
    from tracker.results import DiffOptions

_KERNEL_MATCH: Final = ["name", "input_shapes", "category", "core_type"]
_PARTS: Final = ["wait_ns", "transit_ns", "synchronization_ns", "idle_ns", "exposed_ns", "exposed_wait_ns"]
"""Parts of the time of collectives: no part of all of it where one of them does not say it."""
_COMMUNICATION_SUMS: Final = ["calls", "bytes", "ns", *_PARTS]


def kernels(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The `kernels` frame of a Diff: matched by canonical name, shapes, category and core type; `op` is the op that
    `_launching` names, `type` that of most of it; `why` is left empty. And its `kernel_types`.
    """
    sides = knowing.both(baseline, candidate, knowing.KERNELS, part=knowing.TIMES)
    asked = [
        canonical(side.ask(queries.kernels), names) for side, names in zip(sides, (options.op_map, {}), strict=True)
    ]
    found = [matching(frame, "op", options.op) for frame in asked]
    frames = paired_cores(found[0], found[1], _KERNEL_MATCH[:-1])
    rows, joined = _timed(sides, frames, _KERNEL_MATCH)
    joined["op"], joined["more_ops"] = _launching(sides, rows)
    joined["type"] = means.dominant(together(rows, "type", "ns"), "type", "ns")
    joined["why"] = np.full(rows[0].count, "", dtype=object)
    large = join.large(join.with_difference(joined, "ns"), "ns", options.minimum_ns)
    return join.frame("kernels", large), _kernel_types(sides, found, options)


def _launching(sides: Sequence[Loaded], rows: Sequence[Numbered]) -> tuple[NDArray[np.object_], F64]:
    """For each kernel the op whose time in it changed most, of equal ones that with more of it (first on the
    candidate's side), "" for none; and how many others launch it.
    """
    every = together(rows, "op")
    ops = every.frame["op"].fillna("").to_numpy(dtype=object)
    place, first = places([every.number, ops])
    numbers = np.split(place, [len(rows[0].number)])
    before, after = (
        np.nan_to_num(means.per_step(side, Numbered(own.frame, number, len(first)), ["ns"])["ns"])
        for side, own, number in zip(sides, rows, numbers, strict=True)
    )
    kernel, names = every.number[first], ops[first]
    change = np.round(np.abs(after - before), 6)
    order = np.lexsort([-ranks(names), before, after, change, names != "", kernel])
    found = np.full(every.count, "", dtype=object)
    found[kernel[order]] = names[order]  # the last one stays
    named = np.bincount(kernel[names != ""], minlength=every.count)
    return found, np.maximum(named - 1.0, 0.0)


def _kernel_types(sides: Sequence[Loaded], found: Sequence[pd.DataFrame], options: DiffOptions) -> pd.DataFrame:
    """The `kernel_types` frame of a Diff: what an NPU's profiler calls the type of a kernel, on each type of core.

    Without rows where neither side knows types (GPUs; Ascend's Level0). Collectives are left out, as in
    op_statistic.csv: `communication` has them.
    """
    typed = [frame[(frame["type"] != "") & (frame["category"] != "communication")] for frame in found]
    if all(frame.empty for frame in typed):
        return join.nothing("kernel_types")
    _, joined = _timed(sides, paired_cores(typed[0], typed[1], ["type"]), KERNEL_TYPE_KEY)
    return join.frame("kernel_types", join.large(join.with_difference(joined, "ns"), "ns", options.minimum_ns))


def _timed(
    sides: Sequence[Loaded],
    frames: Sequence[pd.DataFrame],
    key: Sequence[str],
    sums: Sequence[str] = ("calls", "ns"),
    whole: Sequence[str] = (),
) -> tuple[list[Numbered], Columns]:
    """The rows of all `frames`, and those of both sides, the first two, matched by `key`, with `sums` (see
    `means.per_step`), the average and the extremes of a call.
    """
    rows, keys = numbered(frames, key)
    tables = [
        means.per_step(side, own, sums, whole) | means.extremes(own, "min_ns", "max_ns")
        for side, own in zip(sides, rows[:2], strict=True)
    ]
    return rows, join.average(join.matched(keys, rows[:2], tables), "ns", "calls", "average_ns")


def communication(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The `communication` and `communication_details` frames of a Diff: tasks are matched by name and plane."""
    sides = knowing.both(baseline, candidate, knowing.COLLECTIVES)
    asked_of = (queries.communication, queries.communication_tasks)
    if all(side.lacks(question) for side in sides for question in asked_of):
        return join.nothing("communication"), join.nothing("communication_details")
    roles = roles_by_size(*sides)

    def asked(question: Callable[..., pd.DataFrame], sides: Sequence[Loaded]) -> list[pd.DataFrame]:
        return [
            _of_kind(with_roles(side.ask(question), names), options) for side, names in zip(sides, roles, strict=True)
        ]

    frames = asked(queries.communication, sides)
    _, whole = _timed(sides, frames, COMMUNICATION_KEY, _COMMUNICATION_SUMS, _PARTS)
    whole = join.large(join.with_difference(whole, "ns"), "ns", options.minimum_ns)
    key = [*COMMUNICATION_KEY, "name"]
    before, after = asked(queries.communication_tasks, sides)
    _, parts = _timed(sides, paired_planes(before, after, key), [*key, "plane"])
    details = join.frame("communication_details", join.with_difference(parts, "ns"))
    return _known_sizes(join.frame("communication", whole)), _known_sizes(details)


def _known_sizes(frame: pd.DataFrame) -> pd.DataFrame:
    """The sizes that were -1 to be match keys, as missing again."""
    sizes = {name: frame[name].astype("Int64") for name in ("group_size", "size_class_bytes")}
    return frame.assign(**{name: size.where(size >= 0) for name, size in sizes.items()})


def _of_kind(frame: pd.DataFrame, options: DiffOptions) -> pd.DataFrame:
    sizes = {name: frame[name].fillna(-1) for name in ("group_size", "size_class_bytes")}
    frame = frame.assign(**sizes, ns=frame["total_ns"])
    return matching(matching(frame, "kind", options.kind), "group_role", options.group)


def memory(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The `memory` and `memory_details` frames of a Diff: bytes that ops allocated, and in which component."""
    sides, frames = knowing.both(baseline, candidate, knowing.MEMORY), []
    if all(side.lacks(queries.memory) for side in sides):
        return join.nothing("memory"), join.nothing("memory_details")
    for side, renames in zip(sides, (options.op_map, {}), strict=True):
        frame = side.ask(queries.memory).rename(columns={"op": "name"})
        frame["name"] = frame["name"].map(lambda name, renames=renames: renames.get(name, name))
        if options.match == "name":
            frame["input_shapes"] = pd.array([""] * len(frame), dtype="string")
        frames.append(matching(frame, "name", options.op))
    rows, _ = numbered(frames, OP_KEY[:2])
    types = pd.array(means.distinct_texts(together(rows, "input_types"), "input_types"), dtype="string")
    frames = [own.frame.assign(input_types=types.take(own.number)) for own in rows]
    whole = join.summed(sides, frames, OP_KEY, ["bytes", "calls"])
    parts = join.summed(sides, frames, [*OP_KEY, "component"], ["bytes", "calls", "held_ns", "unreleased_bytes"])
    whole, parts = (join.with_difference(joined, "bytes", unit="bytes") for joined in (whole, parts))
    return join.frame("memory", whole), join.frame("memory_details", parts)


def modules(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> pd.DataFrame:
    """The `modules` frame of a Diff: own time of the ops of each module and phase; ops outside all modules and phases
    are left out.
    """
    sides = knowing.both(baseline, candidate, knowing.OPS, part=knowing.TIMES)
    asked = [side.ask(queries.ops) for side in sides]
    placed = [frame[(frame["module"] != "") | (frame["phase"] != "")] for frame in asked]
    frames = [matching(frame, "module", options.module) for frame in placed]
    if all(frame.empty for frame in frames):
        return join.nothing("modules")
    timed = [frame.assign(ns=frame[own_time(side)]) for side, frame in zip(sides, frames, strict=True)]
    joined = join.with_difference(join.summed(sides, timed, MODULE_KEY, ["calls", "ns"]), "ns")
    return join.frame("modules", join.large(joined, "ns", options.minimum_ns))


def api(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> pd.DataFrame:
    """The `api` frame of a Diff: calls of the host into the device runtime and driver."""
    sides = knowing.both(baseline, candidate, knowing.API)
    if all(side.lacks(queries.api) for side in sides):
        return join.nothing("api")
    frames = [side.ask(queries.api).rename(columns={"total_ns": "ns"}) for side in sides]
    joined = join.average(join.summed(sides, frames, API_KEY, ["calls", "ns", "self_ns"]), "ns", "calls", "average_ns")
    return join.frame("api", join.large(join.with_difference(joined, "ns"), "ns", options.minimum_ns))
