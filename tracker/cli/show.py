"""`tracker show`: one run."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tracker.cli import _options as options


class Grain(StrEnum):
    """What rows are kept apart by, beyond the run."""

    STEP = "step"
    RANK = "rank"


def show(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="run:41 (or 41), run:41:rank3, latest, latest~1, a version with one run, or a path on disk.",
            show_default=False,
        ),
    ],
    by: Annotated[
        list[Grain] | None,
        typer.Option(
            help="Keep steps or ranks apart in the tables of ops, kernels, communication and "
            "memory; may be given again. Shows which step or rank is the slow one. Default: sums over all of them.",
            show_default=False,
        ),
    ] = None,
    top: options.Top = None,
    rank: options.Ranks = None,
    stage: options.Stage = None,
    module: options.Module = None,
    op: options.Op = None,
    kind: options.Kind = None,
    group: options.Group = None,
    min_us: options.MinimumUs = None,
    workload: options.Workload = None,
    format: options.ReportFormat = None,
    output: options.Output = None,
    input_format: options.InputFormat = None,
    flow_category: options.FlowCategory = None,
    allow_partial: options.AllowPartial = False,
    db: options.Database = None,
) -> None:
    """Show one run: where its time went, its largest ops and kernels, communication, memory and environment.

    \b
    Example:
      tracker show latest
      tracker show run:41 --by rank --op aten::mm
      tracker show trace.pt.trace.json.gz --format json
    """
    from tracker import compare, reports
    from tracker import config as configuration
    from tracker.cli import _store
    from tracker.cli._output import plan, screen, tell
    from tracker.cli._progress import progress
    from tracker.results import ShowOptions

    delivery = plan(format, output, f"show_{run}")
    minimum_ns = options.minimum_ns(min_us)
    settings = configuration.load(db)
    reference = f"run:{run}" if run.isascii() and run.isdigit() else run
    with progress() as report, _store.opened_for(settings, [reference]) as store:
        shown = compare.show(
            store,
            reference,
            options=ShowOptions(
                by=tuple(dict.fromkeys(grain.value for grain in by or ())),
                workload=workload,
                ranks=tuple(rank or ()),
                stage=stage,
                module=module,
                op=op,
                kind=kind,
                group=group,
                minimum_ns=minimum_ns,
                format=input_format,
                flow_category=flow_category,
                allow_partial=allow_partial,
                max_bytes=settings.max_bytes,
                on_progress=report,
            ),
        )
    look = screen()
    delivery.deliver(
        lambda wanted: reports.render_show(
            shown, wanted.value, limit=top, width=look.width, color=look.color, tell=tell
        )
    )
