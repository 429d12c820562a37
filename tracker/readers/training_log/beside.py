"""Several files that one program writes about one run: which of them is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tracker.limits.files import beside
from tracker.readers._source import read_head
from tracker.readers._text import SNIFF_BYTES
from tracker.readers.training_log.choosing import choose
from tracker.readers.training_log.documents import SUMMARY

_STATE_BYTES: Final = 1 << 26
"""The summary of a trainer_state.json stands at its end, behind its history."""
_ITERATION: Final = re.compile(rb'"iteration": (\d+)')


def other_of_run(path: Path) -> Path | None:
    """Return the file that is read in place of `path`; None where it is `path` itself."""
    return next((other for other in _others_of(path) if other != path), None)


def _others_of(path: Path) -> Iterator[Path]:
    """Yield the files that say the same of a run as `path`, and more."""
    folder, name = path.parent, path.name
    if name in ("trainer_state.json", "train_results.json", "all_results.json"):
        # the log of LLaMA-Factory has single intervals, the others only the whole run
        if _is_log_of(folder / "trainer_log.jsonl", "llamafactory"):
            yield folder / "trainer_log.jsonl"
        state, results = folder / "trainer_state.json", folder / "train_results.json"
        if state.is_file() and SUMMARY.search(read_head(state, _STATE_BYTES)):
            yield state
        if name == "all_results.json" and results.is_file():
            yield results
    elif name.endswith(".log"):
        # mmcv and MMEngine write the same as JSON, under the name of the log
        stem = name.removesuffix(".log")
        for log in (path, folder / "vis_data" / stem):
            if (as_json := beside(log, ".json")) is not None:
                yield as_json
    elif name == "scalars.json":
        yield from (one for one in sorted(folder.glob("[0-9]*_[0-9]*.json")) if _is_log_of(one, "mmengine"))
    elif name == "metrics.json" and _is_same_run(folder / "log.txt", path):
        yield folder / "log.txt"
    elif name.startswith("events.out.tfevents.") and _is_log_of(folder / "metrics.json", "detectron2"):
        if _is_same_run(folder / "log.txt", folder / "metrics.json"):
            yield folder / "log.txt"
        yield folder / "metrics.json"


def _is_log_of(path: Path, framework: str) -> bool:
    """Whether a file is a log of a framework: any program may write a file of its name."""
    if not path.is_file():
        return False
    choice = choose(path, read_head(path))
    return choice is not None and choice.grammar.name == framework


def _is_same_run(log: Path, metrics: Path) -> bool:
    """Whether a log.txt is that of the run of a metrics.json: both of Detectron2, with its first iteration in both."""
    if not _is_log_of(log, "detectron2"):
        return False
    first = _ITERATION.search(read_head(metrics, SNIFF_BYTES))
    if first is None:
        return False
    return re.search(rb"\biter: " + first[1] + rb"(?:/\d+)? ", read_head(log, SNIFF_BYTES)) is not None
