"""The kinds of steps of two sides: each is compared by itself, and one of them is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.compare import match
from tracker.compare.coverage import with_step_counts
from tracker.compare.side import LoadedSide
from tracker.errors import UsageError
from tracker.regressions.sides import SideVerdicts
from tracker.results import Explanation
from tracker.results.diff import StepKind
from tracker.results.verdicts import WORST_FIRST, word_of_step
from tracker.schema.column_names import DURATION_NS, KIND, RANK, RUN_ID, STEP, STEPS
from tracker.schema.series import STEP_KEY, UNPROFILED
from tracker.store.samples.statistics import over_runs
from tracker.units import format_diff, format_ns, time_unit

_SEVERAL: Final = 2
_LEAST_STEPS: Final = 2
"""A kind needs two steps on a side."""


class Kinds(Struct, frozen=True):
    """The kinds of steps of two sides. `shown`: that which stands for them, "" where steps are not told apart; `rows`:
    each kind with its numbers and its verdict, the shown one first.
    """

    shown: str = ""
    rows: tuple[StepKind, ...] = ()


def count_kinds(side: LoadedSide) -> Counter[str]:
    """Return how many steps of each kind a run of a side has, of its rank with most, the median of its runs; "" of
    those without one. A kind that some run has is counted once at least.
    """
    counts: dict[tuple[int, int], Counter[str]] = {}
    for run_id, rank, kind, steps in side.steps.rows(RUN_ID, RANK, KIND, STEPS):
        counts.setdefault((run_id, rank), Counter())[kind or ""] += steps
    of_runs: dict[int, Counter[str]] = {}
    for (run_id, _), own in counts.items():
        of_runs[run_id] = of_runs.get(run_id, Counter()) | own
    every = {kind for own in of_runs.values() for kind in own}
    return Counter({kind: max(1, round(median(own[kind] for own in of_runs.values()))) for kind in every})


def choose_kind_of_steps(
    baseline: LoadedSide, candidate: LoadedSide, chosen: str | None, verdicts: SideVerdicts | None
) -> Kinds:
    """Return the kinds of steps of two sides, and which is shown: the `chosen` one, else that with the worst verdict,
    else that whose steps took most time on both sides together.

    UsageError where a side has no steps of the `chosen` kind.
    """
    counts = [count_kinds(side) for side in (baseline, candidate)]
    if chosen is not None:
        for side, own in zip((baseline, candidate), counts, strict=True):
            _require_kind(side, own, chosen)
    before, after = counts
    both = [kind for kind in before if kind and _come_twice(kind, baseline, candidate)]
    rows = []
    for kind in sorted({*before, *after} - {""}):
        verdict, reason = _verdict_of(verdicts, kind) if kind in both else (None, None)
        rows.append(
            StepKind(
                kind,
                before[kind],
                after[kind],
                _measure(baseline, kind) if before[kind] else None,
                _measure(candidate, kind) if after[kind] else None,
                verdict,
                reason,
            )
        )
    shown = chosen or min((row for row in rows if row.kind in both), key=_place, default=StepKind("", 0, 0)).kind
    return Kinds(shown, tuple(sorted(rows, key=lambda row: (row.kind != shown, *_place(row)))))


def differ_in_kinds(baseline: LoadedSide, candidate: LoadedSide) -> bool:
    """Return whether two sides are compared by the kinds of their steps: some side has several, or the sides have not
    the same. Where one of them was read before kinds were known, all steps are compared.
    """
    named = [{kind for kind in count_kinds(side) if kind} for side in (baseline, candidate)]
    return all(named) and (named[0] != named[1] or len(named[0]) > 1)


def say_none_shared(baseline: LoadedSide, candidate: LoadedSide) -> str:
    """Return why two sides have no steps that can be compared, "" where they have: no kind comes twice on both."""
    if baseline.step_kind or not differ_in_kinds(baseline, candidate):
        return ""
    before, after = count_kinds(baseline), count_kinds(candidate)
    if any(kind and _come_twice(kind, baseline, candidate) for kind in before):
        return ""
    words = []
    for own in (before, after):
        words.append(", ".join(f"{count:,} {kind}" for kind, count in sorted(own.items()) if kind))
    return f"no kind of steps comes twice on both sides ({' | '.join(words)})"


def of_kind(side: LoadedSide, step_kind: str) -> LoadedSide:
    """Return a side with the steps of one kind alone."""
    steps = side.steps.taken(np.array([kind == step_kind for kind in side.steps.listed(KIND)], dtype=bool))
    captures = with_step_counts(side.captures, steps)
    numbers = captures.integers(STEPS)
    own = replace(
        side.side,
        steps=int(numbers.max()),
        fewest_steps=int(numbers[numbers > 0].min()) if (numbers > 0).any() else None,
        step_kind=step_kind,
    )
    is_part = side.is_part or len(steps) < len(side.steps)
    return replace(side, side=own, steps=steps, captures=captures, step_kind=step_kind, is_part=is_part, cache={})


def keep_kind(side: LoadedSide, chosen: str | None) -> tuple[LoadedSide, tuple[str, ...]]:
    """Return a side with the steps of the `chosen` kind, or where steps are of several kinds with those that took most
    time; and a sentence on the others. A side of which steps were chosen by number stays as it is.
    """
    counts = count_kinds(side)
    named = [kind for kind in counts if kind]
    if side.chosen_steps is not None and chosen is not None:
        raise name_both()
    if side.chosen_steps is not None or (chosen is None and len(named) < _SEVERAL):
        return side, ()
    if chosen is not None:
        _require_kind(side, counts, chosen)
    times = {kind: (_measure(side, kind) or 0.0) for kind in named}
    kind = chosen or max(sorted(named), key=lambda kind: times[kind] * counts[kind])
    own = of_kind(side, kind)
    numbers = tuple(sorted(set(own.steps.listed(STEP))))
    others = [f"{counts[other]:,} {other} ({format_ns(times[other])} each)" for other in sorted(named) if other != kind]
    note = f"Shown are {counts[kind]:,} {kind} steps; the others are {', '.join(others)}: --step-kind chooses."
    return replace(own, chosen_steps=numbers), (note,) if others else ()


def keep_shared_kind(sides: Sequence[LoadedSide], chosen: str | None) -> tuple[list[LoadedSide], tuple[str, ...]]:
    """Return several sides with the steps of one kind: the `chosen` one, else, where steps are of several kinds, that
    of which all sides have two steps and which took most time; and a sentence on it. Sides without such a kind stay as
    they are, and the sentence says so.
    """
    counts = [count_kinds(side) for side in sides]
    named = {kind for own in counts for kind in own} - {""}
    if chosen is not None:
        for side, own in zip(sides, counts, strict=True):
            _require_kind(side, own, chosen)
    elif len(named) < _SEVERAL or any(not set(own) - {""} for own in counts):
        return [*sides], ()
    shared = [kind for kind in sorted(named) if all(_has_twice(side, kind) for side in sides)]
    times: dict[str, float] = {}
    for kind in shared:
        times[kind] = sum((_measure(side, kind) or 0.0) * own[kind] for side, own in zip(sides, counts, strict=True))
    kind = chosen or max(shared, key=lambda one: times[one], default="")
    if not kind:
        return [*sides], (f"Steps are of several kinds ({', '.join(sorted(named))}), of which no one is on all sides.",)
    note = f"Steps are of several kinds ({', '.join(sorted(named))}): compared are {kind} steps; --step-kind chooses."
    return [of_kind(side, kind) for side in sides], (note,)


def say_others(kinds: Kinds) -> str:
    """Return what the other kinds of steps did, and how the mix of steps differs, behind a headline; "" for nothing.

    >>> a, b = StepKind("DECODE", 8, 15, 5.0, 5.8, "REGRESSED"), StepKind("EXTEND", 9, 2, 40.0, 40.0, "UNCHANGED")
    >>> say_others(Kinds("DECODE", (a, b)))
    '; EXTEND steps unchanged'
    """
    words = []
    for row in kinds.rows:
        if row.kind == kinds.shown:
            continue
        if row.baseline_ns is None or row.candidate_ns is None:
            side = "baseline" if row.candidate_ns is None else "candidate"
            words.append(f"{row.kind} steps in the {side} only")
        elif row.verdict in WORST_FIRST:
            word = word_of_step(row.verdict, row.reason)
            words.append(f"{row.kind} steps {word} ({format_diff(row.diff or 0.0)})")
        elif row.verdict == "UNCHANGED":
            words.append(f"{row.kind} steps unchanged")
        else:
            words.append(f"{row.kind} steps {row.verdict or 'not judged'}")
    return "".join(f"; {one}" for one in words)


def add_others(explanation: Explanation, kinds: Kinds) -> Explanation:
    """Return an explanation whose headline says what the other kinds of steps did, too."""
    others = say_others(kinds)
    return replace(explanation, headline=f"{explanation.headline}{others}") if others else explanation


def note_on_mix(kinds: Kinds, labels: Sequence[str]) -> str:
    """Return a sentence where the sides have another mix of steps: that is no change of any of them. It says how much
    the mix alone changes the time of all steps together, where each kind is on both sides.
    """
    if not kinds.rows:
        return ""
    before = [row.baseline_steps for row in kinds.rows]
    after = [row.candidate_steps for row in kinds.rows]
    totals = sum(before), sum(after)
    if [count * totals[1] for count in before] == [count * totals[0] for count in after]:
        return ""
    row = max(kinds.rows, key=lambda row: max(row.baseline_ns or 0.0, row.candidate_ns or 0.0))
    return (
        f"The mix of steps differs: {labels[0]} has {row.baseline_steps:,} of {totals[0]:,} {row.kind} steps a run, "
        f"{labels[1]} {row.candidate_steps:,} of {totals[1]:,}{_describe_weighted(kinds.rows)}."
    )


def _describe_weighted(rows: Sequence[StepKind]) -> str:
    """Return how the kinds changed together, each weighted by its steps, and by how much the mix alone changed that.

    It is made of the numbers of the rows, each a median: the mean step of a capture is another number.

    >>> slow, quick = StepKind("EXTEND", 1, 1, 40e6, 40e6), StepKind("DECODE", 1, 3, 4e6, 8e6)
    >>> _describe_weighted([slow, quick])
    '; the kinds, weighted by their steps, take 22.00 -> 16.00 ms, -9.00 ms by the mix alone'
    """
    if any(row.baseline_ns is None or row.candidate_ns is None for row in rows):
        return ""
    totals = sum(row.baseline_steps for row in rows), sum(row.candidate_steps for row in rows)
    first = sum((row.baseline_ns or 0.0) * row.baseline_steps for row in rows) / totals[0]
    last = sum((row.candidate_ns or 0.0) * row.candidate_steps for row in rows) / totals[1]
    # the steps of the baseline in the mix of the candidate
    mixed = sum((row.baseline_ns or 0.0) * row.candidate_steps for row in rows) / totals[1]
    unit = time_unit(first, last)
    numbers = f"{format_ns(first, unit).split(' ')[0]} -> {format_ns(last, unit)}"
    by_mix = format_ns(mixed - first, unit)
    sign = "+" if mixed > first else ""
    return f"; the kinds, weighted by their steps, take {numbers}, {sign}{by_mix} by the mix alone"


def _come_twice(kind: str, baseline: LoadedSide, candidate: LoadedSide) -> bool:
    """Return whether both sides have two steps of a kind, in one run or in several."""
    return _has_twice(baseline, kind) and _has_twice(candidate, kind)


def _has_twice(side: LoadedSide, kind: str) -> bool:
    own = [(run_id, step) for run_id, step, of in side.steps.rows(RUN_ID, STEP, KIND) if of == kind]
    return len(set(own)) >= _LEAST_STEPS


def _require_kind(side: LoadedSide, counts: Mapping[str, int], chosen: str) -> None:
    if counts.get(chosen, 0):
        return
    there = sorted(kind for kind in counts if kind)
    has = f"it has {', '.join(there)}" if there else "its steps have no kinds"
    raise UsageError(f"{side.side.label} has no {chosen} steps: {has}", remedy="choose among these, or leave it out")


def name_both() -> UsageError:
    """Return the error for a choice of steps by kind and by number at once."""
    return UsageError("both a kind of steps and steps by number are named", remedy="leave out one of them")


def _measure(side: LoadedSide, kind: str) -> float | None:
    """Return the step of a kind, ns, as every number of a side is reduced; None where it is not known."""
    own = of_kind(side, kind)
    values = match.reduce_steps(own, [DURATION_NS])[DURATION_NS]
    known = values[~np.isnan(values)]
    return float(over_runs(known[None, :])[0]) if len(known) else None


def _verdict_of(verdicts: SideVerdicts | None, kind: str) -> tuple[str | None, str | None]:
    """Return the verdict of the steps of a kind, and the code of its reason; None twice where they have none."""
    if verdicts is None:
        return None, None
    for key, row in verdicts.by_series.items():
        if key.kind == "run" and key.name == STEP_KEY.name and key.step_kind == kind and key.part != UNPROFILED:
            return row.verdict, row.reason
    return None, None


def _place(row: StepKind) -> tuple[int, float]:
    """Return a sort key: the worst verdict first, then the largest change, without one the most time of both sides."""
    if row.verdict in WORST_FIRST:
        return WORST_FIRST.index(row.verdict), -abs(row.diff or 0.0)
    time_ns = (row.baseline_ns or 0.0) * row.baseline_steps + (row.candidate_ns or 0.0) * row.candidate_steps
    return len(WORST_FIRST), -time_ns
