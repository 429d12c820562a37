"""What msprof-analyze counts, told on the columns of our own readers, so that a difference to our numbers has a reason.

The rules were read in the sources of msprof-analyze 26.2.0 (compare_backend: npu_profiling_parser.py,
overall_metrics_parser.py, base_profiling_parser.py). A rule holds for a capture only where it gives the very number
that the tool printed: nothing here knows a number beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
from msprof_analyze_totals import Totals, cube_by_task, totals_of_database, totals_of_trace
from numpy.typing import NDArray

from tracker import readers
from tracker.errors import SourceError
from tracker.profile import I64, MISSING, DeviceEvents, DeviceKind, Events
from tracker.timeline.breakdown import breakdowns, host_calls
from tracker.timeline.categories import CATEGORIES
from tracker.timeline.communication import communication_tables
from tracker.timeline.idle_gaps import find_gaps
from tracker.timeline.intervals import Spans, intersect, subtract, union
from tracker.timeline.joined import Joined, Work, join
from tracker.timeline.kernels import categories_of

# words of compare_config.ini; all are looked for in lower case, anywhere in the name
_ATTENTION: Final = (
    "flash_attention", "fusion_attention", "flashattn", "xformers_flash", "efficient_attention", "flash2attn",
)  # fmt: skip
_CONVOLUTION: Final = ("aten::conv",)
_MATMUL: Final = ("aten::addmm", "aten::bmm", "aten::mm", "aten::matmul")
_TRANS: Final = ("cast", "transdata", "transpose")
_MC2: Final = ("allgathermatmul", "matmulreducescatter", "matmulallreduce")
_BACKWARD: Final = ("bwd", "backward", "back", "grad")
_CUBE_CORES: Final = ("AI_CORE", "MIX_AIC")
_CUBE_METRIC: Final = re.compile(r"mac(?:_\w+)?_(?:ratio|time\(us\))")

OTHER, TENSOR_MOVE, PAGE_ATTENTION, MC2 = "Other", "SDMA (Tensor Move)", "Page Attention", "MC2"
_SPLIT: Final[Mapping[str, str]] = {
    "flash_attention_forward": "Flash Attention (Forward)",
    "flash_attention_backward": "Flash Attention (Backward)",
    "convolution_forward": "Conv (Forward)",
    "convolution_backward": "Conv (Backward)",
    "matmul": "Matmul",
}
_WHOLE: Final[Mapping[str, str]] = {
    "tensor_move": TENSOR_MOVE,
    "page_attention": PAGE_ATTENTION,
    "mc2": MC2,
    "other": OTHER,
}
NOT_TOLD: Final = "core not told"
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    **{title: (f"{title} (Cube)", f"{title} (Vector)", f"{title} (core not told)") for title in _SPLIT.values()},
    "Vector": ("Vector (Trans)", "Vector (No Trans)"),
}
"""Rows of the sheet that are the sum of the rows below them."""


def our_row(category: str, core_type: str) -> str | None:
    """The row of the sheet in which our category would stand; None for what is no computing.

    >>> our_row("matmul", "AI_CORE"), our_row("matmul", ""), our_row("vector", "AI_CORE")
    ('Matmul (Cube)', 'Matmul (core not told)', 'Vector (No Trans)')
    """
    if category in ("communication", "copy", "memset"):
        return None
    if category in _WHOLE:
        return _WHOLE[category]
    if category in _SPLIT:
        core = "Cube" if core_type in _CUBE_CORES else "Vector"
        return f"{_SPLIT[category]} ({NOT_TOLD if core_type in ('', 'N/A') else core})"
    return "Vector (Trans)" if category == "vector_trans" else "Vector (No Trans)"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: its row by our categories, its row at the peer (None: it skips the kernel), and what decided there.

    `in_step`: False for one that belongs to no step. `uses_cube`: whether the cube of its core worked, if measured.
    """

    name: str
    ns: int
    ours: str | None
    peer: str | None
    cause: str
    in_step: bool = True
    uses_cube: bool | None = None


def by_cube(kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """The same on a chip whose cores are all of one kind, where our diff tells them apart by the work of the cube."""
    return tuple(_by_cube(kernel) for kernel in kernels)


def _by_cube(kernel: Kernel) -> Kernel:
    title, _, core = (kernel.ours or "").rpartition(" (")
    if title not in _SPLIT.values() or core != "Cube)" or kernel.uses_cube is not False:
        return kernel
    cause = f"{kernel.cause}; a core that took time is cube work there, here one whose cube did"
    return replace(kernel, ours=f"{title} (Vector)", cause=cause)


def without_cores(kernels: Iterable[Kernel]) -> Iterator[Kernel]:
    """The same on a chip whose cores are all of one kind, where our diff does not tell them apart."""
    told = {f"{title} ({core})": f"{title} ({NOT_TOLD})" for title in _SPLIT.values() for core in ("Cube", "Vector")}
    for kernel in kernels:
        yield replace(kernel, ours=told.get(kernel.ours or "", kernel.ours))


@dataclass(frozen=True, slots=True)
class Group:
    """The time of one process group that no computing hides, split by the peer's rule."""

    wait_ns: int
    transmit_ns: int


@dataclass(frozen=True, slots=True)
class Steps:
    """Sums over the steps by our rules, in ns. `copy_ns`: every copy and memset outside of collectives by itself.

    `wait_ns`, `transmit_ns`: of the collectives' exposed time; None where the source does not tell all of it.
    """

    compute_ns: int
    uncovered_ns: int
    idle_ns: int
    e2e_ns: int
    copy_ns: int = 0
    wait_ns: int | None = None
    transmit_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """One capture as the peer's rules see it; all times in ns.

    `compute_ns`, `uncovered_ns`, `exposed_copy_ns`, `our_e2e_ns`: of the whole capture by our rules; `steps`: summed
    over the steps. `totals`: what the peer starts from. `reserved_bytes`: the largest Total Reserved of any component,
    `our_reserved_bytes`: that of the framework.
    `has_measurements`: kernel_details has one of the two columns without which the peer tells no classes.
    """

    is_database: bool
    kernels: tuple[Kernel, ...]
    compute_ns: int
    uncovered_ns: int
    exposed_copy_ns: int
    our_e2e_ns: int
    steps: Steps
    totals: Totals
    groups: Mapping[str, Group] = field(default_factory=dict)
    reserved_bytes: int | None = None
    our_reserved_bytes: int | None = None
    has_measurements: bool = True


def seen_of(path: Path) -> Seen:
    """The capture at `path`; a SourceError where there is none, or several, or one without a timeline of the device."""
    found = readers.find(path)
    if len(found) != 1 or found[0].format not in ("ascend_text", "ascend_db"):
        raise SourceError(path, "", "not one Ascend capture", remedy="give the folder of one rank (*_ascend_pt)")
    captures = readers.read(found[0]).captures
    if len(captures) != 1 or captures[0].events is None:
        raise SourceError(path, "", "holds several devices", remedy="compare one rank with one rank")
    is_database = found[0].format == "ascend_db"
    sources = (Path(source.path) for source in captures[0].sources)
    main = next((file for file in sources if _is_main(file, is_database=is_database)), None)
    if main is None:
        problem = "has no trace_view.json, so that msprof-analyze shows zeros"
        raise SourceError(path, "", problem, remedy="compare captures that have one")
    joined = join(captures[0].events)
    return _seen(joined, main, is_database=is_database)


def _is_main(file: Path, *, is_database: bool) -> bool:
    return file.name.startswith(("ascend_", "msprof_")) if is_database else file.name == "trace_view.json"


def _seen(joined: Joined, main: Path, *, is_database: bool) -> Seen:
    events, device = joined.events, joined.events.device
    compute, communication, copy = (_union(device, joined.work == work) for work in Work)
    uncovered = subtract(communication, compute)
    by_task = is_database and not len(events.extras.kernel_metrics)
    cube = cube_by_task(main, device) if by_task else _cube_by_time(events, is_database=is_database)
    totals = totals_of_database(main, device, compute, uncovered) if is_database else totals_of_trace(main)
    return Seen(
        is_database=is_database,
        kernels=tuple(kernels_of(joined, cube, is_database=is_database)),
        compute_ns=compute.total_ns,
        uncovered_ns=uncovered.total_ns,
        exposed_copy_ns=subtract(subtract(copy, communication), compute).total_ns,
        our_e2e_ns=int(device.end_ns.max() - device.start_ns.min()),
        steps=_steps(joined),
        totals=totals,
        groups=groups_of(events, uncovered, is_database=is_database),
        reserved_bytes=_largest(events.extras.memory_points.reserved_bytes),
        our_reserved_bytes=breakdowns(joined, find_gaps(joined, host_calls(joined)), None)[0].peak_reserved_bytes,
        has_measurements=is_database or bool(_measured(events, "aiv_vec_time(us)", "mac_time(us)")),
    )


def _steps(joined: Joined) -> Steps:
    found = [row.breakdown for row in breakdowns(joined, find_gaps(joined, host_calls(joined)), None)[1]]
    device, table = joined.events.device, communication_tables(joined)["communication"]
    copies = _chosen_categories(joined, "copy", "memset") & (joined.step >= 0)
    inside = np.asarray(table["step"]) >= 0
    waits, exposed = (np.asarray(table[name])[inside] for name in ("exposed_wait_ns", "exposed_ns"))
    is_told = MISSING not in waits and MISSING not in exposed
    return Steps(
        compute_ns=sum(one.compute_ns or 0 for one in found),
        uncovered_ns=sum(one.exposed_communication_ns or 0 for one in found),
        idle_ns=sum(one.idle_ns or 0 for one in found),
        e2e_ns=sum(one.e2e_ns or 0 for one in found),
        copy_ns=int((device.end_ns - device.start_ns)[copies].sum()),
        wait_ns=int(waits.sum()) if is_told else None,
        transmit_ns=int((exposed - waits).sum()) if is_told else None,
    )


def _chosen_categories(joined: Joined, *names: str) -> NDArray[np.bool_]:
    """Per device event whether it is of one of our categories `names`."""
    return np.isin(categories_of(joined), [CATEGORIES.index(name) for name in names])


def _union(device: DeviceEvents, rows: I64) -> Spans:
    return union(device.start_ns[rows], device.end_ns[rows])


def _largest(values: I64) -> int | None:
    known = values[values != MISSING]
    return int(known.max()) if len(known) else None


def _measured(events: Events, *metrics: str) -> dict[int, float]:
    """Event -> the larger of its values of `metrics`; events without any are left out."""
    table = events.extras.kernel_metrics
    codes = [events.strings.code(metric) for metric in metrics]
    values: dict[int, float] = {}
    for row in np.flatnonzero(np.isin(table.metric, codes)).tolist():
        event = int(table.event[row])
        values[event] = max(values.get(event, 0.0), float(table.value[row]))
    return values


# -- classes of kernels


@dataclass(frozen=True, slots=True)
class _Op:
    start_ns: int
    end_ns: int
    name: str
    is_backward: bool


def kernels_of(joined: Joined, cube: Sequence[bool], *, is_database: bool) -> Iterator[Kernel]:
    """Every compute kernel with its row here and at the peer, which walks ops and launches with one pointer each.

    `cube`: the peer's test for cube work, per device event. It takes the kernels of a text capture in order of launch,
    those without one first, and those of a database in order of their connection.
    """
    events, device = joined.events, joined.events.device
    categories = categories_of(joined)
    measured = None if is_database else _measured(events, "aiv_vec_time(us)", "mac_time(us)")
    worked = _cube_of_keys(events)
    ops, place = _telling_ops(events, is_database=is_database), 0
    rows = np.flatnonzero((joined.work == Work.COMPUTE) & (device.kind == DeviceKind.KERNEL))
    launched = [int(events.launches.start_ns[joined.launch[row]]) if joined.launch[row] >= 0 else 0 for row in rows]
    order = device.correlation[rows] if is_database else np.array(launched, dtype=np.int64)
    for at in np.argsort(order, kind="stable").tolist():
        row, time = int(rows[at]), launched[at]
        name, kind = (events.strings[int(column[row])] for column in (device.name, device.type))
        if measured is not None and row not in measured:
            peer, cause = None, "rows without aiv_vec_time and mac_time (AI CPU, random numbers, ...) are skipped"
        elif special := _special(name, kind):
            peer, cause = special, "the name of the kernel decides"
        else:
            while time and place < len(ops) and ops[place].end_ns < time:
                place += 1
            op = ops[place] if time and place < len(ops) and ops[place].start_ns <= time else None
            peer, cause = _by_op(op, cube[row]) if op else _by_kernel(name, kind, cube[row])
        category, core = CATEGORIES[int(categories[row])], events.strings[int(device.core_type[row])]
        duration = int(device.end_ns[row] - device.start_ns[row])
        in_step, uses_cube = int(joined.step[row]) >= 0, worked.get(_key(device, row))
        yield Kernel(name, duration, our_row(category, core), peer, cause, in_step, uses_cube)


def _cube_of_keys(events: Events) -> dict[tuple[int, ...], bool]:
    """Kernel -> whether the cube of its core worked in any of its calls; kernels without a measurement are left out."""
    metrics = {events.strings[code] for code in np.unique(events.extras.kernel_metrics.metric).tolist()}
    found: dict[tuple[int, ...], bool] = {}
    for row, value in _measured(events, *(metric for metric in metrics if _CUBE_METRIC.fullmatch(metric))).items():
        key = _key(events.device, row)
        found[key] = found.get(key, False) or value > 0
    return found


def _key(device: DeviceEvents, row: int) -> tuple[int, ...]:
    return tuple(int(column[row]) for column in (device.name, device.type, device.core_type, device.input_shapes))


def _cube_by_time(events: Events, *, is_database: bool) -> list[bool]:
    """Per device event whether the cube core, or a core that is not split, took any time."""
    values = _measured(events, "aicore_time(us)", "aic_mac_time(us)" if is_database else "mac_time(us)")
    return [values.get(row, 0.0) > 0 for row in range(len(events.device))]


def _telling_ops(events: Events, *, is_database: bool) -> list[_Op]:
    """The ops whose names tell attention, convolution or matmul, of all threads, in order of start."""
    ops = events.ops
    words = (*_ATTENTION, *_CONVOLUTION, *_MATMUL)
    names = {code: events.strings[code].lower() for code in np.unique(ops.name).tolist()}
    telling = [code for code, name in names.items() if any(word in name for word in words)]
    threads = ops.thread[ops.is_backward == 1]
    backward = int(threads[-1]) if len(threads) and not is_database else -1
    rows = np.flatnonzero(np.isin(ops.name, telling))
    rows = rows[np.argsort(ops.start_ns[rows], kind="stable")]
    return [
        _Op(int(ops.start_ns[row]), int(ops.end_ns[row]), names[int(ops.name[row])], int(ops.thread[row]) == backward)
        for row in rows.tolist()
    ]


def _special(name: str, kind: str) -> str | None:
    lower = name.lower()
    if "pagedattention" in kind.lower():
        return PAGE_ATTENTION
    if lower.startswith("aclnninplacecopy") and "tensormove" in lower:
        return TENSOR_MOVE
    return MC2 if lower in _MC2 else None


def _by_op(op: _Op, is_cube: bool) -> tuple[str, str]:
    backward = any(word in op.name for word in _BACKWARD)
    if any(word in op.name for word in _ATTENTION):
        title = f"Flash Attention ({'Backward' if backward else 'Forward'})"
    elif any(word in op.name for word in _CONVOLUTION):
        title = f"Conv ({'Backward' if backward or op.is_backward else 'Forward'})"
    else:
        title = "Matmul"
    cause = f"launched while {op.name} was open, of whatever thread and whichever op launched it"
    return f"{title} ({'Cube' if is_cube else 'Vector'})", cause


def _by_kernel(name: str, kind: str, is_cube: bool) -> tuple[str, str]:
    lower, type_of = name.lower(), kind.lower()
    backward = any(word in type_of for word in _BACKWARD)
    if "flashattention" in type_of or "fusedinferattention" in type_of:
        return f"Flash Attention ({'Backward' if backward else 'Forward'}) (Cube)", "no op tells, its type does"
    if type_of.startswith("conv"):
        return f"Conv ({'Backward' if backward else 'Forward'}) (Cube)", "no op tells, its type does"
    if "matmul" in type_of:
        return "Matmul (Cube)", "no op tells, its type does"
    if is_cube:
        return "Cube", "no op tells, and the cube core has time"
    word = next((word for word in _TRANS if word in lower), None)
    if word is not None:
        return "Vector (Trans)", f"'{word}' is a part of its name"
    return "Vector (No Trans)", "no op tells, the cube core has no time, no word of its name decides"


# -- process groups


def groups_of(events: Events, uncovered: Spans, *, is_database: bool) -> dict[str, Group]:
    """Per raw group: its uncovered time, and in it the waits of the plane that waits least.

    As text planes without a wait count as well, and then nothing waits; as database only those with one.
    """
    device, tasks, calls = events.device, events.extras.collective_tasks, events.collectives
    found = {}
    for group in np.unique(calls.group).tolist():
        mine = (device.collective >= 0) & (calls.group[np.maximum(device.collective, 0)] == group)
        own = np.flatnonzero(calls.group[tasks.collective] == group)
        planes = {int(plane): own[tasks.plane[own] == plane] for plane in np.unique(tasks.plane[own])}
        waits = [_waits(events, rows) for rows in planes.values()]
        waits = [rows for rows in waits if len(rows) or not is_database]
        least = min(waits, key=lambda rows: int((tasks.end_ns[rows] - tasks.start_ns[rows]).sum()), default=own[:0])
        waiting = intersect(union(tasks.start_ns[least], tasks.end_ns[least]), uncovered).total_ns
        whole = intersect(_union(device, mine), uncovered).total_ns
        found[events.strings[group]] = Group(waiting, whole - waiting)
    return found


def _waits(events: Events, rows: I64) -> I64:
    """The rows of one plane that wait for another rank: not those that belong to an RDMA transfer."""
    tasks = events.extras.collective_tasks
    last, kept = "OOOO", []
    for row in rows[np.argsort(tasks.start_ns[rows], kind="stable")].tolist():
        name = events.strings[int(tasks.name[row])]
        if name == "Notify_Wait" and last != "RRNR" and last[2:] != "RR":
            kept.append(row)
        last = last[1:] + {"RDMASend": "R", "Notify_Wait": "N"}.get(name, "O")
    return np.array(kept, dtype=np.int64)
