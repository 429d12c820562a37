"""The process groups of a rank: which calls are of which, and who is in them, as far as the source says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.profile import I64, MISSING, Events, Table

_Group = tuple[str, int, str]

_NO_GROUP: Final = -1
_UNKNOWN: Final = -1


class Call(Struct, frozen=True):
    """What tells one kind of collective call from another; and of single calls the members of the group (see
    `ranks_text`), the rank at the other end or -1, the source's own number or MISSING, and its name of the group.
    """

    kind: str
    group_role: str
    group_size: int
    data_type: str
    bytes: int
    ranks: str = ""
    peer: int = _UNKNOWN
    source_index: int = MISSING
    group: str = ""

    @property
    def size_class_bytes(self) -> int:
        """Bytes per call, rounded up to a power of two; -1 where the source does not say."""
        if self.bytes == MISSING:
            return -1
        return 1 << (self.bytes - 1).bit_length() if self.bytes > 0 else 0


def groups_of(events: Events, calls: Sequence[Call], of_call: I64, start_ns: I64) -> tuple[I64, Table]:
    """For each call (an index into `calls`, its start) the row of its group, -1 where the source names none; and the
    table `groups` of `Rows`.

    Groups with the same role and members are one, whatever the source calls them. Those whose members it does not say
    come last, in order of their first call, one for each of its names.
    """
    known = {(call.group_role, call.group_size, call.ranks) for call in calls if call.ranks}
    listed, texts = events.extras.process_groups, events.strings
    known |= {
        (texts[role], size, texts[ranks])
        for role, size, ranks in zip(listed.role.tolist(), listed.size.tolist(), listed.ranks.tolist(), strict=True)
        if ranks
    }
    groups: list[_Group] = sorted(known)
    place: dict[tuple[str, ...] | _Group, int] = {group: row for row, group in enumerate(groups)}
    rows = np.full(len(calls), _NO_GROUP, dtype=np.int64)
    for index in _by_first_call(calls, of_call, start_ns):
        call = calls[index]
        own = (call.group_role, call.group_size, call.ranks)
        if call.ranks:
            rows[index] = place[own]
        elif call.group or call.group_role or call.group_size != MISSING:
            name = (*map(str, own), call.group)
            if name not in place:
                place[name] = len(groups)
                groups.append(own)
            rows[index] = place[name]
    table: Table = {
        "role": [role for role, _, _ in groups],
        "size": np.array([size for _, size, _ in groups], dtype=np.int64),
        "ranks": [ranks for _, _, ranks in groups],
    }
    return rows[of_call], table


def _by_first_call(calls: Sequence[Call], of_call: I64, start_ns: I64) -> list[int]:
    """The kinds of calls in order of the first call of each; of equal ones by what they say."""
    first: dict[int, int] = {}
    for index, start in zip(of_call.tolist(), start_ns.tolist(), strict=True):
        first[index] = min(start, first.get(index, start))
    return sorted(first, key=lambda index: (first[index], calls[index].group, calls[index].kind))
