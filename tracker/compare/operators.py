"""Operators of two sides: which rows there are, how they are matched, and what each consists of.

Without options a row is an op by its own (self) time, so that the rows add up to the time of the timeline.
`max_kernels` and `op_map` look at calling contexts instead: an op may then stand for everything below it, and nothing
is counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.compare import join, knowing, means
from tracker.compare.filters import matching
from tracker.compare.keys import Columns, numbered, reals, taken
from tracker.lazy import pd
from tracker.store import queries

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracker.compare.sides import Loaded
    from tracker.results import DiffOptions, Side

_MATCH: Final = ["name", "input_shapes"]
_TIMES: Final = ["host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns"]
_SUMS: Final = ["calls", "own_ns", *_TIMES]


class Operators(Struct, frozen=True, eq=False):
    """`ops` and `op_details` of a Diff; `everything`: `ops` without the filters, which an explanation needs to add up.

    `baseline_rows`, `candidate_rows`: what they were made of (grain run_id, op; column `own_ns`).
    """

    ops: pd.DataFrame
    everything: pd.DataFrame
    details: pd.DataFrame
    baseline_rows: pd.DataFrame
    candidate_rows: pd.DataFrame


def own_time(side: Loaded) -> str:
    """The column that judges an op on this side: its device self time, or host self time without device activity."""
    return own_time_of(side.side)


def own_time_of(side: Side) -> str:
    """As `own_time`."""
    return "device_self_ns" if side.timeline == "device" else "host_self_ns"


def compare(baseline: Loaded, candidate: Loaded, options: DiffOptions) -> Operators:
    """The `ops` and `op_details` frames of a Diff."""
    baseline, candidate = sides = knowing.both(baseline, candidate, knowing.OPS, part=knowing.TIMES)
    if options.max_kernels is None and not options.op_map:
        rows = [_self_rows(side) for side in sides]
        parts = [_kernel_parts(side) for side in sides]
    else:
        trees = [side.op_tree() for side in sides]
        drilled = _drilled(trees, options.max_kernels)
        whole = (set(options.op_map), set(options.op_map.values()))
        listed = [
            _context_rows(side, tree, drilled, names) for side, tree, names in zip(sides, trees, whole, strict=True)
        ]
        rows = [pair[0] for pair in listed]
        parts = [
            pd.concat([_kernel_parts(side, set(_own_keys(own))), below])
            for side, (own, below) in zip(sides, listed, strict=True)
        ]
    rows[0], parts[0] = _rename(rows[0], options.op_map), _rename(parts[0], options.op_map)
    if options.match == "name":
        rows, parts = ([frame.assign(input_shapes="") for frame in frames] for frames in (rows, parts))
    ops = everything = _join_ops(sides, rows)
    if options.op or options.module:
        ops = _join_ops(sides, [_filtered(frame, options) for frame in rows])
    ops = join.large(ops, "ns", options.minimum_ns)
    details = _join_details(sides, parts, ops)
    whole = join.frame("ops", everything)
    return Operators(whole if ops is everything else join.frame("ops", ops), whole, details, *rows)


def _self_rows(side: Loaded) -> pd.DataFrame:
    frame = side.ask(queries.ops)
    return frame.assign(own_ns=frame[own_time(side)])


def _filtered(frame: pd.DataFrame, options: DiffOptions) -> pd.DataFrame:
    return matching(matching(frame, "name", options.op), "module", options.module)


def _rename(frame: pd.DataFrame, op_map: Mapping[str, str]) -> pd.DataFrame:
    """The baseline's rows under the names of the candidate; `baseline_name` keeps the old name of a mapped op, else
    "".
    """
    if not op_map:
        return frame.assign(baseline_name=pd.array([""] * len(frame), dtype="string"))
    old = frame["name"]
    return frame.assign(
        name=old.map(lambda name: op_map.get(name, name)), baseline_name=old.where(old.isin(list(op_map)), "")
    )


def _join_ops(sides: Sequence[Loaded], frames: Sequence[pd.DataFrame]) -> Columns:
    rows, keys = numbered(frames, _MATCH)
    tables = [means.per_step(*own, _SUMS) for own in zip(sides, rows, strict=True)]
    for table, own in zip(tables, rows, strict=True):
        calls = np.bincount(own.number, np.nan_to_num(reals(own.frame["calls"])), own.count)
        table["total_calls"] = np.where(np.bincount(own.number, minlength=own.count) > 0, calls, np.nan)
        table["ns"] = table.pop("own_ns")
    joined = join.split_calls(join.matched(keys, rows, tables))
    mapped = means.distinct_texts(rows[0], "baseline_name")
    joined["baseline_name"] = np.where(mapped != "", mapped, pd.NA)
    joined["input_types"] = _changed(*(means.distinct_texts(own, "input_types") for own in rows))
    return join.with_difference(joined, "ns")


def _changed(before: NDArray[np.object_], after: NDArray[np.object_]) -> NDArray[np.object_]:
    """One text for both sides; where both have one and they differ, `before -> after`."""
    differ = (before != "") & (after != "") & (before != after)
    return np.where(differ, before + " -> " + after, np.where(after != "", after, before))


def _kernel_parts(side: Loaded, keys: set[tuple[str, str]] | None = None) -> pd.DataFrame:
    """The kernels of each op: rows run_id, name, input_shapes, kernel, category, calls, ns. `keys`: only these
    ops.
    """
    frame = side.ask(queries.kernels)
    frame = frame[["run_id", "op", "op_input_shapes", "canonical_name", "category", "calls", "total_ns"]].rename(
        columns={"op": "name", "op_input_shapes": "input_shapes", "canonical_name": "kernel", "total_ns": "ns"}
    )
    if keys is None:
        return frame
    return frame[[pair in keys for pair in zip(frame["name"], frame["input_shapes"], strict=True)]]


def _own_keys(rows: pd.DataFrame) -> Sequence[tuple[str, str]]:
    own = rows[~rows["is_whole"]]
    return list(zip(own["name"], own["input_shapes"], strict=True))


def _join_details(sides: Sequence[Loaded], parts: Sequence[pd.DataFrame], ops: Columns) -> pd.DataFrame:
    joined = join.summed(sides, parts, [*_MATCH, "kernel", "category"], ["calls", "ns"])
    types = dict(zip(_pairs(ops), ops["input_types"], strict=True))
    found = np.array([types.get(pair) for pair in _pairs(joined)], dtype=object)
    there = np.flatnonzero([own is not None for own in found])
    return join.frame("op_details", join.with_difference(taken({**joined, "input_types": found}, there), "ns"))


def _pairs(columns: Columns) -> Iterator[tuple[str, str]]:
    """What ops are matched by, row by row."""
    return zip(*(columns[name].tolist() for name in _MATCH), strict=True)


def _drilled(trees: Sequence[pd.DataFrame], max_kernels: int | None) -> set[tuple[str, str]]:
    """Ops (name, shapes) that launch more than `max_kernels` kernels in a call on either side: their children are
    compared.
    """
    if max_kernels is None:
        return {key for tree in trees for key in zip(tree["name"], tree["input_shapes"], strict=True)}
    drilled: set[tuple[str, str]] = set()
    for tree in trees:
        calls = tree["calls"].fillna(0).astype("float64")
        per_call = tree["kernel_count"].fillna(0).astype("float64") / calls.where(calls > 0, 1.0)
        large = tree[per_call > max_kernels]
        drilled.update(zip(large["name"], large["input_shapes"], strict=True))
    return drilled


def _context_rows(
    side: Loaded, tree: pd.DataFrame, drilled: set[tuple[str, str]], whole_names: set[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows that share out the tree: an op that is not drilled, or is named in `whole_names`, stands for all below it.

    Returns the rows (as `_self_rows`, with `is_whole`) and what the whole ones consist of (as `_kernel_parts`).
    """
    total, own = (
        ("device_total_ns", "device_self_ns") if side.side.timeline == "device" else ("host_total_ns", "host_self_ns")
    )
    tree = _with_host_self(tree.reset_index(drop=True))
    owner = np.arange(len(tree))
    is_whole = np.zeros(len(tree), dtype=bool)
    for _, part in tree.groupby(["run_id", "rank"], sort=False):
        _assign_owners(part, drilled, whole_names, owner, is_whole)
    stands = owner == np.arange(len(tree))
    tree = tree.assign(is_whole=is_whole, own_ns=tree[own].where(~is_whole, tree[total]))
    head = tree.iloc[owner[~stands]].reset_index(drop=True)
    inner = tree[~stands].reset_index(drop=True)
    below = pd.DataFrame(
        {
            "run_id": head["run_id"],
            "name": head["name"], "input_shapes": head["input_shapes"],
            "kernel": inner["name"], "category": "op", "calls": inner["calls"], "ns": inner[own],
        }
    )  # fmt: skip
    return tree[stands], below[below["ns"].fillna(0) > 0]


def _with_host_self(tree: pd.DataFrame) -> pd.DataFrame:
    children = tree[tree["parent"] >= 0].groupby(["run_id", "rank", "parent"])["host_total_ns"].sum()
    at = pd.MultiIndex.from_frame(tree[["run_id", "rank", "node"]])
    below = children.reindex(at).fillna(0).to_numpy()
    return tree.assign(host_self_ns=tree["host_total_ns"] - below)


def _assign_owners(
    part: pd.DataFrame, drilled: set[tuple[str, str]], whole_names: set[str], owner: np.ndarray, is_whole: np.ndarray
) -> None:
    """For one rank: `owner[i]` becomes the position of the row that stands for row i; parents come before children."""
    position = dict(zip(part["node"], part.index, strict=True))
    for node in part.sort_values("node").itertuples():
        at = node.Index
        above = position.get(node.parent)
        if above is not None and (is_whole[owner[above]] or owner[above] != above):
            owner[at] = owner[above]
        else:
            is_whole[at] = node.name in whole_names or (node.name, node.input_shapes) not in drilled
