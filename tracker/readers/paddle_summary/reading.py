"""The sections of a summary -> the rows of one capture.

A summary has sums over N profiled steps. They stay sums: all rows lie in one step row, number 0, that stands for N
steps (`StepRow.steps`), and its breakdown is the mean of them. So 5 calls in 5 steps are compared as 1 call per step. N
is the number of calls of `ProfileStep`; where no table says it, the capture counts as one step, with a warning.

Shares are not read: they follow from the sums. A kernel of the Kernel Summary has no op, since the Operator Summary,
which has the ops, cuts the names of their kernels; only without a Kernel Summary are its kernels taken from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.profile import (
    CPU,
    DEVICE_USE,
    NO_STEP,
    NOT_LISTED,
    NOT_LISTED_COLLECTIVES,
    STEP_SPREAD,
    UNKNOWN_DEVICE,
    UNLINKED_OP,
    Breakdown,
    Capture,
    Rows,
    StepRow,
)
from tracker.readers import _paddle, _rows
from tracker.readers._source import SourceText
from tracker.readers.paddle_summary import ops
from tracker.readers.paddle_summary.cut_tables import collectives_left_out, kernels_left_out, ops_left_out
from tracker.readers.paddle_summary.sections import WHOLE, Kind, Row, Sections
from tracker.units import NS_PER_MS, counted, format_ns

STEP: Final = 0
_PHASES: Final = {
    "Dataloader": "dataloader",
    "Forward": "forward",
    "Backward": "backward",
    "Optimization": "optimizer",
}
_GPU: Final = re.compile(r"[A-Za-z]+(\d{1,4})")
_COLLECTIVE: Final = re.compile(r"(?:void )?[nrbx]ccl")
_HOST_ROWS: Final = re.compile(r"CPU\(")


class _Whole(Struct, frozen=True):
    """All profiled steps together. `steps`: None where the text does not say how many; `host_ns`: their time."""

    steps: int | None
    host_ns: int | None
    on_device: bool


def capture_of(sections: Sections, texts: Sequence[SourceText]) -> tuple[Capture, tuple[str, ...]]:
    """The capture of `sections`, read from `texts`, and what the reader of its numbers should know."""
    whole = _whole(sections)
    overall = _overall(sections, whole)
    gpus = [int(match[1]) for name in sections.utilization if (match := _GPU.fullmatch(name))]
    capture = Capture(
        rank=None,
        world_size=None,
        host="",
        device=UNKNOWN_DEVICE if whole.on_device else CPU,
        device_ordinal=gpus[0] if len(gpus) == 1 else None,
        started_at_ns=None,
        ended_at_ns=None,
        sources=tuple(text.source() for text in texts),
        settings={"profiler": "summary"},
        facts={"framework": "paddle"},
        rows=Rows(overall, (_mean_step(overall, whole.steps or 1),), _tables(sections, whole)),
    )
    return capture, tuple(_warnings(sections, whole))


def _whole(sections: Sections) -> _Whole:
    rows = [row for row in sections.spreads.get("Model", ()) if row.name in WHOLE]
    said = [Kind(row.calls, row.host.total_ns) for row in rows]
    said.append(sections.overview.get(("CPU", "ProfileStep"), Kind(None, None)))
    said.append(Kind(None, sections.distribution.get("ProfileStep")))
    steps = next((kind.calls for kind in said if kind.calls), None)
    host_ns = next((kind.time_ns for kind in said if kind.time_ns is not None), None)
    device_totals = [row.device.total_ns or 0 for table in sections.spreads.values() for row in table]
    on_device = (
        any(total > 0 for total in device_totals)
        or sections.distribution.get("Computation", 0) > 0  # the time of kernels
        or any(side == "GPU" for side, _ in sections.overview)
        or any(not _HOST_ROWS.match(name) for name in sections.utilization)
    )
    return _Whole(steps, host_ns, on_device)


def _overall(sections: Sections, whole: _Whole) -> Breakdown:
    loading = _phase_row(sections, "Dataloader")
    loading_kind = sections.overview.get(("CPU", "Dataloader"))
    loading_ns = loading.host.total_ns if loading else loading_kind.time_ns if loading_kind else None
    peaks = next((sections.peaks[place] for place in _places(sections)), {})
    times = _device_times(sections) if whole.on_device else _host_times(sections, whole)
    return _rows.breakdown(
        "device" if whole.on_device else "host",
        duration_ns=whole.host_ns,
        peak_allocated_bytes=peaks.get("Allocated"),
        peak_reserved_bytes=peaks.get("Reserved"),
        data_loading_ns=loading_ns,
        **times,
    )


def _places(sections: Sections) -> list[str]:
    """The places whose allocator was looked at, devices first."""
    return sorted(sections.peaks, key=lambda place: (place == "cpu", place))


def _host_times(sections: Sections, whole: _Whole) -> dict[str, int | None]:
    """Without a device: compute is the merged time of all operators, and the steps are the whole."""
    operators = sections.overview.get(("CPU", "Operator"))
    compute = operators.time_ns if operators else None
    collectives = sections.overview.get(("CPU", "Communication"))
    alone = collectives is None and whole.host_ns is not None and compute is not None
    return {
        "e2e_ns": whole.host_ns,
        "compute_ns": compute,
        "communication_ns": (0 if alone else None) if collectives is None else collectives.time_ns,
        "overlap_ns": 0 if alone else None,
        "exposed_communication_ns": 0 if alone else None,
        "copy_ns": 0,
        "exposed_copy_ns": 0,
        "idle_ns": whole.host_ns - compute if alone and whole.host_ns is not None and compute is not None else None,
        "kernel_count": 0,
        "kernel_total_ns": 0,
        "compute_total_ns": 0,
        "communication_total_ns": 0,
        "copy_total_ns": 0,
        "unlinked_kernel_count": 0,
        "unlinked_kernel_total_ns": 0,
    }


def _device_times(sections: Sections) -> dict[str, int | None]:
    """With a device: the merged times of the Overview and the Distribution Summary.

    The span of the device's activity (E2E) is not in a summary, nor is the idle time in it, nor what copies hide.
    """
    kernels = sections.overview.get(("GPU", "Kernel"))
    said = sections.distribution
    communication = said.get("Communication", _time(sections.overview.get(("GPU", "Communication"))))
    compute, overlap = said.get("Computation"), said.get("Overlap")
    if kernels is not None and communication is None:  # kernels, and none of them a collective
        communication, overlap, compute = 0, 0, kernels.time_ns
    copies = [_time(sections.overview.get(("GPU", name))) for name in ("Memcpy", "Memset")]
    known = [time for time in copies if time is not None]
    exposed = communication - overlap if communication is not None and overlap is not None else None
    listed = sections.spreads.get("Kernel", [])
    left_out = kernels_left_out(sections)
    total = sum(row.device.total_ns or 0 for row in listed) if listed else None
    return {
        "compute_ns": compute,
        "communication_ns": communication,
        "overlap_ns": overlap,
        "exposed_communication_ns": exposed,
        "copy_ns": sum(known) if known else None,
        "kernel_count": kernels.calls if kernels else None,
        "kernel_total_ns": left_out.whole_ns if left_out else total,
    }


def _time(kind: Kind | None) -> int | None:
    return None if kind is None else kind.time_ns


def _mean_step(overall: Breakdown, steps: int) -> StepRow:
    """The step row of all steps: every sum divided by their number; peaks stay what they are."""
    sums = {
        name: value
        for name in Breakdown.__struct_fields__
        if isinstance(value := getattr(overall, name), int) and not name.startswith("peak_")
    }
    means: dict[str, Any] = {name: _share(value, steps) for name, value in sums.items()}
    return StepRow(STEP, 0, replace(overall, **means), steps)


def _share(value: int, steps: int) -> int:
    """value / steps, rounded to the nearest."""
    return (value + steps // 2) // steps


def _phase_row(sections: Sections, name: str) -> Row | None:
    return next((row for row in sections.spreads.get("Model", ()) if row.name == name), None)


def _tables(sections: Sections, whole: _Whole) -> dict[str, Any]:
    op_keys, kernel_keys = _rows.Keys("op_key"), _rows.Keys("kernel_key")
    book = ops.Book(op_keys, STEP, on_device=whole.on_device)
    roots = ops.tree_of(sections.spreads.get("Operator", ()))
    book.add_tree(roots)
    book.add_rest(NOT_LISTED, *((rest.ns if rest else None) for rest in ops_left_out(sections)))
    for row in sections.spreads.get("UserDefined", ()):
        book.add_range(row)
    for name, phase in _PHASES.items():
        if row_of_phase := _phase_row(sections, name):
            book.add_range(row_of_phase, phase)
    facts: dict[str, Sequence[_rows.Row]] = {
        "op": book.op_rows(),
        "op_tree": book.tree_rows,
        "kernel": _kernel_rows(sections, roots, op_keys, kernel_keys),
        "counter": list(_counters(sections, whole)),
        "memory": list(_memory(sections, roots, op_keys)),
        "api": [
            {"step": STEP, "level": "memory", "name": row.name, "calls": row.calls, "total_ns": row.host.total_ns,
             "min_ns": row.host.smallest_ns, "max_ns": row.host.largest_ns}
            for row in sections.spreads.get("Memory Manipulation", ())
        ],
    }  # fmt: skip
    return _rows.tables([("op_key", op_keys.table()), ("kernel_key", kernel_keys.table())], facts)


def _kernel_rows(
    sections: Sections, roots: Sequence[ops.Node], op_keys: _rows.Keys, kernel_keys: _rows.Keys
) -> list[_rows.Row]:
    """Kernels from the Kernel Summary, whose ops are unknown; without one, those below the ops. Equal names add up."""
    pairs = [(UNLINKED_OP, row) for row in sections.spreads.get("Kernel", ())] or list(ops.launched(roots))
    sums: dict[tuple[str, str], list[Row]] = {}
    for op, row in pairs:
        sums.setdefault((op, row.name), []).append(row)
    rows: list[_rows.Row] = [
        {
            "step": STEP,
            "kernel_key": kernel_keys.at(name=kernel),
            "op_key": op_keys.at(name=op),
            "calls": ops.known_sum(row.calls for row in own),
            "total_ns": ops.known_sum(row.device.total_ns for row in own),
            "min_ns": ops.known_min(row.device.smallest_ns for row in own),
            "max_ns": ops.known_max(row.device.largest_ns for row in own),
        }
        for (op, kernel), own in sums.items()
    ]
    for name, category, calls, total_ns in _kernels_not_listed(sections):
        rows.append(
            {"step": STEP, "kernel_key": kernel_keys.at(name=name), "op_key": op_keys.at(name=UNLINKED_OP),
             "category": category, "calls": calls, "total_ns": total_ns}
        )  # fmt: skip
    return rows


def _kernels_not_listed(sections: Sections) -> Iterator[tuple[str, str, int | None, int]]:
    """(name, category, calls, ns) of what stands for the kernels that a cut Kernel Summary leaves out."""
    left_out = kernels_left_out(sections)
    if left_out is None or left_out.ns is None:
        return
    calls, left_ns = left_out.calls, left_out.ns
    collectives = [row for row in sections.spreads["Kernel"] if _COLLECTIVE.match(row.name)]
    if (of_those := collectives_left_out(sections, collectives)) and of_those.ns is not None:
        own_ns = min(of_those.ns, left_ns)
        yield NOT_LISTED_COLLECTIVES, "communication", of_those.calls, own_ns
        left_ns -= own_ns
        calls = None if calls is None or of_those.calls is None else max(0, calls - of_those.calls)
    yield NOT_LISTED, "other", calls, left_ns


def _memory(sections: Sections, roots: Sequence[ops.Node], op_keys: _rows.Keys) -> Iterator[_rows.Row]:
    """What each op allocated itself.

    The row of an operator counts its inner ops as well, each of which has a row of its own: those are taken off.
    """
    inner = {node.row.name: [child.row.name for child in node.children] for node in roots}
    sums: dict[tuple[int, str], list[int]] = {}
    for place, rows in sections.memory.items():
        component = place if place in ("cpu", "gpu_pinned") else "device"
        said = {row.name: row for row in rows}
        for row in rows:
            below = [said[name] for name in inner.get(row.name, ()) if name in said]
            calls = row.allocations - sum(child.allocations for child in below)
            size = row.allocated_bytes - sum(child.allocated_bytes for child in below)
            if calls > 0 and size >= 0:
                known = sums.setdefault((op_keys.at(name=row.name), component), [0, 0])
                known[0], known[1] = known[0] + calls, known[1] + size
    for (key, component), (calls, size) in sums.items():
        yield {"step": STEP, "op_key": key, "component": component, "calls": calls, "bytes": size}


def _counters(sections: Sections, whole: _Whole) -> Iterator[_rows.Row]:
    """How busy the processors were; what the Overview sums up, per step; the spread of the steps."""
    for name, value in sections.utilization.items():
        yield _counter(DEVICE_USE, name, _paddle.UTILIZATION, value)
    for (side, name), kind in sections.overview.items():
        if whole.steps and name != "ProfileStep":
            if kind.calls is not None:
                yield _counter("overview_summary", name, "calls per step", kind.calls / whole.steps)
            if kind.time_ns is not None:
                time_ms = kind.time_ns / whole.steps / NS_PER_MS
                yield _counter("overview_summary", name, f"{side} time per step (ms)", time_ms)
    for row in sections.spreads.get("Model", ()):
        spread = row.host
        if row.name == STEP_SPREAD[1] and whole.steps and spread.smallest_ns is not None and spread.largest_ns:
            mean_ms = (spread.total_ns or 0) / whole.steps / NS_PER_MS
            yield {
                **_counter(*STEP_SPREAD, "CPU time (ms)", mean_ms),
                "calls": whole.steps, "min": spread.smallest_ns / NS_PER_MS, "max": spread.largest_ns / NS_PER_MS,
            }  # fmt: skip


def _counter(source: str, name: str, attribute: str, value: float) -> Mapping[str, Any]:
    return {"step": NO_STEP, "source": source, "name": name, "attribute": attribute, "calls": 1, "mean": value,
            "min": value, "max": value}  # fmt: skip


def _warnings(sections: Sections, whole: _Whole) -> Iterator[str]:
    if whole.steps is None:
        yield "no table says how many steps were profiled; sums are over the whole capture, as if it were one step"
    yield from _cut(sections, whole)
    cut = sum(row.name.endswith("...") for table in sections.spreads.values() for row in table)
    if cut:
        names = counted(cut, "name")
        yield f"{names} cut with '...' by Paddle; different kernels of one beginning are counted together"
    if sections.skipped:
        yield f"left out: {counted(sections.skipped, 'row')} that could not be read"


def _cut(sections: Sections, whole: _Whole) -> Iterator[str]:
    """A sentence for each table that does not list all of its rows: how much of the whole it lists."""
    of_kernels, of_ops = kernels_left_out(sections), ops_left_out(sections)[whole.on_device]
    of_table = {"Kernel": of_kernels, "Operator": of_ops}
    titles = [*sections.shortened, *(title for title, rest in of_table.items() if rest)]
    for title in dict.fromkeys(titles):
        rest = of_table.get(title)
        if rest is None or rest.whole_ns is None:
            yield f"the table '{title} Summary' is incomplete, and so are its sums"
            continue
        words = f"{format_ns(rest.listed_ns)} of {format_ns(rest.whole_ns)}"
        yield (
            f"the table '{title} Summary' is incomplete: it lists {words}; the rest, which follows from its ratios,"
            f" is the row {NOT_LISTED}"
        )
