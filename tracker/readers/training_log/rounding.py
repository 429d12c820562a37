"""How finely a log writes its numbers: half a unit of the last digit that it prints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracker.readers.training_log.columns import PackedColumn
from tracker.readers.training_log.distribution import Pieces, median_of

F64 = NDArray[np.float64]

TIMES: Final = (
    "step_ms", "step_s", "interval_ms", "interval_s", "mean_s", "elapsed_ms", "elapsed_s", "elapsed_clock", "wall_s",
)  # fmt: skip
RATES: Final = ("rate", "words_s", "samples_s", "tokens_s", "tflops", "throughput")
ROUNDED: Final = frozenset((*TIMES, *RATES, "data_s", "run_rate"))
"""Quantities of which it matters how finely they are printed."""
LOOKED_AT: Final = 32
"""So many texts of a piece of a log show how many digits it writes: that all of them end with a 0 is no chance."""
_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?) *(ms|us|(?:steps?|it|iters?|batch|batches)/s)?")
_SCALES: Final = {"ms": 1e-3, "us": 1e-6}
_SAME: Final = 1e-6
_MOST_DIGITS: Final = 9
"""A number with more digits behind the point was not rounded by hand."""


def half_unit_of(texts: Iterable[bytes | None]) -> float:
    """Return half a unit of the last digit that some numbers are written with, by the one with most digits; inf where
    there is none.

    >>> half_unit_of([b"0.5", b"0.25"]), half_unit_of([b"1,752", None]), half_unit_of([b"0:01:05"]), half_unit_of([])
    (0.005, 0.5, 0.5, inf)
    """
    most = -1
    for text in texts:
        if not text or not text[-1:].isdigit() or b"e" in text or b"E" in text:
            continue  # nothing, or nan; of an exponent the digits say nothing of the number
        most = max(most, len(text.partition(b".")[2]))
    return np.inf if most < 0 else 0.5 * 10.0**-most


def half_units_in(line: str, row: Mapping[str, float | str]) -> dict[str, float]:
    """Return half units of what was made of a line: of each number that stands in it as it is, in ms or us, or as the
    steps in a second.

    >>> half_units_in("step 7: 150ms/step, 2.00 step/s", {"step_s": 0.15}), half_units_in("2.00 it/s", {"step_s": 0.5})
    ({'step_s': 0.0005}, {'step_s': 0.00125})
    """
    found: dict[str, float] = {}
    for name in ROUNDED & row.keys():
        value = row[name]
        if isinstance(value, str) or not value > 0:
            continue
        half_units = []
        for text, unit in _NUMBER.findall(line):
            number, half_unit = float(text), half_unit_of([text.encode()])
            scale = _SCALES.get(unit, 1.0)
            if unit.endswith("/s") and abs(number * value - 1) < _SAME:
                half_units.append(half_unit * value * value)
            elif abs(number * scale / value - 1) < _SAME:
                half_units.append(half_unit * scale)
        if half_units:
            found[name] = min(half_units)
    return found


def rounding_of(half_units: Mapping[str, float], quantity: str, values: F64) -> F64:
    """Return how far numbers may be from what is printed, as a part of each; 0 where the log does not show it."""
    half_unit = half_units.get(quantity, np.inf)
    if half_unit < 0.5 * 10.0**-_MOST_DIGITS or not np.isfinite(half_unit):
        return np.zeros(len(values))
    # in place: a large log has many
    sizes = np.abs(values)
    sizes[~(sizes > 0)] = np.nan
    return np.divide(half_unit, sizes, out=sizes)


def roundings_in(half_units: Mapping[str, float], quantity: str, column: PackedColumn) -> Pieces:
    """Return what yields how far the numbers of a column may be from what is printed, piece by piece."""
    return lambda: (rounding_of(half_units, quantity, numbers) for numbers in column.pieces())


def median_rounding(roundings: Pieces) -> float:
    """Return the rounding of the median of some numbers; 0 where none is known."""
    return median_of(lambda: (piece[~np.isnan(piece)] for piece in roundings())) or 0.0
