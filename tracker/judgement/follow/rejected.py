"""Why a suspicion was cleared: which gates the runs that decide did not pass, with their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from tracker.detectors import rule
from tracker.judgement.follow.tracked import Tracked
from tracker.judgement.follow.tracks import Said
from tracker.judgement.follow.watched import Watched
from tracker.judgement.thresholds import ALPHA, MIN_CONTRIBUTION, MIN_RATIO, Limit


def why_not(watched: Watched, tracked: Tracked, said: Said, columns: Sequence[int]) -> str | None:
    """What stands against the change of `tracked` in what `said` says of its runs `columns`; None: nothing, they show
    it; "": they do not, and there is no number to it.
    """
    if int(said.sign[tracked.row]) == tracked.sign:
        return None
    gates = said.of(tracked.row)
    if gates["ratio"] is None:
        return ""
    if gates["ratio"] * tracked.sign < 0:
        return "they changed the other way"
    kind, name = watched.families[tracked.row][0], watched.names[tracked.row]
    device_timed = all(watched.runs[column].device_timed for column in columns)
    limits = watched.thresholds.of_change(kind, name, tracked.change, device_timed=device_timed)
    failed = [
        words
        for passes, words in (
            (gates["effect_passes"], _share("effect", gates["ratio"], limits[MIN_RATIO])),
            (gates["q_passes"], f"q {gates['q'] or 1.0:.3g}, at most {limits[ALPHA].value:g} counts"),
            (gates["contribution_passes"], _share("contribution", gates["contribution"], limits[MIN_CONTRIBUTION])),
        )
        if passes is False
    ]
    if failed or gates["verdict"] in rule.CHANGED:
        return "; ".join(failed)
    q = "" if gates["q"] is None else f" (q {gates['q']:.3g}, limit {limits[ALPHA].value:g})"
    return f"{gates['reason']}{q}" if gates["reason"] else ""


def _share(gate: str, value: float | None, least: Limit) -> str:
    """A gate that wants a least size; with so many digits that what fails does not read as what passes."""
    size = abs(value or 0.0) * 100
    return f"{gate} {size:.3g} %, at least {least.value * 100:g} % counts"
