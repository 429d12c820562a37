"""The optimisation log for people: one table where it fits, else the versions and a table per group of columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len

from tracker.profile import UNKNOWN_DEVICE
from tracker.reports._human import PAIR, WORDS, Column, Row, Table, level, share
from tracker.reports._layout import GAP
from tracker.reports.shared import command, records
from tracker.results import LOG_TITLES as MEASURES
from tracker.results import PROFILERS, Log
from tracker.units import MISSING_TEXT, counted, format_bytes, format_diff, format_ns, printable, size_unit, time_unit

_LABEL: Final = 10  # longer labels of the baseline stand only above the table
_NOTE: Final = 24  # what a note needs at least beside the columns
_COMMIT: Final = 12
_NUMBER: Final = 2
"""Places behind the point of a throughput below a thousand; one less above."""


class Part(Struct, frozen=True):
    """One of the things that make a column of the log: `value` stands in its head, `words` in a sentence."""

    key: str
    value: str
    words: str


class _Block(Struct, frozen=True):
    """The sub-columns of one column of the log; per version the cells, None where it has no runs there."""

    columns: tuple[Column, ...]
    cells: Mapping[str, tuple[str, ...]]
    tones: Mapping[str, tuple[str, ...]]
    width: int


class _Group(Struct, frozen=True):
    """Columns of the log that stand beside each other. `title`: what makes them all, as far as not all columns of the
    log share it. `keys`: of the parts that differ, one line of the head each.
    """

    blocks: tuple[_Block, ...]
    title: str
    keys: tuple[str, ...]

    @property
    def width(self) -> int:
        """The width of all blocks with their gaps."""
        return sum(block.width for block in self.blocks)


def header(log: Log) -> list[str]:
    """What is compared with what, and what all columns have in common."""
    columns = records(log.columns)
    against = f"baseline {log.baseline}" if log.baseline else "baseline: the first version of each column"
    lines = [f"{log.workload}: {counted(len(log.versions), 'version')}; {against}"]
    if len(columns) == 1:
        lines.append(str(columns[0]["title"]))
    elif columns:
        shared = _sentence(_shared(columns))
        lines.append(f"{counted(len(columns), 'column')}, all of them: {shared}" if shared else "")
    lines.append(
        "Geometric means over the runs of a version; DIFF against the baseline and against the version before."
    )
    if any(column["profiler"] == "off" for column in columns):
        lines.append("Of a training log the median of its lines counts: the first ones hold the start-up.")
    if any(map(_is_judged, records(log.cells))):
        lines.append("verdict: of the runs of a version against the level before, as in history and findings.")
    if log.cells["expected"].notna().any():
        lines.append("gain: how much faster than the version before; expected: the tag expected of its runs.")
    return [line for line in lines if line]


def tables(log: Log, width: int) -> list[Table]:
    """The log in tables of at most `width` characters, then what each direction gained."""
    versions = records(log.versions)
    lead = _lead_columns(versions)
    whole = _group(log, records(log.columns), ())
    found: list[Table] = []
    if len(log.columns) > 1 and sum(size + GAP for _, _, size in lead) + whole.width > width:
        if len(lead) > 1:
            found.append(_table(versions, lead, _Group((), "", ()), "Versions"))
        lead = lead[:1]
        for group in _packed(log, width - lead[0][2] - GAP):
            present = [row for row in versions if any(row["version"] in block.cells for block in group.blocks)]
            found.append(_table(present, lead, group, group.title or "Columns"))
    elif len(log.columns):
        # what all columns share stands above already
        found.append(_table(versions, lead, whole, ""))
    if len(log.directions):
        found.append(_directions(log))
    return found


def _lead_columns(versions: Sequence[Row]) -> list[tuple[Column, Callable[[Row], str], int]]:
    """Version, and what else is known of any: (column, cell, width); a note takes what is left."""
    wanted: list[tuple[Column, Callable[[Row], str], int]] = []
    for title, key in (("version", "version"), ("direction", "direction"), ("commit", "commit"), ("note", "note")):
        # a label like 20230808_69edec3bb7 says the commit already
        known = any(row[key] and (key != "commit" or str(row[key]) not in row["version"]) for row in versions)
        if key == "version" or known:
            wanted.append(_lead_column(title, key, versions))
    return wanted


def _lead_column(title: str, key: str, versions: Sequence[Row]) -> tuple[Column, Callable[[Row], str], int]:
    def cell(row: Row) -> str:
        text = str(row[key] or MISSING_TEXT)
        return text[:_COMMIT] if key == "commit" else text

    natural = max([len(title), *(cell_len(printable(cell(row))) for row in versions)])
    elastic = key in ("direction", "note")
    column = Column(title, **WORDS) if elastic else Column(title, left=True)
    return column, cell, min(natural, _NOTE) if elastic else natural


def _packed(log: Log, width: int) -> Iterator[_Group]:
    """Columns that were measured at the same versions beside each other, as many as fit; one too wide stands alone."""
    columns = records(log.columns)
    shared = _shared(columns)
    places = {row["version"]: place for place, row in enumerate(records(log.versions))}
    measured: dict[int, list[int]] = {}
    for cell in records(log.cells):
        measured.setdefault(cell["column"], []).append(places[cell["version"]])
    taken: list[Row] = []
    for column in sorted(columns, key=lambda column: min(measured[column["column"]])):
        neighbours = {place for other in taken for place in measured[other["column"]]}
        fits = _group(log, [*taken, column], shared).width <= width
        if taken and not (fits and neighbours & set(measured[column["column"]])):
            yield _group(log, taken, shared)
            taken = []
        taken.append(column)
    yield _group(log, taken, shared)


def _group(log: Log, columns: Sequence[Row], known: Sequence[Part]) -> _Group:
    """`columns` beside each other; `known`: what all columns of the log share."""
    shared = _shared(columns)
    differing = [[part for part in parts if part not in shared and part.key != "unit"] for parts in _beside(columns)]
    keys = [part.key for part in (differing[0] if differing else [])]
    cells: dict[int, list[Row]] = {}
    for cell in records(log.cells):
        cells.setdefault(cell["column"], []).append(cell)
    blocks = [
        _block(column, [part.value for part in parts], cells[column["column"]], log.baseline)
        for column, parts in zip(columns, differing, strict=True)
    ]
    return _Group(tuple(blocks), _sentence([part for part in shared if part not in known]), tuple(keys))


def _table(
    versions: Sequence[Row], lead: Sequence[tuple[Column, Callable[[Row], str], int]], group: _Group, title: str
) -> Table:
    rows, tones = [], []
    before = None
    for row in versions:
        # a direction stands once, at the first of its neighbours
        again = before is not None and row["direction"] and row["direction"] == before
        before = row["direction"]
        cells = ["" if again and column.header == "direction" else cell(row) for column, cell, _ in lead]
        of_row = [""] * len(lead)
        for block in group.blocks:
            nothing = (MISSING_TEXT,) * len(block.columns)
            cells += block.cells.get(row["version"], nothing)
            of_row += block.tones.get(row["version"], ("",) * len(block.columns))
        rows.append(tuple(cells))
        tones.append(tuple(of_row))
    columns = [*(column for column, _, _ in lead), *(column for block in group.blocks for column in block.columns)]
    columns[0] = replace(columns[0], header="\n".join([*group.keys, columns[0].header]))
    return Table(title, tuple(level(columns)), tuple(rows), ("",) * len(rows), cell_tones=tuple(tones))


def _block(column: Row, head: Sequence[str], cells: Sequence[Row], baseline: str | None) -> _Block:
    form = _form(column, cells)
    name = str(column["unit"] if column["measure"] == "throughput" else MEASURES[column["measure"]])
    gap = "\n" if head else " "
    against = "first" if baseline is None else baseline if cell_len(baseline) <= _LABEL else "baseline"
    parts: list[tuple[str, Callable[[Row], str], str]] = [
        ("\n".join([*map(printable, head), name]), lambda cell: form(cell["value"]), ""),
        (f"vs{gap}{printable(against)}", lambda cell: format_diff(cell["baseline_diff"]), "baseline_diff"),
        (f"vs{gap}previous", lambda cell: format_diff(cell["previous_diff"]), "previous_diff"),
    ]
    if any(cell["expected"] for cell in cells):
        parts.append(("gain / expected", _gain, ""))
    if any(cell["runs"] > 1 for cell in cells):
        parts.append(("runs", _runs, ""))
    if any(map(_is_judged, cells)):
        parts.append(("verdict", lambda cell: cell["verdict"] or MISSING_TEXT, ""))
    texts = {cell["version"]: tuple(text(cell) for _, text, _ in parts) for cell in cells}
    better = bool(column["higher_is_better"])
    tones = {
        cell["version"]: tuple(cell_tone(cell[key], better) if key else "" for _, _, key in parts) for cell in cells
    }
    widths = [
        max(*map(cell_len, title.split("\n")), *(cell_len(row[index]) for row in texts.values()))
        for index, (title, _, _) in enumerate(parts)
    ]
    heads = tuple(Column(title) for title, _, _ in parts)
    return _Block(heads, texts, tones, sum(widths) + GAP * len(widths))


def _form(column: Row, cells: Sequence[Row]) -> Callable[[float | None], str]:
    """How the values of a column are written: in one unit."""
    values = [cell["value"] for cell in cells]
    if column["unit"] == "ns":
        unit = time_unit(*values)
        return lambda value: format_ns(value, unit)
    if column["unit"] == "bytes":
        size = size_unit(*values)
        return lambda value: format_bytes(value, size)
    places = _NUMBER - 1 if max(values) >= 1000 else _NUMBER
    return lambda value: MISSING_TEXT if value is None else f"{value:,.{places}f}"


def _gain(cell: Row) -> str:
    text, gain = cell["expected"] or MISSING_TEXT, cell["expected_gain"]
    if text == MISSING_TEXT and cell["gain"] is None:
        return MISSING_TEXT
    return f"{format_diff(cell['gain'])} / {text if gain is None else format_diff(gain)}"


def _runs(cell: Row) -> str:
    """How many runs, and how far they lie from the middle of their range.

    >>> _runs({"runs": 3, "value": 100.0, "minimum": 98.0, "maximum": 102.0}), _runs({"runs": 1})
    ('3, ±2.0 %', '1')
    """
    if cell["runs"] < 2 or not cell["value"]:
        return str(cell["runs"])
    return f"{cell['runs']}, ±{share((cell['maximum'] - cell['minimum']) / 2 / cell['value'])}"


def _is_judged(cell: Row) -> bool:
    """Whether the verdict of a cell says more than that there are not enough runs for one."""
    return cell["verdict"] not in (None, "TOO_FEW_RUNS")


def cell_tone(diff: float | None, higher_is_better: bool) -> str:
    """Whether a change is `better` or `worse`, as far as DIFF shows it.

    >>> cell_tone(0.1, True), cell_tone(0.1, False), cell_tone(0.0001, True), cell_tone(None, True)
    ('better', 'worse', '', '')
    """
    if diff is None or format_diff(diff) == "0.0 %":
        return ""
    return "better" if (diff > 0) == higher_is_better else "worse"


def _parts(column: Row) -> list[Part]:
    """What makes a column: its configuration, device, measure, profiler and scope."""
    pairs = [pair.partition("=") for pair in PAIR.split(str(column["configuration"])) if pair]
    device, scope = str(column["device"]), str(column["scope"] or "")
    is_rate = column["measure"] == "throughput"
    measure = f"throughput in {column['unit']}" if is_rate else str(MEASURES[column["measure"]])
    return [
        *(Part(key, value, f"{key}={value}") for key, _, value in pairs),
        Part("device", device, "unknown device" if device == UNKNOWN_DEVICE.model else device),
        Part("unit", str(column["unit"]) if is_rate else measure, measure),
        Part("profiler", str(column["profiler"]), PROFILERS[column["profiler"]]),
        Part("counted", scope or MISSING_TEXT, scope),
    ]


def _beside(columns: Sequence[Row]) -> list[list[Part]]:
    """The parts of each of `columns`. What is counted of a job of one process is per rank and total alike, so that it
    goes with the others.
    """
    scopes = {str(column["scope"]) for column in columns if column["scope"]}
    scope = scopes.pop() if len(scopes) == 1 else ""
    return [_parts({**column, "scope": column["scope"] or scope}) for column in columns]


def _shared(columns: Sequence[Row]) -> list[Part]:
    """The parts that all of `columns` have."""
    found = _beside(columns)
    return [part for part in found[0] if all(part in other for other in found)] if found else []


def _sentence(parts: Sequence[Part]) -> str:
    """Parts in words, as the title of a column has them."""
    text = ""
    for part, before in zip(parts, [None, *parts], strict=False):
        glue = " " if part.key == "profiler" and before is not None and before.key == "unit" else ", "
        text += f"{glue if text else ''}{part.words}" if part.words else ""
    return text


def short_names(columns: Sequence[Row]) -> list[str]:
    """What tells each column from the others, but for the unit; "" where there is only one."""
    if len(columns) < 2:
        return ["" for _ in columns]
    shared = _shared(columns)
    return [
        " ".join(
            str(MEASURES[column["measure"]]) if part.key == "unit" else part.words
            for part in parts
            if part.words and part not in shared
        )
        for column, parts in zip(columns, _beside(columns), strict=True)
    ]


def _directions(log: Log) -> Table:
    names = {row["column"]: row["title"] for row in records(log.columns)}
    rows = [
        (row["direction"], str(row["versions"]), format_diff(row["gain"]), names[row["column"]])
        for row in records(log.directions)
        if row["column"] in names
    ]
    columns = (Column("direction", left=True), Column("versions"), Column("gain"), Column("where", **WORDS))
    tones = tuple(
        ("", "", cell_tone(row["gain"], True), "") for row in records(log.directions) if row["column"] in names
    )
    return Table(
        "Gain in speed by direction, its versions together", columns, tuple(rows), ("",) * len(rows), cell_tones=tones
    )


def answer(log: Log) -> str:
    """Where the newest version of each column stands against the baseline."""
    columns = {row["column"]: row for row in records(log.columns)}
    newest: dict[int, Row] = {}
    for cell in records(log.cells):
        newest[cell["column"]] = cell
    known = {number: cell for number, cell in newest.items() if cell["baseline_diff"] is not None}
    if not known:
        words = sorted({str(cell["verdict"]) for cell in newest.values() if _is_judged(cell)})
        judged = f"; the newest version is {' and '.join(words)}" if words else ""
        return f"{log.workload}: no other version to compare with in the same column{judged}."
    if len(columns) == 1:
        ((number, cell),) = known.items()
        value = _form(columns[number], [cell])(cell["value"])
        unit = "" if columns[number]["unit"] in ("ns", "bytes") else f" {columns[number]['unit']}"
        return f"{cell['version']}: {value}{unit}, {format_diff(cell['baseline_diff'])} against {_against(log)}."
    verdicts = Counter(str(cell["verdict"]) if _is_judged(cell) else "not judged" for cell in newest.values())
    words = [f"{count} {verdict}" for verdict, count in sorted(verdicts.items())]
    return f"The newest version of {counted(len(columns), 'column')}: {', '.join(words)}."


def _against(log: Log) -> str:
    return log.baseline or "the first version"


def hint(log: Log) -> str:
    """The command that gives everything."""
    options: dict[str, Any] = {"--metric": log.options.metric if log.options.metric != "best" else None}
    options |= {"--baseline": log.options.baseline, "--device": log.options.device}
    words = [word for name, value in options.items() if value for word in (name, value)]
    words += [word for key, value in log.options.config.items() for word in ("--config", f"{key}={value}")]
    words += [word for key in log.options.by for word in ("--by", key)]
    words += ["--last", str(log.options.last)] if log.options.last else []
    line = command("tracker", "log", "--workload", log.workload, *words, "--format", "xlsx", "-o", "log.xlsx")
    return f"Details: {line}"
