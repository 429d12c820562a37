"""The document of series over versions: one version a line of one series, one series a line of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from tracker.profile.branches import branch_of
from tracker.reports import cells
from tracker.reports.cells import ColumnsOf, ShownVerdict
from tracker.reports.commands import command, command_of, exact_command, option_words, words_of
from tracker.reports.document import (
    COMMITS,
    HERE,
    NAME,
    UNDER,
    WORDS,
    Choices,
    Column,
    Document,
    Look,
    Marker,
    Overview,
    Plot,
    PlotLevel,
    PlotSeries,
    Table,
    Target,
    level,
)
from tracker.reports.plot import MOST_SERIES
from tracker.reports.rows import rows_of, table_of
from tracker.reports.text import fits
from tracker.reports.view import View
from tracker.results import History
from tracker.results.history import FollowedSeries, HistoryPoint, RunOfPoint
from tracker.results.verdicts import (
    CHANGED,
    GLOSSES,
    NOT_CONFIRMED,
    OTHER_WORK,
    OTHER_WORK_REASON,
    word_of_step,
)
from tracker.units import MISSING_TEXT, NS_PER_S, counted, format_diff, format_moment, printable, some_of

if TYPE_CHECKING:
    from tracker.results.screens import Rows

_METRICS: Final = {
    "device_self_ns": "device self time", "host_self_ns": "host self time", "total_ns": "time",
    "exposed_ns": "time not hidden by compute", "self_ns": "time without nested calls", "bytes": "bytes allocated",
}  # fmt: skip
_PROFILER: Final = "profiler"
_ROWS: Final = 25
_SPARKS: Final = 60
_NAMED: Final = 4
_COMMIT: Final = 10
"""Characters of a commit that are shown."""
_LAST: Final = (30, 100)
"""How many of the newest versions a chart offers."""


def document(history: History, look: Look) -> Document:
    """Return where the newest version stands, then a line per version, or a line per series where there are several."""
    series, points = rows_of(FollowedSeries, history.tables["series"]), points_of(history)
    if len(series) != 1:
        return _of_several(history, series, points, look)
    one, own = series[0], points[series[0].series_id]
    where = _where({key: value for key, value in _place(one).items() if key != _PROFILER})
    counts = f"{counted(one.versions, 'version')}, {counted(one.runs, 'run')}"
    if len(own) < one.versions:
        counts = f"{own[0].version} to {own[-1].version}, {len(own)} of {counted(one.versions, 'version')}"
    details = [] if look.details else ["--details"]
    asked = ("tracker", "history", str(one.series_id), *_range_words(history))
    following = [command(*asked, *details), command(*asked, "-o", "history.xlsx")]
    changed = next((point.version for point in reversed(own) if point.verdict in CHANGED), None)
    if changed is not None:
        words = ("tracker", "findings", "--version", changed, "--workload", one.workload, "--state", "all")
        following += filter(None, [exact_command(*words)])
    return Document(
        title=f"{series_title(one)} of {where}: {counts}",
        headline=_headline(one, own),
        verdict=_change_word(own[-1]),
        tone=_tone(own[-1]),
        blocks=(_versions(history, one, own, look),),
        remarks=_budgets(history, is_met=False),
        notes=(*_budgets(history, is_met=True), *history.notes),
        next_commands=tuple(following),
    )


def _budgets(history: History, *, is_met: bool) -> tuple[str, ...]:
    """Return a sentence on each budget of these series that is not met, or on each of the others."""
    return tuple(one.sentence for one in history.budgets if (one.verdict != "not met") is is_met)


class PointInCourse(HistoryPoint, frozen=True, kw_only=True):
    """A point of a series beside those before it.

    - previous: the last version before it that has a value; calls_before: its calls
    - vs_previous: the change against that; in a branch, where no version follows another one, against the main line
    - commit_before: the last commit that was named before
    - left: of a point that is back at an older level, the version that had left it
    """

    previous: str | None = None
    vs_previous: float | None = None
    calls_before: float | None = None
    commit_before: str | None = None
    left: str | None = None


def points_of(history: History) -> dict[int, list[PointInCourse]]:
    """Return the points of each series, by its number, in the order of versions."""
    series = rows_of(FollowedSeries, history.tables["series"])
    stored: dict[int, list[HistoryPoint]] = {one.series_id: [] for one in series}
    if history.earlier is not None:
        for point in rows_of(HistoryPoint, history.earlier):
            stored[point.series_id].append(point)
    first_shown = {number: len(earlier) for number, earlier in stored.items()}
    for point in rows_of(HistoryPoint, history.tables["points"]):
        stored[point.series_id].append(point)
    found = {}
    for one in series:
        course = _follow(stored[one.series_id], is_branch=bool(branch_of(one.workload)))
        found[one.series_id] = course[first_shown[one.series_id] :]
    return found


def _follow(points: Sequence[HistoryPoint], *, is_branch: bool) -> list[PointInCourse]:
    """Return the points of a series, each beside those before it."""
    course = []
    level = points[0].version if points else ""
    left_by: dict[str, str] = {}
    last_commit: str | None = None
    before: HistoryPoint | None = None
    for point in points:
        vs_previous = None
        if is_branch:
            vs_previous = point.change
        elif before is not None and before.value and point.value is not None:
            vs_previous = point.value / before.value - 1
        previous = None if is_branch else before
        course.append(
            PointInCourse(
                **asdict(point),
                previous=previous.version if previous is not None else None,
                vs_previous=vs_previous,
                calls_before=previous.calls if previous is not None else None,
                commit_before=last_commit,
                left=left_by.get(point.back_to or ""),
            )
        )
        if point.change_point or point.back_to is not None:
            left_by[level] = point.version
            level = point.back_to or point.version
        if point.value is not None:
            before = point
        last_commit = point.commit or last_commit
    return course


def series_title(series: FollowedSeries) -> str:
    """Return the name of a series, with its shapes or the like, and what it measures."""
    if series.kind == "run":
        name = "step time" if series.name == "step" else cells.readable(series.name)
        return " ".join(filter(None, (name, cells.part_of(series.kind, series.part or "", series.step_kind))))
    name = " ".join(
        filter(
            None,
            (
                cells.readable(series.name),
                series.input_shapes,
                cells.part_of(series.kind, series.part or "", series.step_kind),
            ),
        )
    )
    what = ", ".join(filter(None, (cells.KINDS[series.kind], _METRICS.get(series.metric, ""))))
    return f"{name} ({what})"


def _place(series: FollowedSeries) -> dict[str, str]:
    """Return where a series was measured: workload, device, each key of its configuration with its value, and of whole
    runs how, where it was not in a profiler's trace.
    """
    place = {"workload": series.workload, "device": series.device}
    place |= dict(cells.pairs(series.configuration))
    return place | ({_PROFILER: cells.WAYS[series.part]} if series.kind == "run" and series.part else {})


def _where(place: dict[str, str]) -> str:
    own = (f"{key}={value}" for key, value in place.items() if key not in ("workload", "device"))
    return ", ".join(filter(None, (place.get("workload"), place.get("device"), " ".join(own))))


def _headline(series: FollowedSeries, points: Sequence[PointInCourse]) -> str:
    """Say where the newest version stands, and with which versions lasting changes came."""
    text = cells.form(series.unit, [point.value for point in points])
    newest = points[-1]
    if newest.value is None:
        last = next((point for point in reversed(points) if point.value is not None), None)
        before = f"; {last.version} was at {text(last.value)}" if last else ""
        return f"{newest.version} has no {cells.readable(series.name)}{before}"
    start = f"{newest.version} is at {text(newest.value)}"
    if branch_of(series.workload):
        against = f": {format_diff(newest.change)} against the main line" if newest.change is not None else ""
        return start + against
    if len(points) == 1:
        return f"{start}: the only version, nothing to compare it with"
    if newest.left is not None:
        first = next(point for point in points if point.value is not None)
        change = newest.value / first.value - 1 if first.value else None
        start += f": back to the level before {newest.left}"
        start += f", {format_diff(change)} against {first.version}" if change is not None else ""
    elif newest.verdict == "ADDED":
        start += ": new"
    elif newest.change is not None:
        start += f": {format_diff(newest.change)} against the runs before it"
    elif newest.vs_previous is not None:
        why_not = OTHER_WORK if newest.reason == OTHER_WORK_REASON else "not judged"
        start += f": {format_diff(newest.vs_previous)} against {newest.previous}, {why_not}"
    if newest.reason == OTHER_WORK_REASON or not any(point.verdict for point in points):
        return start
    lasting = [point.version for point in points if is_lasting(point)]
    if len(lasting) > _NAMED:
        return f"{start}; {len(lasting)} lasting changes, the newest with {', '.join(lasting[-_NAMED:])}"
    if not lasting:
        return f"{start}; {_why_nothing_lasts(points)}"
    return f"{start}; {'a lasting change' if len(lasting) == 1 else 'lasting changes'} with {', '.join(lasting)}"


def is_lasting(point: PointInCourse) -> bool:
    """Return whether a version brought or took back a lasting change: a level of the step may begin without one, where
    operators are new or gone.
    """
    begins = bool(point.change_point) or point.back_to is not None
    return begins and (point.verdict not in (None, *GLOSSES) or point.gradual_change is not None)


def _why_nothing_lasts(points: Sequence[PointInCourse]) -> str:
    """Say that no change of a series lasted, or that too few runs tell."""
    verdicts = [point.verdict for point in points if point.verdict]
    if set(verdicts) == {"TOO_FEW_RUNS"}:
        return "too few runs for a verdict"
    return "later runs decide whether it lasts" if verdicts[-1] == "SUSPECT" else "no lasting change"


def _versions(history: History, series: FollowedSeries, points: Sequence[PointInCourse], look: Look) -> Table:
    """Return a line per version; with details also what its verdict rests on."""
    shown = points if look.details else points[-_ROWS:]
    values = [point.value for point in points]
    text = cells.form(series.unit, values)
    is_step = series.kind == "run" and series.name == "step"
    workload = ("--workload", series.workload)

    def commits(point: PointInCourse) -> Target | None:
        before = point.commit_before
        if not before or not point.commit or before == point.commit:
            return None
        return Target(COMMITS, (("good", before), ("bad", point.commit)))

    incident = _incident_of(history)
    columns = [
        _point.text("version", _version),
        _point.number("step" if is_step else "value", lambda point: text(point.value)),
        *_change_columns(shown, is_branch=bool(branch_of(series.workload)), link=_diff_with_previous(series)),
        _point.text("verdict", _verdict, link=incident),
    ]
    if history.pinned and any(point.pinned for point in points):
        pinned, is_against = printable(history.pinned), history.options.against == "pinned"
        if is_against or look.details:
            columns.append(_point.number(f"vs {pinned}", _since_pinned, drop=1))
        if is_against:
            columns.append(_point.text(f"verdict vs {pinned}", _against_pinned))
    if look.details:
        if any(map(_corrected, shown)):
            columns.append(_point.number("without drift", _corrected, drop=2))
        columns += [_point.number("q", lambda point: cells.q_text(point.q)), _point.number("runs", _spread)]
        if any(point.calls is not None for point in shown):
            columns.append(_point.number("calls", lambda point: cells.number(point.calls), drop=3))
        if any(point.commit for point in shown):
            columns.append(_point.text("commit", _commit, drop=4, link=commits))
    own = values[-len(shown) :]
    known = [value for value in own if value is not None]
    ends = f"{text(min(known, default=None))} to {text(max(known, default=None))}"
    limits = [words for _, words in _limits(history, series)]
    lead = f"{cells.sparkline(own[-_SPARKS:])}  {', '.join([ends, *limits])}"
    left_out = len(points) - len(shown)
    hidden = f"{counted(left_out, 'older version')} left out; --details shows all" if left_out else ""
    glosses = cells.glosses_of(ShownVerdict(point.version, _word(point), point.reason) for point in shown)
    note = "; ".join(filter(None, (glosses, hidden)))
    # below a chart, which has the course, the newest version stands first
    rows = shown[::-1] if look.has_drawings else shown
    return table_of(
        "", columns, rows, tone=_tone, note=note, is_first=True, below=_what_else,
        lead="" if look.has_drawings else lead,
        chart=plot_of(history, [series], {series.series_id: shown}) if look.has_drawings else None,
        links=lambda point: Target("runs", (("--version", point.version), workload)),
    )  # fmt: skip


def _change_columns(
    points: Sequence[PointInCourse],
    *,
    is_branch: bool = False,
    link: Callable[[PointInCourse], Target | None] | None = None,
) -> list[Column]:
    """Return the change against the version before, and that against the level, on which the verdict rests, where any
    of the `points` was judged.
    """
    vs_level = _point.number("vs level", lambda point: _change(point, point.change))
    if is_branch:
        # no version of a branch follows another one
        return [replace(vs_level, header="vs main", link=link)]
    is_judged = any(point.change is not None for point in points)
    vs_previous = _point.number("vs previous", lambda point: _change(point, point.vs_previous), drop=1, link=link)
    return [vs_previous, vs_level] if is_judged else [vs_previous]


_point: Final = ColumnsOf(PointInCourse)


def _version(point: PointInCourse) -> str:
    return f"{point.version}{' (pinned)' if point.pinned else ''}"


def _since_pinned(point: PointInCourse) -> str:
    return format_diff(point.pinned_change)


def _against_pinned(point: PointInCourse) -> str:
    return cells.readable(point.pinned_verdict)


def _spread(point: PointInCourse) -> str:
    return cells.spread(point.runs, point.value, point.minimum, point.maximum)


def _commit(point: PointInCourse) -> str:
    return (point.commit or "")[:_COMMIT]


def _tone(point: PointInCourse) -> str:
    return cells.TONES.get(point.verdict or "", "")


def _change(point: PointInCourse, change: float | None) -> str:
    return MISSING_TEXT if point.verdict in ("ADDED", "REMOVED") else format_diff(change)


def _word(point: PointInCourse) -> str:
    if point.reason == OTHER_WORK_REASON:
        return OTHER_WORK
    word = cells.verdict_or_why(point.verdict, point.vs_previous, point.change)
    return word_of_step(word, point.reason)


def _change_word(point: PointInCourse) -> str:
    """Return the verdict of a version where that is a change, with what else it may be."""
    return word_of_step(point.verdict or "", point.reason) if point.verdict in CHANGED else ""


def _verdict(point: PointInCourse) -> str:
    """Return the verdict where there is something to say, and which older level a version came back to."""
    word = _word(point)
    if word and point.since:
        return f"{word} (since {point.since})"
    if word == NOT_CONFIRMED and point.decided_by:
        return f"{word} (by {point.decided_by})"
    if point.left is not None:
        return f"{word} (as before {point.left})".strip()
    return word or ("a level begins" if point.change_point else "")


def _corrected(point: PointInCourse) -> str:
    """Return the change without machine-wide drift; "" where it is the raw one but for rounding."""
    corrected = _change(point, point.judged_change)
    return corrected if corrected not in (MISSING_TEXT, format_diff(point.change)) else ""


def _what_else(point: PointInCourse) -> str:
    """Return exact facts of a version, what else changed with it, what slowed it down, and that it did so gradually."""
    calls, gradual = "", ""
    ends = [cells.number(point.calls_before), cells.number(point.calls)]
    if MISSING_TEXT not in ends and ends[0] != ends[1] and "calls" not in point.facts:
        calls = f"calls {cells.pair(*ends)}"
    if point.gradual_change is not None:
        gradual = f"gradual slowdown: {format_diff(point.gradual_change)} against the first runs of its level"
    return "; ".join(filter(None, (calls, point.facts, point.environment, point.machine, gradual)))


def _limits(history: History, series: FollowedSeries) -> list[tuple[float, str]]:
    """Return the budgets of a series: each limit in the unit of the series, with words."""
    found = []
    for one in history.budgets:
        where = (one.workload, one.configuration, one.device, one.name, one.unit)
        own = (series.workload, series.configuration, series.device, series.name, series.unit)
        if where == own and one.limit_value is not None:
            found.append((one.limit_value, f"budget: {one.limit}"))
    return found


def _range_words(history: History) -> list[str]:
    """Return the options that chose the versions, as on the command line."""
    chosen = history.options
    return words_of(("--last", chosen.last), ("--from", chosen.from_version), ("--to", chosen.to_version))


def plot_of(
    history: History, series: Sequence[FollowedSeries], points: Mapping[int, Sequence[PointInCourse]]
) -> Plot | None:
    """Return the chart of series over the versions that any of them has; None where it would show one version.

    By date a version stands where its first run began, and one without a date is left out.
    """
    drawn = series[:MOST_SERIES]
    versions = _merge_versions([[point.version for point in points[one.series_id]] for one in drawn])
    runs: dict[tuple[int, str], list[RunOfPoint]] = {}
    for run in rows_of(RunOfPoint, history.tables["runs"]):
        runs.setdefault((run.series_id, run.version), []).append(run)
    starts: dict[str, int] = {}
    for (_, version), own in runs.items():
        known = [run.started_at_ns for run in own if run.started_at_ns is not None]
        if known:
            starts[version] = min([*known, starts.get(version, known[0])])
    is_dated = history.options.x_axis == "date"
    if is_dated:
        versions = [version for version in versions if version in starts]
    if len(versions) < 2:
        return None
    of_series = [{point.version: point for point in points[one.series_id]} for one in drawn]
    any_of = [next(own[version] for own in of_series if version in own) for version in versions]
    units = {one.unit for one in drawn}
    is_single = len(series) == 1
    diff, incident = _diff_with_previous(series[0]), _incident_of(history)
    has_incidents = any(map(incident, any_of))
    return Plot(
        names=tuple(versions),
        heads=tuple(_head(point, starts.get(point.version)) for point in any_of),
        series=tuple(
            _plot_series(one, label, [own.get(version) for version in versions], runs)
            for one, label, own in zip(drawn, _labels(drawn), of_series, strict=True)
        ),
        places=tuple(starts[version] / NS_PER_S for version in versions) if is_dated else (),
        is_dated=is_dated,
        # values of different units share no axis but that of their changes
        axis="change" if len(units) > 1 else history.options.y_axis,
        markers=tuple(tuple(_markers_of(point, is_single=is_single)) for point in any_of),
        limits=tuple(_limits(history, series[0])) if is_single else (),
        links=tuple((incident(point) if is_single else None) or diff(point) for point in any_of),
        leads_to=f"diff with the version before{', of a change its incident' * (is_single and has_incidents)}",
        pair=Target("diff", (("--workload", series[0].workload),)),
        zoom=Target(HERE, (("--last", ""), ("--from", ""), ("--to", ""))),
        choices=tuple(_choices(history, is_mixed=len(units) > 1)),
        overview=_overview_of_versions(history, versions),
    )


def _overview_of_versions(history: History, shown: Sequence[str]) -> Overview | None:
    """Return all versions of a history of which a chart has a part, with links to the parts of this length beside it;
    None where it has all, or has them by date.
    """
    names = [version for version, _ in history.overview]
    if not names or history.options.x_axis == "date":
        return None
    places = [names.index(version) for version in shown]
    first, last = min(places), max(places)
    length = last - first + 1

    def part(start: int) -> Target:
        ends = (("--from", names[start]), ("--to", names[start + length - 1]))
        return Target(HERE, (("--last", ""), *ends))

    ways = []
    if first > 0:
        ways.append(("earlier", part(max(0, first - length))))
    if last < len(names) - 1:
        ways.append(("later", part(min(len(names) - length, first + length))))
    ways.append(("all", Target(HERE, (("--last", ""), ("--from", ""), ("--to", "")))))
    return Overview(tuple(names), tuple(value for _, value in history.overview), first, last, tuple(ways))


def _merge_versions(orders: Sequence[Sequence[str]]) -> list[str]:
    """Return the versions of all series in one order: one that the first does not have follows its predecessor."""
    merged = [*orders[0]]
    known = set(merged)
    for order in orders[1:]:
        for before, version in zip(("", *order), order, strict=False):
            if version not in known:
                merged.insert(merged.index(before) + 1 if before else 0, version)
                known.add(version)
    return merged


def _labels(series: Sequence[FollowedSeries]) -> list[str]:
    """Return how series are told from each other: by name, and by where they were measured if that differs."""
    if len(series) == 1:
        return [""]
    places = [_place(one) for one in series]
    labels = []
    for one, place in zip(series, places, strict=True):
        differing = {key: value for key, value in place.items() if any(other.get(key) != value for other in places)}
        labels.append(" of ".join(filter(None, (series_title(one), _where(differing)))))
    return labels


def _plot_series(
    series: FollowedSeries,
    label: str,
    points: Sequence[PointInCourse | None],
    runs: Mapping[tuple[int, str], Sequence[RunOfPoint]],
) -> PlotSeries:
    own_runs = []
    for point in points:
        own = runs.get((series.series_id, point.version), []) if point is not None else []
        own_runs.append(tuple(run.value for run in own if run.value is not None))
    words = ["" if point is None else _change_word(point) for point in points]
    tones = ["" if point is None else _tone(point) for point in points]
    return PlotSeries(
        label=label,
        unit=series.unit,
        values=tuple(None if point is None else point.value for point in points),
        runs=tuple(own_runs),
        words=tuple(words),
        tones=tuple(tones),
        says=tuple("" if point is None else _says(point) for point in points),
        levels=tuple(_levels(points)),
    )


def _levels(points: Sequence[PointInCourse | None]) -> Iterator[PlotLevel]:
    """Yield the levels of a series: their first and last version, the smallest and the largest run between them, and
    the mean of their versions.

    A level begins with a lasting change, and where the series comes back to an older one. Versions without a value do
    not widen it.
    """
    first: int | None = None
    ends: list[float] = []
    values: list[float] = []
    for place, point in enumerate(points):
        if point is None or point.value is None:
            continue
        begins = point.change_point or point.back_to is not None
        if first is not None and begins:
            yield PlotLevel(first, place - 1, min(ends), max(ends), _mean(values))
            first, ends, values = None, [], []
        if first is None:
            first = place
        ends += [end for end in (point.minimum, point.maximum) if end is not None]
        values.append(point.value)
    if first is not None:
        yield PlotLevel(first, len(points) - 1, min(ends), max(ends), _mean(values))


def _mean(values: Sequence[float]) -> float:
    """Return the mean of versions as the verdicts have it: geometric, unless one of them is 0."""
    return geometric_mean(values) if min(values) > 0 else fmean(values)


def _says(point: PointInCourse) -> str:
    """Return what a crosshair says beside the value of a version: its change, its verdict, and how many runs."""
    before = f"against {point.previous}" if point.previous else "against the main line"
    change = _change(point, point.vs_previous)
    parts = [f"{change} {before}" if change != MISSING_TEXT else "", _verdict(point), counted(point.runs, "run")]
    return ", ".join(filter(None, parts))


def _head(point: PointInCourse, start_ns: int | None) -> str:
    """Return what is known of a version: its name, its date, its commit, and what came with it."""
    parts = [
        _version(point),
        f"{format_moment(start_ns)} UTC" if start_ns is not None else "",
        f"commit {_commit(point)}" if point.commit else "",
        f"environment: {point.environment}" if point.environment else "",
        f"note: {point.note}" if point.note else "",
    ]
    return " · ".join(filter(None, parts))


def _markers_of(point: PointInCourse, *, is_single: bool) -> Iterator[Marker]:
    """Yield what came with a version; where a level begins stands for a single series."""
    if is_single and point.change_point:
        yield Marker("level", f"{point.version}: a level begins")
    if point.environment:
        yield Marker("environment", f"{point.version}: {point.environment}")
    if point.note:
        yield Marker("note", f"{point.version}: {point.note}")


def _diff_with_previous(series: FollowedSeries) -> Callable[[PointInCourse], Target | None]:
    """Return what makes the diff of a version with the one before it: what a reader asks of a point."""
    workload = ("--workload", series.workload)

    def target(point: PointInCourse) -> Target | None:
        if point.previous is None or point.value is None:
            return None
        return Target("diff", (("side", point.previous), ("side", point.version), workload))

    return target


def _incident_of(history: History) -> Callable[[PointInCourse], Target | None]:
    """Return what finds the incident that began with a point of a series, where there is one."""

    def target(point: PointInCourse) -> Target | None:
        number = history.incidents.get((point.series_id, point.version))
        is_change = point.verdict in CHANGED
        return Target("incident", (("ID", f"I-{number}"),)) if number is not None and is_change else None

    return target


def _choices(history: History, *, is_mixed: bool) -> Iterator[Choices]:
    """Yield the other ways to see a chart: how many versions, where they stand, and how the axis goes."""
    chosen = history.options
    has_ends = chosen.from_version is not None or chosen.to_version is not None
    ranges = []
    if has_ends:
        ends = f"{chosen.from_version or 'first'} to {chosen.to_version or 'newest'}"
        ranges.append((ends, Target(HERE), True))
    for count in _LAST:
        target = Target(HERE, (("--last", str(count)), ("--from", ""), ("--to", "")))
        ranges.append((f"last {count}", target, chosen.last == count and not has_ends))
    all_of_them = Target(HERE, (("--last", ""), ("--from", ""), ("--to", "")))
    ranges.append(("all", all_of_them, chosen.last is None and not has_ends))
    yield Choices("versions", tuple(ranges))
    yield _option_choices("x axis", "--x-axis", chosen.x_axis, {"version": "by version", "date": "by date"})
    if not is_mixed:
        axes = {"fit": "cut", "zero": "from 0", "change": "change in %"}
        yield _option_choices("y axis", "--y-axis", chosen.y_axis, axes)


def _option_choices(title: str, option: str, chosen: str, words: Mapping[str, str]) -> Choices:
    """Return the values of an option with their words; the first one is its default, which an address leaves out."""
    default = next(iter(words))
    return Choices(
        title,
        tuple(
            (text, Target(HERE, ((option, "" if value == default else value),)), value == chosen)
            for value, text in words.items()
        ),
    )


def _of_several(
    history: History, series: Sequence[FollowedSeries], points: Mapping[int, Sequence[PointInCourse]], look: Look
) -> Document:
    places = [_place(one) for one in series]
    shared = {key: value for key, value in places[0].items() if all(place.get(key) == value for place in places)}
    differing = list(dict.fromkeys(key for place in places for key in place if key not in shared))
    newest = {number: own[-1] for number, own in points.items()}
    verdicts = [point.verdict for point in newest.values()]
    where = _where(shared)
    what = f"the {len(series)} series" if history.options.top else f"{len(series)} series"
    chosen = f" that changed most since {history.pinned}, by their part of the step" if history.options.top else ""
    versions = counted(len({point.version for own in points.values() for point in own}), "version")
    found = cells.count_changes(newest.values())
    changed = dict.fromkeys(point.version for point in newest.values() if point.verdict in CHANGED)
    each = "" if len({point.version for point in newest.values()}) == 1 else " of each"
    which = f" ({some_of([*changed])})" if each and changed else ""
    answer = f"{found or 'No change'} among {len(series)} series in the newest version{each}{which}"
    if not any(verdicts):
        answer = f"{len(series)} series; the newest version{each} is not judged"
    # the order of the result, but what is a change first
    ranked = list(series)
    if not history.options.top:
        ranked.sort(key=lambda one: newest[one.series_id].verdict not in CHANGED)
    options = history.options
    plot = plot_of(history, ranked, points) if look.has_drawings else None
    values = [_values_of(plot)] if plot is not None else []
    words = option_words(options, "workload", "kind", "shape", "module", "device", "metric", "top", "config")
    words += _range_words(history)
    words += ["--against", "pinned"] if options.against == "pinned" else []
    made = _overview(history, ranked, points, differing, look)
    if history.options.top and any(one.unit != "ns" for one in series):
        made = replace(made, note="; ".join(filter(None, ("memory and rates: by their own change", made.note))))
    following = [command("tracker", "history", str(ranked[0].series_id))]
    if made.more:
        keys = [options.key] if options.key else []
        following.append(command_of(("tracker", "history"), keys, [*words, "--details"]))
    return Document(
        title=": ".join(filter(None, (where, f"{what}{chosen}, {versions}"))),
        headline=answer,
        tone=cells.TONES.get(next((word for word in CHANGED if word in verdicts), ""), ""),
        blocks=(replace(made, chart=plot), *values) if look.has_drawings else (made,),
        remarks=_budgets(history, is_met=False),
        notes=(*_budgets(history, is_met=True), *history.notes),
        next_commands=tuple(following),
    )


def _values_of(plot: Plot) -> Table:
    """Return the numbers of a chart of several series, a line per version, the newest first."""
    columns = [Column("version", lambda at: plot.names[at], left=True)]
    columns += [Column(one.label, _value_at(one)) for one in plot.series]
    rows = range(len(plot.names) - 1, -1, -1)
    return table_of("Values of the chart", columns, rows)


def _value_at(series: PlotSeries) -> Callable[[int], str]:
    text = cells.form(series.unit, series.values)
    return lambda at: text(series.values[at])


def _overview(
    history: History,
    series: Sequence[FollowedSeries],
    points: Mapping[int, Sequence[PointInCourse]],
    differing: Sequence[str],
    look: Look,
    *,
    is_joined: bool = False,
) -> Table:
    """Return a line per series.

    `differing`: keys of the configuration in which they differ; `is_joined`: these stand in one column, for a narrow
    terminal.
    """
    pinned = printable(history.pinned) if history.pinned else None
    rows = []
    for one in series[: None if look.details else look.rows(_ROWS)]:
        place = {_PROFILER: "on"} | _place(one)
        rows.append(_SeriesLine(one, points[one.series_id], tuple(place.get(key) or MISSING_TEXT for key in differing)))
    newest = [row.newest for row in rows]
    titles = [printable(key) for key in differing]
    columns = [
        _line.number("series", lambda row: str(row.series.series_id)),
        _line.text("name", lambda row: cells.readable(row.series.name), **NAME),
        _line.text("of", _what_of_name, **UNDER),
    ]
    if is_joined:
        columns.append(_line.text("configuration", lambda row: " ".join(row.parts), **WORDS))
    else:
        columns += (_line.text(title.replace("_", "\n", 1), _part(at)) for at, title in enumerate(titles))
    columns.append(_line.text("versions", lambda row: cells.sparkline(row.values[-_ROWS:]), drop=2))
    if not is_joined:
        columns.append(_line.number("first", lambda row: row.text(row.first)))
    columns.append(_line.number("last", lambda row: row.text(row.values[-1])))
    of_newest = [_point.number(f"vs {pinned}", _since_pinned)] if pinned else []
    of_newest += [*_change_columns(newest), _point.text("verdict", _verdict)]
    if history.options.against == "pinned" and pinned:
        of_newest.append(_point.text(f"verdict vs {pinned}", _against_pinned))
    columns += map(_of_newest, of_newest)
    more = len(series) - len(rows)
    glosses = cells.glosses_of(ShownVerdict(row.series.name, _word(row.newest), row.newest.reason) for row in rows)
    note = "; ".join(filter(None, (glosses, "--details shows all" if more else "")))
    made = table_of(
        "", level(columns), rows, tone=lambda row: _tone(row.newest), more=more, note=note, is_first=True,
        links=lambda row: Target("history", (("KEY", str(row.series.series_id)),)),
    )  # fmt: skip
    if look.width and not is_joined and not fits(made, look.width):
        made = _overview(history, series, points, differing, look, is_joined=True)
        return replace(made, lead=f"configuration: {' '.join(titles)}")
    return made


class _SeriesLine(Struct, frozen=True):
    """A series beside others. `parts`: its values of the keys of the configuration in which they differ."""

    series: FollowedSeries
    points: Sequence[PointInCourse]
    parts: tuple[str, ...]

    @property
    def newest(self) -> PointInCourse:
        """Its newest point."""
        return self.points[-1]

    @property
    def values(self) -> list[float | None]:
        """The value of each of its points."""
        return [point.value for point in self.points]

    @property
    def first(self) -> float | None:
        """The first value that is known."""
        return next((value for value in self.values if value is not None), None)

    def text(self, value: float | None) -> str:
        """Return a value in the unit that suits all of its values."""
        return cells.form(self.series.unit, self.values)(value)


_line: Final = ColumnsOf(_SeriesLine)


def _what_of_name(row: _SeriesLine) -> str:
    """Return what tells a series from others of its name."""
    part = "" if row.series.kind == "run" else row.series.part
    return " ".join(filter(None, (row.series.input_shapes, part, row.series.step_kind)))


def _part(at: int) -> Callable[[_SeriesLine], str]:
    return lambda row: row.parts[at]


def _of_newest(column: Column) -> Column:
    """Return the column of a point as that of the newest point of a series."""
    return replace(column, cell=lambda row: column.cell(row.newest))


def list_csv(history: History, look: Look) -> dict[str, Rows]:
    """Return the points, each with what is known of its series."""
    points: dict[int, list[HistoryPoint]] = {}
    for point in rows_of(HistoryPoint, history.tables["points"]):
        points.setdefault(point.series_id, []).append(point)
    rows = []
    for series in rows_of(FollowedSeries, history.tables["series"]):
        of_series = asdict(series)
        # these count what all of its points have, and a point has runs of its own
        of_series.pop("runs")
        of_series.pop("versions")
        rows += [of_series | asdict(point) for point in points[series.series_id]]
    return {"points": rows}


VIEW = View(document, csv=list_csv, workbook="history")
