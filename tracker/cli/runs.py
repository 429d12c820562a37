"""`tracker runs`: list runs, and correct what is stored about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tracker import api, compare
from tracker.api.arguments import opened
from tracker.api.edits import run_numbers
from tracker.cli.options import Branch, Database, Device, ListFormat, Reason, Version, Workload, rows_of_branch
from tracker.cli.output import Column, device_of, emit, emit_list, next_lines
from tracker.errors import FIRST_INGEST, UsageError
from tracker.results.listed import ListedRun
from tracker.results.options import SEARCH_RUNS, Option
from tracker.units import counted, format_moment, format_ns, format_numbers

if TYPE_CHECKING:
    from tracker.config import Settings

HELP = (
    "List runs; edit, tag, exclude, restore or delete them. Without a command: list them, newest first.\n\n"
    "\b\nExample:\n"
    "  tracker runs --version v2\n"
    "  tracker runs --search 'h100 batch=32'\n"
    "  tracker runs --outdated\n"
    "  tracker runs exclude 41 --reason 'another job on the node'\n"
    "  tracker runs edit 41 --version v2.1"
)


def find(
    version: Version = None,
    workload: Workload = None,
    branch: Branch = None,
    device: Device = None,
    tag: Annotated[str | None, Option("Only runs with this tag. Default: any.", "KEY[=VALUE]")] = None,
    search: Annotated[str | None, SEARCH_RUNS] = None,
    state: Annotated[
        Literal["active", "excluded", "deleted", "all"],
        Option("Only active runs count in comparisons.", words=("active", "excluded", "deleted", "all")),
    ] = "active",
    outdated: Annotated[
        bool,
        Option(
            "Only runs that tracker ingest --again would read again, as earlier rules made their numbers, and why. "
            "Default: all."
        ),
    ] = False,
    experiment: Annotated[
        str | None,
        Option("The runs of this experiment of tracker ab, which no history has. Default: all others.", "E-N"),
    ] = None,
    limit: Annotated[int, Option("At most N runs, newest first; 0 for all.", "N", least=0)] = 50,
    format: ListFormat = "text",
    db: Database = None,
) -> None:
    """List runs."""
    from tracker import config
    from tracker.store import queries

    if experiment is not None:
        if version or workload or branch or device or tag or search or outdated:
            raise UsageError("--experiment with another filter", remedy="leave the other one out")
        _list_experiment(experiment, limit, format, config.load(db))
        return

    if tag is not None and not tag.partition("=")[0].strip():
        raise UsageError(f"--tag {tag!r} names no tag", remedy="write --tag KEY or --tag KEY=VALUE")

    settings = config.load(db)
    with opened(settings, read_only=True) as store, store.reading():
        label = None if version is None else compare.label_of(store, version, workload)
        queries.check_filters(store, workload=workload, device=device, version=label)
        found = queries.runs(
            store, version=label, workload=workload, device=device, tag=tag, search=search, state=state,
            limit=None if branch or outdated else limit or None,
        )  # fmt: skip
        found = rows_of_branch(found, branch, db)
        if outdated:
            from tracker import intake

            found = intake.outdated_runs(store, found, settings.loaders)
        found = found.taken(slice(0, limit or None))
    if outdated:
        last = "no run is outdated."
        if len(found):
            last = f"{counted(len(found), 'run')} outdated.{next_lines('tracker ingest --again')}"
    elif len(found):
        newest = f"tracker show run:{found.listed('run_id')[0]}"
        last = f"{counted(len(found), 'run')}.{next_lines(newest)}"
    else:
        filters = {"version": version, "workload": workload, "device": device, "tag": tag, "words": search}
        wanted = ", ".join(f"{name} {value}" for name, value in filters.items() if value)
        last = f"no {'' if state == 'all' else f'{state} '}runs{f' with {wanted}' if wanted else ''}."
        last += next_lines("tracker runs --state all", FIRST_INGEST)
    columns = _OUTDATED_COLUMNS if outdated else _COLUMNS
    emit_list(found, columns, format, name="runs", last_line=last, kind=ListedRun)


def _list_experiment(experiment: str, limit: int, format: str, settings: Settings) -> None:
    """List the runs of an experiment, the newest first."""
    from tracker.cli.ab import read_experiment_number
    from tracker.store import experiments, queries

    with opened(settings, read_only=True) as store, store.reading():
        of = experiments.read_experiment(store, read_experiment_number(experiment))
        found = queries.runs_by_id(store, [run.run_id for run in experiments.list_runs(store, of.experiment_id)])
    found = found.taken(slice(0, limit or None))
    last = f"{counted(len(found), 'run')}.{next_lines(f'tracker experiments show {of.name}')}"
    emit_list(found, _COLUMNS, format, name="runs", last_line=last, kind=ListedRun)


Runs = Annotated[
    list[int],
    Option(
        "Run numbers: 41 or run:41. tracker runs lists them.", "RUN...", positional=True,
        read=lambda text, _: run_numbers([text]), offers="run",
    ),
]  # fmt: skip


def edit(
    runs: Runs,
    version: Annotated[str | None, Option("Move the runs to this version. Default: unchanged.", "LABEL")] = None,
    workload: Annotated[str | None, Option("Move the runs to this workload. Default: unchanged.", "NAME")] = None,
    device: Annotated[
        str | None, Option("Correct the hardware model; the vendor stays if not named. Default: unchanged.", "MODEL")
    ] = None,
    config: Annotated[
        Mapping[str, str] | None,
        Option(
            "Replace the whole configuration: repeat for each value, the world size included (tracker runs --format "
            "json shows them). Default: unchanged.",
            "KEY=VALUE",
        ),
    ] = None,
    commit: Annotated[
        str | None,
        Option("Add the commit of their version, where it has none: of all its runs. Default: unchanged.", "HASH"),
    ] = None,
    note: Annotated[str | None, Option("Replace the remark; '' removes it. Default: unchanged.", "TEXT")] = None,
    db: Database = None,
) -> None:
    """Correct the version, workload, device, configuration, commit or note of runs.

    \b
    Example:
      tracker runs edit 41 42 --version v2.1
      tracker runs edit 41 --config batch=32
      tracker runs edit 41 --commit 4af1c2d0
    """
    new = {
        "version": version, "workload": workload, "device": device, "configuration": config or {}, "commit": commit,
        "note": note,
    }  # fmt: skip
    _change("edit_runs", runs, db, "changed", **new)


def tag(
    runs: Runs,
    values: Annotated[Mapping[str, str], Option("The tag to set; repeatable.", "KEY=VALUE", name="--tag")],
    db: Database = None,
) -> None:
    """Set tags on runs. A tag of the same key is replaced.

    \b
    Example:
      tracker runs tag 41 42 --tag image=2024-06
    """
    _change("tag_runs", runs, db, "tagged", tags=values)


def untag(
    runs: Runs,
    keys: Annotated[list[str], Option("The tag to remove; repeatable.", "KEY", name="--tag")],
    db: Database = None,
) -> None:
    """Remove tags from runs.

    \b
    Example:
      tracker runs untag 41 --tag image
    """
    _change("untag_runs", runs, db, "untagged", keys=keys)


def exclude(runs: Runs, reason: Reason, db: Database = None) -> None:
    """Exclude runs from every comparison, with a reason.

    \b
    Example:
      tracker runs exclude 41 --reason 'another job on the node'
    """
    _change("exclude_runs", runs, db, "excluded", reason=reason)


def restore(
    runs: Runs,
    reason: Annotated[str, Option("Why; stored and shown. Default: none.", "TEXT")] = "",
    db: Database = None,
) -> None:
    """Restore excluded or deleted runs.

    \b
    Example:
      tracker runs restore 41
      tracker runs restore 41 --reason 'the node was idle after all'
    """
    _change("restore_runs", runs, db, "restored", reason=reason)


def delete(
    runs: Runs,
    reason: Reason,
    purge: Annotated[
        bool, Option("Remove the rows for good, so that the files may come in again. Default: hide the runs.")
    ] = False,
    db: Database = None,
) -> None:
    """Delete runs from every list and comparison, with a reason.

    \b
    Example:
      tracker runs delete 41 --reason 'wrong machine'
    """
    _change("delete_runs", runs, db, "purged" if purge else "deleted", reason=reason, purge=purge)


def _change(change: str, runs: list[int], db: str | None, done: str, **given: Any) -> None:
    with opened(db) as store:
        run_ids = getattr(api, change)(runs, store=store, **given)
    emit(f"{'run' if len(run_ids) == 1 else 'runs'} {format_numbers(sorted(run_ids))} {done}")


def _ranks(row: ListedRun) -> str:
    """`2`, or `2/8` while more are expected."""
    here, expected = row.ranks, row.ranks_expected
    return str(here) if expected is None or expected == here else f"{here}/{expected}"


def _state(row: ListedRun) -> str:
    return f"{row.state}: {row.state_reason}" if row.state_reason else row.state


_COLUMNS = (
    Column("run", "run_id", "run:{}".format), Column("version", is_elastic=True),
    Column("workload", is_elastic=True), Column("device", device_of, is_elastic=True),
    Column("ranks", _ranks, right=True, drop=2), Column("steps", right=True, drop=4),
    Column("step time", "step_ns", format_ns, right=True),
    Column("started (UTC)", "started_at_ns", format_moment, drop=1), Column("state", _state, drop=3),
    Column("machine", is_elastic=True, drop=1), Column("tags", is_elastic=True, drop=1),
)  # fmt: skip
_OUTDATED_COLUMNS = (*_COLUMNS[:3], Column("why", is_elastic=True))
