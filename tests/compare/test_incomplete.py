"""Captures that lost records: said under the headline, not judged, and no part of a level."""

from __future__ import annotations

import msgspec

from tests.compare.test_recordings import OPS, recorded
from tracker.compare import diff, show
from tracker.compare.gates import gate_of_diff
from tracker.profile import INCOMPLETE_SETTING, Incomplete
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.schema.series import LOST_DEVICE, LOST_OWNERS

LOST = "28 of 48 launches have no kernel: the profiler lost them"


def incomplete(*forbids: str, names: tuple[str, ...] = (), has_markers: bool = False) -> dict[str, str]:
    """The settings of a capture of which this may not be judged."""
    return {INCOMPLETE_SETTING: msgspec.json.encode(Incomplete(forbids, names, has_markers)).decode()}


def said_of(found, table, column):
    return {name: word for name, word in found.tables[table].rows("name", column) if word is not None}


def test_lost_records_make_nothing_faster(store):
    """All operators and the step of v2 take a third of the time, for most of its kernels were lost."""
    recorded(store, "v1")
    recorded(store, "v2", slower=1 / 3, settings=incomplete(LOST_DEVICE), quality_reason=LOST)
    found = diff(store, "v1", "v2")
    assert said_of(found, "ops", "verdict") == {}
    assert set(said_of(found, "ops", "reason").values()) == {
        "incomplete: it rests on records that were lost or cannot be"
    }
    assert found.explanation.remarks[0] == f"v2: {LOST}; not judged: work of the device."
    gate = gate_of_diff(found)
    assert (gate.code, gate.because) == (4, "the step has no verdict: it rests on records that were lost or cannot be")


def test_lost_records_enter_no_level(store):
    """v3 is as v1, and v2 between them lost two thirds of its kernels: nothing regressed in v3."""
    recorded(store, "v1")
    recorded(store, "v2", slower=1 / 3, settings=incomplete(LOST_DEVICE), quality_reason=LOST)
    recorded(store, "v3")
    update(store, tracks_of(store))
    assert not len(findings(store).tables["findings"])
    found = diff(store, "v1", "v3")
    assert gate_of_diff(found).code == 0


def test_whole_runs_of_a_version_are_judged_without_the_lost_one(store):
    """Two runs of v2 are 50 % slower; the third one, which lost its kernels, would be in between."""
    recorded(store, "v1")
    recorded(store, "v2", slower=1.5, count=2)
    recorded(store, "v2", slower=0.5, count=1, settings=incomplete(LOST_DEVICE), quality_reason=LOST)
    found = diff(store, "v1", "v2")
    assert found.explanation.verdict == "REGRESSED"
    assert found.explanation.remarks[0].startswith("v2: run 6 is left out of all numbers: 28 of 48")


def test_unknown_launchers_leave_the_step_judged(store):
    recorded(store, "v1")
    recorded(store, "v2", slower=1.5, settings=incomplete(LOST_OWNERS), quality_reason="2 kernels share a launch")
    found = diff(store, "v1", "v2")
    assert (found.explanation.verdict, said_of(found, "ops", "verdict")) == ("REGRESSED", {})


def test_operator_with_an_impossible_duration_alone_is_not_judged(store):
    """op0 states twice its time in v2, which cannot be, and op1 takes twice its time."""
    recorded(store, "v1", ops=OPS)
    doubled = [(name, 2 * ns if name in ("op0", "op1") else ns) for name, ns in OPS]
    recorded(store, "v2", ops=doubled, settings=incomplete(names=("op0",)), quality_reason="1 event of op0")
    found = diff(store, "v1", "v2")
    verdicts = said_of(found, "ops", "verdict")
    assert ("op0" in verdicts, verdicts["op1"]) == (False, "REGRESSED")


def test_show_names_what_was_lost_below_its_headline(store):
    recorded(store, "v1", count=1, settings=incomplete(LOST_DEVICE), quality_reason=LOST)
    rows = show(store, "run:1").tables["overall"].records()
    assert [(row["quality"], row["quality_reason"]) for row in rows] == [("partial", LOST)]
