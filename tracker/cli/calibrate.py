"""`tracker calibrate`: the smallest detectable change, and how many verdicts are false."""

from __future__ import annotations

from typing import Annotated

from tracker.cli.options import By, Database, Page
from tracker.results import CalibrateOptions
from tracker.results.option import Option


def calibrate(
    repeats: Annotated[
        list[str],
        Option(
            "A version, or its runs: run:41 run:42 ... 6 or more, of one workload, configuration and device.",
            "VERSION|RUN...",
            positional=True,
        ),
    ],
    chosen: CalibrateOptions,
    page: Page,
    apply: Annotated[
        bool, Option("Set the proposed limits as thresholds of this track, and judge again; needs --reason.")
    ] = False,
    reason: Annotated[str | None, Option("Why they are set; stored with them. Default: none.", "TEXT")] = None,
    by: By = None,
    db: Database = None,
) -> None:
    """Estimate the smallest detectable change from repeated runs of one version, and the share of false verdicts.

    Between repeats nothing changed, so every change found among them is false. The runs are split into 8 against 3
    (fewer where there are fewer than 11), in all windows of neighbouring runs and at random, and judged like two
    versions. The report has the false verdicts for each smallest change, the slowdown that 2, 3, 5 and 8 runs detect
    in four of five cases, and how many more runs would decide the suspects of the newest version.

    \b
    Example:
      tracker calibrate nightly-base
      tracker calibrate v7 --workload gpt --device H100
      tracker calibrate nightly-base --apply --reason "calibrated on node 7"
      tracker calibrate run:41 run:42 run:43 run:44 run:45 run:46 --format json
    """
    import time

    from tracker import compare, config
    from tracker.api.edits import account
    from tracker.cli import database
    from tracker.cli.output import note, plan
    from tracker.errors import UsageError
    from tracker.regressions.calibrate import calibrate as calibrate_runs
    from tracker.regressions.thresholds import apply_calibration

    if apply and not (reason or "").strip():
        raise UsageError("--apply needs a reason", remedy="add --reason TEXT")
    delivery = plan(page, f"calibration_{repeats[0]}", "calibration")
    opened = database.writing if apply else database.reading
    with opened(config.load(db)) as store:
        named = [one if one.startswith("run:") else compare.label_of(store, one, chosen.workload) for one in repeats]
        found = calibrate_runs(store, named, options=chosen)
        if apply:
            done = apply_calibration(store, found, who=account(by), when_ns=time.time_ns(), reason=reason or "")
            note(f"thresholds set: min_ratio of {', '.join(done) or 'nothing'}; tracker thresholds lists them")
    delivery.deliver(found)
