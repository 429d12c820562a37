"""What a kernel used of the device, as CUPTI's exporters state it: occupancy, blocks and warps per SM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tracker.profile import F64, KernelMetrics, Strings
from tracker.readers._growing import Array, real_column
from tracker.readers.torch_profiler.kinds import KERNEL_METRICS
from tracker.readers.torch_profiler.schema import Args


def kernel_metric_columns(args: Sequence[Args]) -> dict[str, F64]:
    """Return the columns of KERNEL_METRICS of so many kernels, NaN where one does not state a number."""
    return {name: real_column([getattr(one, name) for one in args]) for name in KERNEL_METRICS}


def unknown_kernel_metrics(count: int) -> dict[str, F64]:
    """Return the columns of KERNEL_METRICS of so many copies and memsets, which have none."""
    return {name: np.full(count, np.nan) for name in KERNEL_METRICS}


def kernel_metrics_of(device: Mapping[str, Array], strings: Strings) -> KernelMetrics:
    """Return the measurements of the kernels of a capture; `event` is the row of `device`.

    A negative number is none: Kineto writes an occupancy of -100 % (-99 after rounding) where it could not compute one.
    """
    events, metrics, values = [], [], []
    for name, title in KERNEL_METRICS.items():
        column = device[name]
        rows = np.flatnonzero(np.isfinite(column) & (column >= 0))
        if len(rows):
            events.append(rows)
            metrics.append(np.full(len(rows), strings.code(title)))
            values.append(column[rows])
    return KernelMetrics(
        event=np.concatenate([np.zeros(0), *events]).astype(np.int32),
        metric=np.concatenate([np.zeros(0), *metrics]).astype(np.int32),
        value=np.concatenate([np.zeros(0), *values]),
    )
