"""The board: a line per workload, configuration and device, what is new first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.errors import FIRST_INGEST
from tracker.reports.cells import (
    MARKS,
    TONES,
    ColumnsOf,
    budget_words,
    course_on_scale,
    pairs,
    readable,
    so_far_words,
    verdict_or_why,
    waiting_words,
)
from tracker.reports.commands import command
from tracker.reports.document import COURSE, HERE, NARROW, REACH, Block, Document, Lines, Look, Table, Target, Trend
from tracker.reports.rows import table_of
from tracker.reports.text import shorten
from tracker.reports.view import View
from tracker.results import Board
from tracker.results.board import BoardBranch, BoardIncident, BoardLine, BoardPoint, LateRun
from tracker.results.verdicts import CHANGED, SO_FAR, word_of_step
from tracker.results.waiting import WaitingRun
from tracker.units import counted, format_age, format_bytes, format_diff, format_moment, format_ns, step_word

if TYPE_CHECKING:
    from tracker.results.screens import Rows

_ROWS: Final = 20
_ROWS_OF_PAGE: Final = 60
"""Lines of a page of the server; further ones are on the next."""
_LATE: Final = 5
"""Late runs that are named."""
_WHY: Final = 28
_WHY_NARROW: Final = 20
_LEAST_NAME: Final = 6
_NUMBER: Final = re.compile(r" (?:[+-]\d|ADDED)")
"""Where the number of a cause begins."""
_WORKLOAD: Final = 24
_VERSION: Final = 14
"""Characters of what made the change, of a workload, and of a version in a terminal."""
_WIDER: Final = 2
"""By how much a page has more room than a terminal."""
_FOLDED: Final = 6
"""Lines that are as before, and are named beside each other."""
_BRANCHES: Final = 3
WIDE: Final = 100
"""Characters of a terminal from which on courses are drawn."""


def document(board: Board, look: Look) -> Document:
    """Return the report of `tracker board`."""
    lines = _list_lines(board)
    is_worse = any(line.row.is_regressed for line in lines)
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
            *_more_partial(len(board.partial) - _LATE),
            *_waiting_words(board.rows.waiting),
        ),
        blocks=tuple(_blocks(board, lines, look)),
        next_commands=tuple(_next(board, lines)),
    )


def _title(board: Board) -> str:
    """Say what the board is of: how many workloads and runs, and its filters."""
    chosen = board.options
    lines = board.rows.lines
    workloads = len({line.workload for line in lines})
    parts = [chosen.workload or counted(workloads, "workload")]
    parts += [f"on {chosen.device}"] if chosen.device else []
    parts += [f"of {chosen.owner}"] if chosen.owner else []
    title = " ".join(parts)
    if len(lines) > max(1, workloads):
        title += f", {len(lines):,} with each configuration and device"
    return f"{title}, {counted(sum(line.runs for line in lines), 'run')}"


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


def _more_partial(count: int) -> tuple[str, ...]:
    """Say how many sentences on lost records are not shown."""
    return (f"{counted(count, 'more sentence')} on lost records: tracker findings.",) if count > 0 else ()


def _waiting_words(waiting: Sequence[WaitingRun]) -> Iterator[str]:
    """Yield a sentence on each run that waits for ranks, of the newest few; tracker runs has the others."""
    for run in waiting[: -_LATE - 1 : -1]:
        yield run.sentence
    if len(waiting) > _LATE:
        yield f"{counted(len(waiting) - _LATE, 'more run')} with fewer ranks than they should have: tracker runs."


class _Line(Struct, frozen=True):
    """A track as it is shown.

    - course: its step over the versions; incidents: those that are open
    - name: its workload, with what tells it from the other tracks of that workload
    - has_other_devices: its workload is on other devices, too
    """

    row: BoardLine
    course: tuple[BoardPoint, ...]
    incidents: tuple[BoardIncident, ...]
    name: str
    has_other_devices: bool

    @property
    def is_marked(self) -> bool:
        """Whether it asks for a reader: something is new, open, or waits for a run."""
        return self.row.is_regressed or self.row.is_waiting


def _list_lines(board: Board) -> list[_Line]:
    """Return the tracks with all that their cells are made of."""
    courses: dict[int, list[BoardPoint]] = {}
    for point in board.rows.points:
        courses.setdefault(point.line, []).append(point)
    incidents: dict[int, list[BoardIncident]] = {}
    for incident in board.rows.incidents:
        incidents.setdefault(incident.line, []).append(incident)
    of_workload: dict[str, list[BoardLine]] = {}
    for row in board.rows.lines:
        of_workload.setdefault(row.workload, []).append(row)
    lines = []
    for at, row in enumerate(board.rows.lines):
        siblings = of_workload[row.workload]
        line = _Line(
            row,
            tuple(courses.get(at, ())),
            tuple(incidents.get(at, ())),
            _name(row, siblings),
            len({one.device for one in siblings}) > 1,
        )
        lines.append(line)
    return lines


def _name(row: BoardLine, siblings: Sequence[BoardLine]) -> str:
    """Return a workload with what tells its track from the `siblings`: values of the configuration, the device, and of
    which steps it is.
    """
    words = [row.workload]
    others = [dict(pairs(one.configuration)) for one in siblings]
    for key, value in pairs(row.configuration):
        if any(one.get(key) != value for one in others):
            words.append(f"{key}={value}")
    if len({one.device for one in siblings}) > 1:
        words.append(readable(row.device))
    if row.step_kind:
        words.append(f"{step_word(row.step_kind)}s")
    return " ".join(words)


def _blocks(board: Board, lines: Sequence[_Line], look: Look) -> Iterator[Block]:
    """Yield the tracks that ask for a reader, then those that are as before, then the branches."""
    marked = [line for line in lines if line.is_marked]
    others = [line for line in lines if not line.is_marked]
    if not look.has_drawings and (look.details or not marked):
        # nothing asks for a reader, so that there is room for all
        marked, others = list(lines), []
    page = board.page
    if marked and page is None:
        yield _make_table("", marked, look)
    elif marked and page is not None:
        # what was on a page may be on an earlier one by now
        page = min(page, -(-len(marked) // _ROWS_OF_PAGE))
        first = (page - 1) * _ROWS_OF_PAGE
        yield _make_table("", marked[first : first + _ROWS_OF_PAGE], replace(look, limit=0))
        if len(marked) > _ROWS_OF_PAGE:
            yield _turn_pages(page, len(marked))
    if others:
        words = _describe_folded(others)
        if look.has_drawings:
            yield replace(_make_table(words, others, replace(look, limit=0)), is_first=not marked)
        else:
            yield Lines("", (f"{words}; --details lists them",), is_wrapped=True)
    if board.rows.branches and look.has_drawings:
        yield _make_table_of_branches(board)
    elif board.rows.branches:
        yield Lines("", (_describe_branches(board.rows.branches),), is_wrapped=True)


def _turn_pages(page: int, count: int) -> Lines:
    """Return where the other pages of the marked tracks are. `count`: of all of them."""
    last_page = -(-count // _ROWS_OF_PAGE)
    other = page + 1 if page < last_page else 1
    words = "Next page" if page < last_page else "First page"
    first, last = (page - 1) * _ROWS_OF_PAGE + 1, min(page * _ROWS_OF_PAGE, count)
    return Lines(
        words,
        (f"lines {first} to {last} of {count:,}; page {page} of {last_page}",),
        link=Target(HERE, (("--page", str(other)),)),
    )


def _describe_folded(lines: Sequence[_Line]) -> str:
    """Say how the tracks stand in which nothing is new, open or undecided."""
    words = []
    for line in lines[:_FOLDED]:
        change = line.row.since_good
        state = _state(line)
        words.append(" ".join(filter(None, (line.name, "first" if change is None else format_diff(change), state))))
    more = [f"{len(lines) - _FOLDED:,} more"] if len(lines) > _FOLDED else []
    return f"Nothing to decide ({len(lines):,}): {', '.join([*words, *more])}"


def _describe_branches(branches: Sequence[BoardBranch]) -> str:
    """Say how far the newest version of each branch is from its main line."""
    words = []
    for one in branches[:_BRANCHES]:
        name = _name_of_branch(one, branches)
        change = _change_of_branch(one)
        words.append(f"{name} {change} against {one.against}" if change else f"{name} not judged")
    more = [f"{len(branches) - _BRANCHES:,} more: tracker versions"] if len(branches) > _BRANCHES else []
    return f"{_count_branches(branches)}: {', '.join([*words, *more])}"


def _make_table_of_branches(board: Board) -> Table:
    """Return a row per branch, which leads to its diff with the main line."""
    branches = board.rows.branches
    of_branch = ColumnsOf(BoardBranch)
    columns = [
        of_branch.text("branch", lambda one: _name_of_branch(one, branches), elastic=True),
        of_branch.text("workload", lambda one: one.workload),
        of_branch.text("newest", lambda one: readable(one.version)),
        of_branch.text("change", _change_of_branch),
        of_branch.text("against", lambda one: one.against),
    ]
    return table_of(
        _count_branches(branches), columns, branches, _ROWS, is_first=True, links=_diff_of_branch,
        tone=lambda one: TONES.get(one.step_verdict or "", ""),
    )  # fmt: skip


def _count_branches(branches: Sequence[BoardBranch]) -> str:
    """Say how many branches there are: one may be on several devices."""
    count = len({(one.workload, one.branch) for one in branches})
    return f"{count:,} {'branch' if count == 1 else 'branches'}"


def _name_of_branch(branch: BoardBranch, branches: Sequence[BoardBranch]) -> str:
    """Return a branch with what tells its track from the others of `branches`."""
    name = branch.branch
    if len({one.workload for one in branches}) > 1:
        name += f" of {branch.workload}"
    of_branch = [one for one in branches if (one.workload, one.branch) == (branch.workload, branch.branch)]
    if len(of_branch) > 1:
        name += f" on {' '.join(filter(None, (readable(branch.device), branch.configuration)))}"
    return name


def _change_of_branch(branch: BoardBranch) -> str:
    """Return by how much the step of a branch differs, and the verdict where that is a change; "" for not judged."""
    if branch.step_change is None or not branch.against:
        return ""
    verdict = branch.step_verdict if branch.step_verdict in CHANGED else ""
    return " ".join(filter(None, (format_diff(branch.step_change), verdict)))


def _diff_of_branch(branch: BoardBranch) -> Target:
    sides = (("side", branch.version), ("--workload", f"{branch.workload} @ {branch.branch}"))
    return Target("diff", sides)


def _make_table(title: str, lines: Sequence[_Line], look: Look) -> Table:
    """Return a row per track; where charts are drawn each has its course, and every cell leads to what it says."""
    is_pinned = look.details and any(line.row.pinned_version for line in lines)
    # a narrow browser has room for the workload, the change, its cause, and what is to do
    drop_narrow = NARROW if look.has_drawings else 0
    is_wide = not look.has_drawings and (look.width or WIDE) >= WIDE
    of_line = ColumnsOf(_Line)

    def fitted(text: str, width: int) -> str:
        # names differ at both ends: a browser would cut the second one off
        room = width * _WIDER if look.has_drawings else width
        return text if look.details and not look.has_drawings else shorten(text, room)

    def why(line: _Line) -> str:
        room = _WHY if is_wide or look.details else _WHY_NARROW
        most = 2 if look.has_drawings else 1
        words = [_shorten_cause(one, room * _WIDER if look.has_drawings else room) for one in _why(line)[:most]]
        return " · ".join([*words, *_doubts(line)])

    columns = [
        of_line.text("", _mark),
        of_line.text("workload", lambda line: fitted(line.name, _WORKLOAD), elastic=True),
        of_line.text("newest", lambda line: fitted(line.row.version, _VERSION), drop=drop_narrow, link=_newest_link),
        of_line.number("step", lambda line: format_ns(line.row.step_ns), drop=drop_narrow, link=_step_history),
        of_line.number("since good", lambda line: _change(line.row.since_good), link=_diff_with_good),
        of_line.text("why", why, link=_link),
    ]
    if look.details and not look.has_drawings:
        columns += _list_more_columns(is_pinned=is_pinned)
    if is_wide:
        columns.append(of_line.text(COURSE, _course, short="by version", drop=2))
    columns.append(of_line.text("state", _state, link=_state_link))
    return table_of(
        title, columns, lines, look.rows(_ROWS), is_first=True, links=_link, main=1,
        below=_below if look.details and not look.has_drawings else (),
        sparks=_spark if look.has_drawings else (),
        acts=_act if look.has_drawings else (),
        is_one_line=look.has_drawings,
        cell_tones=lambda line: tuple(_tone(column.header, line) for column in columns),
    )  # fmt: skip


def _list_more_columns(*, is_pinned: bool) -> list[Any]:
    """Return the columns that a first screen has no room for."""
    of_line = ColumnsOf(_Line)
    columns = [
        of_line.text("device", lambda line: readable(line.row.device), drop=4, elastic=True),
        of_line.number("runs", lambda line: f"{line.row.version_runs} of {line.row.runs}", drop=5),
        of_line.text("verdict", _verdict, drop=1),
        of_line.number("vs level", lambda line: _change(line.row.step_change), drop=3),
        of_line.number("vs previous", lambda line: _change(line.row.previous_change), drop=6),
        of_line.number("judged", _coverage, drop=7),
        of_line.text("regressions", _counts),
        of_line.number("peak", lambda line: format_bytes(line.row.peak_allocated_bytes), drop=8),
        of_line.text("last run", _last_run_words, drop=9),
    ]
    if is_pinned:
        columns.append(of_line.number("vs pinned", lambda line: _change(line.row.pinned_change), drop=3))
    return columns


def _mark(line: _Line) -> str:
    """Return the mark of a track: a regression, or a run that is missing to decide."""
    if line.row.is_regressed:
        return MARKS["REGRESSED"]
    return MARKS["SUSPECT"] if line.row.is_waiting else ""


def _why(line: _Line) -> list[str]:
    """Return what made most of the change of a track, and what else is open, each in a few words; nothing where nothing
    did.
    """
    if line.row.is_waiting or not line.incidents:
        return [line.row.leading_label] if line.row.leading_label else []
    words = []
    for place, incident in enumerate(line.incidents):
        cause = _describe_incident(incident)
        since = f" since {incident.version}" if incident.version != line.row.version else ""
        if cause:
            words.append(f"{incident.version}: {cause}" if place else f"{cause}{since}")
    return words


def _describe_incident(incident: BoardIncident) -> str:
    """Return what an incident is in a few words; "" where the change of the step says it all."""
    if incident.is_of_step:
        return incident.leading_label
    return f"{readable(incident.name).removeprefix('aten::')} {incident.size}"


def _shorten_cause(words: str, width: int) -> str:
    """Shorten the name in a cause, never its number.

    >>> _shorten_cause("native_layer_norm_backward +59.9 % since n47", 28)
    'nativ…ward +59.9 % since n47'
    """
    found = _NUMBER.search(words)
    if found is None:
        return shorten(words, width)
    name, rest = words[: found.start()], words[found.start() :]
    return f"{shorten(name, max(_LEAST_NAME, width - len(rest)))}{rest}"


def _doubts(line: _Line) -> Iterator[str]:
    """Yield what a regression of the step may be beside the code."""
    word = _verdict(line)
    if any(cause in word for cause in line.row.other_causes):
        yield word
        return
    for cause in line.row.other_causes:
        yield f"maybe {cause}"


def _state(line: _Line) -> str:
    """Return what is to do: an incident that is new or open, or the runs that are missing; else the verdict of the
    newest version, where it is a change.
    """
    row = line.row
    so_far = row.so_far.removeprefix(f"{SO_FAR}: ").replace("the usual ", "") if so_far_words(row) else ""
    if row.is_regressed and line.incidents:
        first = line.incidents[0]
        return ", ".join(filter(None, (f"{first.state} I-{first.incident_id}", so_far)))
    if row.is_waiting:
        return _lacking_words(row)
    if line.incidents:
        return f"muted I-{line.incidents[0].incident_id}"
    verdict = _verdict(line) if row.step_verdict in (*CHANGED, "DRIFT") else ""
    return ", ".join(filter(None, (verdict, so_far)))


def _lacking_words(row: BoardLine) -> str:
    """Return how many runs would decide a change, all together, and whether all of them are of versions before it.

    Which of them, `--details` says.
    """
    count = row.lacks_runs + row.lacks_base_runs
    return f"needs {counted(count, 'run' if row.lacks_runs else 'older run')}"


def _below(line: _Line) -> str:
    """Say what the newest version of a track waits for: runs that decide, runs that may change what was found."""
    return "; ".join(filter(None, (waiting_words(line.row), so_far_words(line.row))))


def _act(line: _Line) -> str:
    """Return what a reader may acknowledge in place: the first incident of a track, where it is new."""
    is_new = line.row.is_regressed and line.incidents and line.incidents[0].state == "new"
    return f"I-{line.incidents[0].incident_id}" if is_new else ""


def _spark(line: _Line) -> Trend:
    """Return the course of a track for the small chart of its row."""
    return Trend("ns", tuple(map(_point, line.course)), middle=_reference_of(line))


def _reference_of(line: _Line) -> float | None:
    """Return the step that a course is drawn around: that of the level before the newest version."""
    step_ns, change = line.row.step_ns, line.row.since_good
    if step_ns and change is not None:
        return step_ns / (1 + change)
    known = [point.step_ns for point in line.course if point.step_ns is not None]
    return median(known) if known else None


def _course(line: _Line) -> str:
    """Return the step over the versions in characters, all tracks on one scale; what was judged to be worse or better
    has its mark.
    """
    middle = _reference_of(line)
    values = [point.step_ns / middle - 1 if point.step_ns and middle else None for point in line.course]
    bars = course_on_scale(values, REACH)
    marks = [MARKS.get(point.verdict or "", "") for point in line.course]
    return "".join(mark or bar for bar, mark in zip(bars, marks, strict=True))


def _tone(header: str, line: _Line) -> str:
    """Return the tone of a cell: what is judged to be worse, what waits for a run, or nothing."""
    row = line.row
    if header == "since good" and row.is_regressed:
        # an operator may be slower in a step that is not
        is_slower = (row.since_good or 0.0) > 0 and any(incident.is_of_step for incident in line.incidents)
        return "worse" if is_slower else ""
    if header in ("", "since good", "state", "why"):
        if row.is_regressed:
            return "worse"
        return "waits" if row.is_waiting else ""
    if header in ("verdict", "vs level"):
        return TONES.get(row.step_verdict or "", "")
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


def _counts(line: _Line) -> str:
    """Return how many regressions of a track there are."""
    row = line.row
    words = ((row.new, "NEW"), (row.open, "open"), (row.suspects, "suspect"))
    counts = [f"{count} {word}" for count, word in words if count]
    if row.muted:
        # they are new or open, too
        counts.append(f"of these {row.muted} muted")
    return ", ".join(counts)


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


def _newest_link(line: _Line) -> Target:
    """Return the diff of the newest version with the one before it, the runs of it where it is the first."""
    return _diff_with_previous(line) or _runs(line)


def _runs(line: _Line) -> Target:
    return Target("runs", (("--version", line.row.version), *_of_track(line)))


def _diff_with_previous(line: _Line) -> Target | None:
    """Return the diff of the newest version with the one before it; None where there is none."""
    return _diff_with(line, line.course[-2].version if len(line.course) > 1 else None)


def _diff_with_good(line: _Line) -> Target | None:
    """Return the diff that has the change since a track was good: with the level before its oldest regression of the
    step, else with the level that the newest version was judged against.
    """
    began = {incident.version for incident in line.incidents if incident.is_of_step}
    if line.row.good_change is not None and line.row.version not in began:
        return _diff_with(line, line.row.good_version)
    if line.row.step_change is None:
        return None
    return Target("diff", (("side", line.row.version), _of_workload(line)))


def _diff_with(line: _Line, other: str | None) -> Target | None:
    if not other or other == line.row.version:
        return None
    return Target("diff", (("side", other), ("side", line.row.version), _of_workload(line)))


def _step_history(line: _Line) -> Target:
    return Target("history", (("KEY", "step"), *_of_track(line)))


def _link(line: _Line) -> Target:
    """Return the worst incident of a track, else what its newest version is compared with: what it waits to be decided
    is a change of the step.
    """
    if line.incidents and not line.row.is_waiting:
        return Target("incident", (("ID", f"I-{line.incidents[0].incident_id}"),))
    return _diff_with_good(line) or _step_history(line)


def _state_link(line: _Line) -> Target | None:
    """Return the worst incident of a track, the runs of what waits for more; None for what is as before."""
    if line.row.is_regressed:
        return _link(line)
    if line.row.is_waiting:
        return _runs(line)
    return None


def _change(value: float | None) -> str:
    return "" if value is None else format_diff(value)


def _next(board: Board, lines: Sequence[_Line]) -> Iterator[str]:
    if not lines and (board.options.device or board.options.owner):
        yield command("tracker", "board")
    elif not lines:
        yield FIRST_INGEST
        yield command("tracker", "demo")
    worst = lines[0] if lines else None
    if worst and worst.row.is_regressed:
        yield command("tracker", "explain", f"I-{worst.incidents[0].incident_id}")
    elif worst and worst.row.is_waiting:
        yield command("tracker", "diff", worst.row.version, "--workload", worst.row.workload)
    if worst:
        yield command("tracker", "history", "step", "--workload", worst.row.workload)
    yield command("tracker", "status")


def list_csv(board: Board, look: Look) -> dict[str, Rows]:
    """Return the tracks, without the points of their charts."""
    return {"lines": board.tables["lines"].head(look.rows(None))}


VIEW = View(document, csv=list_csv)
