"""The kind of each step: an engine's prefill and decode, training steps with and without an optimizer, evaluation.

Steps of several kinds do different work, so that neither their times nor their mix may be compared as one. Most
captures have one kind, which has no name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from tracker.profile import I64, NO_STEP, Events, each_once
from tracker.timeline.steps import steps_at

WITH_OPTIMIZER: Final = "with optimizer"
WITHOUT_OPTIMIZER: Final = "without optimizer"
EVALUATION: Final = "evaluation"
TRAINING: Final = "training"
"""Of a capture with steps of an evaluation, the others: where an optimizer does not tell these apart, too."""
LEAST_STEPS: Final = 2
"""Steps of each kind, where ranges inside of them make it: one step without an optimizer is cut, rather than a kind."""

# step[DECODE bs=16]: SGLang
_SGLANG: Final = re.compile(r"step\[\s*(?P<kind>[A-Za-z_][\w-]*)(?:\s[^\]]*)?\]")
# execute_context_0(0)_generation_16(16), execute_32_context_0(sq0)_generation_32(sq32), execute_new_1_cached_0: vLLM
_OF_VLLM: Final = re.compile(r"execute_(?:\d+_)?(?:context|generation|new|cached)_\d")
_VLLM: Final = re.compile(r"_(?P<part>context|generation|new|cached)_(?P<count>\d+)")
_NUMBER: Final = re.compile(r"[ _#:.-]*\d+")
_OPTIMIZER: Final = re.compile(r"(?:^|[^a-z])optimi[sz]er[._ ]?step(?![a-z])|^optimi[sz]er$", re.IGNORECASE)
# autograd::engine::evaluate_function: AddmmBackward0 is PyTorch's backward pass, not an evaluation
_EVALUATION: Final = re.compile(
    r"(?:^|[^a-z])(?:eval|evaluate(?!_function)|evaluation|validate|validation|val_step|eval_step)(?![a-z])",
    re.IGNORECASE,
)
_HALF: Final = 2


def kinds_of_steps(events: Events) -> dict[int, str]:
    """Return the kind of each step of a rank that has one, by its number; of steps that are all alike there is none.

    By the names of the markers where an engine wrote them, else by the ranges inside: a step is one of evaluation where
    such a range lasts for half of it, and the others are those of a training; steps with an optimizer's range are told
    from those without. A last step that the capture cut before its optimizer is like the others.
    """
    if not len(events.markers):
        return {}
    if kinds := _kinds_of_names(events.extras.step_names):
        return kinds
    evaluating = _find_evaluation(events)
    others = [step for step in each_once(events.markers.step).tolist() if step not in evaluating and step != NO_STEP]
    kinds = _kinds_by_optimizer(events, others)
    if len(evaluating) < LEAST_STEPS or not others:
        return kinds
    return dict.fromkeys(evaluating, EVALUATION) | (kinds or dict.fromkeys(others, TRAINING))


def name_kind(marker: str) -> str:
    """Return the kind of a step by the name of its marker.

    >>> name_kind("step[DECODE bs=16]"), name_kind("execute_32_context_0(sq0)_generation_32(sq32sk55086)")
    ('DECODE', 'generation')
    >>> name_kind("execute_context_2(512)_generation_3(3)"), name_kind("execute_new_1_cached_0")
    ('context + generation', 'new')
    >>> name_kind("train_step 12")
    'train_step'
    """
    if match := _SGLANG.fullmatch(marker):
        return match["kind"]
    if _OF_VLLM.match(marker):
        parts = [(match["part"], int(match["count"])) for match in _VLLM.finditer(marker)]
        return " + ".join(part for part, count in parts if count > 0) or parts[-1][0]
    return _NUMBER.sub("", marker).strip()


def is_named_kind(marker: str) -> bool:
    """Return whether a marker says what its step does, so that its kind has a name even where it is the only one."""
    return _SGLANG.fullmatch(marker) is not None or _OF_VLLM.match(marker) is not None


def _kinds_of_names(names: Mapping[int, str]) -> dict[int, str]:
    kind_of = {name: name_kind(name) for name in set(names.values())}
    kinds = {step: kind_of[name] for step, name in names.items()}
    if len(set(kinds.values())) > 1 or any(is_named_kind(name) for name in kind_of):
        return kinds
    return {}


def _kinds_by_optimizer(events: Events, steps: Iterable[int]) -> dict[int, str]:
    holding = {int(step) for step in each_once(_steps_of(events, _find_ops(events, _OPTIMIZER, ("ptimi", "PTIMI"))))}
    having = [step for step in steps if step in holding]
    lacking = [step for step in steps if step not in holding]
    if lacking and lacking == [_last_step(events)]:
        lacking = []
    if len(having) < LEAST_STEPS or len(lacking) < LEAST_STEPS:
        return {}
    return dict.fromkeys(having, WITH_OPTIMIZER) | dict.fromkeys(lacking, WITHOUT_OPTIMIZER)


def _last_step(events: Events) -> int:
    return int(events.markers.step[np.argmax(events.markers.start_ns)])


def _find_evaluation(events: Events) -> list[int]:
    """Return the steps of which the longest range of an evaluation lasts for half or more."""
    rows = _find_ops(events, _EVALUATION, ("val", "Val", "VAL"))
    if not len(rows):
        return []
    steps = _steps_of(events, rows)
    lasting = events.ops.end_ns[rows] - events.ops.start_ns[rows]
    found = []
    markers = events.markers
    for step in each_once(steps).tolist():
        own = markers.step == step
        marker_ns = int((markers.end_ns[own] - markers.start_ns[own]).sum())
        if step != NO_STEP and _HALF * int(lasting[steps == step].max()) >= marker_ns:
            found.append(step)
    return found


def _find_ops(events: Events, pattern: re.Pattern[str], parts: Sequence[str]) -> I64:
    """Return the operators and ranges whose names hold a pattern; `parts`: one of which a name has that does."""
    codes = []
    for code, text in enumerate(events.strings.texts):
        # a capture has a hundred thousand texts, and few names of these
        if any(part in text for part in parts) and pattern.search(text):
            codes.append(code)
    if not codes:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.isin(events.ops.name, codes))


def _steps_of(events: Events, rows: I64) -> I64:
    return steps_at(events.markers, events.ops.start_ns[rows])
