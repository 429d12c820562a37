"""The document of series over versions: one version a line of one series, one series a line of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from tracker.profile.branches import branch_of
from tracker.reports import cells
from tracker.reports.cells import col, of
from tracker.reports.commands import command, command_of, exact_command, option_words
from tracker.reports.document import NAME, UNDER, WORDS, Column, Document, Look, Table, Target, Trend, level
from tracker.reports.rows import Row, records, table_of
from tracker.reports.text import fits
from tracker.results import History
from tracker.results.verdicts import CHANGED, NOT_CONFIRMED
from tracker.units import MISSING_TEXT, counted, format_diff, printable, some_of

_METRICS: Final = {
    "device_self_ns": "device self time", "host_self_ns": "host self time", "total_ns": "time",
    "exposed_ns": "time not hidden by compute", "self_ns": "time without nested calls", "bytes": "bytes allocated",
}  # fmt: skip
_PROFILER: Final = "profiler"
_ROWS: Final = 25
_SPARKS: Final = 60
_NAMED: Final = 4


def document(history: History, look: Look) -> Document:
    """Where the newest version stands, then a line per version, or a line per series where there are several."""
    series, points = records(history.tables["series"]), points_of(history)
    if len(series) != 1:
        return _of_several(history, series, points, look)
    one, own = series[0], points[series[0]["series_id"]]
    where = _where({key: value for key, value in _place(one).items() if key != _PROFILER})
    counts = f"{counted(one['versions'], 'version')}, {counted(one['runs'], 'run')}"
    details = [] if look.details else ["--details"]
    asked = ("tracker", "history", str(one["series_id"]))
    following = [command(*asked, *details), command(*asked, "-o", "history.xlsx")]
    changed = next((point["version"] for point in reversed(own) if point["verdict"] in CHANGED), None)
    if changed is not None:
        words = ("tracker", "findings", "--version", changed, "--workload", str(one["workload"]), "--state", "all")
        following += filter(None, [exact_command(*words)])
    return Document(
        title=f"{series_title(one)} of {where}: {counts}",
        headline=_headline(one, own),
        verdict=own[-1]["verdict"] if own[-1]["verdict"] in CHANGED else "",
        tone=_tone(own[-1]),
        blocks=(_versions(history, one, own, look),),
        notes=history.notes,
        next_commands=tuple(following),
    )


def points_of(history: History) -> dict[int, list[Row]]:
    """The points of each series in the order of versions; each also with `previous`, the last version before it that
    has a value, `vs_previous`, the change against that, `calls_before`, its calls, and `left`, of a point that is back
    at an older level, the version that had left it. No version of a branch follows another one: `vs_previous` is the
    change against the main line there.
    """
    branches = {row["series_id"] for row in records(history.tables["series"]) if branch_of(str(row["workload"]))}
    found: dict[int, list[Row]] = {row["series_id"]: [] for row in records(history.tables["series"])}
    for point in records(history.tables["points"]):
        own = found[point["series_id"]]
        before = next((one for one in reversed(own) if one["value"] is not None), {})
        is_known = before.get("value") and point["value"] is not None
        point["vs_previous"] = point["value"] / before["value"] - 1 if is_known else None
        if point["series_id"] in branches:
            point["vs_previous"], before = point["change"], {}
        point["previous"], point["calls_before"] = before.get("version"), before.get("calls")
        own.append(point)
    for own in found.values():
        level, left_by = own[0]["version"] if own else "", dict[str, str]()
        for point in own:
            point["left"] = left_by.get(point["back_to"])
            if point["change_point"] or point["back_to"] is not None:
                left_by[level], level = point["version"], point["back_to"] or point["version"]
    return found


def series_title(series: Row) -> str:
    """The name of a series, with its shapes or the like, and what it measures."""
    if series["kind"] == "run":
        name = "step time" if series["name"] == "step" else cells.readable(series["name"])
        return " ".join(filter(None, (name, cells.part_of(series))))
    name = " ".join(filter(None, (cells.readable(series["name"]), series["input_shapes"], series["part"])))
    what = ", ".join(filter(None, (cells.KINDS[series["kind"]], _METRICS.get(series["metric"], ""))))
    return f"{name} ({what})"


def _place(series: Row) -> dict[str, str]:
    """Where a series was measured: workload, device, each key of its configuration with its value, and of whole runs
    how, where it was not in a profiler's trace.
    """
    place = {"workload": str(series["workload"]), "device": str(series["device"])}
    place |= dict(cells.pairs(str(series["configuration"])))
    return place | ({_PROFILER: cells.WAYS[series["part"]]} if series["kind"] == "run" and series["part"] else {})


def _where(place: dict[str, str]) -> str:
    own = (f"{key}={value}" for key, value in place.items() if key not in ("workload", "device"))
    return ", ".join(filter(None, (place.get("workload"), place.get("device"), " ".join(own))))


def _headline(series: Row, points: Sequence[Row]) -> str:
    """Where the newest version stands, and with which versions lasting changes came."""
    text = cells.form(series["unit"], [point["value"] for point in points])
    newest = points[-1]
    if newest["value"] is None:
        last = next((point for point in reversed(points) if point["value"] is not None), None)
        before = f"; {last['version']} was at {text(last['value'])}" if last else ""
        return f"{newest['version']} has no {cells.readable(series['name'])}{before}"
    start = f"{newest['version']} is at {text(newest['value'])}"
    if branch_of(str(series["workload"])):
        against = f": {format_diff(newest['change'])} against the main line" if newest["change"] is not None else ""
        return start + against
    if len(points) == 1:
        return f"{start}: the only version, nothing to compare it with"
    if newest["left"] is not None:
        first = next(point for point in points if point["value"] is not None)
        change = newest["value"] / first["value"] - 1 if first["value"] else None
        start += f": back to the level before {newest['left']}"
        start += f", {format_diff(change)} against {first['version']}" if change is not None else ""
    elif newest["verdict"] == "ADDED":
        start += ": new"
    elif newest["change"] is not None:
        start += f": {format_diff(newest['change'])} against the runs before it"
    elif newest["vs_previous"] is not None:
        start += f": {format_diff(newest['vs_previous'])} against {newest['previous']}, not judged"
    if not any(point["verdict"] for point in points):
        return start
    lasting = [point["version"] for point in points if point["change_point"] or point["back_to"] is not None]
    if len(lasting) > _NAMED:
        return f"{start}; {len(lasting)} lasting changes, the newest with {', '.join(lasting[-_NAMED:])}"
    if not lasting:
        return f"{start}; {_why_nothing_lasts(points)}"
    return f"{start}; {'a lasting change' if len(lasting) == 1 else 'lasting changes'} with {', '.join(lasting)}"


def _why_nothing_lasts(points: Sequence[Row]) -> str:
    """Say that no change of a series lasted, or that too few runs tell."""
    verdicts = [point["verdict"] for point in points if point["verdict"]]
    if set(verdicts) == {"TOO_FEW_RUNS"}:
        return "too few runs for a verdict"
    return "later runs decide whether it lasts" if verdicts[-1] == "SUSPECT" else "no lasting change"


def _versions(history: History, series: Row, points: Sequence[Row], look: Look) -> Table:
    """A line per version; with details also what its verdict rests on."""
    shown = points if look.details else points[-_ROWS:]
    values = [point["value"] for point in points]
    text = cells.form(series["unit"], values)
    is_step = series["kind"] == "run" and series["name"] == "step"
    workload = ("--workload", str(series["workload"]))

    def with_previous(point: Row) -> Target | None:
        # what a reader asks of a point: what changed there
        if point["previous"] is None or point["value"] is None:
            return None
        return Target("diff", (("side", point["previous"]), ("side", point["version"]), workload))

    columns = [
        Column("version", lambda point: f"{point['version']}{' (pinned)' if point['pinned'] else ''}", left=True),
        Column("step" if is_step else "value", lambda point: text(point["value"])),
        Column("vs main" if branch_of(str(series["workload"])) else "vs previous",
               lambda point: _change(point, "vs_previous"), link=with_previous),
        Column("verdict", _verdict, left=True),
    ]  # fmt: skip
    if history.pinned and any(point["pinned"] for point in points):
        pinned, is_against = printable(history.pinned), history.options.against == "pinned"
        if is_against or look.details:
            columns.append(col(f"vs {pinned}", "pinned_change", drop=1))
        if is_against:
            columns.append(col(f"verdict vs {pinned}", "pinned_verdict"))
    if look.details:
        spread = ("runs", "value", "minimum", "maximum")
        columns += [
            Column("vs level", lambda point: _change(point, "change")),
            *([Column("without drift", _corrected, drop=2)] if any(map(_corrected, shown)) else []),
            col("q", form=cells.q_text), Column("runs", lambda point: cells.spread(*(point[name] for name in spread))),
        ]  # fmt: skip
        if any(point["calls"] is not None for point in shown):
            columns.append(col("calls", drop=3))
    runs: dict[str, list[float]] = {}
    for run in records(history.tables["runs"]):
        if run["series_id"] == series["series_id"] and run["value"] is not None:
            runs.setdefault(run["version"], []).append(run["value"])
    drawn = [cells.trend_point(point, runs.get(point["version"], ())) for point in shown]
    own = values[-len(shown) :]
    known = [value for value in own if value is not None]
    lead = f"{cells.sparkline(own[-_SPARKS:])}  {text(min(known, default=None))} to {text(max(known, default=None))}"
    left_out = len(points) - len(shown)
    hidden = f"{counted(left_out, 'older version')} left out; --details shows all" if left_out else ""
    note = "; ".join(filter(None, (cells.glosses(map(_word, shown)), hidden)))
    return table_of(
        "", columns, shown, tone=_tone, note=note, is_first=True, lead=lead, below=_what_else,
        chart=Trend(series["unit"], tuple(drawn), tuple(map(with_previous, shown))) if len(shown) > 1 else None,
        links=lambda point: Target("runs", (("--version", str(point["version"])), workload)),
    )  # fmt: skip


def _tone(point: Row) -> str:
    return cells.TONES.get(point["verdict"] or "", "")


def _change(point: Row, name: str) -> str:
    return MISSING_TEXT if point["verdict"] in ("ADDED", "REMOVED") else format_diff(point[name])


def _word(point: Row) -> str:
    return cells.verdict_or_why(point["verdict"], point["vs_previous"], point["change"])


def _verdict(point: Row) -> str:
    """The verdict where there is something to say, and which older level a version came back to."""
    word = _word(point)
    if word and point["since"]:
        return f"{word} (since {point['since']})"
    if word == NOT_CONFIRMED and point["decided_by"]:
        return f"{word} (by {point['decided_by']})"
    if point["left"] is not None:
        return f"{word} (as before {point['left']})".strip()
    return word or ("a level begins" if point["change_point"] else "")


def _corrected(point: Row) -> str:
    """The change without machine-wide drift, where that differs from the raw one by more than rounding; else ""."""
    corrected = _change(point, "judged_change")
    return corrected if corrected not in (MISSING_TEXT, format_diff(point["change"])) else ""


def _what_else(point: Row) -> str:
    """Exact facts of a version, what else changed with it, and that it slowed down gradually."""
    calls, gradual = "", ""
    ends = [cells.number(point[name]) for name in ("calls_before", "calls")]
    if MISSING_TEXT not in ends and ends[0] != ends[1] and "calls" not in point["facts"]:
        calls = f"calls {cells.pair(*ends)}"
    if point["gradual_change"] is not None:
        gradual = f"gradual slowdown: {format_diff(point['gradual_change'])} against the first runs of its level"
    return "; ".join(filter(None, (calls, point["facts"], point["environment"], gradual)))


def _of_several(history: History, series: Sequence[Row], points: dict[int, list[Row]], look: Look) -> Document:
    places = [_place(one) for one in series]
    shared = {key: value for key, value in places[0].items() if all(place.get(key) == value for place in places)}
    differing = list(dict.fromkeys(key for place in places for key in place if key not in shared))
    newest = {number: own[-1] for number, own in points.items()}
    verdicts = [point["verdict"] for point in newest.values()]
    where = _where(shared)
    what = f"the {len(series)} series" if history.options.top else f"{len(series)} series"
    chosen = f" that changed most since {history.pinned}, by their part of the step" if history.options.top else ""
    versions = counted(len({point["version"] for own in points.values() for point in own}), "version")
    found = ", ".join(f"{verdicts.count(word)} {word}" for word in CHANGED if word in verdicts)
    changed = dict.fromkeys(point["version"] for point in newest.values() if point["verdict"] in CHANGED)
    each = "" if len({point["version"] for point in newest.values()}) == 1 else " of each"
    which = f" ({some_of([*changed])})" if each and changed else ""
    answer = f"{found or 'No change'} among {len(series)} series in the newest version{each}{which}"
    if not any(verdicts):
        answer = f"{len(series)} series; the newest version{each} is not judged"
    # the order of the result, but what is a change first
    ranked = list(series)
    if not history.options.top:
        ranked.sort(key=lambda one: newest[one["series_id"]]["verdict"] not in CHANGED)
    options = history.options
    words = option_words(options, "workload", "kind", "shape", "module", "device", "metric", "top", "config")
    words += ["--against", "pinned"] if options.against == "pinned" else []
    made = _overview(history, ranked, points, differing, look)
    following = [command("tracker", "history", str(ranked[0]["series_id"]))]
    if made.more:
        keys = [options.key] if options.key else []
        following.append(command_of(("tracker", "history"), keys, [*words, "--details"]))
    return Document(
        title=": ".join(filter(None, (where, f"{what}{chosen}, {versions}"))),
        headline=answer,
        tone=cells.TONES.get(next((word for word in CHANGED if word in verdicts), ""), ""),
        blocks=(made,),
        notes=history.notes,
        next_commands=tuple(following),
    )


def _overview(
    history: History,
    series: Sequence[Row],
    points: dict[int, list[Row]],
    differing: Sequence[str],
    look: Look,
    *,
    is_joined: bool = False,
) -> Table:
    """A line per series; `differing`: keys of the configuration in which they differ, `is_joined`: in one column,
    for a narrow terminal.
    """
    pinned = printable(history.pinned) if history.pinned else None
    rows = []
    for one in series[: None if look.details else look.rows(_ROWS)]:
        own, place = points[one["series_id"]], {_PROFILER: "on"} | _place(one)
        values = [point["value"] for point in own]
        first = next((value for value in values if value is not None), None)
        parts = [place.get(key) or MISSING_TEXT for key in differing]
        rows.append(own[-1] | one | {"values": values, "ends": (first, values[-1]), "parts": parts})

    def kind(row: Row) -> str:
        return " ".join(filter(None, (row["input_shapes"], "" if row["kind"] == "run" else row["part"])))

    def part(at: int) -> Callable[[Row], str]:
        return lambda row: str(row["parts"][at])

    def end(at: int) -> Callable[[Row], str]:
        return lambda row: cells.form(row["unit"], row["values"])(row["ends"][at])

    titles = [printable(key) for key in differing]
    columns = [Column("series", of("series_id", str)), col("name", **NAME), Column("of", kind, **UNDER)]
    if is_joined:
        columns.append(Column("configuration", lambda row: " ".join(row["parts"]), **WORDS))
    else:
        columns += (Column(title.replace("_", "\n", 1), part(at), left=True) for at, title in enumerate(titles))
    columns += [
        Column("versions", lambda row: cells.sparkline(row["values"][-_ROWS:]), left=True, drop=2),
        *([] if is_joined else [Column("first", end(0))]), Column("last", end(-1)),
        *([col(f"vs {pinned}", "pinned_change")] if pinned else []),
        Column("vs previous", lambda row: _change(row, "vs_previous")), Column("verdict", _verdict, left=True),
    ]  # fmt: skip
    if history.options.against == "pinned" and pinned:
        columns.append(col(f"verdict vs {pinned}", "pinned_verdict"))
    more = len(series) - len(rows)
    words = cells.glosses(_word(points[one["series_id"]][-1]) for one in series[: len(rows)])
    note = "; ".join(filter(None, (words, "--details shows all" if more else "")))
    made = table_of(
        "", level(columns), rows, tone=_tone, more=more, note=note, is_first=True,
        links=lambda row: Target("history", (("KEY", str(row["series_id"])),)),
    )  # fmt: skip
    if look.width and not is_joined and not fits(made, look.width):
        made = _overview(history, series, points, differing, look, is_joined=True)
        return replace(made, lead=f"configuration: {' '.join(titles)}")
    return made
