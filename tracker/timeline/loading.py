"""When a training loop waits for its data: the ranges of data loaders, and the threads on which they count.

A thread that launches work waits for its data in the loader that it runs itself. A loader of another thread loads
ahead: while the launching thread works, nobody waits for it.

    launches |  aten::index  |- nothing -|  aten::mm  |
    prefetch |---------------- loader -----------------|
    waits                    |<--------->|
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracker.profile import I64, PHASES, Events, LaunchLevel, each_once
from tracker.profile.loader_names import is_loader
from tracker.table import list_codes
from tracker.timeline.intervals import Spans, join, subtract, union
from tracker.timeline.tree import Tree

NO_CALLS: Final = (LaunchLevel.FLOW, LaunchLevel.QUEUE, LaunchLevel.OS)
"""Levels of launches that are no calls of the device's runtime: arrows, queues of the host, the operating system, in
which a thread may be that does nothing.
"""
_OPERATOR: Final = re.compile(r"::|^(?:nccl|gloo|mpi|ucc|hccl):|Backward\d*$|^CompiledFunction")
_LOADING: Final = PHASES.index("dataloader")


def find_loaders(events: Events, tree: Tree, own_names: Sequence[str]) -> NDArray[np.bool_]:
    """Return which ops are ranges of a data loader: the source says so of them, or their name does and they lie in no
    operator. own_names: see `is_loader`.
    """
    ops, texts = events.ops, events.strings.texts
    says = np.zeros(len(texts), dtype=bool)
    for code in list_codes(events.extras.op_phase):
        says[code] = texts[code] == PHASES[_LOADING]
    stated = says[events.extras.op_phase] if len(events.extras.op_phase) else np.zeros(len(ops), dtype=bool)
    named = np.zeros(len(texts), dtype=bool)
    for code in list_codes(ops.name):
        named[code] = is_loader(texts[code], own_names)
    found = named[ops.name]
    if found.any():
        is_operator = find_operators(events)
        found &= ~is_operator
        # an operator passes itself down to all that lies in it
        found &= tree.passed_down(np.where(is_operator, 1, 0), unset=0) == 0
    return found | stated


def find_operators(events: Events) -> NDArray[np.bool_]:
    """Return which ops are operators, and no ranges of a user: PyTorch's profilers of before 2022 record these as
    operators, too, but the name of a real one has a namespace, or is that of a node of autograd.
    """
    ops, texts = events.ops, events.strings.texts
    codes = list_codes(ops.name)
    if not any(texts[code].startswith("aten::") for code in codes):
        return np.asarray(ops.is_annotation == 0)
    is_real = np.zeros(len(texts), dtype=bool)
    for code in codes:
        is_real[code] = _OPERATOR.search(texts[code]) is not None
    return np.asarray((ops.is_annotation == 0) & is_real[ops.name])


def find_loading(events: Events, loads: NDArray[np.bool_], threads: I64) -> Spans | None:
    """Return when a training loop waits for its data, None where the source never says.

    loads: see `find_loaders`. threads: that launch work; without any those that run operators outside of loaders.
    """
    ops, rows = events.ops, np.flatnonzero(loads)
    if not len(rows) or not events.host_is_primary:
        return None
    if not len(threads):
        threads = _working_threads(events, loads)
    is_own = np.isin(ops.thread[rows], threads)
    own, others = (union(ops.start_ns[some], ops.end_ns[some]) for some in (rows[is_own], rows[~is_own]))
    if not len(others):
        return own
    return join(own, subtract(others, _find_work(events, threads)))


def _working_threads(events: Events, loads: NDArray[np.bool_]) -> I64:
    """Return the threads with operators that lie in no loader of their thread."""
    ops = events.ops
    found = []
    for thread in each_once(ops.thread).tolist():
        of_thread = ops.thread == thread
        loading = union(ops.start_ns[of_thread & loads], ops.end_ns[of_thread & loads])
        operators = of_thread & (ops.is_annotation == 0) & ~loads
        if len(subtract(union(ops.start_ns[operators], ops.end_ns[operators]), loading)):
            found.append(thread)
    return np.array(found, dtype=np.int64)


def _find_work(events: Events, threads: I64) -> Spans:
    """Return when one of the threads runs an operator, a call of the runtime or a Python frame."""
    ops, launches, frames = events.ops, events.launches, events.frames
    operators = (ops.is_annotation == 0) & np.isin(ops.thread, threads)
    calls = ~np.isin(launches.level, NO_CALLS) & np.isin(launches.thread, threads)
    of_threads = np.isin(frames.thread, threads)
    found = union(ops.start_ns[operators], ops.end_ns[operators])
    found = join(found, union(launches.start_ns[calls], launches.end_ns[calls]))
    return join(found, union(frames.start_ns[of_threads], frames.end_ns[of_threads]))
