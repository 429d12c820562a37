"""From which lines of Python an op is called."""

from __future__ import annotations

import numpy as np

from tracker.profile import Strings
from tracker.timeline.aggregate import group_by
from tracker.timeline.joined import Joined
from tracker.timeline.tree import grow

MAX_DEPTH = 32
"""Innermost frames that a call stack keeps."""

SEPARATOR = ";"


def most_frequent_stacks(joined: Joined) -> list[str]:
    """For each op key its most frequent call stack, innermost frame first; "" where the source has none.

    What the source itself says comes first, then the Python frames around the op, module frames left out: the `forward`
    that they stand for is a frame itself. Of equally frequent stacks the alphabetically first.
    """
    frames, ops, strings = joined.events.frames, joined.events.ops, joined.events.strings
    plain = np.flatnonzero(frames.is_module == 0)
    tree = grow(frames.thread, frames.start_ns, frames.end_ns, plain)
    frame = tree.innermost(ops.thread, ops.start_ns)
    paths = tree.paths(frames.name)
    del tree  # nothing of an ingest is larger, and what follows takes memory as well
    # what the source says has codes from 1, paths of frames have negative ones
    stack = ops.call_stack.astype(np.int64)
    framed = np.flatnonzero((stack == 0) & (frame >= 0))
    stack[framed] = -1 - paths.of_row[frame[framed]]
    rows = np.flatnonzero(stack != 0)
    groups = group_by(joined.keys.of_op[rows], stack[rows])
    keys = joined.keys.of_op[rows[groups.first]]
    most = np.zeros(len(joined.keys), dtype=np.int64)
    np.maximum.at(most, keys, groups.counts)
    best = [""] * len(joined.keys)
    steps = paths.key.tolist(), paths.parent.tolist()  # single items of arrays cost ten times those of lists
    for group in np.flatnonzero(groups.counts == most[keys]).tolist():
        key, code = int(keys[group]), int(stack[rows[groups.first[group]]])
        text = strings[code] if code > 0 else _text(*steps, -1 - code, strings)
        best[key] = min(best[key] or text, text)
    return best


def _text(names: list[int], parents: list[int], path: int, strings: Strings) -> str:
    lines: list[str] = []
    while path >= 0 and len(lines) < MAX_DEPTH:
        lines.append(strings[names[path]])
        path = parents[path]
    return SEPARATOR.join(lines)
