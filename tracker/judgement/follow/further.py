"""A finding that gets worse in a later version: that step is a finding of its own, of the version that made it."""

from __future__ import annotations

from tracker.detectors import rule
from tracker.detectors.baseline import WINDOW
from tracker.judgement.follow.tracked import Tracked, effect_of
from tracker.judgement.follow.tracks import levels
from tracker.judgement.follow.watched import Watched
from tracker.judgement.follow.windows import Windows


def further_step(watched: Watched, tracked: Tracked, runs: range) -> Tracked | None:
    """What made `tracked` worse with the version of `runs`, against the bad level just before; None: it was no later
    version, or the runs do not tell. Nothing has happened to the new finding yet.
    """
    life = tracked.life
    effects = {at: effect_of(watched, tracked, at) for at in range(tracked.first, runs.stop)}
    known = [at for at, effect in effects.items() if effect is not None]
    own = sum(at >= runs.start for at in known)
    count = own if own >= rule.FINDING_RUNS else life.worse_runs
    worse, before = known[-count:], known[:-count]
    began = tracked.finding.first_bad_version
    if tracked.change != "level" or began is None or watched.runs[worse[0]].version <= began:
        return None
    baseline = [at for at in before if (effects[at] or 0.0) >= life.effect][-WINDOW:]
    windows = Windows(len(watched.names))
    for at in baseline:
        windows.join(tracked.row, [at])
    said = levels(watched, windows, worse, families={watched.families[tracked.row]})
    if said.sign[tracked.row] != tracked.sign:
        return None
    return Tracked(
        tracked.row, tracked.sign, tracked.change, worse[0], tuple(baseline), tuple(worse), said.of(tracked.row), life,
        further=True,
    )  # fmt: skip
