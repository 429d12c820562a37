"""Step time and the other numbers of a whole run: judged raw and centred, since a drifting machine moves them too."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.detectors import _distributions as distributions
from tracker.detectors import arrays, rule
from tracker.detectors.arrays import BOOL, F64, I64, Columns, counts, mean_of_rows
from tracker.detectors.centre import Centre
from tracker.detectors.fdr import q_values
from tracker.detectors.spread import Spread, floored, pooled
from tracker.detectors.verdicts import Rung, exceeded, ladder
from tracker.results.verdicts import TOO_NOISY

EXPLAINED: Final = 0.5
"""Part of a raw change that named findings must explain to make it one, where the centred change does not pass."""


class Noise(Struct, frozen=True):
    """How much series varied within older versions, as they are and without what all operators share; None: unknown."""

    raw: Spread | None = None
    centred: Spread | None = None

    def of(self, clocked: BOOL) -> Spread | None:
        """Without what all operators share where a series is `clocked` with them."""
        if self.raw is None or self.centred is None:
            return None
        return Spread(np.where(clocked, self.centred.variance, self.raw.variance), self.raw.freedom)


def changes_of_totals(
    baseline: F64,
    candidate: F64,
    centre: Centre,
    *,
    timed: BOOL | None,
    limits: rule.Limits,
    older: Noise | None = None,
) -> ChangedTotals:
    """How run-level series changed (JUDGEMENT 4.9), before anything explains it; their own family, plain t,
    Benjamini-Hochberg per direction.

    `baseline` (n, A), `candidate` (n, B): one positive number per run of step time, compute, free time, data loading,
    peak memory, ...; nan is missing. `centre`: what the operators of the same runs share. `timed`: which series are
    times; the others (memory) share no clock with the operators and are not centred; None: all are. Where more is
    better (throughput), give the inverse. `older`: as in `judge_series`.
    """
    one, other = arrays.pair(baseline, candidate)
    x, y = arrays.logs(one, "baseline"), arrays.logs(other, "candidate")
    noise = older or Noise()
    clock = np.ones((len(x), 1)) if timed is None else timed[:, None].astype(np.float64)
    centred = _change(x - clock * centre.baseline, y - clock * centre.candidate, limits, noise.of(clock[:, 0] > 0))
    return ChangedTotals(x, y, _change(x, y, limits, noise.raw), centred, limits)


class ChangedTotals(Struct, frozen=True):
    """Run-level series and their raw and centred changes; `x`, `y`: the logs of the two sides."""

    x: F64
    y: F64
    raw: _Change
    centred: _Change
    limits: rule.Limits

    def columns(self, explained: F64 | None = None) -> Columns:
        """What became of each series. `explained`: per series the change that named findings (ops, added ops, calls,
        data loading) explain, in the unit of the values, signed; None or nan: nothing is named.

        REGRESSED (IMPROVED): the raw change passes effect and q, and so does the centred one, or at least half of it is
        explained. Raw alone is DRIFT. One run on a side makes a SUSPECT at most;
        two runs in all say nothing by themselves. Columns: `ratio` (raw), `centred_ratio`, `p`, `q`, `centred_q`,
        `explained` (fraction of the raw change), `baseline_runs`, `candidate_runs`, `verdict`, `reason`.
        """
        raw, centred = self.raw, self.centred
        named = arrays.per_series(explained, len(self.x), "explained")
        before, after = (np.exp(mean_of_rows(side)) for side in (self.x, self.y))
        with np.errstate(divide="ignore", invalid="ignore"):
            fraction = np.full(len(self.x), np.nan) if named is None else named / (after - before)
        same_way = centred.passes & (np.sign(centred.d) == np.sign(raw.d))
        named_half = np.nan_to_num(fraction) >= EXPLAINED
        runs = counts(self.x), counts(self.y)
        left = centred.effect & (np.sign(centred.d) == np.sign(raw.d))
        verdict, reason = _words(raw, same_way, named_half, left, *runs, self.limits)
        return {
            "ratio": np.expm1(raw.d),
            "centred_ratio": np.expm1(centred.d),
            "p": raw.p,
            "q": raw.q,
            "centred_q": centred.q,
            "explained": fraction,
            "baseline_runs": runs[0],
            "candidate_runs": runs[1],
            "verdict": verdict,
            "reason": reason,
        }


class _Change(Struct, frozen=True):
    d: F64
    standard_error: F64
    freedom: F64
    p: F64
    q: F64
    effect: BOOL
    passes: BOOL


def _change(x: F64, y: F64, limits: rule.Limits, older: Spread | None) -> _Change:
    spread = floored(pooled(x, y, older=older))
    d = mean_of_rows(y) - mean_of_rows(x)
    known = (counts(x) > 0) & (counts(y) > 0) & (spread.freedom > 0)
    weight = [np.divide(1.0, counts(side), out=np.full(len(d), np.nan), where=known) for side in (x, y)]
    error = np.sqrt(spread.variance * (weight[0] + weight[1]))
    up, down = np.full(len(d), np.nan), np.full(len(d), np.nan)
    slower = d >= 0
    # one evaluation, in the tail that the change points to; the other tail is its complement
    toward = distributions.t_above(np.abs(d[known] / error[known]), spread.freedom[known])
    up[known] = np.where(slower[known], toward, 1.0 - toward)
    down[known] = np.where(slower[known], 1.0 - toward, toward)
    p, q = np.where(slower, up, down), np.where(slower, q_values(up), q_values(down))
    effect = np.abs(d) >= limits.effect - rule.ROUNDING
    return _Change(d, error, spread.freedom, p, q, effect, effect & (q <= limits.alpha))


def _words(
    raw: _Change, centred: BOOL, named: BOOL, left: BOOL, before: I64, after: I64, limits: rule.Limits
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Verdicts and reasons. `centred`, `named`: what makes a raw change a finding; `left`: beside what the operators
    share the change still is large enough.
    """
    single = np.minimum(before, after) < rule.FINDING_RUNS
    finding = raw.passes & (centred | named)
    cause = np.where(centred, "passes raw and centred", "passes raw; named findings explain at least half")[finding]
    inside = np.abs(raw.d) + exceeded(raw.freedom, 0.05)[0] * raw.standard_error <= limits.effect + rule.ROUNDING
    pair = np.maximum(before, after) == 1
    rungs: list[Rung] = [
        (np.isnan(raw.standard_error), rule.TOO_FEW_RUNS, "too few runs to know how much it varies"),
        (finding & single, rule.SUSPECT, ""),
        (finding & (raw.d > 0), rule.REGRESSED, ""),
        (finding, rule.IMPROVED, ""),
        (
            raw.passes & ~left,
            rule.DRIFT,
            "machine drift: beside what operators share it is too small to matter",
        ),
        (raw.passes, rule.DRIFT, "machine drift: beside what operators share, q does not pass"),
        (raw.effect & pair, rule.TOO_FEW_RUNS, "effect passes, q does not, on one run each"),
        (raw.effect, rule.INCONCLUSIVE, "effect passes, q does not"),
        (inside, rule.UNCHANGED, "the 90 % interval lies within the smallest change that matters"),
        (raw.q <= limits.alpha, rule.BELOW_LIMIT, "q passes, but the change is smaller than what matters"),
    ]
    verdict, reason = ladder(rungs, rule.INCONCLUSIVE, TOO_NOISY)
    reason[finding] = cause
    return verdict, reason
