"""`tracker calibrate`: how small a change can be told from noise."""

from __future__ import annotations

from typing import Annotated

import typer

from tracker.cli import _options as options


def calibrate(
    repeats: Annotated[
        list[str],
        typer.Argument(
            metavar="VERSION|RUN...",
            help="The repeats: a version, which is all of its active runs, or the runs themselves: run:41 run:42 ... 6 "
            "or more, of one workload and configuration on one device.",
            show_default=False,
        ),
    ],
    workload: options.Workload = None,
    device: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Only runs on this hardware model. Default: any.")
    ] = None,
    splits: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="How many random ways to part the runs are tried, at most."),
    ] = 100,
    noisiest: Annotated[int, typer.Option(metavar="N", min=0, help="How many of the noisiest series are named.")] = 10,
    format: options.ReportFormat = None,
    output: options.Output = None,
    db: options.Database = None,
) -> None:
    """How small a change can be told from noise on this device: from repeats of one version.

    Nothing changed between repeats, so that every finding among them is false. The runs are parted into 5 against 3 (as
    many as fit where there are fewer than 8), in all windows of neighbouring runs and in random splits, and judged like
    any two versions. The table has the false findings of a split for each smallest change that could count; proposed is
    the smallest one with at most one of them in the mean. Nothing is written to the database.

    \b
    Example:
      tracker calibrate nightly-base
      tracker calibrate v7 --workload gpt --device H100
      tracker calibrate run:41 run:42 run:43 run:44 run:45 run:46 --format json
    """
    from tracker import config as configuration
    from tracker import judgement, reports
    from tracker.cli import _store
    from tracker.cli._output import plan, screen, tell
    from tracker.results import CalibrateOptions

    delivery = plan(format, output, f"calibration_{repeats[0]}", "calibration")
    chosen = CalibrateOptions(workload=workload, device=device, splits=splits, noisiest=noisiest)
    with _store.reading(configuration.load(db)) as store:
        found = judgement.calibrate(store, repeats, options=chosen)
    look = screen()
    delivery.deliver(
        lambda wanted: reports.render_calibration(found, wanted.value, width=look.width, color=look.color, tell=tell)
    )
