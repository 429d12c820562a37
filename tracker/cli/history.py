"""`tracker history` and `tracker log`: a workload over its versions."""

from __future__ import annotations

from msgspec.structs import replace

from tracker import compare
from tracker.api.arguments import opened
from tracker.cli.options import Database
from tracker.cli.output import plan
from tracker.cli.report_options import Page
from tracker.results import HistoryOptions, LogOptions


def history(chosen: HistoryOptions, page: Page, db: Database = None) -> None:
    """Show the numbers and verdicts of the step, an operator, or any other series over the versions.

    The value of a version is the geometric mean of its runs, that of a run the median over its steps. A change is
    against the newest 8 runs of the level before; a level begins with a lasting change. Changes of exact numbers
    (calls, peak memory) and of the environment stand between the rows.

    \b
    Example:
      tracker history
      tracker history aten::addmm
      tracker history 'aten::*norm*' --kind op --format xlsx -o norms.xlsx
      tracker history --top 20
      tracker history --against pinned
    """
    from tracker.regressions.history import history as history_of

    if chosen.key is None and chosen.top is None and chosen.module is None:
        chosen = replace(chosen, key="step")
    delivery = plan(page, f"history_{chosen.key or chosen.module or 'top'}", "history")
    with opened(db, read_only=True) as store:
        found = history_of(store, options=chosen)
    delivery.deliver(found)


def log(chosen: LogOptions, page: Page, db: Database = None) -> None:
    """Show what each version achieved: a row per version, a column per configuration.

    A cell is the throughput or step time of a version, with its change against the baseline and the version before.
    Measurements with and without a profiler never share a column. The tags `direction` (input, operator, ...) and
    `expected` (+10%, 1.2x) of an ingest group the rows and are compared with the measured gain.

    \b
    Example:
      tracker ingest run.log --version v2 --workload bert --note "fused LayerNorm" --tag direction=operator
          --tag expected=+10%
      tracker log --workload bert
      tracker log --workload bert --config batch=32 --last 5 -o log.md
    """
    delivery = plan(page, f"log_{chosen.workload or ''}".rstrip("_"), "log")
    with opened(db, read_only=True) as store:
        if chosen.baseline is not None:
            label = compare.label_of(store, chosen.baseline, chosen.workload)
            chosen = replace(chosen, baseline=label)
        found = compare.log(store, options=chosen)
    delivery.deliver(found)
