"""Whether findings fail a build."""

from __future__ import annotations

import pytest

from tests.judgement.made import runs
from tests.reports import builders
from tracker.errors import UsageError
from tracker.judgement import findings, gate_of_findings, lines_of, update
from tracker.results import FindingsOptions

STATES = ("new", "persisting", "acknowledged", "reopened", "recovering", "muted", "suspect", "expected")


def ends(word, *states):
    rows = [builders.finding(number, state, state) for number, state in enumerate(states)]
    gate = gate_of_findings(builders.findings(rows), word)
    return gate.code, [row.name for row in gate.of("failed")]


@pytest.mark.parametrize(
    ("word", "failing"),
    [
        ("new", ["new"]),
        ("any", ["acknowledged", "new", "persisting", "reopened"]),
        ("suspect", ["acknowledged", "new", "persisting", "reopened", "suspect"]),
    ],
)
def test_what_fails_by_which_word(word, failing):
    assert ends(word, *STATES) == (1, failing)
    calm = [state for state in ("recovering", "muted", "expected") if state not in failing]
    assert ends(word, *calm) == (0, [])


def test_a_suspicion_alone_is_too_little_data_to_say():
    assert ends("any", "suspect") == (4, [])
    assert ends("new", "suspect", "persisting") == (4, [])
    assert ends("suspect", "suspect") == (1, ["suspect"])


def test_improvements_fail_nothing():
    better = [builders.finding(1, "mm", direction="improvement"),
              builders.finding(2, "add", "suspect", direction="improvement")]  # fmt: skip
    assert gate_of_findings(builders.findings(better), "suspect").code == 0


@pytest.mark.parametrize(("counts", "code"), [((), 4), ((3,), 4), ((4,), 0), ((1, 10), 0)])
def test_without_findings_it_depends_on_whether_anything_could_be_found(counts, code):
    found = builders.findings([], incidents=[], lines=[builders.line(runs=count) for count in counts])
    assert gate_of_findings(found).code == code


def test_a_real_line_stands_where_its_newest_version_does(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.5}, start=3)
    update(store, lines_of(store))
    found = findings(store, options=FindingsOptions())
    (line,) = found.lines.to_dict("records")
    assert (line["version"], line["version_runs"], line["runs"], line["last_run_id"]) == ("v2", 3, 6, 6)
    assert line["step_ns"] == pytest.approx(40.5e6, rel=0.01)
    assert line["previous_diff"] == pytest.approx(0.0125, abs=0.002)  # half of one of 40 ops
    assert line["data_loading_ns"] is None or line["data_loading_ns"] != line["data_loading_ns"]
    assert gate_of_findings(found, "new").code == 1
    with pytest.raises(UsageError, match="there is no device '910B'"):
        findings(store, options=FindingsOptions(device="910B"))


def test_new_suspicions_are_among_what_is_new_where_they_are_asked_for(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.5}, start=3, count=1)
    update(store, lines_of(store))
    assert findings(store, options=FindingsOptions(only_new=True)).findings.empty
    asked = findings(store, options=FindingsOptions(only_new=True, states=("new", "suspect")))
    assert asked.findings["name"].tolist() == ["op07"]
    assert gate_of_findings(asked, "suspect").code == 1
