"""Logs that are one object of JSON: what Hugging Face and the tests of Megatron-LM and MindSpeed write at the end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tracker.readers.training_log.grammar import TOTAL, Grammar, StepLine
from tracker.readers.training_log.scanning import Scan

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
    "Hugging Face Trainer (trainer_state.json, all_results.json)",
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
    is_trainer = SUMMARY.search(head) or SUMMARY.search(tail)
    return TRAINER if is_trainer and _is_one_object(head, tail) else None


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
    """The summary of a whole run, evaluation and saving included."""
    history = document.get("log_history")
    entries = [entry for entry in history if isinstance(entry, Mapping)] if isinstance(history, list) else [document]
    summary = next((entry for entry in reversed(entries) if "train_runtime" in entry), {})
    runtime = _number(summary.get("train_runtime"))
    steps = _number(summary.get("step", document.get("global_step")))
    rate = _number(summary.get("train_steps_per_second"))
    step_s = runtime / steps if steps > 0 and runtime > 0 else (1 / rate if rate > 0 else np.nan)
    scan = _scan_of(
        {"step": [steps if steps > 0 else 1], "step_s": [step_s],
         "samples_s": [_number(summary.get("train_samples_per_second"))]}
    )  # fmt: skip
    return scan, "the only time is that of the whole run: start, evaluation and saving are in it"


def _scan_of(columns: Mapping[str, Any]) -> Scan:
    numbers = {name: np.array([float(value) for value in values]) for name, values in columns.items()}
    count = len(next(iter(numbers.values())))
    return Scan(
        numbers=numbers,
        positions=np.arange(count, dtype=np.int64),
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")
