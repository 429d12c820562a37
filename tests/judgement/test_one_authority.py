"""One authority: diff, history and findings say the same of every series of every version."""

from __future__ import annotations

import numpy as np
import pytest

import tracker
from tests.judgement.test_update import judge
from tests.regressions.made import runs
from tracker.compare.baselines import baseline_of
from tracker.judgement import findings
from tracker.judgement.verdicts import verdicts_of
from tracker.results import FindingsOptions
from tracker.results.findings import STATES
from tracker.store import queries
from tracker.store.order import order_versions

SLOW, SLOWER, FAST = {"op07": 1.3}, {"op07": 1.3, "op09": 1.5}, {"op11": 0.6}
STORY = (None, None, SLOW, SLOWER, None, FAST, FAST, None)
"""What is changed in versions v1, v2, ... of three runs each."""


@pytest.fixture
def told(memory_store):
    for number, changed in enumerate(STORY):
        runs(memory_store, f"v{number + 1}", changed, start=3 * number)
    judge(memory_store)
    return memory_store


def said_by_history(store, kind="op"):
    found = {}
    for row in tracker.history("*", kind=kind, store=store).points.merge(
        tracker.history("*", kind=kind, store=store).series[["series_id", "name"]], on="series_id"
    ).itertuples():  # fmt: skip
        found[row.version, row.name] = row.baseline_verdict, row.baseline_diff, row.baseline_q
    return found


def said_by_diff(store, version, kind="op"):
    baseline, _ = baseline_of(store, version)
    sides = [[int(text.removeprefix("run:")) for text in baseline.split(",")]] if "run:" in baseline else [
        list(queries.run_ids_of_version(store, baseline))
    ]  # fmt: skip
    made = verdicts_of(store, sides[0], list(queries.run_ids_of_version(store, version)))
    return {
        key[2]: (made.columns["verdict"][at], made.columns["diff"][at], made.columns["q"][at])
        for key, at in made.places.items()
        if key[0] == kind
    }


def test_diff_and_history_say_the_same_of_every_series_of_every_version(told):
    history = said_by_history(told)
    for version in (f"v{number}" for number in range(3, 9)):
        for name, (verdict, diff, q) in said_by_diff(told, version).items():
            kept = history[version, name]
            assert kept[0] == verdict, (version, name)
            np.testing.assert_allclose([kept[1], kept[2]], [diff, q], rtol=1e-12)


def test_findings_begin_with_the_versions_that_history_calls_changed(told):
    history = said_by_history(told)
    rows = findings(told, options=FindingsOptions(states=STATES, every=True, kind="op")).findings
    assert sorted(zip(rows["name"], rows["version"], rows["verdict"], strict=True)) == [
        ("op07", "v3", "REGRESSED"),
        ("op09", "v4", "REGRESSED"),
        ("op11", "v6", "IMPROVED"),
        ("op11", "v8", "REGRESSED"),
    ]  # fmt: skip
    for name, version, verdict, ratio in zip(
        rows["name"], rows["version"], rows["verdict"], rows["ratio"], strict=True
    ):
        assert history[version, name][:2] == (verdict, pytest.approx(ratio))


def test_what_goes_back_to_a_level_of_before_says_to_which(told):
    points = tracker.history("op11", kind="op", store=told).points.set_index("version")
    assert points["baseline_verdict"][["v5", "v6", "v7", "v8"]].tolist() == [
        "UNCHANGED", "IMPROVED", "IMPROVED", "REGRESSED",
    ]  # fmt: skip
    assert points["reason"]["v8"].endswith("back to the level of v5")
    points = tracker.history("op07", kind="op", store=told).points.set_index("version")
    assert points["reason"]["v5"] == "back to the level of v2: the regression of v3 is taken back"


def test_an_improvement_that_does_not_hold_is_no_baseline(memory_store):
    """Three runs each: as ever, 40 % faster, as ever: back at its level, and no regression."""
    for number, changed in enumerate((None, None, FAST, None)):
        runs(memory_store, f"v{number + 1}", changed, start=3 * number)
    judge(memory_store)
    points = tracker.history("op11", kind="op", store=memory_store).points.set_index("version")
    assert points["baseline_verdict"]["v4"] == "UNCHANGED"
    assert points["reason"]["v4"] == "back to the level of v2: the improvement of v3 is taken back"
    rows = findings(memory_store, options=FindingsOptions(states=STATES, every=True, kind="op")).findings
    assert rows[["name", "version", "state"]].values.tolist() == [["op11", "v3", "recovered"]]


def test_a_suspicion_that_the_next_versions_confirm_is_a_change_of_its_version(memory_store):
    """One run per version: v7 is slower, and so are v8 and v9."""
    for number in range(9):
        runs(memory_store, f"v{number + 1}", SLOW if number >= 6 else None, start=number, count=1)
        judge(memory_store)
        points = tracker.history("op07", kind="op", store=memory_store).points.set_index("version")
        if number in (6, 7):
            assert points["baseline_verdict"]["v7"] == "SUSPECT"
    assert points["baseline_verdict"]["v7"] == "REGRESSED"
    assert points["reason"]["v7"] == "confirmed by the next runs"
    assert said_by_diff(memory_store, "v7")["op07"][0] == "REGRESSED"
    (row,) = findings(memory_store, options=FindingsOptions(kind="op")).findings.to_dict("records")
    assert (row["version"], row["state"]) == ("v7", "new")


def rows_of(store):
    """Verdicts and findings without the numbers that the database gives."""
    rows = findings(store, options=FindingsOptions(states=STATES, every=True)).findings
    names = ["kind", "name", "input_shapes", "direction", "change", "state", "version", "ratio", "q"]
    kept = rows[names].sort_values(names).reset_index(drop=True)
    return said_by_history(store), kept


@pytest.mark.slow
@pytest.mark.parametrize("order", [(3, 0, 6, 1, 7, 5, 4, 2), (7, 6, 5, 4, 3, 2, 1, 0)])
def test_any_order_of_ingest_gives_the_same_rows(told, order, tmp_path):
    from tracker.store import open_store

    with open_store("sqlite://") as other:
        for number in order:
            for run in (2, 0, 1):
                runs(other, f"v{number + 1}", STORY[number], start=3 * number + run, count=1)
            judge(other)
        order_versions(other, [f"v{number + 1}" for number in range(8)])
        judge(other)
        one, two = rows_of(told), rows_of(other)
        assert {key: row[0] for key, row in one[0].items()} == {key: row[0] for key, row in two[0].items()}
        assert one[1].drop(columns=["ratio", "q"]).equals(two[1].drop(columns=["ratio", "q"]))
        np.testing.assert_allclose(one[1]["ratio"].astype(float), two[1]["ratio"].astype(float), rtol=1e-9)
