"""Medians and quantiles beside those of NumPy."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tracker.profile import each_once, known_medians, median, quantiles

tables = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 5), st.integers(1, 6)),
    elements=st.one_of(st.floats(-1e6, 1e6), st.just(np.nan)),
)


@given(
    arrays.arrays(
        st.sampled_from([np.int8, np.int16, np.int32, np.int64, np.uint64, np.bool_]),
        st.integers(0, 40),
    ),
    st.sampled_from([1, 100]),
)
def test_values_come_each_once_in_their_order_however_many(values, copies):
    many = np.tile(values, copies)
    once = each_once(many)
    assert once.dtype == values.dtype
    assert once.tolist() == sorted(set(values.tolist()))


@given(tables)
def test_a_median_is_that_of_numpy_along_every_axis(table):
    for axis in (None, 0, 1, -1):
        np.testing.assert_allclose(median(table, axis=axis), np.median(table, axis=axis), rtol=1e-12, atol=1e-9)


@given(tables)
def test_what_is_missing_is_left_out_of_known_medians(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of rows of nan alone
        np.testing.assert_allclose(known_medians(table), np.nanmedian(table, axis=1), rtol=1e-12, atol=1e-9)


def test_of_nothing_there_is_no_median():
    assert np.isnan(median([]))
    assert known_medians(np.zeros((0, 3))).tolist() == []


@given(
    arrays.arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6)),
    arrays.arrays(np.float64, st.integers(1, 5), elements=st.floats(0, 1)),
)
def test_a_quantile_is_that_of_numpy(values, shares):
    assert quantiles(values, shares).tolist() == np.quantile(values, shares).tolist()
