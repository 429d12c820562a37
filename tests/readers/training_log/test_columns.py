"""Columns take little memory, and give back what was put into them."""

from __future__ import annotations

import numpy as np
import pytest

from tracker.readers.training_log.columns import PackedColumn

COUNT = 70_000
"""More than one piece of a column."""
STEPS = np.arange(COUNT, dtype=np.float64)

COLUMNS = {
    "steps": STEPS,
    "every tenth step": 10 * STEPS + 10,
    "steps of a resumed run": np.where(STEPS < 100, STEPS, STEPS - 50),
    "one number": np.full(COUNT, 256.0),
    "nothing": np.full(COUNT, np.nan),
    "tenths of a ms": np.array([float(f"{2500 + step % 700 / 10:.1f}") for step in range(COUNT)]),
    "six digits": np.array([float(f"{step % 977 / 977:.6f}") for step in range(COUNT)]),
    "a number missing": np.where(STEPS == 69_000, np.nan, 0.25),
    "a number damaged": np.where(STEPS == 100, np.inf, 0.25),
    "many digits": np.sqrt(STEPS),
    "times of the day": 1.7e18 + 2.6e9 * STEPS,
    "bytes": 2.0**30 * np.sqrt(STEPS),
    "few numbers of many digits": np.sqrt(STEPS % 300),
    "few numbers and none": np.where(STEPS % 5 == 0, np.nan, 1000 * np.sqrt(STEPS % 300)),
    "below zero": -STEPS % 1000 - 0.5,
}


@pytest.mark.parametrize("name", COLUMNS)
def test_column_gives_back_the_numbers_it_got(name: str):
    numbers = COLUMNS[name]
    column = PackedColumn.of(numbers)
    assert len(column) == COUNT
    np.testing.assert_array_equal(column.values(), numbers)
    np.testing.assert_array_equal(np.concatenate([*column.pieces()]), numbers)
    np.testing.assert_array_equal(column.where(STEPS % 3 == 1), numbers[STEPS % 3 == 1])
    assert column.has_number() == (name != "nothing")
    places = np.flatnonzero(STEPS % 1000 == 7)
    np.testing.assert_array_equal(column.at(places).values(), numbers[places])
    np.testing.assert_array_equal(column.is_missing(), np.isnan(numbers))


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float32])
def test_column_of_another_kind_gives_back_its_numbers(kind: type[np.number]):
    numbers = (STEPS // 3 % 1000 - 7).astype(kind)
    values = PackedColumn.of(numbers).values()
    assert values.dtype == kind
    np.testing.assert_array_equal(values, numbers)


def test_column_that_grows_line_by_line_is_that_of_all_lines():
    column = PackedColumn()
    column.fill(3, np.nan)
    for begin in range(0, COUNT, 1000):
        column.extend(STEPS[begin : begin + 1000] / 8)
    np.testing.assert_array_equal(column.values(), np.concatenate([np.full(3, np.nan), STEPS / 8]))
    column.extend([1.5])
    assert column.values()[-1] == 1.5


def test_column_of_one_number_takes_no_memory():
    assert PackedColumn.of(COLUMNS["one number"]).values().strides == (0,)
    assert PackedColumn.of(COLUMNS["steps"]).values().strides == (8,)


def test_places_count_from_zero():
    np.testing.assert_array_equal(PackedColumn.of_places(COUNT).values(), STEPS)


def test_missing_numbers_are_named():
    assert np.flatnonzero(PackedColumn.of(COLUMNS["a number missing"]).is_missing()).tolist() == [69_000]
