"""The board: a line per workload, configuration and device, what is new first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from tracker.errors import FIRST_INGEST
from tracker.reports.cells import (
    TONES,
    ColumnsOf,
    budget_words,
    pairs,
    readable,
    so_far_words,
    sparkline,
    verdict_or_why,
    waiting_words,
)
from tracker.reports.commands import command
from tracker.reports.document import COURSE, NARROW, Document, Look, Table, Target, Trend
from tracker.reports.rows import table_of
from tracker.reports.view import View
from tracker.results import Board
from tracker.results.board import BoardLine, BoardPoint, LateRun
from tracker.results.verdicts import OTHER_HOST_CAUSE, THROTTLED_CAUSE, word_of_step
from tracker.results.waiting import WaitingRun
from tracker.units import (
    counted,
    format_age,
    format_bytes,
    format_diff,
    format_moment,
    format_ns,
    step_word,
)

if TYPE_CHECKING:
    from tracker.results.screens import Rows

_ROWS = 20
_LATE = 5
"""Late runs that are named."""
_LEAST_AXIS = 0.05
"""Part of the largest value that a course spans at least: noise must not look like a change."""


def document(board: Board, look: Look) -> Document:
    """Return the report of `tracker board`."""
    lines = _list_lines(board)
    is_worse = any(line.row.new or line.row.open for line in lines)
    is_worse = is_worse or any(one.verdict == "not met" for one in board.budgets)
    return Document(
        title=_title(board),
        headline=board.headline,
        tone="worse" if is_worse else "",
        remarks=(
            *_late_words(board.rows.late),
            *budget_words(board.budgets, _LATE),
            *board.missing[:_LATE],
            *board.partial[:_LATE],
            *(
                [f"{counted(len(board.partial) - _LATE, 'more sentence')} on lost records: tracker findings."]
                if len(board.partial) > _LATE
                else []
            ),
            *_waiting_words(board.rows.waiting),
        ),
        blocks=(_lines(lines, look),) if lines else (),
        next_commands=tuple(_next(board, lines)),
    )


def _title(board: Board) -> str:
    """Say what the board is of: its workload, or all, and its other filters."""
    chosen = board.options
    parts = [chosen.workload or "all workloads"]
    parts += [f"on {chosen.device}"] if chosen.device else []
    parts += [f"of {chosen.owner}"] if chosen.owner else []
    return " ".join(parts)


def _late_words(late: Sequence[LateRun]) -> Iterator[str]:
    """Yield a sentence on each run that is late, of the first few; the others are in the status."""
    for row in late[:_LATE]:
        what = row.workload or f"any workload in {row.folder}"
        came = f"the last one came {format_moment(row.last_ns)} UTC" if row.last_ns else "none ever came"
        due = f"{format_moment(row.due_ns)} UTC"
        every = format_age(row.every_ns)
        yield f"LATE: a run of {what} was due {due}: one is expected every {every}, and {came}."
    if len(late) > _LATE:
        yield f"{counted(len(late) - _LATE, 'more run')} late: tracker status lists them."


def _waiting_words(waiting: Sequence[WaitingRun]) -> Iterator[str]:
    """Yield a sentence on each run that waits for ranks, of the newest few; tracker runs has the others."""
    for run in waiting[: -_LATE - 1 : -1]:
        yield run.sentence
    if len(waiting) > _LATE:
        yield f"{counted(len(waiting) - _LATE, 'more run')} with fewer ranks than they should have: tracker runs."


class _Line(Struct, frozen=True):
    """A track as it is shown: its row, the course of its step, and whether its workload is on other devices, too."""

    row: BoardLine
    course: tuple[BoardPoint, ...]
    has_other_devices: bool


def _list_lines(board: Board) -> list[_Line]:
    """Return the tracks with all that their cells are made of."""
    courses: dict[int, list[BoardPoint]] = {}
    for point in board.rows.points:
        courses.setdefault(point.line, []).append(point)
    devices: dict[str, set[str]] = {}
    for row in board.rows.lines:
        devices.setdefault(row.workload, set()).add(row.device)
    lines = []
    for at, row in enumerate(board.rows.lines):
        lines.append(_Line(row, tuple(courses.get(at, ())), len(devices[row.workload]) > 1))
    return lines


def _lines(lines: Sequence[_Line], look: Look) -> Table:
    """Return a row per track; where charts are drawn each has its course, and every cell leads to what it says."""
    has_good = any(line.row.good_change is not None for line in lines)
    is_pinned = any(line.row.pinned_version for line in lines)
    # a narrow browser has room for the workload, one change, the verdict, and what is new
    drop_narrow = NARROW if look.has_drawings else 0
    of_line = ColumnsOf(_Line)
    columns = [
        of_line.text("workload", _name, elastic=True),
        of_line.text("device", lambda line: readable(line.row.device), drop=4, elastic=True),
        of_line.text("version", lambda line: readable(line.row.version), drop=drop_narrow, link=_diff_with_previous),
        of_line.number("runs", lambda line: f"{line.row.version_runs} of {line.row.runs}", drop=5, link=_runs),
        of_line.number("step", lambda line: format_ns(line.row.step_ns), drop=drop_narrow, link=_step_history),
    ]
    if has_good:
        columns.append(
            of_line.number(
                "vs last good",
                lambda line: _change(line.row.good_change),
                drop=drop_narrow or 1,
                link=_diff_with_good,
            )
        )
    columns += [
        of_line.number("vs previous", lambda line: _change(line.row.previous_change), drop=6, link=_diff_with_previous),
        of_line.number("vs level", lambda line: _change(line.row.step_change), link=_diff_with_level),
        of_line.text("verdict", _verdict, link=_step_history),
        of_line.number("judged", _coverage, drop=3),
    ]
    if is_pinned:
        columns.append(
            of_line.number("vs pinned", lambda line: _change(line.row.pinned_change), drop=3, link=_diff_with_pinned)
        )
    if not look.has_drawings:
        columns.append(of_line.text(COURSE, lambda line: _course(line.course), drop=2))
    columns += [
        of_line.text("regressions", _counts, link=_findings),
        of_line.number("peak", lambda line: format_bytes(line.row.peak_allocated_bytes), drop=7, link=_peak_history),
        of_line.text("last run", _last_run_words, drop=8, link=_last_run),
    ]
    return table_of(
        "", columns, lines, look.rows(_ROWS), is_first=True, links=_link, below=_below,
        sparks=_spark if look.has_drawings else (),
        cell_tones=lambda line: tuple(_tone(column.header, line) for column in columns),
    )  # fmt: skip


def _below(line: _Line) -> str:
    """Say what the newest version of a track waits for: runs that decide, runs that may change what was found."""
    return "; ".join(filter(None, (waiting_words(line.row), so_far_words(line.row))))


def _spark(line: _Line) -> Trend:
    """Return the course of a track for the small chart of its row."""
    return Trend("ns", tuple(map(_point, line.course)))


def _name(line: _Line) -> str:
    steps = [f"{step_word(line.row.step_kind)}s"] if line.row.step_kind else []
    return " ".join([line.row.workload, *(f"{key}={value}" for key, value in pairs(line.row.configuration)), *steps])


def _tone(header: str, line: _Line) -> str:
    """Return the tone of a cell: the changes have that of the verdict beside them, regressions that of a change."""
    if header == "regressions":
        return "worse" if line.row.new or line.row.open else ""
    if header == "verdict" or header.startswith("vs "):
        return TONES.get(line.row.step_verdict or "", "")
    return ""


def _coverage(line: _Line) -> str:
    """Return how many series of the newest version were judged, of how many."""
    if not line.row.expected_series:
        return ""
    return f"{line.row.judged_series:,} of {line.row.expected_series:,}"


def _verdict(line: _Line) -> str:
    """Return the verdict of the newest version, where there is something to say, and whether a user accepted it."""
    if not line.row.step_verdict:
        return ""
    verdict = word_of_step(verdict_or_why(line.row.step_verdict, line.row.previous_change), _reason(line))
    return f"{verdict}, accepted" if line.row.accepted else verdict


def _reason(line: _Line) -> str | None:
    """Return the code of the reason of the verdict of the newest version."""
    return line.course[-1].reason if line.course else None


def _last_run_words(line: _Line) -> str:
    """Return when the newest run began, else its number: profiles without a clock have no date."""
    if line.row.last_run_ns:
        return format_moment(line.row.last_run_ns)
    return f"run:{line.row.last_run_id}"


def _point(point: BoardPoint) -> tuple[str, float | None, tuple[float, ...], str, str]:
    """Return a version in the course of a track: its step, and the tone of its verdict where it is a change."""
    word = word_of_step(point.verdict, point.reason)
    return point.version, point.step_ns, (), word, TONES.get(point.verdict or "", "")


def _of_workload(line: _Line) -> tuple[str, str]:
    return "--workload", str(line.row.workload)


def _of_track(line: _Line) -> list[tuple[str, str]]:
    """Return the options that ask for a track: its workload, and its device where the workload has several."""
    options = [_of_workload(line)]
    if line.has_other_devices:
        options.append(("--device", str(line.row.device)))
    return options


def _diff_with_previous(line: _Line) -> Target | None:
    """Return the diff of the newest version with the one before it; None where there is none."""
    return _diff_with(line, line.course[-2].version if len(line.course) > 1 else None)


def _diff_with_good(line: _Line) -> Target | None:
    """Return the diff of the newest version with the newest one of the level before the oldest regression."""
    return _diff_with(line, line.row.good_version)


def _diff_with_pinned(line: _Line) -> Target | None:
    """Return the diff of the newest version with the pinned one; None where that is none."""
    return _diff_with(line, line.row.pinned_version)


def _diff_with(line: _Line, other: str | None) -> Target | None:
    if not other or other == line.row.version:
        return None
    return Target("diff", (("side", other), ("side", line.row.version), _of_workload(line)))


def _diff_with_level(line: _Line) -> Target:
    """Return the diff with the level that the newest version was judged against."""
    return Target("diff", (("side", line.row.version), _of_workload(line)))


def _runs(line: _Line) -> Target:
    return Target("runs", (("--version", line.row.version), *_of_track(line)))


def _step_history(line: _Line) -> Target:
    return Target("history", (("KEY", "step"), *_of_track(line)))


def _peak_history(line: _Line) -> Target | None:
    if line.row.peak_allocated_bytes is None:
        return None
    return Target("history", (("KEY", "peak memory"), ("--kind", "run"), *_of_track(line)))


def _findings(line: _Line) -> Target:
    return Target("findings", (*_of_track(line),))


def _last_run(line: _Line) -> Target:
    return Target("run", (("RUN", str(line.row.last_run_id)),))


def _link(line: _Line) -> Target:
    """Return the worst incident of a track, else the history of its step."""
    if line.row.incident_id is not None:
        return Target("incident", (("ID", f"I-{line.row.incident_id}"),))
    return _step_history(line)


def _change(value: float | None) -> str:
    return "" if value is None else format_diff(value)


def _course(points: Sequence[BoardPoint]) -> str:
    """Return the step over the versions; changes below a twentieth are drawn as none."""
    values = [point.step_ns for point in points]
    known = [value for value in values if value is not None]
    if known and max(known) - min(known) < _LEAST_AXIS * max(known):
        values = [None if value is None else 1.0 for value in values]
    return sparkline(values)


def _counts(line: _Line) -> str:
    row = line.row
    words = ((row.new, "NEW"), (row.open, "open"), (row.suspects, "suspect"))
    counts = [f"{count} {word}" for count, word in words if count]
    if row.muted:
        # they are new or open, too
        counts.append(f"of these {row.muted} muted")
    return ", ".join([*counts, *_doubt(line)])


def _doubt(line: _Line) -> Iterator[str]:
    """Yield what a regression of the step may be of, where the verdict of the newest version does not say so."""
    word = _verdict(line)
    doubts = ((line.row.may_be_host, OTHER_HOST_CAUSE), (line.row.may_be_throttled, THROTTLED_CAUSE))
    for may_be, cause in doubts:
        if may_be and cause not in word:
            yield f"maybe {cause}"


def _next(board: Board, lines: Sequence[_Line]) -> Iterator[str]:
    if not lines and (board.options.device or board.options.owner):
        yield command("tracker", "board")
    elif not lines:
        yield FIRST_INGEST
        yield command("tracker", "demo")
    worst = lines[0].row if lines else None
    if worst and worst.incident_id is not None:
        yield command("tracker", "explain", f"I-{worst.incident_id}")
    if worst:
        yield command("tracker", "history", "step", "--workload", worst.workload)
    yield command("tracker", "status")


def list_csv(board: Board, look: Look) -> dict[str, Rows]:
    """Return the tracks, without the points of their charts."""
    return {"lines": board.tables["lines"].head(look.rows(None))}


VIEW = View(document, csv=list_csv)
