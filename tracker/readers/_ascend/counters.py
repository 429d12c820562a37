"""Tables that have no rows of their own -> counters: one number per row and measured column."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from tracker.profile import EMPTY_QUEUE, MISSING, NO_STEP, PIPELINE_TIME, Counters, Source, StepTimes, Strings
from tracker.readers._ascend.csv_tables import NOTHING, CsvTable, rows_of
from tracker.readers._ascend.spellings import plain
from tracker.readers._growing import Growing
from tracker.readers._source import ReadOptions, SourceText

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
_OF_PIPELINE: Final = ("per_pipeline_time", "per_push_queue_time", "per_batch_time")
"""Measurements of the data pipeline as a whole, in ms."""
_DEVICE_QUEUE: Final = "DeviceQueue"
_SIZES: Final = re.compile(r"\[\s*\d{1,9}(?:\s*,\s*\d{1,9})*\s*\]")
_SIZE: Final = re.compile(r"\d+")
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


def add_pipeline_summary(path: Path, options: ReadOptions, counters: CounterRows, source: str) -> Source:
    """Read minddata_pipeline_summary_*.csv, which lies on its side.

    It has a row per measurement, and a column per dataset operation; some measurements are of the whole pipeline.
    """
    text = SourceText(path, options)
    rows = rows_of(path, b"".join(text).decode("utf-8-sig", "ignore"))
    table = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows if row}
    names = table.pop("op_names", [])
    for attribute, cells in table.items():
        numbers = [_measured(cell) for cell in cells]
        if attribute in _OF_PIPELINE and len(numbers) == 1:
            counters.add(source, [PIPELINE_TIME[1]], attribute, numbers)
        elif attribute not in ("op_ids", "parent_id", "children_ids") and len(numbers) == len(names):
            counters.add(source, names, attribute, numbers)
    empty = _empty_queue(table, names)
    if empty is not None:
        counters.add(EMPTY_QUEUE[0], [EMPTY_QUEUE[1]], EMPTY_QUEUE[2], [empty])
    return text.source()


def _empty_queue(table: Mapping[str, Sequence[str]], names: Sequence[str]) -> float | None:
    """Return how much of the time the queue is empty from which the device takes its data, in percent.

    That is the queue behind the operation that hands batches on: of the root, or where that is the device queue itself,
    of the first operation below it that has a queue. None where the table does not say it.
    """
    empty = [_measured(cell) for cell in table.get(EMPTY_QUEUE[2], ())]
    numbers, parents = ([_number(cell) for cell in table.get(row, ())] for row in ("op_ids", "parent_id"))
    if not len(names) == len(empty) == len(numbers) == len(parents):
        return None
    return _queue_to_device(names, numbers, parents, empty)


def add_empty_queue(table: CsvTable, counters: CounterRows) -> None:
    """Add what minddata_pipeline_raw_*.csv says of the queue to the device: its sizes, one for each sample."""
    titles = [plain(title) for title in table.header]
    needed = [plain(title) for title in ("op_id", "op_type", "parent_id", "output_queue_size")]
    if not set(needed) <= set(titles):
        return
    ids, names, parents, sizes = (table.columns[titles.index(title)] for title in needed)
    numbers = [_number(cell) for cell in ids]
    of_parents = [-1.0 if cell in NOTHING else _number(cell) for cell in parents]
    empty = [_share_of_zeros(cell) for cell in sizes]
    found = _queue_to_device([name.removesuffix("Op") for name in names], numbers, of_parents, empty)
    if found is not None:
        counters.add(EMPTY_QUEUE[0], [EMPTY_QUEUE[1]], EMPTY_QUEUE[2], [found])


def _share_of_zeros(cell: str) -> float:
    """Return how many of the sizes in `[0, 3, 0]` are 0, in percent; nan where it is no list of sizes."""
    if not _SIZES.fullmatch(cell):
        return float("nan")
    sizes = [int(size) for size in _SIZE.findall(cell)]
    return 100 * sizes.count(0) / len(sizes)


def _queue_to_device(
    names: Sequence[str], numbers: Sequence[float], parents: Sequence[float], empty: Sequence[float]
) -> float | None:
    """Return how much of the time the queue to the device is empty, of operations with these numbers and parents."""
    children = {parent: place for place, parent in enumerate(parents)}
    place = children.get(-1.0)
    seen: set[int] = set()
    while place is not None and place not in seen:
        seen.add(place)
        if names[place] != _DEVICE_QUEUE and np.isfinite(empty[place]):
            return empty[place]
        # operations inside of another one have no queue
        place = children.get(numbers[place])
    return None


def _measured(cell: str) -> float:
    """Return a number of the data pipeline; MindSpore writes -1 where it measured nothing."""
    number = _number(cell)
    return float("nan") if number == -1 else number


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
