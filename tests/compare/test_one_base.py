"""A number of a diff and its verdict rest on the same runs, in every version of a series."""

from __future__ import annotations

import pytest

from tests.one_base import check_diffs, check_sums
from tests.regressions.made import runs
from tracker.compare import diffs
from tracker.regressions.judgement import tracks_of, update

NEW = {"op97": 1_500_000}
"""1.5 ms of a step of 40 ms."""


def test_every_diff_of_a_series_shows_the_numbers_of_its_verdicts(store):
    """v2 brings op97, v3 makes op05 slower beside it, v4 takes both back, v5 replaces op07 by op98, v6 leaves it."""
    changes = (
        ("v1", {}, ()), ("v2", NEW, ()), ("v3", NEW | {"op05": 1.6}, ()), ("v4", {}, ()),
        ("v5", {"op98": 3_000_000}, ("op07",)), ("v6", {"op98": 3_000_000}, ("op07",)),
    )  # fmt: skip
    for number, (version, changed, without) in enumerate(changes):
        runs(store, version, changed, without=without, start=3 * number)
    update(store, tracks_of(store))
    assert check_diffs(store, [version for version, *_ in changes]) >= 5


def test_a_row_without_a_change_is_of_the_runs_of_its_own_level(store):
    """v2 brings op97, and its 3 runs are the level of the step of v3. All other operators are at one level since v1:
    they are compared with the 6 runs of both, and not with the machine of v2 alone.
    """
    for number, (version, changed) in enumerate((("v1", {}), ("v2", NEW), ("v3", NEW))):
        runs(store, version, changed, start=3 * number)
    update(store, tracks_of(store))
    (of_level,), (of_both,) = diffs(store, ["v3"]), diffs(store, [",".join(f"run:{run}" for run in range(1, 7)), "v3"])
    own, both = (found.ops.set_index("name").baseline_ns for found in (of_level, of_both))
    others = [name for name in both.index if name != "op97"]
    assert own[others].tolist() == pytest.approx(both[others].tolist())
    check_sums(of_level.explanation)


def test_a_peak_before_is_one_that_runs_had(store):
    """One run a version, of 100, 100, 120, 100 and 150 MB: the last is 50 % above the 100 that the version before had,
    and not 43 % above a mean of 104.7 that nothing ever held.
    """
    for number, peak in enumerate((100, 100, 120, 100, 150)):
        runs(store, f"v{number + 1}", count=1, start=number, peak_allocated_bytes=peak * 10**6)
    update(store, tracks_of(store))
    (found,) = diffs(store, ["v5"])
    peak = found.overall.set_index("metric").loc["peak_allocated_bytes"]
    assert peak["diff"] == pytest.approx(0.5)
