"""Tables that have no rows of their own -> counters: one number per row and measured column."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tracker.profile import MISSING, NO_STEP, Counters, StepTimes, Strings
from tracker.readers._ascend.csv_tables import NOTHING, CsvTable
from tracker.readers._ascend.spellings import plain
from tracker.readers._growing import Growing

# file -> the columns that name the thing measured; for other files it is the first column of text
_NAMED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "op_statistic": ("OP Type", "Core Type"),
    "api_statistic": ("Level", "API Name"),
    "l2_cache": ("Op Name",),
    "npu_module_mem": ("Component",),
    "operator_details": ("Name",),
    "step_trace_time": ("Step",),
    "dataset": ("Operation", "Stage"),
    "minddata_pipeline_raw": ("op_type",),
    "task_time": ("kernel_name", "kernel_type"),
    "communication_statistic": ("OP Type",),
    "hccl_statistic": ("OP Type",),
    "npu_mem": ("event",),
    "fusion_op": ("Fusion Op",),
    "aicpu": ("Node",),
}
# numbers that say which row it is, and measure nothing
_LABELS: Final = frozenset(
    plain(title)
    for title in (
        "Device_id", "Device", "Rank Id", "Stream Id", "Task Id", "Model ID", "Model Name", "Batch ID", "Context ID",
        "Timestamp(us)", "task_start(us)", "task_stop(us)", "Step", "Step Id", "op_id", "parent_id", "children_id",
        "Input Shapes", "Call Stack",
    )
)  # fmt: skip
_ABSOLUTE_NS: Final = 10**18
"""Old versions write Preparing as a point in time; no preparation lasts for thirty years."""


class CounterRows:
    """Counters, collected table by table."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._rows = Growing(step=np.int64, source=np.int32, name=np.int32, attribute=np.int32, value=np.float64)

    def add(self, source: str, names: Sequence[str], attribute: str, values: Any, steps: Any = None) -> None:
        """One column of numbers; those that are NaN or infinite are left out."""
        column = np.asarray(values, dtype=np.float64)
        kept = np.flatnonzero(np.isfinite(column))
        code = self._strings.code
        codes = np.array([code(name) for name in names], dtype=np.int32)
        step = np.full(len(column), NO_STEP, dtype=np.int64) if steps is None else np.asarray(steps, dtype=np.int64)
        count = len(kept)
        self._rows.add(
            step=np.where(step == MISSING, NO_STEP, step)[kept],
            source=np.full(count, code(source), dtype=np.int32),
            name=codes[kept],
            attribute=np.full(count, code(attribute), dtype=np.int32),
            value=column[kept],
        )

    def add_table(self, table: CsvTable, source: str) -> None:
        """Every column of numbers of `table`, named by what the row measures."""
        keys = _named_by(table, source)
        rows = zip(*(table.columns[key] for key in keys), strict=True)
        names = [" ".join(cell for cell in cells if cell not in NOTHING) for cells in rows]
        steps = table.ints("step") if table.has("step") else None
        for position, title in enumerate(table.header):
            if position not in keys and plain(title) not in _LABELS:
                self.add(source, names or [""] * len(table), title, table.floats(position), steps)

    def done(self) -> Counters:
        """All of them; the collection is given up."""
        return Counters(**self._rows.done())


def _named_by(table: CsvTable, source: str) -> list[int]:
    titles = [plain(title) for title in table.header]
    wanted = [plain(title) for title in _NAMED_BY.get(re.sub(r"_\d+$", "", source), ())]
    known = [titles.index(title) for title in wanted if title in titles]
    if known:
        return known
    texts = (i for i, title in enumerate(titles) if title not in _LABELS and not np.isfinite(table.floats(i)).any())
    return list(texts)[:1]


def step_times_of(table: CsvTable) -> StepTimes:
    """The steps of step_trace_time.csv; rows without a step (no schedule) are left out."""
    step, preparing = table.ints("step"), table.ns("preparing")
    known = step != MISSING
    return StepTimes(
        step=step[known],
        bubble_ns=table.ns("bubble")[known],
        preparing_ns=np.where(preparing >= _ABSOLUTE_NS, MISSING, preparing)[known],
        compute_ns=table.ns("computing")[known],
        communication_ns=table.ns("communication")[known],
        overlap_ns=table.ns("overlapped")[known],
        exposed_communication_ns=table.ns("not_overlapped")[known],
        idle_ns=table.ns("free")[known],
    )
