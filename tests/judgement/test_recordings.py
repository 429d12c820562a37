"""Runs that were recorded differently are no baseline for each other, and no news."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.regressions.made import runs
from tracker.judgement import explain, findings, gate_of_findings, history, lines_of, update
from tracker.judgement.recorded import split
from tracker.results import FindingsOptions, HistoryOptions
from tracker.results.findings import STATES
from tracker.results.recording import Recording, rests_on
from tracker.store import open_store

STACK = {"settings": {"with_stack": "on"}}


def judged(store):
    update(store, lines_of(store))
    return findings(store, options=FindingsOptions(states=STATES, every=True))


@pytest.mark.parametrize(
    ("first", "second", "slower"),
    [({}, STACK, 1.3), (STACK, {}, 1 / 1.3), ({}, {"memory": [("op00", 512)]}, 1.3)],
    ids=["stacks on", "stacks off", "memory on"],
)
def test_a_setting_makes_no_finding(store, first, second, slower):
    """The host waits 20 ms longer in each step with the setting, and no operator is slower."""
    waits = {1.3: (0, 20_000_000), 1 / 1.3: (20_000_000, 0)}[slower]
    runs(store, "v1", count=5, idle_ns=waits[0], **first)
    runs(store, "v2", count=4, start=5, idle_ns=waits[1], **second)
    found = judged(store)
    assert len(found.findings) == 0 and gate_of_findings(found).code == 0
    assert history(store, options=HistoryOptions(key="step")).points["baseline_verdict"].isna().all()


def test_history_says_which_setting_and_what_to_do(store):
    runs(store, "v1", count=4)
    runs(store, "v2", count=3, start=4, **STACK)
    judged(store)
    (note,) = history(store, options=HistoryOptions(key="step")).notes
    assert note == (
        "v2 is compared with no run before it where the settings matter: with_stack off -> on (recording Python "
        "stacks makes host times longer). Record both with the same with_stack to compare them."
    )


WITH_STACK = (
    "v2 is compared with no run before it where the settings matter: with_stack off -> on (recording Python stacks "
    "makes host times longer). Record both with the same with_stack to compare them."
)


def test_findings_say_what_was_not_judged_for_its_settings(store):
    runs(store, "v1", count=4)
    runs(store, "v2", count=3, start=4, **STACK)
    assert judged(store).notes == (WITH_STACK,)


def test_findings_name_the_line_of_such_a_sentence(store):
    """bert was recorded alike throughout."""
    runs(store, "v1", count=4)
    runs(store, "v2", count=3, start=4, **STACK)
    runs(store, "v1", count=2, workload="bert")
    runs(store, "v2", count=2, start=2, workload="bert")
    (note,) = judged(store).notes
    assert note == f"gpt, NVIDIA H100: {WITH_STACK}"


def test_rows_say_how_runs_were_recorded_where_settings_do_not(store):
    """v2 has allocations, which no setting states."""
    runs(store, "v1", count=4)
    runs(store, "v2", count=3, start=4, memory=[("op00", 512)])
    (note,) = judged(store).notes
    assert note == history(store, options=HistoryOptions(key="step")).notes[0]
    assert note.startswith("v2 is compared with no run before it where the settings matter: profile_memory off -> on")


def test_explain_has_the_sentence_of_its_line(store):
    """op07 is slower since v2; v3 has stacks, so that it decides nothing of host times."""
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 2.0}, count=4, start=5)
    runs(store, "v3", {"op07": 2.0}, count=3, start=9, **STACK)
    number = int(judged(store).findings["finding_id"].iloc[0])
    (note,) = explain(store, number).notes
    assert note == WITH_STACK.replace("v2", "v3")


def test_a_slower_operator_is_found_after_runs_recorded_differently(store):
    """v2 waits with stacks, v3 is as v1 but op07 takes twice as long: judged by v1, and dated to v3."""
    runs(store, "v1", count=5)
    runs(store, "v2", count=4, start=5, idle_ns=20_000_000, **STACK)
    runs(store, "v3", {"op07": 2.0}, count=4, start=9, idle_ns=8_000_000)
    found = judged(store).findings
    confirmed = found[found["state"] == "new"]
    assert {"op07", "step"} <= set(confirmed["name"]) and set(confirmed["version"]) == {"v3"}
    step = confirmed[confirmed["name"] == "step"].iloc[0]
    assert step["baseline_runs"] == "1 2 3 4 5"


def test_a_suspicion_waits_for_runs_recorded_alike(store):
    """The first run of v3 suspects the step; two runs with stacks in between decide nothing."""
    runs(store, "v1", count=5)
    runs(store, "v2", count=1, start=5, idle_ns=20_000_000)
    runs(store, "v2", count=2, start=6, idle_ns=40_000_000, **STACK)
    found = judged(store).findings
    assert set(found[found["name"] == "step"]["state"]) == {"suspect"}
    runs(store, "v2", count=2, start=8, idle_ns=20_000_000)
    step = judged(store).findings.set_index("name").loc["step"]
    assert (step["state"], step["candidate_runs"]) == ("new", "6 9 10")


@pytest.mark.slow
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_order_in_which_runs_come_makes_no_difference(order):
    """Of each version one run first, then the others in any order: the findings are the same."""

    def filled(order):
        parts = [
            {"version": "v1", "count": 4, "start": 1},
            {"version": "v2", "count": 3, "start": 6, "idle_ns": 20_000_000, **STACK},
            {"version": "v3", "changed": {"op07": 2.0}, "count": 3, "start": 10, "idle_ns": 8_000_000},
        ]
        with open_store("sqlite://") as store:
            for part in parts:
                runs(store, **{**part, "count": 1, "start": part["start"] - 1})
            for at in order:
                runs(store, **parts[at])
                judged(store)
            rows = judged(store).findings
            return sorted(rows[["name", "kind", "version", "state"]].itertuples(index=False, name=None))

    assert filled(order) == filled((0, 1, 2))
    assert ("op07", "op", "v3", "new") in filled(order)


def test_kernels_and_device_times_do_not_rest_on_stacks():
    one, other = Recording(timeline="device"), Recording(timeline="device", stack="on")
    for kind, metric in (("kernel", "total_ns"), ("op", "device_self_ns"), ("run", "compute_ns")):
        measure = rests_on(kind, metric, "device")
        assert one.sign(measure) == other.sign(measure)
    for kind, metric in (("api", "self_ns"), ("run", "duration_ns"), ("op", "host_self_ns")):
        measure = rests_on(kind, metric, "device")
        assert one.sign(measure) != other.sign(measure)


@given(st.lists(st.sampled_from(["on", "off"]), min_size=1, max_size=6), st.integers(0, 2**12))
def test_rows_of_recordings_hold_each_value_once(stacks, seed):
    """However runs were recorded: the rows of a series add up to it, and no row mixes recordings."""
    numbers = np.random.default_rng(seed).uniform(1, 2, (3, len(stacks)))
    numbers[numbers < 1.2] = np.nan
    keys = [("op", "host_self_ns", "a", "", ""), ("kernel", "total_ns", "b", "", ""), ("run", "e2e_ns", "e2e", "", "")]
    made = split(keys, numbers, numbers, [Recording(timeline="device", stack=stack) for stack in stacks])
    for at in range(len(keys)):
        own = made.values[made.origin == at]
        assert ((~np.isnan(own)).sum(axis=0) == ~np.isnan(numbers[at])).all()
        assert np.array_equal(np.nansum(own, axis=0), np.nan_to_num(numbers[at]))
        for row in own:
            mixed = {stack for stack, value in zip(stacks, row, strict=True) if not np.isnan(value)}
            assert at == 1 or len(mixed) <= 1
