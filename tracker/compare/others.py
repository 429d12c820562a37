"""Kernels, communication, memory, modules and host API calls of two sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd

from tracker.compare import join, means
from tracker.compare.filters import matching
from tracker.compare.operators import own_time
from tracker.results import API_KEY, COMMUNICATION_KEY, DIFF_COLUMNS, MODULE_KEY
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded
    from tracker.results import DiffOptions

_KERNEL_MATCH: Final = ["name", "input_shapes", "category", "core_type"]
_COMMUNICATION_TIMES: Final = ["exposed_ns", "wait_ns", "transit_ns"]
_GRAIN: Final = ("run", "stage")


def kernels(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> pd.DataFrame:
    """The `kernels` frame of a Diff: matched by canonical name, shapes, category and core type; `op` is the op that
    launches most of it.
    """
    frames = []
    sides = (baseline, candidate)
    for side in sides:
        frame = queries.kernels(side.store, side.run_ids, by=_GRAIN, ranks=side.ranks, in_steps=True)
        frame = frame.drop(columns="name").rename(columns={"canonical_name": "name", "total_ns": "ns"})
        if side is baseline:
            frame["op"] = frame["op"].map(lambda op: options.op_map.get(op, op))
        frames.append(matching(frame, "op", options.op))
    joined = join.outer(*[_kernel_side(side, frame) for side, frame in zip(sides, frames, strict=True)])
    index = pd.MultiIndex.from_frame(joined[_KERNEL_MATCH])
    before, after = [means.dominant(frame, _KERNEL_MATCH, "op", "ns").reindex(index) for frame in frames]
    joined["op"] = after.fillna(before).fillna("").to_numpy()
    joined = join.with_difference(join.average(joined, "ns", "calls", "average_ns"), "ns")
    return _large(joined, "ns", options)[list(DIFF_COLUMNS["kernels"])]


def _kernel_side(side: Loaded, frame: pd.DataFrame) -> pd.DataFrame:
    numbers = means.per_step(side, frame, _KERNEL_MATCH, ["calls", "ns"])
    return numbers.join(means.extremes(frame, _KERNEL_MATCH, "min_ns", "max_ns"))


def communication(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The `communication` and `communication_details` frames of a Diff."""
    key = list(COMMUNICATION_KEY)
    sums = ["calls", "bytes", "ns", *_COMMUNICATION_TIMES]
    tables, tasks = [], []
    for side in (baseline, candidate):
        frame = queries.communication(side.store, side.run_ids, by=_GRAIN, ranks=side.ranks, in_steps=True)
        frame = _of_kind(frame.rename(columns={"total_ns": "ns"}), options)
        tables.append(means.per_step(side, frame, key, sums).join(means.extremes(frame, key, "min_ns", "max_ns")))
        frame = queries.communication_tasks(side.store, side.run_ids, by=_GRAIN, ranks=side.ranks, in_steps=True)
        frame = _of_kind(frame.rename(columns={"total_ns": "ns"}), options)
        task = [*key, "name", "plane"]
        tasks.append(
            means.per_step(side, frame, task, ["calls", "ns"]).join(means.extremes(frame, task, "min_ns", "max_ns"))
        )
    whole, parts = (
        join.with_difference(join.average(join.outer(*pair), "ns", "calls", "average_ns"), "ns")
        for pair in (tables, tasks)
    )
    whole, parts = (_known_sizes(frame) for frame in (_large(whole, "ns", options), parts))
    return whole[list(DIFF_COLUMNS["communication"])], parts[list(DIFF_COLUMNS["communication_details"])]


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
    for side, renames in ((baseline, options.op_map), (candidate, {})):
        frame = queries.memory(side.store, side.run_ids, by=_GRAIN, ranks=side.ranks, in_steps=True)
        frame = frame.rename(columns={"op": "name"})
        frame["name"] = frame["name"].map(lambda name, renames=renames: renames.get(name, name))
        frame = matching(frame, "name", options.op)
        frames.append(frame)
        tables.append(means.per_step(side, frame, match, ["bytes", "calls"]))
        sums = ["bytes", "calls", "held_ns", "unreleased_bytes"]
        parts.append(means.per_step(side, frame, [*match, "component"], sums))
    whole, detail = (join.with_difference(join.outer(*pair), "bytes", unit="bytes") for pair in (tables, parts))
    return _typed(whole, frames, match)[list(DIFF_COLUMNS["memory"])], _typed(detail, frames, match)[
        list(DIFF_COLUMNS["memory_details"])
    ]


def _typed(joined: pd.DataFrame, frames: list[pd.DataFrame], match: list[str]) -> pd.DataFrame:
    """`joined` with the input types of both sides, and empty shapes where ops were matched by name alone."""
    types = means.distinct_texts(pd.concat([frame[[*match, "input_types"]] for frame in frames]), match, "input_types")
    shaped = joined.assign(input_types="") if joined.empty else joined.join(types, on=match)
    return shaped if "input_shapes" in match else shaped.assign(input_shapes="")


def modules(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> pd.DataFrame:
    """The `modules` frame of a Diff: own time of the ops of each module and phase; ops outside all modules and phases
    are left out.
    """
    key = list(MODULE_KEY)
    sides = []
    for side in (baseline, candidate):
        frame = queries.ops(side.store, side.run_ids, by=_GRAIN, ranks=side.ranks, in_steps=True)
        frame = frame[(frame["module"] != "") | (frame["phase"] != "")]
        frame = matching(frame, "module", options.module)
        sides.append(means.per_step(side, frame.assign(ns=frame[own_time(side)]), key, ["calls", "ns"]))
    return _large(join.with_difference(join.outer(*sides), "ns"), "ns", options)[list(DIFF_COLUMNS["modules"])]


def api(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> pd.DataFrame:
    """The `api` frame of a Diff: calls of the host into the device runtime and driver."""
    key = list(API_KEY)
    sides = []
    for side in (baseline, candidate):
        frame = queries.api(side.store, side.run_ids, by=_GRAIN, ranks=side.ranks, in_steps=True)
        sides.append(means.per_step(side, frame.rename(columns={"total_ns": "ns"}), key, ["calls", "ns", "self_ns"]))
    joined = join.with_difference(join.average(join.outer(*sides), "ns", "calls", "average_ns"), "ns")
    return _large(joined, "ns", options)[list(DIFF_COLUMNS["api"])]


def _large(frame: pd.DataFrame, value: str, options: DiffOptions) -> pd.DataFrame:
    if options.minimum_ns is None:
        return frame
    largest = frame[[f"baseline_{value}", f"candidate_{value}"]].max(axis=1).fillna(0.0)
    return frame[largest >= options.minimum_ns].reset_index(drop=True)
