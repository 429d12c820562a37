"""The board: a line per workload, configuration and device, what is new first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tracker.errors import FIRST_INGEST
from tracker.reports.cells import (
    TONES,
    budget_words,
    col,
    pairs,
    so_far_words,
    sparkline,
    verdict_or_why,
    waiting_words,
)
from tracker.reports.commands import command
from tracker.reports.document import COURSE, NARROW, WORDS, Column, Document, Look, Table, Target, Trend
from tracker.reports.rows import Row, records, table_of
from tracker.reports.view import View
from tracker.results import Board
from tracker.results.verdicts import OTHER_HOST_CAUSE, THROTTLED_CAUSE, word_of_step
from tracker.results.waiting import WaitingRun
from tracker.units import MISSING_TEXT, counted, format_age, format_diff, format_moment, step_word

if TYPE_CHECKING:
    from tracker.results.screens import Rows

_ROWS = 20
_LATE = 5
"""Late runs that are named."""
_LEAST_AXIS = 0.05
"""Part of the largest value that a course spans at least: noise must not look like a change."""


def document(board: Board, look: Look) -> Document:
    """Return the report of `tracker board`."""
    lines = records(board.tables["lines"])
    is_worse = any(line["new"] or line["open"] for line in lines)
    is_worse = is_worse or any(one.verdict == "not met" for one in board.budgets)
    return Document(
        title=_title(board),
        headline=board.headline,
        tone="worse" if is_worse else "",
        remarks=(
            *_late_words(records(board.tables["late"])),
            *budget_words(board.budgets, _LATE),
            *board.missing[:_LATE],
            *board.partial[:_LATE],
            *(
                [f"{counted(len(board.partial) - _LATE, 'more sentence')} on lost records: tracker findings."]
                if len(board.partial) > _LATE
                else []
            ),
            *_waiting_words(records(board.tables["waiting"])),
        ),
        blocks=(_lines(board, lines, look),) if lines else (),
        next_commands=tuple(_next(board, lines)),
    )


def _title(board: Board) -> str:
    """Say what the board is of: its workload, or all, and its other filters."""
    chosen = board.options
    parts = [chosen.workload or "all workloads"]
    parts += [f"on {chosen.device}"] if chosen.device else []
    parts += [f"of {chosen.owner}"] if chosen.owner else []
    return " ".join(parts)


def _late_words(late: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence on each run that is late, of the first few; the others are in the status."""
    for row in late[:_LATE]:
        what = row["workload"] or f"any workload in {row['folder']}"
        came = f"the last one came {format_moment(row['last_ns'])} UTC" if row["last_ns"] else "none ever came"
        due = f"{format_moment(row['due_ns'])} UTC"
        every = format_age(row["every_ns"])
        yield f"LATE: a run of {what} was due {due}: one is expected every {every}, and {came}."
    if len(late) > _LATE:
        yield f"{counted(len(late) - _LATE, 'more run')} late: tracker status lists them."


def _waiting_words(waiting: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence on each run that waits for ranks, of the newest few; tracker runs has the others."""
    for row in waiting[: -_LATE - 1 : -1]:
        yield WaitingRun(**row).sentence
    if len(waiting) > _LATE:
        yield f"{counted(len(waiting) - _LATE, 'more run')} with fewer ranks than they should have: tracker runs."


def _lines(board: Board, lines: Sequence[Row], look: Look) -> Table:
    """Return a row per track; where charts are drawn each has its course, and every cell leads to what it says."""
    courses: dict[int, list[Row]] = {}
    for point in records(board.tables["points"]):
        courses.setdefault(point["line"], []).append(point)
    devices: dict[str, set[str]] = {}
    for at, line in enumerate(lines):
        line["course"] = courses.get(at, [])
        devices.setdefault(line["workload"], set()).add(line["device"])
    for line in lines:
        line["has_other_devices"] = len(devices[line["workload"]]) > 1
    has_good = any(line["good_change"] is not None for line in lines)
    is_pinned = any(line["pinned_version"] for line in lines)
    # a narrow browser has room for the workload, one change, the verdict, and what is new
    drop_narrow = NARROW if look.has_drawings else 0
    columns = [
        Column("workload", _name, **WORDS),
        col("device", drop=4, **WORDS),
        col("version", drop=drop_narrow, link=_diff_with("previous_version")),
        Column("runs", lambda line: f"{line['version_runs']} of {line['runs']}", drop=5, link=_runs),
        col("step", "step_ns", drop=drop_narrow, link=_step_history),
    ]
    if has_good:
        columns.append(col("vs last good", "good_change", _change, drop=drop_narrow or 1, link=_diff_with_level))
    columns.append(col("vs previous", "previous_change", _change, drop=6, link=_diff_with("previous_version")))
    columns.append(col("vs level", "step_change", _change, link=_diff_with_level))
    columns.append(Column("verdict", _verdict, left=True, link=_step_history))
    columns.append(Column("judged", _coverage, drop=3))
    if is_pinned:
        columns.append(col("vs pinned", "pinned_change", _change, drop=3, link=_diff_with("pinned_version")))
    if not look.has_drawings:
        columns.append(col(COURSE, "course", form=_course, drop=2))
    columns += [
        Column("regressions", _counts, left=True, link=_findings),
        col("peak", "peak_allocated_bytes", drop=7, link=_peak_history),
        Column("last run", _last_run_words, left=True, drop=8, link=_last_run),
    ]
    return table_of(
        "", columns, lines, look.rows(_ROWS), is_first=True, links=_link, below=_below,
        sparks=_spark if look.has_drawings else (),
        cell_tones=lambda line: tuple(_tone(column.header, line) for column in columns),
    )  # fmt: skip


def _below(line: Row) -> str:
    """Say what the newest version of a track waits for: runs that decide, runs that may change what was found."""
    return "; ".join(filter(None, (waiting_words(line), so_far_words(line))))


def _spark(line: Row) -> Trend:
    """Return the course of a track for the small chart of its row."""
    return Trend("ns", tuple(map(_point, line["course"])))


def _name(line: Row) -> str:
    steps = [f"{step_word(line['step_kind'])}s"] if line["step_kind"] else []
    return " ".join(
        [line["workload"], *(f"{key}={value}" for key, value in pairs(line["configuration"] or "")), *steps]
    )


def _tone(header: str, line: Row) -> str:
    """Return the tone of a cell: the changes have that of the verdict beside them, regressions that of a change."""
    if header == "regressions":
        return "worse" if line["new"] or line["open"] else ""
    if header == "verdict" or header.startswith("vs "):
        return TONES.get(line["step_verdict"] or "", "")
    return ""


def _coverage(line: Row) -> str:
    """Return how many series of the newest version were judged, of how many."""
    if not line["expected_series"]:
        return ""
    return f"{line['judged_series']:,} of {line['expected_series']:,}"


def _verdict(line: Row) -> str:
    """Return the verdict of the newest version, where there is something to say, and whether a user accepted it."""
    if not line["step_verdict"]:
        return ""
    verdict = word_of_step(verdict_or_why(line["step_verdict"], line["previous_change"]), _reason(line))
    return f"{verdict}, accepted" if line["accepted"] else verdict


def _reason(line: Row) -> str | None:
    """Return the code of the reason of the verdict of the newest version."""
    return line["course"][-1]["reason"] if line["course"] else None


def _last_run_words(line: Row) -> str:
    """Return when the newest run began, else its number: profiles without a clock have no date."""
    if line["last_run_ns"]:
        return format_moment(line["last_run_ns"])
    return MISSING_TEXT if line["last_run_id"] is None else f"run:{line['last_run_id']}"


def _point(point: Row) -> tuple[str, float | None, tuple[float, ...], str, str]:
    """Return a version in the course of a track: its step, and the tone of its verdict where it is a change."""
    word = word_of_step(point["verdict"], point["reason"])
    return point["version"], point["step_ns"], (), word, TONES.get(point["verdict"] or "", "")


def _of_workload(line: Row) -> tuple[str, str]:
    return "--workload", str(line["workload"])


def _of_track(line: Row) -> list[tuple[str, str]]:
    """Return the options that ask for a track: its workload, and its device where the workload has several."""
    options = [_of_workload(line)]
    if line["has_other_devices"]:
        options.append(("--device", str(line["device"])))
    return options


def _diff_with(name: str) -> Callable[[Row], Target | None]:
    """Return what makes the diff of the newest version with the one that `name` holds; None where that is none."""

    def target(line: Row) -> Target | None:
        other = line["course"][-2]["version"] if len(line["course"]) > 1 else None
        other = other if name == "previous_version" else line[name]
        if not other or other == line["version"]:
            return None
        return Target("diff", (("side", other), ("side", line["version"]), _of_workload(line)))

    return target


def _diff_with_level(line: Row) -> Target:
    """Return the diff with the level that the newest version was judged against."""
    return Target("diff", (("side", line["version"]), _of_workload(line)))


def _runs(line: Row) -> Target:
    return Target("runs", (("--version", line["version"]), *_of_track(line)))


def _step_history(line: Row) -> Target:
    return Target("history", (("KEY", "step"), *_of_track(line)))


def _peak_history(line: Row) -> Target | None:
    if line["peak_allocated_bytes"] is None:
        return None
    return Target("history", (("KEY", "peak memory"), ("--kind", "run"), *_of_track(line)))


def _findings(line: Row) -> Target:
    return Target("findings", (*_of_track(line),))


def _last_run(line: Row) -> Target | None:
    return Target("run", (("RUN", str(line["last_run_id"])),)) if line["last_run_id"] is not None else None


def _link(line: Row) -> Target:
    """Return the worst incident of a track, else the history of its step."""
    if line["incident_id"] is not None:
        return Target("incident", (("ID", f"I-{line['incident_id']}"),))
    return _step_history(line)


def _change(value: float | None) -> str:
    return "" if value is None else format_diff(value)


def _course(points: Sequence[Row]) -> str:
    """Return the step over the versions; changes below a twentieth are drawn as none."""
    values = [point["step_ns"] for point in points]
    known = [value for value in values if value is not None]
    if known and max(known) - min(known) < _LEAST_AXIS * max(known):
        values = [None if value is None else 1.0 for value in values]
    return sparkline(values)


def _counts(line: Row) -> str:
    names = (("new", "NEW"), ("open", "open"), ("suspects", "suspect"), ("muted", "muted"))
    counts = [f"{line[name]} {word}" for name, word in names if line[name]]
    return ", ".join([*counts, *_doubt(line)])


def _doubt(line: Row) -> Iterator[str]:
    """Yield what a regression of the step may be of, where the verdict of the newest version does not say so."""
    word = _verdict(line)
    for name, cause in (("may_be_host", OTHER_HOST_CAUSE), ("may_be_throttled", THROTTLED_CAUSE)):
        if line[name] and cause not in word:
            yield f"maybe {cause}"


def _next(board: Board, lines: Sequence[Row]) -> Iterator[str]:
    if not lines and (board.options.device or board.options.owner):
        yield command("tracker", "board")
    elif not lines:
        yield FIRST_INGEST
        yield command("tracker", "demo")
    worst = lines[0] if lines else None
    if worst and worst["incident_id"] is not None:
        yield command("tracker", "explain", f"I-{worst['incident_id']}")
    if worst:
        yield command("tracker", "history", "step", "--workload", worst["workload"])
    yield command("tracker", "status")


def list_csv(board: Board, look: Look) -> dict[str, Rows]:
    """Return the tracks, without the points of their charts."""
    return {"lines": board.tables["lines"].head(look.rows(None))}


VIEW = View(document, csv=list_csv)
