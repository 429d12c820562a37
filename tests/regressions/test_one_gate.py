"""A version has one exit code: the same of `findings` and of a diff with the version before, whatever users said."""

from __future__ import annotations

import pytest

from tests.regressions.made import runs
from tracker.compare import diff, gate_of_diff
from tracker.regressions.actions import Word, act
from tracker.regressions.gates import gate_of_findings
from tracker.regressions.inbox import findings, found_rows
from tracker.regressions.judgement import tracks_of, update

STORIES = {
    "nothing changed": (None, None),
    "the step is slower": (None, {"op07": 5.0}),
    "operators lose 1.2 % of the step": (None, {"op07": 1.5}),
    "a loss goes on": (None, {"op07": 5.0}, {"op07": 5.0}),
    "a faster version": (None, {"op07": 1.5, **{f"op{at}": 0.5 for at in range(10, 20)}}),
}


@pytest.mark.parametrize("word", ["new", "any"])
@pytest.mark.parametrize("story", STORIES)
def test_findings_and_diff_have_one_gate(memory_store, story, word):
    for at, changed in enumerate(STORIES[story], 1):
        runs(memory_store, f"v{at}", changed, start=3 * at)
    update(memory_store, tracks_of(memory_store))

    def codes():
        one = gate_of_findings(findings(memory_store), word)
        other = gate_of_diff(diff(memory_store, f"v{at - 1}", f"v{at}"), word)
        assert one.code == other.code
        return one.code

    before = codes()
    for action, counts in (("ack", True), ("mute", True), ("expect", False)):
        ids = [row.finding_id for row in found_rows(memory_store) if row.base_state == "open"]
        if ids:
            act(memory_store, Word(action, "ann", 2 * 10**18, "so it is", until_version="v99"), finding_ids=ids)
            assert codes() == (before if counts else 0)


def test_a_single_run_of_a_slower_version_is_undecided_in_both(memory_store):
    runs(memory_store, "v1", count=4)
    runs(memory_store, "v2", {"op07": 5.0}, start=4, count=1)
    update(memory_store, tracks_of(memory_store))
    assert gate_of_findings(findings(memory_store), "new").code == 4
    assert gate_of_diff(diff(memory_store, "v1", "v2"), "new").code == 4
