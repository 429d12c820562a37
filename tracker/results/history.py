"""Series over versions: what a history shows, and how it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

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
        "level_version", "change", "judged_change", "q", "contribution", "verdict", "reason", "change_point", "back_to",
        "gradual_change", "facts", "pinned_change", "pinned_verdict", "environment",
    ),
    "runs": (
        "series_id", "version", "run_id", "started_at_ns", "value", "minimum", "maximum", "calls", "rank_spread",
        "steps", "intermittent",
    ),
    "environment": ("workload", "configuration", "device", "version", "key", "before", "after"),
}  # fmt: skip
AGAINST: Final = ("level", "pinned")
"""What a history judges versions against."""
SERIES_KINDS: Final = (
    "run", "op_name", "op", "kernel", "communication", "module", "phase", "api", "memory",
)  # fmt: skip
"""Kinds of series, in the order in which a name is looked for among them."""


class HistoryOptions(Struct, frozen=True):
    """Which series to show; None lets all through.

    `key`: the name of a series, a pattern (`*`, `?`), or the number of one; with `top` it is None. `kind`: a word of
    SERIES_KINDS; None is the first in which `key` is found, of an op with `shape` that of ops with shapes. `shape`,
    `module`: patterns; a module is a series of its own. `metric`: `exposed_ns`, ... `device`: part of vendor and model.
    `top`: instead, the N series that changed most since the pinned version. `against`: `pinned` judges the versions
    against the pinned one, too.
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
    against: Literal["level", "pinned"] = "level"

    def __post_init__(self) -> None:
        check_words("reference", [self.against], AGAINST)
        if self.kind is not None:
            check_words("kind", [self.kind], SERIES_KINDS)


class History(Result, frozen=True, eq=False):
    """Series over versions. Frames have exactly the columns of HISTORY_COLUMNS.

    - series: what is followed, the largest or most changed first; metric and unit (ns, bytes, per_second) of its values
    - points: one row per series and version in their order. value, calls: geometric mean of its runs, per step (NA: no
      run has it), minimum and maximum. level_version: with which the level began that it was judged against, "" for the
      first one; change: ratio against the newest 8 runs of that level, judged_change: without what all operators of a
      run share, by which the verdict is; contribution: share of the step; verdict, reason: words of the judge; NA where
      nothing was judged. change_point: a level begins with this version; back_to: the version that began the older
      level to which it came back; gradual_change: of a gradual slowdown that was found in it, against the first runs of
      the level. facts: what changed for certain, as text; pinned_change: against the pinned version;
      pinned_verdict: against it, where `options.against` asks for it; environment: what else changed here, as text
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
