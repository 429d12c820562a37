"""What a run says of all its series as one row: the judgement asks for whole runs, and a row per number costs it more
than the judging.

The table `sample` stays what is true: an array holds what the rows of a run say, is made from them in the transaction
that writes them, and where a run has none, the rows are read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from tracker.store import bulk
from tracker.store.bulk import Column
from tracker.store.failures import Damaged
from tracker.store.sql import statement

_FORGET: Final = text("DELETE FROM sample_array WHERE run_id = :run_id")
_REPLACE: Final = text("UPDATE sample_array SET numbers = :numbers WHERE run_id = :run_id")
HOW_TO_REPAIR: Final = "tracker db check --repair makes them again"
_WITH_LOWS: Final = b"\x01"
"""The first byte of an array that holds lows: all other lengths are multiples of 8."""
_RUNS_PER_QUESTION: Final = 100
"""One array can hold a megabyte."""


class SampleArray(Struct, frozen=True, eq=False):
    """The samples of a run: its `series_ids` ascending, and for each the value that is printed, the calls per step (nan
    where they are not counted), and the 10th percentile over the steps (nan where it is not known).
    """

    series_ids: NDArray[np.int64]
    values: NDArray[np.float64]
    calls: NDArray[np.float64]
    lows: NDArray[np.float64]


def keep_array(connection: Connection, run_id: int) -> None:
    """Make the array of a run from its rows in `sample`, in the open transaction that wrote them."""
    connection.execute(_FORGET, {"run_id": run_id})
    numbers = packed(array_of_rows(connection, run_id))
    bulk.load(connection, "sample_array", [Column("run_id", "int", [run_id]), Column("numbers", "binary", [numbers])])


def arrays_of(connection: Connection, run_ids: Iterable[int]) -> dict[int, SampleArray]:
    """The samples of each of these runs; empty arrays for one without any. Damaged where the bytes of one are."""
    wanted = sorted(set(run_ids))
    found: dict[int, SampleArray] = {}
    for start in range(0, len(wanted), _RUNS_PER_QUESTION):
        asked = {"run_ids": wanted[start : start + _RUNS_PER_QUESTION]}
        for run_id, numbers in bulk.fetch(connection.execute(statement("sample_arrays"), asked)):
            try:
                found[run_id] = unpacked(bytes(numbers))
            except ValueError as error:
                raise Damaged(f"the samples of run {run_id}", HOW_TO_REPAIR) from error
    # a program of before there were arrays may have written a run
    return {run_id: found.get(run_id) or array_of_rows(connection, run_id) for run_id in wanted}


def damaged_arrays(connection: Connection) -> list[int]:
    """The runs whose bytes are damaged, ascending."""
    question = text("SELECT run_id, numbers FROM sample_array ORDER BY run_id")
    damaged = []
    for run_id, numbers in connection.execute(question, execution_options={"yield_per": _RUNS_PER_QUESTION}):
        try:
            unpacked(bytes(numbers))
        except ValueError:
            damaged.append(run_id)
    return damaged


def repair_array(connection: Connection, run_id: int) -> bool:
    """Make the damaged array of a run again from its rows; False, and nothing changed, where there are none either."""
    array = array_of_rows(connection, run_id)
    if len(array.series_ids):
        connection.execute(_REPLACE, {"run_id": run_id, "numbers": packed(array)})
    return len(array.series_ids) > 0


def array_of_rows(connection: Connection, run_id: int) -> SampleArray:
    """The same of one run, from its rows."""
    rows = bulk.fetch(connection.execute(statement("run_values"), {"run_id": run_id}))
    series_ids, values, calls, lows = zip(*rows, strict=True) if rows else ((), (), (), ())
    return SampleArray(np.array(series_ids, dtype=np.int64), _reals(values), _reals(calls), _reals(lows))


def packed(array: SampleArray) -> bytes:
    """zlib of a mark, then the steps from one series to the next, values, calls and lows: 8 bytes each, the lowest
    first.
    """
    steps = np.diff(array.series_ids, prepend=0).astype("<i8")
    parts = (steps, *(numbers.astype("<f8") for numbers in (array.values, array.calls, array.lows)))
    return zlib.compress(_WITH_LOWS + b"".join(part.tobytes() for part in parts))


def unpacked(numbers: bytes) -> SampleArray:
    """The array that was `packed`; ValueError where the bytes are damaged."""
    try:
        plain = zlib.decompress(numbers)
    except zlib.error as error:
        raise ValueError("these bytes are no samples") from error
    # without the mark they are of a program that kept no lows
    has_lows = len(plain) % 8 == len(_WITH_LOWS)
    start, columns = (len(_WITH_LOWS), 4) if has_lows else (0, 3)
    count, rest = divmod(len(plain) - start, 8 * columns)
    if rest:
        raise ValueError("series, values and calls differ in number")
    steps = np.frombuffer(plain, dtype="<i8", offset=start, count=count)
    table = np.frombuffer(plain, dtype="<f8", offset=start + 8 * count).reshape(columns - 1, count)
    lows = table[2] if has_lows else np.full(count, np.nan)
    return SampleArray(np.cumsum(steps), table[0], table[1], lows)


def _reals(numbers: Sequence[Any]) -> NDArray[np.float64]:
    return np.array(numbers, dtype=np.float64)  # None becomes nan
