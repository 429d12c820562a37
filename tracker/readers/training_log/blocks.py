"""The blocks of a result of MLPerf: what lies between its lines `start` and `stop`."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.readers.training_log.scanning import Scan

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


class Blocks(Struct, frozen=True):
    """Blocks in their order; columns of equal length. `last`: number of the last step. `steps`: of each block.

    `samples_s`: nan where no line says how many samples a block has; each block is one step then.
    """

    last: I64
    steps: F64
    step_s: F64
    samples_s: F64
    lines: I64


def blocks_of(scan: Scan, batch: int | None) -> Blocks:
    """Return the blocks of a log. `batch`: samples of a step."""
    clocks, counts = scan.column("clock_ms"), scan.column("step")
    samples: list[float] = []
    spent: list[float] = []
    places: list[int] = []
    begun: int | None = None
    for place, mark in enumerate(scan.words["mark"]):
        if mark == "start":
            begun = place
        elif begun is not None:
            spent.append((clocks[place] - clocks[begun]) / 1000)
            # some count the samples of the block, others all samples until now
            counted, at_start = counts[place], counts[begun]
            samples.append(counted if counted == at_start or np.isnan(at_start) else counted - at_start)
            places.append(place)
            begun = None
    spent_s = np.array(spent, dtype=np.float64)
    counted_samples = np.array(samples, dtype=np.float64)
    lines = np.array(places, dtype=np.int64)
    if np.isnan(counted_samples).all():
        nothing = np.full(len(lines), np.nan)
        return Blocks(np.arange(1, len(lines) + 1), np.ones(len(lines)), spent_s, nothing, lines)
    counted_samples = np.where(counted_samples > 0, counted_samples, np.nan)
    steps = counted_samples / (batch or np.nan)
    rates = counted_samples / np.where(spent_s > 0, spent_s, np.nan)
    return Blocks(_numbers_of(counted_samples, batch or 1), steps, spent_s / steps, rates, lines)


def _numbers_of(samples: F64, batch: int) -> I64:
    """Return the number of the last step of each block; a block may be shorter than a batch, and still has its own."""
    numbers: list[int] = []
    for done in np.cumsum(np.nan_to_num(samples)).tolist():
        number = round(done / batch)
        numbers.append(max(number, numbers[-1] + 1) if numbers else number)
    return np.array(numbers, dtype=np.int64)
