"""Writing runs: one transaction per call, idempotent by content digest, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final, Literal

from msgspec import Struct, field
from sqlalchemy import Connection, text

from tracker.errors import UsageError
from tracker.profile import Capture, Device, Source
from tracker.store import details, facts, labels
from tracker.store.bulk import clean, insert
from tracker.store.connect import Store
from tracker.store.failures import Raced
from tracker.store.samples import refresh
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


class RunRecord(Struct, frozen=True):
    """What is known of a run as a whole.

    `started_at_ns`: UTC, None where no clock is absolute. `ranks_expected`: ranks until the run counts as complete,
    None for those that came. `facts`: its environment, allow-listed. `rules_version`: of the naming and category rules.
    """

    workload: str
    version: str
    commit: str | None
    note: str | None
    configuration: Mapping[str, str]
    tags: Mapping[str, str]
    facts: Mapping[str, str]
    device: Device
    started_at_ns: int | None
    ranks_expected: int | None
    rules_version: int | None = None


class SavedRun(Struct, frozen=True):
    """Where captures went: a run that was `created`, one that they `joined`, or one that had them `already`; or whose
    dropped details they `restored`.

    `device`, `ranks`: of that run as it is stored now, whatever was asked for and with the ranks that were there.
    """

    run_id: int
    created: bool
    joined: bool
    already: bool
    device: Device
    ranks: tuple[int, ...]
    restored: bool = False
    beside: int | None = None
    """Of a run that was created: another one with other ranks at the same time, where nothing says whether the two are
    one job.
    """


class _Incoming(Struct, frozen=True):
    """The captures of one run on their way in. `rank` is never None here."""

    record: RunRecord
    captures: Sequence[Capture]
    formats: Sequence[str]
    world_size: int | None
    expected: int | None
    window: tuple[int, int] | None
    run_ids: frozenset[int] = field(default_factory=frozenset)
    """Runs that already hold other captures of the same group."""
    pruned: Sequence[details.Placed] = ()
    """Captures that are in, without their details."""

    @property
    def ranks(self) -> list[int]:
        return [_rank(capture) for capture in self.captures]

    @property
    def job_size(self) -> int | None:
        """How many ranks the job has: by its files, else as many as the user expects."""
        return self.world_size if self.world_size is not None else self.expected


class _Home(Struct, frozen=True):
    """The run that captures belong to."""

    run_id: int
    how: Literal["created", "joined", "already", "restored"]
    beside: int | None = None


def save_run(store: Store, record: RunRecord, captures: Sequence[Capture], *, formats: Sequence[str]) -> SavedRun:
    """Save the captures of one run; see `save_runs`. `formats`: the format of each capture's files, or one for all."""
    return save_runs(store, [(record, captures, formats)])[0]


def save_runs(store: Store, batch: Sequence[tuple[RunRecord, Sequence[Capture], Sequence[str]]]) -> list[SavedRun]:
    """Save runs, all in one transaction: (record, captures with `rows`, their formats) each.

    Captures whose files are in already change nothing; under another version or workload, or in a deleted run, they
    are a UsageError that names the command to solve it. Captures with new ranks join a run of the same workload,
    configuration, version, device, world size and job (where both are known) whose capture window overlaps theirs;
    otherwise they are a new run. Where files state no world size, the number of ranks that the user expects stands in.
    """
    runs = [_incoming(record, captures, formats) for record, captures, formats in batch]
    return store.transact(lambda connection: _save_all(connection, runs))


def _save_all(connection: Connection, runs: Sequence[_Incoming]) -> list[SavedRun]:
    homes: list[_Home] = []
    to_load: list[details.Placed] = []
    for incoming in runs:
        fresh = _without_known(connection, incoming)
        _make_room(connection, fresh.pruned)
        to_load += fresh.pruned
        if not fresh.captures:
            homes.append(_Home(min(fresh.run_ids), "restored" if fresh.pruned else "already"))
            continue
        home = _place(connection, fresh, {(item.run_id, item.rank) for item in to_load})
        homes.append(home)
        to_load += [
            details.Placed(home.run_id, rank, capture)
            for rank, capture in zip(fresh.ranks, fresh.captures, strict=True)
        ]
    details.load(connection, to_load)
    refresh(connection, {item.run_id for item in to_load}, to_load)
    return [_saved(connection, home) for home in homes]


def _saved(connection: Connection, home: _Home) -> SavedRun:
    rows = connection.execute(statement("run_ranks"), {"run_id": home.run_id}).all()
    if not rows:  # purged since its files were found
        raise Raced
    return SavedRun(
        home.run_id,
        created=home.how == "created",
        joined=home.how == "joined",
        already=home.how == "already",
        restored=home.how == "restored",
        beside=home.beside,
        device=Device(rows[0].vendor, rows[0].model),
        ranks=tuple(row.rank for row in rows),
    )


def _incoming(record: RunRecord, captures: Sequence[Capture], formats: Sequence[str]) -> _Incoming:
    """One run of a batch. What is wrong with it is told here: before there is a database, where there is none yet."""
    if not captures or any(capture.rows is None for capture in captures):
        raise ValueError("a run is saved from captures with rows")
    labels.version_label(record.version)
    labels.workload_name(record.workload)
    labels.configuration_pairs(record.configuration)
    ranks = [_rank(capture) for capture in captures]
    if len(set(ranks)) < len(ranks):
        raise ValueError(f"the captures of a run have distinct ranks, not {ranks}")
    devices = sorted({f"{c.device.vendor} {c.device.model}".strip() for c in captures})
    if len(devices) > 1:
        raise UsageError(
            f"the ranks of one run ran on different devices: {', '.join(devices)}",
            remedy="ingest them one by one, or name the device with --device",
        )
    sizes = {capture.world_size for capture in captures} - {None}
    if len(formats) == 1:
        formats = list(formats) * len(captures)
    expected = None if sizes else record.ranks_expected
    return _Incoming(record, captures, formats, sizes.pop() if len(sizes) == 1 else None, expected, _window(captures))


def _rank(capture: Capture) -> int:
    """The rank; a job that does not count its processes has one, 0."""
    return 0 if capture.rank is None else capture.rank


def _window(captures: Sequence[Capture]) -> tuple[int, int] | None:
    windows = [(c.started_at_ns, c.ended_at_ns) for c in captures]
    starts = [start for start, _ in windows if start is not None]
    ends = [end for _, end in windows if end is not None]
    return (min(starts), max(ends)) if len(starts) == len(ends) == len(windows) else None


def _without_known(connection: Connection, incoming: _Incoming) -> _Incoming:
    """`incoming` without the captures whose files are in, with the runs that these are in."""
    sources = {source.digest: source for capture in incoming.captures for source in capture.sources}
    if not sources:
        return incoming
    known = connection.execute(statement("known_sources"), {"digests": sorted(sources)}).all()
    run_of: dict[bytes, int] = {}
    for row in known:
        _check_label(row, sources[bytes(row.digest)], incoming.record)
        run_of[bytes(row.digest)] = row.run_id
    bare = _bare_ranks(connection, set(run_of.values()))
    fresh, pruned = [], []
    for capture, format in zip(incoming.captures, incoming.formats, strict=True):
        inside = [source.digest in run_of for source in capture.sources]
        if not any(inside):
            fresh.append((capture, format))
        elif not all(inside):
            raise _half_known(capture, run_of)
        elif (place := (run_of[capture.sources[0].digest], _rank(capture))) in bare:
            pruned.append(details.Placed(*place, capture))
    captures = [capture for capture, _ in fresh]
    return _Incoming(
        incoming.record,
        captures,
        [format for _, format in fresh],
        incoming.world_size,
        incoming.expected,
        _window(captures) if captures else None,
        frozenset(run_of.values()),
        pruned,
    )


def _bare_ranks(connection: Connection, run_ids: Set[int]) -> set[tuple[int, int]]:
    """(run, rank) of the captures of these runs whose details were dropped."""
    if not run_ids:
        return set()
    rows = connection.execute(statement("pruned_ranks"), {"run_ids": sorted(run_ids)}).all()
    return {(row.run_id, row.rank) for row in rows}


def _make_room(connection: Connection, pruned: Sequence[details.Placed]) -> None:
    """Forget what is left of captures that come in whole again."""
    for item in pruned:
        for table in ("step", "capture"):
            values = {"run_id": item.run_id, "rank": item.rank}
            # the names are those above
            connection.execute(text(f"DELETE FROM {table} WHERE run_id = :run_id AND rank = :rank"), values)  # noqa: S608


def _check_label(row: Any, source: Source, record: RunRecord) -> None:
    """Refuse a file that is in under another label, or in a run that was deleted."""
    if row.state == "deleted":
        why = f" ({row.state_reason})" if row.state_reason else ""
        raise UsageError(
            f"{source.path} is in as run {row.run_id}, which was deleted{why}",
            remedy=f"to take it back: tracker runs restore {row.run_id}",
        )
    change = ""
    if row.version != clean(record.version):
        change += f" --version {_quoted(record.version)}"
    if row.workload != clean(record.workload):
        change += f" --workload {_quoted(record.workload)}"
    if change:
        raise UsageError(
            f"{source.path} is already in as run {row.run_id}, version {row.version!r} of workload {row.workload!r}",
            remedy=f"to relabel it: tracker runs edit {row.run_id}{change}",
        )


def _quoted(label: str) -> str:
    import shlex

    return shlex.quote(label)


def _half_known(capture: Capture, run_of: Mapping[bytes, int]) -> UsageError:
    inside = next(source for source in capture.sources if source.digest in run_of)
    new = next(source for source in capture.sources if source.digest not in run_of)
    run_id = run_of[inside.digest]
    return UsageError(
        f"{new.path} is new, but {inside.path} of the same capture is in as run {run_id}",
        remedy=f"to replace it: tracker runs delete {run_id} --purge --reason replaced, then ingest again",
    )


def _place(connection: Connection, incoming: _Incoming, placed: Set[tuple[int, int]]) -> _Home:
    """The run for the captures, with all that hangs on it except its details.

    `placed`: (run, rank) of the captures before these in the same call, whose rows are not in yet.
    """
    record = incoming.record
    workload = labels.workload_id(connection, record.workload)
    where = {
        "workload_id": workload,
        "configuration_id": labels.configuration_id(connection, workload, record.configuration),
        "version_id": labels.version_id(connection, workload, record.version, record.commit),
        "device_id": labels.device_id(connection, record.device),
    }
    run_id = beside = None
    if incoming.run_ids or (incoming.job_size or 1) > 1:
        # Ranks that come in at once from several machines must find the run that the first of them makes.
        labels.lock(connection, "run", *where.values())
        run_id = _run_to_join(incoming, _joinable(connection, incoming, where, placed))
    if run_id is None:
        if incoming.world_size is None:
            beside = _overlapping(incoming, _joinable(connection, incoming, where, placed))
        home = _Home(_add_run(connection, incoming, where), "created", beside)
    else:
        home = _Home(run_id, "joined")
        _refuse_bare(connection, incoming, run_id)
        _join(connection, incoming, run_id)
    facts.add(connection, home.run_id, record.facts, record.tags)
    _add_sources(connection, home.run_id, incoming)
    return home


def _joinable(
    connection: Connection, incoming: _Incoming, where: Mapping[str, int], placed: Set[tuple[int, int]]
) -> list[Any]:
    """The runs that lack these ranks, as joinable_runs.sql has them.

    Two jobs that run at the same time, each with ranks of its own profiled, are told apart by their job ids.
    """
    job_id = incoming.record.facts.get("job_id")
    found = connection.execute(statement("joinable_runs"), {**where, "ranks": incoming.ranks, "job_id": job_id}).all()
    return [row for row in found if not any((row.id, rank) in placed for rank in incoming.ranks)]


def _run_to_join(incoming: _Incoming, candidates: Sequence[Any]) -> int | None:
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


def _overlapping(incoming: _Incoming, candidates: Sequence[Any]) -> int | None:
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


def _refuse_bare(connection: Connection, incoming: _Incoming, run_id: int) -> None:
    """UsageError where the other ranks of a run lost their details: one rank alone would speak for all of them."""
    left = _bare_ranks(connection, {run_id}) - {(item.run_id, item.rank) for item in incoming.pruned}
    if left:
        path = next((source.path for capture in incoming.captures for source in capture.sources), "the profile")
        raise UsageError(
            f"{path} is a rank of run {run_id}, whose details were dropped by tracker prune",
            remedy="ingest the profiles of its other ranks with it, which brings them back",
        )


def _add_run(connection: Connection, incoming: _Incoming, where: Mapping[str, int]) -> int:
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


def _join(connection: Connection, incoming: _Incoming, run_id: int) -> None:
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


def _add_sources(connection: Connection, run_id: int, incoming: _Incoming) -> None:
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
