"""A number of a diff and its verdict rest on the same runs, in every version of a series."""

from __future__ import annotations

from tests.one_base import check_diffs
from tests.regressions.made import runs
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
