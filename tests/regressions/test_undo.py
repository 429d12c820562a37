"""A mark is taken back: what it changed is as before, and who gave it and who took it back can still be read."""

from __future__ import annotations

import pytest

import tracker
from tests.regressions import made
from tracker.compare import diff, gate_of_diff
from tracker.errors import UsageError
from tracker.regressions.inbox import found_rows
from tracker.regressions.judgement import tracks_of, update
from tracker.store import runs as edits

pytestmark = pytest.mark.postgres


@pytest.fixture
def track(store):
    """In v2 op07 takes 3 ms instead of 1: incident 1, with the step, op07 and its shapes."""
    made.runs(store, "v1")
    made.runs(store, "v2", {"op07": 3.0}, start=10)
    update(store, tracks_of(store))
    return store


def states(store):
    return {row.finding_id: row.state for row in found_rows(store) if row.finding_id is not None}


def number_of_op(store):
    """The finding of op07, of all shapes."""
    (number,) = [row.finding_id for row in found_rows(store) if row.kind == "op_name"]
    return number


def add_version(store):
    made.runs(store, "v3", {"op07": 3.0}, start=20)
    update(store, tracks_of(store))


def events_of(store, number):
    rows = tracker.explain(number, store=store).tables["events"]
    return list(rows.rows("state", "who", "reason"))[1:]


def test_an_accepted_incident_is_new_again(track):
    before = states(track)
    done = tracker.expect("I-1", reason="float64", by="ann", store=track)
    assert set(states(track).values()) == {"expected"}
    assert tracker.undo("I-1", reason="the wrong incident", by="bob", store=track) == done
    assert states(track) == before and set(before.values()) == {"new"}


def test_events_keep_the_mark_and_who_took_it_back(track):
    number = number_of_op(track)
    tracker.ack(number, reason="ticket 7", by="ann", store=track)
    tracker.undo(number, reason="the wrong finding", by="bob", store=track)
    assert events_of(track, number) == [
        ("ack, taken back", "ann", "ticket 7"),
        ("undo of ack", "bob", "the wrong finding"),
    ]


def test_each_undo_takes_one_mark_back_and_notes_stay(track):
    number = number_of_op(track)
    tracker.ack(number, reason="ticket 7", store=track)
    tracker.mute(number, until="3d", reason="later", store=track)
    tracker.note(number, reason="bisected", store=track)
    assert states(track)[number] == "muted"
    tracker.undo(number, reason="no", store=track)
    assert states(track)[number] == "acknowledged"
    tracker.undo(number, reason="no", store=track)
    assert states(track)[number] == "new"
    with pytest.raises(UsageError, match=f"finding {number} has no mark to take back; tracker explain {number}"):
        tracker.undo(number, reason="no", store=track)
    assert ("note", "bisected") in [(state, reason) for state, _, reason in events_of(track, number)]


def test_what_a_finding_covers_comes_back_with_it(track):
    number = number_of_op(track)
    done = tracker.expect(number, reason="float64", store=track)
    assert len(done) == 2, "op07 and its shapes"
    assert tracker.undo(number, reason="not intended", store=track) == done


def test_an_older_mark_of_one_finding_stays_under_an_undo_of_all(track):
    """op07 was acknowledged before all were accepted, which alone is taken back."""
    number = number_of_op(track)
    tracker.ack(number, reason="ticket 7", store=track)
    tracker.expect("I-1", reason="float64", store=track)
    tracker.undo("I-1", reason="not intended", store=track)
    found = states(track)
    assert found[number] == "acknowledged" and "expected" not in found.values()


def test_a_mark_stays_once_a_later_version_was_judged(track):
    number = number_of_op(track)
    tracker.expect(number, reason="float64", by="ann", store=track)
    add_version(track)
    before = states(track)
    with pytest.raises(UsageError, match=f"finding {number}: expect by ann cannot be taken back: v3 was judged since"):
        tracker.undo(number, reason="late", store=track)
    assert states(track) == before


def test_a_mark_on_an_old_finding_can_be_taken_back(track):
    """The finding is of v2 and the mark was given after v3: no version came since."""
    add_version(track)
    number = number_of_op(track)
    tracker.expect(number, reason="float64", store=track)
    tracker.undo(number, reason="not intended", store=track)
    assert states(track)[number] == "persisting"


def test_a_mark_follows_its_version_to_another_label(track):
    """The runs of v2 are called w2 afterwards: no version was judged since."""
    number = number_of_op(track)
    tracker.ack(number, reason="ticket 7", store=track)
    second = [run for run, version in tracker.runs(store=track)[["run_id", "version"]].to_numpy() if version == "v2"]
    edits.edit_all(track, [int(run) for run in second], version="w2")
    update(track, tracks_of(track))
    (number,) = [one for one, state in states(track).items() if state == "acknowledged"][:1]
    tracker.undo(number, reason="the wrong finding", store=track)
    assert states(track)[number] == "new"


@pytest.mark.parametrize("action", ["expect", "invalid"])
def test_a_gate_counts_again_what_is_no_longer_accepted(track, action):
    def code():
        return gate_of_diff(diff(track, "v1", "v2"), "new").code

    assert code() == 1
    getattr(tracker, action)("I-1", reason="so it is", store=track)
    assert code() == 0
    tracker.undo("I-1", reason="it is not", store=track)
    assert code() == 1


def test_a_diff_no_longer_says_that_it_was_accepted(track):
    tracker.expect("I-1", reason="float64", by="ann", store=track)
    assert "float64" in " ".join(diff(track, "v1", "v2").explanation.remarks)
    tracker.undo("I-1", reason="no", store=track)
    assert "float64" not in " ".join(diff(track, "v1", "v2").explanation.remarks)


def test_a_mark_is_taken_back_once(track, monkeypatch):
    """Two people who see the same mark: the second one is refused, and nothing is written."""
    from tracker.regressions import actions

    number = number_of_op(track)
    tracker.ack(number, reason="ticket 7", store=track)
    seen = actions._marks_of(track)
    tracker.undo(number, reason="first", store=track)
    monkeypatch.setattr(actions, "_marks_of", lambda _: seen)
    with pytest.raises(UsageError, match=f"finding {number}: another user took this back"):
        tracker.undo(number, reason="second", store=track)
    assert [reason for *_, reason in events_of(track, number)] == ["ticket 7", "first"]
