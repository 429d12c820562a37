"""`tracker prune`: delete the details of old runs."""

from __future__ import annotations

from typing import Annotated, Final

from tracker.cli.options import Database, Workload
from tracker.results.option import Option

_NAMED: Final = 20


def prune(
    older_than: Annotated[
        str | None,
        Option(
            "Only runs that started longer ago: 30d, 12w. Default: prune.older_than of the settings file, else 90d.",
            "AGE",
        ),
    ] = None,
    keep_versions: Annotated[
        int | None,
        Option(
            "Keep the newest N versions of a workload. Default: prune.keep_versions of the settings file, else 5.",
            "N",
            least=0,
            most=1_000_000,
        ),
    ] = None,
    workload: Workload = None,
    yes: Annotated[
        bool,
        Option("Do not ask where neither --older-than nor --keep-versions is given. Default: ask on a terminal.",
               short="-y"),
    ] = False,  # fmt: skip
    dry_run: Annotated[bool, Option("List the runs, and change nothing.")] = False,
    compact: Annotated[
        bool,
        Option(
            "Return the space to the system: rewrites a SQLite file, which needs its size again meanwhile. Default: "
            "the space is used for new runs."
        ),
    ] = False,
    db: Database = None,
) -> None:
    """Delete the details of old runs: rows per operator, kernel, collective and allocation. History stays.

    Samples, findings, and the totals of each rank and step are never deleted. Runs of pinned versions and under open
    findings keep everything. An ingest of the profile restores the details.

    \b
    Example:
      tracker prune --dry-run
      tracker prune --yes
      tracker prune --older-than 30d --keep-versions 10 --workload gpt
    """
    import sys
    import time
    from datetime import UTC, datetime

    import typer

    from tracker import config
    from tracker.cli import database
    from tracker.cli.output import emit
    from tracker.errors import UsageError
    from tracker.store import pruning, queries
    from tracker.units import age_ns, counted, format_age

    settings = config.load(db)
    if older_than is None and keep_versions is None and settings.prune is None and not (dry_run or yes):
        if not (sys.stdin is not None and sys.stdin.isatty()):
            raise UsageError(
                "neither --older-than nor --keep-versions is given",
                remedy="give one, or --yes for 90d and 5; tracker prune --dry-run lists the runs",
            )
        typer.confirm("Delete the details of runs older than 90 d, except the newest 5 versions?", abort=True, err=True)
    rule = settings.prune or config.Prune()
    try:
        age = rule.older_than_ns if older_than is None else age_ns(older_than)
    except ValueError as error:
        raise UsageError(f"--older-than: {error}", remedy="write it like --older-than 90d") from None
    now, kept = time.time_ns(), rule.keep_versions if keep_versions is None else keep_versions
    policy = pruning.Policy(max(0, now - age), kept, workload)
    opened = database.reading(settings) if dry_run else database.writing(settings)
    with opened as store:
        queries.check_filters(store, workload=workload)
        found, rows = (pruning.prunable(store, policy), 0) if dry_run else pruning.prune_all(store, policy, now_ns=now)
        if compact and not dry_run:
            pruning.compact(store)
    lines = [
        f"run {run.run_id}  {run.workload} {run.version}, started "
        f"{datetime.fromtimestamp(run.started_at_ns / 1e9, UTC):%Y-%m-%d}"
        for run in found[:_NAMED]
    ]
    lines += [f"... and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
    runs = counted(len(found), "run")
    if not found:
        newest = f"of the newest {kept} versions, " if kept else ""
        lines.append(
            f"no run to prune: all are younger than {format_age(age)}, {newest}of a pinned version, under an open "
            "finding, without a start time, or pruned already"
        )
    elif dry_run:
        lines.append(f"{runs} would lose their details; nothing was changed.  Next: the same without --dry-run")
    else:
        lines.append(f"{runs}: {counted(rows, 'row')} of details deleted; samples and totals stay")
    emit("\n".join(lines))
