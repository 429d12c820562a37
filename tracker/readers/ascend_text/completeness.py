"""Whether kernel_details.csv has all kernels of its capture, by what stands beside it.

A table that was cut at the end of a line looks whole. The trace has the same kernels, and op_statistic.csv counts them.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracker.profile import I64, MISSING, DeviceKind, Strings
from tracker.readers._ascend.csv_tables import CsvTable
from tracker.readers._ascend.kernels import COLLECTIVE_CORES, COLLECTIVE_NAME, Kernels
from tracker.readers._ascend.trace.device import TraceTasks, kernel_tasks, same_events

_RATIO: Final = re.compile(r"Ratio ?\(%\)", re.IGNORECASE)
_COMPLETE: Final = 99.0
"""Ratios of a whole table sum to 100 %: they are printed with three digits."""

# some versions leave whole kinds of kernels out of the table: those that run on no core of the chip's AI cores
_BESIDE: Final = re.compile(r"(?:KERNEL_)?AI_?CPU|DSA_SQE|DVPP\w*", re.IGNORECASE)


def lacking(kernels: Kernels, trace: TraceTasks, left_out: int, strings: Strings) -> str:
    """`63 kernels in kernel_details.csv, 191 in trace_view.json` where the table has fewer; '' where it has them all.

    `left_out`: rows of the table that were left out, which count as there. Kinds of kernels that the table never has,
    and collectives where it has none, are no loss.
    """
    is_call = kernels.kind == DeviceKind.COMMUNICATION
    rows = kernel_tasks(trace, strings)
    rows = rows[~_of_kinds_never_there(rows, trace, kernels, strings)]
    calls = len(trace.collectives["name"]) if is_call.any() else 0
    found = len(kernels) + left_out
    if len(rows) == 0 or (len(rows) <= int((~is_call).sum()) + left_out and len(rows) + calls <= found):
        return ""
    return f"{found} kernels in kernel_details.csv, {len(rows) + len(trace.collectives['name'])} in trace_view.json"


def fewer_than_counted(kernels: Kernels, left_out: int, statistic: CsvTable, strings: Strings) -> str:
    """As `lacking`, by op_statistic.csv, which counts the kernels by type, and collectives in some versions."""
    titles = {title.lower(): place for place, title in enumerate(statistic.header)}
    if "count" not in titles:
        return ""
    types = statistic.texts("type") or [""] * len(statistic)
    cores = statistic.texts("core_type") or [""] * len(statistic)
    there = {strings[code] for code in np.unique(kernels.core_type).tolist()}
    counts = np.nan_to_num(statistic.floats(titles["count"]))
    counted = sum(
        int(count)
        for kind, core, count in zip(types, cores, counts.tolist(), strict=True)
        if core not in COLLECTIVE_CORES
        and not COLLECTIVE_NAME.match(kind)
        and (core in there or not _BESIDE.fullmatch(core))
    )
    found = int((kernels.kind != DeviceKind.COMMUNICATION).sum()) + left_out
    return f"{found} kernels in kernel_details.csv, {counted} in op_statistic.csv" if found < counted else ""


def cut_at(statistic: CsvTable) -> str:
    """A sentence where op_statistic.csv itself was cut, as its ratios say; '' for a whole one."""
    place = next((at for at, title in enumerate(statistic.header) if _RATIO.fullmatch(title)), None)
    if place is None or not len(statistic):
        return ""
    listed = float(np.nansum(statistic.floats(place)))
    if not 0 < listed < _COMPLETE:
        return ""
    return f"op_statistic.csv is cut: its rows are {listed:.1f} % of the time of all kernels"


def _of_kinds_never_there(rows: I64, trace: TraceTasks, kernels: Kernels, strings: Strings) -> NDArray[np.bool_]:
    """Which kernels of the trace run beside the AI cores and are of a kind of which the table has not one.

    A kind of which the first kernel runs after the last one of the table may have been cut.
    """
    types, starts = trace.tasks["type"][rows], trace.tasks["start_ns"][rows]
    last = kernels.start_ns.max(initial=MISSING)
    found = same_events(trace.tasks["name"][rows], trace.tasks["start_ns"][rows], kernels.name, kernels.start_ns) >= 0
    never = [
        code
        for code in np.unique(types).tolist()
        if _BESIDE.fullmatch(strings[code]) and not found[types == code].any() and starts[types == code].min() < last
    ]
    return np.isin(types, never)
