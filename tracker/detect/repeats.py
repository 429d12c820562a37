"""How often the judge is wrong: what it says of runs between which nothing changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import F64, I64, Texts, objects
from tracker.detect.judge import judge_version
from tracker.detect.thresholds import Thresholds
from tracker.detect.track import Track
from tracker.detect.verdicts import CHANGES, JudgedSeries
from tracker.table import sort_distinct

Split = tuple[tuple[int, ...], tuple[int, ...]]  # the places of the runs of both sides


class Repeats(Struct, frozen=True, eq=False):
    """Runs between which nothing changed. `own`: the smallest change of the series that have a limit by name, a log,
    nan of the others.
    """

    track: Track
    limits: Thresholds
    own: F64

    @property
    def kinds(self) -> Texts:
        """The kind of each series, as users name it."""
        return objects([key[0] for key in self.track.keys])

    def used(self, kind: str) -> float:
        """Return the smallest change of a kind that counts, but of those that have a limit by name."""
        rows = (self.kinds == kind) & np.isnan(self.own)
        rows = rows if rows.any() else self.kinds == kind
        return round(float(np.expm1(np.median(self.track.series.ratio[rows]))), 9)

    def judge(self, split: Split, ratio: float | None = None) -> JudgedSeries:
        """Judge some of the runs against others. `ratio`: smallest change of all series, in place of their own."""
        columns = np.array([*split[0], *split[1]])
        is_new = np.isin(columns, split[1])
        window = self.track.part(columns, ~is_new, is_new, self.limits)
        if window.versions is not None and len(sort_distinct(window.versions)) == 1:
            # both sides are of one night, so that none differs from the other
            window = replace(window, versions=None)
        base = window.recorded & ~is_new
        return judge_version(window, self.track.series, base, is_new, ratio=ratio, limits=self.limits)


def random_splits(runs: int, baseline: int, candidate: int, *, most: int, seed: int) -> list[Split]:
    """Return all ways to choose the two sides among the runs.

    Where there are more than `most`, these are that many, drawn at random by `seed`.
    """
    total = comb(runs, baseline) * comb(runs - baseline, candidate)
    if total <= most:
        return [
            (one, other)
            for one in combinations(range(runs), baseline)
            for other in combinations([run for run in range(runs) if run not in one], candidate)
        ]
    draw = np.random.default_rng(seed)
    drawn = [draw.permutation(runs).tolist() for _ in range(most)]
    return [(tuple(sorted(each[:baseline])), tuple(sorted(each[baseline : baseline + candidate]))) for each in drawn]


def false_verdicts(repeats: Repeats, split: Split, kinds: Sequence[str], ratios: Sequence[float]) -> I64:
    """Return (kinds, smallest changes, 2): how many series are found to be changed, and how many are tested.

    Whether a change passes its test does not depend on how small a change counts, so that one judgement serves all of
    them. Only the step and its parts are judged for each, as what explains them depends on it. A series with a limit by
    name has that one throughout.
    """
    found = repeats.judge(split, 0.0)
    of_step = repeats.track.series.of_step
    rows = [repeats.kinds == kind for kind in kinds]
    size = np.where(np.isin(found.verdict, CHANGES), np.nan_to_num(np.abs(found.change), nan=np.inf), -1.0)
    tested = ~np.isnan(found.p)
    counts = np.zeros((len(kinds), len(ratios), 2), dtype=np.int64)
    for at, ratio in enumerate(ratios):
        own = size
        if (size[of_step] >= 0).any():
            again = np.isin(repeats.judge(split, ratio).verdict, CHANGES)
            own = np.where(of_step & ~again, -1.0, size)
        passing = own >= np.where(np.isnan(repeats.own), np.log1p(ratio), repeats.own)
        counts[:, at] = [(passing[of_kind].sum(), tested[of_kind].sum()) for of_kind in rows]
    return counts
