"""Metrics in the text format of Prometheus, for the textfile collector of node_exporter: `-o` writes the file whole.

Seconds, bytes and ratios; what is not known is left out. No timestamps, which the collector refuses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tracker.reports import _gated
from tracker.reports.shared import Style, records
from tracker.results import Diff, Findings
from tracker.units import NS_PER_S, printable

TITLE = "metrics for Prometheus (textfile of node_exporter)"
SUFFIX = ".prom"
BINARY = False

_MOST: Final = 20
"""Operators and the like that have labels of their own: each is a time series for ever."""
_BAD: Final = frozenset({"new", "persisting", "acknowledged"})
_TIMES: Final = {
    "step": "Step time", "e2e": "Time from the first to the last device activity of a step", "compute": "Compute",
    "exposed_communication": "Communication that no compute hides", "idle": "Idle time: no device activity",
    "data_loading": "Wait for data",
}  # fmt: skip
"""Part of a step -> what it is; without a device, that of the host."""

_LINE: Final = ("workload", "configuration", "device")

Labels = Mapping[str, Any]


def diff(diff: Diff, style: Style) -> str:
    """The times of both sides, DIFF of each, how many things were judged how, and what fails or may fail."""
    page, gate = _Page(), _gated.gate_of(diff, style)
    sides = (("baseline", diff.baseline), ("candidate", diff.candidate))
    own = {name: getattr(diff.candidate, name) for name in _LINE} | {role: side.label for role, side in sides}
    for part in records(diff.tables["overall"]):
        if part["level"] > 1 or ":" in part["metric"]:  # a category of kernels, a group of ranks
            continue
        labels = {**own, "part": re.sub("_(ns|bytes|share)$", "", part["metric"])}
        for role, _ in sides:
            page.measured("tracker_diff", part["unit"], {**labels, "side": role}, part[f"{role}_value"])
        page.add("tracker_diff_ratio", "DIFF of a part of a step.", labels, part["diff"])
    counts = Counter((row.section, row.outcome) for row in gate.rows)
    for (section, outcome), count in sorted(counts.items()):
        labels = {**own, "section": section, "outcome": outcome}
        page.add("tracker_diff_judged", "How many things were judged so.", labels, count)
    page.add("tracker_diff_exit_code", "What --fail-on would end with.", {**own, "fail_on": gate.word}, gate.code)
    bad = gate.of("failed", "suspect")
    _tell(style, len(bad))
    for row in bad[: style.rows(_MOST)]:
        labels = {**own, "section": row.section, "name": row.name, "detail": row.detail, "outcome": row.outcome}
        page.measured("tracker_diff_regression", row.unit, labels, row.delta)
        page.add(
            "tracker_diff_regression_ratio",
            "Change that the verdict of what regressed rests on, without machine-wide drift.",
            labels,
            row.diff,
        )
    return page.text()


def findings(found: Findings, style: Style) -> str:
    """Where every line stands, and the findings that are open by severity and state."""
    page, rows = _Page(), records(found.tables["findings"])
    severity = {row["incident_id"]: row["severity"] for row in records(found.tables["incidents"])}
    for row in rows:
        row["severity"] = severity.get(row["incident_id"], "undecided")
    for line in records(found.tables["lines"]):
        _line(page, line)
        own = [row for row in rows if _where(row) == _where(line)]
        _found(page, _where(line), own, style.rows(_MOST))
        _tell(style, sum(map(_is_bad, own)))
    return page.text()


def _found(page: _Page, own: Labels, rows: Sequence[Labels], most: int | None) -> None:
    """The findings of a line."""
    kinds = ("direction", "severity", "state")
    for values, count in sorted(Counter(tuple(row[kind] for kind in kinds) for row in rows).items()):
        labels = {**own, **dict(zip(kinds, values, strict=True))}
        page.add("tracker_findings", "Findings that were asked for, by severity and state.", labels, count)
    bad = [row for row in rows if _is_bad(row)]
    page.add("tracker_open_regressions", "Confirmed regressions that are open and bad.", own, len(bad))
    for row in bad[:most]:
        labels = {**own, "finding": row["finding_id"], "kind": row["kind"], "name": row["name"]}
        labels |= {"detail": " ".join(filter(None, (row["input_shapes"], row["part"]))), "since": row["version"]}
        labels |= {"severity": row["severity"], "state": row["state"]}
        page.measured("tracker_finding", row["unit"], labels, row["delta"])
        page.add("tracker_finding_ratio", "DIFF of a regression when it was confirmed.", labels, row["ratio"])


def _is_bad(row: Labels) -> bool:
    return row["direction"] == "regression" and row["state"] in _BAD


def _tell(style: Style, count: int) -> None:
    """Says how many regressions have no metric of their own: each is a time series of the monitoring system."""
    most = style.rows(_MOST)
    if most is not None and count > most:
        style.tell(f"{most} of {count} regressions have a metric of their own, the others are counted; --top 0: all")


def _where(row: Labels) -> dict[str, Any]:
    return {name: row[name] for name in _LINE}


def _line(page: _Page, line: Labels) -> None:
    """The newest version of a line."""
    own, labels = _where(line), {**_where(line), "version": line["version"]}
    page.add("tracker_runs", "Active runs.", own, line["runs"])
    when = line["last_run_ns"]
    page.add(
        "tracker_last_run_timestamp_seconds", "When the newest run started.", labels,
        None if when is None else when / NS_PER_S,
    )  # fmt: skip
    for part, words in _TIMES.items():
        time = line[f"{part}_ns"]
        about = f"{words}, per step, geometric mean over the runs of the newest version."
        page.add(f"tracker_{part}_seconds", about, labels, None if time is None else time / NS_PER_S)
    page.add("tracker_peak_allocated_bytes", "Peak memory of the newest version.", labels, line["peak_allocated_bytes"])
    page.add("tracker_samples_per_second", "Throughput of the newest version.", labels, line["samples_per_second"])
    page.add("tracker_step_change_ratio", "Change of the step of the newest version.", labels, line["step_change"])
    page.add("tracker_exit_code", "What --fail-on new would end with.", own, line["gate_new"])


class _Page:
    """Metrics with their samples, in the order in which they were first added; all are gauges."""

    def __init__(self) -> None:
        self._metrics: dict[str, tuple[str, dict[str, float]]] = {}

    def measured(self, name: str, unit: str, labels: Labels, value: float | None) -> None:
        """A value in the base unit of its own."""
        ending, factor = {
            "ns": ("seconds", 1 / NS_PER_S), "bytes": ("bytes", 1.0), "ratio": ("share_ratio", 1.0),
            "per_second": ("per_second", 1.0),
        }.get(unit, ("count", 1.0))  # fmt: skip
        what = "Change of what regressed" if name != "tracker_diff" else "A part of a step of either side"
        self.add(f"{name}_{ending}", f"{what}, per step.", labels, None if value is None else value * factor)

    def add(self, name: str, about: str, labels: Labels, value: float | None) -> None:
        """A sample; none where the value is not known. The same labels twice: the first one counts."""
        if value is not None:
            pairs = ",".join(f'{key}="{_label(text)}"' for key, text in labels.items())
            self._metrics.setdefault(name, (about, {}))[1].setdefault(pairs, float(value))

    def text(self) -> str:
        """The file; every metric is declared once, before its samples."""
        lines = []
        for name, (about, samples) in self._metrics.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} gauge"]
            lines += [f"{name}{{{pairs}}} {_number(value)}" for pairs, value in samples.items()]
        return "".join(f"{line}\n" for line in lines)


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else f"{value:.15g}"


def _label(text: Any) -> str:
    """A value between quotation marks.

    >>> _label('a"b')
    'a\\\\"b'
    """
    return printable("" if text is None else str(text)).replace("\\", "\\\\").replace('"', '\\"')
