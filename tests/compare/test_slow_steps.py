"""What the median over steps hides: slow steps, the mean step, and the rest of a sum."""

from __future__ import annotations

from msgspec.structs import replace

from tests.factories import EPOCH_NS, breakdown, capture, record
from tracker.compare import diff, show
from tracker.profile import StepRow
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


def test_a_slow_step_is_named_with_its_cost(memory_store: Store):
    save_steps(memory_store, (10, 0), (20, 0), (90, 0))
    found = diff(memory_store, "v1", "v1")
    values = found.overall.set_index("metric")["baseline_value"]
    assert (values["step_ns"], values["mean_step_ns"], values["slow_steps"]) == (20, 40, 1)
    note = "1 step took more than 1.2 times the median, up to 4.50 times; "
    note += "they make the mean step 20 ns longer than the median step."
    assert f"v1: {note}" in found.notes
    assert note in show(memory_store, "v1").notes


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
