"""What `explain` says of one finding beside its tests."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.factories import EPOCH_NS, capture, record
from tests.regressions.made import runs
from tests.regressions.test_judgement import judge
from tracker.regressions.explain import explain
from tracker.regressions.inbox import findings
from tracker.store import save_run


def number_of(store, name):
    rows = findings(store).tables["findings"].records()
    return next(row["finding_id"] for row in rows if row["name"] == name)


def test_run_that_was_left_out_is_named(store):
    for number in range(3):
        runs(store, f"v{number + 1}", count=2, start=2 * number)
    runs(store, "v4", {"op07": 3.0}, count=1, start=6)
    runs(store, "v4", count=1, start=7)
    runs(store, "v5", {"op07": 1.3}, count=2, start=8)
    judge(store)
    found = explain(store, number_of(store, "op07"))
    assert found.finding.version == "v5"
    runs_before = {row["run_id"] for row in found.tables["runs"].records() if row["side"] == "baseline"}
    assert runs_before == {1, 2, 3, 4, 5, 6, 8}
    (note,) = (note for note in found.notes if "left out" in note)
    assert note.startswith("Run 7 of v4 is left out of the baseline: +")
    assert "tracker runs exclude 7" in note


def test_nothing_is_left_out_of_a_quiet_level(store):
    for number in range(4):
        runs(store, f"v{number + 1}", {"op07": 1.3} if number == 3 else None, count=2, start=2 * number)
    judge(store)
    assert not any("left out" in note for note in explain(store, number_of(store, "op07")).notes)


def conditions_of(found):
    return {row["test"]: row for row in found.tables["tests"].records()}


def test_drift_that_stays_says_what_to_measure(store):
    for number in range(4):
        runs(store, f"v{number + 1}", start=3 * number, shared=1.0 if number < 2 else 1.12)
    judge(store)
    found = explain(store, number_of(store, "step"))
    assert (found.finding.change, found.finding.verdict) == ("machine", "DRIFT")
    machine = conditions_of(found)["machine"]
    assert machine["passes"] and round(machine["value"], 2) == 0.12
    assert any(note.startswith("All operators moved together") and "Measure v2 again" in note for note in found.notes)


def test_hosts_that_share_no_run_are_named(store):
    for number in range(4):
        host = "node-a" if number < 2 else "node-b"
        runs(store, f"v{number + 1}", start=3 * number, shared=1.0 if number < 2 else 1.12, host=host)
    judge(store)
    found = explain(store, number_of(store, "step"))
    assert (found.finding.change, found.finding.verdict) == ("host", "REGRESSED")
    (note,) = (note for note in found.notes if "host" in note)
    assert note.startswith("The host changed with it (node-a to node-b in all runs)")


def test_level_of_two_runs_says_whose_noise_counts(store):
    for number, factor in enumerate((None, None, None, 1.5, 3.0)):
        changed = {"op07": factor} if factor else None
        runs(store, f"v{number + 1}", changed, count=2, start=2 * number)
    judge(store)
    rows = findings(store).tables["findings"].records()
    number = next(row["finding_id"] for row in rows if (row["name"], row["version"]) == ("op07", "v5"))
    before = conditions_of(explain(store, number))["runs before"]
    assert (before["value"], before["limit"], before["passes"]) == (2, 2, True)
    assert before["meaning"].endswith("with the noise of the level before that")


@pytest.mark.slow  # 30 runs in a database
@pytest.mark.parametrize(("count", "factor", "version", "most_p"), [(1, 1.04, "v16", 1e-4), (2, 1.05, "v08", 1e-6)])
def test_late_finding_is_explained_by_its_own_tests(memory_store, count, factor, version, most_p):
    """op00 takes 4 or 5 % longer from run 17 on, within the noise of three runs: all operators vary by 2 to 3 %."""
    pattern = (1.0, 1.0, 1.02, 0.98)
    for at in range(30):
        changed = {f"op{row:02}": 1 + ((7 * at + 5 * row) % 11 - 5) * 0.006 for row in range(1, 40)}
        changed["op00"] = 4 * pattern[at % 4] * (factor if at >= 16 else 1.0)
        runs(memory_store, f"v{at // count:02}", changed, count=1, start=at)
    judge(memory_store)
    rows = findings(memory_store).tables["findings"].records()
    number = next(row["finding_id"] for row in rows if row["name"] == "op00")
    found = explain(memory_store, number)
    assert (found.finding.change, found.finding.version) == ("late", version)
    rows = conditions_of(found)
    assert rows["q"]["meaning"] == "chance (p), times the places of the split" and rows["q"]["limit"] == most_p
    assert rows["range"]["meaning"].endswith("but for one pair in eight")
    assert all(row["passes"] is not False for row in rows.values())


def test_drift_of_explained_runs_is_that_of_the_decision(store):
    for number in range(3):
        runs(store, f"v{number + 1}", start=3 * number)
    runs(store, "v4", {"op07": 1.3}, start=9, shared=1.1)
    judge(store)
    found = explain(store, number_of(store, "op07"))
    drifts = {row["side"]: round(row["shared_factor"], 1) for row in found.tables["runs"].records()}
    assert drifts == {"": 0.0, "baseline": 0.0, "candidate": 0.1}


def test_run_after_a_change_is_not_of_its_baseline(store):
    for number in range(2):
        runs(store, f"v{number + 1}", count=3, start=3 * number)
    runs(store, "v3", {"op07": 1.5}, count=3, start=6)
    runs(store, "v4", {"op07": 4.0}, count=1, start=9)
    judge(store)
    assert not any("left out" in note for note in explain(store, number_of(store, "op07")).notes)


@pytest.mark.slow  # 30 runs in a database
def test_late_finding_names_the_statistic_of_its_decision(memory_store):
    """Of the times by calls the median is the steadier one before v16, and the quartile from then on, which decides."""
    pattern = (0.0, 0.0, 1.0, -1.0)
    for at in range(30):
        is_after = at >= 16
        level_ns = 4_000_000 * (1.04 if is_after else 1.0)
        spreads = (0.04, 0.02, 0.03) if is_after else (0.04, 0.022, 0.02)
        own, by_quartile, by_median = (int(level_ns * (1 + spread * pattern[at % 4])) for spread in spreads)
        times = {"host_self_ns": own, "self_by_quartile_ns": by_quartile, "self_by_median_ns": by_median}
        others = [(f"op{row:02}", 500_000 + 3_000 * ((7 * at + 5 * row) % 11 - 5)) for row in range(1, 40)]
        made = capture(ops=[("op00", own, times), *others], kernels=[], steps=3, step_ns=60_000_000)
        on_host = replace(made.rows.overall, timeline="host")
        steps = tuple(replace(step, breakdown=on_host) for step in made.rows.steps)
        made = replace(made, rows=replace(made.rows, overall=on_host, steps=steps))
        started = record(f"v{at:02}", started_at_ns=EPOCH_NS + at * 10**12)
        save_run(memory_store, started, [made], formats=["torch_profiler"])
    judge(memory_store)
    found = explain(memory_store, number_of(memory_store, "op00"))
    assert (found.finding.change, found.finding.version) == ("late", "v16")
    assert "by the lower quartile of the calls" in conditions_of(found)["change"]["meaning"]
