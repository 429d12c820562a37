"""`tracker calibrate`: the smallest detectable change, and how many verdicts are false."""

from __future__ import annotations

from typing import Annotated

import typer

from tracker.cli import _options as options
from tracker.cli.actions import By


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
        typer.Option(metavar="N", min=1, help="How many random splits of the runs are tried, at most."),
    ] = 100,
    noisiest: Annotated[int, typer.Option(metavar="N", min=0, help="How many of the noisiest series are named.")] = 10,
    apply: Annotated[
        bool,
        typer.Option(
            "--apply",
            help="Set the proposed changes as thresholds of this workload, configuration and device, and judge again; "
            "needs --reason. Default: only show them.",
        ),
    ] = False,
    reason: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Why they are set; kept with them. Default: none.", show_default=False),
    ] = None,
    by: By = None,
    format: options.ReportFormat = None,
    output: options.Output = None,
    db: options.Database = None,
) -> None:
    """Estimate the smallest detectable change from repeated runs of one version, and how many verdicts are false.

    Nothing changed between repeats, so that every change that is found among them is false. The runs are split into 8
    against 3 (as many as fit where there are fewer than 11), in all windows of neighbouring runs and at random, and
    judged like any two versions. Shown are the false verdicts by the smallest change that could count; the smallest
    slowdown that versions of 2, 3, 5 and 8 runs show in four of five cases; and how many more runs would decide the
    suspects of the newest version. Nothing is written to the database, unless --apply sets the proposed changes as
    thresholds.

    \b
    Example:
      tracker calibrate nightly-base
      tracker calibrate v7 --workload gpt --device H100
      tracker calibrate nightly-base --apply --reason "calibrated on node 7"
      tracker calibrate run:41 run:42 run:43 run:44 run:45 run:46 --format json
    """
    import getpass
    import time

    from tracker import compare, reports
    from tracker import config as configuration
    from tracker.cli import _store
    from tracker.cli._output import plan, screen, tell
    from tracker.errors import UsageError
    from tracker.regressions.calibrate import calibrate as calibrate_runs
    from tracker.regressions.thresholds import apply_calibration
    from tracker.results import CalibrateOptions

    if apply and not (reason or "").strip():
        raise UsageError("a reason is missing", remedy="--reason TEXT says why these thresholds are set")
    delivery = plan(format, output, f"calibration_{repeats[0]}", "calibration")
    chosen = CalibrateOptions(workload=workload, device=device, splits=splits, noisiest=noisiest)
    opened = _store.writing if apply else _store.reading
    with opened(configuration.load(db)) as store:
        named = [one if one.startswith("run:") else compare.label_of(store, one, workload) for one in repeats]
        found = calibrate_runs(store, named, options=chosen)
        if apply:
            who = by or getpass.getuser()
            done = apply_calibration(store, found, who=who, when_ns=time.time_ns(), reason=reason or "")
            tell(f"set as thresholds: min_ratio of {', '.join(done) or 'nothing'}; tracker thresholds lists them")
    look = screen()
    delivery.deliver(lambda wanted: reports.render(found, wanted.value, width=look.width, color=look.color, tell=tell))
