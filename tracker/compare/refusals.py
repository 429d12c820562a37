"""Why two sides are not judged, or nothing may be said of which one is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.compare import reduction
from tracker.compare.operators import Operators, own_time
from tracker.compare.references import FILES, needs_store
from tracker.detect import DEFAULTS
from tracker.profile.branches import main_of
from tracker.results.recording import remedies
from tracker.results.verdicts import INCOMPARABLE, NEVER_JUDGED, SETTINGS, TOO_FEW
from tracker.store import queries
from tracker.table import number_distinct_rows, number_tables
from tracker.units import counted, format_numbers

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.compare.recorded import Recorded
    from tracker.compare.sides import Loaded

_MODEL: Final = frozenset({"model", "model_name", "arch", "architecture"})
"""Keys of a configuration whose values name another program."""


_IN_COMMON: Final = 0.5
"""Share of the names of the operators, and of the time of either side, that both have at least where they do the same
work: of the names 0.85 and more between captures of one model, 0.35 and less between models. An operator that is new,
or in the place of another, can take most of the time, but not most of the names.
"""
_FEWEST_NAMES: Final = 5
"""Operators of a side from which on their names say which model it is."""
INSTEAD: Final = (
    "Compare captures of the same work (--op-map says which operators are the same under another name), or see the "
    "tables all the same with --force."
)


def refused(baseline: Loaded, candidate: Loaded, operators: Operators | None, recorded: Recorded) -> tuple[str, str]:
    """Why the two sides have no verdicts, a sentence and the word of `Judgement.refusal`; "" twice where they have."""
    found = [
        (_several_jobs(baseline, None if operators is None else operators.baseline_rows), INCOMPARABLE),
        (_several_jobs(candidate, None if operators is None else operators.candidate_rows), INCOMPARABLE),
        (_other_work(baseline, candidate, operators), INCOMPARABLE),
        *((_part(side), NEVER_JUDGED) for side in (baseline, candidate)),
        (_overlap(baseline, candidate), NEVER_JUDGED),
        *((_mixture(side), NEVER_JUDGED) for side in (baseline, candidate)),
        (other_track(baseline, candidate), NEVER_JUDGED),
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
    needed = DEFAULTS.runs_needed(1, candidate.side.runs)
    if candidate.side.runs == 1:
        return f"One run each: no verdict on the time; {needed}."
    return f"{counted(candidate.side.runs, 'run')} against 1: {needed}."


def _overlap(baseline: Loaded, candidate: Loaded) -> str:
    if are_same_runs(baseline, candidate):
        is_of_files = baseline.store is not candidate.store or not needs_store(baseline.side.label)
        return f"Not judged: both sides are the same {'files' if is_of_files else 'runs'}."
    both = sorted({*baseline.run_ids} & {*candidate.run_ids})
    if baseline.store is not candidate.store or not both:
        return ""
    return f"Not judged: on both sides is run {format_numbers(both)}."


def are_same_runs(baseline: Loaded, candidate: Loaded) -> bool:
    """Return whether both sides hold the same recordings: the same runs of a database, or files of the same content."""
    if baseline.store is candidate.store and {*baseline.run_ids} == {*candidate.run_ids}:
        return True
    if all(needs_store(side.side.label) for side in (baseline, candidate)):
        # a database takes each recording once
        return False
    files = [sorted(side.about(queries.sources).listed("digest")) for side in (baseline, candidate)]
    return files[0] == files[1] and bool(files[0])


def _part(side: Loaded) -> str:
    if side.chosen_steps is not None:
        return f"Not judged: {side.side.label} is only chosen steps of its runs."
    if side.ranks is not None or side.is_selection:
        return f"Not judged: {side.side.label} is only chosen ranks of its runs."
    return ""


def _mixture(side: Loaded) -> str:
    mixed = [words for column, words in _LINE.items() if len({*side.runs.listed(column)}) > 1]
    return f"Not judged: {side.side.label} mixes {mixed[0]}s." if mixed else ""


def _other_work(baseline: Loaded, candidate: Loaded, operators: Operators | None) -> str:
    """The sentence that says that two sides do different work, "" where they do the same: nothing may be said of which
    one is faster.
    """
    models = [_models(side) for side in (baseline, candidate)]
    other = _different(baseline, candidate, "workload")
    if not other and all(models) and not models[0] & models[1]:
        other = f"different model ({' | '.join(sorted(models[0]))} and {' | '.join(sorted(models[1]))})"
    if not other and operators is not None and (shares := _in_common(operators)):
        names, time = (f"{100 * share:.0f} %" for share in shares)
        other = f"only {names} of the operators are on both sides, by their names, with {time} of the time of one"
    return f"Not comparable: {other}." if other else ""


def _several_jobs(side: Loaded, rows: Columns | None) -> str:
    """The sentence that says that the runs of a side are no repeats of one job; "" where they may be."""
    if rows is None or _common_share(side, rows) >= _IN_COMMON:
        return ""
    one = f"run of {side.side.label} (run:ID)" if needs_store(side.side.label) else f"file of {side.side.label}"
    few = f"the {side.side.runs} runs of {side.side.label} have few operators in common, as different models have"
    return f"Not comparable: {few}. Name one {one}."


def _common_share(side: Loaded, rows: Columns) -> float:
    """Share of the own time of a side's ops (by name) that lies in ops which all of its runs with ops have."""
    if side.side.runs < 2:
        return 1.0
    (own,), _ = number_tables([rows], ["name"])
    times = reduction.per_run(side, own, ["own_ns"])["own_ns"]
    times = times[:, ~np.isnan(times).all(axis=0)]
    in_all = ~np.isnan(times).any(axis=1)
    total = float(np.nansum(times))
    return float(np.nansum(times[in_all])) / total if total else 1.0


def _in_common(operators: Operators) -> tuple[float, float] | None:
    """The shares of the names of the operators, and of the time of that side which has less of it in common, that both
    sides have; None where they have enough to do the same work, or too few operators for anybody to say.
    """
    ops = operators.everything
    number, first = number_distinct_rows([ops["name"]])
    sides = [np.nan_to_num(ops.reals(name)) for name in ("baseline_ns", "candidate_ns")]
    times = [np.bincount(number, own, len(first)) for own in sides]
    there = [own > 0 for own in times]
    if min(own.sum() for own in there) < _FEWEST_NAMES:
        return None
    both = there[0] & there[1]
    names = float(both.sum() / (there[0] | there[1]).sum())
    time = min(float(own[both].sum() / own.sum()) for own in times)
    return (names, time) if max(names, time) < _IN_COMMON else None


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
    if what == "workload":
        one, other = main_of(one), main_of(other)
    # files belong to no workload, so that they may be of any
    if one == other or (what == "workload" and FILES in (one, other)):
        return ""
    return f"different {what} ({one or 'none'} and {other or 'none'})"
