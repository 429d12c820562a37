"""Findings under their incident: what is told of them, how a change adds up, and what users can say."""

from __future__ import annotations

from collections import Counter

import pandas as pd
import pytest
from sqlalchemy import event, text

from tests.regressions.made import runs
from tracker.errors import UsageError
from tracker.judgement import Wish, act, explain, findings, lines_of, settle, update
from tracker.reports import render_explained
from tracker.results import STATES, FindingsOptions
from tracker.store import queries
from tracker.store import runs as edits

DAY = 86_400 * 10**9

PARTS = (
    "operators", "new", "gone", "drift", "others", "free", "exposed_communication", "exposed_copy", "rest",
)  # fmt: skip
"""What the change of a step is made of."""


def follow(store):
    update(store, lines_of(store))


def found(store, **chosen):
    return findings(store, options=FindingsOptions(**chosen))


def slower(store, version="v2", factor=1.5, start=3, count=3, **more):
    """`count` runs of a version in which op07 takes `factor` times its 1 ms; a step is 40 such ops."""
    runs(store, version, {"op07": factor}, start=start, count=count, **more)
    follow(store)


@pytest.fixture
def regressed(store):
    """Version v2 is slower than v1 by half of op07."""
    runs(store, "v1")
    slower(store)
    return store


def wish(action, reason="because", when_ns=10 * DAY, **more):
    return Wish(action, "ann", when_ns, reason, **more)


def the_finding(store, **chosen):
    (row,) = found(store, **chosen).findings.to_dict("records")
    return row


def test_a_slower_op_is_one_finding_that_covers_its_shapes_in_one_incident(regressed):
    told = found(regressed)
    row = the_finding(regressed)
    assert (row["kind"], row["name"], row["state"], row["is_new"]) == ("op_name", "op07", "new", True)
    assert (row["covers"], told.hidden) == (1, 1)
    assert row["ratio"] == pytest.approx(0.5, abs=0.02)
    assert row["delta"] == pytest.approx(500_000, abs=20_000)
    assert (row["cause"], row["version"], row["good_version"]) == ("slower calls", "v2", "v1")
    assert found(regressed, every=True).hidden == 0
    (incident,) = told.incidents.to_dict("records")
    assert (incident["version"], incident["direction"], incident["findings"]) == ("v2", "regression", 1)
    assert incident["causes"] == "slower calls"


def test_the_change_of_the_step_adds_up(regressed):
    (incident,) = found(regressed).incidents.to_dict("records")
    parts = [incident[f"{name}_ns"] for name in PARTS]
    known = [part for part in parts if not pd.isna(part)]
    assert sum(known) == pytest.approx(incident["step_delta_ns"], abs=1)
    assert incident["step_delta_ns"] == pytest.approx(
        incident["candidate_step_ns"] - incident["baseline_step_ns"], abs=1
    )
    assert incident["operators_ns"] == pytest.approx(500_000, abs=20_000)
    unexplained = incident["rest_ns"] + incident["others_ns"]
    assert incident["explained_share"] == pytest.approx(1 - unexplained / incident["step_delta_ns"])


def test_what_got_faster_with_the_same_version_is_part_of_its_incident(store):
    """v2: op07 takes 1 ms more, and op09 half a ms less: half a ms in all."""
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 2.0, "op09": 0.5}, start=5)
    follow(store)
    shown = found(store)
    (incident,) = shown.incidents.to_dict("records")
    assert (incident["direction"], incident["findings"]) == ("regression", 2)
    assert {*shown.findings["direction"]} == {"regression", "improvement"}
    assert incident["operators_ns"] == pytest.approx(500_000, abs=50_000)
    assert (incident["gain_ns"], incident["loss_ns"]) == pytest.approx((-500_000, 1_000_000), abs=30_000)


def test_what_got_slower_in_a_version_that_is_faster_is_a_note_of_its_incident(store):
    """v2: op07 takes half a ms more, and op09 a ms less. Nobody has to be woken for that."""
    runs(store, "v1", {"op09": 4.0}, count=5)
    runs(store, "v2", {"op07": 1.5, "op09": 3.0}, start=5)
    follow(store)
    shown = found(store)
    (incident,) = shown.incidents.to_dict("records")
    assert (incident["direction"], incident["severity"]) == ("improvement", "info")
    assert incident["operators_ns"] == pytest.approx(-500_000, abs=50_000)
    assert shown.findings.set_index("name").loc["op07", "direction"] == "regression"


def test_what_came_and_went_has_parts_of_its_own(store):
    """v2 does the work of op09 (1 ms) in op40 (3 ms)."""
    runs(store, "v1", count=5)
    runs(store, "v2", {"op40": 3_000_000}, without=("op09",), start=5)
    follow(store)
    (incident,) = found(store).incidents.to_dict("records")
    assert (incident["gone_ns"], incident["new_ns"]) == pytest.approx((-1_000_000, 3_000_000), abs=60_000)
    assert incident["operators_ns"] == 0.0
    assert sum(incident[f"{name}_ns"] for name in PARTS if not pd.isna(incident[f"{name}_ns"])) == pytest.approx(
        incident["step_delta_ns"], abs=1
    )


def test_one_run_is_a_suspicion_of_no_incident_and_the_next_two_decide(store):
    runs(store, "v1")
    slower(store, count=1)
    told = found(store)
    assert told.incidents.empty
    assert set(told.findings["state"]) == {"suspect"}
    runs(store, "v3", start=4, count=2)
    follow(store)
    assert found(store).findings.empty
    cleared = found(store, states=("normal",)).findings
    assert "op07" in set(cleared["name"])


def test_a_finding_of_an_older_version_is_not_new(regressed):
    slower(regressed, "v3", start=6)
    assert found(regressed, only_new=True).findings.empty
    assert the_finding(regressed)["state"] == "persisting"


def test_what_comes_back_is_a_finding_of_the_later_version_and_the_first_one_stays_where_it_was(regressed):
    number = the_finding(regressed)["finding_id"]
    runs(regressed, "v3", start=6, count=4)
    follow(regressed)
    assert found(regressed, direction="regression").findings.empty
    recovered = found(regressed, states=("recovered",)).findings
    assert number in set(recovered["finding_id"])
    slower(regressed, "v4", start=10)
    reopened = the_finding(regressed, states=("reopened",))
    assert (reopened["version"], reopened["good_version"]) == ("v4", "v3")
    first = the_finding(regressed, states=("recovered",))
    assert (first["finding_id"], first["version"], first["reopened_in"]) == (number, "v2", "v4")
    assert first["incident_id"] != reopened["incident_id"]


def test_the_step_of_an_incident_is_measured_against_its_own_good_runs(store):
    """Eight runs of 40 ms; v2 takes 59 ms and v3 is back; in v4 another op makes it 44 ms: slower by a tenth."""
    runs(store, "v1", count=8)
    runs(store, "v2", {"op07": 20.0}, start=8)
    runs(store, "v3", start=11)
    runs(store, "v4", {"op09": 5.0}, start=14)
    follow(store)
    incidents = found(store, direction="regression", states=("new", "recovered")).incidents.set_index("version")
    step = incidents.loc["v4"]
    assert step["baseline_step_ns"] == pytest.approx(40e6, rel=0.01)
    assert step["candidate_step_ns"] == pytest.approx(44e6, rel=0.01)
    assert set(step["baseline_runs"].split()) == {"4", "5", "6", "7", "8", "12", "13", "14"}
    op09 = found(store, version="v4", kind="op_name").findings.iloc[0]
    assert {"9", "10", "11"} <= set(op09["baseline_runs"].split()), "of op09 the slow runs of op07 are good ones"


def test_where_each_version_has_one_run_the_newest_one_confirms_what_an_older_one_began(store):
    for number in range(8):
        runs(store, f"v{number}", start=number, count=1)
    for number in (8, 9):
        slower(store, f"v{number}", start=number, count=1)
    follow(store)
    assert found(store, only_new=True, direction="regression", states=("new",)).findings.empty, "not decided yet"
    slower(store, "v10", start=10, count=1)
    new = the_finding(store, only_new=True)
    assert (new["version"], new["state"], bool(new["is_new"])) == ("v8", "new", True)
    slower(store, "v11", start=11, count=1)
    assert found(store, only_new=True, direction="regression").findings.empty, "told once"


def test_an_op_that_comes_is_new_and_one_of_another_name_for_the_same_time_is_renamed(store):
    runs(store, "v1")
    runs(store, "v2", {"op03_fused": 1_000_000, "gelu": 5_000_000}, start=3, without=("op03",))
    follow(store)
    causes = found(store, every=True, kind="op").findings.set_index("name")["cause"]
    assert causes["gelu"] == "new operator"
    assert causes["op03_fused"] == "renamed, was op03"
    assert causes["op03"] == "renamed, is op03_fused"


def test_calls_of_new_shapes_make_no_call_of_before_slower(store):
    """op07 takes 1 ms in one call; v2 calls it twice more, with a shape of its own, for 3 ms: 4 ms in 3 calls."""
    runs(store, "v1", count=8)
    runs(store, "v2", more_ops=[("op07", 3_000_000, {"input_shapes": "[8]", "calls": 2})], start=8)
    follow(store)
    told = found(store)
    (row,) = told.findings[told.findings["name"] == "op07"].to_dict("records")
    assert (row["kind"], row["covers"], row["baseline_calls"], row["candidate_calls"]) == ("op_name", 1, 1, 3)
    assert row["cause"] == "more calls of new shapes"
    assert "more calls of new shapes" in told.incidents["causes"][0]


def test_what_the_next_version_made_of_the_step_is_no_part_of_this_one(store):
    """op07 is faster by half in v2, which has one run: those of v3 and v4 confirm it, in which op09 takes 4 ms more."""
    runs(store, "v1", count=10)
    runs(store, "v2", {"op07": 0.5}, start=10, count=1)
    for number in (3, 4, 5):
        runs(store, f"v{number}", {"op07": 0.5, "op09": 5.0}, start=8 + number, count=1)
    follow(store)
    (faster,) = found(store, states=("expected",), version="v2").incidents.to_dict("records")
    assert faster["candidate_runs"] == "11"
    assert faster["candidate_step_ns"] == pytest.approx(39.5e6, rel=0.01)
    (slower,) = found(store, direction="regression").incidents.to_dict("records")
    assert slower["candidate_step_ns"] == pytest.approx(43.5e6, rel=0.01)


def test_a_faster_op_is_an_improvement_and_the_baseline_of_the_next_version(store):
    runs(store, "v1")
    slower(store, factor=0.5)
    assert the_finding(store)["direction"] == "improvement"
    slower(store, "v3", factor=0.5, start=6)
    assert found(store).findings.empty
    assert the_finding(store, states=("expected",))["name"] == "op07"
    slower(store, "v4", factor=1.0, start=9)
    assert the_finding(store, direction="regression")["ratio"] == pytest.approx(1.0, abs=0.05)


def test_every_gate_is_explained_with_its_value_and_limit(regressed):
    told = explain(regressed, the_finding(regressed)["finding_id"])
    gates = told.gates.set_index("gate")
    assert gates.loc["effect", "limit"] == 0.03
    assert gates["passes"].dropna().astype(bool).all()
    assert told.runs["side"].tolist() == ["baseline"] * 3 + ["candidate"] * 3
    assert told.runs["effect"].tolist()[3:] == pytest.approx([0.5] * 3, abs=0.03)
    assert told.events["kind"].tolist() == ["suspected", "confirmed"]
    with pytest.raises(UsageError, match="there is no finding 999"):
        explain(regressed, 999)


def test_who_acknowledges_is_kept_and_it_stays_measured(regressed):
    number = the_finding(regressed)["finding_id"]
    done = act(regressed, wish("ack", "ticket 7"), finding_ids=[number])
    shapes = [row for row in found(regressed, every=True).findings.to_dict("records") if row["under"] == number]
    assert done == sorted([number, *(row["finding_id"] for row in shapes)]), "a word on an op holds for its shapes"
    assert {row["state"] for row in shapes} == {"acknowledged"}
    assert the_finding(regressed)["state"] == "acknowledged"
    last = explain(regressed, number).events.iloc[-1]
    assert (last["kind"], last["who"], last["reason"]) == ("acknowledged", "ann", "ticket 7")
    slower(regressed, "v3", start=6)
    assert the_finding(regressed)["state"] == "acknowledged"


def test_what_is_expected_becomes_the_baseline(regressed):
    number = the_finding(regressed)["finding_id"]
    act(regressed, wish("expect"), incident_ids=[found(regressed).incidents["incident_id"][0]])
    slower(regressed, "v3", start=6)
    assert found(regressed).findings.empty
    slower(regressed, "v4", factor=2.25, start=9)
    again = the_finding(regressed, kind="op_name")
    assert again["finding_id"] != number
    assert again["ratio"] == pytest.approx(0.5, abs=0.03)


def test_a_mute_ends_with_its_time_or_its_version(regressed):
    number = the_finding(regressed)["finding_id"]
    act(regressed, wish("mute", until_ns=11 * DAY), finding_ids=[number])
    assert the_finding(regressed)["state"] == "muted"
    settle(regressed, lines_of(regressed), 10 * DAY + 1)
    assert the_finding(regressed)["state"] == "muted"
    settle(regressed, lines_of(regressed), 11 * DAY)
    assert the_finding(regressed)["state"] == "new"


def test_a_mute_until_a_version_ends_with_its_first_run(regressed):
    act(regressed, wish("mute", until_version="v3"), finding_ids=[the_finding(regressed)["finding_id"]])
    assert the_finding(regressed)["until_version"] == "v3"
    slower(regressed, "v3", start=6, count=1)
    assert the_finding(regressed)["state"] == "persisting"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (wish("ack", " "), "a reason is missing"),
        (wish("mute"), "a mute needs an end that lies ahead"),
        (wish("mute", until_ns=9 * DAY), "a mute needs an end that lies ahead"),
        (wish("mute", until_version="v2"), "version 'v2' is here already"),
        (wish("unmute"), "a finding that is new cannot be changed by unmute"),
    ],
)
def test_what_cannot_be_done_says_why_and_changes_nothing(regressed, asked, words):
    number = the_finding(regressed)["finding_id"]
    with pytest.raises(UsageError, match=words):
        act(regressed, asked, finding_ids=[number])
    assert the_finding(regressed)["state"] == "new"


def test_findings_and_incidents_that_are_not_there_are_named(regressed):
    with pytest.raises(UsageError, match="there is no finding 999"):
        act(regressed, wish("ack"), finding_ids=[999])
    with pytest.raises(UsageError, match="there is no incident 999"):
        act(regressed, wish("ack"), incident_ids=[999])


def test_made_again_from_nothing_the_findings_are_the_same(regressed):
    act(regressed, wish("ack"), finding_ids=[the_finding(regressed)["finding_id"]])
    columns = ["name", "state", "change", "direction", "ratio", "q", "baseline_runs", "candidate_runs"]
    before = queries.findings(regressed)[columns]
    with regressed.begin() as connection:
        for table in ("finding_event", "finding", "incident", "followed"):
            connection.execute(text(f"DELETE FROM {table}"))
    follow(regressed)
    assert queries.findings(regressed)[columns].to_dict("records") == before.to_dict("records")


def test_findings_go_and_come_back_with_their_runs(regressed):
    ids = sorted(queries.runs(regressed)["run_id"])
    edits.exclude_all(regressed, ids[3:], "another cluster")
    follow(regressed)
    assert found(regressed, states=STATES).findings.empty
    edits.restore_all(regressed, ids[3:])
    follow(regressed)
    assert the_finding(regressed)["state"] == "new"


def test_a_purged_line_leaves_nothing(regressed):
    ids = queries.runs(regressed)["run_id"].tolist()
    lines = lines_of(regressed)
    edits.delete_all(regressed, ids, "wrong", purge=True)
    update(regressed, lines)
    assert queries.findings(regressed).empty


def test_following_twice_writes_nothing_twice(regressed):
    before = queries.findings(regressed)["finding_id"].tolist()
    follow(regressed)
    assert queries.findings(regressed)["finding_id"].tolist() == before
    events = queries.finding_events(regressed, before)
    assert len(events) == 2 * len(before)


@pytest.mark.parametrize(("shared", "words"), [(1.05, "slower calls, environment"), (1.01, "slower calls")])
def test_what_all_operators_share_is_a_cause_where_it_moved_further_than_it_does_from_run_to_run(store, shared, words):
    """Eight runs, then three in which one op is half as slow again and all of them are slower, timed on a device."""
    runs(store, "v1", count=8)
    runs(store, "v2", {"op07": 1.5}, start=8, shared=shared)
    update(store, lines_of(store))
    (incident,) = findings(store).incidents.to_dict("records")
    assert incident["shared_factor"] == pytest.approx(shared - 1, abs=0.003)
    assert incident["causes"] == words


def test_slow_creep_reads_the_same_in_every_number(store):
    """+1.8 % per version of 4 runs; v6 is 9 % above v0 to v2, the best level."""
    for number in range(7):
        runs(store, f"v{number}", {"op07": 1.018**number}, start=4 * number, count=4)
    follow(store)
    row = the_finding(store, kind="op")
    assert (row["change"], row["version"], row["good_version"]) == ("creep", "v6", "v2")
    assert row["delta"] / row["baseline_value"] == pytest.approx(row["ratio"], abs=0.01)
    (incident,) = found(store).incidents.to_dict("records")
    assert incident["operators_ns"] == incident["loss_ns"] == row["delta"] == pytest.approx(100_000, abs=10_000)
    parts = [incident[f"{name}_ns"] for name in PARTS]
    assert sum(part for part in parts if not pd.isna(part)) == pytest.approx(incident["step_delta_ns"], abs=1)
    told = explain(store, row["finding_id"])
    assert told.runs["side"].tolist() == ["baseline"] * 12 + [""] * 12 + ["candidate"] * 4
    assert told.runs["effect"].tolist()[-1] == pytest.approx(row["effect"])
    assert told.gates.set_index("gate").loc["candidate runs", "limit"] == 2


def test_what_recovers_says_what_it_waits_for(regressed):
    """v3 and v4 have one good run each."""
    slower(regressed, "v3", factor=1.0, start=6, count=1)
    slower(regressed, "v4", factor=1.0, start=7, count=1)
    row = the_finding(regressed, states=("recovering",), direction="regression")
    waits = "recovered with 4 good runs in a row, or with 2 of one version"
    assert waits in render_explained(explain(regressed, row["finding_id"]), width=140)
    slower(regressed, "v5", factor=1.0, start=8, count=2)
    row = the_finding(regressed, states=("recovered",), direction="regression")
    assert waits not in render_explained(explain(regressed, row["finding_id"]), width=140)


def test_nothing_is_asked_of_the_database_twice(regressed):
    asked = []

    def note(_connection, _cursor, statement, parameters, *_):
        asked.append((statement, str(parameters)))

    event.listen(regressed.engine, "before_cursor_execute", note)
    with regressed.reading():
        assert len(found(regressed).incidents) == 1
    event.remove(regressed.engine, "before_cursor_execute", note)
    questions = [(statement, given) for statement, given in asked if "SELECT" in statement]
    assert len(questions) > 5
    assert [question for question, times in Counter(questions).items() if times > 1] == []
