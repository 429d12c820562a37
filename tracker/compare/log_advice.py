"""Advice over the versions of a log: what came, what was taken, and what the step won by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.advice import stored
from tracker.advice.versions import compared, merged
from tracker.compare.log_runs import Track
from tracker.results.advice import GONE
from tracker.results.partial import find_partial
from tracker.store import queries
from tracker.store.samples.statistics import over_runs

if TYPE_CHECKING:
    from tracker.advice.judging import RunAdvice
    from tracker.compare.log_runs import RunNumbers
    from tracker.results import Advice
    from tracker.store import Store

Place = tuple[str, Track]
"""A version on a track."""
TAKEN: Final = "taken"


class VersionAdvice(Struct, frozen=True):
    """A piece of advice that came with a version, or was taken by it.

    `status`: new, grown or TAKEN.
    `won_ns`: what the step won, by all that the version changed; None for what was not taken.
    """

    version: str
    track: Track
    status: str
    item: Advice
    won_ns: float | None

    @property
    def place(self) -> Place:
        """The version, and where it was measured."""
        return self.version, self.track


class _Level(Struct, frozen=True):
    """The runs of one version on a track: what was advised, and their step."""

    advice: RunAdvice
    step_ns: float | None


def list_advice(store: Store, runs: Sequence[RunNumbers]) -> Iterator[VersionAdvice]:
    """Yield each piece of advice that is new in a version, has grown by half, or was taken: it is gone, and the step is
    shorter than in the version before. `runs`: in the order of versions.
    """
    kept = stored.of_runs(store, [run.run_id for run in runs])
    columns = ("run_id", "rank", "quality_reason", "settings")
    partial = find_partial(queries.partial_captures(store).rows(*columns)).captures_of_partial_steps
    # where records are lost, advice is gone with them, and nobody took it
    kept = {run_id: own for run_id, own in kept.items() if run_id not in {run for run, _ in partial}}
    tracks: dict[Track, dict[str, list[RunNumbers]]] = {}
    for run in runs:
        versions_of_track = tracks.setdefault(run.track, {})
        if run.run_id in kept:
            versions_of_track.setdefault(run.version, []).append(run)
    for track, versions in tracks.items():
        before = None
        for version, own in versions.items():
            level = _Level(merged([kept[run.run_id] for run in own]), _find_step(own))
            if before is not None:
                yield from _compare_levels(version, track, before, level)
            before = level


def _compare_levels(version: str, track: Track, before: _Level, after: _Level) -> Iterator[VersionAdvice]:
    won_ns = None
    if before.step_ns is not None and after.step_ns is not None:
        won_ns = before.step_ns - after.step_ns
    for item in compared(after.advice.items, before.advice.items):
        if not item.is_shown:
            continue
        if item.status != GONE:
            yield VersionAdvice(version, track, item.status or "", item, None)
        elif item.gain_ns and won_ns is not None and won_ns > 0:
            yield VersionAdvice(version, track, TAKEN, item, won_ns)


def _find_step(runs: Sequence[RunNumbers]) -> float | None:
    known = [run.run_step_ns for run in runs if run.run_step_ns is not None]
    return float(over_runs(np.array([known], dtype=np.float64))[0]) if known else None


def find_promises(advice: Sequence[VersionAdvice]) -> dict[Place, str]:
    """Return of each version that took advice how much faster that could make it at most, in words, as a tag
    `expected`.
    """
    largest: dict[Place, tuple[float, Advice]] = {}
    for one in advice:
        share = one.item.gain_share
        if one.status != TAKEN or not share or share >= 1:
            continue
        known = largest.get(one.place)
        if known is None or share > known[0]:
            largest[one.place] = (share, one.item)
    return {place: _word_promise(share, item) for place, (share, item) in largest.items()}


def _word_promise(share: float, item: Advice) -> str:
    gain = 1 / (1 - share) - 1
    return f"at most +{gain * 100:.1f} % ({item.rule})"
