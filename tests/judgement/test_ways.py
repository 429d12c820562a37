"""Runs with a profiler and runs without one, of one job: their whole-run numbers are never compared with each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import text

from tests.factories import EPOCH_NS, save
from tests.regressions.made import runs
from tracker.judgement import findings, history, lines_of, update, verdicts_of
from tracker.results import FindingsOptions, HistoryOptions
from tracker.store import queries

pytestmark = pytest.mark.slow

EVERY = FindingsOptions(states=("suspect", "new", "persisting", "normal", "recovered", "vanished"), every=True)


def logs(store, version, step_ns, *, count=3, start=0):
    """`count` training logs, without a profiler: a step of this length with 0.5 % noise."""
    ids = []
    for number in range(start, start + count):
        noise = np.exp(np.random.default_rng(1000 + number).normal(0, 0.005))
        ids += save(
            store, version, ops=[], kernels=[], steps=3, step_ns=int(step_ns * noise), settings={"profiler": "off"},
            started_at_ns=EPOCH_NS + number * 10**12,
        )  # fmt: skip
    return ids


def steps(store):
    """part -> verdicts of the step against the version before."""
    found = history(store, options=HistoryOptions(key="step"))
    parts = found.series.set_index("series_id")["part"].to_dict()
    rows = {part: [] for part in parts.values()}
    for row in found.points.itertuples():
        rows[parts[row.series_id]].append(None if pd.isna(row.baseline_verdict) else row.baseline_verdict)
    return rows


def found(store):
    return findings(store, options=EVERY).findings


def test_a_log_and_a_profile_of_one_job_are_two_series(store):
    runs(store, "v1", count=1)
    logs(store, "v1", 36_000_000, count=1, start=1)
    update(store, lines_of(store))
    assert set(steps(store)) == {"", "unprofiled"}


def test_what_a_profiler_costs_is_no_regression(store):
    """Logs of 36 ms until v1; from v2 on every other run is profiled, and its step takes 40 ms."""
    logs(store, "v1", 36_000_000, count=8)
    for number in range(8, 16):
        if number % 2:
            logs(store, "v2", 36_000_000, count=1, start=number)
        else:
            runs(store, "v2", count=1, start=number)
    update(store, lines_of(store))
    assert len(found(store)) == 0
    verdicts = steps(store)
    assert verdicts["unprofiled"][-1] == "UNCHANGED"
    assert verdicts[""][-1] is None  # no run of v1 was profiled


def test_three_logs_in_a_row_have_not_lost_what_profiles_say(store):
    runs(store, "v1", count=6)
    logs(store, "v2", 36_000_000, count=4, start=6)
    runs(store, "v3", count=4, start=10)
    update(store, lines_of(store))
    assert len(found(store)) == 0


def test_a_slower_step_is_found_in_logs_alone(store):
    runs(store, "v1", count=1)
    logs(store, "v1", 36_000_000, count=5, start=1)
    logs(store, "v2", 43_000_000, count=3, start=6)
    update(store, lines_of(store))
    (row,) = findings(store).findings.to_dict("records")
    assert (row["name"], row["part"], row["state"]) == ("step", "unprofiled", "new")
    assert row["ratio"] == pytest.approx(43 / 36 - 1, abs=0.01)
    (incident,) = findings(store).incidents.to_dict("records")
    assert incident["candidate_step_ns"] == pytest.approx(43e6, rel=0.01)


def mixed(store, *, with_logs):
    """op07 is 20 % slower from v2 on; from there on the machine is 10 % slower as well. A log beside each profile."""
    for number in range(12):
        version, factor, shared = ("v1", 1.0, 1.0) if number < 8 else ("v2", 1.2, 1.1)
        runs(store, version, {"op07": factor}, count=1, start=2 * number, shared=shared)
        if with_logs:
            logs(store, version, 36_000_000 * shared, count=1, start=2 * number + 1)
    update(store, lines_of(store))
    rows = findings(store, options=FindingsOptions(kind="op")).findings
    return [(row.name, row.state, round(row.ratio, 3)) for row in rows.itertuples()]


def test_logs_between_the_profiles_do_not_hide_a_slower_op(memory_store):
    from tracker.store import open_store

    with open_store("sqlite://") as other:
        alone = mixed(other, with_logs=False)
    beside = mixed(memory_store, with_logs=True)
    assert [row[:2] for row in alone] == [("op07", "new")]
    assert [row[:2] for row in beside] == [("op07", "new")]
    assert alone[0][2] == pytest.approx(0.2, abs=0.02)
    assert beside[0][2] == pytest.approx(0.2, abs=0.02)


def test_a_diff_judges_a_log_with_a_log_and_a_profile_with_a_profile(store):
    before = [*runs(store, "v1", count=3), *logs(store, "v1", 36_000_000, start=3)]
    after = [*runs(store, "v2", {"op07": 1.5}, count=3, start=6), *logs(store, "v2", 43_000_000, start=9)]
    table = verdicts_of(store, before, after).table.reset_index()
    words = table.set_index(["kind", "name", "part"])["verdict"]
    assert words["run", "step", "unprofiled"] == "REGRESSED"
    assert words["run", "step", ""] == "UNCHANGED"  # half an op of 40 is 1.3 % of the step
    assert words["op", "op07", ""] == "REGRESSED"
    crossed = verdicts_of(store, before[:3], after[3:]).table
    assert crossed["verdict"].isna().all()


def test_samples_of_before_are_made_again_by_their_way(store):
    (run,) = logs(store, "v1", 36_000_000, count=1)
    with store.begin() as connection:
        connection.execute(text("DELETE FROM sample"))
        connection.execute(text("UPDATE run SET sample_rules = 1"))
    update(store, lines_of(store))
    assert set(queries.samples(store, [run])["part"]) == {"unprofiled"}


def test_a_summary_of_a_profiler_is_a_third_way(store):
    save(store, "v1", settings={"profiler": "summary"})
    update(store, lines_of(store))
    assert set(steps(store)) == {"summary"}
