"""Metrics in the text format of Prometheus, for the textfile collector of node_exporter: `-o` writes the file whole.

Seconds, bytes and ratios; what is not known is left out. No timestamps, which the collector refuses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tracker.compare.gates import gate_of_diff
from tracker.reports.document import Look
from tracker.reports.rows import Row, records
from tracker.results import Diff, Findings
from tracker.results.budgets import JudgedBudget
from tracker.units import NS_PER_S, printable

if TYPE_CHECKING:
    from tracker.results.screens import Result

TITLE = "metrics for Prometheus (textfile of node_exporter)"
SUFFIX = ".prom"
_Metric = tuple[str, str, Mapping[str, Any], float | None]
"""A sample of a gauge: its name with the unit, what it is, labels, and the value; None: not known."""
_MOST: Final = 20
"""Operators and the like that have labels of their own: each is a time series for ever."""
_BAD: Final = frozenset({"new", "persisting", "acknowledged"})
_TIMES: Final = {
    "step": "Step time", "e2e": "Time from the first to the last device activity of a step", "compute": "Compute",
    "exposed_communication": "Communication that no compute hides", "idle": "Idle time: no device activity",
    "data_loading": "Wait for data",
}  # fmt: skip
"""Part of a step -> what it is; without a device, that of the host."""
_TRACK: Final = ("workload", "configuration", "device")
_UNITS: Final = {
    "ns": ("seconds", 1 / NS_PER_S), "bytes": ("bytes", 1.0), "ratio": ("share_ratio", 1.0),
    "per_second": ("per_second", 1.0),
}  # fmt: skip


def render(result: Result, look: Look) -> str:
    """Write the file: all gauges, each declared once before its samples.

    `look.limit` regressions have one of their own. Of samples with the same labels the first one counts.
    """
    metrics = OF[result.word](result, look)
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for name, about, labels, value in metrics:
        if value is not None:
            pairs = ",".join(f'{key}="{_label(text)}"' for key, text in labels.items())
            found.setdefault(name, (about, {}))[1].setdefault(pairs, float(value))
    lines = []
    for name, (about, samples) in found.items():
        lines += [f"# HELP {name} {about}", f"# TYPE {name} gauge"]
        lines += [f"{name}{{{pairs}}} {_number(value)}" for pairs, value in samples.items()]
    return "".join(f"{line}\n" for line in lines)


def _list_metrics_of_diff(diff: Diff, look: Look) -> Iterator[_Metric]:
    """List the times of both sides, the change of each, how many things were judged how, and what fails or may fail."""
    gate = look.gate or gate_of_diff(diff)
    sides = (("baseline", diff.baseline), ("candidate", diff.candidate))
    own: dict[str, Any] = {name: getattr(diff.candidate, name) for name in _TRACK}
    own |= {role: side.label for role, side in sides}
    for part in records(diff.tables["overall"]):
        if part["level"] > 1 or ":" in part["metric"]:  # a category of kernels, a group of ranks
            continue
        labels = {**own, "part": re.sub("_(ns|bytes|share)$", "", part["metric"])}
        for role, _ in sides:
            yield _measured("tracker_diff", part["unit"], {**labels, "side": role}, part[f"{role}_value"])
        yield "tracker_diff_ratio", "Change of a part of a step.", labels, part["diff"]
    counts = Counter((row.section, row.outcome) for row in gate.rows)
    for (section, outcome), count in sorted(counts.items()):
        labels = {**own, "section": section, "outcome": outcome}
        yield "tracker_diff_judged", "How many things were judged so.", labels, count
    yield "tracker_diff_exit_code", "What --fail-on would end with.", {**own, "fail_on": gate.word}, gate.code
    bad = gate.of("failed", "suspect")
    _warn(look, len(bad))
    about = "Change that the verdict of what regressed rests on, without machine-wide drift."
    for row in bad[: look.rows(_MOST)]:
        labels = {**own, "section": row.section, "name": row.name, "detail": row.detail, "outcome": row.outcome}
        yield _measured("tracker_diff_regression", row.unit, labels, row.delta)
        yield "tracker_diff_regression_ratio", about, labels, row.diff


def _list_metrics_of_findings(found: Findings, look: Look) -> Iterator[_Metric]:
    """List the newest version of every track, and its open findings by severity and state."""
    rows = records(found.tables["findings"])
    severity = {row["incident_id"]: row["severity"] for row in records(found.tables["incidents"])}
    for row in rows:
        row["severity"] = severity.get(row["incident_id"], "undecided")
    for track in records(found.tables["lines"]):
        where = {name: track[name] for name in _TRACK}
        yield from _track(track, where)
        yield from _findings([row for row in rows if all(row[name] == where[name] for name in _TRACK)], where, look)
    for budget in found.budgets:
        yield from _budget(budget)


def _track(track: Row, where: Row) -> Iterator[_Metric]:
    labels = {**where, "version": track["version"]}
    yield "tracker_runs", "Active runs.", where, track["runs"]
    when = track["last_run_ns"]
    about = "When the newest run started."
    yield "tracker_last_run_timestamp_seconds", about, labels, None if when is None else when / NS_PER_S
    for part, words in _TIMES.items():
        time = track[f"{part}_ns"]
        about = f"{words}, per step, geometric mean over the runs of the newest version."
        yield f"tracker_{part}_seconds", about, labels, None if time is None else time / NS_PER_S
    for name, about, column in (
        ("tracker_peak_allocated_bytes", "Peak memory of the newest version.", "peak_allocated_bytes"),
        ("tracker_samples_per_second", "Throughput of the newest version.", "samples_per_second"),
        ("tracker_step_change_ratio", "Change of the step of the newest version.", "step_change"),
    ):
        yield name, about, labels, track[column]
    yield "tracker_exit_code", "What --fail-on new would end with.", where, track["gate_new"]


def _budget(one: JudgedBudget) -> Iterator[_Metric]:
    """List whether the newest version of a track keeps a budget, its number and the limit; what is not judged has no
    sample that says so.
    """
    labels = {name: getattr(one, name) for name in (*_TRACK, "version", "series", "limit")}
    is_met = None if one.verdict == "not judged" else float(one.verdict == "met")
    yield "tracker_budget_met", "Whether the usual run of the newest version keeps a budget: 1 or 0.", labels, is_met
    ending, factor = _UNITS.get(one.unit, ("count", 1.0))
    for name, about, value in (
        ("tracker_budget_value", "Median of the runs of the newest version, of a series with a budget.", one.value),
        ("tracker_budget_limit", "The limit of a budget.", one.limit_value),
    ):
        yield f"{name}_{ending}", about, labels, None if value is None else value * factor


def _findings(rows: Sequence[Row], where: Row, look: Look) -> Iterator[_Metric]:
    kinds = ("direction", "severity", "state")
    for values, count in sorted(Counter(tuple(row[kind] for kind in kinds) for row in rows).items()):
        labels = {**where, **dict(zip(kinds, values, strict=True))}
        yield "tracker_findings", "Findings that are listed, by severity and state.", labels, count
    bad = [row for row in rows if row["direction"] == "regression" and row["state"] in _BAD]
    yield "tracker_open_regressions", "Confirmed regressions that are open and bad.", where, len(bad)
    for row in bad[: look.rows(_MOST)]:
        labels = {**where, "finding": row["finding_id"], "kind": row["kind"], "name": row["name"]}
        labels |= {
            "detail": " ".join(filter(None, (row["input_shapes"], row["part"], row["step_kind"]))),
            "since": row["version"],
        }
        labels |= {"severity": row["severity"], "state": row["state"]}
        yield _measured("tracker_finding", row["unit"], labels, row["delta"])
        yield "tracker_finding_ratio", "Change of a regression when it was confirmed.", labels, row["ratio"]
    _warn(look, len(bad))


def _warn(look: Look, count: int) -> None:
    """Say how many regressions have no metric of their own: each is a time series of the monitoring system."""
    most = look.rows(_MOST)
    if most is not None and count > most:
        look.tell(f"{most} of {count} regressions have a metric of their own, the others are counted; --top 0: all")


def _measured(name: str, unit: str, labels: Row, value: float | None) -> _Metric:
    """Return a value in the base unit of its own."""
    ending, factor = _UNITS.get(unit, ("count", 1.0))
    what = "Change of what regressed" if name != "tracker_diff" else "A part of a step of either side"
    return f"{name}_{ending}", f"{what}, per step.", labels, None if value is None else value * factor


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else f"{value:.15g}"


def _label(text: Any) -> str:
    """Write a value between quotation marks.

    >>> _label('a"b')
    'a\\\\"b'
    """
    return printable("" if text is None else str(text)).replace("\\", "\\\\").replace('"', '\\"')


OF: Final[Mapping[str, Callable[[Any, Look], Iterator[_Metric]]]] = {
    "diff": _list_metrics_of_diff,
    "findings": _list_metrics_of_findings,
}
"""Word of a result -> what lists its metrics."""
