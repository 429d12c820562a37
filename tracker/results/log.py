"""An optimisation log: what each version of a workload reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.results.options import LogOptions
from tracker.results.screens import Result
from tracker.units import counted

if TYPE_CHECKING:
    import pandas as pd


class Log(Result, frozen=True, eq=False):
    """The versions of a workload in their order, and what each reached in each column. Frames have exactly the columns
    of LOG_COLUMNS.

    A column is one measure of one configuration on one device, with or without a profiler: these are never mixed.

    - versions: one row per version: `direction` and `note` as its runs say, `runs` in the columns shown
    - columns: one row per column that has cells; `column` is its number. `title`: all that makes the column, `measure`
      (throughput, step, e2e, memory), `unit` (ns, bytes, or what is counted per second), `scope` (of a throughput:
      `per rank`, `total`, or that it is not stated; none where the job is one process), `profiler` (a key of
      PROFILERS), `device`, `configuration` (text), `higher_is_better`
    - cells: one row per version and column that has runs. `value` is the geometric mean over `runs` of what a run
      reached, its sample, as in a diff; `minimum` and `maximum` over runs.
      `baseline_diff`, `previous_diff`: DIFF against the baseline and the version before in this column. `gain`: how
      much faster than that one, in speed (a throughput, or 1 / time; smaller for memory). `expected`: what the tag
      `expected` of the runs says; `expected_gain`: as a number, if it is one. `verdict`, `judged_diff`: of the number
      against the level before, as `history` and `findings` have it; NA: not judged
    - directions: what the versions of a direction gained together, per column. Without a tag `direction`, that of a
      version is what the advice that it took was about, and `expected` what that could win at most
    - advice: advice that came with a version (`status` new or grown), or was taken by it: gone, with a shorter step.
      expected_ns: of a step at most; realised_ns: what the step won, by all that the version changed
    """

    workload: str
    baseline: str | None
    options: LogOptions
    versions: pd.DataFrame
    columns: pd.DataFrame
    cells: pd.DataFrame
    directions: pd.DataFrame
    advice: pd.DataFrame

    @property
    def headline(self) -> str:
        """The workload, and how many versions and columns there are."""
        return f"{self.workload}: {counted(len(self.versions), 'version')}, {counted(len(self.columns), 'column')}"
