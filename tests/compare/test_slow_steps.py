"""What the median over steps hides: slow steps, the mean step, and the rest of a sum."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tests.factories import EPOCH_NS, breakdown, capture, record
from tests.ranks.made import MS
from tests.ranks.made import rank as rank_of_job
from tracker.compare import diff, show
from tracker.profile import Capture, StepRow
from tracker.reports import render
from tracker.store import Store, save_run


def save_steps(store: Store, *parts: tuple[int, int], number: int = 0) -> None:
    """A run whose steps compute and idle for so many ns."""
    rows = tuple(
        StepRow(at, at, breakdown(duration_ns=sum(own), e2e_ns=sum(own), compute_ns=own[0], idle_ns=own[1]), 1)
        for at, own in enumerate(parts)
    )
    made = capture(steps=len(parts), ops=(), kernels=())
    save_run(
        store,
        record("v1", started_at_ns=EPOCH_NS + number),
        [replace(made, rows=replace(made.rows, steps=rows))],
        formats=["torch_profiler"],
    )


def test_a_slow_step_is_a_row_with_its_cause(memory_store: Store):
    """The third step takes 90 ns, 70 more than the median of 20, and computes for all of that."""
    save_steps(memory_store, (10, 0), (20, 0), (90, 0))
    found = diff(memory_store, "v1", "v1")
    values = found.overall.set_index("metric")["baseline_value"]
    assert (values["step_ns"], values["mean_step_ns"], values["slow_steps"]) == (20, 40, 1)
    (slow,) = found.explanation.candidate_slow_steps
    assert (slow.name, slow.reason) == ("step 2", "+70 ns compute")
    assert found.explanation.baseline_slow_steps == show(memory_store, "v1").slow_steps == (slow,)


def test_a_run_without_slow_steps_counts_in_their_number(memory_store: Store):
    """One run has 1 slow step, one has none: half a step."""
    save_steps(memory_store, (10, 0), (20, 0), (90, 0))
    save_steps(memory_store, (20, 0), (20, 0), (20, 0), number=1)
    values = diff(memory_store, "v1", "v1").overall.set_index("metric")["baseline_value"]
    assert values["slow_steps"] == 0.5


def test_parts_and_rest_sum_to_the_step(memory_store: Store):
    save_steps(memory_store, (10, 5), (20, 0), (30, 40))
    values = diff(memory_store, "v1", "v1").overall.set_index("metric")["baseline_value"]
    assert (values["e2e_ns"], values["compute_ns"], values["idle_ns"], values["rest_ns"]) == (20, 20, 5, -5)


def test_steady_steps_have_neither_note_nor_rest(memory_store: Store):
    save_steps(memory_store, (10, 5), (10, 5))
    found = diff(memory_store, "v1", "v1")
    assert "rest_ns" not in found.overall["metric"].tolist()
    assert found.notes == ()


def list_slow_steps(store: Store, reference: str = "v1") -> list[tuple[str, str]]:
    return [(one.name, one.reason) for one in show(store, reference).slow_steps]


def save_loading(store: Store, version: str, *idle_ms: float, number: int = 0) -> None:
    """A run whose steps compute for 10 ms and idle, waiting for their data by the loader's own time."""
    made = capture(steps=len(idle_ms), ops=(), kernels=())
    rows = []
    for at, idle in enumerate(idle_ms):
        whole, waits = int((10 + idle) * MS), int(idle * MS)
        numbers = breakdown(
            duration_ns=whole, e2e_ns=whole, compute_ns=10 * MS, exposed_communication_ns=0, exposed_copy_ns=0,
            idle_ns=waits, data_loading_ns=waits, data_loading_idle_ns=waits,
        )  # fmt: skip
        rows.append(StepRow(at, at, numbers, 1))
    own = replace(made, rows=replace(made.rows, steps=tuple(rows)))
    save_run(store, record(version, started_at_ns=EPOCH_NS + number), [own], formats=["torch_profiler"])


def test_a_step_that_waits_for_data_says_so_without_causes_of_idle(memory_store: Store):
    save_loading(memory_store, "v1", 0, 0, 0, 200)
    assert list_slow_steps(memory_store) == [("step 3", "+200.00 ms data loading")]
    text = str(render(show(memory_store, "v1"), "text"))
    assert "step 3     210.00 ms  +200.00 ms data loading" in text
    assert "They make the mean step 50.00 ms longer than the median step." in text


def test_causes_of_the_mean_add_up_beside_those_of_the_median(memory_store: Store):
    """Of three runs one has a step of 210 ms among three of 10: the geometric mean of 60, 10 and 10 is 18.17 ms."""
    for number in range(3):
        save_loading(memory_store, "v1", 0, 0, 0, 0, number=number)
        save_loading(memory_store, "v2", 0, 0, 0, 200 if number == 1 else 0, number=10 + number)
    found = diff(memory_store, "v1", "v2").explanation
    assert found.delta_ns == 0
    mean = found.mean
    assert mean is not None
    assert (mean.baseline_ns / MS, round(mean.candidate_ns / MS, 2)) == (10, 18.17)
    assert mean.causes[0].name == "data loading"
    assert mean.causes[0].delta_ns == pytest.approx(mean.delta_ns)
    assert sum(cause.delta_ns for cause in mean.causes) == mean.delta_ns
    assert [one.name for one in found.candidate_slow_steps] == ["step 3 of run:4"]


def test_slow_steps_of_the_baseline_alone_are_its_own(memory_store: Store):
    save_loading(memory_store, "v1", 0, 0, 0, 200)
    save_loading(memory_store, "v2", 0, 0, 0, 0, number=1)
    found = diff(memory_store, "v1", "v2")
    assert (len(found.explanation.baseline_slow_steps), found.explanation.candidate_slow_steps) == (1, ())
    assert found.explanation.mean is not None
    assert found.explanation.mean.delta_ns == -50 * MS
    assert "v1: step 3  210.00 ms  +200.00 ms data loading" in str(render(found, "text"))


def test_a_mean_that_changed_as_the_median_has_no_causes_of_its_own(memory_store: Store):
    save_loading(memory_store, "v1", 0, 0, 0, 0)
    save_loading(memory_store, "v2", 5, 5, 5, 5, number=1)
    assert diff(memory_store, "v1", "v2").explanation.mean is None


def test_many_slow_steps_are_counted_behind_the_slowest(memory_store: Store):
    save_loading(memory_store, "v1", *[0] * 11, 10, 20, 30, 40, 50)
    text = str(render(show(memory_store, "v1"), "text"))
    assert [f"step {number} " in text for number in (15, 14, 13, 12, 11)] == [True, True, True, False, False]
    assert "and 2 more" in text


def test_a_slow_step_that_no_part_explains_names_none(memory_store: Store):
    """It is longer by 30 ms: 10 each of compute, copies and idle time."""
    rows = []
    for at, more in enumerate((0, 0, 0, 10)):
        numbers = breakdown(
            duration_ns=(30 + 3 * more) * MS, e2e_ns=(30 + 3 * more) * MS, compute_ns=(10 + more) * MS,
            exposed_communication_ns=0, exposed_copy_ns=(10 + more) * MS, idle_ns=(10 + more) * MS,
        )  # fmt: skip
        rows.append(StepRow(at, at, numbers, 1))
    made = capture(steps=4, ops=(), kernels=())
    own = replace(made, rows=replace(made.rows, steps=tuple(rows)))
    save_run(memory_store, record("v1"), [own], formats=["torch_profiler"])
    assert list_slow_steps(memory_store) == [("step 3", "+30.00 ms, no part explains half of it")]


def waiting_rank(number: int, waits_ms: tuple[int, ...]) -> Capture:
    """A rank that computes for 10 ms of each step, and else is in a collective in which it waits."""
    steps_ms = [10 + wait for wait in waits_ms]
    made = rank_of_job(number, [10] * len(waits_ms), steps_ms, communication=[("all_reduce", 1)], world_size=2)
    table = made.rows.tables["communication"]
    waits = np.array([wait * MS for wait in waits_ms])
    table |= {name: waits.copy() for name in ("total_ns", "exposed_ns", "wait_ns", "exposed_wait_ns")}
    return made


def test_a_step_that_waits_for_other_ranks_says_so(memory_store: Store):
    save_run(memory_store, record("v1"), [waiting_rank(0, (1, 1, 1, 801))], formats=["ascend_text"])
    reason = "+800.00 ms waiting for other ranks (exposed communication)"
    assert list_slow_steps(memory_store) == [("step 3", reason)]


def test_of_several_slow_ranks_the_one_that_does_not_wait_is_named(memory_store: Store):
    """In step 3 rank 1 computes for 800 ms more, and rank 0 waits for it."""
    late = rank_of_job(1, [10, 10, 10, 810], [11, 11, 11, 811], world_size=2)
    save_run(memory_store, record("v1"), [waiting_rank(0, (1, 1, 1, 801)), late], formats=["ascend_text"])
    assert list_slow_steps(memory_store) == [("step 3 of rank 1", "+800.00 ms compute (2 ranks were slow in it)")]


def test_a_slow_interval_of_a_log_says_of_how_many_steps_it_is_the_mean(memory_store: Store):
    """A log that says no parts, and then one that says how long steps wait for their data."""
    for version, loading in (("v1", None), ("v2", 90 * MS)):
        rows = []
        for at, whole in enumerate((100, 100, 100, 200)):
            own = loading if loading is None or whole == 200 else 0
            numbers = breakdown(timeline="host", duration_ns=whole * MS, data_loading_ns=own)
            rows.append(StepRow(at * 50, at, numbers, steps=50))
        made = capture(steps=4, ops=(), kernels=())
        own_rows = replace(made.rows, steps=tuple(rows), overall=breakdown(timeline="host"))
        save_run(memory_store, record(version), [replace(made, rows=own_rows)], formats=["training_log"])
    name = "step 150 (mean of 50 steps)"
    assert list_slow_steps(memory_store, "v1") == [(name, "+100.00 ms, not split by the source")]
    assert list_slow_steps(memory_store, "v2") == [(name, "+90.00 ms data loading")]
