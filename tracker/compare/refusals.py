"""Why two sides are not judged, or nothing may be said of which one is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracker.compare.operators import own_time
from tracker.compare.references import FILES
from tracker.detect import DEFAULTS
from tracker.results.recording import remedies
from tracker.results.verdicts import INCOMPARABLE, SETTINGS, TOO_FEW
from tracker.store import queries
from tracker.units import counted, format_numbers

if TYPE_CHECKING:
    from tracker.compare.recorded import Recorded
    from tracker.compare.sides import Loaded

_MODEL: Final = frozenset({"model", "model_name", "arch", "architecture"})
"""Keys of a configuration whose values name another program."""


def refused(baseline: Loaded, candidate: Loaded, recorded: Recorded) -> tuple[str, str]:
    """Why the two sides have no verdicts, a sentence and the word of `Judgement.refusal`; "" twice where they have."""
    found = [
        (_overlap(baseline, candidate), INCOMPARABLE),
        *((_part(side), INCOMPARABLE) for side in (baseline, candidate)),
        *((_mixture(side), INCOMPARABLE) for side in (baseline, candidate)),
        (not_comparable(baseline, candidate), INCOMPARABLE),
        (other_track(baseline, candidate), INCOMPARABLE),
        _otherwise_recorded(recorded),
        (_timed_otherwise(baseline, candidate), SETTINGS),
        (_too_few(baseline, candidate), TOO_FEW),
    ]
    return next(((sentence, word) for sentence, word in found if sentence), ("", ""))


def _timed_otherwise(baseline: Loaded, candidate: Loaded) -> str:
    if own_time(baseline) == own_time(candidate):
        return ""
    return "Not judged: one side was timed on the device, the other on the host."


def _too_few(baseline: Loaded, candidate: Loaded) -> str:
    if baseline.side.runs > 1:
        return ""
    runs = f"{counted(candidate.side.runs, 'run')} against 1"
    return f"{runs}: no verdicts; give {DEFAULTS.least_base} or more runs of the baseline."


def _overlap(baseline: Loaded, candidate: Loaded) -> str:
    both = sorted({*baseline.run_ids} & {*candidate.run_ids})
    if baseline.store is not candidate.store or not both:
        return ""
    if set(baseline.run_ids) == set(candidate.run_ids):
        return "Not judged: both sides are the same runs."
    return f"Not judged: on both sides is run {format_numbers(both)}."


def _part(side: Loaded) -> str:
    if side.chosen_steps is not None:
        return f"Not judged: {side.side.label} is only chosen steps of its runs."
    if side.ranks is not None or side.is_selection:
        return f"Not judged: {side.side.label} is only chosen ranks of its runs."
    return ""


def _mixture(side: Loaded) -> str:
    mixed = [words for column, words in _LINE.items() if len({*side.runs.listed(column)}) > 1]
    return f"Not judged: {side.side.label} mixes {mixed[0]}s." if mixed else ""


def not_comparable(baseline: Loaded, candidate: Loaded) -> str:
    """The sentence that says that two sides do different work, "" where they do the same: nothing may be said of which
    one is faster.
    """
    models = [_models(side) for side in (baseline, candidate)]
    other = _different(baseline, candidate, "workload")
    if not other and all(models) and not models[0] & models[1]:
        other = f"different model ({' | '.join(sorted(models[0]))} and {' | '.join(sorted(models[1]))})"
    return f"Not comparable: {other}." if other else ""


def _models(side: Loaded) -> set[str]:
    facts = side.about(queries.facts).rows("kind", "key", "value")
    return {value for kind, key, value in facts if kind == "configuration" and key.lower() in _MODEL}


def _otherwise_recorded(recorded: Recorded) -> tuple[str, str]:
    """What in the settings leaves nothing to judge; without step markers a step is something else."""
    found = recorded.of_everything
    if not found:
        return "", ""
    is_step = any(one.aspect.field == "steps" for one in found)
    sentence = f"Not {'comparable' if is_step else 'judged'}: {'; '.join(one.sentence for one in found)}."
    return f"{sentence} {remedies(found)}".rstrip(), INCOMPARABLE if is_step else SETTINGS


def other_track(baseline: Loaded, candidate: Loaded) -> str:
    """The sentence that says that two sides are of different tracks, "" where they are of one."""
    other = [_different(baseline, candidate, what) for what in ("device", "configuration")]
    words = " and ".join(filter(None, other))
    return f"Compared, not judged: {words}." if words else ""


_LINE: Final = {"workload": "workload", "device": "device", "vendor": "device", "configuration": "configuration"}
"""Column of the runs of a side -> what must be the same in all of them, in words."""


def _different(baseline: Loaded, candidate: Loaded, what: str) -> str:
    one, other = (getattr(side.side, what) for side in (baseline, candidate))
    # files belong to no workload, so that they may be of any
    if one == other or (what == "workload" and FILES in (one, other)):
        return ""
    return f"different {what} ({one or 'none'} and {other or 'none'})"
