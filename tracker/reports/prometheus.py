"""Metrics in the text format of Prometheus, for the textfile collector of node_exporter: `-o` writes the file whole.

Seconds, bytes and ratios; what is not known is left out. No timestamps, which the collector refuses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from tracker.compare.gates import gate_of_diff
from tracker.reports.document import Look
from tracker.reports.rows import rows_of
from tracker.results import Diff, Findings, Side
from tracker.results.budgets import JudgedBudget
from tracker.results.diff_rows import OverallRow
from tracker.results.findings import ListedFinding, ListedIncident, TrackStanding
from tracker.units import NS_PER_S, printable

if TYPE_CHECKING:
    from tracker.results.screens import Result

TITLE = "metrics for Prometheus (textfile of node_exporter)"
SUFFIX = ".prom"


class Sample(Struct, frozen=True):
    """A sample of a gauge.

    `name`: with the unit; `about`: what it is; `labels`: their values, None is written as ""; `value`: None: not known.
    """

    name: str
    about: str
    labels: Mapping[str, object]
    value: float | None


class _Where(Struct, frozen=True):
    """The labels of a track."""

    workload: str
    configuration: str
    device: str


_MOST: Final = 20
"""Operators and the like that have labels of their own: each is a time series for ever."""
_BAD: Final = frozenset({"new", "persisting", "acknowledged"})
_TIMES: Final = {
    "step": "Step time", "e2e": "Time from the first to the last device activity of a step", "compute": "Compute",
    "exposed_communication": "Communication that no compute hides", "idle": "Idle time: no device activity",
    "data_loading": "Wait for data",
}  # fmt: skip
"""Part of a step -> what it is; without a device, that of the host."""
_UNITS: Final = {
    "ns": ("seconds", 1 / NS_PER_S), "bytes": ("bytes", 1.0), "ratio": ("share_ratio", 1.0),
    "per_second": ("per_second", 1.0),
}  # fmt: skip


def render(result: Result, look: Look) -> str:
    """Write the file: all gauges, each declared once before its samples.

    `look.limit` regressions have one of their own. Of samples with the same labels the first one counts.
    """
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for sample in OF[result.word](result, look):
        if sample.value is not None:
            pairs = ",".join(f'{key}="{_label(text)}"' for key, text in sample.labels.items())
            found.setdefault(sample.name, (sample.about, {}))[1].setdefault(pairs, float(sample.value))
    lines = []
    for name, (about, samples) in found.items():
        lines += [f"# HELP {name} {about}", f"# TYPE {name} gauge"]
        lines += [f"{name}{{{pairs}}} {_number(value)}" for pairs, value in samples.items()]
    return "".join(f"{line}\n" for line in lines)


def _list_metrics_of_diff(diff: Diff, look: Look) -> Iterator[Sample]:
    """List the times of both sides, the change of each, how many things were judged how, and what fails or may fail."""
    gate = look.gate or gate_of_diff(diff)
    sides = (("baseline", diff.baseline), ("candidate", diff.candidate))
    own: dict[str, object] = asdict(_where_of(diff.candidate))
    own |= {role: side.label for role, side in sides}
    for part in rows_of(OverallRow, diff.tables["overall"]):
        if part.level > 1 or ":" in part.metric:  # a category of kernels, a group of ranks
            continue
        labels = {**own, "part": re.sub("_(ns|bytes|share)$", "", part.metric)}
        yield _measured("tracker_diff", part.unit, {**labels, "side": "baseline"}, part.baseline_value)
        yield _measured("tracker_diff", part.unit, {**labels, "side": "candidate"}, part.candidate_value)
        yield Sample("tracker_diff_ratio", "Change of a part of a step.", labels, part.diff)
    counts = Counter((row.section, row.outcome) for row in gate.rows)
    for (section, outcome), count in sorted(counts.items()):
        labels = {**own, "section": section, "outcome": outcome}
        yield Sample("tracker_diff_judged", "How many things were judged so.", labels, count)
    fail_on = {**own, "fail_on": gate.word}
    yield Sample("tracker_diff_exit_code", "What --fail-on would end with.", fail_on, gate.code)
    bad = gate.of("failed", "suspect")
    _warn(look, len(bad))
    about = "Change that the verdict of what regressed rests on, without machine-wide drift."
    for row in bad[: look.rows(_MOST)]:
        labels = {**own, "section": row.section, "name": row.name, "detail": row.detail, "outcome": row.outcome}
        yield _measured("tracker_diff_regression", row.unit, labels, row.delta)
        yield Sample("tracker_diff_regression_ratio", about, labels, row.diff)


def _list_metrics_of_findings(found: Findings, look: Look) -> Iterator[Sample]:
    """List the newest version of every track, and its open findings by severity and state."""
    findings = rows_of(ListedFinding, found.tables["findings"])
    incidents = rows_of(ListedIncident, found.tables["incidents"])
    severities = {incident.incident_id: incident.severity for incident in incidents}
    for track in rows_of(TrackStanding, found.tables["lines"]):
        where = _where_of(track)
        own = [
            _RatedFinding(one, severities.get(one.incident_id, "undecided"))
            for one in findings
            if _where_of(one) == where
        ]
        yield from _list_samples_of_track(track)
        yield from _list_samples_of_findings(own, where, look)
    for budget in found.budgets:
        yield from _budget(budget)


class _RatedFinding(Struct, frozen=True):
    """A finding with the severity of its incident."""

    row: ListedFinding
    severity: str

    @property
    def kind(self) -> tuple[str, str, str]:
        """What findings are counted by."""
        return self.row.direction, self.severity, self.row.state


def _where_of(row: TrackStanding | ListedFinding | JudgedBudget | Side) -> _Where:
    return _Where(row.workload, row.configuration, row.device)


def _list_samples_of_track(track: TrackStanding) -> Iterator[Sample]:
    where = asdict(_where_of(track))
    labels = {**where, "version": track.version}
    yield Sample("tracker_runs", "Active runs.", where, track.runs)
    about = "When the newest run started."
    yield Sample("tracker_last_run_timestamp_seconds", about, labels, _seconds(track.last_run_ns))
    for part, words in _TIMES.items():
        about = f"{words}, per step, geometric mean over the runs of the newest version."
        yield Sample(f"tracker_{part}_seconds", about, labels, _seconds(getattr(track, f"{part}_ns")))
    about = "Peak memory of the newest version."
    yield Sample("tracker_peak_allocated_bytes", about, labels, track.peak_allocated_bytes)
    about = "Throughput of the newest version."
    yield Sample("tracker_samples_per_second", about, labels, track.samples_per_second)
    about = "Change of the step of the newest version."
    yield Sample("tracker_step_change_ratio", about, labels, track.step_change)
    yield Sample("tracker_exit_code", "What --fail-on new would end with.", where, track.gate_new)


def _seconds(time_ns: float | None) -> float | None:
    return None if time_ns is None else time_ns / NS_PER_S


def _budget(one: JudgedBudget) -> Iterator[Sample]:
    """List whether the newest version of a track keeps a budget, its number and the limit; what is not judged has no
    sample that says so.
    """
    labels = asdict(_where_of(one)) | {"version": one.version, "series": one.series, "limit": one.limit}
    is_met = None if one.verdict == "not judged" else float(one.verdict == "met")
    about = "Whether the usual run of the newest version keeps a budget: 1 or 0."
    yield Sample("tracker_budget_met", about, labels, is_met)
    ending, factor = _UNITS.get(one.unit, ("count", 1.0))
    for name, about, value in (
        ("tracker_budget_value", "Median of the runs of the newest version, of a series with a budget.", one.value),
        ("tracker_budget_limit", "The limit of a budget.", one.limit_value),
    ):
        yield Sample(f"{name}_{ending}", about, labels, None if value is None else value * factor)


def _list_samples_of_findings(findings: Sequence[_RatedFinding], where: _Where, look: Look) -> Iterator[Sample]:
    of_track = asdict(where)
    for (direction, severity, state), count in sorted(Counter(one.kind for one in findings).items()):
        labels = {**of_track, "direction": direction, "severity": severity, "state": state}
        yield Sample("tracker_findings", "Findings that are listed, by severity and state.", labels, count)
    bad = [one for one in findings if one.row.direction == "regression" and one.row.state in _BAD]
    yield Sample("tracker_open_regressions", "Confirmed regressions that are open and bad.", of_track, len(bad))
    for one in bad[: look.rows(_MOST)]:
        row = one.row
        labels = {**of_track, "finding": row.finding_id, "kind": row.kind, "name": row.name}
        labels |= {
            "detail": " ".join(filter(None, (row.input_shapes, row.part, row.step_kind))),
            "since": row.version,
            "severity": one.severity,
            "state": row.state,
        }
        yield _measured("tracker_finding", row.unit, labels, row.delta)
        yield Sample("tracker_finding_ratio", "Change of a regression when it was confirmed.", labels, row.ratio)
    _warn(look, len(bad))


def _warn(look: Look, count: int) -> None:
    """Say how many regressions have no metric of their own: each is a time series of the monitoring system."""
    most = look.rows(_MOST)
    if most is not None and count > most:
        look.tell(f"{most} of {count} regressions have a metric of their own, the others are counted; --top 0: all")


def _measured(name: str, unit: str, labels: Mapping[str, object], value: float | None) -> Sample:
    """Return a value in the base unit of its own."""
    ending, factor = _UNITS.get(unit, ("count", 1.0))
    what = "Change of what regressed" if name != "tracker_diff" else "A part of a step of either side"
    return Sample(f"{name}_{ending}", f"{what}, per step.", labels, None if value is None else value * factor)


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else f"{value:.15g}"


def _label(text: Any) -> str:
    """Write a value between quotation marks.

    >>> _label('a"b')
    'a\\\\"b'
    """
    return printable("" if text is None else str(text)).replace("\\", "\\\\").replace('"', '\\"')


OF: Final[Mapping[str, Callable[[Any, Look], Iterator[Sample]]]] = {
    "diff": _list_metrics_of_diff,
    "findings": _list_metrics_of_findings,
}
"""Word of a result -> what lists its metrics."""
