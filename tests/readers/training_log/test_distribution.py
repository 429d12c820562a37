"""Numbers that come piece by piece have the median, the quantiles and the mean of one array, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from tracker.readers.training_log.distribution import mean_of, median_of, quantiles_of

PARTS = [0.1, 0.5, 0.9, 0.99]
DIGITS = {"few different numbers": 2, "many different numbers": 12}


def made_numbers(count: int, digits: int) -> NDArray[np.float64]:
    return np.round(np.random.default_rng(count).random(count), digits)


@pytest.mark.parametrize("count", [1, 2, 7, 100, 65_536, 200_001])
@pytest.mark.parametrize("name", DIGITS)
def test_pieces_have_the_quantiles_of_one_array(count: int, name: str):
    numbers = made_numbers(count, DIGITS[name])

    def pieces() -> Iterator[NDArray[np.float64]]:
        for begin in range(0, count, 30_000):
            yield numbers[begin : begin + 30_000]

    assert mean_of(pieces, count) == numbers.mean()
    assert median_of(pieces) == np.median(numbers)
    assert quantiles_of(pieces, PARTS) == np.quantile(numbers, PARTS).tolist()


def test_no_numbers_have_no_median():
    assert median_of(list) is None
