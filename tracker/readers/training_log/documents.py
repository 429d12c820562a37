"""Logs that are one object of JSON: what Hugging Face and the tests of Megatron-LM and MindSpeed write at the end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tracker.readers.training_log.columns import PackedColumn
from tracker.readers.training_log.grammar import TOTAL, Grammar, StepLine
from tracker.readers.training_log.rounding import ROUNDED, half_unit_of
from tracker.readers.training_log.scanning import Scan
from tracker.readers.training_log.trainer_sessions import (
    FEWEST_LINES,
    UNKNOWN_STEPS,
    Between,
    count_part,
    rounding_of_rate,
    sentence_on_steps,
    steps_of_history,
)

MAX_BYTES: Final = 256 << 20
SUMMARY: Final = re.compile(rb'"train_(?:steps_per_second|samples_per_second|runtime)": *\d')
_MINDSPEED: Final = re.compile(rb'"time info": *\[')
_GOLDEN: Final = re.compile(rb'"iteration-time": *\{')
STATE: Final = re.compile(rb'"log_history": *\[')

MINDSPEED: Final = Grammar(
    "mindspeed", "MindSpeed and ModelLink (results of their tests)", (StepLine(_MINDSPEED, b""),), first_steady=4
)
GOLDEN: Final = Grammar(
    "megatron", "Megatron-LM (golden values of its tests)", (StepLine(_GOLDEN, b""),), first_steady=4
)
TRAINER: Final = Grammar(
    "transformers",
    "Hugging Face Trainer (trainer_state.json)",
    (StepLine(SUMMARY, b""),),
    scopes={"samples_s": TOTAL},
    first_steady=0,
)
DOCUMENTS: Final = (MINDSPEED, GOLDEN, TRAINER)


def document_in(head: bytes, tail: bytes) -> Grammar | None:
    """Return which kind of document a file is, by its start and its end."""
    if not re.match(rb"\s*\{", head):
        return None
    for grammar in (MINDSPEED, GOLDEN):
        if grammar.lines[0].occurs_in(head) or grammar.lines[0].occurs_in(tail):
            return grammar
    if re.match(rb'\s*\{\s*"(?:current_steps|mode)"', head):
        return None
    # a summary alone, as in all_results.json, does not say how many steps it is of
    is_trainer = STATE.search(head) and (SUMMARY.search(head) or SUMMARY.search(tail))
    return TRAINER if is_trainer and _is_one_object(head, tail) else None


def is_summary_alone(head: bytes) -> bool:
    """Whether the start of a file is that of a summary without a history, which does not say whose steps it is of."""
    is_object = re.match(rb"\s*\{", head) is not None and _is_one_object(head, b"")
    return is_object and STATE.search(head) is None and SUMMARY.search(head) is not None


def _is_one_object(head: bytes, tail: bytes) -> bool:
    """Whether the text is an object over several lines, and not one object in each line."""
    first = head.lstrip().split(b"\n", 1)[0].strip()
    return not first.endswith(b"}") or head.strip() == first


def scan_document(content: bytes, grammar: Grammar) -> tuple[Scan, str]:
    """Return what a document says, as if it were lines, and a sentence on it, "" for none. ValueError: no JSON."""
    document = json.loads(content.removeprefix(b"\xef\xbb\xbf"))
    if not isinstance(document, dict):
        raise ValueError("no object")
    if grammar is MINDSPEED:
        return _scan_mindspeed(document), ""
    if grammar is GOLDEN:
        return _scan_golden(document), ""
    return _scan_trainer(document)


def _scan_mindspeed(document: Mapping[str, Any]) -> Scan:
    times = document.get("time info")
    times = times if isinstance(times, list) else []
    memory = document.get("memo info")
    ranks = [rank for rank in memory if isinstance(rank, Mapping)] if isinstance(memory, list) else []
    peaks = [_number(rank.get("max allocated memory")) for rank in ranks]
    peak = max((value for value in peaks if value > 0), default=np.nan)
    return _scan_of(
        {"step": range(1, len(times) + 1), "step_ms": map(_number, times), "allocated_mib": [peak] * len(times)}
    )


def _scan_golden(document: Mapping[str, Any]) -> Scan:
    table = document.get("iteration-time")
    values = table.get("values") if isinstance(table, Mapping) else None
    pairs: list[tuple[float, float]] = []
    if isinstance(values, Mapping):
        pairs = [(int(step), _number(value)) for step, value in values.items() if str(step).isdigit()]
    pairs.sort()
    return _scan_of({"step": [step for step, _ in pairs], "step_s": [value for _, value in pairs]})


def _scan_trainer(document: Mapping[str, Any]) -> tuple[Scan, str]:
    """Return the summary of the last session of a run, evaluation and saving included, or the times since its start
    that stand beside the losses; and a sentence: whose steps these are, or why nothing says how long one took.
    """
    history = document.get("log_history")
    entries = [entry for entry in history if isinstance(entry, Mapping)] if isinstance(history, list) else [document]
    places = [place for place, entry in enumerate(entries) if "train_runtime" in entry and "loss" not in entry]
    last = places[-1] if places else len(entries)
    logged = [place for place in range(last) if "loss" in entries[place] and "step" in entries[place]]
    steps = [_number(entries[place]["step"]) for place in logged]
    elapsed = [_number(entries[place].get("train_runtime")) for place in logged]
    if len(logged) >= FEWEST_LINES and not np.isnan(elapsed).any():
        evaluated = [_has_evaluation(entries, place) for place in logged]
        return _scan_of({"step": steps, "elapsed_s": elapsed, "evaluation": evaluated}), ""
    summary = entries[last] if places else {}
    runtime, rate = _number(summary.get("train_runtime")), _number(summary.get("train_samples_per_second"))
    reached = _number(summary.get("step", document.get("global_step")))
    losses = [_number(entries[place]["loss"]) for place in logged]
    done = steps_of_history(steps, losses, _number(summary.get("train_loss")), reached)
    if done is None or not runtime > 0:
        return _scan_of({"step": []}), UNKNOWN_STEPS
    planned = _number(document.get("max_steps"))
    planned = planned if planned > 0 else reached
    counted = count_part(done, Between(planned, planned))
    scan = _scan_of(
        {"step": [reached], "run_s": [runtime], "run_steps": [done.middle], "samples_s": [rate * counted.part.middle],
         "step_rounding": [done.rounding], "rate_rounding": [rounding_of_rate(rate) + counted.part.rounding]}
    )  # fmt: skip
    return scan, sentence_on_steps(counted)


def _has_evaluation(entries: Sequence[Mapping[str, Any]], place: int) -> float:
    """Return 1 where an entry follows one of an evaluation, which is in its time then; else nan."""
    return 1.0 if place and any(str(name).startswith("eval_") for name in entries[place - 1]) else np.nan


def _scan_of(columns: Mapping[str, Any]) -> Scan:
    numbers = {name: np.array([float(value) for value in values]) for name, values in columns.items()}
    half_units = {
        name: half_unit_of(repr(value).encode() for value in numbers[name].tolist())
        for name in ROUNDED & numbers.keys()
    }
    count = len(next(iter(numbers.values())))
    return Scan(
        numbers={name: PackedColumn.of(values) for name, values in numbers.items()},
        positions=PackedColumn.of(np.arange(count, dtype=np.int64)),
        half_units=half_units,
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")
