"""From which lines of Python an op is called."""

from __future__ import annotations

import numpy as np

from tracker.profile import I64, Strings
from tracker.timeline.aggregate import group_by
from tracker.timeline.joined import Joined
from tracker.timeline.tree import grow

MAX_DEPTH = 32
"""Innermost frames that a call stack keeps."""

SEPARATOR = ";"


def most_frequent_stacks(joined: Joined) -> list[str]:
    """For each op key its most frequent call stack, innermost frame first; "" where the source has none.

    What the source itself says comes first, then the Python frames around the op. Of equally frequent ones the
    alphabetically first.
    """
    stack, texts = _stacks(joined)
    rows = np.flatnonzero(stack > 0)
    groups = group_by(joined.keys.of_op[rows], stack[rows])
    best = [(0, "")] * len(joined.keys)
    keys = joined.keys.of_op[rows[groups.first]].tolist()
    for key, code, count in zip(keys, stack[rows[groups.first]].tolist(), groups.counts.tolist(), strict=True):
        best[key] = min(best[key], (-count, texts[code]))
    return [text for _, text in best]


def _stacks(joined: Joined) -> tuple[I64, list[str]]:
    """Per op the code of its call stack, and the texts."""
    ops, strings = joined.events.ops, joined.events.strings
    texts = Strings()
    frame_stack, frame = _frame_stacks(joined, texts)
    stack = np.zeros(len(ops), dtype=np.int64)
    stack[frame >= 0] = frame_stack[frame[frame >= 0]]
    codes, back = np.unique(ops.call_stack, return_inverse=True)
    own = np.array([texts.code(strings[code]) for code in codes.tolist()], dtype=np.int64)
    said = own[back] if len(own) else stack
    return np.where(said > 0, said, stack), texts.texts


def _frame_stacks(joined: Joined, texts: Strings) -> tuple[I64, I64]:
    """The stack of each plain Python frame that is innermost around an op (others stay 0), and that frame per op.

    Module frames are left out: the `forward` that they stand for is a frame itself.
    """
    frames, ops = joined.events.frames, joined.events.ops
    plain = np.flatnonzero(frames.is_module == 0)
    tree = grow(frames.thread[plain], frames.start_ns[plain], frames.end_ns[plain])
    found = tree.innermost(ops.thread, ops.start_ns)
    stack = np.zeros(len(plain), dtype=np.int64)
    names, parents = frames.name[plain].tolist(), tree.parent.tolist()
    for frame in np.unique(found[found >= 0]).tolist():
        row = frame
        lines: list[str] = []
        while row >= 0 and len(lines) < MAX_DEPTH:
            lines.append(joined.events.strings[names[row]])
            row = parents[row]
        stack[frame] = texts.code(SEPARATOR.join(lines))
    return stack, found
