"""Hand-computable stories: how far ahead of the device the host launches."""

from __future__ import annotations

from typing import Any

from tests.timeline.made_events import Made


def queue(made: Made) -> list[tuple[int, ...]]:
    """Step, stream, kernels, sum and largest of the leads, and how many had the device still busy."""
    table: dict[str, Any] = dict(made.built().tables["queue"])
    return [tuple(row) for row in zip(*(column.tolist() for column in table.values()), strict=True)]


def test_lead_is_from_the_end_of_the_call_to_the_start_of_the_kernel():
    """Launched until 11 and 21: 9 and 49 before they start. The second one waits while the first one runs."""
    made = Made()
    made.step(3, 0, 100)
    made.launch(10, 1, end=11)
    made.kernel("gemm", 20, 70, 1)
    made.launch(20, 2, end=21)
    made.kernel("gemm", 70, 90, 2)
    assert queue(made) == [(3, 7, 2, 9 + 49, 49, 1)]


def test_streams_queue_for_themselves():
    """Stream 8 has had nothing to do when its kernel is launched, whatever stream 7 does."""
    made = Made()
    made.step(0, 0, 100)
    made.launch(10, 1, end=11)
    made.kernel("gemm", 12, 70, 1)
    made.launch(20, 2, end=21)
    made.kernel("gemm", 25, 60, 2, stream=8)
    assert queue(made) == [(0, 7, 1, 1, 1, 0), (0, 8, 1, 4, 4, 0)]


def test_copy_ahead_keeps_a_stream_busy_and_is_no_kernel():
    made = Made()
    made.step(0, 0, 100)
    made.copy(10, 50)
    made.launch(20, 1, end=21)
    made.kernel("gemm", 50, 60, 1)
    assert queue(made) == [(0, 7, 1, 29, 29, 1)]


def test_kernel_without_a_launch_has_no_lead():
    made = Made()
    made.kernel("gemm", 50, 60)
    assert queue(made) == []


def test_lead_is_from_when_the_source_says_the_kernel_was_handed_over():
    """Put into a queue until 11, handed over at 40, while the first kernel ran until 45."""
    made = Made()
    made.step(0, 0, 100)
    made.launch(10, 1, end=11)
    made.kernel("gemm", 20, 45, 1, handover_ns=15)
    made.kernel("gemm", 50, 60, 1, handover_ns=40)
    made.kernel("gemm", 70, 80, 1)
    assert queue(made) == [(0, 7, 2, 5 + 10, 10, 1)]


def test_handovers_stay_with_their_kernels_where_one_has_no_time():
    """Times count from 1970: the first kernel has none, and is left out."""
    made, now = Made(), 1_780_000_000_000_000_000
    made.step(0, now, now + 100)
    made.kernel("gemm", 0, 0, handover_ns=now + 1)
    made.kernel("gemm", now + 20, now + 45, handover_ns=now + 15)
    assert queue(made) == [(0, 7, 1, 5, 5, 0)]


def test_clock_that_starts_a_kernel_before_its_call_ends_gives_no_lead():
    made = Made()
    made.launch(40, 1, end=52)
    made.kernel("gemm", 50, 60, 1)
    assert queue(made) == [(0, 7, 1, 0, 0, 0)]
