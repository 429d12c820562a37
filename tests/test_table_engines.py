"""The one engine beside the five that it replaces."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker import table
from tracker.columns import Column, Columns, objects
from tracker.compare import keys, summaries
from tracker.store.queries import keyed, sums
from tracker.timeline import aggregate, slots

MARK = -(2**63)


def same(one, other):
    assert np.array_equal(np.asarray(one), np.asarray(other), equal_nan=np.asarray(one).dtype.kind == "f")


def same_column(one, other):
    same(one.missing, other.missing)
    same(np.where(one.missing, 0, one.values), np.where(other.missing, 0, other.values))


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 60), st.integers(1, 3), st.integers(0, 17))
def test_all_five_give_the_same(seed, rows, columns, digits):
    random = np.random.default_rng(seed)
    integers = [random.integers(-3, 5, rows) * 10 ** int(random.integers(0, digits + 1)) for _ in range(columns)]
    values, missing = random.integers(-100, 10**12, rows), random.random(rows) < 0.2
    marked, column = np.where(missing, MARK, values), Column(np.where(missing, 0, values), missing)
    groups, old = table.group_rows(*integers), aggregate.group_by(*integers)
    for mine, theirs in (
        (groups.first, old.first), (groups.number, old.group), (groups.counts, old.counts), (groups.order, old.order),
        (groups.starts, old.bounds), (groups.sums(values), old.sums(values)),
        (groups.smallest(values), old.smallest(values)), (groups.largest(values), old.largest(values)),
        (groups.sums_of_squares(values), old.sums_of_squares(values)),
        (groups.add_up_marked(marked, MARK, "known"), old.known_sums(marked)),
        (groups.add_up_marked(marked, MARK, "sum"), old.complete_sums(marked)),
    ):  # fmt: skip
        same(mine, theirs)
    reals = random.random(rows)
    for name, mine in groups.spread(reals).items():
        same(mine, old.spread(reals)[name])
    texts = [objects([random.choice(["a", "b", "c", None]) for _ in range(rows)]) for _ in range(2)]
    mixed = [texts[0], integers[0], column[np.arange(rows)], texts[1]]
    for mine, theirs in zip(table.number_distinct_rows(mixed), keys.places(mixed), strict=True):
        same(mine, theirs)
    order, starts = keyed.groups(integers)
    for how, function in (("sum", np.add), ("min", np.minimum), ("max", np.maximum)):
        if rows:
            same_column(groups.add_up(column, how), sums.merged(column, function, order, starts))
    if rows:
        same_column(groups.share_sums(column), sums.shared(column, order, starts))
    then = [integers[-1], values]
    order, starts = keyed.groups(integers[:1], then)
    ordered = table.group_rows(integers[0], then=then)
    same(ordered.order, order)
    same(ordered.first, order[starts])
    code = np.abs(integers[0]) % 7
    slot = slots.slots_of([(integers[-1], code)], 7)
    pairs = table.group_rows(integers[-1], code)
    same(pairs.number, slot.at(integers[-1], code))
    same(pairs.sums(values), slot.summed(slot.at(integers[-1], code), values))
    own = [integers[-1][pairs.first], code[pairs.first]]
    same(table.match_rows(own, [integers[-1], code]), slot.at(integers[-1], code))
    rows_by_name = Columns({"a": texts[0], "b": texts[1], "x": column, "y": np.where(missing, np.nan, values * 1.0)})
    for how, theirs in (("known", "sum"), ("sum", "whole"), ("min", "min"), ("max", "max")):
        mine = table.add_up_rows(rows_by_name, ["a", "b"], {"x": how, "y": how})
        summed = summaries.summed(rows_by_name, ["a", "b"], {"x": theirs, "y": theirs})
        same_column(mine["x"], summed["x"])
        same(mine["y"].missing, summed["y"].missing)
        assert np.allclose(mine["y"].values, summed["y"].values, rtol=1e-15)
    mine, theirs = (
        sort(rows_by_name, ["x", "y"], ["a", "b"]) for sort in (table.sort_largest_first, summaries.by_size)
    )
    assert list(mine.rows("a", "b", "x")) == list(theirs.rows("a", "b", "x"))
