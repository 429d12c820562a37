"""Rows column by column, beside the same in a frame of pandas."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.columns import Column, Columns, objects, stacked
from tracker.compare import match
from tracker.table import number_distinct_rows, rank_values

ROWS = Columns(
    {
        "name": objects(["mm", None, "relu"]),
        "calls": Column.of([3, None, 5], np.int64),
        "ns": np.array([1.5, np.nan, 2.0]),
        "rank": np.array([0, 1, 1]),
    }
)


def test_what_is_missing_is_none_in_rows_nan_among_reals_and_empty_among_texts():
    assert list(ROWS.rows("name", "calls", "ns", "rank")) == [
        ("mm", 3, 1.5, 0),
        (None, None, None, 1),
        ("relu", 5, 2.0, 1),
    ]
    assert ROWS.reals("calls").tolist() == pytest.approx([3.0, math.nan, 5.0], nan_ok=True)
    assert ROWS.integers("calls", missing=-1).tolist() == [3, -1, 5]
    assert ROWS.texts("name").tolist() == ["mm", "", "relu"]
    assert [ROWS.known(name).tolist() for name in ("name", "calls", "ns")] == [[True, False, True]] * 3
    assert ROWS.known("rank").all()


def test_a_frame_has_nullable_dtypes_and_gives_the_same_rows_back():
    frame = ROWS.frame
    assert frame.dtypes.astype(str).tolist() == ["string", "Int64", "float64", "Int64"]
    assert frame.isna().sum().tolist() == [1, 1, 1, 0]
    back = Columns.of_frame(frame)
    assert list(back.rows(*back.arrays)) == list(ROWS.rows(*ROWS.arrays))


def test_flags_may_be_missing_too():
    frame = pd.DataFrame({"moved": pd.array([True, None, False], dtype="boolean")})
    flags = Columns.of_frame(frame)
    assert flags.listed("moved") == [True, None, False]
    assert flags.frame["moved"].dtype == "boolean"


def test_rows_are_taken_by_place_by_flag_and_as_a_slice():
    assert ROWS.taken(np.array([2, 0])).listed("calls") == [5, 3]
    assert ROWS.taken(np.array([True, False, True])).listed("name") == ["mm", "relu"]
    assert ROWS.taken(slice(1, 3)).listed("rank") == [1, 1]
    assert ROWS.head(None) is ROWS
    assert len(ROWS.head(0)) == 0


def test_columns_are_chosen_added_and_renamed_in_order():
    assert list(ROWS.only(["rank", "name"]).arrays) == ["rank", "name"]
    assert list(ROWS.without("calls", "ns").arrays) == ["name", "rank"]
    assert list(ROWS.having(rank=np.array([7, 8, 9]), own=np.zeros(3)).arrays) == ["name", "calls", "ns", "rank", "own"]
    assert list(ROWS.renamed({"ns": "own_ns"}).arrays) == ["name", "calls", "own_ns", "rank"]
    assert ROWS.listed("rank") == [0, 1, 1]  # what was there stays as it was


def test_one_column_may_know_of_missing_numbers_and_the_next_not():
    whole = stacked([np.array([1, 2]), Column.of([None, 4], np.int64)])
    assert Columns({"n": whole}).listed("n") == [1, 2, None, 4]
    mixed = stacked([Column.of([1, None], np.int64), np.array([2.5, np.nan])])
    assert Columns({"n": mixed}).listed("n") == [1.0, None, 2.5, None]


texts = st.lists(st.sampled_from(["", "a", "b", "ä", None]), min_size=1, max_size=12)


@given(texts, st.data())
def test_places_and_ranks_are_those_of_pandas(names, data):
    numbers = data.draw(st.lists(st.sampled_from([None, 0, 1, -1]), min_size=len(names), max_size=len(names)))
    found, first = number_distinct_rows([objects(names), Column.of(numbers, np.int64)])
    expected = pd.factorize(pd.Series(list(zip(names, numbers, strict=True)), dtype=object))[0]
    assert found.tolist() == expected.tolist()
    assert [expected.tolist().index(place) for place in range(len(first))] == first.tolist()
    codes, distinct = pd.factorize(pd.array(names, dtype="string"), sort=True)
    assert rank_values(objects(names)).tolist() == np.where(codes < 0, len(distinct), codes).tolist()


def test_sums_do_not_depend_on_the_order_and_what_cancels_leaves_nothing():
    numbers, place = np.array([0.1, 1e16, 0.2, -1e16, -0.3, np.nan]), np.array([0, 1, 0, 1, 0, 2])
    there, back = (
        match.sum_exactly(numbers[order], place[order], 3).tolist() for order in (slice(None), slice(None, None, -1))
    )
    assert there == pytest.approx([2.7755575615628914e-17, 0.0, math.nan], nan_ok=True)
    assert there[:2] == back[:2]
