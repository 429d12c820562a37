"""Small captures and runs made by hand, for tests of store, compare and reports.

Numbers are per step and can be checked in the head: `capture(ops=[("aten::mm", 100)], kernels=[("gemm", 100)],
steps=2)` is one rank whose op aten::mm launched kernel gemm once in each of two steps, for 100 ns each time.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace

from tracker.profile import (
    CHECK_RULES,
    CHECK_SETTING,
    IDLE_RULES,
    IDLE_SETTING,
    MISSING,
    OWNER_RULES,
    OWNER_SETTING,
    ROW_COLUMNS,
    STEP_RULES,
    STEP_SETTING,
    Breakdown,
    Capture,
    Device,
    Rows,
    Source,
    StepRow,
)
from tracker.store import RunRecord, Store, save_run

H100 = Device("NVIDIA", "H100")
EPOCH_NS = 1_700_000_000_000_000_000
"""When captures start unless told otherwise; not exact as a double."""


def breakdown(**values: Any) -> Breakdown:
    """A breakdown on the device timeline with nothing known but `values`."""
    fields = dict.fromkeys(Breakdown.__struct_fields__)
    return Breakdown(**{**fields, "timeline": "device", **values})


def table(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A table of `Rows` with the columns of ROW_COLUMNS; a row may leave columns out."""
    defaults: dict[str, Any] = {"text": "", "int": 0, "ns": MISSING, "bytes": MISSING, "float": float("nan")}
    columns: dict[str, Any] = {}
    for column, kind in ROW_COLUMNS[name].items():
        values = [row.get(column, defaults[kind]) for row in rows]
        dtypes = {"text": None, "float": np.float64}
        columns[column] = values if kind == "text" else np.array(values, dtype=dtypes.get(kind, np.int64))
    unknown = {column for row in rows for column in row} - set(ROW_COLUMNS[name])
    assert not unknown, f"{name} has no columns {unknown}"
    return columns


class Keys:
    """A dimension table in the making: `at(...)` is the position of a key, new or known."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[dict[str, str]] = []

    def at(self, **values: str) -> int:
        if values not in self.rows:
            self.rows.append(values)
        return self.rows.index(values)

    def table(self) -> dict[str, Any]:
        return table(self.name, self.rows)


def rows(
    *,
    steps: int | Sequence[int] = 1,
    ops: Sequence[Any] = (("aten::mm", 100),),
    kernels: Sequence[Any] = (("gemm", 100),),
    communication: Sequence[Any] = (),
    memory: Sequence[Any] = (),
    peak: Sequence[Any] = (),
    blocks: Sequence[Any] = (),
    api: Sequence[Any] = (),
    idle: Sequence[tuple[str, str, int]] = (),
    curve: Sequence[Any] = (),
    counters: Sequence[Any] = (),
    step_ns: int = 1000,
    e2e_ns: int | None = None,
    peak_allocated_bytes: int | None = None,
) -> Rows:
    """What one rank did; every entry happens once in each step.

    `steps`: how many, or their numbers (-1: outside all markers).
    `ops`: (name, device_self_ns[, columns of `op` and `op_key`; `parent`: the op above, one before it])
    `kernels`: (name, total_ns[, columns of `kernel` and `kernel_key`; `op`: who launched it, default the first op;
    `metrics`: {name: value} or {name: columns of `kernel_metric`}])
    `communication`: (kind, total_ns[, columns; `tasks`: [(name, total_ns[, columns])], `links`: [(transport, bytes[,
    columns])]])
    `memory`: (op, bytes[, columns; `allocator`]); `peak`: (op, bytes held at the peak[, columns of `memory_peak` and
    `op_key`]), `blocks`: (op, bytes[, columns of `memory_block` and `op_key`]), both once for all steps
    `api`: (name, total_ns[, columns]); `idle`: (cause, place, ns[, columns]) in one gap
    `curve`: (component, time_ns, allocated_bytes)
    `counters`: (source, name, attribute, value or columns of `counter`)
    The part in brackets is a dict and may be left out.
    """
    numbers = list(range(steps)) if isinstance(steps, int) else list(steps)
    op_keys, kernel_keys = Keys("op_key"), Keys("kernel_key")
    parts: dict[str, list[dict[str, Any]]] = {name: [] for name in ROW_COLUMNS if not name.endswith("_key")}
    first_op = _entry(ops[0])[0] if ops else "aten::mm"
    nodes: dict[str, int] = {}
    above: dict[int, int] = {}
    for step in numbers:
        for name, total_ns, more in map(_entry, ops):
            parent = more.pop("parent", None)
            parts["op"].append(_op(step, name, total_ns, more, op_keys))
            nodes.setdefault(name, parts["op"][-1]["op_key"])
            above[parts["op"][-1]["op_key"]] = nodes.get(parent, -1)
        for name, total_ns, more in map(_entry, kernels):
            metrics = more.pop("metrics", {})
            parts["kernel"].append(_kernel(step, name, total_ns, {"op": first_op, **more}, op_keys, kernel_keys))
            if step == numbers[0]:
                parts["kernel_metric"] += _metrics(parts["kernel"][-1], metrics)
        for kind, total_ns, more in map(_entry, communication):
            _communicate(step, kind, total_ns, more, parts)
        for name, size, more in map(_entry, memory):
            own = {column: more.pop(column) for column in list(more) if column in ROW_COLUMNS["op_key"]}
            key = op_keys.at(name=name, **own)
            allocator = more.pop("allocator", "aten::empty")
            row = {"step": step, "op_key": key, "component": "device", "calls": 1, "bytes": size, **more}
            parts["memory"].append(row)
            parts["memory_allocator"].append({**row, "allocator": allocator})
        for source, name, attribute, number in counters:
            spread = (
                number if isinstance(number, dict) else {"calls": 1, **dict.fromkeys(("mean", "min", "max"), number)}
            )
            parts["counter"].append({"step": step, "source": source, "name": name, "attribute": attribute, **spread})
        for cause, place, ns, *more in idle:
            row = {"step": step, "cause": cause, "place": place, "ns": ns, "gaps": 1, "behind_wait_ns": 0}
            parts["idle"].append({**row, **dict(*more)})
        for name, total_ns, more in map(_entry, api):
            parts["api"].append(
                {"step": step, "level": "runtime", "name": name, "calls": 1, "total_ns": total_ns, "self_ns": total_ns}
                | {"min_ns": total_ns, "max_ns": total_ns, **more}
            )
    for table_name, entries in (("memory_peak", peak), ("memory_block", blocks)):
        for name, size, more in map(_entry, entries):
            own = {column: more.pop(column) for column in list(more) if column in ROW_COLUMNS["op_key"]}
            row = {"component": "device", "op_key": op_keys.at(name=name, **own), "allocator": "aten::empty"}
            parts[table_name].append({**row, "bytes": size, **more})
    parts["op_tree"] = _tree(parts["op"], above)
    parts["memory_curve"] = [
        {"component": component, "time_ns": time_ns, "allocated_bytes": size} for component, time_ns, size in curve
    ]
    tables = {"op_key": op_keys.table(), "kernel_key": kernel_keys.table()}
    tables |= {name: table(name, found) for name, found in parts.items()}
    whole = _breakdown(len(numbers), parts, step_ns, e2e_ns, peak_allocated_bytes)
    inside = [step for step in numbers if step >= 0]
    each = _breakdown(1, parts, step_ns, e2e_ns, peak_allocated_bytes, shares=max(len(numbers), 1))
    return Rows(
        overall=whole,
        steps=tuple(StepRow(step, place * step_ns, each) for place, step in enumerate(inside)),
        tables=tables,
    )


def _rules_of(of_rows: Mapping[str, Any]) -> dict[str, str]:
    """The rules by which tracker reads such a capture today: one with several steps has markers."""
    rules = {OWNER_SETTING: OWNER_RULES} if of_rows.get("memory") else {}
    rules |= {IDLE_SETTING: IDLE_RULES} if of_rows.get("idle") else {}
    if of_rows.get("steps", 1) != 1:
        rules |= {STEP_SETTING: STEP_RULES, CHECK_SETTING: CHECK_RULES, IDLE_SETTING: IDLE_RULES}
    return rules


def capture(
    rank: int | None = 0,
    *,
    world_size: int | None = None,
    host: str = "node0",
    device: Device = H100,
    digest: bytes | None = None,
    path: str | None = None,
    started_at_ns: int | None = EPOCH_NS,
    ended_at_ns: int | None = None,
    stage: int | None = None,
    settings: Mapping[str, str] | None = None,
    quality_reason: str = "",
    **of_rows: Any,
) -> Capture:
    """One rank; `of_rows` as in `rows`. Its file has a digest of its own unless `digest` names one."""
    digest = digest if digest is not None else uuid.uuid4().bytes
    made = rows(**of_rows)
    if ended_at_ns is None and started_at_ns is not None:
        ended_at_ns = started_at_ns + (made.overall.duration_ns or 0)
    return Capture(
        rank=rank,
        world_size=world_size,
        host=host,
        device=device,
        device_ordinal=rank,
        started_at_ns=started_at_ns,
        ended_at_ns=ended_at_ns,
        sources=(Source(path or f"rank{rank}.pt.trace.json", 1000, digest),),
        settings={**_rules_of(of_rows), **(settings or {})},
        rows=made,
        quality="partial" if quality_reason else "ok",
        quality_reason=quality_reason,
        parallel={} if stage is None else {"stage": stage},
    )


def record(version: str = "v1", workload: str = "gpt", **values: Any) -> RunRecord:
    """What is known of a run; `values` as in RunRecord."""
    return replace(
        RunRecord(
            workload=workload,
            version=version,
            commit=None,
            note=None,
            configuration={},
            tags={},
            facts={},
            device=H100,
            started_at_ns=EPOCH_NS,
            ranks_expected=None,
        ),
        **values,
    )


def save(
    store: Store,
    version: str = "v1",
    workload: str = "gpt",
    *,
    runs: int = 1,
    ranks: int = 1,
    of_run: Mapping[str, Any] | None = None,
    **of_capture: Any,
) -> list[int]:
    """Save `runs` new runs of `ranks` ranks each, all alike, and return their ids; `of_run` as in `record`."""
    values = dict(of_run or {})
    if "device" in of_capture:
        values.setdefault("device", of_capture["device"])
    found = []
    for number in range(runs):
        # runs of several ranks one after the other, so that no run takes the ranks of another one for its own
        started_at_ns = of_capture.get("started_at_ns", EPOCH_NS + number * 10**12)
        world = {"world_size": ranks} if ranks > 1 else {}
        captures = [capture(rank, **{**world, **of_capture, "started_at_ns": started_at_ns}) for rank in range(ranks)]
        of_this = {"started_at_ns": started_at_ns, **values}
        saved = save_run(store, record(version, workload, **of_this), captures, formats=["torch_profiler"])
        found.append(saved.run_id)
    return found


def text_of(frame: pd.DataFrame, *columns: str) -> str:
    """`frame` as a table to compare with an inline one: missing is `-`, empty text is `''`."""
    chosen = frame[list(columns)] if columns else frame
    cells = [list(chosen.columns)] + [[_cell(value) for value in row] for row in chosen.itertuples(index=False)]
    return "\n".join("  ".join(row) for row in cells)


def same_table(frame: pd.DataFrame, expected: str) -> None:
    """Assert that `frame` has the rows of `expected`: columns by name, cells separated by blanks."""
    lines = [line.split() for line in expected.strip().splitlines()]
    found = [line.split("  ") for line in text_of(frame, *lines[0]).splitlines()]
    assert [[cell.replace(" ", "_") for cell in line] for line in found] == lines


def _cell(value: Any) -> str:
    if pd.isna(value):
        return "-"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) or "''"


def _entry(entry: Any) -> tuple[str, int, dict[str, Any]]:
    name, number, *more = entry
    return name, number, dict(more[0]) if more else {}


def _op(step: int, name: str, total_ns: int, more: dict[str, Any], keys: Keys) -> dict[str, Any]:
    own = {column: more.pop(column) for column in list(more) if column in ROW_COLUMNS["op_key"]}
    calls = more.get("calls", 1)
    return {
        "step": step,
        "op_key": keys.at(name=name, **own),
        "calls": calls,
        "host_total_ns": total_ns * 2,
        "host_self_ns": total_ns * 2,
        "device_total_ns": total_ns,
        "device_self_ns": total_ns,
        "min_ns": total_ns // calls,
        "max_ns": total_ns // calls,
        "sum_squares_ns2": float(total_ns * total_ns) / calls,
        "kernel_count": calls,
        **more,
    }


def _kernel(
    step: int, name: str, total_ns: int, more: dict[str, Any], op_keys: Keys, kernel_keys: Keys
) -> dict[str, Any]:
    own = {column: more.pop(column) for column in list(more) if column in ROW_COLUMNS["kernel_key"]}
    calls = more.get("calls", 1)
    op = more.pop("op")
    return {
        "step": step,
        "kernel_key": kernel_keys.at(**{"name": name, "canonical_name": name, **own}),
        "op_key": op_keys.at(**(op if isinstance(op, dict) else {"name": op})),
        "category": "matmul",
        "block_num": MISSING,
        "calls": calls,
        "total_ns": total_ns,
        "min_ns": total_ns // calls,
        "max_ns": total_ns // calls,
        "sum_squares_ns2": float(total_ns * total_ns) / calls,
        **more,
    }


def _communicate(
    step: int, kind: str, total_ns: int, more: dict[str, Any], parts: dict[str, list[dict[str, Any]]]
) -> None:
    here = {"communication": len(parts["communication"]), "calls": 1}
    for name, task_ns, columns in map(_entry, more.pop("tasks", ())):
        times = {"total_ns": task_ns, "min_ns": task_ns, "max_ns": task_ns}
        parts["communication_task"].append({**here, "name": name, "plane": "0", **times, **columns})
    for transport, size, columns in map(_entry, more.pop("links", ())):
        everywhere = {"source": -1, "target": -1, "packet_bytes": -1, "packets": MISSING}
        parts["communication_link"].append({**here, "transport": transport, "bytes": size, **everywhere, **columns})
    parts["communication"].append(
        {"step": step, "kind": kind, "group_role": "dp", "group_size": 2, "data_type": "bf16"}
        | {"size_class_bytes": 1024, "calls": 1, "bytes": 1000, "total_ns": total_ns, "min_ns": total_ns}
        | {"max_ns": total_ns, "sum_squares_ns2": float(total_ns**2), "exposed_ns": total_ns, **more}
    )


def _metrics(kernel: Mapping[str, Any], metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of `kernel_metric` of a kernel; one value is that of all calls."""
    rows = []
    for name, value in metrics.items():
        columns = value if isinstance(value, Mapping) else {"mean": value, "min": value, "max": value}
        rows.append({"kernel_key": kernel["kernel_key"], "metric": name, "calls": kernel["calls"], **columns})
    return rows


def _tree(ops: Sequence[Mapping[str, Any]], above: Mapping[int, int]) -> list[dict[str, Any]]:
    """Every op once, below the op that `above` says (-1: at the top level)."""
    copied = ("step", "op_key", "calls", "host_total_ns", "device_total_ns", "device_self_ns", "kernel_count")
    return [
        {"node": op["op_key"], "parent": above[op["op_key"]], **{column: op[column] for column in copied}} for op in ops
    ]


def _breakdown(
    steps: int,
    parts: Mapping[str, Sequence[Mapping[str, Any]]],
    step_ns: int,
    e2e_ns: int | None,
    peak_allocated_bytes: int | None,
    shares: int = 1,
) -> Breakdown:
    """Nothing overlaps; all steps are alike, so that one is a share of the whole."""
    compute = sum(row["total_ns"] for row in parts["kernel"]) // shares
    communication = sum(row["total_ns"] for row in parts["communication"]) // shares
    e2e_ns = e2e_ns * steps if e2e_ns is not None else compute + communication
    return breakdown(
        duration_ns=steps * step_ns,
        e2e_ns=e2e_ns,
        compute_ns=compute,
        communication_ns=communication,
        overlap_ns=0,
        exposed_communication_ns=communication,
        copy_ns=0,
        exposed_copy_ns=0,
        idle_ns=e2e_ns - compute - communication,
        kernel_count=sum(row["calls"] for row in parts["kernel"]) // shares,
        kernel_total_ns=compute + communication,
        compute_total_ns=compute,
        communication_total_ns=communication,
        copy_total_ns=0,
        unlinked_kernel_count=0,
        unlinked_kernel_total_ns=0,
        peak_allocated_bytes=peak_allocated_bytes,
    )
