"""Two sides side by side, with numbers to check in the head."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.compare import join


def side(**ns: float) -> pd.DataFrame:
    return pd.DataFrame({"ns": list(ns.values())}, index=pd.Index(list(ns), name="name"))


def test_a_key_on_one_side_is_added_or_removed_and_never_zero():
    joined = join.with_difference(join.outer(side(gemm=100.0, relu=5.0), side(gemm=110.0, softmax=3.0)), "ns")
    by_name = joined.set_index("name")
    assert by_name["status"].to_dict() == {"gemm": "both", "relu": "REMOVED", "softmax": "ADDED"}
    assert by_name["delta_ns"].to_dict() == {"gemm": 10.0, "relu": -5.0, "softmax": 3.0}
    assert by_name.loc["gemm", "diff"] == pytest.approx(0.1)
    assert pd.isna(by_name.loc["softmax", "baseline_ns"])
    assert pd.isna(by_name.loc["softmax", "diff"])
    assert pd.isna(by_name.loc["relu", "candidate_ns"])


def test_the_largest_change_comes_first_whatever_its_sign():
    joined = join.with_difference(join.outer(side(a=1.0, b=50.0, c=5.0), side(a=4.0, b=10.0, c=5.0)), "ns")
    assert list(joined["name"]) == ["b", "a", "c"]


def test_a_change_splits_exactly_into_more_calls_and_slower_calls():
    # 2 calls of 10 ns became 4 calls of 15 ns: 20 -> 60; two more calls at 10 are +20, four calls slower by 5 are +20
    frame = pd.DataFrame(
        {"baseline_ns": [20.0], "candidate_ns": [60.0], "baseline_calls": [2.0], "candidate_calls": [4.0]}
    )
    split = join.split_calls(frame)
    assert (split["calls_delta_ns"][0], split["per_call_delta_ns"][0]) == (20.0, 20.0)


def test_rows_of_one_size_follow_their_texts_then_the_numbers_of_their_key():
    sizes = {"group_size": [8, 2, 4], "kind": ["all_reduce", "all_reduce", "all_gather"]}
    frame = pd.DataFrame({**sizes, "delta_ns": [-1.0, 1.0, 1.0], "ns": [5.0, 5.0, 5.0]})
    ordered = join.by_size(frame, "delta_ns", ["ns"])
    assert list(ordered["group_size"]) == [4, 2, 8]


times = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 1_000_000).map(float), max_size=6)


@given(times, times)
def test_swapping_the_sides_mirrors_the_difference(baseline, candidate):
    there = join.with_difference(join.outer(side(**baseline), side(**candidate)), "ns").set_index("name")
    back = join.with_difference(join.outer(side(**candidate), side(**baseline)), "ns").set_index("name")
    mirrored = {"ADDED": "REMOVED", "REMOVED": "ADDED", "both": "both"}
    assert set(there.index) == set(back.index)
    for name in there.index:
        assert there.loc[name, "delta_ns"] == -back.loc[name, "delta_ns"]
        assert there.loc[name, "status"] == mirrored[back.loc[name, "status"]]


@given(times)
def test_a_side_against_itself_is_all_zero(numbers):
    joined = join.with_difference(join.outer(side(**numbers), side(**numbers)), "ns")
    assert (joined["delta_ns"] == 0).all()
    assert (joined["diff"] == 0).all()
