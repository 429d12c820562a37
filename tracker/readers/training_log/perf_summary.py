"""The table that the timer of Paddle prints at the end of a training."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from tracker.profile import NO_STEP
from tracker.readers import _rows
from tracker.readers.training_log.paddle_lines import Spread, spread_of

_UNITS: Final = re.compile(r"Time Unit: *(?P<time>\w+), *IPS Unit: *(?P<ips>[\w/]+)")
_RATIO: Final = re.compile(r"Reader Ratio: *(\d{1,9}(?:\.\d{1,9})?) ?%")
_SOURCE: Final = "perf_summary"


class PerfSummary(Struct):
    """The rows of the table, and which part of the time waits for data, in percent."""

    spreads: list[Spread] = field(default_factory=list)
    reader_ratio: float | None = None

    def mean(self, name: str, unit: str | None = None) -> float | None:
        """Return the mean of a row in its unit; None where it is not there, or in another unit than `unit`."""
        for spread in self.spreads:
            if spread.name == name and unit in (None, spread.unit):
                return spread.mean
        return None

    @property
    def unit(self) -> str:
        """The unit of the throughput, "" for none."""
        return next((spread.unit for spread in self.spreads if spread.name == "ips"), "")


def summary_in(lines: Sequence[str]) -> PerfSummary:
    """Return the table among some lines; empty where none is."""
    summary = PerfSummary()
    units = ("s", "")
    for line in lines:
        if spread := spread_of(line, units):
            summary.spreads.append(spread)
        elif match := _UNITS.search(line):
            units = (match["time"], match["ips"])
        elif match := _RATIO.search(line):
            summary.reader_ratio = float(match[1])
    return summary


def counters_of(summary: PerfSummary) -> list[_rows.Row]:
    """Return the rows of the table as counters."""
    rows: list[_rows.Row] = [
        {"step": NO_STEP, "source": _SOURCE, "name": spread.name, "attribute": spread.unit, "calls": 1,
         "mean": spread.mean, "min": spread.smallest, "max": spread.largest}
        for spread in summary.spreads
    ]  # fmt: skip
    if summary.reader_ratio is not None:
        ratio = summary.reader_ratio
        rows.append({"step": NO_STEP, "source": _SOURCE, "name": "reader ratio", "attribute": "%", "calls": 1,
                     "mean": ratio, "min": ratio, "max": ratio})  # fmt: skip
    return rows
