"""Series over versions: what a history shows, and how it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from tracker.results.options import check_words
from tracker.results.screens import Result
from tracker.units import counted

if TYPE_CHECKING:
    import pandas as pd

HISTORY_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "series": (
        "series_id", "workload", "configuration", "device", "kind", "metric", "unit", "name", "input_shapes", "part",
        "versions", "runs",
    ),
    "points": (
        "series_id", "version", "pinned", "commit", "note", "runs", "value", "minimum", "maximum", "calls",
        "baseline_diff", "baseline_p", "baseline_q", "baseline_contribution", "baseline_verdict", "calls_verdict",
        "reason", "pinned_diff", "pinned_p", "pinned_q", "pinned_contribution", "pinned_verdict",
        "best_version", "best_diff", "best_p", "best_q", "best_verdict", "rule_version", "change_point", "environment",
    ),
    "runs": (
        "series_id", "version", "run_id", "started_at_ns", "value", "minimum", "maximum", "calls", "rank_spread",
        "steps", "intermittent",
    ),
    "environment": ("workload", "configuration", "device", "version", "key", "before", "after"),
}  # fmt: skip
SERIES_KINDS: Final = (
    "run", "op_name", "op", "kernel", "communication", "module", "phase", "api", "memory",
)  # fmt: skip
"""Kinds of series, in the order in which a name is looked for among them."""


class HistoryOptions(Struct, frozen=True):
    """Which series to show; None lets all through.

    `key`: the name of a series, a pattern (`*`, `?`), or the number of one; with `top` it is None. `kind`: a word of
    SERIES_KINDS; None is the first in which `key` is found, of an op with `shape` that of ops with shapes. `shape`,
    `module`: patterns; a module is a series of its own. `metric`: `exposed_ns`, ... `device`: part of vendor and model.
    `top`: instead, the N series that drifted most from the pinned version.
    """

    key: str | None = None
    workload: str | None = None
    kind: str | None = None
    metric: str | None = None
    shape: str | None = None
    module: str | None = None
    device: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    top: int | None = None

    def __post_init__(self) -> None:
        if self.kind is not None:
            check_words("kind", [self.kind], SERIES_KINDS)


class History(Result, frozen=True, eq=False):
    """Series over versions. Frames have exactly the columns of HISTORY_COLUMNS.

    - series: what is followed, the largest or most drifted first; metric and unit (ns, bytes, per_second) of its values
    - points: one row per series and version in their order: the median, smallest and largest of its runs, per step (NA:
      no run has it); DIFF and verdict against the baseline (the last 8 accepted runs before the version, on the level
      that holds), the pinned and the best version, without what all operators share, so that it may differ a little
      from the quotient of the values; reason: of the first verdict; NA where nothing was judged.
      change_point: a lasting change begins here; environment: what else changed here, as text
    - runs: one row per series and active run: its number, and over its steps minimum and maximum
    - environment: facts that differ between a version and the one before; None where one does not say
    - pinned: the pinned version, None: there is none
    """

    series: pd.DataFrame
    points: pd.DataFrame
    runs: pd.DataFrame
    environment: pd.DataFrame
    pinned: str | None
    options: HistoryOptions = field(default_factory=HistoryOptions)
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """What was asked for, and how many series and versions there are."""
        versions = self.points["version"].nunique()
        return f"{self.options.key or 'series'}: {len(self.series)} series over {counted(versions, 'version')}"
