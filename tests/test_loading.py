"""Data loading that a trace does not record: by the timer log beside it, or by the queue of a data pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factories import capture, record
from tracker import show
from tracker.compare.bottleneck import THRESHOLDS
from tracker.intake import IngestOptions, Piece
from tracker.intake.loading import with_data_loading
from tracker.profile import EMPTY_QUEUE, PIPELINE_TIME
from tracker.store import Store, save_run

MS = 10**6


def trace(folder: Path, name: str = "host_a.paddle_trace.json", *, step_ms: int = 40, rank: int | None = None) -> Piece:
    """A Paddle trace of two steps that knows of no data loading."""
    path = str(folder / name)
    made = capture(rank, path=path, steps=2, step_ns=step_ms * MS)
    return Piece(made, "paddle_trace", (), path)


def log(folder: Path, name: str = "timer.txt", *, reader_s: float = 0.012, batch_s: float = 0.048) -> None:
    """Two lines of a timer, both alike."""
    line = f"reader_cost: {reader_s} s batch_cost: {batch_s} s ips: 8.0 images/s"
    (folder / name).write_text(f"step:1 {line}\nstep:2 {line}\n")


def loads(pieces: list[Piece]) -> list[list[int | None]]:
    """The data loading of each step of each piece, in ms."""
    found = []
    for piece in with_data_loading(pieces, IngestOptions()):
        assert piece.capture.rows is not None
        times = [step.breakdown.data_loading_ns for step in piece.capture.rows.steps]
        found.append([None if time is None else time // MS for time in times])
    return found


def test_timer_log_gives_its_data_loading_to_the_steps_beside_it(tmp_path: Path):
    log(tmp_path)
    (piece,) = with_data_loading([trace(tmp_path)], IngestOptions())
    assert loads([trace(tmp_path)]) == [[12, 12]]
    assert piece.warnings == (
        "timer.txt beside it has 48.00 ms per step, 12.00 ms of it data loading; here it is 40.00 ms (+20.0 %), 0 ns "
        "of it data loading: data loading is taken from timer.txt",
    )


def test_step_that_is_shorter_than_the_data_loading_does_not_hold_it(tmp_path: Path):
    log(tmp_path, reader_s=0.05, batch_s=0.08)
    assert loads([trace(tmp_path)]) == [[None, None]]


def test_log_of_each_rank_belongs_to_its_trace(tmp_path: Path):
    log(tmp_path, "workerlog.0", reader_s=0.001)
    log(tmp_path, "workerlog.1", reader_s=0.002)
    pieces = [trace(tmp_path, f"rank{rank}.json", rank=rank) for rank in (0, 1)]
    assert loads(pieces) == [[1, 1], [2, 2]]


def test_several_logs_or_traces_are_not_guessed(tmp_path: Path):
    log(tmp_path)
    assert loads([trace(tmp_path, "a.json"), trace(tmp_path, "b.json")]) == [[None, None]] * 2
    log(tmp_path, "other.txt")
    assert loads([trace(tmp_path)]) == [[None, None]]


def test_log_of_another_folder_or_format_says_nothing(tmp_path: Path):
    log(tmp_path)
    elsewhere = trace(tmp_path / "below")
    other = Piece(capture(path=str(tmp_path / "a.json")), "torch_profiler", (), str(tmp_path / "a.json"))
    assert loads([elsewhere, other]) == [[None, None], [None]]


def test_summary_beside_a_trace_that_disagrees_is_said(tmp_path: Path):
    text = (
        "-----Model Summary-----\nTime unit: ms\n"
        "---------------  ------  --------------------------\n"
        "Name             Calls   CPU Total / Avg / Max / Min / Ratio(%)\n"
        "---------------  ------  --------------------------\n"
        "ProfileStep      2       100.00 / 50.00 / 60.00 / 40.00 / 100.00\n"
    )
    (tmp_path / "summary.txt").write_text(text)
    (piece,) = with_data_loading([trace(tmp_path)], IngestOptions())
    assert piece.warnings == ("summary.txt beside it has 50.00 ms per step, here it is 40.00 ms (+25.0 %)",)
    (alike,) = with_data_loading([trace(tmp_path, step_ms=50)], IngestOptions())
    assert alike.warnings == ()


def test_bottleneck_is_the_share_that_the_timer_states(memory_store: Store, tmp_path: Path):
    log(tmp_path)
    (piece,) = with_data_loading([trace(tmp_path)], IngestOptions())
    save_run(memory_store, record(), [piece.capture], formats=["paddle_trace"])
    shown = show("run:1", store=memory_store)
    assert shown.bottleneck is not None
    assert (shown.bottleneck.bound, shown.bottleneck.data_loading_share) == ("input", 0.25)
    assert (
        "The timer log beside it has 48.00 ms per step, 12.00 ms of it data loading, which is taken from there; "
        "the mean step here is 40.00 ms (+20.0 %)."
    ) in shown.notes


def pipeline(*, empty: float, batch_ms: float = 30.0) -> Piece:
    """A capture of two steps of 40 ms whose data pipeline says how often its queue to the device is empty."""
    counters = [(*EMPTY_QUEUE, empty), (*PIPELINE_TIME, batch_ms)]
    return Piece(capture(steps=2, step_ns=40 * MS, counters=counters), "ascend_text", (), "a_ascend_ms")


@pytest.mark.parametrize(("empty", "bound", "loading"), [(97.8, "input", [30, 30]), (12.0, "host", [None, None])])
def test_queue_that_is_empty_most_of_the_time_is_input_bound(
    memory_store: Store, empty: float, bound: str, loading: list[int | None]
):
    (piece,) = with_data_loading([pipeline(empty=empty)], IngestOptions())
    assert loads([pipeline(empty=empty)]) == [loading]
    save_run(memory_store, record(), [piece.capture], formats=["ascend_text"])
    found = show("run:1", store=memory_store).bottleneck
    assert found is not None
    assert (found.bound, found.empty_queue_share) == (bound, empty / 100)
    assert THRESHOLDS["empty_queue_above"] == 0.5
