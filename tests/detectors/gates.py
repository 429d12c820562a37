"""The gates of JUDGEMENT section 11 as functions: real or made runs in, rates of false and missed findings out.

Shared by the tests, which assert them, and by scripts/score_detectors.py, which prints them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracker.detectors import change_points, judge
from tracker.detectors.calibrate import random_splits
from tracker.detectors.judging import confirm, judge_series
from tracker.detectors.rule import Limits

NEAR = 2  # runs by which a found change may miss its date


@dataclass(frozen=True, slots=True)
class Rates:
    """`false_unchanged`: REGRESSED per comparison where nothing changed; `recall`, `fdr`: with injected slow-downs."""

    false_unchanged: float
    recall: float
    fdr: float


def judge_rates(values, factor, *, share=None, drift=0.0, draws=40, baseline=5, candidate=3, seed=1):
    """Random A/A splits of the runs `values` (series, runs), and the same with a twentieth of the series slowed down.

    `drift`: standard deviation of a factor on all series of a run, drawn anew for each.
    """
    draw = np.random.default_rng(seed)
    splits = random_splits(values.shape[1], baseline, candidate, most=draws, seed=seed)
    false = hits = wrong = injected = 0
    for one, other in splits:
        common = np.exp(draw.normal(0.0, 1.0, values.shape[1]) * drift)
        before, after = ((values * common)[:, list(side)] for side in (one, other))
        slowed = draw.random(len(values)) < 0.05
        false += int((judge(before, after, share=share)["verdict"] == "REGRESSED").sum())
        after[slowed] *= factor
        called = (judge(before, after, share=share)["verdict"] == "REGRESSED").to_numpy()
        tested = slowed if share is None else slowed & (share >= 1e-4)
        hits, wrong, injected = (
            hits + int((called & slowed).sum()),
            wrong + int((called & ~slowed).sum()),
            injected + int(tested.sum()),
        )
    return Rates(false / len(splits), hits / max(1, injected), wrong / max(1, hits + wrong))


def confirmed_rates(values, factor, *, draws=40, confirming=2, seed=1):
    """One new run raises suspicions, the next `confirming` runs decide: rates as above, of slower findings."""
    draw = np.random.default_rng(seed)
    splits = random_splits(values.shape[1], 5, 1 + confirming, most=draws, seed=seed)
    false = hits = wrong = injected = 0
    for one, other in splits:
        before, after = values[:, list(one)], values[:, list(draw.permutation(other))]
        false += int(_screened(before, after).sum())
        slowed = draw.random(len(values)) < 0.05
        after = after * np.where(slowed, factor, 1.0)[:, None]
        called = _screened(before, after)
        hits, wrong, injected = (
            hits + int((called & slowed).sum()),
            wrong + int((called & ~slowed).sum()),
            injected + int(slowed.sum()),
        )
    return Rates(false / len(splits), hits / max(1, injected), wrong / max(1, hits + wrong))


def _screened(before, after):
    limits = Limits(min_contribution=0.0)
    screen = judge_series(before, after[:, :1], limits=limits).table
    suspects = np.where(screen["verdict"] == "SUSPECT", np.sign(screen["ratio"]), 0.0)
    return (confirm(before, after[:, 1:], suspects, limits=limits).table["verdict"] == "REGRESSED").to_numpy()


@dataclass(frozen=True, slots=True)
class Found:
    """How well changes were dated: within 2 runs counts. `false_series`: unchanged series in which one was seen."""

    precision: float
    recall: float
    false_series: int

    @property
    def f1(self):
        return 2 * self.precision * self.recall / max(1e-9, self.precision + self.recall)


def labelled(series, runs, noise_of, *, seed=0, sizes=(0.05, 0.10, 0.20, 0.50)):
    """`series` triples: a series of `runs`, itself with one or two changes, and where those are."""
    draw = np.random.default_rng(seed)
    made = []
    for number in range(series):
        unchanged = noise_of(draw, number)
        places = np.sort(draw.choice(np.arange(1, runs // 8), int(draw.choice([1, 1, 2])), replace=False)) * 8
        places = places + draw.integers(0, 4, len(places))
        changed = unchanged.copy()
        for place in places:
            changed[place:] *= (1 + draw.choice(sizes)) ** draw.choice([1, 1, -1])
        made.append((unchanged, changed, places.tolist()))
    return made


def noisy_labelled(series, runs, *, seed=0):
    """`labelled` with 1 to 5 % noise, half of the series normal, half of them heavy-tailed."""

    def noise(draw, number):
        size = draw.choice([0.01, 0.02, 0.03, 0.05])
        return 100 * np.exp(size * (draw.standard_t(3, runs) if number % 2 else draw.normal(0, 1, runs)))

    return labelled(series, runs, noise, seed=seed)


def change_point_rates(made, find=change_points):
    """Found changes against the labels of `labelled`."""
    hits = wrong = missed = false_series = 0
    for unchanged, changed, places in made:
        false_series += bool(find(unchanged))
        matched = match(find(changed), places)
        hits, wrong, missed = hits + matched[0], wrong + matched[1], missed + matched[2]
    return Found(hits / max(1, hits + wrong), hits / max(1, hits + missed), false_series)


def match(found, places):
    """(hits, wrong, missed): each label takes the nearest found change within 2 runs, each change at most one label."""
    left = list(found)
    hits = 0
    for place in places:
        near = [each for each in left if abs(each - place) <= NEAR]
        if near:
            left.remove(min(near, key=lambda each: abs(each - place)))
            hits += 1
    return hits, len(left), len(places) - hits


def replayed(values, find=change_points, first=6):
    """The changes that are told when the series is looked at after every run: (run at which it is told, place)."""
    told = []
    for runs in range(first, len(values) + 1):
        told += [
            (runs, place)
            for place in find(values[:runs])
            if all(abs(place - earlier) > NEAR + 1 for _, earlier in told)
        ]
    return told
