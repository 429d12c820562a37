"""The printed tables of a summary -> typed rows; all times in ns, each section in its own unit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from tracker.errors import SourceError
from tracker.readers import _paddle
from tracker.readers._times import MAX_OF_ONE

HEADING: Final = re.compile(
    r"\s*-{3,}\s*(?P<title>[A-Z][A-Za-z ]*? Summary)(?: - Place\((?P<place>[^)]*)\))?\s*-{3,}\s*"
)
_UNIT: Final = re.compile(r"\s*Time unit:\s*(?P<unit>s|ms|us|ns)\s*")
_RULE: Final = re.compile(r"\s*-[-\s]*")
_THREAD: Final = re.compile(r"\s*-{3,}\s*Thread: .*?-{3,}+\s*")
_PEAK: Final = re.compile(r"\s*Peak (?P<which>Allocated|Reserved) Memory: (?P<bytes>\d{1,18})\s*")
_CELL: Final = re.compile(r"(?P<name>\S.*?)(?<! ) {2,}+(?P<cells>.*)")
_ROW_OF_SPREADS: Final = re.compile(r"(?P<name>\S.*?)(?<! ) {2,}+(?P<calls>\d{1,18}|-) {2,}+(?P<cells>.*)")
_SPREAD_TITLE: Final = re.compile(r"(?P<where>\w[\w ]*) Total / Avg / Max / Min / Ratio ?\(%\)")
_SLASH: Final = re.compile(r" ?/ ?")
_PERCENT: Final = re.compile(r"\d{1,3}(?:\.\d{1,6})?")
_INDENT: Final = 2
_RULES: Final = {"Overview": 6}
"""Dashed lines of a section, by which its end is known; 3 of any other: around the header, and at the end."""

WHOLE: Final = ("ProfileStep", "Total Time")
"""Names of the row of the Model Summary that is all profiled steps."""
_TABLES_OF_SPREADS: Final = ("Model", "Operator", "Kernel", "Memory Manipulation", "UserDefined")
_END: Final = ("Note:", "Note :")
_CUT: Final = ("...", "......")


class Spread(Struct, frozen=True):
    """Sum and extremes over calls, in ns; None where the table prints `-`. `percent`: the printed ratio, of the sum of
    the whole table (of an indented row: of the row above it).
    """

    total_ns: int | None = None
    largest_ns: int | None = None
    smallest_ns: int | None = None
    percent: float | None = None


class Row(Struct, frozen=True):
    """One row of a table of spreads. `level`: how far it is indented; `device`: all that is not CPU."""

    level: int
    name: str
    calls: int | None
    host: Spread
    device: Spread

    @property
    def is_device_event(self) -> bool:
        """A kernel, copy or memset below the op that launched it: it took no time on the host."""
        return self.level > 0 and self.host.total_ns is None and self.device.total_ns is not None


class Kind(Struct, frozen=True):
    """One row of the Overview: all events of one type, their time merged so that overlaps count once."""

    calls: int | None
    time_ns: int | None


class Allocated(Struct, frozen=True):
    """One row of a Memory Summary; sizes in bytes."""

    name: str
    allocations: int
    allocated_bytes: int
    increased_bytes: int


class Sections(Struct):
    """What a summary says, section by section; empty where it has none. `spreads`: by title (`Operator`, ...).

    `utilization`: per cent, by device. `overview`: (`CPU` or `GPU`, type) -> sums. `distribution`: ns by name.
    `memory`: by place (`cpu`, `gpu:0`), with the peaks `Allocated` and `Reserved` in `peaks`.
    `shortened`: sections that were cut by hand. `skipped`: rows that could not be read.
    """

    found: list[str] = field(default_factory=list)
    spreads: dict[str, list[Row]] = field(default_factory=dict)
    utilization: dict[str, float] = field(default_factory=dict)
    overview: dict[tuple[str, str], Kind] = field(default_factory=dict)
    distribution: dict[str, int] = field(default_factory=dict)
    memory: dict[str, list[Allocated]] = field(default_factory=dict)
    peaks: dict[str, dict[str, int]] = field(default_factory=dict)
    shortened: list[str] = field(default_factory=list)
    skipped: int = 0

    def step_counts(self) -> set[int]:
        """How many steps were profiled, as far as the tables say it."""
        said = [row.calls for row in self.spreads.get("Model", ()) if row.name in WHOLE]
        said += [kind.calls for (_, name), kind in self.overview.items() if name == "ProfileStep"]
        return {count for count in said if count}

    def add(self, other: Sections) -> None:
        """Takes in the sections of another file of the same summary."""
        self.found += other.found
        self.spreads |= other.spreads
        self.utilization |= other.utilization
        self.overview |= other.overview
        self.distribution |= other.distribution
        self.memory |= other.memory
        self.peaks |= other.peaks
        self.shortened += other.shortened
        self.skipped += other.skipped


def sections_of(lines: Iterable[str], path: Path, *, skip_bad_rows: bool = False) -> Sections:
    """The sections in a text; what stands between them (logs, notes) is passed over.

    A section that stands twice is an error: two summaries are two captures.
    """
    parser = _Parser(path, skip_bad_rows=skip_bad_rows)
    for number, line in enumerate(lines, start=1):
        parser.take(number, line)
    if not parser.sections.found:
        looked_for = "Device, Overview, Model, Distribution, Operator, Kernel, Memory Manipulation, UserDefined, Memory"
        raise SourceError(
            path, "", f"no table of a summary in this text; looked for the headings {looked_for} Summary",
            remedy="save the output of paddle.profiler.Profiler.summary()",
        )  # fmt: skip
    return parser.sections


class _Parser:
    """Line by line: the open section with its unit and columns."""

    def __init__(self, path: Path, *, skip_bad_rows: bool) -> None:
        self.sections = Sections()
        self._path = path
        self._skip_bad = skip_bad_rows
        self._title = ""
        self._place = ""
        self._unit = ""
        self._columns: list[str] = []
        self._rules = 0
        self._side = "CPU"

    def take(self, number: int, line: str) -> None:
        """Takes the next line."""
        heading = HEADING.fullmatch(line)
        if heading and not _THREAD.fullmatch(line):
            self._open(number, heading["title"].removesuffix(" Summary"), heading["place"] or "")
        elif not self._title:
            return
        elif unit := _UNIT.fullmatch(line):
            self._unit = unit["unit"]
        elif peak := _PEAK.fullmatch(line):
            self.sections.peaks.setdefault(self._place, {})[peak["which"]] = int(peak["bytes"])
        elif line.strip() in _CUT:
            self.sections.shortened.append(self._title)
        elif line.strip() in _END:
            self._title = ""
        elif _RULE.fullmatch(line) or _THREAD.fullmatch(line) or not line.strip():
            self._rules += line.strip().startswith("-") and not _THREAD.fullmatch(line)
            if self._rules == _RULES.get(self._title, 3):
                self._title = ""
        else:
            self._take_row(number, line)

    def _open(self, number: int, title: str, place: str) -> None:
        full = f"{title} ({place})" if place else title
        if full in self.sections.found:
            raise SourceError(
                self._path, f"line {number}", f"'{title} Summary' stands twice: these are several summaries",
                remedy="save each in a file of its own",
            )  # fmt: skip
        self.sections.found.append(full)
        self._title, self._place, self._unit, self._columns = title, place, "", []
        self._rules, self._side = 0, "CPU"

    def _take_row(self, number: int, line: str) -> None:
        if self._rules == 0:
            return  # text between the heading and the table
        if self._is_header(line):
            return
        if not line.startswith(" ") and "  " not in line.rstrip():
            self.sections.shortened.append(self._title)  # a remark of whoever shortened the table
            return
        try:
            self._store(line)
        except ValueError as error:
            if not self._skip_bad:
                problem = f"'{self._title} Summary': {error}: {line.strip()[:80]!r}"
                remedy = "save the summary again, or leave such rows out with --skip-bad-rows"
                raise SourceError(self._path, f"line {number}", problem, remedy=remedy) from error
            self.sections.skipped += 1

    def _is_header(self, line: str) -> bool:
        cells = re.split(r" {2,}", line.strip())
        if cells[0] in ("Name", "Event Type", "Device"):
            self._columns = cells
            return True
        if self._title == "Overview" and cells[0] == "Calls":  # the header of the second half: device events
            self._columns = ["Event Type", *cells]
            self._side = "GPU"
            return True
        return False

    def _store(self, line: str) -> None:
        if self._title in _TABLES_OF_SPREADS:
            self.sections.spreads.setdefault(self._title, []).append(self._spread_row(line))
            return
        if self._title not in ("Device", "Overview", "Distribution", "Memory"):
            return
        match = _CELL.fullmatch(line.strip())
        if match is None:
            raise ValueError("not a row of this table")
        name, cells = match["name"], re.split(r" {2,}", match["cells"])
        if self._title == "Overview" and len(cells) < 2:
            raise ValueError("no calls and time")
        if self._title == "Device":
            self.sections.utilization[name] = float(cells[0])
        elif self._title == "Overview":
            kind = Kind(_count(cells[0]), self._ns(cells[1]))
            self.sections.overview[self._side, name] = kind
        elif self._title == "Distribution":
            time_ns = self._ns(cells[0])
            if time_ns is not None:
                self.sections.distribution[name] = time_ns
        else:
            self._store_memory(name, cells)

    def _store_memory(self, name: str, cells: list[str]) -> None:
        said = dict(zip(self._columns[1:], cells, strict=True))
        if said.get("Type") == "Allocated":  # the rows of type Reserved say what the allocator took from the system
            row = Allocated(
                name, _whole(said["Allocation Count"]), _whole(said["Allocation Size"]), _whole(said["Increased Size"])
            )
            rows = self.sections.memory.setdefault(self._place, [])
            if any(row.name == name for row in rows):
                raise ValueError("a second row with this name")
            rows.append(row)

    def _spread_row(self, line: str) -> Row:
        match = _ROW_OF_SPREADS.fullmatch(line.strip())
        if match is None:
            raise ValueError("not a row of this table")
        level = (len(line) - len(line.lstrip(" "))) // _INDENT
        said = dict(zip(self._columns[2:], re.split(r" {2,}", match["cells"]), strict=False))
        spreads = self._spreads(said)
        return Row(level, match["name"], _count(match["calls"]), *spreads)

    def _spreads(self, said: Mapping[str, str]) -> tuple[Spread, Spread]:
        host = device = Spread()
        for title, cell in said.items():
            column = _SPREAD_TITLE.fullmatch(title)
            if column is None:
                continue  # FLOPs
            texts = _SLASH.split(cell)
            values = [self._ns(value) for value in texts[:4]]
            if len(values) < 4:
                raise ValueError(f"'{title}' has {len(values)} numbers")
            percent = texts[4].strip() if len(texts) > 4 else ""
            known = float(percent) if _PERCENT.fullmatch(percent) else None
            spread = Spread(values[0], values[2], values[3], known)
            if column["where"] == "CPU":
                host = spread
            else:
                device = spread
        return host, device

    def _ns(self, text: str) -> int | None:
        if text.strip() == "-":
            return None
        if not self._unit:
            raise ValueError("no 'Time unit:' before the table")
        return _paddle.to_ns(text.strip(), self._unit)


def _count(text: str) -> int | None:
    return None if text == "-" else _whole(text)


def _whole(text: str) -> int:
    number = int(text) if len(text) <= 20 else MAX_OF_ONE + 1
    if abs(number) > MAX_OF_ONE:
        raise ValueError(f"{text[:40]} is beyond the range of counts and sizes")
    return number
