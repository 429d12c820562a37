"""Steps against the clock of the device itself: captures of an H200 whose job recorded a CUDA event after each step.

PyTorch 2.11, 6 steps of 20 matrix products of 4096 x 4096 in bfloat16, launched without a synchronisation; the second
job copies 64 MiB to the device on another stream in each step, the third one runs a CUDA graph. The times are
`torch.cuda.Event.elapsed_time` from the end of one step to the end of the next, in ms, beside 1.3, 0.8 and 0.2 ms of
the host's markers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tracker import readers
from tracker.timeline import build

DATA = Path(__file__).parents[1] / "data" / "h200"
EVENTS_MS = {
    "host_ahead": (3.695, 3.692, 3.700, 3.694, 3.705, 3.693),
    "host_copies": (3.979, 3.756, 3.712, 3.708, 3.704, 3.703),
    "host_graph": (3.718, 3.698, 3.692, 3.685, 3.697, 3.686),
}


@pytest.mark.parametrize("name", EVENTS_MS)
def test_steps_are_those_of_the_devices_clock(name):
    (found,) = readers.find(DATA / f"{name}.pt.trace.json.gz")
    (capture,) = readers.read(found).captures
    steps = build(capture).rows.steps
    times_ms = [step.breakdown.duration_ns / 1e6 for step in steps]
    assert times_ms == pytest.approx(EVENTS_MS[name], abs=0.003)
    assert all(step.marker_ns < 1_500_000 for step in steps)
