"""What a capture states of the clock of its cores, which msprof draws as `AI Core Freq` and stores in AICORE_FREQ.

msprof writes an entry at the start of the capture (the last clock that was measured before, else the one for which the
driver rates the cores), one for each clock that it measured, and at the end the last of them once more (its
`AiCoreFreqViewer`, its `AicoreFreqProcessor`). So two entries say nothing of the clock that the cores had.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tracker.columns import F64, I64
from tracker.profile import DeviceEvents, DeviceKind

COUNTER: Final = "AI Core Freq"
UNSTATED: Final = "a cause that is not stated"
"""Why a clock was held: no capture of Ascend says it."""
UNKNOWN: Final = float("nan")
"""The clock of an entry that cannot be read."""
_MOST_MHZ: Final = 100_000
_LEAST_LOSS: Final = 0.02
"""Share of the clock that kernels lose, from which on it was held: less explains no verdict on a step."""
_LEAST_BUSY: Final = 0.5
"""Share of a stretch of time in which kernels run, so that its clock is no matter of saving power."""


def clock_facts(
    clocks: Sequence[tuple[int, float]], device: DeviceEvents, rated_mhz: int | None = None
) -> dict[str, str]:
    """Return what `hooks.machine` calls the clock of a device and what held it, of those facts that are stated.

    `clocks`: when, in ns of the clock of `device`, and the MHz from then on; where one of them is unknown, none is
    taken. `rated_mhz`: what the driver rates the cores for, None where that is not stated.
    """
    facts = {} if rated_mhz is None else {"device_max_clock_mhz": str(rated_mhz)}
    entries = sorted(clocks)
    is_kernel = device.kind == DeviceKind.KERNEL
    starts, ends = device.start_ns[is_kernel], device.end_ns[is_kernel]
    measured = entries[1:-1]
    if not measured or not all(0 < mhz < _MOST_MHZ for _, mhz in entries) or not (ends > starts).any():
        return facts
    times = np.array([when for when, _ in entries], dtype=np.int64)
    worked = _work_in_stretches(times, starts, ends)
    # the first entry holds until the first that was measured, as msprof takes it
    stretch_clocks = np.array([entries[0][1], *(mhz for _, mhz in entries)], dtype=np.float64)
    # before its first kernel and after its last one a capture has nothing to do
    within = np.clip(times, starts.min(), ends.max())
    lengths = np.diff(within, prepend=starts.min(), append=ends.max())
    is_busy = worked >= _LEAST_BUSY * lengths
    # without the rated clock, the highest that this capture has is one that the cores may have
    most = max(rated_mhz or 0.0, *(mhz for _, mhz in entries))
    least = (1.0 - _LEAST_LOSS) * most
    usual = float(np.average(stretch_clocks, weights=worked))
    # the cores lower their clock where nothing runs, and the next kernel raises it
    while_busy = float(np.average(np.where(is_busy, stretch_clocks, most), weights=worked))
    if while_busy < least:
        facts["device_clock_mhz"] = f"{while_busy:.0f}"
        facts["device_throttled"] = UNSTATED
        facts["device_held"] = f"NPU at {while_busy:.0f} of {most:.0f} MHz by {UNSTATED}"
    elif measured[0][0] <= int(starts.min()):
        facts["device_clock_mhz"] = f"{usual:.0f}"
        if rated_mhz is not None and usual >= least:
            facts["device_throttled"] = "no"
    return facts


def _work_in_stretches(times: I64, starts: I64, ends: I64) -> F64:
    """Return how long kernels run before the first of `times`, between each two, and after the last. Where several run
    at once, that counts once.
    """
    order = np.argsort(starts, kind="stable")
    begun, until = starts[order], np.maximum.accumulate(ends[order])
    # each kernel adds what lies beyond the end of those before it
    opens = np.maximum(begun, np.concatenate([begun[:1], until[:-1]]))
    spans = np.maximum(until - opens, 0)
    before = np.concatenate([[0], np.cumsum(spans)])
    rows = np.searchsorted(opens, times, side="right")
    last = np.maximum(rows - 1, 0)
    done = before[last] + np.clip(times - opens[last], 0, spans[last])
    return np.asarray(np.diff(done, prepend=0, append=before[-1]), dtype=np.float64)
