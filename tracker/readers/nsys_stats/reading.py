"""From the tables to the rows of a capture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from tracker.errors import SourceError
from tracker.profile import (
    CPU,
    MISSING,
    ROW_COLUMNS,
    UNKNOWN_DEVICE,
    UNLINKED_OP,
    Breakdown,
    Capture,
    Rows,
    StepRow,
    Table,
)
from tracker.readers._nvidia import api_level, api_name, launches_work, operation_name
from tracker.readers._nvtx import range_name
from tracker.readers._source import ReadOptions, SourceText
from tracker.readers.nsys_stats.sections import (
    API,
    COPY_SIZES,
    COPY_TIMES,
    KERNELS,
    OS_CALLS,
    RANGES,
    Found,
    Line,
    sections_of,
)

ONLY_STEP: Final = 0
"""The text knows no steps: the whole capture is one."""

_CUT: Final = "..."
_DOMAIN: Final = re.compile(r"[^:]*:(?!:)")
_KINDS: Final[Mapping[str, tuple[Any, Any]]] = {"text": (None, ""), "float": (np.float64, np.nan)}
_ZERO: Final = frozenset(("step", "op_key", "kernel_key", "calls", "kernel_count"))


def capture_of(path: Path, options: ReadOptions) -> tuple[Capture, tuple[str, ...]]:
    """The capture, and what the reader of the result should know: what nsys skipped, names that it cut."""
    text = SourceText(path, options)
    lines = b"".join(text).decode("utf-8").splitlines()
    found = sections_of(path, lines)
    tables = _tables(path, found)
    if not any(tables.values()):
        problem = "the tables of nsys stats have no rows"
        raise SourceError(path, "", problem, remedy="profile with nsys profile --trace=cuda,nvtx and print them again")
    rows = _rows(tables)
    uses_device = any(tables.get(kind) for kind in (KERNELS, COPY_TIMES, COPY_SIZES, API))
    capture = Capture(
        rank=None,
        world_size=None,
        host="",
        device=UNKNOWN_DEVICE if uses_device else CPU,
        device_ordinal=None,
        started_at_ns=None,
        ended_at_ns=None,
        sources=(text.source(),),
        settings={"profiler": "summary"},
        rows=rows,
    )
    return capture, tuple(_warnings(found, tables))


def _tables(path: Path, found: Found) -> dict[str, tuple[Line, ...]]:
    """The rows of each kind of table; a kind that comes again with other rows is a SourceError."""
    tables: dict[str, tuple[Line, ...]] = {}
    for section in found.sections:
        known = tables.get(section.kind)
        if known and section.rows and _values(known) != _values(section.rows):
            problem = f"a second table of {section.kind}: this is the text of several reports"
            raise SourceError(path, f"line {section.number}", problem, remedy="keep one report per file")
        tables[section.kind] = known or section.rows
    return tables


def _values(rows: Iterable[Line]) -> list[tuple[Any, ...]]:
    return [(row.name, row.calls, row.total) for row in rows]


def _warnings(found: Found, tables: Mapping[str, tuple[Line, ...]]) -> Iterator[str]:
    names = {KERNELS: "kernels", COPY_TIMES: "copies", API: "CUDA calls", RANGES: "NVTX ranges"}
    if missing := [name for kind, name in names.items() if not tables.get(kind)]:
        skipped = [what for what in found.skipped if any(word in what for word in ("kernel", "GPU memory", "NV Tools"))]
        said = f" (nsys: no {', no '.join(dict.fromkeys(skipped))})" if skipped else ""
        yield f"the text has no {', no '.join(missing)}{said}"
    launched = sum(line.calls for line in tables.get(API, ()) if launches_work(api_name(line.name)))
    if launched and not tables.get(KERNELS):
        yield f"{launched} launches have no kernel: the capture did not trace the device, or ended before the work"
    if cut := sum(line.name.endswith(_CUT) for rows in tables.values() for line in rows):
        yield f"{cut} names were cut by nsys ({_CUT}); nsys stats --format csv has the whole names"


@dataclass(slots=True)
class _Rows:
    """Tables in the making."""

    tables: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in ROW_COLUMNS})
    _keys: dict[tuple[str, ...], int] = field(default_factory=dict)

    def add(self, table: str, **values: Any) -> None:
        """One row; what is not given is not known."""
        self.tables[table].append(values)

    def key(self, table: str, **values: str) -> int:
        """The row of a dimension, new or known."""
        place = (table, *values.values())
        if place not in self._keys:
            self._keys[place] = len(self.tables[table])
            self.tables[table].append(values)
        return self._keys[place]

    def done(self) -> dict[str, Table]:
        """All tables as columns."""
        return {name: _columns(name, rows) for name, rows in self.tables.items()}


def _columns(table: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for column, kind in ROW_COLUMNS[table].items():
        dtype, missing = _KINDS.get(kind, (np.int64, 0 if column in _ZERO else MISSING))
        values = [row.get(column, missing) for row in rows]
        columns[column] = values if dtype is None else np.array(values, dtype=dtype)
    return columns


def _rows(tables: Mapping[str, tuple[Line, ...]]) -> Rows:
    """The rows; kernels and copies hang on the op that stands for work without a known launch."""
    rows = _Rows()
    _add_work(rows, tables)
    _add_ranges(rows, tables.get(RANGES, ()), has_work=bool(tables.get(KERNELS) or tables.get(COPY_TIMES)))
    for line in tables.get(API, ()):
        name = api_name(line.name)
        _add_api(rows, api_level(name).name.lower(), name, line)
    for line in tables.get(OS_CALLS, ()):
        _add_api(rows, "os", line.name, line)
    overall = _breakdown(tables)
    return Rows(overall, (StepRow(ONLY_STEP, 0, overall),), rows.done())


def _add_work(rows: _Rows, tables: Mapping[str, tuple[Line, ...]]) -> None:
    work = [(line, "", line.name or "(no name)") for line in tables.get(KERNELS, ())]
    work += [(line, _copy_category(line.name), operation_name(line.name)) for line in tables.get(COPY_TIMES, ())]
    if not work:
        return
    sizes = {operation_name(line.name): line.total for line in tables.get(COPY_SIZES, ())}
    unlinked = rows.key("op_key", name=UNLINKED_OP)
    for line, category, name in work:
        rows.add(
            "kernel",
            kernel_key=rows.key("kernel_key", name=name),
            op_key=unlinked,
            category=category,
            calls=line.calls,
            total_ns=line.total,
            min_ns=line.smallest,
            max_ns=line.largest,
            bytes=sizes.get(name, MISSING) if category else MISSING,
        )
    total = sum(line.total for line, _, _ in work)
    count = sum(line.calls for line, _, _ in work)
    rows.add("op", op_key=unlinked, device_total_ns=total, device_self_ns=total, kernel_count=count)


def _copy_category(name: str) -> str:
    return "memset" if "memset" in name else "copy"


def _add_ranges(rows: _Rows, ranges: Iterable[Line], *, has_work: bool) -> None:
    """NVTX ranges as ops; those that differ only in a running number are one."""
    ranges = tuple(ranges)
    # since 2021 the domain stands in front: `PyTorch:forward`, `:forward` for the default one
    has_domain = all(_DOMAIN.match(line.name) for line in ranges)
    merged: dict[tuple[str, str, str], list[Line]] = {}
    for line in ranges:
        said = range_name(_DOMAIN.sub("", line.name, count=1) if has_domain else line.name)
        merged.setdefault((said.name, said.shapes, said.phase), []).append(line)
    for (name, shapes, phase), lines in merged.items():
        smallest = [line.smallest for line in lines]
        rows.add(
            "op",
            op_key=rows.key("op_key", name=name, input_shapes=shapes, phase=phase),
            calls=sum(line.calls for line in lines),
            host_total_ns=sum(line.total for line in lines),
            # where there is device work, smallest and largest are about that
            min_ns=MISSING if has_work or MISSING in smallest else min(smallest),
            max_ns=MISSING if has_work or MISSING in smallest else max(line.largest for line in lines),
        )


def _add_api(rows: _Rows, level: str, name: str, line: Line) -> None:
    rows.add(
        "api",
        level=level,
        name=name,
        calls=line.calls,
        total_ns=line.total,
        min_ns=line.smallest,
        max_ns=line.largest,
    )


def _breakdown(tables: Mapping[str, tuple[Line, ...]]) -> Breakdown:
    """Plain sums; the text has no times at which anything ran, so no unions."""
    kernels, copies = tables.get(KERNELS), tables.get(COPY_TIMES)
    unknown: dict[str, Any] = dict.fromkeys(Breakdown.__dataclass_fields__)
    unknown["timeline"] = "device" if kernels or copies else "host"
    if kernels:
        unknown["kernel_count"] = sum(line.calls for line in kernels)
        unknown["kernel_total_ns"] = sum(line.total for line in kernels)
    if copies:
        unknown["copy_total_ns"] = sum(line.total for line in copies)
    return Breakdown(**unknown)
