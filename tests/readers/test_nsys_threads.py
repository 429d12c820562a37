"""Kernels that one thread launches for a range of another: autograd's thread works, the main thread waits."""

from __future__ import annotations

from tests.readers.helpers import frame, only
from tests.readers.nsys_captures import kernels, read
from tests.readers.nsys_databases import call, kernel, one_step, span, tid, write
from tracker.compare import show
from tracker.doctor import examine
from tracker.timeline import rows_of

WORKER = {"globalTid": tid(7, 99)}


def launched(name, at, number, **thread):
    """A launch of 5 ns at `at`, and its kernel of 20 ns right after it."""
    return {**call("cudaLaunchKernel_v7000", at, at + 5, number), **thread}, kernel(name, at + 5, at + 25, number)


def tables_of(ranges, *work):
    calls, done = zip(*work, strict=True)
    tables = {name: rows for name, rows in one_step().items() if not name.startswith("CUPTI")}
    tables |= {"NVTX_EVENTS": list(ranges), "CUPTI_ACTIVITY_KIND_RUNTIME": list(calls)}
    return {**tables, "CUPTI_ACTIVITY_KIND_KERNEL": list(done)}


def capture(tmp_path, ranges, *work):
    return only(read(tmp_path, tables_of(ranges, *work)))


STEP = (span("iteration 1", 0, 1000), span("forward", 0, 400), span("backward", 400, 900))


def test_a_worker_belongs_to_the_range_that_waits(tmp_path):
    """The main thread launches one kernel of the backward pass, autograd's thread the two others."""
    work = (
        launched("fwd", 100, 1),
        launched("seed", 410, 2),
        launched("grad_a", 500, 3, **WORKER),
        launched("grad_b", 600, 4, **WORKER),
    )
    found = kernels(capture(tmp_path, STEP, *work))
    assert {name: row[0] for name, row in found.items()} == {
        "fwd": "forward", "seed": "backward", "grad_a": "backward", "grad_b": "backward",
    }  # fmt: skip
    assert {name: row[2] for name, row in found.items() if name != "fwd"} == dict.fromkeys(
        ("seed", "grad_a", "grad_b"), "backward"
    )


def test_ops_of_a_worker_take_the_phase_that_waits(tmp_path):
    emitted = span("aten::mm, seq = 5, op_id = 60", 490, 560, **WORKER)
    work = (launched("fwd", 100, 1), launched("grad", 500, 3, **WORKER))
    assert kernels(capture(tmp_path, (*STEP, emitted), *work))["grad"][:3] == ("aten::mm", "", "backward")


def test_a_prefetching_thread_is_no_worker_of_the_forward(tmp_path):
    """While the main thread launches two kernels of the forward pass, another thread copies one batch."""
    work = (launched("a", 100, 1), launched("b", 200, 2), launched("prefetch", 150, 3, **WORKER))
    assert kernels(capture(tmp_path, STEP, *work))["prefetch"][0] == "(no op)"


def test_with_two_ranges_open_nothing_is_guessed(tmp_path):
    other = span("evaluate", 450, 700, globalTid=tid(7, 50))
    work = (launched("fwd", 100, 1), launched("grad", 500, 3, **WORKER))
    assert kernels(capture(tmp_path, (*STEP, other), *work))["grad"][0] == "(no op)"


def test_the_time_of_the_waiting_range_is_that_of_its_workers(tmp_path):
    work = (launched("fwd", 100, 1), launched("a", 500, 3, **WORKER), launched("b", 600, 4, **WORKER))
    tables = rows_of(capture(tmp_path, STEP, *work).events).tables
    keys = frame(tables["op_key"])
    times = {keys[row["op_key"]]["name"]: int(row["device_total_ns"]) for row in frame(tables["op"])}
    assert times["backward"] == 40
    assert times["forward"] == 20


def test_doctor_says_what_other_threads_launched(tmp_path):
    """Of 80 ns, the main thread launches 20 in a range and 20 after it, a worker 40 while two threads have one open."""
    other = span("evaluate", 450, 700, globalTid=tid(7, 50))
    work = (
        launched("fwd", 100, 1),
        launched("a", 500, 2, **WORKER),
        launched("b", 600, 3, **WORKER),
        launched("late", 950, 4),
    )
    path = write(tmp_path / "a.sqlite", tables_of((*STEP, other), *work))
    (found,) = examine([path]).captures
    assert found.warnings[-1] == (
        "60 ns of 80 ns device time (75.0 %) was launched in no NVTX range and belongs to no operator, module or phase:"
        " it is the row (no op); 40 ns of it by threads without a range while others had one open"
    )


def test_doctor_is_silent_where_all_work_is_in_a_range(tmp_path):
    path = write(tmp_path / "a.sqlite", tables_of(STEP, launched("fwd", 100, 1), launched("a", 500, 3, **WORKER)))
    (found,) = examine([path]).captures
    assert not [text for text in found.warnings if "no NVTX range" in text]


def test_work_in_no_range_is_counted_in_a_note(tmp_path):
    """One of three kernels, 20 of 60 ns, was launched after the last range."""
    work = (launched("fwd", 100, 1), launched("bwd", 500, 2), launched("late", 950, 3))
    path = write(tmp_path / "a.sqlite", tables_of(STEP, *work))
    (note,) = [note for note in show(None, str(path)).notes if "no NVTX range" in note]
    assert "20 ns of 60 ns device time (33.3 %)" in note
