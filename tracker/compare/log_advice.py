"""Advice over the versions of a log: what came, what was taken, and what the step won by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracker.advice import stored
from tracker.advice.versions import compared, merged
from tracker.results.advice import GONE
from tracker.results.partial import find_partial
from tracker.store import queries
from tracker.store.samples.statistics import over_runs

if TYPE_CHECKING:
    from tracker.store import Store

Place = tuple[str, int, int]
"""A version, and the numbers of a configuration and a device."""
TAKEN: Final = "taken"


def of_versions(store: Store, runs: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row per piece of advice that is new in a version, has grown by half, or was taken: it is gone, and the
    step is shorter than in the version before. `runs`: rows of sql/run_numbers.sql, in the order of versions.

    `expected_ns`: what it could win at most, `realised_ns`: what the step won, by all that the version changed.
    """
    kept = stored.of_runs(store, [int(run["run_id"]) for run in runs])
    columns = ("run_id", "rank", "quality_reason", "settings")
    partial = find_partial(queries.partial_captures(store).rows(*columns)).captures_of_partial_steps
    # where records are lost, advice is gone with them, and nobody took it
    kept = {run_id: own for run_id, own in kept.items() if run_id not in {run for run, _ in partial}}
    tracks: dict[tuple[int, int], dict[str, list[Mapping[str, Any]]]] = {}
    for run in runs:
        track = tracks.setdefault((int(run["configuration_id"]), int(run["device_id"])), {})
        if run["run_id"] in kept:
            track.setdefault(str(run["version"]), []).append(run)
    for (configuration, device), versions in tracks.items():
        before = None
        for version, own in versions.items():
            found = merged([kept[int(run["run_id"])] for run in own]).items, _step(own)
            if before is not None:
                yield from _rows((version, configuration, device), before, found)
            before = found


def _rows(place: Place, before: Any, after: Any) -> Iterator[dict[str, Any]]:
    (items_before, step_before), (items_after, step_after) = before, after
    won = None if step_before is None or step_after is None else step_before - step_after
    for item in compared(items_after, items_before):
        is_taken = item.status == GONE
        if not item.is_shown or (is_taken and not (item.gain_ns and won is not None and won > 0)):
            continue
        yield {
            "version": place[0], "configuration_id": place[1], "device_id": place[2],
            "status": TAKEN if is_taken else item.status, "rule": item.rule, "family": item.family,
            "title": item.title, "expected_ns": item.gain_ns, "realised_ns": won if is_taken else None,
            "expected_share": item.gain_share,
        }  # fmt: skip


def _step(runs: Sequence[Mapping[str, Any]]) -> float | None:
    known = [float(run["run_step_ns"]) for run in runs if run["run_step_ns"] is not None]
    return float(over_runs(np.array([known]))[0]) if known else None


def promised(rows: Sequence[Mapping[str, Any]]) -> dict[Place, str]:
    """Of each version that took advice how much faster that could make it at most, in words, as a tag `expected`."""
    found: dict[Place, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["status"] == TAKEN and row["expected_share"] and row["expected_share"] < 1:
            found.setdefault((row["version"], row["configuration_id"], row["device_id"]), []).append(row)
    return {place: _promise(max(own, key=lambda row: row["expected_share"])) for place, own in found.items()}


def _promise(row: Mapping[str, Any]) -> str:
    gain = 1 / (1 - row["expected_share"]) - 1
    return f"at most +{gain * 100:.1f} % ({row['rule']})"
