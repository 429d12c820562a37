"""The key of each op: name, shapes, types, module and phase."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import BEFORE_CAPTURE, I64, NO_OP, PHASES, UNLINKED_OP, Events
from tracker.table import group_rows, list_codes, look_up_texts, rank_texts
from tracker.timeline.tree import Tree

_PHASE_PREFIXES = (
    ("autograd::engine::evaluate_function", "backward"),
    # its own backward nodes within it are backward again
    ("CheckpointFunctionBackward", "recompute"),
    ("CheckpointWithoutOutputFunctionBackward", "recompute"),
    ("Optimizer.step#", "optimizer"),
    ("Optimizer.zero_grad#", "clear_grad"),
)
_RECOMPUTES = re.compile(r"torch/utils/checkpoint\.py\(\d+\): recompute_fn$")
"""The Python frame in which activation checkpointing without reentrant autograd runs the forward pass again."""


class OpKeys(Struct, frozen=True):
    """Distinct op keys, sorted by text; two pseudo-ops are always among them, a third where memory was allocated.

    `of_op[i]` is the key of op i; `of_allocation[i]` that of the op that the source itself names of allocation i, empty
    where it names none; `unlinked`, `no_op` and `before_capture` (-1 without allocations) those of the pseudo-ops (see
    `tracker.profile`).
    """

    name: list[str]
    input_shapes: list[str]
    input_types: list[str]
    module: list[str]
    phase: list[str]
    of_op: I64
    of_allocation: I64
    unlinked: int
    no_op: int
    before_capture: int

    def __len__(self) -> int:
        return len(self.name)


def phases_of(events: Events, tree: Tree, module: I64, waiting: I64, loads: NDArray[np.bool_]) -> I64:
    """For each op the index into PHASES of the part of a training step that it works for, "" where nothing says.

    What the source says of the op itself or of the nearest ancestor of which it says something decides, or a prefix of
    the name; backward ops are backward; what a Python frame of activation checkpointing runs again is recompute;
    whatever else runs inside a module (`module` > 0) is forward, unless the source itself names phases
    (`Extras.op_phase`): then it would have said so. `waiting`: per op the range of another thread that waits for it, or
    -1, whose phase it takes where its own thread says nothing. `loads`: which ops are ranges of a data loader.
    """
    own = _own_phases(events)
    own[(own == 0) & loads] = PHASES.index("dataloader")
    own[(own == 0) & (events.ops.is_backward == 1)] = PHASES.index("backward")
    own[(own == 0) & _are_recomputed(events)] = PHASES.index("recompute")
    phase = tree.passed_down(own, unset=0)
    phase = np.where((phase == 0) & (waiting >= 0), phase[waiting], phase) if len(phase) else phase
    if len(events.extras.op_phase):
        return phase
    return np.where((phase == 0) & (module > 0), PHASES.index("forward"), phase)


def _own_phases(events: Events) -> I64:
    """For each op the index into PHASES of what the source, or else the op's own name, says; 0 for nothing."""
    ops, texts, said = events.ops, events.strings.texts, events.extras.op_phase
    of_name = np.zeros(len(texts), dtype=np.int64)
    of_word = np.zeros(len(texts), dtype=np.int64)
    for code in list_codes(ops.name):
        for prefix, word in _PHASE_PREFIXES:
            if texts[code].startswith(prefix):
                of_name[code] = PHASES.index(word)
    for code in list_codes(said):
        of_word[code] = PHASES.index(texts[code])
    own = of_name[ops.name]
    return np.where(of_word[said] > 0, of_word[said], own) if len(said) else own


def _are_recomputed(events: Events) -> NDArray[np.bool_]:
    """Return which ops run in a Python frame that runs the forward pass again."""
    ops, frames = events.ops, events.frames
    found = np.zeros(len(ops), dtype=bool)
    codes = [code for code in list_codes(frames.name) if _RECOMPUTES.search(events.strings.texts[code])]
    rows = np.flatnonzero(np.isin(frames.name, codes)) if codes else np.zeros(0, dtype=np.int64)
    for thread in list_codes(frames.thread[rows]):
        own = rows[frames.thread[rows] == thread]
        own = own[np.argsort(frames.start_ns[own], kind="stable")]
        # a checkpoint in another one lies within it
        end_ns = np.maximum.accumulate(frames.end_ns[own])
        of_thread = np.flatnonzero(ops.thread == thread)
        frame = np.searchsorted(frames.start_ns[own], ops.start_ns[of_thread], side="right") - 1
        found[of_thread] = (frame >= 0) & (ops.start_ns[of_thread] < end_ns[np.maximum(frame, 0)])
    return found


def op_keys(events: Events, module: I64, module_texts: list[str], phase: I64) -> OpKeys:
    """The distinct keys of all ops, and of those that are known by name alone."""
    ops, texts = events.ops, events.strings.texts
    named, of_name = np.unique(events.extras.allocation_op, return_inverse=True)
    groups = group_rows(ops.name, ops.input_shapes, ops.input_types, module, phase)
    first = groups.first
    keys = list(
        zip(
            look_up_texts(ops.name[first], texts),
            look_up_texts(ops.input_shapes[first], texts),
            look_up_texts(ops.input_types[first], texts),
            look_up_texts(module[first], module_texts),
            look_up_texts(phase[first], PHASES),
            strict=True,
        )
    )
    by_name = [(texts[code] or NO_OP, "", "", "", "") for code in named.tolist()]
    pseudo = [(name, "", "", "", "") for name in (UNLINKED_OP, NO_OP)]
    pseudo += [(BEFORE_CAPTURE, "", "", "", "")] if len(events.allocations) else []
    everything = [*keys, *by_name, *pseudo]
    place = rank_texts(["\0".join(key) for key in everything])
    ordered = sorted(set(everything), key="\0".join)
    names, shapes, types, modules, phases = (list(column) for column in zip(*ordered, strict=True))
    of_allocation = place[len(keys) : -len(pseudo)][of_name]
    of_op = place[: len(keys)][groups.number]
    own = [*place[-len(pseudo) :].tolist(), -1][:3]
    return OpKeys(names, shapes, types, modules, phases, of_op, of_allocation, *own)
