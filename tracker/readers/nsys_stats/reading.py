"""From the tables to the rows of a capture."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tracker.errors import SourceError
from tracker.profile import (
    CPU,
    MISSING,
    NOT_LISTED,
    UNKNOWN_DEVICE,
    UNLINKED_OP,
    Breakdown,
    Capture,
    Rows,
    StepRow,
)
from tracker.readers import _rows
from tracker.readers._nvidia import api_level, api_name, launches_work, operation_name
from tracker.readers._nvtx import range_name
from tracker.readers._source import ReadOptions, SourceText
from tracker.readers._text import lines_of
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
from tracker.units import format_ns

ONLY_STEP: Final = 0
"""The text knows no steps: the whole capture is one."""

_CUT: Final = "..."
_COMPLETE: Final = 99
"""Percents of a whole table sum to 100, but for what rounding loses."""
_DOMAIN: Final = re.compile(r"[^:]*:(?!:)")


class _Work(Struct, frozen=True):
    """A row of kernels or copies; `category` is '' where the name of the kernel has to tell it."""

    line: Line
    category: str
    name: str


def capture_of(path: Path, options: ReadOptions) -> tuple[Capture, tuple[str, ...]]:
    """The capture, and what the reader of the result should know: what nsys skipped, names that it cut."""
    text = SourceText(path, options)
    lines = list(lines_of(text))
    found = sections_of(path, lines)
    tables = _tables(path, found)
    if not any(tables.values()):
        problem = "the tables of nsys stats have no rows"
        raise SourceError(path, "", problem, remedy="profile with nsys profile --trace=cuda,nvtx and print them again")
    rows = _rows_of(tables)
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
    for kind, name in names.items():
        if (rest_ns := _left_out_ns(tables.get(kind, ()))) is not None:
            listed_ns = sum(line.total for line in tables[kind])
            words = f"the table of {name} is cut: it lists {format_ns(listed_ns)} of {format_ns(listed_ns + rest_ns)}"
            yield words + (f"; the rest, which follows from its percents, is the row {NOT_LISTED}"
                           if kind == KERNELS else ", and so are its sums")  # fmt: skip
    if cut := sum(line.name.endswith(_CUT) for rows in tables.values() for line in rows):
        yield f"{cut} names were cut by nsys ({_CUT}); nsys stats --format csv has the whole names"


def _left_out_ns(lines: Sequence[Line]) -> int | None:
    """The time of the rows that a cut table does not list, by the percents of those that it does; None for a whole one:
    people keep the head of a long table.
    """
    known = [(line.percent, line.total) for line in lines if line.percent is not None]
    percent, total = sum((percent for percent, _ in known), Decimal()), sum(total for _, total in known)
    rounding = sum((Decimal(5).scaleb(int(percent.as_tuple().exponent) - 1) for percent, _ in known), Decimal())
    if not percent > 0 or percent + rounding >= _COMPLETE:
        return None
    return max(0, round(total / percent * 100) - total)


def _rows_of(tables: Mapping[str, tuple[Line, ...]]) -> Rows:
    """The rows; kernels and copies hang on the op that stands for work without a known launch."""
    op_keys, kernel_keys = _rows.Keys("op_key"), _rows.Keys("kernel_key")
    work = _work(tables)
    facts: dict[str, Sequence[_rows.Row]] = {
        "kernel": _kernel_rows(work, _copied_bytes(tables), op_keys, kernel_keys),
        "op": [*_unlinked_row(work, op_keys), *_range_rows(tables.get(RANGES, ()), op_keys, has_work=bool(work))],
        "api": [*_api_rows(tables)],
    }
    overall = _breakdown(tables)
    made = _rows.tables([("op_key", op_keys.table()), ("kernel_key", kernel_keys.table())], facts)
    return Rows(overall, (StepRow(ONLY_STEP, 0, overall),), made)


def _work(tables: Mapping[str, tuple[Line, ...]]) -> list[_Work]:
    kernels = _merged(tables.get(KERNELS, ()), lambda line: line.name or "(no name)")
    work = [_Work(line, "", name) for name, line in kernels.items()]
    if (rest_ns := _left_out_ns(tables.get(KERNELS, ()))) is not None:
        rest = Line(NOT_LISTED, MISSING, rest_ns, MISSING, MISSING, 0)
        work.append(_Work(rest, "other", NOT_LISTED))
    copies = _merged(tables.get(COPY_TIMES, ()), lambda line: operation_name(line.name))
    return work + [_Work(line, _copy_category(line.name), name) for name, line in copies.items()]


def _merged(lines: Iterable[Line], name_of: Callable[[Line], str]) -> dict[str, Line]:
    """The rows by name, those of one name as one: nsys cuts long names, and what is left of two can be the same."""
    merged: dict[str, Line] = {}
    for line in lines:
        name = name_of(line)
        known = merged.get(name)
        merged[name] = line if known is None else _sum(known, line)
    return merged


def _sum(one: Line, other: Line) -> Line:
    smallest = MISSING if MISSING in (one.smallest, other.smallest) else min(one.smallest, other.smallest)
    largest = MISSING if MISSING in (one.largest, other.largest) else max(one.largest, other.largest)
    return Line(one.name, one.calls + other.calls, one.total + other.total, smallest, largest, one.number)


def _copy_category(name: str) -> str:
    return "memset" if "memset" in name else "copy"


def _copied_bytes(tables: Mapping[str, tuple[Line, ...]]) -> dict[str, int]:
    sizes = _merged(tables.get(COPY_SIZES, ()), lambda line: operation_name(line.name))
    return {name: line.total for name, line in sizes.items()}


def _kernel_rows(
    work: Sequence[_Work], sizes: Mapping[str, int], op_keys: _rows.Keys, kernel_keys: _rows.Keys
) -> list[_rows.Row]:
    return [
        {
            "step": ONLY_STEP,
            "kernel_key": kernel_keys.at(name=item.name),
            "op_key": op_keys.at(name=UNLINKED_OP),
            "category": item.category,
            "bytes": sizes.get(item.name),
            **_spread(item.line),
        }
        for item in work
    ]


def _unlinked_row(work: Sequence[_Work], op_keys: _rows.Keys) -> Iterator[_rows.Row]:
    """The op that stands for launches nobody saw: it has device work, and no calls of its own."""
    if work:
        total = sum(item.line.total for item in work)
        yield {
            "step": ONLY_STEP,
            "op_key": op_keys.at(name=UNLINKED_OP),
            "calls": 0,
            "device_total_ns": total,
            "device_self_ns": total,
            "kernel_count": None
            if any(item.line.calls == MISSING for item in work)
            else sum(item.line.calls for item in work),
        }


def _range_rows(ranges: Sequence[Line], op_keys: _rows.Keys, *, has_work: bool) -> Iterator[_rows.Row]:
    """NVTX ranges as ops; those that differ only in a running number are one. What they launched is not said."""
    # since 2021 the domain stands in front: `PyTorch:forward`, `:forward` for the default one
    has_domain = all(_DOMAIN.match(line.name) for line in ranges)
    merged: dict[tuple[str, str, str], list[Line]] = {}
    for line in ranges:
        said = range_name(_DOMAIN.sub("", line.name, count=1) if has_domain else line.name)
        merged.setdefault((said.name, said.shapes, said.phase), []).append(line)
    for (name, shapes, phase), lines in merged.items():
        smallest = [line.smallest for line in lines]
        # where there is device work, smallest and largest are about that
        unknown = has_work or MISSING in smallest
        yield {
            "step": ONLY_STEP,
            "op_key": op_keys.at(name=name, input_shapes=shapes, phase=phase),
            "calls": sum(line.calls for line in lines),
            "host_total_ns": sum(line.total for line in lines),
            "min_ns": None if unknown else min(smallest),
            "max_ns": None if unknown else max(line.largest for line in lines),
        }


def _api_rows(tables: Mapping[str, tuple[Line, ...]]) -> Iterator[_rows.Row]:
    for name, line in _merged(tables.get(API, ()), lambda line: api_name(line.name)).items():
        yield {"step": ONLY_STEP, "level": api_level(name).name.lower(), "name": name, **_spread(line)}
    for name, line in _merged(tables.get(OS_CALLS, ()), lambda line: line.name).items():
        yield {"step": ONLY_STEP, "level": "os", "name": name, **_spread(line)}


def _spread(line: Line) -> dict[str, int]:
    return {"calls": line.calls, "total_ns": line.total, "min_ns": line.smallest, "max_ns": line.largest}


def _breakdown(tables: Mapping[str, tuple[Line, ...]]) -> Breakdown:
    """Plain sums; the text has no times at which anything ran, so no unions."""
    kernels, copies = tables.get(KERNELS), tables.get(COPY_TIMES)
    sums: dict[str, int] = {}
    if kernels:
        rest_ns = _left_out_ns(kernels)
        sums["kernel_total_ns"] = sum(line.total for line in kernels) + (rest_ns or 0)
        if rest_ns is None:
            sums["kernel_count"] = sum(line.calls for line in kernels)
    if copies:
        sums["copy_total_ns"] = sum(line.total for line in copies)
    return _rows.breakdown("device" if kernels or copies else "host", **sums)
