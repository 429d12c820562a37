"""`tracker prune`: drop the details of old runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tracker.cli import _options as options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.store.pruning import Prunable

_NAMED = 20


def prune(
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Only runs that started longer ago than this: 30d, 12w. Default: prune.older_than of the settings "
            "file, or 90d.",
            show_default=False,
        ),
    ] = None,
    keep_versions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=1_000_000,
            help="Never those of the newest N versions of a workload. Default: prune.keep_versions of the settings "
            "file, or 5.",
            show_default=False,
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            envvar="TRACKER_WORKLOAD",
            show_envvar=False,
            help="Only runs of this workload. Default: TRACKER_WORKLOAD, else all.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", "-y", help="With neither --older-than nor --keep-versions: do not ask. Default: ask on a terminal."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which runs it would be, and change nothing.")] = False,
    compact: Annotated[
        bool,
        typer.Option(
            "--compact",
            help="Give the room back to the system: rewrites a SQLite file whole, which takes as much room again "
            "meanwhile. Without it the room is used for new runs.",
        ),
    ] = False,
    db: options.Database = None,
) -> None:
    """Drop the rows of old runs per operator, kernel, collective and allocation; what the judgement rests on stays.

    Samples, history, findings, and the totals of each rank and step stay for ever. Runs of pinned versions, and those
    that an open finding rests on, keep everything. Ingesting the profile of a run again brings its details back.

    \b
    Example:
      tracker prune --dry-run
      tracker prune --yes
      tracker prune --older-than 30d --keep-versions 10 --workload gpt
    """
    import time

    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.store import pruning, queries

    settings = config.load(db)
    if older_than is None and keep_versions is None and settings.prune is None and not (dry_run or yes):
        _ask()
    rule = settings.prune or config.Prune()
    now = time.time_ns()
    age = rule.older_than_ns if older_than is None else _age(older_than)
    kept = rule.keep_versions if keep_versions is None else keep_versions
    policy = pruning.Policy(max(0, now - age), kept, workload)
    opened = _store.reading(settings) if dry_run else _store.writing(settings)
    with opened as store:
        queries.check_filters(store, workload=workload)
        found, rows = (
            (pruning.prunable(store, policy), None) if dry_run else pruning.prune_all(store, policy, now_ns=now)
        )
        if compact and not dry_run:
            pruning.compact(store)
    emit("\n".join([*_listed(found), _summary(found, rows) if found else _nothing(age, kept)]))


def _ask() -> None:
    """What to drop was not said: a person is asked, a script refused."""
    import sys

    from tracker.errors import UsageError

    if not (sys.stdin is not None and sys.stdin.isatty()):
        raise UsageError(
            "it is not said what may go",
            remedy="give --older-than AGE or --keep-versions N, or --yes for 90d and 5; tracker prune --dry-run lists "
            "what would go",
        )
    typer.confirm("Drop the details of runs older than 90 d, but of the newest 5 versions?", abort=True, err=True)


def _age(text: str) -> int:
    from tracker.errors import UsageError
    from tracker.units import age_ns

    try:
        return age_ns(text)
    except ValueError as error:
        raise UsageError(f"--older-than: {error}", remedy="write it like --older-than 90d") from None


def _listed(found: Sequence[Prunable]) -> list[str]:
    from datetime import UTC, datetime

    lines = [
        f"run:{run.run_id}  {run.version} of {run.workload}, started "
        f"{datetime.fromtimestamp(run.started_at_ns / 1e9, UTC):%Y-%m-%d}"
        for run in found[:_NAMED]
    ]
    return lines + ([f"... and {len(found) - _NAMED} more"] if len(found) > _NAMED else [])


def _summary(found: Sequence[Prunable], rows: int | None) -> str:
    """The last line. `rows`: how many were dropped; None: it is only said what would be."""
    from tracker.units import counted

    runs = counted(len(found), "run")
    if rows is None:
        return f"{runs} would lose their details; nothing was changed.  Next: the same without --dry-run"
    return (
        f"{runs}: {counted(rows, 'row')} of details dropped; their samples and totals stay, and ingesting a profile "
        f"again brings its details back"
    )


def _nothing(age_ns: int, keep_versions: int) -> str:
    from tracker.units import format_age

    newest = f"of the newest {keep_versions} versions, " if keep_versions else ""
    return (
        f"no run to prune: each is younger than {format_age(age_ns)}, {newest}of a pinned version, under an open "
        f"finding, of no known time, or pruned already"
    )
