"""`tracker history`: one key over versions."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tracker.cli import _options as options


class Against(StrEnum):
    """What versions are judged against."""

    LEVEL = "level"
    PINNED = "pinned"


class SeriesKind(StrEnum):
    """What is followed."""

    RUN = "run"
    OP_NAME = "op_name"
    OP = "op"
    KERNEL = "kernel"
    COMMUNICATION = "communication"
    MODULE = "module"
    PHASE = "phase"
    API = "api"
    MEMORY = "memory"


def history(
    key: Annotated[
        str | None,
        typer.Argument(
            metavar="KEY",
            help="What to follow: a name such as aten::addmm, step, 'idle time' or all_reduce; a pattern such as "
            "'aten::*norm*'; or the number of a series. Default: step; with --top or --module, none is needed.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        SeriesKind | None,
        typer.Option(
            help="What kind of series: run (step, compute, idle time, data loading, peak memory, throughput, "
            "...), op_name (all shapes of an op together), op (one per shapes), kernel, communication, module, phase, "
            "api, memory. Default: the first of these that has the key.",
            show_default=False,
        ),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Only ops or kernels with these input shapes. Default: all shapes."),
    ] = None,
    module: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN", help="Instead of a key: the time in modules whose path matches. Default: the key."
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Which number, where a key has several, such as exposed_ns beside total_ns. Default: all.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Instead of a key: the N series that changed most since the pinned version, by their part of the "
            "step. Default: the key.",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        Against,
        typer.Option(
            help="pinned: judge each version against the pinned one as well, and where that finds nothing the version "
            "and the one before together (tracker thresholds: gradual_ratio)."
        ),
    ] = Against.LEVEL,
    workload: options.Workload = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Only configurations with this value; may be given again. Default: all."
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Only runs on this hardware model. Default: any.")
    ] = None,
    format: options.ReportFormat = None,
    output: options.Output = None,
    db: options.Database = None,
) -> None:
    """Show the numbers and verdicts of the step, an operator, or any other series over the versions.

    The value of a version is the geometric mean of its runs, that of a run the median over its steps. A change is
    against the newest 8 runs of the level before; a level begins with a lasting change. What changed for certain
    (calls, peak memory), and what else changed (driver, framework, environment), stands between the rows.

    \b
    Example:
      tracker history
      tracker history aten::addmm
      tracker history 'aten::*norm*' --kind op --format xlsx -o norms.xlsx
      tracker history --top 20
      tracker history --against pinned
    """
    from tracker import config as configuration
    from tracker import reports
    from tracker.cli import _store
    from tracker.cli._output import plan, screen, tell
    from tracker.regressions.history import history as history_of
    from tracker.results import HistoryOptions

    if key is None and top is None and module is None:
        key = "step"
    delivery = plan(format, output, f"history_{key or module or 'top'}", "history")
    chosen = HistoryOptions(
        key=key,
        workload=workload,
        kind=None if kind is None else kind.value,
        metric=metric,
        shape=shape,
        module=module,
        device=device,
        config=options.pairs(config, "--config"),
        top=top,
        against=against.value,
    )
    with _store.reading(configuration.load(db)) as store:
        found = history_of(store, options=chosen)
    look = screen()
    delivery.deliver(lambda wanted: reports.render(found, wanted.value, width=look.width, color=look.color, tell=tell))
