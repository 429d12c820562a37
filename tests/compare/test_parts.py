"""The parts of a change where the sources say little: training logs, and summaries without times of ops."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from tests.factories import EPOCH_NS, breakdown, capture, record, save
from tests.regressions.made import runs
from tracker.compare import diff
from tracker.profile import MISSING, StepRow
from tracker.reports import render
from tracker.store import Store, save_run


def save_log(store: Store, version: str, *steps: tuple[int, int | None], number: int = 0) -> None:
    """A run of which only step times and what of them is data loading are known."""
    rows = [breakdown(timeline="host", duration_ns=step, data_loading_ns=loading) for step, loading in steps]
    one = capture(ops=[], kernels=[], started_at_ns=EPOCH_NS + number)
    whole = replace(rows[0], duration_ns=sum(step for step, _ in steps))
    placed = tuple(StepRow(place, 0, row) for place, row in enumerate(rows))
    made = replace(one, rows=replace(one.rows, overall=whole, steps=placed))
    save_run(store, record(version, started_at_ns=EPOCH_NS + number), [made], formats=["training_log"])


def parts(store: Store) -> list[tuple[str, float | None, float | None, float]]:
    found = diff(store, "v1", "v2").explanation
    assert sum(part.delta_ns for part in found.parts) == pytest.approx(found.delta_ns)
    return [(part.title, part.baseline_ns, part.candidate_ns, part.delta_ns) for part in found.parts]


def test_of_a_log_data_loading_is_a_part_of_its_own(store: Store):
    save_log(store, "v1", (100, 10), (120, 30))
    save_log(store, "v2", (150, 50), (150, 70))
    assert parts(store) == [("Data loading", 20, 60, 40), ("All but data loading", 90, 90, 0)]


def test_parts_of_several_runs_sum_to_the_step(store: Store):
    for number, (step, loading) in enumerate([(50, 10), (200, 40)]):
        save_log(store, "v1", (step, loading), (step, loading), number=number)
    save_log(store, "v2", (200, 25), (200, 25))
    loading, others = parts(store)
    assert loading == ("Data loading", pytest.approx(20), 25, pytest.approx(5))
    assert others == ("All but data loading", pytest.approx(80), 175, pytest.approx(95))


def test_a_step_that_nobody_parts_is_one_part(store: Store):
    save_log(store, "v1", (100, None), (100, None))
    save_log(store, "v2", (150, 50), (150, 50))
    assert parts(store) == [("All of it (the sources do not part it)", 100, 150, 50)]


@pytest.mark.parametrize("format", ["text", "json", "csv", "markdown"])
def test_ops_whose_time_nobody_knows_explain_nothing(store: Store, format):
    """As `nsys stats` says of ranges: how long all calls took with what was inside, and no time of their own."""
    unknown = dict.fromkeys(("host_self_ns", "device_self_ns", "device_total_ns"), MISSING)
    for version in ("v1", "v2"):
        save(store, version, ops=[("Forward", 0, {"host_total_ns": 500, **unknown})], kernels=[])
    found = diff(store, "v1", "v2")
    assert (found.explanation.causes, found.explanation.rollup) == ((), ())
    assert "nan" not in str(render(found, format)).lower().replace("nano", "")


@pytest.mark.parametrize("format", ["text", "json", "csv", "markdown", "xlsx"])
def test_a_finding_whose_time_no_row_says_any_longer_is_told_without_it(store: Store, format):
    """The samples of the runs say that op07 regressed; how long it took in its rows is gone."""
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 1.4}, start=5)
    with store.begin() as connection:
        connection.execute(text("UPDATE op SET host_self_ns = NULL, device_self_ns = NULL"))
    found = diff(store, "v1", "v2")
    (finding,) = found.explanation.findings
    assert (finding.name, finding.verdict) == ("op07", "REGRESSED")
    assert math.isnan(finding.delta_ns)
    assert render(found, format)


def test_collectives_whose_number_is_not_known_are_not_counted(store: Store):
    for version in ("v1", "v2"):
        save(store, version, communication=[("all_reduce", 1000, {"exposed_ns": 1000})])
    with store.begin() as connection:
        connection.execute(text("UPDATE communication SET calls = NULL"))
    overall = diff(store, "v1", "v2").overall.set_index("metric")
    assert overall.loc["communication_ns", ["baseline_calls", "candidate_calls"]].isna().all()
