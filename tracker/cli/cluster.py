"""`tracker cluster`: the ranks of one run beside each other, or those of two."""

from __future__ import annotations

from typing import Annotated

from tracker.cli import database
from tracker.cli.options import Database, Top
from tracker.cli.output import plan
from tracker.cli.report_options import Page
from tracker.errors import UsageError
from tracker.results import ClusterOptions
from tracker.results.options import Option


def cluster(
    runs: Annotated[
        list[str],
        Option(
            "41, run:41, latest, a version (the run of its median step), or a path on disk. Two are compared rank by "
            "rank, the second is the candidate.",
            "[BASELINE] RUN",
            positional=True,
            offers="side",
        ),
    ],
    *,
    chosen: ClusterOptions,
    top: Top = None,
    page: Page,
    db: Database = None,
) -> None:
    """Compare the ranks of a run: who holds the job back, what waits for whom, which link is slow.

    A rank is SLOW where its own time, a step without exposed communication, is 5 % above that of its peers, and by more
    than chance does in 1 of 100 jobs. What the captures do not hold is listed, with the profiler option that records
    it.

    \b
    Example:
      tracker cluster latest
      tracker cluster ./profiles --only ranks,groups
      tracker cluster 41 57 -o cluster.xlsx
    """
    from tracker.ranks import cluster as compare

    if len(runs) > 2:
        raise UsageError(f"{len(runs)} runs", remedy="name one run, or two to compare them")
    delivery = plan(page, f"cluster_{runs[-1]}", "cluster")
    references = [database.run_reference(run) for run in runs]
    with database.compared(db, references, chosen) as (store, options):
        found = compare(store, *references, options=options)
    delivery.deliver(found, only=options.only, limit=top)
