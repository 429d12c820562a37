"""Versions in which all operators take longer by one factor: one sentence, one finding, and no accusation of code."""

from __future__ import annotations

import pytest

from tests.regressions.made import runs
from tracker.compare import diff
from tracker.compare.gates import gate_of_diff
from tracker.regressions.gates import gate_of_findings
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update


@pytest.fixture
def few(store):
    """Two versions of six operators of 1 ms, all 9 % slower in the second one."""
    runs(store, "v1", count=4, ops=6)
    runs(store, "v2", start=4, shared=1.09, ops=6)
    update(store, tracks_of(store))
    return store


def test_few_operators_alike_may_be_the_machine(few):
    result = diff(few, "v1", "v2")
    sentence, few_operators, *_ = result.explanation.remarks
    assert result.explanation.verdict == "REGRESSED"
    # 9 % with 0.5 % of noise
    assert sentence == "All 6 operators are 8.9 % slower alike (8.6 to 9.7 %): clock or power before code."
    assert few_operators == "REGRESSED or a slower machine: fewer than 20 operators cannot tell."
    assert {*result.ops["verdict"]} == {"DRIFT"}


def test_operators_alike_are_one_cause(few):
    cause, *_ = diff(few, "v1", "v2").explanation.contributions
    assert (cause.kind, cause.name, cause.count, cause.why) == ("alike", "operators", 6, "slower")
    assert cause.share == pytest.approx(1.0, abs=0.01)


def test_operators_alike_are_one_finding_and_a_warning(few):
    found = findings(few)
    assert found.findings[["name", "change", "verdict", "cause"]].to_numpy().tolist() == [
        ["step", "alike", "REGRESSED", "all operators alike"]
    ]
    assert found.incidents["severity"].tolist() == ["warning"]


@pytest.mark.parametrize("word", ["new", "any"])
def test_operators_alike_fail_no_gate_for_sure(few, word):
    for gate in (gate_of_diff(diff(few, "v1", "v2"), word), gate_of_findings(findings(few), word)):
        assert gate.code == 4
        assert "all operators became slower by one factor" in gate.because
        assert gate.of("failed") == []
    # of captures that are not stored as versions, too
    alone = diff(few, "run:1,run:2,run:3", "run:5,run:6,run:7")
    assert gate_of_diff(alone, word).code == 4


def test_many_operators_alike_are_drift_with_the_same_sentence(store):
    runs(store, "v1", count=4, ops=24)
    runs(store, "v2", start=4, shared=1.09, ops=24)
    explanation = diff(store, "v1", "v2").explanation
    assert explanation.verdict == "DRIFT"
    assert explanation.remarks[0].startswith("All 24 operators are 9.")
    assert not any("cannot tell" in remark for remark in explanation.remarks)


def test_operator_of_another_factor_is_named(store):
    runs(store, "v1", count=4, ops=6)
    runs(store, "v2", {"op03": 1.3}, start=4, shared=1.09, ops=6)
    explanation = diff(store, "v1", "v2").explanation
    assert not any("alike" in remark for remark in explanation.remarks)
    assert explanation.contributions[0].name == "op03"
