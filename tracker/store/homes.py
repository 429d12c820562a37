"""The run that captures belong to: one that is there and lacks their ranks, or a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from sqlalchemy import Connection, text

from tracker.errors import UsageError
from tracker.profile.numbered_names import differing_numbers, skeleton_of
from tracker.store import configurations, facts, labels
from tracker.store.bulk import clean, insert
from tracker.store.failures import Raced
from tracker.store.incoming import Incoming, bare_ranks
from tracker.store.sql import statement

_ADD_RUN: Final = text(
    "INSERT INTO run (workload_id, configuration_id, version_id, device_id, state, state_reason, ranks_expected, "
    "world_size, started_at_ns, ended_at_ns, rules_version, note) VALUES (:workload_id, :configuration_id, "
    ":version_id, :device_id, 'active', '', :ranks_expected, :world_size, :started_at_ns, :ended_at_ns, "
    ":rules_version, :note) RETURNING id"
)
_JOIN_RUN: Final = text(
    "UPDATE run SET started_at_ns = COALESCE(CAST(:started_at_ns AS BIGINT), started_at_ns), "
    "ended_at_ns = COALESCE(CAST(:ended_at_ns AS BIGINT), ended_at_ns), "
    "ranks_expected = COALESCE(CAST(:ranks_expected AS BIGINT), ranks_expected), "
    "note = COALESCE(note, CAST(:note AS TEXT)) WHERE id = :id AND state <> 'deleted'"
)


class Home(Struct, frozen=True):
    """The run that captures belong to."""

    run_id: int
    how: Literal["created", "joined", "already", "restored"]
    beside: int | None = None
    configured: str = ""


def place(connection: Connection, incoming: Incoming, placed: Set[tuple[int, int]]) -> Home:
    """The run for the captures, with all that hangs on it except its details.

    `placed`: (run, rank) of the captures before these in the same call, whose rows are not in yet.
    """
    record = incoming.record
    workload = labels.workload_id(connection, record.workload)
    configuration = configurations.place(
        connection, workload, record.configuration, stated=record.stated, beside=incoming.beside
    )
    where = {
        "workload_id": workload,
        "configuration_id": configuration.configuration_id,
        "version_id": labels.version_id(connection, workload, record.version, record.commit),
        "device_id": labels.device_id(connection, record.device),
    }
    run_id = beside = None
    if incoming.run_ids or (incoming.job_size or 1) > 1:
        # Ranks that come in at once from several machines must find the run that the first of them makes.
        labels.lock(connection, "run", *where.values())
        run_id = _run_to_join(incoming, _joinable(connection, incoming, where, placed))
    if run_id is None:
        run_id = _sibling_run(connection, incoming, where)
    if run_id is None:
        if incoming.world_size is None:
            beside = _overlapping(incoming, _joinable(connection, incoming, where, placed))
        home = Home(_add_run(connection, incoming, where), "created", beside, configuration.note)
    else:
        home = Home(run_id, "joined")
        _refuse_bare(connection, incoming, run_id)
        _join(connection, incoming, run_id)
    facts.add(connection, home.run_id, record.facts, record.tags)
    _add_sources(connection, home.run_id, incoming)
    return home


def _sibling_run(connection: Connection, incoming: Incoming, where: Mapping[str, int]) -> int | None:
    """Return the run with the other ranks of the job, where only the names of the files say that they are such.

    They are where they lie in one folder, differ in one number and ran at the same time. A UsageError where the run has
    these ranks already: then no source states which rank each file is.
    """
    if incoming.job_size is not None or incoming.window is None or _are_logs(incoming):
        return None
    labels.lock(connection, "run", *where.values())
    start_ns, end_ns = incoming.window
    span = {"start_ns": start_ns, "end_ns": end_ns, "job_id": incoming.record.facts.get("job_id")}
    ranks: dict[int, set[int]] = {}
    siblings: dict[int, tuple[str, str]] = {}
    for row in connection.execute(statement("sources_at_once"), {**where, **span}).all():
        ranks.setdefault(row.run_id, set()).add(row.rank)
        for source in (source for capture in incoming.captures for source in capture.sources):
            if _is_sibling(source.path, row.path):
                siblings.setdefault(row.run_id, (source.path, row.path))
    for run_id, (path, other) in siblings.items():
        if not ranks[run_id] & set(incoming.ranks):
            return run_id
        undo = f"tracker runs delete {run_id} --purge --reason joined, then ingest the files of both in one call"
        raise UsageError(
            f"{path} ran at the same time as {Path(other).name} of run {run_id}, names no rank, and differs from it in "
            "one number: they seem to be ranks of one job",
            remedy=f"{undo}; where they are runs of their own, write a job_id into NAME.tracker.json beside each",
        )
    return None


def _are_logs(incoming: Incoming) -> bool:
    return any(capture.settings.get("profiler") in ("off", "summary") for capture in incoming.captures)


def _is_sibling(path: str, other: str) -> bool:
    one, two = Path(path), Path(other)
    if one.parent != two.parent or one.name == two.name or skeleton_of(one.name) != skeleton_of(two.name):
        return False
    names = differing_numbers([one.name, two.name])
    return len(names.columns) == 1 and not names.is_of_repeats


def _joinable(
    connection: Connection, incoming: Incoming, where: Mapping[str, int], placed: Set[tuple[int, int]]
) -> list[Any]:
    """The runs that lack these ranks, as joinable_runs.sql has them.

    Two jobs that run at the same time, each with ranks of its own profiled, are told apart by their job ids.
    """
    job_id = incoming.record.facts.get("job_id")
    found = connection.execute(statement("joinable_runs"), {**where, "ranks": incoming.ranks, "job_id": job_id}).all()
    return [row for row in found if not any((row.id, rank) in placed for rank in incoming.ranks)]


def _run_to_join(incoming: Incoming, candidates: Sequence[Any]) -> int | None:
    """The run that has other captures of the same group, or else of those of a job as large the one whose window
    overlaps most.
    """
    same_group = [row.id for row in candidates if row.id in incoming.run_ids]
    if same_group:
        return int(same_group[0])
    if incoming.job_size is None:
        return None
    if incoming.world_size is not None:
        alike = [row for row in candidates if row.world_size == incoming.world_size]
    else:
        alike = [
            row
            for row in candidates
            if row.world_size is None
            and row.ranks_expected == incoming.expected
            and row.ranks + len(incoming.ranks) <= row.ranks_expected
        ]
    return _overlapping(incoming, alike)


def _overlapping(incoming: Incoming, candidates: Sequence[Any]) -> int | None:
    """The run whose window overlaps most."""
    if incoming.window is None:
        return None
    start, end = incoming.window
    overlaps = [
        (min(end, row.ended_at_ns) - max(start, row.started_at_ns), -row.id)
        for row in candidates
        if None not in (row.started_at_ns, row.ended_at_ns)
    ]
    longest, number = max(overlaps, default=(-1, 0))
    return -number if longest >= 0 else None


def _refuse_bare(connection: Connection, incoming: Incoming, run_id: int) -> None:
    """UsageError where the other ranks of a run lost their details: one rank alone would speak for all of them."""
    left = bare_ranks(connection, {run_id}) - {(item.run_id, item.rank) for item in incoming.pruned}
    if left:
        path = next((source.path for capture in incoming.captures for source in capture.sources), "the profile")
        raise UsageError(
            f"{path} is a rank of run {run_id}, whose details were dropped by tracker prune",
            remedy="ingest the profiles of its other ranks with it, which brings them back",
        )


def _add_run(connection: Connection, incoming: Incoming, where: Mapping[str, int]) -> int:
    record = incoming.record
    starts = [c.started_at_ns for c in incoming.captures if c.started_at_ns is not None]
    values = {
        **where,
        "ranks_expected": record.ranks_expected,
        "world_size": incoming.world_size,
        "started_at_ns": record.started_at_ns if record.started_at_ns is not None else min(starts, default=None),
        "ended_at_ns": incoming.window[1] if incoming.window else None,
        "rules_version": record.rules_version,
        "note": None if record.note is None else clean(record.note),
    }
    return int(connection.execute(_ADD_RUN, values).scalar_one())


def _join(connection: Connection, incoming: Incoming, run_id: int) -> None:
    known = connection.execute(text("SELECT started_at_ns, ended_at_ns FROM run WHERE id = :id"), {"id": run_id}).one()
    start, end = incoming.window or (None, None)
    values = {
        "id": run_id,
        "started_at_ns": min((t for t in (start, known.started_at_ns) if t is not None), default=None),
        "ended_at_ns": max((t for t in (end, known.ended_at_ns) if t is not None), default=None),
        "ranks_expected": incoming.record.ranks_expected,
        "note": None if incoming.record.note is None else clean(incoming.record.note),
    }
    if connection.execute(_JOIN_RUN, values).rowcount != 1:
        raise Raced


def _add_sources(connection: Connection, run_id: int, incoming: Incoming) -> None:
    """The files, each once, at the lowest rank that it holds."""
    rows: dict[bytes, tuple[Any, ...]] = {}
    for rank, capture, format in sorted(
        zip(incoming.ranks, incoming.captures, incoming.formats, strict=True), key=lambda item: item[0]
    ):
        for source in capture.sources:
            rows.setdefault(source.digest, (run_id, rank, format, clean(source.path), source.bytes, source.digest))
    names = ("run_id", "rank", "format", "path", "bytes", "digest")
    ordered = [rows[digest] for digest in sorted(rows)]
    if insert(connection, "source", names, ordered, or_keep="digest") < len(ordered):
        raise Raced
