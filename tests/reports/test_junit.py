"""JUnit XML: as Jenkins and GitLab read it, whatever operators are called."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.reports import builders
from tests.reports.builders import MS
from tracker import reports
from tracker.compare import gate_of_diff
from tracker.results import Judgement

HOSTILE = ["a\nb\"c'<d>&", "]]>", "::error title=x::y", "a|b`c`@team", "\x1b[31m\x00\x08", "\ud800", "％", "a" * 5000]

# the schema of Jenkins (junit-10.xsd of its xUnit plugin): element -> its attributes, which are needed, its children
SCHEMA = {
    "testsuites": (("name", "time", "tests", "failures", "disabled", "errors"), (), ("testsuite",)),
    "testsuite": (
        ("name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id", "package",
         "file", "log", "url", "version"),
        ("name", "tests", "failures", "errors"),
        ("testsuite", "properties", "testcase", "system-out", "system-err"),
    ),
    "testcase": (
        ("name", "time", "classname", "group"), ("name", "classname"),
        ("skipped", "error", "failure", "system-out", "system-err"),
    ),
    "failure": (("type", "message"), (), ()),
    "error": (("type", "message"), (), ()),
    "skipped": (("type", "message"), (), ()),
}  # fmt: skip


def parsed(text):
    """The suite, with the whole document checked against SCHEMA."""
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n')
    root = ElementTree.fromstring(text.encode("utf-8"))
    for element in root.iter():
        known, needed, children = SCHEMA[element.tag]
        assert set(needed) <= set(element.attrib) <= set(known), element.tag
        assert {child.tag for child in element} <= set(children), element.tag
    (suite,) = root
    cases = suite.findall("testcase")
    for name, tag in {"failures": "failure", "errors": "error", "skipped": "skipped"}.items():
        assert int(suite.get(name)) == sum(case.find(tag) is not None for case in cases)
    assert int(suite.get("tests")) == len(cases) > 0
    assert all(float(case.get("time", 0)) >= 0 for case in cases)
    return suite


def ends(suite):
    """Case -> how it ended."""
    return {case.get("name"): next((child.tag for child in case), "passed") for case in suite if case.tag == "testcase"}


def test_a_judged_diff_has_a_case_per_series_that_matters_and_one_for_the_step():
    suite = parsed(reports.render(builders.judged(), "junit"))
    assert suite.get("name") == "tracker diff v41 v42"
    found = ends(suite)
    assert found["Step time"] == "passed"
    assert found["aten::mm [[64, 512], [512, 512]]"] == "passed", "its memory, which does not make the gate fail"
    assert found["cudaLaunchKernel runtime"] == "passed"
    (failure,) = [
        case.find("failure")
        for case in suite
        if case.get("name").startswith("aten::mm") and case.get("classname") == "tracker.operator"
    ]
    assert (failure.get("type"), failure.get("message")) == ("REGRESSED", "aten::mm +6.00 ms")
    assert "20.00 ms -> 26.00 ms (+6.00 ms, +30.0 %); REGRESSED, judged +25.0 %, q <0.001" in failure.text
    (step,) = [case for case in suite if case.get("name") == "Step time"]
    assert float(step.get("time")) == pytest.approx(0.104)


@pytest.mark.parametrize(
    ("judgement", "end"),
    [
        (Judgement(False, ("Compared, not judged: another device.",), refusal="incomparable"), "error"),
        (Judgement(False, ("1 run against 1: no verdicts.",), refusal="too few runs"), "skipped"),
    ],
)
def test_a_diff_that_is_not_judged_has_one_case_that_says_so(judgement, end):
    suite = parsed(reports.render(builders.diff(judgement=judgement), "junit"))
    assert ends(suite) == {"step": end}
    assert suite[0][0].get("message") == judgement.sentences[0].rstrip(".")


def test_there_are_as_many_failures_as_the_gate_counts():
    """Two new shapes of one op are one thing that fails; the second is told in the text of the first."""
    new = {"verdict": "ADDED", "status": "added"}
    ops = [{**builders.op("aten::copy_", shapes, None, size * MS), **new} for shapes, size in (("[4]", 3), ("[8]", 2))]
    ops.append({**builders.op("aten::mm", "[2]", 10 * MS, 20 * MS), "verdict": "REGRESSED", "judged_diff": 1.0})
    diff = builders.diff(ops=builders.frame("ops", ops), judgement=Judgement(True, ("3 runs against 5.",)))
    gate = gate_of_diff(diff, "any")
    assert len(gate.of("failed")) == 2
    suite = parsed(reports.render(diff, "junit", gate=gate))
    assert suite.get("failures") == "2"
    (text,) = [case.find("failure").text for case in suite if case.get("name").startswith("aten::copy_")]
    assert [line[:16] for line in text.splitlines()] == ["aten::copy_ [4]:", "aten::copy_ [8]:"]


def test_a_suspect_is_skipped():
    ops = [{**builders.op("aten::mm", "", 10 * MS, 20 * MS), "verdict": "SUSPECT", "judged_diff": 1.0}]
    diff = builders.diff(ops=builders.frame("ops", ops), judgement=Judgement(True, ("1 run against 5.",)))
    assert ends(parsed(reports.render(diff, "junit"))) == {"step": "skipped", "aten::mm": "skipped"}


def test_findings_have_a_case_per_line_and_one_per_finding():
    found = ends(parsed(reports.render(builders.findings(), "junit")))
    assert found == {
        "gpt batch=32 on NVIDIA H100 v42": "passed", "step": "failure", "aten::mm": "skipped", "aten::add": "passed",
        "aten::mul": "skipped",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "cause", "end"), [(0, "", "passed"), (4, "runs", "skipped"), (1, "peak memory", "failure")]
)
def test_line_without_findings_ends_as_its_gate(code, cause, end):
    line = builders.line(gate_new=code, gate_new_cause=cause, peak=0.2)
    found = builders.findings(rows=[], incidents=[], lines=[line])
    assert ends(parsed(reports.render(found, "junit"))) == {"gpt batch=32 on NVIDIA H100 v42": end}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_the_document(name):
    ops = [{**builders.op(name, name, 10 * MS, 20 * MS), "verdict": "REGRESSED", "judged_diff": 1.0, "reason": name}]
    diff = builders.diff(ops=builders.frame("ops", ops), judgement=Judgement(True, (name,)))
    suite = parsed(reports.render(diff, "junit"))
    assert "failure" in ends(suite).values()
    parsed(reports.render(builders.findings([builders.finding(1, name)]), "junit"))
    text = reports.render(diff, "junit")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]", text)
