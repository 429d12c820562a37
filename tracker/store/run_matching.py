"""The run that captures belong to: one that is there and lacks their ranks, or a new one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, text

from tracker.errors import UsageError
from tracker.profile import PROCESS_SETTING, RANK_BY_ORDER, RANK_SETTING, UNKNOWN_DEVICE, Capture
from tracker.profile.branches import branch_of
from tracker.profile.experiments import experiment_of_branch, name_experiment
from tracker.profile.numbered_names import place_of, process_in_path
from tracker.profile.same_job import (
    CLOCKS_APART_NS,
    HOW_TO_NAME_PARTS,
    WITHOUT_PROFILER,
    are_repeats,
    is_later_cycle,
    may_be_cycles,
    may_be_one_job,
    may_be_parts,
    ran_at_once,
    share_few_kernels,
    why_apart,
)
from tracker.profile.traits import CaptureWork, Traits, traits_of, work_of
from tracker.store import labels
from tracker.store.bulk import clean, insert
from tracker.store.captures import Placed
from tracker.store.failures import Raced
from tracker.store.run_record import Incoming, RunRecord, bare_ranks, rank_of, window_of
from tracker.store.sql import statement

_ADD_RUN: Final = text(
    "INSERT INTO run (workload_id, configuration_id, version_id, device_id, state, state_reason, ranks_expected, "
    "world_size, started_at_ns, ended_at_ns, rules_version, note, experiment_id, experiment_side, experiment_pair) "
    "VALUES (:workload_id, :configuration_id, :version_id, :device_id, :state, :state_reason, :ranks_expected, "
    ":world_size, :started_at_ns, :ended_at_ns, :rules_version, :note, :experiment_id, :experiment_side, "
    ":experiment_pair) RETURNING id"
)
_JOIN_RUN: Final = text(
    "UPDATE run SET started_at_ns = COALESCE(CAST(:started_at_ns AS BIGINT), started_at_ns), "
    "ended_at_ns = COALESCE(CAST(:ended_at_ns AS BIGINT), ended_at_ns), "
    "ranks_expected = COALESCE(CAST(:ranks_expected AS BIGINT), ranks_expected), "
    "note = COALESCE(note, CAST(:note AS TEXT)) WHERE id = :id AND state <> 'deleted'"
)


class Stored(Struct, frozen=True):
    """A capture that is in. traits: without steps and collectives, which `with_events` adds."""

    run_id: int
    rank: int
    ranks_expected: int | None
    traits: Traits


class Cycle(Struct, frozen=True):
    """A capture that comes in and is another cycle of a stored one. counts: it takes the place of that one."""

    capture: Capture
    stored: Stored
    counts: bool


def stored_alike(connection: Connection, where: Mapping[str, int], job_id: str | None) -> list[Stored]:
    """Return the captures of all runs of one identity, `where`."""
    found = []
    for row in connection.execute(statement("captures_alike"), {**where, "job_id": job_id}):
        found.append(Stored(row.run_id, row.rank, row.ranks_expected, _traits_of_row(row)))
    return found


def _placed_alike(
    connection: Connection, where: Mapping[str, int], job_id: str | None, placed: Sequence[Placed]
) -> list[Stored]:
    """Return those of the captures whose rows are not in yet that are of runs of one identity, `where`."""
    run_ids = sorted({item.run_id for item in placed}) or [-1]
    asked = {**where, "job_id": job_id, "run_ids": run_ids}
    runs = {row.id: row for row in connection.execute(statement("runs_alike"), asked)}
    found = []
    for item in placed:
        if item.run_id in runs:
            run = runs[item.run_id]
            traits = _traits_but_for_identity(item.capture, run.world_size)
            found.append(Stored(item.run_id, item.rank, run.ranks_expected, traits))
    return found


def _traits_of_row(row: Any) -> Traits:
    settings = json.loads(row.settings or "{}")
    rank_by = settings.get(RANK_SETTING, "")
    rank = None if rank_by == RANK_BY_ORDER else row.rank
    return Traits(
        place=row.path or "",
        rank=rank,
        host=row.host,
        device_ordinal=row.device_ordinal,
        started_at_ns=row.started_at_ns,
        ended_at_ns=row.ended_at_ns,
        process=settings.get(PROCESS_SETTING) or process_in_path(row.path or ""),
        rank_by=rank_by,
        ranks=frozenset() if rank is None else frozenset({rank}),
        world_size=row.world_size,
    )


def _arriving(capture: Capture) -> Traits:
    """Return what a capture that comes in says of its job."""
    place = capture.sources[0].path if capture.sources else ""
    return traits_of(capture, place, work_of(capture))


def _traits_but_for_identity(capture: Capture, world_size: int | None) -> Traits:
    """Return the traits of a capture, to be asked of others of the same identity."""
    identity: dict[str, Any] = {"labels": {}, "configuration": {}, "device": UNKNOWN_DEVICE, "job_id": None}
    return replace(_arriving(capture), world_size=world_size, **identity)


def with_events(connection: Connection, stored: Stored) -> Traits:
    """Return the traits of a stored capture with its steps and collectives; what is not in yet has them."""
    if stored.traits.work != CaptureWork():
        return stored.traits
    where = {"run_id": stored.run_id, "rank": stored.rank}
    steps = tuple(row.step for row in connection.execute(statement("step_numbers"), where))
    exchanged = tuple((row.kind, row.calls) for row in connection.execute(statement("exchanged"), where))
    return replace(stored.traits, work=CaptureWork(steps=steps, collectives=exchanged))


def part_of(connection: Connection, incoming: Incoming, stored: Sequence[Stored]) -> tuple[Capture, Stored] | None:
    """Return a capture that comes in and a stored one that are parts of one process; None for none."""
    for capture in incoming.captures:
        here = _arriving(capture)
        for other in stored:
            if other.rank != rank_of(capture) or not may_be_parts(here, other.traits):
                continue
            where = {"run_id": other.run_id, "rank": other.rank}
            names = (row.name for row in connection.execute(statement("computing_kernels"), where))
            if share_few_kernels(here, replace(other.traits, work=CaptureWork(kernels=frozenset(names)))):
                return capture, other
    return None


def find_cycles(connection: Connection, incoming: Incoming, stored: Sequence[Stored]) -> list[Cycle]:
    """Return which captures that come in are other cycles of stored ones, by their processes, names and steps."""
    found = []
    for capture in incoming.captures:
        if capture.settings.get("profiler") in WITHOUT_PROFILER:
            continue
        here = _arriving(capture)
        for other in stored:
            if other.rank != rank_of(capture) or not may_be_cycles(here, other.traits):
                continue
            there = with_events(connection, other)
            if is_later_cycle(here, there) or is_later_cycle(there, here):
                found.append(Cycle(capture, other, counts=here.weight > there.weight))
                break
    return found


class Match(Struct, frozen=True):
    """A stored run that captures which come in are ranks of. `common_ns`: the longest time for which one of them and
    one of these ran at once; None where they seem to follow each other only since the clocks of their hosts differ.
    """

    run_id: int
    common_ns: int | None


def find_matches(connection: Connection, incoming: Incoming, stored: Mapping[int, Sequence[Stored]]) -> list[Match]:
    """Return the runs that are of the same job as the captures that come in, run by run; `stored`: their captures.

    That is what `same_job.why_apart` says of the files of one call, too. Only here a clock that is not absolute proves
    nothing: files that come in one by one need not be of one job.
    """
    arriving = [_traits_but_for_identity(capture, incoming.world_size) for capture in incoming.captures]
    if not all(_is_timed(here) for here in arriving):
        return []
    found = []
    for run_id, captures in stored.items():
        if not all(_is_timed(one.traits) for one in captures):
            continue
        common_ns = max(_common_ns(one.traits, here) for one in captures for here in arriving)
        there = [one.traits for one in captures]
        if common_ns < 0:
            there = [_look_up_near(connection, one, arriving) for one in captures]
        if why_apart(arriving, there) is None:
            found.append(Match(run_id, common_ns if common_ns >= 0 else None))
    return found


def _lacks_ranks(captures: Sequence[Stored], incoming: Incoming) -> bool:
    """Return whether a stored run has none of the ranks that come in."""
    return {one.rank for one in captures}.isdisjoint(incoming.ranks)


def _look_up_near(connection: Connection, stored: Stored, arriving: Sequence[Traits]) -> Traits:
    """Return the traits of a stored capture, with what its rows say where only the clocks may set it apart."""
    is_near = any(ran_at_once(stored.traits, here, CLOCKS_APART_NS) for here in arriving)
    return with_events(connection, stored) if is_near else stored.traits


def sibling_of(incoming: Incoming, stored: Sequence[Stored]) -> tuple[Capture, Stored] | None:
    """Return a capture that comes in and a stored one that may be ranks of one job, where no source states ranks."""
    for capture in incoming.captures:
        here = _arriving(capture)
        for other in stored:
            if here.rank_by and other.traits.rank_by and may_be_one_job(here, other.traits):
                return capture, other
    return None


def run_beside(incoming: Incoming, stored: Sequence[Stored]) -> int | None:
    """Return a run that ran at the same time and may be of the same job, though nothing says it; None for none.

    That is one that has other ranks, or of which neither source states a rank.
    """
    arriving = [_arriving(capture) for capture in incoming.captures]
    for run_id, captures in _by_run(stored).items():
        times = [one.traits for one in captures if _is_timed(one.traits)]
        if not any(_is_timed(here) and ran_at_once(here, there) for here in arriving for there in times):
            continue
        has_other_ranks = not {one.rank for one in captures} & set(incoming.ranks)
        if has_other_ranks or _may_be_unranked(incoming, captures):
            return run_id
    return None


def _may_be_unranked(incoming: Incoming, captures: Sequence[Stored]) -> bool:
    """Return whether neither side states a rank, and their paths do not count repeats."""
    if any(capture.settings.get("profiler") in WITHOUT_PROFILER for capture in incoming.captures):
        return False
    (here, *_), (there, *_) = [_arriving(one) for one in incoming.captures], [one.traits for one in captures]
    if here.rank is not None or there.rank is not None:
        return False
    return not are_repeats(here.place, there.place)


def _by_run(stored: Sequence[Stored]) -> dict[int, list[Stored]]:
    runs: dict[int, list[Stored]] = {}
    for one in stored:
        runs.setdefault(one.run_id, []).append(one)
    return runs


def _is_timed(traits: Traits) -> bool:
    return traits.started_at_ns is not None and traits.ended_at_ns is not None


def _common_ns(one: Traits, other: Traits) -> int:
    """Return how long two captures ran at the same time; negative where they did not."""
    start = max(one.started_at_ns or 0, other.started_at_ns or 0)
    return min(one.ended_at_ns or 0, other.ended_at_ns or 0) - start


def _has_room(captures: Sequence[Stored], incoming: Incoming) -> bool:
    """Return whether a run lacks as many ranks as come in, where the user said how many he expects."""
    expected = {captures[0].ranks_expected, incoming.expected} - {None}
    if len(expected) > 1:
        return False
    return all(len(captures) + len(incoming.captures) <= (number or 0) for number in expected)


class Home(Struct, frozen=True):
    """The run that captures belong to.

    beside: another run that may be of the same job. replaced: captures that take the place of what is stored.
    fresh: captures whose rows are new. notes: what to know of it.
    """

    run_id: int
    how: Literal["created", "joined", "already", "restored"]
    beside: int | None = None
    notes: tuple[str, ...] = ()
    fresh: tuple[Placed, ...] = ()
    replaced: tuple[Placed, ...] = ()


def place_run(connection: Connection, incoming: Incoming, placed: Sequence[Placed]) -> Home:
    """Return the run for the captures, with all that hangs on it except its details.

    placed: the captures before these in the same call, whose rows are not in yet.
    """
    record = incoming.record
    _refuse_branch_of_experiment(record)
    workload = labels.workload_id(connection, record.workload)
    main = labels.main_line(connection, workload)
    if main == workload:
        configuration = labels.place_configuration(
            connection, workload, record.configuration, stated=record.stated, beside=incoming.beside
        )
    else:
        configuration = labels.place_configuration_on_branch(
            connection, workload, main, record.configuration, stated=record.stated
        )
    where = {
        "workload_id": workload,
        "configuration_id": configuration.configuration_id,
        "version_id": labels.version_id(connection, workload, record.version, record.commit, record.main_commits),
        "device_id": labels.device_id(connection, record.device),
    }
    # ranks that come in at once from several machines must find the run that the first of them makes
    labels.lock(connection, "run", *where.values())
    job_id = record.facts.get("job_id")
    # each run of an experiment comes whole, in one call: those before it are never of the same job
    stored = stored_alike(connection, where, job_id) if record.experiment is None else []
    _refuse_parts(connection, incoming, stored)
    cycles = find_cycles(connection, incoming, stored)
    if cycles:
        incoming = _without_cycles(connection, incoming, cycles)
    replaced = tuple(Placed(one.stored.run_id, one.stored.rank, one.capture) for one in cycles if one.counts)
    notes = [_note_on_cycle(one) for one in cycles]
    if not incoming.captures:
        return Home(cycles[0].stored.run_id, "joined" if replaced else "already", notes=tuple(notes), replaced=replaced)
    found = _run_to_join(connection, incoming, [*stored, *_placed_alike(connection, where, job_id, placed)])
    run_id, beside = found.run_id, None
    if run_id is None:
        _refuse_siblings(incoming, stored)
        if incoming.world_size is None:
            beside = run_beside(incoming, stored)
        run_id = _add_run(connection, incoming, where)
        notes += [configuration.note, _note_on_device(connection, incoming, where, run_id)]
    else:
        _refuse_bare(connection, incoming, run_id)
        _join(connection, incoming, run_id)
    notes.append(found.note)
    labels.add_facts(connection, run_id, record.facts, record.tags)
    _add_sources(connection, run_id, incoming)
    fresh = [Placed(run_id, rank, capture) for rank, capture in zip(incoming.ranks, incoming.captures, strict=True)]
    how: Literal["created", "joined"] = "created" if found.run_id is None else "joined"
    return Home(run_id, how, beside, tuple(filter(None, notes)), tuple(fresh), replaced)


def _refuse_branch_of_experiment(record: RunRecord) -> None:
    """UsageError for a run that is filed under an experiment and is none of it, as of a job that stores its profiles
    itself.
    """
    experiment = experiment_of_branch(branch_of(record.workload))
    if experiment and record.experiment is None:
        raise UsageError(
            f"this profile is of experiment {experiment}, whose runs tracker ab stores",
            remedy="let the command of tracker ab only write it, and watch another folder",
        )


def _note_on_device(connection: Connection, incoming: Incoming, where: Mapping[str, int], run_id: int) -> str:
    """Return what to know of a new run that may lack its other ranks, since one of two runs names no chip; "" else."""
    job_id = incoming.record.facts.get("job_id")
    for device in connection.execute(statement("devices_alike"), {"device_id": where["device_id"]}).all():
        alike = stored_alike(connection, {**where, "device_id": device.id}, job_id)
        for match in find_matches(connection, incoming, _by_run(alike)):
            if match.common_ns is not None:
                return (
                    f"run:{match.run_id} has other ranks of this time, and the files of one of both do not name the "
                    f"chip: where they are one job, tracker runs delete {run_id} --purge --reason joined, then ingest "
                    "the files of both in one call, or these with --device"
                )
    return ""


class _Found(Struct, frozen=True):
    """The run to join, None for none, and what to know of that."""

    run_id: int | None = None
    note: str = ""


def _without_cycles(connection: Connection, incoming: Incoming, cycles: Sequence[Cycle]) -> Incoming:
    """Return what comes in without other cycles of stored captures, whose files are known from now on."""
    formats = {id(capture): format for capture, format in zip(incoming.captures, incoming.formats, strict=True)}
    for one in cycles:
        only = replace(incoming, captures=[one.capture], formats=[formats[id(one.capture)]])
        _add_sources(connection, one.stored.run_id, only)
    of_cycles = {id(one.capture) for one in cycles}
    captures = [capture for capture in incoming.captures if id(capture) not in of_cycles]
    return replace(
        incoming,
        captures=captures,
        formats=[formats[id(capture)] for capture in captures],
        window=window_of(captures) if captures else None,
        run_ids=incoming.run_ids | {one.stored.run_id for one in cycles},
    )


def _note_on_cycle(cycle: Cycle) -> str:
    name = Path(place_of(cycle.capture.sources[0].path)).name
    counting = "it takes the place of the one before" if cycle.counts else "the one before counts"
    return f"{name} is another cycle of the process of this run, of which the longest counts: {counting}"


def _refuse_siblings(incoming: Incoming, stored: Sequence[Stored]) -> None:
    """UsageError where no source states ranks, and names, devices and times say that there may be one job."""
    if incoming.window is None or _are_logs(incoming):
        return
    siblings = sibling_of(incoming, stored)
    if siblings is None:
        return
    capture, other = siblings
    raise UsageError(
        f"{capture.sources[0].path} ran at the same time as {Path(place_of(other.traits.place)).name} of run "
        f"{other.run_id}, names no rank, and differs from it in numbers or device: they seem to be ranks of one job",
        remedy=(
            f"tracker runs delete {other.run_id} --purge --reason joined, then ingest the files of both in one call, "
            "with --as-run; where they are runs of their own, write a job_id into NAME.tracker.json beside each"
        ),
    )


def _refuse_parts(connection: Connection, incoming: Incoming, stored: Sequence[Stored]) -> None:
    """UsageError where a capture holds other work of the process of a stored run: it would be its repeat."""
    parts = part_of(connection, incoming, stored)
    if parts is None:
        return
    capture, other = parts
    raise UsageError(
        f"{capture.sources[0].path} is of process {other.traits.process} as {Path(place_of(other.traits.place)).name} "
        f"of run {other.run_id}, captured within minutes, and they have few kernels in common: they are parts of one "
        "job, and no repeats",
        remedy=HOW_TO_NAME_PARTS,
    )


def _are_logs(incoming: Incoming) -> bool:
    return any(capture.settings.get("profiler") in WITHOUT_PROFILER for capture in incoming.captures)


def _run_to_join(connection: Connection, incoming: Incoming, stored: Sequence[Stored]) -> _Found:
    """Return the run that has other captures of the same group, or else one of the same job.

    That is the one that ran at the same time for longest, else the only one on another clock. Where the files do not
    say how large the job is, it has room for these ranks, and its clock is the same.
    """
    runs = {run_id: captures for run_id, captures in _by_run(stored).items() if _lacks_ranks(captures, incoming)}
    same_group = min(runs.keys() & incoming.run_ids, default=None)
    if same_group is not None:
        return _Found(same_group)
    matches = find_matches(connection, incoming, runs)
    if incoming.world_size is None:
        matches = [one for one in matches if one.common_ns is not None and _has_room(runs[one.run_id], incoming)]
    at_once = [one for one in matches if one.common_ns is not None]
    if at_once:
        return _Found(max(at_once, key=lambda one: one.common_ns or 0).run_id)
    names = " and ".join(f"run:{one.run_id}" for one in matches)
    if len(matches) > 1:
        return _Found(
            None,
            f"{names} may have other ranks of this job, on hosts with other clocks: ingest the profiles of all of them "
            "in one call, with --as-run",
        )
    if not matches:
        return _Found()
    return _Found(
        matches[0].run_id,
        f"the clocks of the hosts differ: the ranks are of {names}, since they count the same steps and exchanged the "
        "same",
    )


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
    record, of = incoming.record, incoming.record.experiment
    starts = [c.started_at_ns for c in incoming.captures if c.started_at_ns is not None]
    values = {
        **where,
        "state": "active" if of is None else "excluded",
        "state_reason": "" if of is None else f"a run of experiment {name_experiment(of.experiment_id)}",
        "experiment_id": None if of is None else of.experiment_id,
        "experiment_side": None if of is None else of.side,
        "experiment_pair": None if of is None else of.pair,
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
