"""Statistics without a table of all steps are those of the table, to the last bit for whole numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracker.store.samples.statistics import mean_over_steps, over_steps, sparse_steps, sums_per_step

NUMBERS = st.one_of(st.integers(-3, 9).map(float), st.just(float("nan")))


@st.composite
def cells_of_a_table(draw):
    rows, steps = draw(st.integers(1, 5)), draw(st.integers(2, 7))
    entries = draw(st.lists(st.tuples(st.integers(0, rows * steps - 1), NUMBERS), max_size=30))
    weights = draw(st.lists(st.integers(1, 3).map(float), min_size=steps, max_size=steps))
    cell = np.array([cell for cell, _ in entries], dtype=np.int64)
    return cell, np.array([number for _, number in entries]), (rows, steps), np.array(weights)


@given(table=cells_of_a_table())
def test_numbers_are_those_of_the_table(table):
    cell, values, shape, weights = table
    sparse = sparse_steps(cell, values, shape, weights)
    dense = sums_per_step(cell, values, shape) / weights
    np.testing.assert_allclose(sparse.over_steps(), over_steps(dense, weights))
    np.testing.assert_allclose(sparse.mean(), mean_over_steps(dense, weights))
    for fraction in (0.0, 0.1, 0.9, 1.0):
        expected = [np.quantile(row[~np.isnan(row)], fraction) if not np.isnan(row).all() else np.nan for row in dense]
        np.testing.assert_allclose(sparse.quantile(fraction), expected)


def test_a_row_in_two_of_five_steps_is_intermittent():
    """Two steps with 10 and 20, three with nothing: the median is 0, so that the mean counts."""
    sparse = sparse_steps(np.array([0, 3]), np.array([10.0, 20.0]), (1, 5), np.ones(5))
    assert sparse.over_steps().tolist() == [6.0]
    assert sparse.are_intermittent().tolist() == [True]
    assert sparse.quantile(1.0).tolist() == [20.0]
