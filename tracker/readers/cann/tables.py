"""The tables of a capture: each file is read once, whatever number of devices it tells of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec.structs import replace

from tracker.profile import KernelMetrics, MemoryPoints, Source, Strings
from tracker.readers._ascend.csv_tables import NOTHING, CsvTable, read_table
from tracker.readers._ascend.kernels import Kernels, kernel_metrics_of, kernels_of, leave_out_bad_tasks
from tracker.readers._ascend.memory import GRAPH_ENGINE, Blocks, blocks_of, memory_points_of
from tracker.readers._ascend.trace.device import is_kernel
from tracker.readers._growing import joined_rows
from tracker.readers._source import ReadOptions

_NUMBER: Final = re.compile(r"(?:NPU:)?(\d{1,9})")


class Tables:
    """The CSV files of a capture. `sources`: what was read, equal files once; `warnings`: what was left out of them;
    `partial`: why one of them is only a part, "" where all are whole.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.sources: list[Source] = []
        self.warnings: list[str] = []
        self.partial = ""
        self._options = options
        self._known: dict[Path, CsvTable] = {}
        self._owners: dict[Path, int | None] = {}

    def of(self, paths: Iterable[Path], device: int | None) -> list[CsvTable]:
        """The rows of `device` (None: all rows) of each file; a file that is equal to an earlier one is left out.

        Rows of no device (`host`) count once: they go to the first device that asks for the file.
        """
        tables: dict[bytes, CsvTable] = {}
        for path in paths:
            table = self._read(path)
            tables.setdefault(table.source.digest, table)
        return [
            _rows_of(table, device, with_host=self._owners.setdefault(table.path, device) == device)
            for table in tables.values()
        ]

    def disown(self, device: int | None) -> None:
        """Leaves the rows of no device to the next that asks: `device` is none of the capture."""
        self._owners = {path: owner for path, owner in self._owners.items() if owner != device}

    def tasks_of(self, paths: Sequence[Path], device: int | None) -> list[CsvTable]:
        """The same of files with a device task per row, without impossible tasks where the options ask for it."""
        for path in paths if self._options.skip_bad_rows else ():
            self._leave_out(self._read(path))
        return self.of(paths, device)

    def devices_in(self, paths: Iterable[Path]) -> list[int]:
        """The devices that the files tell of, in order."""
        found = {_device_of(cell) for path in paths for cell in self._read(path).texts("device") or ()}
        return sorted(device for device in found if device is not None)

    def _read(self, path: Path) -> CsvTable:
        if path not in self._known:
            table = self._known[path] = read_table(path, self._options)
            self.add_source(table.source)
            self._warn(table, table.skipped)
            if table.partial:
                self.partial = self.partial or f"{path.name}: {table.partial}"
        return self._known[path]

    def _leave_out(self, table: CsvTable) -> None:
        before = table.skipped
        leave_out_bad_tasks(table)
        self._warn(table, table.skipped - before)

    def _warn(self, table: CsvTable, skipped: int) -> None:
        if skipped:
            self.warnings.append(f"{skipped} rows of {table.path.name} with impossible values were left out")

    def add_source(self, source: Source) -> None:
        """Takes in another file that was read."""
        if source.digest not in {known.digest for known in self.sources}:
            self.sources.append(source)


def kernels_of_tables(tables: Sequence[CsvTable], strings: Strings) -> tuple[Kernels, KernelMetrics]:
    """The device tasks of op_summary, all its parts one after the other, and their measurements."""
    kernels = [kernels_of(table, strings) for table in tables]
    metrics = []
    first = 0
    for table, part in zip(tables, kernels, strict=True):
        measured = kernel_metrics_of(table, strings)
        metrics.append(replace(measured, event=(measured.event + first).astype(np.int32)))
        first += len(part)
    return joined_rows(kernels), joined_rows(metrics)


def kernels_of_tasks(tables: Sequence[CsvTable], strings: Strings) -> Kernels:
    """The kernels among the tasks of task_time.csv: what the scheduler does has no name there."""
    kept = []
    for table in tables:
        table.need("name", "core_type", "start", "duration")
        pairs = zip(table.texts("core_type") or (), table.texts("name") or (), strict=True)
        named = [row for row, (kind, name) in enumerate(pairs) if name not in NOTHING and is_kernel(kind, name)]
        kept.append(kernels_of(table.only(named), strings))
    return joined_rows(kept)


def blocks_of_tables(tables: Sequence[CsvTable], strings: Strings) -> Blocks | None:
    """The blocks of operator_memory; CANN itself only knows those of its graph engine."""
    parts = [blocks_of(table, strings, GRAPH_ENGINE) for table in tables]
    if not parts:
        return None
    first = np.cumsum([0, *(int(part.block.max(initial=0)) for part in parts[:-1])])
    return joined_rows(
        [replace(part, block=part.block + offset) for part, offset in zip(parts, first.tolist(), strict=True)]
    )


def points_of_tables(tables: Sequence[CsvTable], strings: Strings) -> MemoryPoints | None:
    """The samples of memory_record, None without such a table."""
    parts = [memory_points_of(table, strings) for table in tables]
    return joined_rows(parts) if parts else None


def _rows_of(table: CsvTable, device: int | None, *, with_host: bool) -> CsvTable:
    """The rows about `device` and, `with_host`, those about none (`host`)."""
    if device is None:
        return table
    cells = table.texts("device") or table.texts("device_type") or [""] * len(table)
    wanted = (device, None) if with_host else (device,)
    kept = [row for row, cell in enumerate(cells) if _device_of(cell) in wanted]
    return table if len(kept) == len(table) else table.only(kept)


def _device_of(cell: str) -> int | None:
    match = _NUMBER.fullmatch(cell)
    return int(match.group(1)) if match else None
