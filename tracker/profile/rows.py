"""What the database keeps of one rank: sums per distinct thing, made from events or read as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field
from numpy.typing import NDArray

from tracker.schema.breakdown import Breakdown as Breakdown  # noqa: PLC0414 a part of the contract
from tracker.schema.levels import KERNEL_KEY, LEVELS, OP_KEY


class StepRow(Struct, frozen=True):
    """One step of one rank; `start_ns` counts from the first event of the capture.

    `marker_ns`: how long the host's marker of the step lasts, where the step is a window of the device; else None.

    `kind`: what the step does, where the steps of its capture do not all do the same, or an engine names it: DECODE,
    with optimizer; else "".

    `steps` above 1: the source knows only sums over so many steps. Then the row stands for all of them: its breakdown
    is their mean, and the rows of the tables with its number are sums over them, as in any step they are over its
    calls. So a mean per step is always a sum of rows divided by the sum of `steps`.
    """

    step: int
    start_ns: int
    breakdown: Breakdown
    steps: int = 1
    marker_ns: int | None = None
    kind: str = ""


Column = NDArray[Any] | list[str]
Table = Mapping[str, Column]

ROW_COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    # dimension tables: position = the index that the fact tables below refer to
    "op_key": dict.fromkeys(OP_KEY, "text"),
    "kernel_key": dict.fromkeys(KERNEL_KEY, "text"),
    # fact tables: `op_key`, `kernel_key`, `communication` are indices into those tables; `ns` and `bytes` are int64 and
    # may be MISSING
    **{level.name: level.row_kinds for level in LEVELS},
}
"""Tables of `Rows`: column -> kind. text: list[str]; int, ns, bytes: int64 array; float: float64 array."""

GROUP_COLUMNS: Final[Mapping[str, str]] = {"role": "text", "size": "int", "ranks": "text"}
"""Columns -> kinds of `Rows.groups`."""

CALL_COLUMNS: Final[Mapping[str, str]] = {
    "communication": "int", "group": "int", "step": "int", "start_ns": "ns", "elapse_ns": "ns", "exposed_ns": "ns",
    "bytes": "bytes", "peer": "int", "source_index": "int",
}  # fmt: skip
"""Columns -> kinds of `Rows.collective_calls`."""


def ranks_text(ranks: Iterable[int]) -> str:
    """The members of a process group as they are written everywhere, in order.

    >>> ranks_text([2, 0])
    '0,2'
    """
    return ",".join(map(str, sorted(set(ranks))))


def ranks_in(text: str) -> tuple[int, ...]:
    """The ranks in what `ranks_text` wrote; none in an empty text.

    >>> ranks_in("0,2"), ranks_in("")
    ((0, 2), ())
    """
    return tuple(map(int, text.split(","))) if text else ()


class Rows(Struct, frozen=True):
    """What the database keeps of one rank: its breakdown, its steps, and one table per entry of ROW_COLUMNS.

    `collective_calls`: one row per collective call, in order of start: `communication` (row), `group` (row of `groups`,
    -1: the source names none), `step`, `start_ns` (from the start of the capture), `elapse_ns`, `exposed_ns`, `bytes`
    (payload), `peer` (global rank at the other end of a send or receive, -1: none), `source_index` (its number in the
    group, as the source counts). The store tells waiting from transmitting by those of all ranks of a run.
    `groups`: the process groups of the rank: `role`, `size`, `ranks` (see `ranks_text`; '': unknown). Several without
    ranks are groups that the source tells apart without saying who is in them.
    `other_threads_ns`, not stored: device time in no op that a thread without ranges launched while others had one
    open, where `Extras.waiting_threads` says that there may be such.
    """

    overall: Breakdown
    steps: tuple[StepRow, ...]
    tables: Mapping[str, Table]
    collective_calls: Table = field(default_factory=dict)
    groups: Table = field(default_factory=dict)
    other_threads_ns: int = 0
