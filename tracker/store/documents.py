"""Documents: runs that are another source of a run, such as the timer log beside a trace. They are excluded."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection, bindparam, text

from tracker.profile.documents import Execution, LeftApart, find_documents, find_left_apart, name_way
from tracker.schema.series import way_of
from tracker.store.completing import LOST_DETAILS
from tracker.store.sql import statement

_MARK: Final = text(
    "UPDATE run SET document_of = :main_id, state = 'excluded', state_reason = :reason WHERE id = :run_id "
    "AND document_of IS NULL AND (state = 'active' OR experiment_id IS NOT NULL) "
    "AND EXISTS (SELECT 1 FROM run AS m WHERE m.id = :main_id AND (m.state = 'active' OR m.experiment_id IS NOT NULL))"
)
"""A run of an experiment is excluded from its start, and may still have documents."""
_HAND_OVER: Final = text(
    "UPDATE run SET document_of = :main_id, state_reason = :reason WHERE document_of = :run_id AND state = 'excluded' "
    "AND id <> :run_id"
)
"""What was a document of a run that is one itself now is one of the same run."""
FORGET_SAMPLES: Final = text("UPDATE run SET sample_rules = NULL WHERE id = :run_id")
_MAINS: Final = text(
    "SELECT id, document_of FROM run WHERE id IN :run_ids AND document_of <> id AND state = 'excluded'"
)
_MAIN: Final = text("SELECT document_of FROM run WHERE id = :run_id AND document_of <> id")
_RELEASE: Final = text("UPDATE run SET document_of = id WHERE id = :run_id")
_ELSEWHERE: Final = -1
"""In place of the place of a run that is not among those that are asked."""


class _Stored(Struct):
    """What a run says of the job that it is of. `folders`: of its files; `way`: one of series.WAYS."""

    run_id: int
    document_of: int | None
    workload_id: int
    version_id: int
    way: str
    job_id: str | None
    started_at_ns: int | None
    ended_at_ns: int | None
    is_pruned: bool
    folders: set[str]


def mark(connection: Connection, main_of: Mapping[int, int]) -> set[int]:
    """Make runs documents of others, document -> run; return the runs that got one more.

    One that somebody has excluded, deleted or restored stays as it is, as does one of a run that does not count.
    """
    grown = set()
    for run_id, main_id in main_of.items():
        values = {"run_id": run_id, "main_id": main_id, "reason": f"a document of run:{main_id}"}
        if run_id != main_id and connection.execute(_MARK, values).rowcount:
            connection.execute(_HAND_OVER, values)
            grown.add(main_id)
    return grown


def release(connection: Connection, run_id: int) -> None:
    """Make a document a run of its own for good: a user has decided what becomes of it."""
    connection.execute(_RELEASE, {"run_id": run_id})


def of_runs(connection: Connection, run_ids: Iterable[int]) -> dict[int, list[int]]:
    """Return the documents of each of these runs that has any, in order."""
    found: dict[int, list[int]] = {}
    for row in connection.execute(statement("documents"), {"run_ids": sorted(run_ids) or [-1]}).all():
        found.setdefault(row.document_of, []).append(row.run_id)
    return found


def mains_of(connection: Connection, run_ids: Iterable[int]) -> dict[int, int]:
    """Return the runs that these are documents of, document -> run."""
    question = _MAINS.bindparams(bindparam("run_ids", expanding=True))
    rows = connection.execute(question, {"run_ids": sorted(run_ids) or [-1]}).all()
    return {row.id: row.document_of for row in rows}


def main_of(connection: Connection, run_id: int) -> int | None:
    """Return the run that this one is a document of, None where it is a run of its own."""
    row = connection.execute(_MAIN, {"run_id": run_id}).one_or_none()
    return None if row is None else row.document_of


def has_lost_details(connection: Connection, run_id: int) -> bool:
    """Return whether the samples of a run can no longer be made, since a rank was pruned."""
    return connection.execute(LOST_DETAILS, {"run_id": run_id}).first() is not None


def find_beside(connection: Connection, run_ids: Collection[int] | None = None) -> dict[int, int]:
    """Return stored runs that are documents of others and not marked as such, document -> run.

    As `profile.documents` finds them, among those of one version. `run_ids`: only where one of these is one of the two,
    None: all of them.
    """
    by_id: dict[int, _Stored] = {}
    # the files of a run in a folder below another one are found by the patterns of both
    for pattern in ["%"] if run_ids is None else _patterns_of(connection, run_ids):
        by_id |= {run.run_id: run for run in _read(connection, run_ids, pattern)}
    stored = [by_id[run_id] for run_id in sorted(by_id)]
    found = {}
    for document, main in find_documents(_executions_of(stored)).items():
        pair = stored[document].run_id, stored[main].run_id
        if run_ids is None or not set(pair).isdisjoint(run_ids):
            found[pair[0]] = pair[1]
    return found


class RunsApart(Struct, frozen=True):
    """Active runs of one folder and version that may be of one job, and why they count apart. `ways`: what the files of
    each are: a trace, a log, a summary.
    """

    folder: str
    run_ids: tuple[int, ...]
    ways: tuple[str, ...]
    why: str


def find_apart(connection: Connection) -> list[RunsApart]:
    """Return the stored runs that may be documents of others, and that no upgrade has joined; by folder.

    Those that a user restored are runs of their own, and no part of this.
    """
    stored = _read(connection, None, "%", with_pruned=True)
    executions = _executions_of(stored)
    apart = find_left_apart(executions)
    for document, main in find_documents(executions).items():
        is_pruned = stored[document].is_pruned or stored[main].is_pruned
        why = "tracker prune dropped the details of one of them" if is_pruned else "an ingest of this folder joins them"
        apart.append(LeftApart((main, document), why))
    found = []
    for group in apart:
        runs = sorted((stored[place] for place in group.places), key=lambda run: run.run_id)
        (folder,) = runs[0].folders
        names = tuple(name_way(run.way) for run in runs)
        found.append(RunsApart(folder, tuple(run.run_id for run in runs), names, group.why))
    return sorted(found, key=lambda one: (one.folder, one.run_ids))


def _patterns_of(connection: Connection, run_ids: Collection[int]) -> list[str]:
    """Return the folders that hold all files of one of these runs, as patterns of their paths."""
    folders: dict[int, set[str]] = {}
    for row in connection.execute(statement("sources"), {"run_ids": sorted(run_ids) or [-1]}).all():
        folders.setdefault(row.run_id, set()).add(str(PurePath(row.path).parent))
    whole = {folder for own in folders.values() if len(own) == 1 for folder in own}
    return [re.sub("([!%_])", r"!\1", folder) + "/%" for folder in sorted(whole)]


def join_beside(connection: Connection) -> set[int]:
    """Make all stored runs that are documents of others such, and return those others; their samples are made again
    when they are next judged.
    """
    grown = mark(connection, find_beside(connection))
    for run_id in sorted(grown):
        connection.execute(FORGET_SAMPLES, {"run_id": run_id})
    return grown


def _executions_of(stored: Sequence[_Stored]) -> list[Execution]:
    """Return what stored runs say of their jobs."""
    place_of = {run.run_id: place for place, run in enumerate(stored)}
    return [_execution_of(run, place_of) for run in stored]


def _execution_of(run: _Stored, place_of: Mapping[int, int]) -> Execution:
    """Return what a stored run says of its job. `place_of`: run -> its place among those that are asked."""
    says = {"workload": str(run.workload_id), "version": str(run.version_id)}
    if run.job_id is not None:
        says["job_id"] = run.job_id
    known = None if run.document_of is None else place_of.get(run.document_of, _ELSEWHERE)
    # runs of one folder are many where it is that of all nights: only those of one version may be one
    folders = frozenset(f"{folder}\n{run.version_id}" for folder in run.folders)
    return Execution(folders, run.way, says, [run], known)


def _read(
    connection: Connection, run_ids: Collection[int] | None, pattern: str, *, with_pruned: bool = False
) -> list[_Stored]:
    """Return the runs all of whose files have paths like `pattern`, of the versions of `run_ids`; in order.

    Those that lost their details are left out unless `with_pruned`: their samples are never made again.
    """
    asked = {
        "all_runs": int(run_ids is None),
        "run_ids": sorted(run_ids or ()) or [-1],
        "pattern": pattern,
    }
    found: dict[int, _Stored] = {}
    seen: Counter[int] = Counter()
    files: dict[int, int] = {}
    for row in connection.execute(statement("runs_by_folder"), asked).all():
        way = way_of(json.loads(row.settings or "{}").get("profiler", ""))
        run = _Stored(
            row.run_id,
            row.document_of,
            row.workload_id,
            row.version_id,
            way,
            row.job_id,
            row.started_at_ns,
            row.ended_at_ns,
            bool(row.is_pruned),
            set(),
        )
        found.setdefault(row.run_id, run).folders.add(str(PurePath(row.path).parent))
        seen[row.run_id] += 1
        files[row.run_id] = row.files
    whole = [run for run in found.values() if seen[run.run_id] == files[run.run_id]]
    # a document that is pruned is still what a run has
    return [run for run in whole if with_pruned or not run.is_pruned or run.document_of is not None]
