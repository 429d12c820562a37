"""Groups of rows, beside the same worked out with plain Python: by key, as they first come, added up, ordered."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker import table
from tracker.columns import Column, Columns, objects
from tracker.errors import StoreError
from tracker.table import AddUp

MARK = -(2**63)
# far apart, so that packing several of them into one number needs more than 64 bits now and then
KEYS = st.sampled_from([-3, 0, 1, 7, 10**6, 2**61])
NUMBERS = st.one_of(st.none(), st.integers(-5, 5), st.integers(-(2**50), 2**50))


@st.composite
def rows(draw, least: int = 0) -> list[tuple[int, int, int | None]]:
    """Rows of two keys and a number that may be missing."""
    return draw(st.lists(st.tuples(KEYS, KEYS, NUMBERS), min_size=least, max_size=25))


def columns_of(rows: Sequence[tuple[int, int, int | None]]) -> tuple[Any, Any, Column]:
    keys = [np.array([row[at] for row in rows], dtype=np.int64) for at in range(2)]
    return keys[0], keys[1], Column.of([row[2] for row in rows], np.int64)


def grouped(rows: Sequence[tuple[int, int, int | None]]) -> dict[Hashable, list[int | None]]:
    """Key -> its numbers, in the order in which the keys first come."""
    groups: dict[Hashable, list[int | None]] = {}
    for first, second, number in rows:
        groups.setdefault((first, second), []).append(number)
    return groups


def added_up(numbers: Sequence[int | None], how: AddUp) -> int | None:
    stated = [number for number in numbers if number is not None]
    if not stated or (how == "sum" and None in numbers):
        return None
    return {"sum": sum, "known": sum, "min": min, "max": max}[how](stated)


@given(rows(), st.sampled_from(["sum", "known", "min", "max"]))
def test_groups_come_by_key_and_add_up(rows, how):
    first, second, numbers = columns_of(rows)
    groups = table.group_rows(first, second)
    expected = dict(sorted(grouped(rows).items()))
    assert list(zip(first[groups.first].tolist(), second[groups.first].tolist(), strict=True)) == list(expected)
    assert groups.counts.tolist() == [len(own) for own in expected.values()]
    assert Columns({"n": groups.add_up(numbers, how)}).listed("n") == [added_up(own, how) for own in expected.values()]
    marked = np.where(numbers.missing, MARK, numbers.values)
    wanted = [added_up(own, how) for own in expected.values()]
    assert groups.add_up_marked(marked, MARK, how).tolist() == [MARK if one is None else one for one in wanted]
    assert [groups.rows_of(group).tolist() for group in range(len(groups))] == [
        [at for at, row in enumerate(rows) if row[:2] == key] for key in expected
    ]


@given(rows())
def test_plain_sums_are_exact(rows):
    first, second, numbers = columns_of(rows)
    groups = table.group_rows(first, second)
    expected = {key: [number or 0 for number in own] for key, own in sorted(grouped(rows).items())}
    assert groups.sums(numbers.values).tolist() == [sum(own) for own in expected.values()]
    assert groups.smallest(numbers.values).tolist() == [min(own) for own in expected.values()]
    assert groups.largest(numbers.values).tolist() == [max(own) for own in expected.values()]


@given(rows())
def test_sums_are_shared_back_to_their_rows(rows):
    first, second, numbers = columns_of(rows)
    shared = table.group_rows(first, second).share_sums(numbers)
    expected = grouped(rows)
    assert Columns({"n": shared}).listed("n") == [added_up(expected[row[:2]], "sum") for row in rows]


@given(rows())
def test_rows_in_a_group_follow_an_order_of_their_own(rows):
    first, second, _ = columns_of(rows)
    groups = table.group_rows(first, then=[-second])
    keys = sorted({row[0] for row in rows})
    assert second[groups.first].tolist() == [max(row[1] for row in rows if row[0] == key) for key in keys]


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b", None]), st.sampled_from([None, 0, 1])), max_size=12))
def test_distinct_rows_are_numbered_as_they_first_come(pairs):
    columns = [objects([text for text, _ in pairs]), Column.of([number for _, number in pairs], np.int64)]
    number, first = table.number_distinct_rows(columns)
    distinct = list(dict.fromkeys(pairs))
    assert number.tolist() == [distinct.index(pair) for pair in pairs]
    assert first.tolist() == [pairs.index(pair) for pair in distinct]


@given(rows(least=1), st.data())
def test_a_row_is_found_among_the_keys(rows, data):
    keys = sorted({row[:2] for row in rows})
    columns = [np.array(column, dtype=np.int64) for column in zip(*keys, strict=True)]
    place = data.draw(st.lists(st.integers(0, len(keys) - 1), max_size=8))
    assert table.match_rows(columns, [column[place] for column in columns]).tolist() == place


@given(rows())
def test_the_largest_come_first_and_the_missing_last(rows):
    first, _, numbers = columns_of(rows)
    order = table.order_largest_first([numbers], [first]).tolist()
    expected = sorted(range(len(rows)), key=lambda at: (rows[at][2] is None, -(rows[at][2] or 0), rows[at][0], at))
    assert order == expected


def test_neighbours_beyond_real_numbers_keep_their_order():
    sizes = Column.of([2**60, 2**60 + 1], np.int64)
    assert table.order_largest_first([sizes]).tolist() == [1, 0]


def test_real_numbers_add_up_and_nan_is_missing():
    groups = table.group_rows(np.array([1, 1, 2]))
    numbers = np.array([0.5, np.nan, 2.0])
    assert groups.add_up(numbers, "known").values.tolist() == [0.5, 2.0]
    assert groups.add_up(numbers, "sum").missing.tolist() == [True, False]
    assert groups.add_up(numbers, "max").values.tolist() == [0.5, 2.0]


def test_a_sum_beyond_64_bits_is_refused():
    groups = table.group_rows(np.array([1, 1]))
    with pytest.raises(StoreError, match=r"a sum is too large"):
        groups.add_up(Column.of([2**62, 2**62], np.int64))
    # large ones whose sums fit are none
    opposite = Column.of([2**62, -(2**62)], np.int64)
    assert groups.add_up(opposite).values.tolist() == [0]


REALS = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 0.25, 0.75, 1.0, 2.0**53, 1e300, np.inf, np.nan])


def order_of_real(number: float) -> tuple[bool, float]:
    """What sorts real numbers with nan last; it is equal for 0.0 and -0.0, and for all nan."""
    return (True, 0.0) if np.isnan(number) else (False, number)


@given(st.lists(st.tuples(REALS, st.integers(0, 1)), min_size=1, max_size=25))
def test_real_numbers_are_keys_too_and_nan_is_one_of_them(pairs):
    reals, whole = np.array([real for real, _ in pairs]), np.array([number for _, number in pairs])
    keys = [(number, order_of_real(real)) for real, number in pairs]
    groups = table.group_rows(whole, reals)
    assert groups.number.tolist() == [sorted(set(keys)).index(key) for key in keys]
    assert groups.first.tolist() == [keys.index(key) for key in sorted(set(keys))]
    number, first = table.number_distinct_rows([whole, reals])
    distinct = list(dict.fromkeys(keys))
    assert number.tolist() == [distinct.index(key) for key in keys]
    assert first.tolist() == [keys.index(key) for key in distinct]


def test_no_rows_have_no_groups():
    nothing = np.zeros(0, dtype=np.int64)
    groups = table.group_rows(nothing)
    assert len(groups) == 0
    assert len(groups.add_up(Column(nothing, nothing.astype(bool)))) == 0
    number, first = table.number_distinct_rows([objects([]), nothing])
    assert (len(number), len(first)) == (0, 0)


def test_equal_rows_of_two_tables_have_one_number():
    before = Columns({"name": objects(["mm", "relu"]), "shape": objects(["2", ""]), "ns": np.array([1, 2])})
    after = Columns({"name": objects(["mm", "mm"]), "shape": objects(["3", "2"]), "ns": np.array([3, 4])})
    (old, new), keys = table.number_tables([before, after], ["name", "shape"])
    assert (old.number.tolist(), new.number.tolist()) == ([0, 1], [2, 0])
    assert list(keys.rows("name", "shape")) == [("mm", "2"), ("relu", ""), ("mm", "3")]
    both = table.stack_numbered([old, new], "ns")
    assert (both.rows["ns"].tolist(), both.number.tolist(), both.count) == ([1, 2, 3, 4], [0, 1, 2, 0], 3)
