"""Sequences of elementwise kernels, one directly behind another on a stream, that could be one kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.profile import I64, MISSING
from tracker.profile.elementwise import ELEMENTWISE, name_plainly
from tracker.profile.shapes import Shape, largest_of
from tracker.schema.column_names import CANONICAL_NAME, INPUT_SHAPES, TYPE
from tracker.table import group_rows
from tracker.timeline.joined import Joined, Work
from tracker.timeline.keys import OpKeys

_FEWEST: Final = 3
_MOST_NAMES: Final = 8
_NONE: Final = -1


class Sequences(Struct, frozen=True):
    """The sequences of elementwise kernels of one capture.

    Per device event: `saved_ns`, its time where it stands in a sequence, and 0 where it stands in none or takes longest
    in its own; MISSING of what is no compute kernel, and of all where no kernel has shapes. `number`: that of its
    sequence, -1 for none. `names`: what each sequence consists of, in order: `mul, add, sigmoid`.
    """

    saved_ns: I64
    number: I64
    names: list[str]


def find_sequences(joined: Joined, kernel: I64, texts: Mapping[str, Sequence[str]]) -> Sequences:
    """Return the runs of three or more elementwise kernels of one step with the same largest tensor, between which
    nothing else runs on their stream.

    `kernel`: the number of the kernel of each device event; `texts`: canonical_name, type and input_shapes of each.
    """
    device = joined.events.device
    work = group_rows(kernel, joined.op_key)
    kinds = _WorkNames(joined.keys, kernel[work.first], joined.op_key[work.first], texts)
    saved_ns = np.full(len(device), MISSING, dtype=np.int64)
    number = np.full(len(device), _NONE, dtype=np.int64)
    if not kinds.has_shapes:
        return Sequences(saved_ns, number, [])
    is_compute = (joined.work == Work.COMPUTE) & joined.is_kernel
    saved_ns[is_compute] = 0
    order = np.lexsort((device.start_ns, device.stream))
    name = np.where(is_compute, kinds.name[work.number], _NONE)[order]
    place = (device.stream[order], joined.step[order], kinds.shape[work.number][order])
    continues = (name[1:] != _NONE) & (name[:-1] != _NONE)
    for column in place:
        continues &= column[1:] == column[:-1]
    starts = np.flatnonzero(np.append(True, ~continues)) if len(order) else np.zeros(0, dtype=np.int64)
    lengths = np.diff(np.append(starts, len(order)))
    is_long = lengths >= _FEWEST
    starts, lengths = starts[is_long], lengths[is_long]
    if not len(starts):
        return Sequences(saved_ns, number, [])
    run = np.repeat(np.arange(len(starts)), lengths)
    # where each run begins among the rows of all runs
    first_rows = np.cumsum(lengths) - lengths
    rows = order[np.repeat(starts - first_rows, lengths) + np.arange(len(run))]
    duration = device.end_ns[rows] - device.start_ns[rows]
    saved_ns[rows] = duration
    # of equally long kernels of a run the first one stays
    longest_first = np.lexsort((-duration, run))
    saved_ns[rows[longest_first[first_rows]]] = 0
    of_run, names = _name_runs(name, starts, lengths, kinds.names)
    number[rows] = of_run[run]
    return Sequences(saved_ns, number, names)


class _WorkNames:
    """The kinds of work of a capture, by kernel and operator: `name`, the number of the name of what is elementwise, -1
    of all else; `shape`, the number of the largest tensor; `names`: the names by number.
    """

    def __init__(self, keys: OpKeys, kernel: I64, op_key: I64, texts: Mapping[str, Sequence[str]]) -> None:
        self.has_shapes = False
        numbers: dict[str, int] = {}
        shapes: dict[Shape, int] = {}
        name, shape = [], []
        for own, op in zip(kernel.tolist(), op_key.tolist(), strict=True):
            op_shapes = keys.input_shapes[op]
            largest = largest_of(texts[INPUT_SHAPES][own] or op_shapes)
            self.has_shapes = self.has_shapes or bool(largest)
            shape.append(shapes.setdefault(largest, len(shapes)))
            kernel_name = texts[TYPE][own] or texts[CANONICAL_NAME][own]
            plain_name = name_plainly(keys.name[op], op_shapes, kernel_name)
            is_elementwise = bool(largest) and plain_name in ELEMENTWISE
            name.append(numbers.setdefault(plain_name, len(numbers)) if is_elementwise else _NONE)
        self.names = list(numbers)
        self.name = np.array(name, dtype=np.int64)
        self.shape = np.array(shape, dtype=np.int64)


def _name_runs(name: I64, starts: I64, lengths: I64, names: Sequence[str]) -> tuple[I64, list[str]]:
    """Return the number of the sequence of each run, and the names of each sequence.

    `name`: the number of each event's name, in the order of which runs are parts.
    """
    behind = np.arange(_MOST_NAMES)
    places = np.minimum(starts[:, None] + behind, len(name) - 1)
    table = np.where(behind < lengths[:, None], name[places], _NONE)
    groups = group_rows(lengths, *table.T)
    texts = []
    for first in groups.first.tolist():
        listed = ", ".join(names[number] for number in table[first].tolist() if number != _NONE)
        rest = int(lengths[first]) - _MOST_NAMES
        texts.append(f"{listed} and {rest} more" if rest > 0 else listed)
    return groups.number, texts
