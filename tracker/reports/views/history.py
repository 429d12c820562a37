"""The document of series over versions: one version a line of one series, one series a line of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tracker.reports import cells
from tracker.reports.commands import command, command_of, exact_command
from tracker.reports.document import NAME, UNDER, Column, Document, Table, level, table
from tracker.reports.look import Look
from tracker.reports.rows import Row, records
from tracker.results import PROFILERS, History
from tracker.results.verdicts import CHANGED
from tracker.units import MISSING_TEXT, counted, format_diff

KINDS: Final = {
    "run": "whole run", "op_name": "op, all shapes", "op": "op", "kernel": "kernel", "api": "host API call",
    "communication": "communication", "module": "module", "phase": "phase", "memory": "memory of an op",
}  # fmt: skip
"""Kinds of series in words."""
_METRICS: Final = {
    "device_self_ns": "device self time", "host_self_ns": "host self time", "total_ns": "time",
    "exposed_ns": "time not hidden by compute", "self_ns": "time without nested calls", "bytes": "bytes allocated",
}  # fmt: skip
_WAYS: Final = {"unprofiled": "off", "summary": "summary"}
"""Part of a series of whole runs -> word of PROFILERS."""
_PROFILER: Final = "profiler"
_ROWS: Final = 25
_SPARKS: Final = 60
_NAMED: Final = 4


def document(history: History, look: Look) -> Document:
    """Where the newest version stands, then a line per version, or a line per series where there are several."""
    series, points = records(history.series), points_of(history)
    if len(series) == 1:
        return _of_one(history, series[0], points[series[0]["series_id"]], look)
    return _of_several(history, series, points, look)


def points_of(history: History) -> dict[int, list[Row]]:
    """The points of each series in the order of versions. Against the last version before that has a value each has
    `vs_previous`, its change, and `calls_before`, its calls.
    """
    found: dict[int, list[Row]] = {row["series_id"]: [] for row in records(history.series)}
    for point in records(history.points):
        own = found[point["series_id"]]
        before = next((one for one in reversed(own) if one["value"] is not None), {"value": None, "calls": None})
        is_known = before["value"] and point["value"] is not None
        point["vs_previous"] = point["value"] / before["value"] - 1 if is_known else None
        point["calls_before"] = before["calls"]
        own.append(point)
    return found


def series_title(series: Row) -> str:
    """The name of a series, with its shapes or the like, and what it measures."""
    if series["kind"] == "run":
        way = PROFILERS[_WAYS[series["part"]]] if series["part"] in _WAYS else series["part"]
        name = "step time" if series["name"] == "step" else cells.readable(series["name"])
        return " ".join(filter(None, (name, way)))
    name = " ".join(filter(None, (cells.readable(series["name"]), series["input_shapes"], series["part"])))
    what = ", ".join(filter(None, (KINDS[series["kind"]], _METRICS.get(series["metric"], ""))))
    return f"{name} ({what})"


def _place(series: Row) -> dict[str, str]:
    """Where a series was measured: workload, device, each key of its configuration with its value, and of whole runs
    how, where it was not in a profiler's trace.
    """
    place = {"workload": str(series["workload"]), "device": str(series["device"])}
    place |= dict(cells.pairs(str(series["configuration"])))
    return place | ({_PROFILER: _WAYS[series["part"]]} if series["kind"] == "run" and series["part"] else {})


def _where(place: dict[str, str]) -> str:
    own = (f"{key}={value}" for key, value in place.items() if key not in ("workload", "device"))
    return ", ".join(filter(None, (place.get("workload"), place.get("device"), " ".join(own))))


def _of_one(history: History, series: Row, points: Sequence[Row], look: Look) -> Document:
    where = _where({key: value for key, value in _place(series).items() if key != _PROFILER})
    counts = f"{counted(series['versions'], 'version')}, {counted(series['runs'], 'run')}"
    newest = points[-1]["verdict"]
    number = str(series["series_id"])
    following = [command("tracker", "history", number, "--details"), "-o history.xlsx"]
    changed = next((point["version"] for point in reversed(points) if point["verdict"] in CHANGED), None)
    if changed is not None:
        words = ("tracker", "findings", "--version", changed, "--workload", str(series["workload"]), "--state", "all")
        following += filter(None, [exact_command(*words)])
    return Document(
        title=f"{series_title(series)} of {where}: {counts}",
        headline=_standing(series, points),
        verdict=newest if newest in CHANGED else "",
        tone=cells.TONES.get(newest or "", ""),
        blocks=(_versions(history, series, points, look),),
        notes=history.notes,
        next_commands=tuple(following),
    )


def _standing(series: Row, points: Sequence[Row]) -> str:
    """Where the newest version stands, and with which versions lasting changes came."""
    text = cells.form(series["unit"], [point["value"] for point in points])
    newest = points[-1]
    if newest["value"] is None:
        last = next((point for point in reversed(points) if point["value"] is not None), None)
        before = f"; {last['version']} was at {text(last['value'])}" if last else ""
        return f"{newest['version']} has no {cells.readable(series['name'])}{before}"
    start = f"{newest['version']} is at {text(newest['value'])}"
    if len(points) == 1:
        return f"{start}: the only version, nothing to compare it with"
    if newest["back_to"] is not None:
        start += f": back to the level of {newest['back_to']}"
    elif newest["verdict"] == "ADDED":
        start += ": new"
    elif newest["change"] is not None:
        start += f": {format_diff(newest['change'])} against the runs before it"
    elif newest["vs_previous"] is not None:
        start += f": {format_diff(newest['vs_previous'])} against {points[-2]['version']}, not judged"
    if not any(point["verdict"] for point in points):
        return start
    lasting = [point["version"] for point in points if point["change_point"] or point["back_to"] is not None]
    if len(lasting) > _NAMED:
        return f"{start}; {len(lasting)} lasting changes, the newest with {', '.join(lasting[-_NAMED:])}"
    changes = f"lasting changes with {', '.join(lasting)}" if lasting else "no lasting change"
    return f"{start}; {changes}"


def _versions(history: History, series: Row, points: Sequence[Row], look: Look) -> Table:
    """A line per version; with details also what its verdict rests on."""
    shown = points if look.details else points[-_ROWS:]
    text = cells.form(series["unit"], [point["value"] for point in points])
    is_step = series["kind"] == "run" and series["name"] == "step"
    pinned = history.pinned if any(point["pinned"] for point in points) else None
    against = pinned if history.options.against == "pinned" else None
    with_drift = look.details and any(_corrected(point) for point in shown)
    columns = [Column("version", left=True), Column("step" if is_step else "value"), Column("vs previous")]
    columns += [Column("verdict", left=True)]
    columns += [Column(f"vs {pinned}", drop=1)] if pinned and (look.details or against) else []
    columns += [Column(f"verdict vs {pinned}", left=True)] if against else []
    if look.details:
        columns += [Column("vs level"), *([Column("without drift", drop=2)] if with_drift else [])]
        columns += [Column("q"), Column("runs"), Column("calls", drop=3)]
    rows: list[tuple[str, list[str]]] = []
    for point in shown:
        gone = point["verdict"] in ("ADDED", "REMOVED")
        line = [f"{point['version']}{' (pinned)' if point['pinned'] else ''}", text(point["value"])]
        line += [MISSING_TEXT if gone else format_diff(point["vs_previous"]), _verdict(point)]
        line += [format_diff(point["pinned_change"])] if pinned and (look.details or against) else []
        line += [point["pinned_verdict"] or MISSING_TEXT] if against else []
        if look.details:
            line += [MISSING_TEXT if gone else format_diff(point["change"])]
            line += [_corrected(point)] if with_drift else []
            runs = cells.spread(point["runs"], point["value"], point["minimum"], point["maximum"])
            line += [cells.q_text(point["q"]), runs, cells.number(point["calls"])]
        rows.append((cells.TONES.get(point["verdict"] or "", ""), line))
    values = [point["value"] for point in shown]
    known = [value for value in values if value is not None]
    lead = f"{cells.sparkline(values[-_SPARKS:])}  {text(min(known, default=None))} to {text(max(known, default=None))}"
    left_out = len(points) - len(shown)
    note = f"{counted(left_out, 'older version')} left out; --details shows all" if left_out else ""
    return replace(
        table("", columns, rows, note=note, is_first=True),
        lead=lead,
        below=tuple(map(_what_else, shown)) if rows else (),
    )


def _verdict(point: Row) -> str:
    """The verdict where there is something to say, and which older level a version came back to."""
    word = cells.verdict_or_why(point["verdict"], point["vs_previous"], point["change"])
    if point["back_to"] is not None:
        return f"{word} (back to {point['back_to']})".strip()
    return word or ("a level begins" if point["change_point"] else "")


def _corrected(point: Row) -> str:
    """The change without machine-wide drift, where that differs from the raw one by more than rounding; else ""."""
    if point["judged_change"] is None or point["verdict"] in ("ADDED", "REMOVED"):
        return ""
    corrected = format_diff(point["judged_change"])
    return corrected if corrected != format_diff(point["change"]) else ""


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
    versions = counted(max(len(own) for own in points.values()), "version")
    found = ", ".join(f"{verdicts.count(word)} {word}" for word in CHANGED if word in verdicts)
    answer = f"{found or 'No change'} among {len(series)} series in the newest version"
    if not any(verdicts):
        answer = f"{len(series)} series; the newest version is not judged"
    # the order of the result, but what is a change first
    ranked = list(series)
    if not history.options.top:
        ranked.sort(key=lambda one: newest[one["series_id"]]["verdict"] not in CHANGED)
    asked = history.options
    names = ("workload", "kind", "shape", "module", "device", "metric", "top")
    words = [word for name in names if (value := getattr(asked, name)) for word in (f"--{name}", str(value))]
    words += [word for key, value in asked.config.items() for word in ("--config", f"{key}={value}")]
    words += ["--against", "pinned", "--details"] if asked.against == "pinned" else ["--details"]
    following = [command("tracker", "history", str(ranked[0]["series_id"]))]
    following += [command_of(("tracker", "history"), [asked.key] if asked.key else [], words)]
    return Document(
        title=": ".join(filter(None, (where, f"{what}{chosen}, {versions}"))),
        headline=answer,
        tone=cells.TONES.get(next((word for word in CHANGED if word in verdicts), ""), ""),
        blocks=(_overview(history, ranked, points, differing, look),),
        notes=history.notes,
        next_commands=tuple(following),
    )


def _overview(
    history: History, series: Sequence[Row], points: dict[int, list[Row]], differing: Sequence[str], look: Look
) -> Table:
    """A line per series; `differing`: keys of the configuration in which they differ."""
    against = history.pinned if history.options.against == "pinned" else None
    columns = [Column("series"), Column("name", **NAME), Column("of", **UNDER)]
    columns += [Column(key.replace("_", "\n", 1), left=True) for key in differing]
    columns += [Column("versions", left=True, drop=2), Column("first"), Column("last")]
    columns += [Column(f"vs {history.pinned}")] if history.pinned else []
    columns += [Column("vs previous"), Column("verdict", left=True)]
    columns += [Column(f"verdict vs {against}", left=True)] if against else []
    limit = None if look.details else look.rows(_ROWS)
    rows: list[tuple[str, list[str]]] = []
    for one in series[:limit]:
        own = points[one["series_id"]]
        place = {_PROFILER: "on"} | _place(one)
        of = (one["input_shapes"], "" if one["kind"] == "run" else one["part"])
        values = [point["value"] for point in own]
        text, last = cells.form(one["unit"], values), own[-1]
        line = [str(one["series_id"]), cells.readable(one["name"]), " ".join(filter(None, of))]
        line += [place.get(key) or MISSING_TEXT for key in differing]
        line += [cells.sparkline(values[-_ROWS:]), text(next((value for value in values if value is not None), None))]
        line += [text(values[-1]), *([format_diff(last["pinned_change"])] if history.pinned else [])]
        gone = last["verdict"] in ("ADDED", "REMOVED")
        line += [MISSING_TEXT if gone else format_diff(last["vs_previous"]), _verdict(last)]
        line += [last["pinned_verdict"] or MISSING_TEXT] if against else []
        rows.append((cells.TONES.get(last["verdict"] or "", ""), line))
    more = len(series) - len(rows)
    return table("", level(columns), rows, more=more, note="--details shows all" if more else "", is_first=True)
