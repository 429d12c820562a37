"""The document of an optimisation log: a row per version and its columns beside each other where they fit, else a line
per column, and each column as a table of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.profile import UNKNOWN_DEVICE
from tracker.reports import cells
from tracker.reports.cells import col, of
from tracker.reports.commands import command, option_words
from tracker.reports.document import WORDS, Block, Column, Document, Look, Table, Target, Trend, level, table
from tracker.reports.rows import Row, records, table_of
from tracker.reports.text import ROWS, fits
from tracker.reports.view import View
from tracker.results import LOG_TITLES as MEASURES
from tracker.results import PROFILERS, Log
from tracker.results.verdicts import CHANGED, word_of_step
from tracker.units import MISSING_TEXT, counted, format_diff, format_ns, printable

if TYPE_CHECKING:
    from tracker.results.screens import Rows

_WIDTH: Final = 120  # of a pipe, a file or a page
_LABEL: Final = 10  # a longer label of the baseline stands only in the title
_VERSIONS: Final = 25
_COMMIT: Final = 12
_OPEN: Final = 30
_NAMED: Final = 3
"""Columns that a headline names."""


class Part(Struct, frozen=True):
    """One of the things that make a column of the log: `value` stands in its head, `words` in a sentence."""

    key: str
    value: str
    words: str


def document(log: Log, look: Look) -> Document:
    """Return the newest version against the baseline, then the log."""
    columns = records(log.tables["columns"])
    if not columns:
        headline = f"No active run of {log.workload} has a number to show"
        return Document(
            title=f"{log.workload}, no version", headline=headline, next_commands=("tracker runs --state all",)
        )
    shared, differing = _parts(columns)
    counts = [counted(len(log.tables["versions"]), "version"), *[f"{len(columns)} columns"] * (len(columns) > 1)]
    headline, verdict, tone = _answer(log, columns)
    words = option_words(log.options, *(["metric"] if log.options.metric != "best" else []))
    words += option_words(log.options, "baseline", "device", "last", "config", "by")
    more = [] if look.details else ["--details"]
    asked = ("tracker", "log", "--workload", log.workload, *words)
    whole, width = _table(log, columns, look, ""), look.width or _WIDTH
    if len(columns) == 1 and len(log.tables["cells"]) > 1:
        points = tuple(map(cells.trend_point, records(log.tables["cells"])))
        whole = replace(whole, chart=Trend(str(columns[0]["unit"]), points))
    found: list[Block] = [whole]
    if len(columns) > 1 and not fits(whole, width):
        titles = map(_sentence, differing)
        own = [_table(log, [column], look, title) for column, title in zip(columns, titles, strict=True)]
        found = [_overview(log, columns, look), *(replace(one, is_first=False) for one in own)]
    found += [_directions(log, look)] if len(log.tables["directions"]) else []
    return Document(
        title=": ".join(filter(None, (f"{log.workload}, {', '.join(counts)}", _sentence(shared)))),
        headline=headline,
        verdict=verdict,
        tone=tone,
        blocks=(*found, *([_advice(log, look)] if len(log.tables["advice"]) else [])),
        next_commands=tuple(command(*asked, *last) for last in (more, ["-o", "log.xlsx"]) if last),
    )


def cell_tone(diff: float | None, higher_is_better: bool) -> str:
    """Return whether a change is `better` or `worse`, as far as it shows.

    >>> cell_tone(0.1, True), cell_tone(0.1, False), cell_tone(0.0001, True), cell_tone(None, True)
    ('better', 'worse', '', '')
    """
    if diff is None or format_diff(diff) == "0.0 %":
        return ""
    return "better" if (diff > 0) == higher_is_better else "worse"


def short_names(columns: Sequence[Row]) -> list[str]:
    """Return what differs between the columns, but for the unit; "" where there is only one."""
    _, differing = _parts(columns)
    return [
        " ".join(MEASURES[column["measure"]] if part.key == "unit" else part.words for part in parts if part.words)
        for column, parts in zip(columns, differing, strict=True)
    ]


def _parts(columns: Sequence[Row]) -> tuple[list[Part], list[list[Part]]]:
    """Return what makes all `columns`, then what else makes each: configuration, device, measure, profiler and scope.

    What is counted of a job of one process is per rank and total alike, so that it goes with the others.
    """
    scopes = {str(column["scope"]) for column in columns if column["scope"]}
    only = scopes.pop() if len(scopes) == 1 else ""
    found = []
    for column in columns:
        device, scope = str(column["device"]), str(column["scope"] or only)
        is_rate = column["measure"] == "throughput"
        measure = f"throughput in {column['unit']}" if is_rate else str(MEASURES[column["measure"]])
        found.append([
            *(Part(key, value, f"{key}={value}") for key, value in cells.pairs(str(column["configuration"]))),
            Part("device", device, "unknown device" if device == UNKNOWN_DEVICE.model else device),
            Part("unit", str(column["unit"]) if is_rate else measure, measure),
            Part("profiler", str(column["profiler"]), PROFILERS[column["profiler"]]),
            Part("counted", scope or MISSING_TEXT, scope),
        ])  # fmt: skip
    shared = [part for part in found[0] if all(part in other for other in found)] if found else []
    return shared, [[part for part in parts if part not in shared] for parts in found]


def _sentence(parts: Sequence[Part]) -> str:
    """Return parts in words, as the title of a column has them."""
    text = ""
    for part, before in zip(parts, [None, *parts], strict=False):
        glue = " " if part.key == "profiler" and before is not None and before.key == "unit" else ", "
        text += f"{glue if text else ''}{part.words}" if part.words else ""
    return text


def _answer(log: Log, columns: Sequence[Row]) -> tuple[str, str, str]:
    """Compare the newest version of each column with the baseline: a sentence, a verdict, a tone."""
    newest = {cell["column"]: cell for cell in records(log.tables["cells"])}
    first_version = {cell["column"]: cell["version"] for cell in reversed(records(log.tables["cells"]))}
    if len(columns) == 1:
        (cell,) = newest.values()
        return _answer_of_one(columns[0], cell, log.baseline or first_version[cell["column"]])
    alone = "without another version"
    is_alone = {}
    sides: Counter[str] = Counter()
    for column in columns:
        number = column["column"]
        cell = newest[number]
        is_alone[number] = cell["baseline_diff"] is None or cell["version"] == (log.baseline or first_version[number])
        if is_alone[number]:
            sides[alone] += 1
        elif cells.is_small(cell["baseline_diff"]):
            sides["within 1 %"] += 1
        else:
            sides[cell_tone(cell["baseline_diff"], bool(column["higher_is_better"]))] += 1
    of_each = ""
    if len(columns) <= _NAMED:
        changes = []
        for name, column in zip(short_names(columns), columns, strict=True):
            number = column["column"]
            change = alone if is_alone[number] else format_diff(newest[number]["baseline_diff"])
            changes.append(f"{name} {change}")
    else:
        of_each = f" of each of {len(columns)} columns"
        changes = [f"{sides[word]} {word}" for word in ("worse", "better", "within 1 %", alone) if sides[word]]
    named = cells.count_changes(newest.values())
    judged = f"; of these {named}" if named else ""
    baseline = log.baseline or "the first one"
    return f"The newest version{of_each} against {baseline}: {', '.join(changes)}{judged}", "", ""


def _answer_of_one(column: Row, newest: Row, baseline: str) -> tuple[str, str, str]:
    """Return what `_answer` does, of a log with one column; `newest`: its newest cell."""
    unit = "" if column["unit"] in ("ns", "bytes") else f" {column['unit']}"
    # the version before can be the baseline, too
    diffs = {baseline: newest["baseline_diff"], newest["previous_version"]: newest["previous_diff"]}
    changes = []
    for version, diff in diffs.items():
        if diff is not None and version not in (None, newest["version"]):
            changes.append(f"{format_diff(diff)} against {version}")
    format_value = _value_format(column, [newest["value"]])
    sentence = f"{newest['version']} is at {format_value(newest['value'])}{unit}"
    verdict = str(newest["verdict"]) if newest["verdict"] in CHANGED else ""
    tone = cells.TONES.get(verdict) or cell_tone(newest["baseline_diff"], bool(column["higher_is_better"]))
    word = word_of_step(verdict, newest["reason"])
    return f"{sentence}: {', '.join(changes) or 'no other version to compare it with'}", word, tone


def _value_format(column: Row, values: Sequence[float]) -> Callable[[float | None], str]:
    """Return a function that writes values of a column in one unit, the one that fits `values`."""
    if column["unit"] in ("ns", "bytes"):
        return cells.form(column["unit"], values)
    places = 1 if max(values) >= 1000 else 2
    return lambda value: MISSING_TEXT if value is None else f"{value:,.{places}f}"


def _verdict(cell: Row) -> str:
    if not cell["verdict"]:
        return ""
    return word_of_step(cells.verdict_or_why(cell["verdict"], cell["previous_diff"]), cell["reason"])


def _table(log: Log, columns: Sequence[Row], look: Look, title: str) -> Table:
    """Return a row per version; of each column its value, changes, and what is known of them."""
    found: dict[int, dict[str, Row]] = {column["column"]: {} for column in columns}
    for cell in records(log.tables["cells"]):
        if cell["column"] in found:
            found[cell["column"]][cell["version"]] = cell
    versions = [row for row in records(log.tables["versions"]) if any(row["version"] in own for own in found.values())]
    shown = versions if look.details else versions[-_VERSIONS:]
    named = {row["version"] for row in shown}
    differing = [[part for part in parts if part.key != "unit"] for parts in _parts(columns)[1]]
    # where columns differ in several things, each has a line of the head
    heads = [Column("\n".join([*(printable(part.key) for part in differing[0]), "version"]), left=True)]
    rows = [[row["version"]] for row in shown]
    # a label like 20230808_69edec3bb7 holds the commit already
    for key in ("direction", "commit", "note", "machine") if look.details else ("direction", "note", "machine"):
        if any(row[key] and (key != "commit" or str(row[key]) not in row["version"]) for row in versions):
            heads.append(Column(key, left=True, elastic=key != "commit"))
            before = None
            for row, line in zip(shown, rows, strict=True):
                # a direction stands once, at the first of its neighbours
                again = key == "direction" and row[key] and row[key] == before
                line.append("" if again else str(row[key] or MISSING_TEXT)[: _COMMIT if key == "commit" else None])
                before = row[key]
    tones = [[""] * len(line) for line in rows]
    for column, parts in zip(columns, differing, strict=True):
        own = found[column["column"]]
        for head, toned in _columns(log, column, list(own.values()), [part.value for part in parts], look):
            heads.append(head)
            for row, line, colours in zip(shown, rows, tones, strict=True):
                known = own.get(row["version"])
                line.append(MISSING_TEXT if known is None else head.cell(known))
                colours.append(cell_tone(known[toned], bool(column["higher_is_better"])) if known and toned else "")
    left_out = len(versions) - len(shown)
    hidden = f"{counted(left_out, 'older version')} left out; --details shows all" if left_out else ""
    judged = [cell for cell in chain.from_iterable(own.values() for own in found.values()) if cell["version"] in named]
    note = "; ".join(filter(None, (cells.glosses_of(judged, _verdict, "version"), hidden)))
    workload = ("--workload", str(log.workload))
    links = tuple(Target("runs", (("--version", str(row["version"])), workload)) for row in shown)
    drawn = {"cell_tones": tuple(map(tuple, tones)), "links": links, "main": 0}
    return table(title, level(heads), [("", row) for row in rows], note=note, is_first=True, **drawn)


def _columns(log: Log, column: Row, found: Sequence[Row], head: Sequence[str], look: Look) -> list[tuple[Column, str]]:
    """Return the columns of a table for one column of the log, each with the change that colours it."""
    name = str(column["unit"] if column["measure"] == "throughput" else MEASURES[column["measure"]])
    against = "first" if log.baseline is None else log.baseline if len(log.baseline) <= _LABEL else "baseline"
    gap, against = "\n" if head else " ", printable(against)
    format_value = _value_format(column, [cell["value"] for cell in found])
    made = [
        (Column("\n".join([*map(printable, head), name]), lambda cell: format_value(cell["value"])), ""),
        (col(f"vs{gap}{against}", "baseline_diff", drop=1), "baseline_diff"),
        (col(f"vs{gap}previous", "previous_diff"), "previous_diff"),
    ]
    if any(cell["expected"] for cell in found):
        made.append((Column("gain / expected", _gain, drop=2), ""))
    if any(map(_verdict, found)):
        # the verdict rests on this one
        made.append((col(f"vs{gap}level", "judged_diff"), "judged_diff"))
        made.append((Column("verdict", _verdict, left=True), ""))
    if look.details:
        spread = ("runs", "value", "minimum", "maximum")
        made.append((Column("runs", lambda cell: cells.spread(*(cell[name] for name in spread))), ""))
    return made


def _gain(cell: Row) -> str:
    text, gain = cell["expected"] or MISSING_TEXT, cell["expected_gain"]
    if text == MISSING_TEXT and cell["gain"] is None:
        return MISSING_TEXT
    return f"{format_diff(cell['gain'])} / {text if gain is None else format_diff(gain)}"


def _overview(log: Log, columns: Sequence[Row], look: Look) -> Table:
    """Return a line per column: what makes it, and its newest version against the baseline and the version before."""
    cells_of_column: dict[int, list[Row]] = {column["column"]: [] for column in columns}
    for cell in records(log.tables["cells"]):
        cells_of_column[cell["column"]].append(cell)
    parts_of_columns = [{part.key: part.value for part in parts} for parts in _parts(columns)[1]]
    keys = list(dict.fromkeys(key for parts in parts_of_columns for key in parts))
    rows = []
    for column, parts in zip(columns, parts_of_columns, strict=True):
        of_versions = cells_of_column[column["column"]]
        newest = of_versions[-1]
        rows.append(newest | {
            "name": " ".join(parts.get(key, MISSING_TEXT) for key in keys),
            "value_text": _value_format(column, [newest["value"]])(newest["value"]),
            "values": [cell["value"] for cell in of_versions],
            "higher_is_better": bool(column["higher_is_better"]),
        })  # fmt: skip
    heads = [
        col("column", "name", str, **WORDS),
        Column("versions", lambda row: cells.sparkline(row["values"][-_VERSIONS:]), left=True, drop=2),
        col("newest", "version", drop=1), Column("value", lambda row: row["value_text"]),
        col("vs baseline" if log.baseline else "vs first", "baseline_diff"), col("vs previous", "previous_diff"),
    ]  # fmt: skip
    if any(map(_verdict, rows)):
        heads += [col("vs level", "judged_diff"), Column("verdict", _verdict, left=True)]
    hidden = "" if look.details else "--details has all versions of each column"
    note = "; ".join(filter(None, (cells.glosses_of(rows, _verdict, "name"), hidden)))
    limit = None if look.details else look.rows(_OPEN)
    return table_of(
        "", heads, rows, limit, note=note, is_first=True, lead=f"column: {' '.join(keys)}",
        tone=lambda row: cell_tone(row["baseline_diff"], row["higher_is_better"]),
    )  # fmt: skip


def _directions(log: Log, look: Look) -> Table:
    """Return what the versions of a direction gained together."""
    names = {row["column"]: row["title"] for row in records(log.tables["columns"])}
    found = [row for row in records(log.tables["directions"]) if row["column"] in names]
    heads = [
        col("direction"), Column("versions", of("versions", str)),
        col("gain"), Column("where", lambda row: names[row["column"]], **WORDS),
    ]  # fmt: skip
    limit = None if look.details else look.rows(ROWS)
    return table_of(
        "Gain in speed by direction", heads, found, limit, is_first=True, tone=lambda row: cell_tone(row["gain"], True)
    )


def _advice(log: Log, look: Look) -> Table:
    """Return advice that came and was taken, with what it promised at most and what the step won."""
    found = records(log.tables["advice"])
    limit = None if look.details else look.rows(ROWS)
    shown = found if limit is None else found[-limit:]
    several = len({(row["device"], row["configuration"]) for row in found}) > 1

    def where(row: Row) -> str:
        return " ".join(filter(None, (row["device"], row["configuration"])))

    heads = [
        col("version"), *([Column("of", where, **WORDS)] if several else []), col("", "status", str),
        Column("advice", lambda row: f"{row['rule']} {row['title']}", **WORDS), col("saves at most", "expected_ns"),
        Column("step got shorter by", lambda row: "" if row["realised_ns"] is None else format_ns(row["realised_ns"])),
    ]  # fmt: skip
    # a bound of one change says nothing of the others of that version
    is_above = any((row["realised_ns"] or 0) > (row["expected_ns"] or 0) > 0 for row in shown)
    note = "A step that got shorter by more than the advice saves had other changes, too." if is_above else ""
    return table_of(
        "Advice: new in a version, or followed by it", heads, shown, more=len(found) - len(shown), note=note,
        is_first=True,
        tone=lambda row: "better" if row["realised_ns"] is not None else "",
    )  # fmt: skip


def list_csv(log: Log, look: Look) -> dict[str, Rows]:
    """Return the cells, each with what is known of its version and its column."""
    versions = {row["version"]: row for row in records(log.tables["versions"].without("runs"))}
    columns = {row["column"]: row for row in records(log.tables["columns"])}
    cells = records(log.tables["cells"])
    return {"cells": [cell | versions[cell["version"]] | columns[cell["column"]] for cell in cells]}


VIEW = View(document, csv=list_csv, workbook="log")
