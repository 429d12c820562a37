"""Several files that one program writes about one run: which of them is read."""

from __future__ import annotations

from pathlib import Path

from tracker.readers._source import read_head
from tracker.readers.training_log.documents import SUMMARY


def other_of_run(path: Path) -> Path | None:
    """Return the file that is read in place of `path`; None where it is `path` itself."""
    for other in _candidates(path):
        if other != path and other.is_file():
            return other
    return None


def _candidates(path: Path) -> list[Path]:
    folder, name = path.parent, path.name
    if name in ("trainer_state.json", "train_results.json", "all_results.json"):
        # the log of LLaMA-Factory has single intervals, the others only the whole run
        found = [folder / "trainer_log.jsonl"]
        state = folder / "trainer_state.json"
        if name != state.name and state.is_file() and SUMMARY.search(read_head(state, 1 << 26)):
            found.append(state)
        if name == "all_results.json":
            found.append(folder / "train_results.json")
        return found
    if name.endswith(".log"):
        # mmcv and MMEngine write the same as JSON
        stem = name.removesuffix(".log")
        return [folder / f"{name}.json", folder / "vis_data" / f"{stem}.json"]
    if name == "scalars.json":
        return sorted(one for one in folder.glob("[0-9]*_[0-9]*.json"))
    if name == "metrics.json":
        return [folder / "log.txt"]
    if name.startswith("events.out.tfevents.") and (folder / "metrics.json").is_file():
        return [folder / "log.txt", folder / "metrics.json"]
    return []
