"""Kernels, communication, memory, modules and host API calls of two sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tracker.compare import join, knowing, means
from tracker.compare.filters import matching
from tracker.compare.group_pairs import Names, roles_by_size, with_roles
from tracker.compare.kernel_rows import canonical
from tracker.compare.keys import KEY, numbered
from tracker.compare.operators import own_time
from tracker.compare.placed import paired_cores, paired_planes
from tracker.lazy import pd
from tracker.results import API_KEY, COMMUNICATION_KEY, DIFF_COLUMNS, KERNEL_TYPE_KEY, MODULE_KEY
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded
    from tracker.results import DiffOptions

_KERNEL_MATCH: Final = ["name", "input_shapes", "category", "core_type"]
_PARTS: Final = ["wait_ns", "transit_ns", "synchronization_ns", "idle_ns"]
_COMMUNICATION_SUMS: Final = ["calls", "bytes", "ns", *_PARTS]
_EXPOSED_SUMS: Final = ["exposed_ns", "exposed_wait_ns"]
_COMMUNICATION_PARTS: Final = frozenset((*_PARTS, *_EXPOSED_SUMS))
"""Their sums over some of the calls would look like a smaller part of all calls."""


def kernels(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> pd.DataFrame:
    """The `kernels` frame of a Diff: matched by canonical name, shapes, category and core type; `op` is the op that
    launches most of it, `type` that of most of it; `why` is left empty.
    """
    sides, frames = _kernels(baseline, candidate, options)
    frames, keys = numbered(paired_cores(frames[0], frames[1], _KERNEL_MATCH[:-1]), _KERNEL_MATCH)
    joined = join.matched(keys, *(_timed(*pair, [KEY]) for pair in zip(sides, frames, strict=True)))
    before, after = [means.dominant(frame, [KEY], "op", "ns").reindex(keys.index) for frame in frames]
    joined["op"] = after.fillna(before).fillna("").to_numpy()
    types = means.dominant(pd.concat([frame[[KEY, "type", "ns"]] for frame in frames]), [KEY], "type", "ns")
    joined["type"] = types.reindex(keys.index).fillna("").to_numpy()
    joined = join.with_difference(join.average(joined, "ns", "calls", "average_ns"), "ns").assign(why="")
    return join.unjudged(join.large(joined, "ns", options.minimum_ns))[list(DIFF_COLUMNS["kernels"])]


def _kernels(
    baseline: Loaded, candidate: Loaded, options: DiffOptions
) -> tuple[tuple[Loaded, ...], list[pd.DataFrame]]:
    """The parts of both sides that know their kernels, and these kernels."""
    sides = knowing.both(baseline, candidate, knowing.KERNELS, part=knowing.TIMES)
    asked = [
        canonical(side.ask(queries.kernels), names) for side, names in zip(sides, (options.op_map, {}), strict=True)
    ]
    return sides, [matching(frame, "op", options.op) for frame in asked]


def _timed(side: Loaded, frame: pd.DataFrame, key: Sequence[str]) -> pd.DataFrame:
    numbers = means.per_step(side, frame, key, ["calls", "ns"])
    return numbers.join(means.extremes(frame, key, "min_ns", "max_ns"))


def kernel_types(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> pd.DataFrame:
    """The `kernel_types` frame of a Diff: what an NPU's profiler calls the type of a kernel, on each type of core.

    Without rows where neither side knows types (GPUs; Ascend's Level0). Collectives are left out, as in
    op_statistic.csv: `communication` has them.
    """
    sides, found = _kernels(baseline, candidate, options)
    typed = [frame[(frame["type"] != "") & (frame["category"] != "communication")] for frame in found]
    if all(frame.empty for frame in typed):
        return join.nothing("kernel_types")
    frames, keys = numbered(paired_cores(typed[0], typed[1], ["type"]), KERNEL_TYPE_KEY)
    tables = (_timed(*pair, [KEY]) for pair in zip(sides, frames, strict=True))
    joined = join.with_difference(join.average(join.matched(keys, *tables), "ns", "calls", "average_ns"), "ns")
    return join.large(joined, "ns", options.minimum_ns)[list(DIFF_COLUMNS["kernel_types"])]


def communication(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The `communication` and `communication_details` frames of a Diff: tasks are matched by name and plane."""
    key = list(COMMUNICATION_KEY)
    sides, tables = knowing.both(baseline, candidate, knowing.COLLECTIVES), []
    asked_of = (queries.communication, queries.communication_tasks)
    if all(side.ask(question).empty for side in sides for question in asked_of):
        return join.nothing("communication"), join.nothing("communication_details")
    roles = roles_by_size(*sides)
    for side, names in zip(sides, roles, strict=True):
        frame, numbers = _collectives(side, _COMMUNICATION_SUMS, options, names)
        # what overlaps with compute is known of fewer ranks
        _, exposed = _collectives(side.that_knows(knowing.EXPOSED), _EXPOSED_SUMS, options, names)
        tables.append(numbers.join(exposed).join(means.extremes(frame, key, "min_ns", "max_ns")))
    asked = [side.ask(queries.communication_tasks).rename(columns={"total_ns": "ns"}) for side in sides]
    before, after = (_of_kind(with_roles(*pair), options) for pair in zip(asked, roles, strict=True))
    frames = paired_planes(before, after, [*key, "name"])
    tasks = [_timed(*pair, [*key, "name", "plane"]) for pair in zip(sides, frames, strict=True)]
    whole, parts = (
        join.with_difference(join.average(join.outer(*pair), "ns", "calls", "average_ns"), "ns")
        for pair in (tables, tasks)
    )
    whole, parts = (_known_sizes(frame) for frame in (join.large(whole, "ns", options.minimum_ns), parts))
    whole = join.unjudged(whole)
    return whole[list(DIFF_COLUMNS["communication"])], parts[list(DIFF_COLUMNS["communication_details"])]


def _collectives(
    side: Loaded, sums: Sequence[str], options: DiffOptions, roles: Names
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The collectives of a side, and the means of `sums`, parts only where they are known of all; index:
    COMMUNICATION_KEY.
    """
    asked = with_roles(side.ask(queries.communication).rename(columns={"total_ns": "ns"}), roles)
    frame = _of_kind(asked, options)
    whole = [name for name in sums if name in _COMMUNICATION_PARTS]
    return frame, means.per_step(side, frame, list(COMMUNICATION_KEY), sums, whole)


def _known_sizes(frame: pd.DataFrame) -> pd.DataFrame:
    """The sizes that were -1 to be match keys, as missing again."""
    sizes = {name: frame[name].astype("Int64") for name in ("group_size", "size_class_bytes")}
    return frame.assign(**{name: size.where(size >= 0) for name, size in sizes.items()})


def _of_kind(frame: pd.DataFrame, options: DiffOptions) -> pd.DataFrame:
    frame = frame.assign(
        group_size=frame["group_size"].fillna(-1), size_class_bytes=frame["size_class_bytes"].fillna(-1)
    )
    return matching(matching(frame, "kind", options.kind), "group_role", options.group)


def memory(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The `memory` and `memory_details` frames of a Diff: bytes that ops allocated, and in which component."""
    match = ["name", "input_shapes"] if options.match == "shape" else ["name"]
    frames, tables, parts = [], [], []
    sides = knowing.both(baseline, candidate, knowing.MEMORY)
    if all(side.ask(queries.memory).empty for side in sides):
        return join.nothing("memory"), join.nothing("memory_details")
    for side, renames in zip(sides, (options.op_map, {}), strict=True):
        frame = side.ask(queries.memory)
        frame = frame.rename(columns={"op": "name"})
        frame["name"] = frame["name"].map(lambda name, renames=renames: renames.get(name, name))
        frame = matching(frame, "name", options.op)
        frames.append(frame)
        tables.append(means.per_step(side, frame, match, ["bytes", "calls"]))
        sums = ["bytes", "calls", "held_ns", "unreleased_bytes"]
        parts.append(means.per_step(side, frame, [*match, "component"], sums))
    whole, detail = (join.with_difference(join.outer(*pair), "bytes", unit="bytes") for pair in (tables, parts))
    whole = join.unjudged(_typed(whole, frames, match))
    return whole[list(DIFF_COLUMNS["memory"])], _typed(detail, frames, match)[list(DIFF_COLUMNS["memory_details"])]


def _typed(joined: pd.DataFrame, frames: list[pd.DataFrame], match: list[str]) -> pd.DataFrame:
    """`joined` with the input types of both sides, and empty shapes where ops were matched by name alone."""
    types = means.distinct_texts(pd.concat([frame[[*match, "input_types"]] for frame in frames]), match, "input_types")
    shaped = joined.assign(input_types="") if joined.empty else joined.join(types, on=match)
    return shaped if "input_shapes" in match else shaped.assign(input_shapes="")


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
    tables = [
        means.per_step(side, frame.assign(ns=frame[own_time(side)]), list(MODULE_KEY), ["calls", "ns"])
        for side, frame in zip(sides, frames, strict=True)
    ]
    joined = join.with_difference(join.outer(*tables), "ns")
    return join.unjudged(join.large(joined, "ns", options.minimum_ns))[list(DIFF_COLUMNS["modules"])]


def api(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> pd.DataFrame:
    """The `api` frame of a Diff: calls of the host into the device runtime and driver."""
    sides = knowing.both(baseline, candidate, knowing.API)
    asked = [side.ask(queries.api).rename(columns={"total_ns": "ns"}) for side in sides]
    frames, keys = numbered(asked, API_KEY)
    tables = (means.per_step(*pair, [KEY], ["calls", "ns", "self_ns"]) for pair in zip(sides, frames, strict=True))
    joined = join.with_difference(join.average(join.matched(keys, *tables), "ns", "calls", "average_ns"), "ns")
    return join.unjudged(join.large(joined, "ns", options.minimum_ns))[list(DIFF_COLUMNS["api"])]
