"""The data pipeline of MindSpore: how long its operations take (dataset.csv), and how full their queues are (minddata).

Its numbers are counters of two sources, INPUT_OPERATIONS and INPUT_QUEUES, of which a report makes its tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.errors import SourceError
from tracker.profile import INPUT_OPERATIONS, INPUT_QUEUES, InputAttribute
from tracker.readers._ascend.counters import CounterRows
from tracker.readers._ascend.csv_tables import NOTHING, CsvTable
from tracker.readers._ascend.spellings import plain

_SIZES: Final = re.compile(r"\[\s*(?:\d{1,9}(?:\s*,\s*\d{1,9})*)?\s*\]")
_NUMBER: Final = re.compile(r"\d{1,9}")
_SIZE: Final = re.compile(r"\d+")
_PARTS: Final = 8
"""The course of a queue is its mean size in so many parts of the time: more do not fit into a line."""
_UNKNOWN: Final = float("nan")
_EXPORT: Final = "export the profile again with its own parser"


class QueueNumbers(Struct, frozen=True):
    """What one file says of an operation of the pipeline and of the queue behind it; nan for what it does not say.

    `number`: of the operation, 0 is the one next to the device. `capacity`: of the queue. `sizes`: how many entries
    it held, sample by sample, `interval_ms` apart. `mean_size`: as the file states it, where it has no samples.
    """

    number: int
    name: str
    workers: float = _UNKNOWN
    capacity: float = _UNKNOWN
    sizes: tuple[int, ...] = ()
    interval_ms: float = _UNKNOWN
    mean_size: float = _UNKNOWN
    empty_percent: float = _UNKNOWN
    cpu_percent: float = _UNKNOWN


def queues_of_samples(table: CsvTable) -> list[QueueNumbers]:
    """Return the queues of minddata_pipeline_raw_*.csv; a SourceError names the row with sizes that are none."""
    names, numbers = _cells(table, "op_type"), _cells(table, "op_id")
    if names is None or numbers is None:
        return []
    sizes = _cells(table, "output_queue_size") or [""] * len(table)
    workers, capacities, intervals, means = (
        _floats(table, title)
        for title in ("num_workers", "output_queue_length", "sample_interval", "output_queue_average_size")
    )
    found = []
    for row, name in enumerate(names):
        place = f"row {table.numbers[row]}"
        if not _NUMBER.fullmatch(numbers[row]):
            raise SourceError(table.path, place, f"op_id is {numbers[row][:40]!r}, expected a number", remedy=_EXPORT)
        samples = _sizes_in(sizes[row], table.path, place)
        found.append(
            QueueNumbers(
                number=int(numbers[row]),
                name=name.removesuffix("Op"),
                workers=workers[row],
                capacity=capacities[row],
                sizes=samples,
                interval_ms=intervals[row],
                mean_size=means[row],
                empty_percent=100 * samples.count(0) / len(samples) if samples else _UNKNOWN,
            )
        )
    return found


def queues_of_summary(path: Path, rows: Mapping[str, Sequence[str]], names: Sequence[str]) -> list[QueueNumbers]:
    """Return the queues of minddata_pipeline_summary_*.csv, whose rows are measurements and whose columns are the
    operations `names`; a SourceError names the row with a cell that is no number.
    """
    numbers = rows.get("op_ids", ())
    if len(numbers) != len(names) or not all(_NUMBER.fullmatch(number) for number in numbers):
        return []
    workers, means, empty, cpu = (
        _measured(path, rows, title, len(names))
        for title in ("num_workers", "queue_average_size", "queue_empty_freq_pct", "avg_cpu_pct")
    )
    return [
        QueueNumbers(
            number=int(number),
            name=names[place].removesuffix("Op"),
            workers=workers[place],
            mean_size=means[place],
            empty_percent=empty[place],
            cpu_percent=cpu[place],
        )
        for place, number in enumerate(numbers)
    ]


def add_queues(counters: CounterRows, stated: Sequence[QueueNumbers], sampled: Sequence[QueueNumbers]) -> None:
    """Add the queues of a pipeline: what the summary states of each goes before what its samples say, and an operation
    whose name others have as well is named with its number.
    """
    of_summary = {queue.number: queue for queue in stated}
    of_samples = {queue.number: queue for queue in sampled}
    every = dict(sorted({**of_samples, **of_summary}.items()))
    often = Counter(queue.name for queue in every.values())
    for number, queue in every.items():
        own = of_samples.get(number, queue)
        name = queue.name if often[queue.name] == 1 else f"{queue.name}(id:{number})"
        sizes: Sequence[float] = own.sizes or [_first_known(queue.mean_size, own.mean_size)]
        values: dict[str, Sequence[float]] = {
            InputAttribute.WORKERS: [_first_known(queue.workers, own.workers)],
            InputAttribute.CAPACITY: [own.capacity],
            InputAttribute.EMPTY: [_first_known(queue.empty_percent, own.empty_percent)],
            InputAttribute.CPU: [queue.cpu_percent],
            InputAttribute.SAMPLED: [own.interval_ms * len(own.sizes) if own.sizes else _UNKNOWN],
            InputAttribute.SIZE: sizes,
        }
        parts = min(_PARTS, len(own.sizes))
        for part, cut in enumerate(np.array_split(np.array(own.sizes), max(1, parts)), start=1):
            if parts > 1:
                values[f"{InputAttribute.SIZE} {part}/{parts}"] = cut.tolist()
        if not any(np.isfinite(column).any() for column in values.values()):
            # that hands over to the device has no queue of its own
            continue
        values[InputAttribute.NUMBER] = [number]
        for attribute, column in values.items():
            counters.add(INPUT_QUEUES, [name] * len(column), attribute, column)


def add_operations(counters: CounterRows, table: CsvTable) -> None:
    """Add how often the operations of dataset.csv ran and how long they took; a SourceError names the row with a cell
    that is no number.
    """
    names, occurrences = _cells(table, "Operation"), _cells(table, "Occurrences")
    title = next((title for title in table.header if plain(title).startswith(plain("Avg. time"))), None)
    if names is None or occurrences is None or title is None:
        return
    stages = _cells(table, "Stage") or [""] * len(table)
    averages = table.columns[table.header.index(title)]
    rows = zip(names, stages, occurrences, averages, strict=True)
    for row, (name, stage, often, average) in enumerate(rows):
        place = f"row {table.numbers[row]}"
        calls = _number(often, table.path, place, "Occurrences")
        total_us = calls * _number(average, table.path, place, title)
        operation = " ".join(cell for cell in (name, stage) if cell not in NOTHING)
        counters.add(INPUT_OPERATIONS, [operation], InputAttribute.CALLS, [calls])
        counters.add(INPUT_OPERATIONS, [operation], InputAttribute.TOTAL, [total_us])


def _cells(table: CsvTable, title: str) -> list[str] | None:
    titles = [plain(one) for one in table.header]
    return [cell.strip() for cell in table.columns[titles.index(plain(title))]] if plain(title) in titles else None


def _floats(table: CsvTable, title: str) -> list[float]:
    cells = _cells(table, title) or [""] * len(table)
    return [
        _number(cell, table.path, f"row {number}", title) for cell, number in zip(cells, table.numbers, strict=True)
    ]


def _sizes_in(cell: str, path: Path, place: str) -> tuple[int, ...]:
    """Return the sizes in `[0, 3, 0]`; an operation inside of another one has none, and a number alone is no sample."""
    if cell in NOTHING or _NUMBER.fullmatch(cell):
        return ()
    if not _SIZES.fullmatch(cell):
        problem = f"output_queue_size is {cell[:40]!r}, expected sizes such as [0, 3, 0]"
        raise SourceError(path, place, problem, remedy=_EXPORT)
    return tuple(int(size) for size in _SIZE.findall(cell))


def _measured(path: Path, rows: Mapping[str, Sequence[str]], title: str, count: int) -> list[float]:
    cells = rows.get(title, ())
    if len(cells) != count:
        return [_UNKNOWN] * count
    return [_number(cell, path, f"row {title}", title) for cell in cells]


def _number(cell: str, path: Path, place: str, title: str) -> float:
    """Return the number in a cell, nan for an empty one; MindSpore writes -1 where it measured nothing."""
    if cell in NOTHING:
        return _UNKNOWN
    try:
        number = float(cell)
    except ValueError:
        number = _UNKNOWN
    if isnan(number) or (number < 0 and number != -1):
        raise SourceError(path, place, f"{title} is {cell[:40]!r}, expected a number", remedy=_EXPORT)
    return _UNKNOWN if number == -1 else number


def _first_known(*numbers: float) -> float:
    return next((number for number in numbers if not isnan(number)), _UNKNOWN)
