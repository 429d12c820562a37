"""Series over versions for people: one in full, several as one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from tracker.reports._human import (
    NAME,
    PAIR,
    UNDER,
    Column,
    Row,
    Table,
    level,
    make,
    number,
    series_name,
    share,
)
from tracker.reports._human_verdicts import TONES
from tracker.reports.shared import command, records
from tracker.results import PROFILERS, History
from tracker.units import MISSING_TEXT, counted, format_bytes, format_diff, format_ns, size_unit, time_unit

_BARS: Final = "▁▂▃▄▅▆▇█"
_GAP: Final = "·"
_METRICS: Final = {
    "device_self_ns": "device self time", "host_self_ns": "host self time", "total_ns": "time",
    "exposed_ns": "time not hidden by compute", "self_ns": "time without nested calls", "bytes": "bytes allocated",
}  # fmt: skip
KINDS: Final = {
    "run": "of the run as a whole", "op_name": "op, all shapes", "op": "op", "kernel": "kernel", "api": "host API call",
    "communication": "communication", "module": "module", "phase": "phase", "memory": "memory of an op",
}  # fmt: skip
NOTE: Final = (
    "A run's value is the median over its steps, a version's the geometric mean of its runs. Changes are against the "
    "newest 8 runs of the level before; a level begins with a lasting change."
)

_PROFILER: Final = "profiler"
_WAYS: Final = {
    "unprofiled": ("off", PROFILERS["off"]),
    "summary": ("summary", PROFILERS["summary"]),
}
"""Part of a run-level series -> how it was measured, as a word of the profiler's settings and in a sentence."""


def header(history: History) -> list[str]:
    """What is shown: of one series its name, of several how many."""
    series = records(history.series)
    first = series[0]
    shared = _shared(series)
    names = [shared.pop(key) for key in ("workload", "device") if key in shared]
    if len(series) == 1:
        shared.pop(_PROFILER, None)  # its title says it
    where = ", ".join(filter(None, (*names, " ".join(f"{key}={value}" for key, value in shared.items()))))
    if history.options.top:
        return [
            f"{where}: the {len(series)} series that changed most since {history.pinned}, by their part of the step"
        ]
    if len(series) > 1:
        return [f"{where}: {len(series)} series"]
    counts = f"{counted(first['versions'], 'version')}, {counted(first['runs'], 'run')}"
    return [f"{title(first)} ({what(first)}): {where}; {counts}; series {first['series_id']}"]


def _place(series: Row) -> dict[str, str]:
    """Where a series was measured: workload, device, each key of its configuration with its value, and of whole runs
    how, where it was not in a profiler's trace.
    """
    pairs = (pair.partition("=") for pair in PAIR.split(str(series["configuration"])) if pair)
    way = {_PROFILER: _WAYS[series["part"]][0]} if series["kind"] == "run" and series["part"] else {}
    return {"workload": str(series["workload"]), "device": str(series["device"])} | {
        key: value for key, _, value in pairs
    } | way  # fmt: skip


def _shared(series: Sequence[Row]) -> dict[str, str]:
    """What all `series` have in common of where they were measured."""
    first, *others = [_place(one) for one in series]
    return {key: value for key, value in first.items() if all(place.get(key) == value for place in others)}


def _differing(series: Sequence[Row]) -> list[str]:
    """The keys of `_place` in which `series` differ."""
    shared = _shared(series)
    return [key for key in dict.fromkeys(key for one in series for key in _place(one)) if key not in shared]


def title(series: Row) -> str:
    """The name of a series with what tells it from others of the name."""
    part = _WAYS.get(series["part"], ("", series["part"]))[1] if series["kind"] == "run" else series["part"]
    return " ".join(filter(None, (series_name(series), series["input_shapes"], part)))


def what(series: Row) -> str:
    """What a series measures, in words."""
    words = _METRICS.get(series["metric"], "")
    return ", ".join(filter(None, (KINDS[series["kind"]], words)))


def tables(history: History) -> list[Table]:
    """The line of one series, or an overview of several."""
    series = records(history.series)
    points = points_of(history)
    if len(series) == 1:
        return [_line(history, series[0], points[series[0]["series_id"]])]
    return [_overview(history, series, points)]


def points_of(history: History) -> dict[int, list[Row]]:
    """The points of each series, in the order of versions."""
    found: dict[int, list[Row]] = {row["series_id"]: [] for row in records(history.series)}
    for point in records(history.points):
        found[point["series_id"]].append(point)
    return found


def sparkline(values: Sequence[float | None]) -> str:
    """The course of `values` as bars from the smallest to the largest; None is a gap.

    >>> sparkline([1.0, 1.0, None, 2.0, 1.5]), sparkline([3.0, 3.0])
    ('▁▁·█▄', '▁▁')
    """
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_GAP if value is None else _BARS[int((value - low) * scale + 1e-9)] for value in values)


def form(unit: str, values: Sequence[float | None]) -> Callable[[float | None], str]:
    """How the values of a series are written: in one unit."""
    if unit == "ns":
        return partial(format_ns, unit=time_unit(*values))
    if unit == "bytes":
        return partial(format_bytes, unit=size_unit(*values))
    return number


def _line(history: History, series: Row, points: Sequence[Row]) -> Table:
    shown = form(series["unit"], [point["value"] for point in points])
    pinned = [point["version"] for point in points if point["pinned"]]
    corrected = any(_corrected(point) for point in points)
    counted_calls = any(point["calls"] is not None for point in points)
    columns = [Column("version", left=True), Column("value"), Column("change")]
    columns += [Column("without drift", drop=1)] if corrected else []
    columns += [Column("verdict", left=True), *([Column(f"vs {pinned[0]}", drop=2)] if pinned else [])]
    is_against = history.options.against == "pinned"
    columns += [Column(f"verdict vs {pinned[0]}", left=True)] if pinned and is_against else []
    columns += [Column("runs", drop=3), *([Column("calls", drop=4)] if counted_calls else [])]
    rows: list[tuple[str, list[str]]] = []
    for point in points:
        cells = [f"{point['version']}{' (pinned)' if point['pinned'] else ''}", shown(point["value"]), _change(point)]
        cells += [_corrected(point)] if corrected else []
        cells += [_verdict(point), *([format_diff(point["pinned_change"])] if pinned else [])]
        cells += [point["pinned_verdict"] or MISSING_TEXT] if pinned and is_against else []
        cells += [_runs(point), *([number(point["calls"])] if counted_calls else [])]
        rows.append((TONES.get(point["verdict"] or "", ""), cells))
    below = tuple(_between(points, place) for place in range(len(points)))
    values = [point["value"] for point in points]
    known = [value for value in values if value is not None]
    lead = f"{sparkline(values)}  {shown(min(known, default=None))} to {shown(max(known, default=None))}"
    note = "without drift: the change without the machine-wide drift, by which the verdict is" if corrected else ""
    return replace(make("", columns, rows, note=note), below=below, lead=lead)


def _between(points: Sequence[Row], place: int) -> str:
    """What stands under a row: that it slowed down gradually, or is back at an older level; of the next one that a
    level begins with it, what changed of it for certain, and what else changed.
    """
    point = points[place]
    found = []
    if point["gradual_change"] is not None:
        found.append(f"gradual slowdown: {format_diff(point['gradual_change'])} against the first runs of its level")
    if point["back_to"] is not None:
        found.append(f"back to the level of {point['back_to']}")
    if place + 1 < len(points):
        following = points[place + 1]
        if following["change_point"]:
            found.append(f"lasting change from {following['version']} on")
        also = "; ".join(filter(None, (following["facts"], following["environment"])))
        if also:
            found.append(f"with {following['version']}: {also}")
    return "; ".join(found)


def _change(point: Row) -> str:
    return MISSING_TEXT if point["verdict"] in ("ADDED", "REMOVED") else format_diff(point["change"])


def _corrected(point: Row) -> str:
    """The change without machine-wide drift, where that differs from the raw one by more than rounding; else ""."""
    if point["judged_change"] is None or point["verdict"] in ("ADDED", "REMOVED"):
        return ""
    text = format_diff(point["judged_change"])
    return text if text != format_diff(point["change"]) else ""


def _verdict(point: Row) -> str:
    return point["verdict"] or MISSING_TEXT


def _runs(point: Row) -> str:
    """How many runs, and how far they lie from the middle of their range."""
    if point["runs"] < 2 or not point["value"]:
        return str(point["runs"])
    return f"{point['runs']}, ±{share((point['maximum'] - point['minimum']) / 2 / point['value'])}"


def _overview(history: History, series: Sequence[Row], points: dict[int, list[Row]]) -> Table:
    is_against = history.options.against == "pinned" and history.pinned is not None
    columns = [
        Column("series"), Column("name", **NAME), Column("of", **UNDER), Column("versions", left=True, drop=2),
        Column("first"), Column("last"), *([Column(f"vs {history.pinned}")] if history.pinned else []),
        Column("change"), Column("verdict", left=True),
        *([Column(f"verdict vs {history.pinned}", left=True)] if is_against else []),
    ]  # fmt: skip
    keys = _differing(series)
    columns[3:3] = [Column(key.replace("_", "\n", 1), left=True) for key in keys]
    rows: list[tuple[str, list[str]]] = []
    for one in series:
        own = points[one["series_id"]]
        place = {_PROFILER: "on"} | _place(one)
        of = (one["input_shapes"], "" if one["kind"] == "run" else one["part"])
        values = [point["value"] for point in own]
        shown = form(one["unit"], values)
        last = own[-1]
        cells = [
            str(one["series_id"]), series_name(one), " ".join(filter(None, of)),
            *(place.get(key) or MISSING_TEXT for key in keys),
            sparkline(values), shown(next((value for value in values if value is not None), None)), shown(values[-1]),
            *([format_diff(last["pinned_change"])] if history.pinned else []), _change(last), _verdict(last),
            *([last["pinned_verdict"] or MISSING_TEXT] if is_against else []),
        ]  # fmt: skip
        rows.append((TONES.get(last["verdict"] or "", ""), cells))
    return make("", level(columns), rows)


def answer(history: History) -> str:
    """Where the newest version stands, and with which versions lasting changes came."""
    series = records(history.series)
    points = points_of(history)
    if len(series) > 1:
        last = [points[one["series_id"]][-1]["verdict"] for one in series]
        if not any(last):
            return f"{len(series)} series; the newest version is not judged."
        words = [f"{last.count(word)} {word}" for word in ("REGRESSED", "ADDED", "SUSPECT", "IMPROVED", "REMOVED")]
        found = ", ".join(word for word in words if not word.startswith("0 ")) or "no change"
        return f"{found} among {len(series)} series in the newest version."
    own = points[series[0]["series_id"]]
    shown = form(series[0]["unit"], [point["value"] for point in own])
    newest = next((point for point in reversed(own) if point["value"] is not None), own[-1])
    changes = [point["version"] for point in own if point["change_point"]]
    since = f"lasting changes with {', '.join(changes)}" if changes else "no lasting change"
    if not any(point["verdict"] for point in own):
        since = "not judged" if len(own) > 1 else "one version, nothing before it"
    return f"{title(series[0])}: {shown(newest['value'])} in {newest['version']}; {since}."


def hint(history: History) -> str:
    """The command that shows more."""
    series = records(history.series)
    if len(series) > 1:
        return f"Details: {command('tracker', 'history', str(series[0]['series_id']))}"
    return f"Runs and environment: {command('tracker', 'history', str(series[0]['series_id']), '-o', 'history.xlsx')}"
