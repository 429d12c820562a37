"""`tracker versions`: the versions of a workload, their order, also by git, and the pinned baseline."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from tracker import api
from tracker.api.arguments import opened
from tracker.cli.options import Branch, Database, ListFormat, Workload, rows_of_branch
from tracker.cli.output import Column, emit, emit_list, next_lines, note
from tracker.errors import FIRST_INGEST, SourceError, UsageError
from tracker.hooks.environment import GIT_READ_ONLY
from tracker.profile.branches import branch_of
from tracker.reports.commands import command, command_of
from tracker.results.listed import ListedVersion
from tracker.results.options import Option
from tracker.units import MISSING_TEXT, counted, format_moment

if TYPE_CHECKING:
    from tracker.store import Store


HELP = (
    "List, order and pin versions. Without a command: list them in their order.\n\n"
    "\b\nExample:\n"
    "  tracker versions --workload resnet50\n"
    "  tracker versions pin v1 --workload resnet50\n"
    "  tracker versions order v1.9 --before v2.0\n"
    "  tracker diff pinned latest"
)
_TIMEOUT_S: Final = 120
Label = Annotated[str, Option("The version, by label or commit.", "LABEL", positional=True, offers="version")]


def find(workload: Workload = None, branch: Branch = None, format: ListFormat = "text", db: Database = None) -> None:
    """List versions in the order in which they came in, or that tracker versions order set."""
    from tracker.store import queries

    with opened(db, read_only=True) as store, store.reading():
        queries.check_filters(store, workload=workload)
        found = rows_of_branch(queries.versions_with_branches(store, workload), branch, db)
        diffs = (diff_of(store, name) for name in dict.fromkeys(reversed(found.listed("workload"))))
        proposed = next(filter(None, diffs), FIRST_INGEST)
    count = counted(len(found), "version") if len(found) else f"no versions{f' of {workload}' if workload else ''}"
    last = f"{count}.{next_lines(proposed)}"
    emit_list(found, _COLUMNS, format, name="versions", last_line=last, kind=ListedVersion)


def pin(label: Label, workload: Workload = None, db: Database = None) -> None:
    """Pin a version as the fixed baseline of its workload.

    \b
    Example:
      tracker versions pin v1
      tracker diff pinned latest
    """
    from tracker.store.versions import workload_of

    with opened(db) as store:
        label = api.pin_version(label, workload=workload, store=store)
        workload = workload_of(store, label, workload)
        following = diff_of(store, workload, pinned=True)
    emit(f"{label} pinned.{_next(following, workload)}")


def unpin(label: Label, workload: Workload = None, db: Database = None) -> None:
    """Remove the pin of a version.

    \b
    Example:
      tracker versions unpin v1
    """
    with opened(db) as store:
        label = api.unpin_version(label, workload=workload, store=store)
    emit(f"{label} no longer pinned")


def order(
    labels: Annotated[
        list[str] | None,
        Option(
            "The versions to move, in their order; without --after and --before: all versions of the workload.",
            "LABEL...",
            positional=True,
            offers="version",
        ),
    ] = None,
    after: Annotated[
        str | None, Option("Put them after this version. Default: the whole order.", "LABEL", offers="version")
    ] = None,
    before: Annotated[
        str | None, Option("Put them before this version. Default: the whole order.", "LABEL", offers="version")
    ] = None,
    from_git: Annotated[
        Path | None,
        Option(
            "Take the order from the commits of this git repository, by the versions' commits, or labels that are tags "
            "or commits. Default: the given order.",
            "REPOSITORY",
        ),
    ] = None,
    workload: Workload = None,
    db: Database = None,
) -> None:
    """Change the order of versions. Every change against the version before follows.

    \b
    Example:
      tracker versions order v1.9.1 --after v1.9
      tracker versions order v1 v2 v3 --workload resnet50
      tracker versions order --from-git ~/src/model
    """
    from tracker.store import queries
    from tracker.store.versions import workload_of

    if sum(bool(way) for way in (after, before, from_git)) > 1 or bool(labels) == bool(from_git):
        raise UsageError(
            "choose one of --after, --before, --from-git", remedy="name the versions, unless --from-git orders them"
        )
    with opened(db) as store:
        if from_git is not None:
            known = queries.versions(store, workload)
            workloads = sorted(set(known.listed("workload")))
            if len(workloads) != 1:
                raise UsageError(
                    f"the database has {counted(len(workloads), 'workload')}: {', '.join(workloads)}",
                    remedy="choose one with --workload",
                )
            labels, unknown = order_of(from_git, dict(known.rows("version", "commit")))
            if unknown:
                note(f"note: not in {from_git}, left after the version before: {', '.join(unknown)}")
            workload = workloads[0]
        done = api.order_versions(labels or [], workload=workload, after=after, before=before, store=store)
        workload = workload_of(store, done[0], workload)
        following = diff_of(store, workload)
    emit(f"{' '.join(done)}\n{counted(len(done), 'version')} in order.{_next(following, workload)}")


def forget_branch(
    branch: Annotated[str, Option("The branch.", "NAME", positional=True, offers="branch")],
    workload: Workload = None,
    db: Database = None,
) -> None:
    """Remove a branch for good, with its runs, versions and findings, as when its pull request is merged or closed.

    \b
    Example:
      tracker versions forget-branch fix-attention
    """
    with opened(db) as store:
        count = api.forget_branch(branch, workload=workload, store=store)
    emit(f"{branch} forgotten, with {counted(count, 'run')}.{next_lines('tracker versions')}")


def judge(workload: Workload = None, db: Database = None) -> None:
    """Judge versions again whose runs or baselines changed, as after an upgrade of tracker.

    Ingests and edits do this by themselves.

    \b
    Example:
      tracker versions judge
    """
    from tracker.regressions import judgement
    from tracker.store import queries

    where = ("--workload", workload) if workload else ()
    with opened(db) as store:
        queries.check_filters(store, workload=workload)
        count = judgement.update(store, judgement.tracks_of(store, workload=workload))
    emit(f"{counted(count, 'version')} judged.{next_lines(command('tracker', 'versions', *where))}")


def diff_of(store: Store, workload: str, *, among: Collection[str] | None = None, pinned: bool = False) -> str | None:
    """Return `tracker diff` of the newest two versions of a workload that have active runs of one configuration on one
    device; None where no two have.

    `among`: the candidate is the newest of these. `pinned`: the baseline is the pinned version.
    """
    from tracker.compare.references import means
    from tracker.store import queries

    versions = queries.versions(store, workload)
    if branch_of(workload):
        # it is compared with its main line
        own = [label for label in versions.listed("version") if among is None or label in among]
        return command("tracker", "diff", own[-1], "--workload", workload) if own else None
    order = versions.listed("version")
    fixed = [label for label, is_pinned in zip(order, versions.listed("pinned"), strict=True) if is_pinned]
    tracks: dict[str, dict[tuple[str, str, str], list[int]]] = {label: {} for label in order}
    runs = queries.runs(store, workload=workload)
    track_names = ("configuration", "vendor", "device")
    for label, run_id, of, awaited, *track in runs.rows("version", "run_id", "workload", "ranks_awaited", *track_names):
        # one of a branch, or one that waits for ranks, is no part of a version of the main line
        if of != workload or awaited is not None:
            continue
        tracks[label].setdefault(tuple(track), []).append(int(run_id))
    found = next(
        (
            [(label, sorted(tracks[label][track])) for label in (baseline, candidate)]
            for candidate in reversed([label for label in order if among is None or label in among])
            for track in sorted(tracks[candidate], key=lambda one: -max(tracks[candidate][one]))  # newest run first
            for baseline in reversed(fixed if pinned else order[: order.index(candidate)])
            if baseline != candidate and track in tracks[baseline]
        ),
        None,
    )
    if found is None:
        return None
    sides = [  # the label where it means just these runs, else the runs
        label if means(store, label, run_ids, workload) else ",".join(f"run:{number}" for number in run_ids)
        for label, run_ids in found
    ]
    # what is named by its runs needs no workload, nor does a label of the only one
    by_label = [label for label, _ in found if label in sides]
    return command_of(("tracker", "diff"), sides, ("--workload", workload) if by_label else ())


def _next(proposed: str | None, workload: str) -> str:
    return next_lines(proposed or command("tracker", "versions", "--workload", workload))


def _pinned(row: ListedVersion) -> str:
    return "pinned" if row.pinned else MISSING_TEXT


_COLUMNS = (
    Column("version", is_elastic=True), Column("workload", is_elastic=True), Column("runs", right=True),
    Column("first run (UTC)", "first_started_at_ns", format_moment),
    Column("pinned", _pinned),
    Column("commit", is_elastic=True), Column("note", is_elastic=True),
)  # fmt: skip


def order_of(repository: Path, versions: Mapping[str, str | None]) -> tuple[list[str], list[str]]:
    """Versions in the order of their commits, and those without a commit in the repository, which stay after the
    version that they follow now.

    `versions`: label -> commit or None, in the present order. A label that is a tag, branch or commit is one, too.
    SourceError where `repository` is none, UsageError without git or where it has none of the versions.
    """
    _run(repository, ["rev-parse", "--git-dir"])
    ask = ("rev-parse", "--verify", "--quiet", "--end-of-options")
    commit_of = dict.fromkeys(versions, "")
    for label, commit in versions.items():
        for name in (commit, label):
            if name and not name.startswith("-") and not commit_of[label]:
                commit_of[label] = _run(repository, [*ask, f"{name}^{{commit}}"], may_fail=True).strip()
    known = sorted({commit for commit in commit_of.values() if commit})
    if not known:
        raise UsageError(
            f"{repository} has none of the versions",
            remedy="give --commit HASH at ingest, or name versions like tags or commits",
        )
    log = _run(repository, ["rev-list", "--topo-order", "--reverse", "--stdin"], "\n".join(known))
    place = {commit: number for number, commit in enumerate(log.split())}
    keys: dict[str, tuple[int, int]] = {}
    last = -1
    for number, (label, commit) in enumerate(commit_of.items()):
        last = place[commit] if commit else last
        keys[label] = (last, number)
    return sorted(keys, key=lambda label: keys[label]), [label for label, commit in commit_of.items() if not commit]


def _run(repository: Path, words: list[str], text: str = "", *, may_fail: bool = False) -> str:
    """What git prints. No shell is involved; names are arguments of their own."""
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *words],
            input=text,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            env={**os.environ, **GIT_READ_ONLY},
        )
    except FileNotFoundError as error:
        raise UsageError("git is not installed", remedy="install it, or name the versions in their order") from error
    except subprocess.TimeoutExpired as error:
        raise SourceError(repository, "", f"git did not answer within {_TIMEOUT_S} s", remedy="try again") from error
    if done.returncode and not may_fail:
        problem = " ".join(done.stderr.split()) or f"git ended with {done.returncode}"
        raise SourceError(repository, "", f"cannot be read as a git repository ({problem})", remedy="name its folder")
    return done.stdout if not done.returncode else ""
