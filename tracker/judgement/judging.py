"""One version against others, family by family: pure functions on the values of a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.detectors.arrays import Columns, cut
from tracker.detectors.centre import Centre, no_centre
from tracker.detectors.judging import Weights, judge_series
from tracker.detectors.presence import judge_calls, judge_presence
from tracker.detectors.spread import Spread
from tracker.detectors.totals import Noise, changes_of_totals
from tracker.judgement.families import (
    OWN_CLOCK,
    RUN,
    THE_STEP,
    UNCOUNTED,
    WAYS,
    Family,
    family_of,
    is_tagged,
    leaf_of,
    leaves_of,
    more_is_better,
    ranked_leaves,
    telling,
    way_of,
)
from tracker.judgement.recorded import Split, factors_for, split
from tracker.judgement.thresholds import NONE, Thresholds
from tracker.judgement.yardstick import factors_of, noise_of
from tracker.results.verdicts import BELOW_FLOOR
from tracker.store.samples import UNPROFILED

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
BOOL = NDArray[np.bool_]

_NUMBERS: Final = ("diff", "p", "q", "contribution", "detectable")
_WORDS: Final = ("verdict", "reason")


class Values(Struct, frozen=True):
    """What the runs of a line say. `families`: see `family_of`, one per series, `names` with it. `values`, `calls`:
    (series, runs), nan where a run does not have a series. `older`: the columns of each older version whose noise
    is the yardstick of one run against one. `rows`: of each family, once asked for; `factors`: so for `older_factors`.
    """

    families: Sequence[Family]
    names: Sequence[str]
    values: F64
    calls: F64
    older: Sequence[Sequence[int]] = ()
    rows: dict[Family, I64] = field(default_factory=dict)
    factors: dict[tuple[Family | None, float], list[F64]] = field(default_factory=dict)

    @classmethod
    def of_keys(
        cls,
        keys: Sequence[tuple[str, str, str, str, str]],
        values: F64,
        calls: F64,
        older: Sequence[Sequence[int]] = (),
    ) -> Values:
        """With the families and names of series keys: (kind, metric, name, input_shapes, part)."""
        return cls.of_split(split(keys, values, calls, ()), older)

    @classmethod
    def of_split(cls, made: Split, older: Sequence[Sequence[int]] = ()) -> Values:
        """With a row per series and recording; see `recorded`."""
        families = [
            family_of(key[0], key[1], key[4], tag, tagged=key[:2] in made.columns)
            for key, tag in zip(made.keys, made.tags.tolist(), strict=True)
        ]
        return cls(families, [key[2] for key in made.keys], made.values, made.calls, older)

    def of(self, family: Family) -> I64:
        """The rows of a family."""
        return self.by_family().get(family, np.zeros(0, dtype=np.int64))

    @property
    def leaf(self) -> Family | None:
        """The family whose series say what all of them share."""
        return leaf_of(list(self.by_family()))

    @property
    def leaves(self) -> list[Family]:
        """That family, of each recording that has its own."""
        return leaves_of(list(self.by_family()))

    def leaf_of_both(self, baseline: Sequence[int], candidate: Sequence[int]) -> Family | None:
        """The leaves that runs of both sides have, those of all recordings before others; without any, `leaf`."""
        families = ranked_leaves(list(self.by_family()))
        if not any(map(is_tagged, families)):
            return self.leaf
        sides = (baseline, candidate)
        both = (one for one in families if all(telling(self.values, self.of(one), side) for side in sides))
        return next(both, self.leaf)

    def older_factors(self, family: Family | None, step: float) -> list[F64]:
        """What all operators of the `older` runs share, by the series of a family; see `yardstick.factors_of`."""
        if (family, step) not in self.factors:
            shared = self.of(family) if family else np.zeros(0, dtype=np.int64)
            self.factors[family, step] = factors_of(self.values, self.older, shared, step)
        return self.factors[family, step]

    def run_rows(self, name: str) -> list[int]:
        """The rows of run-level series of a name, in the order of WAYS."""
        rows = sorted(row for family, own in self.by_family().items() if family[0] == RUN for row in own.tolist())
        found = [row for row in rows if self.names[row] == name]
        return sorted(found, key=lambda row: WAYS.index(way_of(self.families[row])))

    def of_way(self, way: str) -> I64:
        """The rows of the run-level series that were measured in one way, see WAYS."""
        own = [rows for family, rows in self.by_family().items() if family[0] == RUN and way_of(family) == way]
        return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *own]))

    def by_family(self) -> Mapping[Family, I64]:
        """The rows of each family, in the order in which they first come."""
        if not self.rows:
            number = {family: at for at, family in enumerate(dict.fromkeys(self.families))}
            numbers = np.array([number[family] for family in self.families])
            self.rows.update({family: np.flatnonzero(numbers == at) for family, at in number.items()})
        return self.rows


class Compared(Struct, frozen=True):
    """Candidate runs against baseline runs; `columns` have an element per series of the line.

    They are `diff` (without what all operators share; of run-level series with it), `p`, `q`, `contribution` (signed
    fraction of the larger step, nan for what is no time), `detectable` (the smallest DIFF that these runs would have
    shown; nan for run-level series), `verdict`, `calls_verdict`, `reason`, `large` (at least 0.01 % of the step on
    either side, or no time). nan and None where there is nothing to say. `factors`: per run of the line what `centre`
    takes out of it, as a log.
    """

    columns: Columns
    centre: Centre
    factors: F64

    @property
    def changed(self) -> list[int]:
        """The rows that are on another level, or suspected of it."""
        return np.flatnonzero(np.isin(self.columns["verdict"], rule.CHANGED)).tolist()


def compare(
    line: Values,
    baseline: Sequence[int],
    candidate: Sequence[int],
    *,
    device_timed: Sequence[bool],
    thresholds: Thresholds = NONE,
    unclear: Mapping[int, str] = MappingProxyType({}),
) -> Compared:
    """The judgement of `candidate` (columns of `line`) against `baseline`, all families of it.

    `unclear`: rows of which something else is known, so that they are INCONCLUSIVE and explain nothing, and the reason.

    `device_timed`: of each candidate run, whether a device timed it. Runs that say nothing but how long they took (a
    training log) say nothing of operators: those are judged by the other runs alone.
    """
    step = step_of(line, baseline, candidate)
    columns = _nothing(len(line.families))
    families = [family for family in line.by_family() if family[0] != RUN]
    leaf = line.leaf_of_both(baseline, candidate)
    inside = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *map(line.of, families)]))
    sides = [telling(line.values, inside, side) for side in (baseline, candidate)]
    centre = no_centre(len(sides[0]), len(sides[1]))
    # the leaves first: they say what the others share
    for family in sorted(families, key=lambda family: family != leaf) if sides[0] and sides[1] else ():
        rows = line.of(family)
        own = [telling(line.values, rows, side) for side in sides] if is_tagged(family) else sides
        if not own[0] or not own[1]:
            continue  # recorded on one side only: neither added nor removed
        shared: Centre | bool = factors_for(centre, sides, own) if family[1].endswith("_ns") else False
        shared = True if family == leaf or family[0] in OWN_CLOCK else shared
        limits = thresholds.limits(family, [line.names[row] for row in rows])
        judged, of_family = _judge_family(line, rows, own[0], own[1], step, shared, limits)
        for name, column in columns.items():
            column[rows] = judged[name]
        centre = factors_for(of_family, own, sides) if family == leaf else centre
    factors = np.zeros(line.values.shape[1])
    factors[sides[0]], factors[sides[1]] = centre.baseline, centre.candidate
    _doubt(columns, unclear)
    explained = _explained(columns, line.of(leaf) if leaf else inside[:0]) * step
    timed = dict(zip(candidate, device_timed, strict=True))
    for rows, totals in judge_runs(line, baseline, timed, factors, explained, thresholds):
        for name, column in totals.items():
            columns[name][rows] = column
    _doubt(columns, unclear)
    return Compared(columns, centre, factors)


def _doubt(columns: Columns, unclear: Mapping[int, str]) -> None:
    for row, reason in unclear.items():
        columns["verdict"][row], columns["reason"][row] = rule.INCONCLUSIVE, reason


def _nothing(count: int) -> Columns:
    """The columns of `Compared` for `count` series of which nothing is said."""
    return {
        **{name: np.full(count, np.nan) for name in _NUMBERS},
        **{name: np.full(count, None, dtype=object) for name in ("verdict", "calls_verdict", "reason")},
        "large": np.zeros(count, dtype=bool),
    }


def step_of(line: Values, baseline: Sequence[int], candidate: Sequence[int]) -> float:
    """The larger step of the two sides; where the runs state none, the sum of the leaves; nan for neither."""
    steps = [step for step in steps_of(line, baseline, candidate) if not np.isnan(step)]
    return max(steps, default=float("nan"))


def steps_of(line: Values, baseline: Sequence[int], candidate: Sequence[int]) -> tuple[float, float]:
    """The mean step of either side, both measured in the same way; where neither states one, the sum of the leaves; nan
    where a side does not know it.
    """
    sides = [list(side) for side in (baseline, candidate)]
    for name in ("step", "e2e"):
        means = [tuple(_mean(line.values[row, side]) for side in sides) for row in line.run_rows(name)]
        known = [(sum(np.isnan(pair)), place) for place, pair in enumerate(means) if not np.isnan(pair).all()]
        if known:
            one, other = means[min(known)[1]]
            return one, other
    if line.leaf is None:
        return float("nan"), float("nan")
    one, other = (float(np.nansum(cut(line.values, line.of(line.leaf), side))) / len(side) for side in sides)
    return one, other


def _mean(values: F64) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _judge_family(
    line: Values,
    rows: I64,
    baseline: Sequence[int],
    candidate: Sequence[int],
    step: float,
    shared: Centre | bool,
    limits: rule.Limits,
) -> tuple[Columns, Centre]:
    x, y = (cut(line.values, rows, side) for side in (baseline, candidate))
    kind, metric = line.families[rows[0]][:2]
    is_time = metric.endswith("_ns") and not np.isnan(step)
    weights = Weights(step=step) if is_time else Weights()
    older = _noise(line, rows, step, centred=metric.endswith("_ns"))
    judged = judge_series(x, y, weights, limits=limits, center=shared, older=older)
    whole = step if is_time else max(float(np.nansum(side)) / side.shape[1] for side in (x, y))
    found = {name: judged.columns["ratio" if name == "diff" else name] for name in (*_NUMBERS, *_WORDS)}
    presence = judge_presence(x, y, whole, min_contribution=limits.min_contribution)
    one_sided = presence["verdict"] != ""
    for name, column in presence.items():
        found[name] = np.where(one_sided, column, found[name])
    calls = [cut(line.calls, rows, side) for side in (baseline, candidate)]
    by_calls = judge_calls(calls[0], calls[1], x, y, whole, limits=limits)["verdict"].astype(object)
    uncounted = np.isnan(calls[0]).all(axis=1) | np.isnan(calls[1]).all(axis=1) | (kind in UNCOUNTED)
    with np.errstate(invalid="ignore"):
        level = np.fmax(np.nan_to_num(x).max(axis=1, initial=0.0), np.nan_to_num(y).max(axis=1, initial=0.0))
    found["large"] = (level >= rule.TESTED_SHARE * step) if is_time else level > 0
    if not is_time:
        found["contribution"] = np.full(len(rows), np.nan)
    absent = np.isnan(x).all(axis=1) & np.isnan(y).all(axis=1)
    for name in _WORDS:
        found[name][absent] = None
    by_calls[uncounted | absent] = None
    found["calls_verdict"] = by_calls
    return found, judged.centre


def _noise(line: Values, rows: I64, step: float, *, centred: bool) -> Spread | None:
    """How much `rows` varied within older versions, `centred`: without what all operators share; None where the line
    has none.
    """
    if not line.older:
        return None
    family = line.families[rows[0]]
    sharing = [family] if family[0] in OWN_CLOCK else line.leaves
    # a run has the leaves of one recording, and a factor of 0 in the others
    of_leaves = [line.older_factors(own, step) for own in sharing or [None]]
    factors: list[F64] = [sum(own[1:], own[0]) for own in zip(*of_leaves, strict=True)]
    return noise_of(line.values, line.older, rows, factors if centred else None)


def _explained(columns: Columns, leaves: I64) -> float:
    """The change of the step that named findings of the leaves make, as a fraction of it."""
    named = np.isin(columns["verdict"][leaves], (rule.REGRESSED, rule.IMPROVED, rule.ADDED, rule.REMOVED))
    return float(np.nansum(columns["contribution"][leaves][named]))


def judge_runs(
    line: Values,
    baseline: Sequence[int],
    candidate: Mapping[int, bool],
    factors: F64,
    explained: float,
    thresholds: Thresholds = NONE,
) -> Iterator[tuple[I64, Columns]]:
    """Rows of `line`, and the columns of `Compared` for them, for the run-level series of every way to measure that
    both sides have. `candidate`: column -> whether a device timed it. `factors`: see `Compared`. `explained`: what
    named findings of the leaves explain of the step, in its unit, signed.
    """
    for way in WAYS:
        rows = line.of_way(way)
        rows = rows[[_is_on_both(line, row, (baseline, list(candidate))) for row in rows.tolist()]]
        one, other = (telling(line.values, rows, side) for side in (baseline, list(candidate)))
        if not len(rows) or not one or not other:
            continue
        device_timed = all(candidate[column] for column in other)
        centre = Centre(factors[one], factors[other], 0, float("nan"))
        limits = thresholds.limits((RUN, ""), [line.names[row] for row in rows], device_timed=device_timed)
        # the operators were measured by other runs than those without a profiler
        named = 0.0 if way == UNPROFILED else explained
        yield rows, _judge_run(line, rows, one, other, centre, named, device_timed=device_timed, limits=limits)


def _is_on_both(line: Values, row: int, sides: Sequence[Sequence[int]]) -> bool:
    """Whether runs of both sides were recorded so that they can say something of a run-level series."""
    family = line.families[row]
    return not is_tagged(family) or all(telling(line.values, line.of(family), side) for side in sides)


def _judge_run(
    line: Values,
    rows: I64,
    baseline: Sequence[int],
    candidate: Sequence[int],
    centre: Centre,
    explained: float,
    *,
    device_timed: bool,
    limits: rule.Limits,
) -> Columns:
    x, y = (cut(line.values, rows, side) for side in (baseline, candidate))
    families, names = [line.families[row] for row in rows], [line.names[row] for row in rows]
    step = step_of(line, baseline, candidate)
    noise = Noise(*(_noise(line, rows, step, centred=centred) for centred in (False, True)))
    found = run_totals(families, names, x, y, centre, explained, device_timed=device_timed, limits=limits, older=noise)
    presence = judge_presence(x, y, step, min_contribution=limits.min_contribution)
    one_sided = presence["verdict"] != ""
    absent = np.asarray(np.isnan(x).all(axis=1) & np.isnan(y).all(axis=1))
    words = {name: np.where(one_sided, presence[name], found[name]) for name in _WORDS}
    for column in words.values():
        column[absent] = None
    # more throughput is a positive DIFF, however it was judged
    ratio = found["ratio"]
    return {
        "diff": np.where(more_is_better(families), 1.0 / (1.0 + ratio) - 1.0, ratio),
        "p": found["p"],
        "q": found["q"],
        **words,
        "large": ~absent,
    }


def run_totals(  # noqa: PLR0913 each says something else
    families: Sequence[Family],
    names: Sequence[str],
    x: F64,
    y: F64,
    centre: Centre,
    explained: float,
    *,
    device_timed: bool,
    limits: rule.Limits,
    older: Noise | None = None,
) -> Columns:
    """The columns of `ChangedTotals` for run-level series, `x` the baseline and `y` the candidate values; of series of
    which more is better, the inverse is judged.

    Twice, since what data loading and idle time explain is known after the first time. `explained`: what named findings
    of the leaves explain of the step, in its unit, signed.
    """
    inverse = more_is_better(families)
    x, y = (np.where(inverse[:, None], 1.0 / values, values) for values in (x, y))
    timed = inverse | np.array([metric.endswith("_ns") for _, metric, *_ in families], dtype=bool)
    changed = changes_of_totals(x, y, centre, timed=timed, limits=limits, older=older)
    first = changed.columns()
    waiting = _waiting(first, names, ("data loading",) if device_timed else ("data loading", "free"), x, y)
    share = {"step": explained + waiting, "e2e": explained + waiting, "compute": explained}
    parts = np.array([share.get(name, np.nan) for name in names])
    found = changed.columns(parts)
    small = timed & ~inverse & ~_matters(names, x, y, limits)
    below = small & np.isin(found["verdict"], (*rule.CHANGED, rule.DRIFT))
    found["verdict"], found["reason"] = (
        np.where(below, word, found[column])
        for column, word in (("verdict", rule.BELOW_LIMIT), ("reason", BELOW_FLOOR))
    )
    return found


def _matters(names: Sequence[str], x: F64, y: F64, limits: rule.Limits) -> BOOL:
    """Of which parts of the step the change is large enough beside it; the step itself always, and all where no run
    states it.
    """
    whole = np.array([name in THE_STEP for name in names], dtype=bool)
    steps = [max(_mean(x[row]), _mean(y[row])) for row in np.flatnonzero(whole).tolist()]
    step = max((step for step in steps if not np.isnan(step)), default=float("nan"))
    change = np.array([_mean(after) - _mean(before) for before, after in zip(x, y, strict=True)])
    with np.errstate(invalid="ignore"):
        return np.asarray(whole | ~(np.abs(change) < limits.min_contribution * step))


def _waiting(first: Columns, names: Sequence[str], causes: Sequence[str], x: F64, y: F64) -> float:
    """The change (ns) of the first of `causes` that passes by itself. On the host timeline, time in which no op runs is
    the wait for data that nobody measured.
    """
    for row in (names.index(name) for name in causes if name in names):
        change = _mean(y[row]) - _mean(x[row])
        if first["verdict"][row] in (rule.REGRESSED, rule.IMPROVED) and not np.isnan(change):
            return change
    return 0.0
