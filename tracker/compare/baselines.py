"""What one side alone is compared with: runs of its line before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracker.compare.sides import needs_store, resolve
from tracker.errors import UsageError
from tracker.results import BASELINES
from tracker.results.options import check_words
from tracker.store import Store, judged, queries
from tracker.store.judged import LineRun
from tracker.units import counted, format_numbers

WINDOW: Final = 8
"""Runs of a window (JUDGEMENT section 3)."""


def baseline_of(
    store: Store | None, candidate: str, against: str = "window", *, workload: str | None = None
) -> tuple[str, str]:
    """The side that `candidate` is compared with, as `diff` takes it, and a sentence that says which runs it is.

    `against`: `window`, the last 8 active runs of earlier versions; `previous`, those of the version before; `pinned`,
    those of the pinned version. All of the workload, configuration and device of the candidate. UsageError where there
    are none.
    """
    check_words("baseline", (against,), BASELINES)
    if store is None or not needs_store(candidate):
        raise UsageError(f"{candidate} has no earlier versions", remedy="name the baseline as well: BASELINE CANDIDATE")
    run_ids, _ = resolve(store, candidate, workload)
    with store.connect() as connection:
        lines = judged.lines(connection, run_ids)
        if len(lines) > 1:
            raise UsageError(
                f"{candidate} has runs of several workloads, devices or configurations",
                remedy="name some of them: VERSION@DEVICE or run:ID,run:ID",
            )
        runs = judged.runs_of(connection, lines[0])
    named = queries.runs_by_id(store, run_ids)
    order = {label: at for at, label in enumerate(queries.versions(store, str(named["workload"].iloc[0]))["version"])}
    first = min(order[label] for label in named["version"])
    earlier = [run for run in runs if order[run.version] < first]
    chosen = _chosen(earlier, [run for run in runs if run.pinned and run.run_id not in run_ids], against)
    if not chosen:
        what = "pinned" if against == "pinned" else "earlier"
        raise UsageError(
            f"{candidate} has no {what} runs on its device and configuration",
            remedy=f"name the baseline: tracker diff BASELINE {candidate}",
        )
    words = {
        "window": f"the last {counted(len(chosen), 'active run')} of earlier versions",
        "previous": "the version before",
        "pinned": "the pinned version",
    }[against]
    side = ",".join(f"run:{number}" for number in sorted(run.run_id for run in chosen))
    return side, f"The baseline is {words}: {_by_version(chosen)}."


def _chosen(earlier: Sequence[LineRun], pinned: Sequence[LineRun], against: str) -> Sequence[LineRun]:
    if against == "pinned":
        return pinned
    if against == "previous":
        return [run for run in earlier if run.version_id == earlier[-1].version_id]
    return earlier[-WINDOW:]


def _by_version(runs: Sequence[LineRun]) -> str:
    """Which runs of which versions, in order."""
    found: dict[str, list[int]] = {}
    for run in runs:
        found.setdefault(run.version, []).append(run.run_id)
    return ", ".join(f"{version} (run {format_numbers(sorted(numbers))})" for version, numbers in found.items())
