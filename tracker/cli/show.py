"""`tracker show`: one run."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tracker.cli import _options as options


class By(StrEnum):
    """What rows are kept apart by, beyond the run; or what the rows of a tree are."""

    STEP = "step"
    RANK = "rank"
    MODULE = "module"
    PHASE = "phase"
    OP = "op"
    KERNEL = "kernel"


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
        list[By] | None,
        typer.Option(
            help="step, rank: keep them apart in all tables, to see which one is the slow one. module, phase, op, "
            "kernel: a tree instead of the tables, most expensive first: modules in modules and their ops, phases of a "
            "step and their ops, ops with what they call, kernels with what launches them. May be given again: --by "
            "module --by rank. Default: sums over all steps and ranks.",
            show_default=False,
        ),
    ] = None,
    depth: options.Depth = None,
    only: options.ShowOnly = None,
    step: options.Step = None,
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
    skip_bad_rows: options.SkipBadRows = False,
    db: options.Database = None,
) -> None:
    """Show one run: what its steps wait for, where its time went, its largest ops and kernels, communication, memory.

    \b
    Example:
      tracker show latest
      tracker show run:41 --by rank --op aten::mm
      tracker show run:41 --by module --depth 3
      tracker show trace.pt.trace.json.gz --format json
    """
    from tracker import compare, reports
    from tracker import config as configuration
    from tracker.cli import _store
    from tracker.cli._output import plan, screen, tell
    from tracker.cli._progress import progress
    from tracker.results import ShowOptions

    delivery = plan(format, output, f"show_{run}", "show")
    chosen = options.sections(only)
    minimum_ns, steps = options.minimum_ns(min_us), options.steps(step, "--step")
    settings = configuration.load(db)
    reference = f"run:{run}" if run.isascii() and run.isdigit() else run
    with progress() as report, _store.opened_for(settings, [reference]) as store:
        shown = compare.show(
            store,
            reference,
            options=ShowOptions(
                steps=steps,
                by=tuple(dict.fromkeys(word.value for word in by or ())),
                depth=depth,
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
                skip_bad_rows=skip_bad_rows,
                max_bytes=settings.max_bytes,
                on_progress=report,
            ),
        )
    look = screen()
    delivery.deliver(
        lambda wanted: reports.render(
            shown, wanted.value, only=chosen, limit=top, width=look.width, color=look.color, tell=tell
        )
    )
