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
            help="Never those of the newest N versions of a workload. Default: prune.keep_versions of the settings "
            "file, or 5.",
            show_default=False,
        ),
    ] = None,
    workload: options.Workload = None,
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
      tracker prune --older-than 30d --keep-versions 10 --workload gpt
    """
    import time

    from tracker import config
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.store import pruning

    settings = config.load(db)
    rule = settings.prune or config.Prune()
    now = time.time_ns()
    age = rule.older_than_ns if older_than is None else _age(older_than)
    policy = pruning.Policy(now - age, rule.keep_versions if keep_versions is None else keep_versions, workload)
    if dry_run:
        with _store.reading(settings) as store:
            found = pruning.prunable(store, policy)
        emit("\n".join([*_listed(found), _summary(found, None)]))
        return
    with _store.writing(settings) as store:
        found, rows = pruning.prune_all(store, policy, now_ns=now)
        if compact:
            pruning.compact(store)
    emit("\n".join([*_listed(found), _summary(found, rows)]))


def _age(text: str) -> int:
    from tracker.errors import UsageError
    from tracker.units import age_ns

    try:
        return age_ns(text)
    except ValueError as error:
        raise UsageError(f"--older-than: {error}", remedy="tracker prune --older-than 90d") from None


def _listed(found: Sequence[Prunable]) -> list[str]:
    from datetime import UTC, datetime

    lines = [
        f"run:{run.run_id}  {run.version} of {run.workload}, started "
        f"{datetime.fromtimestamp(run.started_at_ns / 1e9, UTC):%Y-%m-%d}"
        for run in found[:_NAMED]
    ]
    return lines + ([f"... and {len(found) - _NAMED} more"] if len(found) > _NAMED else [])


def _summary(found: Sequence[Prunable], rows: int | None) -> str:
    from tracker.units import counted

    if not found:
        return "no run is old enough.  tracker prune --help says which are"
    if rows is None:
        return f"{counted(len(found), 'run')} would lose their details; nothing was changed"
    return f"{counted(len(found), 'run')}: {counted(rows, 'row')} of details dropped; their samples and totals stay"
