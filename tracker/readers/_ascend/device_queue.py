"""The counters of minddata: the summary of the data pipeline, and how often the queue to the device is empty."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from tracker.profile import EMPTY_QUEUE, PIPELINE_TIME, Source
from tracker.readers._ascend.counters import CounterRows
from tracker.readers._ascend.csv_tables import NOTHING, CsvTable, rows_of
from tracker.readers._ascend.input_pipeline import QueueNumbers, queues_of_summary
from tracker.readers._ascend.json_files import read_object
from tracker.readers._ascend.spellings import plain
from tracker.readers._source import ReadOptions, SourceText

_OF_PIPELINE: Final = ("per_pipeline_time", "per_push_queue_time", "per_batch_time")
"""Measurements of the data pipeline as a whole, in ms."""
_DEVICE_QUEUE: Final = "DeviceQueue"
_SIZES: Final = re.compile(r"\[\s*\d{1,9}(?:\s*,\s*\d{1,9})*\s*\]")
_SIZE: Final = re.compile(r"\d+")


def add_pipeline_summary(
    path: Path, options: ReadOptions, counters: CounterRows, source: str
) -> tuple[Source, list[QueueNumbers]]:
    """Read minddata_pipeline_summary_*.csv, which lies on its side, or the same as JSON, and return its queues.

    It has a row per measurement, and a column per dataset operation; some measurements are of the whole pipeline.
    """
    table, summary = _rows_of_summary(path, options)
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
    return summary, queues_of_summary(path, table, names)


def _rows_of_summary(path: Path, options: ReadOptions) -> tuple[dict[str, list[str]], Source]:
    """Return the cells of each measurement, and the file."""
    if path.suffix == ".json":
        value, summary = read_object(path, options)
        listed = {name: cells if isinstance(cells, list) else [cells] for name, cells in value.items()}
        table = {name: ["" if cell is None else str(cell) for cell in cells] for name, cells in listed.items()}
        return table, summary
    text = SourceText(path, options)
    rows = rows_of(path, b"".join(text).decode("utf-8-sig", "ignore"))
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows if row}, text.source()


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
