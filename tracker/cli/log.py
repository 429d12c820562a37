"""`tracker log`: what each version brought."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tracker.cli import _options as options


class Metric(StrEnum):
    """What the cells hold."""

    BEST = "best"
    THROUGHPUT = "throughput"
    STEP = "step"
    E2E = "e2e"
    MEMORY = "memory"


def log(
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            envvar="TRACKER_WORKLOAD",
            show_envvar=False,
            help="The workload. Default: TRACKER_WORKLOAD, else the only one in the database.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        Metric,
        typer.Option(
            help="What the cells hold: throughput, step time, E2E of a step, or peak memory allocated; best is the "
            "throughput where a run states one, else the step time."
        ),
    ] = Metric.BEST,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="The version to compare with. Default: the pinned one, else the first version of each column.",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Only configurations with this value, such as batch=32; may be given again. Default: all.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Only runs on this hardware model. Default: any.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="A column for each value of this run tag as well, where the configuration does not hold it; may be "
            "given again. Default: columns are configurations.",
            show_default=False,
        ),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the newest N versions. Default: all.", show_default=False),
    ] = None,
    format: options.ReportFormat = None,
    output: options.Output = None,
    db: options.Database = None,
) -> None:
    """The optimisation log: a row per version, a column per configuration, and what each step brought.

    A cell is the throughput or the step time, with DIFF against the baseline and the version before: the median over
    the steps of a run (the intervals of a log, of which the first ones hold the start-up), the geometric mean over the
    runs of a version, as in a diff. What was measured without a profiler and what under one never share a column. The
    tags `direction` (input, operator, ...) and `expected` (+10%, 1.2x) of an ingest group the rows and stand beside the
    measured gain.

    \b
    Example:
      tracker ingest run.log --version v2 --workload bert --note "fused LayerNorm" --tag direction=operator
          --tag expected=+10%
      tracker log --workload bert
      tracker log --workload bert --config batch=32 --last 5 --format markdown -o log.md
    """
    from msgspec.structs import replace

    from tracker import compare, reports
    from tracker import config as configuration
    from tracker.cli import _store
    from tracker.cli._output import plan, screen, tell
    from tracker.results import LogOptions

    delivery = plan(format, output, f"log_{workload or ''}".rstrip("_"), "log")
    chosen = LogOptions(
        workload=workload,
        baseline=baseline,
        metric=metric.value,
        config=options.pairs(config, "--config"),
        device=device,
        by=tuple(dict.fromkeys(by or ())),
        last=last,
    )
    with _store.reading(configuration.load(db)) as store:
        if baseline is not None:
            chosen = replace(chosen, baseline=compare.label_of(store, baseline, workload))
        found = compare.log(store, options=chosen)
    look = screen()
    delivery.deliver(lambda wanted: reports.render(found, wanted.value, width=look.width, color=look.color, tell=tell))
