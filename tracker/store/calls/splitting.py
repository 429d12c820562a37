"""How long each collective call transmitted and waited, told by all ranks of its group; kept as sums per row.

Whenever ranks come to a run, the groups that are complete with them are paired anew. What one group says depends on the
calls of its members alone, so that the order in which ranks come changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from tracker.profile import I64, MISSING, each_once, ranks_in
from tracker.store.calls.groups import Group, members_of
from tracker.store.calls.pairing import Pairs, RankCalls, pair, pair_in_order
from tracker.store.packing import Calls, damaged_calls, unpack_calls
from tracker.store.sql import statement

TWO_SIDED: Final = frozenset({"send", "recv", "send_recv"})
"""Kinds of calls between two ranks; the two sides may differ in kind and payload."""

PIPELINE: Final = "pp"
"""Role of the groups in which stages of a pipeline wait for each other."""

UNEVEN: Final = frozenset({"all_to_all"})
"""Kinds of which the payload of one call differs from rank to rank."""

_NO_PEER: Final = -1

_RANKS: Final = text("SELECT rank FROM collective_call WHERE run_id = :run_id ORDER BY rank")
_WORLD: Final = text("SELECT world_size FROM run WHERE id = :run_id")
_FORGET: Final = text(
    "UPDATE communication SET ranks_transit_ns = NULL, ranks_wait_ns = NULL, ranks_exposed_wait_ns = NULL, "
    "paired_calls = NULL WHERE run_id = :run_id AND rank = :rank AND paired_calls IS NOT NULL"
)
_KEEP: Final = text(
    "UPDATE communication SET ranks_transit_ns = :transit_ns, ranks_wait_ns = :wait_ns, "
    "ranks_exposed_wait_ns = :exposed_wait_ns, paired_calls = :paired "
    "WHERE run_id = :run_id AND rank = :rank AND ordinal = :ordinal"
)
_KEEP_GROUP: Final = text(
    "UPDATE run_group SET members = :members, captured = :captured, "
    "clock_offset_ns = CASE WHEN :is_paired = 1 THEN CAST(:clock_offset_ns AS BIGINT) ELSE clock_offset_ns END "
    "WHERE run_id = :run_id AND number = :number"
)


class _Rank(Struct, frozen=True, eq=False):
    """The calls of a rank, on the clock of its host where that shows a date, and what each of them is.

    `kind`: of the row of `communication`; `data_type`: number of its text; `members`: number of the ranks of its group,
    -1 where they are not known. `exposed_ns`: of each row. `has_clock`: its times have a date; else they count from
    its own first event.
    """

    rank: int
    host: str
    calls: Calls
    kind: NDArray[np.object_]
    data_type: I64
    members: I64
    exposed_ns: Mapping[int, int | None]
    has_clock: bool

    def of_kinds(self, kinds: Set[str]) -> NDArray[np.bool_]:
        """Return which calls are of these kinds."""
        return np.array([kind in kinds for kind in self.kind.tolist()], dtype=bool)

    def as_member(self, rows: I64, key: I64) -> RankCalls:
        """Return these calls as those of a member of a group."""
        calls = self.calls
        start = calls.start_ns[rows]
        return RankCalls(self.rank, self.host, key, start, start + calls.elapse_ns[rows], calls.source_index[rows])


class _Split(Struct, eq=False):
    """What the ranks tell of each call of one of them: how long it transmitted, MISSING without partners; and whether
    partners were looked for.
    """

    transit_ns: I64
    is_tried: NDArray[np.bool_]


class Matched(Struct, frozen=True, eq=False):
    """The collectives of a complete group, one column per call. `ranks`: its members; `places`: of each member its
    place among the calls of the rank; `ahead_ns`: how far the clock of each is ahead of the first's.
    """

    ranks: tuple[int, ...]
    places: I64
    ahead_ns: tuple[int, ...]


class RunCalls(Struct, frozen=True, eq=False):
    """All collective calls of a run. `groups`: by number; `calls`, `kinds`, `transit_ns` (MISSING without partners): by
    rank, one place per call, starts on the clock of the host; `matched`: of the complete groups; `without_clock`: ranks
    whose captures name no date.
    """

    groups: Mapping[int, Group]
    calls: Mapping[int, Calls]
    kinds: Mapping[int, NDArray[np.object_]]
    transit_ns: Mapping[int, I64]
    matched: tuple[Matched, ...]
    without_clock: frozenset[int] = frozenset()


def collectives(connection: Connection, run_id: int) -> RunCalls:
    """Return the calls of all captured ranks, and which of them are one call; what `refresh` keeps the sums of."""
    groups = _groups(connection, run_id)
    captured = [int(rank) for rank in connection.execute(_RANKS, {"run_id": run_id}).scalars()]
    members = _members(connection, run_id, groups, set(captured))
    loaded = _Loaded(connection, run_id, members)
    ranks = {rank: loaded.rank(rank) for rank in captured}
    splits = {rank: _nothing(own) for rank, own in ranks.items()}
    matched = []
    for own in sorted({own for own in members.values() if len(own) > 1 and set(captured).issuperset(own)}):
        places, ahead = _split_group([ranks[rank] for rank in own], loaded.number(own), splits)
        matched.append(Matched(own, places, ahead))
    for ends in sorted({_ends(rank, peer) for rank, own in ranks.items() for peer in _peers(own)}):
        if set(captured).issuperset(ends):
            _split_peers([ranks[rank] for rank in ends], splits)
    return RunCalls(
        {group.number: replace(group, ranks=members[group.number]) for group in groups},
        {rank: own.calls for rank, own in ranks.items()},
        {rank: own.kind for rank, own in ranks.items()},
        {rank: split.transit_ns for rank, split in splits.items()},
        tuple(matched),
        frozenset(rank for rank, own in ranks.items() if not own.has_clock),
    )


def refresh(connection: Connection, came: Mapping[int, Set[int]], *, regrouped: Set[int]) -> None:
    """Tell transmitting from waiting in all that the ranks which `came` (run -> ranks) make complete.

    `regrouped`: runs that have got groups with them, so that calls without a named group may be of another one. The
    transaction holds the runs.
    """
    for run_id, ranks in sorted(came.items()):
        _refresh(connection, run_id, ranks, is_regrouped=run_id in regrouped)


def refresh_complete_groups(connection: Connection, run_id: int, came: Set[int]) -> None:
    """Do what `refresh` does of a run that waits for other ranks, as far as it concerns groups that the ranks which
    `came` are in. What these say of other groups is left to the last rank, so that each rank costs the same.
    """
    _refresh(connection, run_id, came, is_regrouped=False, is_whole=False)


def _refresh(connection: Connection, run_id: int, came: Set[int], *, is_regrouped: bool, is_whole: bool = True) -> None:
    groups = _groups(connection, run_id)
    captured = set(connection.execute(_RANKS, {"run_id": run_id}).scalars())
    members = _members(connection, run_id, groups, captured)
    whole = {own for own in members.values() if len(own) > 1 and captured.issuperset(own)}
    changed = captured if is_regrouped and any(not group.ranks for group in groups) else captured & came
    affected = changed.union(*(own for own in whole if changed.intersection(own)))
    loaded = _Loaded(connection, run_id, members)
    # the other ends of sends and receives, whose groups may not be complete
    affected |= {int(peer) for rank in changed for peer in _peers(loaded.rank(rank))} & captured
    offsets: dict[tuple[int, ...], int] = {}
    splits = {rank: _nothing(loaded.rank(rank)) for rank in sorted(affected)} if len(captured) > 1 else {}
    for own in sorted(whole):
        if affected.intersection(own):
            _, ahead = _split_group([loaded.rank(rank) for rank in own], loaded.number(own), splits)
            offsets[own] = max(map(abs, ahead))
    for ends in sorted({_ends(rank, peer) for rank in splits for peer in _peers(loaded.rank(rank))}):
        if captured.issuperset(ends):
            _split_peers([loaded.rank(rank) for rank in ends], splits)
    for rank, split in splits.items():
        _keep(connection, run_id, loaded.rank(rank), split)
    for group in groups:
        own = members[group.number]
        if not is_whole and not changed.intersection(own):
            continue
        values = {
            "run_id": run_id,
            "number": group.number,
            "members": len(own) or group.count,
            "captured": len(captured.intersection(own)) if own else None,
            "is_paired": int(own in offsets),
            "clock_offset_ns": offsets.get(own) or None,
        }
        connection.execute(_KEEP_GROUP, values)


def _groups(connection: Connection, run_id: int) -> list[Group]:
    rows = connection.execute(statement("run_groups"), {"run_ids": [run_id]})
    return [Group(row.number, row.group_role, row.group_size, ranks_in(row.member_ranks)) for row in rows]


def _members(
    connection: Connection, run_id: int, groups: Sequence[Group], captured: Set[int]
) -> Mapping[int, tuple[int, ...]]:
    world = connection.execute(_WORLD, {"run_id": run_id}).scalar()
    linked: set[int] = set()
    if not world and any(not group.ranks for group in groups):
        for row in connection.execute(statement("linked_ranks"), {"run_id": run_id}):
            linked |= {row.source, row.target}
        # numbers that miss a captured rank are no global ones; with a hole they are the neighbours of those captured
        if not linked.issuperset(captured) or linked != {*range(len(linked))}:
            linked = set()
    return members_of(groups, world, linked)


class _Loaded:
    """The ranks of a run, each read once."""

    def __init__(self, connection: Connection, run_id: int, members: Mapping[int, tuple[int, ...]]) -> None:
        self._connection, self._run_id = connection, run_id
        self._numbers = {own: number for number, own in enumerate(sorted({own for own in members.values() if own}))}
        self._of_group = {group: self._numbers.get(own, -1) for group, own in members.items()}
        self._ranks: dict[int, _Rank] = {}

    def number(self, own: tuple[int, ...]) -> int:
        """Return the number by which `_Rank.members` knows these ranks."""
        return self._numbers[own]

    def rank(self, rank: int) -> _Rank:
        """Return a rank that is captured."""
        if rank not in self._ranks:
            self._ranks[rank] = self._read(rank)
        return self._ranks[rank]

    def _read(self, rank: int) -> _Rank:
        which = {"run_id": self._run_id, "rank": rank}
        row = self._connection.execute(statement("collective_calls"), which).one()
        rows = self._connection.execute(statement("collective_rows"), which).all()
        place = {of.ordinal: number for number, of in enumerate(rows)}
        try:
            calls = unpack_calls(bytes(row.calls))
            at = np.array([place[ordinal] for ordinal in calls.communication.tolist()], dtype=np.int64)
        except (ValueError, KeyError) as error:
            raise damaged_calls(self._run_id, rank) from error
        return _Rank(
            rank,
            row.host if row.started_at_ns is not None else "",
            replace(calls, start_ns=calls.start_ns + (row.started_at_ns or 0)),
            np.array([of.kind for of in rows], dtype=object)[at],
            np.array([of.data_type_id for of in rows], dtype=np.int64)[at],
            np.array([self._of_group.get(group, -1) for group in calls.group.tolist()], dtype=np.int64),
            {of.ordinal: of.exposed_ns for of in rows},
            row.started_at_ns is not None,
        )


def _nothing(rank: _Rank) -> _Split:
    count = len(rank.calls)
    return _Split(np.full(count, MISSING, dtype=np.int64), np.zeros(count, dtype=bool))


def _peers(rank: _Rank) -> list[int]:
    """Return the ranks that it sends to or receives from, as far as the source says."""
    return [peer for peer in each_once(rank.calls.peer).tolist() if peer not in (_NO_PEER, rank.rank)]


def _ends(rank: int, peer: int) -> tuple[int, int]:
    return min(rank, peer), max(rank, peer)


def _split_group(members: Sequence[_Rank], number: int, splits: Mapping[int, _Split]) -> tuple[I64, tuple[int, ...]]:
    """Split the calls of a group; the places of those of all members, and how far the clock of each member was ahead of
    that of the lowest rank, 0 where none was corrected.
    """
    own = [(member.members == number) & (member.calls.peer == _NO_PEER) for member in members]
    between = [member.of_kinds(TWO_SIDED) for member in members]
    rows = [np.flatnonzero(mine & ~two) for mine, two in zip(own, between, strict=True)]
    keys = _keys(members, rows)
    pairs = pair([member.as_member(*one) for member, *one in zip(members, rows, keys, strict=True)])
    _take(members, rows, pairs, splits)
    places = np.stack([chosen[at] for chosen, at in zip(rows, pairs.places, strict=True)])
    rows = [np.flatnonzero(mine & two) for mine, two in zip(own, between, strict=True)]
    none = [np.zeros(len(chosen), dtype=np.int64) for chosen in rows]
    if len(members) == 2:  # of more nobody says who sends to whom
        sides = [member.as_member(*one) for member, *one in zip(members, rows, none, strict=True)]
        _take(members, rows, pair_in_order(sides), splits)
    return places, pairs.offset_ns


def _split_peers(ends: Sequence[_Rank], splits: Mapping[int, _Split]) -> None:
    """Split the sends and receives between two ranks that say so: by source, target and order."""
    lower, higher = ends
    rows = [np.flatnonzero(lower.calls.peer == higher.rank), np.flatnonzero(higher.calls.peer == lower.rank)]
    sends = [end.of_kinds({"send"})[chosen] for end, chosen in zip(ends, rows, strict=True)]
    up = [sends[0], ~sends[1]]
    pairs = pair_in_order(
        [end.as_member(chosen, key.astype(np.int64)) for end, chosen, key in zip(ends, rows, up, strict=True)]
    )
    _take(ends, rows, pairs, splits)


def _keys(members: Sequence[_Rank], rows: Sequence[I64]) -> list[I64]:
    """Return for each member and chosen call a number that is equal where kind, data type and payload are."""
    known: dict[tuple[str, int, int], int] = {}
    found = []
    for member, chosen in zip(members, rows, strict=True):
        sizes = np.where(member.of_kinds(UNEVEN), MISSING, member.calls.bytes)[chosen]
        said = zip(member.kind[chosen].tolist(), member.data_type[chosen].tolist(), sizes.tolist(), strict=True)
        found.append(np.array([known.setdefault(one, len(known)) for one in said], dtype=np.int64))
    return found


def _take(members: Sequence[_Rank], rows: Sequence[I64], pairs: Pairs, splits: Mapping[int, _Split]) -> None:
    """What the pairs say of the calls at `rows` of each member: who was in the call for the shortest time waited for
    nobody.
    """
    places = [chosen[own] for chosen, own in zip(rows, pairs.places, strict=True)]
    elapse = np.stack([member.calls.elapse_ns[own] for member, own in zip(members, places, strict=True)])
    for member, chosen, own in zip(members, rows, places, strict=True):
        if member.rank in splits:
            splits[member.rank].is_tried[chosen] = True
            splits[member.rank].transit_ns[own] = elapse.min(axis=0)


def _keep(connection: Connection, run_id: int, rank: _Rank, split: _Split) -> None:
    """Write the sums of each row of which partners were looked for; the times only where all of its calls have any."""
    which = {"run_id": run_id, "rank": rank.rank}
    connection.execute(_FORGET, which)
    calls, tried = rank.calls, split.is_tried
    is_paired = split.transit_ns != MISSING
    wait = np.where(is_paired, calls.elapse_ns - split.transit_ns, MISSING)
    bare = _exposed_wait(calls, wait)
    rows: list[dict[str, int | None]] = []
    ordinals = each_once(calls.communication[tried])
    place = np.searchsorted(ordinals, calls.communication)
    inside = (place < len(ordinals)) & np.isin(calls.communication, ordinals)
    order = np.argsort(place[inside], kind="stable")
    own = np.flatnonzero(inside)[order]
    for chosen in np.split(own, np.flatnonzero(np.diff(place[own])) + 1) if len(own) else ():
        ordinal = int(calls.communication[chosen[0]])
        whole = bool(is_paired[chosen].all())
        exposed = whole and _sum(calls.exposed_ns[chosen]) == rank.exposed_ns[ordinal]
        rows.append(
            {
                **which,
                "ordinal": ordinal,
                "paired": int(is_paired[chosen].sum()),
                "transit_ns": _sum(split.transit_ns[chosen]) if whole else None,
                "wait_ns": _sum(wait[chosen]) if whole else None,
                # calls that are exposed at once would count twice
                "exposed_wait_ns": _sum(bare[chosen]) if exposed else None,
            }
        )
    if rows:
        connection.execute(_KEEP, rows)


def _exposed_wait(calls: Calls, wait: I64) -> I64:
    """Return the part of the waiting of each call that no compute hides, MISSING where that cannot be told: of a call
    that is hidden in part only where it waited for all of its time, or for none.
    """
    exposed = calls.exposed_ns
    known = (exposed != MISSING) & (wait != MISSING)
    found = np.where(known & ((exposed == 0) | (wait == 0)), 0, MISSING)
    found = np.where(known & (exposed == calls.elapse_ns), wait, found)
    return np.where(known & (wait == calls.elapse_ns), exposed, found)


def _sum(values: I64) -> int | None:
    """Return the sum, None where any is missing."""
    return None if (values == MISSING).any() else int(values.sum())


def is_between_stages(role: str | None, kind: str) -> bool:
    """Return whether a collective hands work from one stage of a pipeline to the next: waiting in it is bubble."""
    return role == PIPELINE and kind in TWO_SIDED
