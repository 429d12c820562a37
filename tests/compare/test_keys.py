"""Rows by key."""

from __future__ import annotations

import numpy as np

from tracker.columns import Columns, objects
from tracker.compare.keys import numbered, places, ranks


def test_places_are_those_of_the_first_coming_and_missing_is_a_key():
    found, first = places([objects(["b", "a", "b", None, None]), np.array([1, 1, 1, 2, 2])])
    assert found.tolist() == [0, 1, 0, 2, 2]
    assert first.tolist() == [0, 1, 3]


def test_equal_texts_in_other_columns_are_other_keys():
    columns = [np.array(texts, dtype=object) for texts in (["a", "b", "a"], ["b", "a", "a"])]
    assert places(columns)[0].tolist() == [0, 1, 2]


def test_no_rows_have_no_places():
    found, first = places([objects([]), np.array([], dtype=np.int64)])
    assert (len(found), len(first)) == (0, 0)


def test_equal_rows_of_two_tables_have_one_number():
    before = Columns({"name": objects(["mm", "relu"]), "shape": objects(["2", ""]), "ns": np.array([1, 2])})
    after = Columns({"name": objects(["mm", "mm"]), "shape": objects(["3", "2"]), "ns": np.array([3, 4])})
    (one, other), keys = numbered([before, after], ["name", "shape"])
    assert (one.number.tolist(), other.number.tolist()) == ([0, 1], [2, 0])
    assert list(zip(keys["name"], keys["shape"], strict=True)) == [("mm", "2"), ("relu", ""), ("mm", "3")]


def test_texts_rank_by_the_alphabet_and_what_is_missing_comes_last():
    assert ranks(objects(["b", None, "", "a", "b"])).tolist() == [2, 3, 0, 1, 2]
