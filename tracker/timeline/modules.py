"""In which module instance each op ran: `GPT_0/Block_0/Attention_0`."""

from __future__ import annotations

from typing import Final

import numpy as np

from tracker.profile import I64, Events, Strings
from tracker.timeline.nesting import NONE
from tracker.timeline.tree import Tree, grow

MAX_PATH: Final = 2000
"""Characters; what lies in a module with a longer path counts as part of that module."""


def modules_of(events: Events, tree: Tree) -> tuple[I64, list[str]]:
    """For each op a code into the returned texts: the path of nested modules around it, code 0 where there is none.

    What the source itself names comes first, then the module frames around the op on its thread. A backward op takes
    the module of the forward op with its sequence number. An op without a module takes that of the op around it.
    """
    ops = events.ops
    paths = Strings()
    own = _named_by_source(events, paths)
    framed = _by_frames(events, paths)
    module = np.where(own > 0, own, framed)
    forward = _forward_ops(events)
    linked = forward >= 0
    # a backward op on the caller's thread lies in the frames of whoever called backward(), which is no module of its
    # own
    module[linked] = np.where(own[linked] > 0, own[linked], module[forward[linked]])
    module = tree.passed_down(module, unset=0)
    return module.astype(np.int64), paths.texts if len(ops) else [""]


def _named_by_source(events: Events, paths: Strings) -> I64:
    codes, back = np.unique(events.ops.module, return_inverse=True)
    own = np.array([paths.code(events.strings[code]) for code in codes.tolist()], dtype=np.int64)
    return own[back] if len(own) else np.zeros(0, dtype=np.int64)


def module_frames(events: Events, paths: Strings) -> tuple[Tree, I64]:
    """The frames of modules, nested, in the order of `events.frames`; for each the code in `paths` of its path."""
    frames = events.frames
    is_module = np.flatnonzero(frames.is_module == 1)
    nested = grow(frames.thread[is_module], frames.start_ns[is_module], frames.end_ns[is_module])
    distinct = nested.paths(frames.name[is_module])
    codes: list[int] = []
    for above, name in zip(distinct.parent.tolist(), distinct.key.tolist(), strict=True):
        text = events.strings[name]
        if above >= 0:
            around = paths[codes[above]]
            text = around if len(around) > MAX_PATH else f"{around}/{text}"
        codes.append(paths.code(text))
    return nested, np.array(codes, dtype=np.int64)[distinct.of_row]


def _by_frames(events: Events, paths: Strings) -> I64:
    """The path of the module frames around the start of each op."""
    ops = events.ops
    nested, path = module_frames(events, paths)
    if len(path) == 0:
        return np.zeros(len(ops), dtype=np.int64)
    found = nested.innermost(ops.thread, ops.start_ns)
    return np.where(found >= 0, path[found], 0)


def _forward_ops(events: Events) -> I64:
    """For each backward op the forward op that it belongs to, or -1.

    All ops that start while the autograd counter stands at n carry n; the one that starts last made the node
    (Kineto pairs them in the same way for its fwdbwd arrows).
    """
    ops = events.ops
    process = np.array(events.thread_process or (0,), dtype=np.int64)[ops.thread]
    forward = np.flatnonzero((ops.sequence >= 0) & (ops.is_backward == 0))
    backward = np.flatnonzero((ops.sequence >= 0) & (ops.is_backward == 1))
    found = np.full(len(ops), NONE, dtype=np.int64)
    if len(forward) == 0 or len(backward) == 0:
        return found
    ids, codes = np.unique(ops.sequence, return_inverse=True)
    pair = process * len(ids) + codes
    order = forward[np.lexsort((forward, ops.start_ns[forward], pair[forward]))]
    place = np.searchsorted(pair[order], pair[backward], side="right") - 1
    match = order[np.maximum(place, 0)]
    found[backward] = np.where((place >= 0) & (pair[match] == pair[backward]), match, NONE)
    return found
