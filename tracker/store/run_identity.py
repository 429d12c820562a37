"""What is stored of the runs of one identity beside those that come in: other ranks of their job, other cycles."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from tracker.profile import PROCESS_SETTING, RANK_BY_ORDER, RANK_SETTING, Capture
from tracker.profile.same_job import (
    CLOCKS_APART_NS,
    WITHOUT_PROFILER,
    Traits,
    are_on_other_clocks,
    are_repeats,
    count_collectives,
    is_later_cycle,
    may_be_cycles,
    may_be_one_job,
    ran_at_once,
)
from tracker.store.run_record import Incoming, rank_of
from tracker.store.sql import statement


class Stored(Struct, frozen=True):
    """A capture that is in. traits: without steps and collectives, which `with_events` adds."""

    run_id: int
    rank: int
    world_size: int | None
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
        found.append(Stored(row.run_id, row.rank, row.world_size, row.ranks_expected, _traits_of_row(row)))
    return found


def _traits_of_row(row: Any) -> Traits:
    settings = json.loads(row.settings or "{}")
    rank_by = settings.get(RANK_SETTING, "")
    return Traits(
        place=row.path or "",
        rank=None if rank_by == RANK_BY_ORDER else row.rank,
        host=row.host,
        device_ordinal=row.device_ordinal,
        started_at_ns=row.started_at_ns,
        ended_at_ns=row.ended_at_ns,
        process=settings.get(PROCESS_SETTING, ""),
        rank_by=rank_by,
    )


def traits_of(capture: Capture) -> Traits:
    """Return what a capture that comes in says of its job."""
    rows = capture.rows
    rank_by = capture.settings.get(RANK_SETTING, "")
    return Traits(
        place=capture.sources[0].path if capture.sources else "",
        rank=None if rank_by == RANK_BY_ORDER else capture.rank,
        host=capture.host,
        device_ordinal=capture.device_ordinal,
        started_at_ns=capture.started_at_ns,
        ended_at_ns=capture.ended_at_ns,
        process=capture.settings.get(PROCESS_SETTING, ""),
        steps=() if rows is None else tuple(step.step for step in rows.steps),
        collectives=() if rows is None else count_collectives(rows),
        rank_by=rank_by,
    )


def with_events(connection: Connection, stored: Stored) -> Traits:
    """Return the traits of a stored capture with its steps and collectives."""
    where = {"run_id": stored.run_id, "rank": stored.rank}
    steps = tuple(row.step for row in connection.execute(statement("step_numbers"), where))
    exchanged = tuple((row.kind, row.calls) for row in connection.execute(statement("exchanged"), where))
    return replace(stored.traits, steps=steps, collectives=exchanged)


def find_cycles(connection: Connection, incoming: Incoming, stored: Sequence[Stored]) -> list[Cycle]:
    """Return which captures that come in are other cycles of stored ones, by their processes, names and steps."""
    found = []
    for capture in incoming.captures:
        if capture.settings.get("profiler") in WITHOUT_PROFILER:
            continue
        here = traits_of(capture)
        for other in stored:
            if other.rank != rank_of(capture) or not may_be_cycles(here, other.traits):
                continue
            there = with_events(connection, other)
            if is_later_cycle(here, there) or is_later_cycle(there, here):
                found.append(Cycle(capture, other, counts=here.weight > there.weight))
                break
    return found


def runs_on_other_clocks(connection: Connection, incoming: Incoming, stored: Sequence[Stored]) -> list[int]:
    """Return the runs that lack the ranks that come in, and are of the same job by what they counted and exchanged.

    Their hosts have other clocks, so that they seem to have run at another time.
    """
    found = []
    arriving = [traits_of(capture) for capture in incoming.captures]
    for run_id, captures in _by_run(stored):
        if {one.rank for one in captures} & set(incoming.ranks) or captures[0].world_size != incoming.world_size:
            continue
        near = [one for one in captures if any(ran_at_once(one.traits, here, CLOCKS_APART_NS) for here in arriving)]
        others = (with_events(connection, one) for one in near)
        if any(are_on_other_clocks(here, there) for there in others for here in arriving):
            found.append(run_id)
    return found


def runs_at_once(incoming: Incoming, stored: Sequence[Stored]) -> list[int]:
    """Return the runs whose sources state other ranks, no world size, and ran at the same time; the longest first.

    All captures that come in state their ranks. A clock that is not absolute says nothing here.
    """
    arriving = [traits_of(capture) for capture in incoming.captures]
    if any(here.rank is None or not _is_timed(here) for here in arriving):
        return []
    ratings = []
    for run_id, captures in _by_run(stored):
        if captures[0].world_size is not None or any(one.traits.rank is None for one in captures):
            continue
        if {one.rank for one in captures} & set(incoming.ranks) or not _has_room(captures, incoming):
            continue
        common = [_common_ns(one.traits, here) for one in captures if _is_timed(one.traits) for here in arriving]
        if max(common, default=-1) >= 0:
            ratings.append((-max(common), run_id))
    return [run_id for _, run_id in sorted(ratings)]


def sibling_of(incoming: Incoming, stored: Sequence[Stored]) -> tuple[Capture, Stored] | None:
    """Return a capture that comes in and a stored one that may be ranks of one job, where no source states ranks."""
    for capture in incoming.captures:
        here = traits_of(capture)
        for other in stored:
            if here.rank_by and other.traits.rank_by and may_be_one_job(here, other.traits):
                return capture, other
    return None


def run_beside(incoming: Incoming, stored: Sequence[Stored]) -> int | None:
    """Return a run that ran at the same time and may be of the same job, though nothing says it; None for none.

    That is one that has other ranks, or of which neither source states a rank.
    """
    arriving = [traits_of(capture) for capture in incoming.captures]
    for run_id, captures in _by_run(stored):
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
    (here, *_), (there, *_) = [traits_of(one) for one in incoming.captures], [one.traits for one in captures]
    if here.rank is not None or there.rank is not None:
        return False
    return not are_repeats(here.place, there.place)


def _by_run(stored: Sequence[Stored]) -> Iterator[tuple[int, list[Stored]]]:
    runs: dict[int, list[Stored]] = {}
    for one in stored:
        runs.setdefault(one.run_id, []).append(one)
    yield from runs.items()


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
