"""The tables in the text, as rows of numbers and a name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final

from msgspec import Struct

from tracker.errors import SourceError
from tracker.profile import MISSING
from tracker.readers._times import MAX_OF_ONE
from tracker.units import NS_PER_MS, NS_PER_S, NS_PER_US

KERNELS, COPY_TIMES, COPY_SIZES, API, RANGES, OS_CALLS = "kernels", "copy times", "copy sizes", "api", "ranges", "os"

# name of the report, in brackets behind the title: since 2021.5; shorter names until 2023
_REPORTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("cuda_gpu_kern_sum", "gpukernsum"), KERNELS),
    **dict.fromkeys(("cuda_gpu_mem_time_sum", "gpumemtimesum"), COPY_TIMES),
    **dict.fromkeys(("cuda_gpu_mem_size_sum", "gpumemsizesum"), COPY_SIZES),
    **dict.fromkeys(("cuda_api_sum", "cudaapisum"), API),
    **dict.fromkeys(("nvtx_sum", "nvtxsum", "nvtx_pushpop_sum", "nvtxppsum", "pushpopsum"), RANGES),
    **dict.fromkeys(("osrt_sum", "osrtsum"), OS_CALLS),
}
_NEW_TITLE: Final = re.compile(r"\s*\*\* (?P<title>.+) \((?P<report>\w+)\):\s*")
_OLD_TITLE: Final = re.compile(
    r"\s*(?P<title>CUDA API|CUDA Kernel|CUDA Memory Operation|NVTX Push-Pop Range|Operating System Runtime API)"
    r" Statistics(?: \((?P<unit>[^)]*)\))?:?\s*"
)
_OLD: Final[Mapping[str, str]] = {
    "CUDA API": API,
    "CUDA Kernel": KERNELS,
    "NVTX Push-Pop Range": RANGES,
    "Operating System Runtime API": OS_CALLS,
}
_SKIPPED: Final = re.compile(r"\s*SKIPPED: .* does not contain (?P<what>.+?)\.?\s*")
_RULE: Final = re.compile(r"\s*-+(?:\s+-+)+\s*")
_PERCENT: Final = re.compile(r"Time ?\(%\)")
_NUMBER: Final = re.compile(r"-?\d[\d,]{0,30}(?:\.\d{1,30})?")

_TIMES: Final[Mapping[str, int]] = {
    "ns": 1, "nsec": 1, "nanoseconds": 1, "us": NS_PER_US, "usec": NS_PER_US, "ms": NS_PER_MS, "msec": NS_PER_MS,
    "s": NS_PER_S, "sec": NS_PER_S,
}  # fmt: skip
_SIZES: Final[Mapping[str, int]] = {
    "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
}  # fmt: skip
_COUNTS: Final = ("Calls", "Num Calls", "Instances", "Operations", "Count")
_NAMES: Final = ("Name", "Range", "Operation")


class Line(Struct, frozen=True):
    """One row of a table: in ns, or bytes in the table of sizes; MISSING where the table has no such column. `percent`:
    of the whole table, as it is printed.
    """

    name: str
    calls: int
    total: int
    smallest: int
    largest: int
    number: int
    percent: Decimal | None = None


class Section(Struct, frozen=True):
    """One table: what it is about, and its rows. `number`: the line of its title."""

    kind: str
    rows: tuple[Line, ...]
    number: int


class Found(Struct, frozen=True):
    """All tables that are understood, what nsys says that it skipped, and the titles of other tables."""

    sections: tuple[Section, ...]
    skipped: tuple[str, ...]
    others: tuple[str, ...]


def sections_of(path: Path, lines: Sequence[str]) -> Found:
    """The tables in `lines`; a SourceError names the line whose numbers do not fit the head of its table."""
    sections, skipped, others = [], [], []
    for index, line in enumerate(lines):
        if said := _SKIPPED.fullmatch(line):
            skipped.append(said["what"])
            continue
        kind, unit = _title(line)
        if kind is None:
            continue
        if not kind:
            others.append(line.strip(" *:"))
            continue
        rows = tuple(_rows(path, lines, index + 1, kind, unit))
        sections.append(Section(kind, rows, index + 1))
    return Found(tuple(sections), tuple(skipped), tuple(others))


def _title(line: str) -> tuple[str | None, str]:
    """(what the table is about, unit of all its columns) of a title; '' for one that is not read, None for none."""
    if new := _NEW_TITLE.fullmatch(line):
        return _REPORTS.get(new["report"], ""), ""
    old = _OLD_TITLE.fullmatch(line)
    if not old:
        return None, ""
    unit = old["unit"] or ""
    if old["title"] in _OLD:
        return _OLD[old["title"]], unit
    # `(nanoseconds)` and `(KiB)`, later `(by time)` and `(by size in KiB)`
    word = unit.rpartition(" ")[2]
    return (COPY_SIZES, word) if word in _SIZES else (COPY_TIMES, unit)


def _rows(path: Path, lines: Sequence[str], start: int, kind: str, unit: str) -> Iterator[Line]:
    """The rows behind a title, up to the first empty line; none where the table has no head."""
    at = start
    while at < len(lines) and not lines[at].strip():
        at += 1
    if at + 1 >= len(lines) or not _RULE.fullmatch(lines[at + 1]):
        return
    columns = _columns(lines[at], lines[at + 1])
    for number in range(at + 2, len(lines)):
        line = lines[number]
        if not line.strip():
            return
        yield _line(path, line, number + 1, columns, kind, unit)


def _columns(head: str, rule: str) -> list[str]:
    """The words of the head; the dashes below show how wide each column is."""
    spans = [match.span() for match in re.finditer(r"-+", rule)]
    return [head[begin : end if end < len(rule.rstrip()) else None].strip() for begin, end in spans]


def _line(path: Path, line: str, number: int, columns: Sequence[str], kind: str, unit: str) -> Line:
    # numbers and the style (PushPop) hold no blanks, so that the last column is what is left
    words = line.split(None, len(columns) - 1)
    if len(words) == len(columns) - 1:
        words.append("")  # a kernel without a name
    values = dict(zip(columns, words, strict=False))
    scales = _SIZES if kind == COPY_SIZES else _TIMES

    def value(*starts: str) -> int:
        for column, word in values.items():
            title, _, inner = column.partition("(")
            if title.strip() in starts:
                # `Total Time (ns)`; without a unit of its own the column has that of the title, or ns
                scale = scales.get(inner.rstrip(") ") or unit, 1)
                return _number(path, number, column, word, scale)
        return MISSING

    calls = value(*_COUNTS)
    total = value("Total Time", "Total")
    if MISSING in (calls, total) or len(words) < len(columns):
        problem = f"does not fit the head of its table: {line.strip()[:60]!r}"
        raise SourceError(path, f"line {number}", problem, remedy="print the report again with nsys stats")
    name = next((values[column] for column in reversed(columns) if column in _NAMES), words[-1]).strip()
    percent = next((word for column, word in values.items() if _PERCENT.fullmatch(column)), "")
    return Line(
        name, calls, total, value("Minimum", "Min"), value("Maximum", "Max"), number,
        Decimal(percent) if _NUMBER.fullmatch(percent) and "," not in percent else None,
    )  # fmt: skip


def _number(path: Path, line: int, column: str, word: str, scale: int) -> int:
    number = int((Decimal(word.replace(",", "")) * scale).to_integral_value()) if _NUMBER.fullmatch(word) else None
    if number is None or not 0 <= number <= MAX_OF_ONE:
        expected = "a number" if number is None else f"0 to {MAX_OF_ONE}"
        problem = f"{column} is {word[:40]!r}, expected {expected}"
        raise SourceError(path, f"line {line}", problem, remedy="print the report again with nsys stats")
    return number
