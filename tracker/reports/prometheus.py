"""Metrics in the text format of Prometheus, for the textfile collector of node_exporter: `-o` writes the file whole.

Seconds, bytes and ratios; what is not known is left out. No timestamps, which the collector refuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tracker.reports.document import Metric
from tracker.units import printable

TITLE = "metrics for Prometheus (textfile of node_exporter)"
SUFFIX = ".prom"
BINARY = False


def render(metrics: Iterable[Metric]) -> str:
    """The file: all gauges, each declared once before its samples. The same labels twice: the first one counts."""
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for metric in metrics:
        if metric.value is not None:
            pairs = ",".join(f'{key}="{_label(text)}"' for key, text in metric.labels.items())
            found.setdefault(metric.name, (metric.about, {}))[1].setdefault(pairs, float(metric.value))
    lines = []
    for name, (about, samples) in found.items():
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
