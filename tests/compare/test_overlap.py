"""Kernels at the same time as a cause of a diff: overlap that was lost or gained, and whose it is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from tests.factories import EPOCH_NS, capture, record
from tests.ranks.made import MS
from tracker.compare import diff
from tracker.reports import render
from tracker.results import Contribution
from tracker.store import Store, save_run

Kernels = dict[str, tuple[float, float]]
"""Operator -> its time, and how much of that others run beside it, ms."""


def save_kernels(store: Store, version: str, kernels: Kernels, hidden_ms: float) -> None:
    """A run of 3 steps, in which kernels hide so much of each other."""
    ops = [(name, int(total * MS)) for name, (total, _) in kernels.items()]
    rows = []
    for name, (total, beside) in kernels.items():
        rows.append((f"{name}_kernel", int(total * MS), {"op": name, "beside_ns": int(beside * MS)}))
    made = capture(steps=3, ops=ops, kernels=rows)
    whole = int((sum(total for total, _ in kernels.values()) - hidden_ms) * MS)
    steps = []
    for step in made.rows.steps:
        numbers = replace(step.breakdown, duration_ns=whole, e2e_ns=whole, compute_ns=whole, idle_ns=0)
        steps.append(replace(step, breakdown=numbers))
    own = replace(made, rows=replace(made.rows, steps=tuple(steps)))
    save_run(store, record(version, started_at_ns=EPOCH_NS), [own], formats=["torch_profiler"])


def find_overlap(store: Store, before: str = "v1", after: str = "v2") -> Contribution:
    found = diff(store, before, after).explanation
    assert sum(row.delta_ns for row in found.contributions) == found.delta_ns
    (row,) = [row for row in found.contributions if row.kind == "overlap"]
    return row


def test_lost_overlap_of_two_operators_names_both(store: Store):
    """The expert of 1 ms ran beside the matmuls of 2.4 ms; now it runs behind them."""
    save_kernels(store, "v1", {"expert": (1, 1), "mm": (2.4, 1)}, hidden_ms=1)
    save_kernels(store, "v2", {"expert": (1, 0), "mm": (2.4, 0)}, hidden_ms=0)
    row = find_overlap(store)
    assert (row.delta_ns, row.baseline_ns, row.candidate_ns) == (MS, MS, 0)
    assert row.why == "expert beside mm"
    screen = str(render(diff(store, "v1", "v2"), "text"))
    assert "kernels at the same time" in screen
    assert "expert beside mm: 1.00 -> 0.00 ms" in screen
    gained = find_overlap(store, "v2", "v1")
    assert (gained.delta_ns, gained.why) == (-MS, "expert beside mm")


def test_of_three_operators_no_pair_is_made_up(store: Store):
    """Which of the three ran beside which is not known."""
    save_kernels(store, "v1", {"expert": (1, 1), "mm": (2.4, 1), "relu": (1, 1)}, hidden_ms=1.5)
    save_kernels(store, "v2", {"expert": (1, 0), "mm": (2.4, 0), "relu": (1, 0)}, hidden_ms=0)
    assert find_overlap(store).why == "less of expert, mm, relu beside others"
    assert find_overlap(store, "v2", "v1").why == "more of expert, mm, relu beside others"


def test_a_third_operator_that_shares_makes_no_pair(store: Store):
    """A relu runs beside others as before, so that the two that lost overlap may have had it with the relu."""
    save_kernels(store, "v1", {"expert": (1, 1), "mm": (2.4, 1), "relu": (1, 1)}, hidden_ms=1.5)
    save_kernels(store, "v2", {"expert": (1, 0.5), "mm": (2.4, 0.5), "relu": (1, 1)}, hidden_ms=1)
    assert find_overlap(store).why == "less of expert, mm beside others"


def test_runs_of_an_earlier_program_say_how_much_and_not_whose(store: Store):
    save_kernels(store, "v1", {"expert": (1, 1), "mm": (2.4, 1)}, hidden_ms=1)
    save_kernels(store, "v2", {"expert": (1, 0), "mm": (2.4, 0)}, hidden_ms=0)
    with store.begin() as connection:
        connection.execute(text("UPDATE kernel SET beside_ns = NULL"))
    row = find_overlap(store)
    assert (row.delta_ns, row.why) == (MS, "")


@pytest.mark.parametrize("hidden_ms", [0, 1])
def test_overlap_that_stays_is_no_cause(store: Store, hidden_ms):
    save_kernels(store, "v1", {"expert": (1, 1), "mm": (2, 1)}, hidden_ms=hidden_ms)
    save_kernels(store, "v2", {"expert": (1, 1), "mm": (3, 1)}, hidden_ms=hidden_ms)
    kinds = [row.kind for row in diff(store, "v1", "v2").explanation.contributions]
    assert kinds == ["operator"]
