"""`tracker thresholds` and `tracker calibrate --apply`, as a user types them."""

from __future__ import annotations

import json

import pytest

from tests.cli.ending import ending
from tests.regressions.made import runs
from tracker.regressions.judgement import tracks_of, update
from tracker.store import open_store


@pytest.fixture
def changed(tmp_path):
    """Eight runs of v1 and three of v2, in which op07 is 6 % slower."""
    path = tmp_path / "changed.db"
    with open_store(str(path)) as store:
        runs(store, "v1", count=8)
        runs(store, "v2", {"op07": 1.06}, count=3, start=8)
        update(store, tracks_of(store))
    return path


def found(tracker, db):
    rows = json.loads(tracker("history", "op*", "--kind", "op", "--format", "json", "--db", db).out)
    slower = {row["series_id"] for row in rows["points"] if row["verdict"] == "REGRESSED"}
    return [row["name"] for row in rows["series"] if row["series_id"] in slower]


def test_a_threshold_is_set_listed_and_taken_back(tracker, changed):
    assert found(tracker, changed) == ["op07"]
    where = ("--kind", "op", "--series", "op0*", "--db", changed)
    done = tracker("thresholds", "set", "min_ratio=10%", *where, "--reason", "bimodal", "--by", "ann").plain
    assert done.out == "min_ratio 10 % of op op0* set; 2 versions judged again.\nNext:\n  tracker findings\n"
    assert found(tracker, changed) == []
    head, row, last = tracker("thresholds", "--db", changed).out.splitlines()
    assert head.split() == [
        "threshold", "value", "kind", "series", "workload", "device", "configuration", "by", "when", "(UTC)", "reason"
    ]  # fmt: skip
    assert row.split()[:8] == ["min_ratio", "10", "%", "op", "op0*", "gpt", "all", "all"]
    assert last == "1 threshold set; all others have their defaults: tracker thresholds --help"
    (listed,) = json.loads(tracker("thresholds", "--format", "json", "--db", changed).out)["thresholds"]
    assert (listed["threshold"], listed["who"], listed["reason"]) == (0.1, "ann", "bimodal")
    done = tracker("thresholds", "unset", "min_ratio", *where).plain
    assert done.out == "min_ratio reset to default; 2 versions judged again.\nNext:\n  tracker thresholds\n"
    assert found(tracker, changed) == ["op07"]
    assert tracker("thresholds", "--db", changed).out.startswith("no thresholds are set, all have their defaults")


def test_try_shows_what_would_come_and_go_and_sets_nothing(tracker, changed):
    where = ("--kind", "op", "--series", "op0*", "--db", changed)
    text = tracker("thresholds", "try", "min_ratio=10%", *where).out
    lines = text.splitlines()
    assert lines[1].split()[:5] == ["removed", "v2", "REGRESSED", "op07", "(op)"]
    assert ending(text).startswith(
        "with min_ratio 10 % of op op0*: 0 findings added, 1 removed, 1 unchanged; nothing is set.\n"
        "Next:\n  tracker thresholds set --db "
    )
    assert text.endswith(" min_ratio=0.1 --kind op --series 'op0*' --reason \"...\"\n")
    assert found(tracker, changed) == ["op07"]
    assert tracker("thresholds", "--db", changed).out.startswith("no thresholds are set")
    (row,) = json.loads(tracker("thresholds", "try", "min_ratio=10%", *where, "--format", "json").out)["findings"]
    assert (row["movement"], row["name"], row["version"]) == ("goes", "op07", "v2")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("set", "min_ratio", "--reason", "x"), "'min_ratio' is not a threshold; write NAME=VALUE, as in min_ratio=5%"),
        (("set", "min_ratio=20", "--reason", "x"), "min_ratio cannot be 20; give a fraction (0.03, or 3%) between"),
        (("set", "window=2", "--reason", "x"), "least_base can be at most window, and window at most look_back"),
        (
            ("set", "alpha=0.01", "--kind", "op", "--reason", "x"),
            "alpha is a limit of a whole track, not of some of its",
        ),
        (("try", "gate_net=1%", "--series", "mm"), "gate_net is a limit of a whole track, not of some of its series"),
        (("try", "creep_ratio=5%"), "there is no threshold 'creep_ratio'; choose from min_ratio, min_contribution,"),
        (("try", "confirm=1.5"), "confirm cannot be 1.5; give a whole number between 1 and 10"),
        (("set", "confirm=2", "--reason", " "), "the reason ' ' says nothing; write why: --reason TEXT"),
        (("set", "confirm=2", "--reason", "x", "--workload", "bert"), "there is no workload 'bert'"),
        (("unset", "confirm"), "no threshold confirm is set for just these series and this place"),
    ],
)
def test_what_cannot_be_set_is_refused_on_one_line(tracker, changed, words, message):
    done = tracker("thresholds", *words, "--db", changed)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert message in done.err


def test_a_diff_says_by_which_limits_it_was_judged(tracker, changed):
    tracker("thresholds", "set", "confirm=4", "--reason", "noisy cluster", "--db", changed)
    out = tracker("diff", "v1", "v2", "--db", changed).out
    assert "Judged by thresholds of your own: confirm 4." in " ".join(out.split())


def test_what_a_calibration_proposes_is_set_with_a_reason(tracker, changed):
    words = ("calibrate", "v1", "--splits", "5", "--apply", "--db", changed)
    done = tracker(*words)
    assert (done.code, done.out) == (2, "")
    assert "--apply needs a reason" in done.err
    done = tracker(*words, "--reason", "eight repeats").plain
    assert done.code == 0
    assert "thresholds set: min_ratio of run, op_name, op, kernel; tracker thresholds lists them" in done.err
    listed = json.loads(tracker("thresholds", "--format", "json", "--db", changed).out)["thresholds"]
    assert {row["kind"]: row["threshold"] for row in listed}["op"] == 0.01
    assert {row["reason"] for row in listed} == {"eight repeats"}


def test_the_limits_of_runs_that_state_no_configuration_are_shown_and_taken_back(tracker, changed):
    tracker("calibrate", "v1", "--splits", "5", "--apply", "--reason", "eight repeats", "--db", changed)
    place = ("--kind", "op", "--device", "h100", "--db", changed)
    done = tracker("thresholds", "set", "min_ratio=10%", *place, "--reason", "bistable")
    assert "a threshold of a single configuration overrides it" in done.err
    out = tracker("thresholds", "--db", changed).out
    own = [line for line in out.splitlines() if " op " in line]
    assert ["none stated" in line for line in own] == [False, True], "two lines for two places"
    assert ending(out).endswith("without a stated configuration: --config ''")
    done = tracker("thresholds", "unset", "min_ratio", *place)
    again = tracker("thresholds", "unset", "min_ratio", *place).plain
    assert (done.code, again.code) == (0, 2)
    assert "tracker thresholds lists what is set; of none stated: --config ''" in again.err
    assert tracker("thresholds", "unset", "min_ratio", *place, "--config", "").code == 0
    assert [line for line in tracker("thresholds", "--db", changed).out.splitlines() if " op " in line] == []
    set_again = tracker("thresholds", "set", "min_ratio=10%", *place, "--config", "", "--reason", "x")
    assert (set_again.code, set_again.err) == (0, "")


def test_the_help_says_what_holds(tracker):
    """The help is written out, so that it costs nothing to start; it says the same as the limits themselves."""
    from tracker.results import THRESHOLDS

    said = " ".join(tracker("thresholds", "--help").out.split())
    for name, bounds in THRESHOLDS.items():
        assert f"{name} {bounds.meaning}" in said
    assert ", ".join(THRESHOLDS) in " ".join(tracker("thresholds", "set", "--help").out.split())
