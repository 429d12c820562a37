"""What comes in as one run: its record, its captures, and which of their files are in already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.errors import UsageError
from tracker.profile import Capture, Device, Source, StepRow, check_format
from tracker.profile.branches import branch_of
from tracker.profile.experiments import experiment_of_branch
from tracker.store import captures as stored_captures
from tracker.store import labels
from tracker.store.bulk import clean
from tracker.store.sql import statement


class ExperimentRun(Struct, frozen=True):
    """The place of a run in an experiment. `side`: baseline or candidate; `pair`: from 1, 0: the warm-up of a side."""

    experiment_id: int
    side: str
    pair: int


class RunRecord(Struct, frozen=True):
    """What is known of a run as a whole.

    `started_at_ns`: UTC, None where no clock is absolute. `ranks_expected`: ranks until the run counts as complete,
    None for those that came. `facts`: its environment, allow-listed. `rules_version`: of the naming and category rules.
    `ranks_handed_over`: how many ranks of its job had handed over a profile by now, None where that is not known.
    `stated`: the keys of the configuration that only its files state. `main_commits`: of a branch, the commits of the
    main line from the merge base back, the newest first. `experiment`: of a run of one, which no level, history or
    finding rests on.
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
    stated: frozenset[str] = frozenset()
    main_commits: tuple[str, ...] = ()
    ranks_handed_over: int | None = None
    experiment: ExperimentRun | None = None


class Incoming(Struct, frozen=True):
    """The captures of one run on their way in. `rank` is never None here."""

    record: RunRecord
    captures: Sequence[Capture]
    formats: Sequence[str]
    world_size: int | None
    expected: int | None
    window: tuple[int, int] | None
    run_ids: frozenset[int] = field(default_factory=frozenset)
    """Runs that already hold other captures of the same group."""
    pruned: Sequence[stored_captures.Placed] = ()
    """Captures that are in, and whose details are written again: they were dropped, or their files were read again."""
    again: bool = False
    """Whether captures that are in take the place of what is stored of them."""
    beside: Mapping[str, Set[str]] = field(default_factory=dict)
    """Key of a configuration -> the values that the runs of the same call and workload have."""

    @property
    def ranks(self) -> list[int]:
        """The rank of each capture."""
        return [rank_of(capture) for capture in self.captures]

    @property
    def job_size(self) -> int | None:
        """How many ranks the job has: by its files, else as many as the user expects."""
        return self.world_size if self.world_size is not None else self.expected


def incoming_of(
    record: RunRecord, captures: Sequence[Capture], formats: Sequence[str], *, again: bool = False
) -> Incoming:
    """Return one run of a batch.

    What is wrong with it is told here: before there is a database, where there is none yet.
    """
    if not captures or any(capture.rows is None for capture in captures):
        raise ValueError("a run is saved from captures with rows")
    for format in formats:
        check_format(format)
    labels.version_label(record.version)
    labels.workload_name(record.workload)
    labels.configuration_pairs(record.configuration)
    labels.check_tags(record.tags)
    ranks = [rank_of(capture) for capture in captures]
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
    size = sizes.pop() if len(sizes) == 1 else None
    return Incoming(record, captures, formats, size, expected, window_of(captures), again=again)


def rank_of(capture: Capture) -> int:
    """Return the rank; a job that does not count its processes has one, 0."""
    return 0 if capture.rank is None else capture.rank


def window_of(captures: Sequence[Capture]) -> tuple[int, int] | None:
    """From the start of the first capture to the end of the last, in ns; None unless all of them say both."""
    windows = [(c.started_at_ns, c.ended_at_ns) for c in captures]
    starts = [start for start, _ in windows if start is not None]
    ends = [end for _, end in windows if end is not None]
    return (min(starts), max(ends)) if len(starts) == len(ends) == len(windows) else None


def without_known(connection: Connection, incoming: Incoming) -> Incoming:
    """Return `incoming` without the captures whose files are in, with the runs that these are in."""
    sources = {source.digest: source for capture in incoming.captures for source in capture.sources}
    if not sources:
        return incoming
    known = connection.execute(statement("known_sources"), {"digests": sorted(sources)}).all()
    run_of: dict[bytes, int] = {}
    for row in known:
        _check_label(row, sources[bytes(row.digest)], incoming.record)
        run_of[bytes(row.digest)] = row.run_id
    same = _captures_in_other_files(connection, incoming)
    same |= _logs_that_grew(connection, incoming, run_of)
    bare = bare_ranks(connection, set(run_of.values()))
    fresh, pruned = [], []
    for capture, format in zip(incoming.captures, incoming.formats, strict=True):
        inside = [source.digest in run_of for source in capture.sources]
        if not any(inside) and capture.identity in same:
            held = same[capture.identity]
            run_of |= {source.digest: held for source in capture.sources}
        elif not any(inside):
            fresh.append((capture, format))
        elif not all(inside):
            raise _half_known(capture, run_of)
        elif (place := (run_of[capture.sources[0].digest], rank_of(capture))) in bare or incoming.again:
            pruned.append(stored_captures.Placed(*place, capture))
    captures = [capture for capture, _ in fresh]
    return replace(
        incoming,
        captures=captures,
        formats=[format for _, format in fresh],
        window=window_of(captures) if captures else None,
        run_ids=frozenset(run_of.values()),
        pruned=pruned,
    )


def _captures_in_other_files(connection: Connection, incoming: Incoming) -> dict[bytes, int]:
    """Return the run of each capture that is in, although none of its files may be: exported again, for example."""
    captures = {capture.identity: capture for capture in incoming.captures if capture.identity}
    if not captures:
        return {}
    found: dict[bytes, int] = {}
    for row in connection.execute(statement("known_captures"), {"digests": sorted(captures)}).all():
        capture = captures[bytes(row.digest)]
        if capture.sources:
            _check_label(row, capture.sources[0], incoming.record)
        found[bytes(row.digest)] = row.run_id
    return found


def _logs_that_grew(connection: Connection, incoming: Incoming, run_of: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return the run of each log of which more is in already; a UsageError where less of it is in.

    A log that is read while it is still written holds the first steps of what it holds later.
    """
    found: dict[bytes, int] = {}
    for capture in incoming.captures:
        is_log = capture.settings.get("profiler") == "off" and capture.identity and capture.rows is not None
        if not is_log or any(source.digest in run_of for source in capture.sources):
            continue
        where = {"workload": clean(incoming.record.workload), "started_at_ns": capture.started_at_ns}
        stored: dict[int, list[tuple[int, int, int | None]]] = {}
        labels_of: dict[int, Any] = {}
        for row in connection.execute(statement("begun_captures"), where).all():
            stored.setdefault(row.run_id, []).append((row.step, row.start_ns, row.duration_ns))
            labels_of[row.run_id] = row
        steps = [(row.step, row.start_ns, row.breakdown.duration_ns) for row in _steps_of(capture)]
        for run_id, others in stored.items():
            shorter = min(len(steps), len(others))
            if not shorter or len(steps) == len(others) or steps[:shorter] != others[:shorter]:
                continue
            _check_label(labels_of[run_id], capture.sources[0], incoming.record)
            if len(steps) > len(others):
                raise UsageError(
                    f"{capture.sources[0].path} is the log of run {run_id} with {len(steps) - len(others)} more steps",
                    remedy=f"to replace it: tracker runs delete {run_id} --purge --reason replaced, then ingest again",
                )
            found[capture.identity] = run_id
    return found


def _steps_of(capture: Capture) -> Sequence[StepRow]:
    return () if capture.rows is None else capture.rows.steps


def bare_ranks(connection: Connection, run_ids: Set[int]) -> set[tuple[int, int]]:
    """(run, rank) of the captures of these runs whose details were dropped."""
    if not run_ids:
        return set()
    rows = connection.execute(statement("pruned_ranks"), {"run_ids": sorted(run_ids)}).all()
    return {(row.run_id, row.rank) for row in rows}


def _check_label(row: Any, source: Source, record: RunRecord) -> None:
    """Refuse a file that is in under another label, or in a run that was deleted."""
    if row.state == "deleted":
        why = f" ({row.state_reason})" if row.state_reason else ""
        raise UsageError(
            f"{source.path} is in as run {row.run_id}, which was deleted{why}",
            remedy=f"to take it back: tracker runs restore {row.run_id}",
        )
    experiment = experiment_of_branch(branch_of(row.workload))
    if experiment and (row.version, row.workload) != (clean(record.version), clean(record.workload)):
        raise UsageError(
            f"{source.path} is already in as run {row.run_id} of experiment {experiment}",
            remedy=f"to give it up: tracker experiments delete {experiment}",
        )
    change = ""
    if row.version != clean(record.version):
        change += f" --version {_quoted(record.version)}"
    if row.workload != clean(record.workload):
        change += f" --workload {_quoted(record.workload)}"
    if change and record.experiment is not None:
        raise UsageError(
            f"{source.path} is already in as run {row.run_id}, version {row.version!r} of workload {row.workload!r}",
            remedy="let each run of an experiment write a profile of its own",
        )
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
