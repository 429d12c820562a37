"""From which lines of Python an op is called."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from threading import Lock

import numpy as np
from msgspec import Struct

from tracker.profile import I64, Events
from tracker.table import group_rows
from tracker.timeline.beside import is_worth_threads
from tracker.timeline.keys import OpKeys
from tracker.timeline.tree import Tree, grow

MAX_DEPTH = 32
"""Innermost frames that a call stack keeps."""

SEPARATOR = ";"

_BESIDE_ROWS = 1 << 20
"""Of frames: more of them are not looked at beside all else, for both together hold too much memory."""


class OpStacks(Struct, frozen=True):
    """The call stack of each op: a code of what the source says, from 1, 0 for none, or -1 - a path of frames.

    Per path: `names`, the code of its last frame, and `parents`, the path without it, -1 for none.
    """

    of_op: I64
    names: list[int]
    parents: list[int]


def stacks_of_ops(events: Events) -> tuple[OpStacks, Tree]:
    """Return where each op was called, and the tree of the Python frames, module frames left out: the `forward` that
    they stand for is a frame itself.

    What the source itself says of an op comes first, then the frames around it.
    """
    frames, ops = events.frames, events.ops
    tree = grow(frames.thread, frames.start_ns, frames.end_ns, np.flatnonzero(frames.is_module == 0))
    frame = tree.innermost(ops.thread, ops.start_ns)
    paths = tree.paths(frames.name)
    of_op = ops.call_stack.astype(np.int64)
    framed = np.flatnonzero((of_op == 0) & (frame >= 0))
    of_op[framed] = -1 - paths.of_row[frame[framed]]
    # single items of arrays cost ten times those of lists
    return OpStacks(of_op, paths.key.tolist(), paths.parent.tolist()), tree


class Begun:
    """Call stacks, and the tree of the frames, that another thread finds, or the first one that asks."""

    def __init__(self, find: Callable[[], tuple[OpStacks, Tree]]) -> None:
        self._find = find
        self._lock = Lock()
        self._found: OpStacks | None = None
        self._frames: list[Tree] = []

    def stacks(self) -> OpStacks:
        """Return the call stacks; any thread may ask."""
        with self._lock:
            if self._found is None:
                self._found, frames = self._find()
                self._frames.append(frames)
            return self._found

    def take_frames(self) -> Tree:
        """Return the tree of the frames, to be asked for once: of a large trace it is not held any longer than used."""
        self.stacks()
        return self._frames.pop()


def begin(events: Events, stack: ExitStack) -> Begun:
    """Begin `stacks_of_ops` in a thread that ends with `stack`.

    Sorting and searching hold no lock of Python's, so that half of it is done beside what else an ingest does. Where
    memory would be short, or a thread would cost more than it saves, it is done when the answer is asked for.
    """
    is_large = len(events.frames) > _BESIDE_ROWS
    if is_large or not is_worth_threads(len(events.frames) + len(events.ops)):
        return Begun(partial(stacks_of_ops, events))
    thread = stack.enter_context(ThreadPoolExecutor(1, "stacks"))
    return Begun(thread.submit(stacks_of_ops, events).result)


def most_frequent_stacks(events: Events, keys: OpKeys, stacks: OpStacks) -> list[str]:
    """For each op key its most frequent call stack, innermost frame first; "" where the source has none.

    Of equally frequent stacks the alphabetically first.
    """
    rows = np.flatnonzero(stacks.of_op != 0)
    groups = group_rows(keys.of_op[rows], stacks.of_op[rows])
    first = rows[groups.first]
    key_of = keys.of_op[first]
    most = np.zeros(len(keys), dtype=np.int64)
    np.maximum.at(most, key_of, groups.counts)
    wanted = groups.counts == most[key_of]
    best = [""] * len(keys)
    known: dict[int, str] = {}
    for key, stack in zip(key_of[wanted].tolist(), stacks.of_op[first[wanted]].tolist(), strict=True):
        text = known.get(stack)
        if text is None:
            text = known[stack] = (
                events.strings[stack] if stack > 0 else _text(stacks, -1 - stack, events.strings.texts)
            )
        best[key] = min(best[key] or text, text)
    return best


def stacks_at(events: Events, stacks: OpStacks, ops: I64) -> list[str]:
    """The call stack of each of these rows of ops, as `most_frequent_stacks` writes them; "" for -1 and without any."""
    codes = np.zeros(len(ops), dtype=np.int64)
    codes[ops >= 0] = stacks.of_op[ops[ops >= 0]]
    return texts_of_stacks(events, stacks, codes)


def texts_of_stacks(events: Events, stacks: OpStacks, codes: I64) -> list[str]:
    """The text of each code of a call stack, as in `OpStacks.of_op`."""
    texts = events.strings.texts
    known = {code: texts[code] if code >= 0 else _text(stacks, -1 - code, texts) for code in set(codes.tolist())}
    return [known[code] for code in codes.tolist()]


def _text(stacks: OpStacks, path: int, texts: list[str]) -> str:
    names, parents = stacks.names, stacks.parents
    lines: list[str] = []
    while path >= 0 and len(lines) < MAX_DEPTH:
        lines.append(texts[names[path]])
        path = parents[path]
    return SEPARATOR.join(lines)
