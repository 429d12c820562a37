"""Whether findings fail a build."""

from __future__ import annotations

import pytest

from tests.factories import EPOCH_NS
from tests.judgement.test_ways import logs
from tests.regressions.made import runs
from tests.reports import builders
from tracker.errors import UsageError
from tracker.judgement import Wish, act, findings, gate_of_findings, lines_of, update
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
    assert ends("new", "suspect", "persisting") == (0, []), "it blocks nothing that is new"
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
    assert line["baseline_diff"] == pytest.approx(0.0125, abs=0.002)  # half of one of 40 ops
    assert line["data_loading_ns"] is None or line["data_loading_ns"] != line["data_loading_ns"]
    assert gate_of_findings(found, "new").code == 1
    with pytest.raises(UsageError, match="there is no device '910B'"):
        findings(store, options=FindingsOptions(device="910B"))


def test_new_suspects_are_among_what_is_new(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.5}, start=3, count=1)
    update(store, lines_of(store))
    assert findings(store, options=FindingsOptions(only_new=True)).findings["name"].tolist() == ["op07"]
    asked = findings(store, options=FindingsOptions(only_new=True, states=("new", "suspect")))
    assert asked.findings["name"].tolist() == ["op07"]
    assert gate_of_findings(asked, "suspect").code == 1


def test_the_first_good_run_of_the_next_version_ends_the_news(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.5}, start=3)
    update(store, lines_of(store))
    assert gate_of_findings(findings(store), "new").code == 1
    runs(store, "v3", start=6, count=1)
    update(store, lines_of(store))
    found = findings(store)
    assert "op07" in found.findings["name"].tolist(), "one good run does not end it"
    assert not found.findings["is_new"].any()
    assert not found.incidents["is_new"].any()
    assert gate_of_findings(found, "new").code == 0


def test_what_a_mute_held_back_is_no_news_of_a_later_version(store):
    """New in v2 and muted; the mute ends with its time, after the only run of v3."""
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.5}, start=3)
    update(store, lines_of(store))
    ids = [int(number) for number in findings(store).findings["finding_id"]]
    at = EPOCH_NS + 5 * 10**12
    act(store, Wish("mute", "ann", at, "known", until_ns=at + 2 * 10**12), finding_ids=ids)
    runs(store, "v3", {"op07": 1.5}, start=6, count=1)
    update(store, lines_of(store))
    found = findings(store, options=FindingsOptions(every=True)).findings
    assert set(found["state"]) == {"new"}
    assert not found["is_new"].any()


def test_the_step_and_its_diff_are_of_one_way_of_measuring(store):
    """Profiled steps of 40 ms in v1 and v2; logs without a profiler take 36 ms in v1 and 72 ms in v2."""
    for version, start, log_ns in (("v1", 0, 36_000_000), ("v2", 6, 72_000_000)):
        logs(store, version, log_ns, start=start)
        runs(store, version, start=start + 3)
    update(store, lines_of(store))
    (line,) = findings(store).lines.to_dict("records")
    assert line["step_ns"] == pytest.approx(40e6, rel=0.02)
    assert line["baseline_diff"] == pytest.approx(0.0, abs=0.02)
    for version, start in (("v3", 12), ("v4", 15)):
        logs(store, version, 72_000_000, start=start)
    update(store, lines_of(store))
    (line,) = findings(store).lines.to_dict("records")
    assert line["step_ns"] == pytest.approx(72e6, rel=0.02)
