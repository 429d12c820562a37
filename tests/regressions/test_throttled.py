"""A version all of whose runs were held down by heat or power, where those before were not: its machine or its code."""

from __future__ import annotations

import re
from io import BytesIO

import numpy as np
import pytest
from openpyxl import load_workbook

from tests.factories import EPOCH_NS, save
from tests.regressions.tracks import found_in
from tracker.compare import diffs, gate_of_diff, log, matrix, show
from tracker.detect import series_of
from tracker.detect.known_hosts import code_hosts
from tracker.detect.track import Track
from tracker.regressions.board import board
from tracker.regressions.explain import explain
from tracker.regressions.gates import gate_of_findings
from tracker.regressions.history import history
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.reports import render
from tracker.results import HistoryOptions

HELD = 1.14
"""What a run takes more whose clock is held down."""
POWER = {"device_throttled": "power", "device_held": "1580 of 1965 MHz by power"}
FREE = {"device_throttled": "no"}


def of_step(*versions, ms=None, hosts="a"):
    """Findings of a step of 100 ms, runs of 0.3 % spread. `versions`: a letter per run, t where it was throttled.

    `ms`: the step of each version on a free clock, None: 100 of all. `hosts`: those that take the versions by turns.
    """
    states = [state for version in versions for state in version]
    places = np.repeat(np.arange(1, len(versions) + 1), [len(version) for version in versions])
    levels = np.repeat([100.0] * len(versions) if ms is None else ms, [len(version) for version in versions])
    spread = np.array([(1.0, 1.003, 0.997, 1.001, 0.999)[at % 5] for at in range(len(states))])
    numbers = levels * spread * np.array([HELD if state == "t" else 1.0 for state in states])
    series = series_of([("run", "duration_ns", "step", "", "", "")], device_timed=True)
    names = [frozenset({hosts[(place - 1) % len(hosts)]}) for place in places]
    named = code_hosts(names, [state == "t" for state in states])
    return [one[1:] for one in found_in(Track(numbers[None, :], places, series, hosts=named))]


def test_throttled_version_is_a_finding_that_names_it():
    assert of_step("nnn", "nnn", "ttt") == [(1, "throttled", 3, 3, "open", 0)]


def test_throttled_version_is_over_with_a_free_one():
    assert of_step("nnn", "nnn", "ttt", "nnn") == [(1, "throttled", 3, 3, "recovered", 4)]


def test_slower_code_after_a_throttled_version_is_found():
    found = of_step("nnn", "nnn", "ttt", "nnn", ms=[100, 100, 100, 110])
    assert found[-1] == (1, "level", 4, 4, "open", 0)


def test_throttled_version_is_compared_with_throttled_ones():
    throttled = ("nnn", "nnn", "ttt", "nnn", "ttt")
    assert of_step(*throttled) == [(1, "throttled", 3, 3, "recovered", 4)]
    assert of_step(*throttled, ms=[100, 100, 100, 100, 110])[1:] == [(1, "level", 5, 5, "open", 0)]


def test_versions_that_were_all_throttled_are_judged_as_ever():
    assert of_step("ttt", "ttt", "ttt", ms=[100, 100, 110]) == [(1, "level", 3, 3, "open", 0)]


def test_one_throttled_run_does_not_count_beside_free_ones():
    assert of_step("nnn", "nnn", "nnt", "nnn") == []
    assert of_step("nnn", "nnn", "nnt", ms=[100, 100, 110]) == [(1, "level", 3, 3, "open", 0)]


def test_throttled_version_on_one_of_many_hosts_is_a_doubt():
    assert of_step("nnn", "nnn", "nnn", "nnn", "ttt", hosts="abcd") == [(1, "throttled", 5, 5, "open", 0)]


def test_version_that_was_as_fast_though_throttled_is_no_finding():
    assert of_step("nnn", "nnn", "ttt", ms=[100, 100, 100 / HELD]) == []


def test_version_that_is_faster_though_throttled_is_an_improvement():
    assert of_step("nnn", "nnn", "ttt", ms=[100, 100, 80 / HELD]) == [(-1, "level", 3, 3, "open", 0)]


def test_version_that_is_no_longer_throttled_may_be_no_faster():
    assert of_step("ttt", "ttt", "nnn") == [(-1, "throttled", 3, 3, "open", 0)]


def test_version_that_is_slower_though_free_is_a_regression():
    assert of_step("ttt", "ttt", "nnn", ms=[100, 100, 125]) == [(1, "level", 3, 3, "open", 0)]


def test_throttled_version_on_a_moved_host_is_one_of_another_host():
    # two hosts take the versions by turns, each for one
    assert of_step("nnn", "ttt", hosts="ab") == [(1, "host", 2, 2, "open", 0)]


@pytest.fixture
def hot(store):
    """Three versions of one code, 10 ms on a free clock; the GPU of v3 was held down by power."""
    starts = iter(range(100))
    for version, facts, held in (("v1", FREE, 1.0), ("v2", FREE, 1.0), ("v3", POWER, HELD)):
        for spread in (1.0, 1.002, 0.998):
            save_run(store, version, facts, held * spread, next(starts))
    update(store, tracks_of(store))
    return store


def save_run(store, version, facts, factor, number):
    ns = int(10**7 * factor)
    ops = [("mm", ns - 2 * 10**6), ("add", 2 * 10**6)]
    start = EPOCH_NS + number * 10**13
    of_run = {"facts": facts}
    save(store, version, ops=ops, steps=3, step_ns=ns, started_at_ns=start, host="node-a", of_run=of_run)


SENTENCE = "The clock was held down by power in 3 of 3 runs, before in 0 of 6: a run that is not throttled decides."


@pytest.mark.parametrize("sides", [["v2", "v3"], ["v3"]])
def test_diff_says_regressed_or_a_throttled_machine(hot, sides):
    (found,) = diffs(hot, sides)
    assert found.explanation.verdict == "REGRESSED"
    before = 3 if len(sides) == 2 else 6
    assert found.explanation.remarks[0] == SENTENCE.replace("of 6", f"of {before}")
    text = render(found, "text")
    assert "REGRESSED or a throttled machine" in text
    assert "run 7: the GPU was held at 1,580 of 1,965 MHz by power (3 of 3 runs of v3: held by power)." in text
    assert gate_of_diff(found).code == 4


def test_incident_of_a_throttled_machine_is_one_warning(hot):
    found = findings(hot)
    (incident,) = found.tables["incidents"].records()
    assert (incident["severity"], incident["causes"]) == ("warning", "maybe a throttled machine, environment")
    assert [row["name"] for row in found.tables["findings"].records()] == ["step"]
    assert "REGRESSED or a throttled machine" in render(found, "text")
    gate = gate_of_findings(found)
    assert (gate.code, "throttled" in gate.because) == (4, True)


def test_board_says_regressed_or_a_throttled_machine(hot):
    assert "REGRESSED or a throttled machine" in render(board(hot), "text")


def test_explain_says_that_a_free_run_decides(hot):
    assert SENTENCE in explain(hot, 1).notes


WORDS = "REGRESSED or a throttled machine"


SCREENS = {
    "log": log, "history": lambda store: history(store, options=HistoryOptions(key="step")), "board": board,
    "explain": lambda store: explain(store, 1), "show": lambda store: show(store, "run:7"),
    "diff": lambda store: diffs(store, ["v2", "v3"])[0], "matrix": lambda store: matrix(store, ["v1", "v2", "v3"]),
}  # fmt: skip


@pytest.mark.parametrize("format", ["text", "html", "markdown"])
@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_says_what_else_it_may_be(hot, screen, format):
    text = render(SCREENS[screen](hot), format, details=True)
    said = re.findall(r"REGRESSED(?: or a throttled machine)?(?! or ADDED)(?!: slower)", text)
    assert said and {*said} == {WORDS}


def test_summary_of_a_workbook_says_what_else_it_may_be(hot):
    for screen in ("log", "history", "diff"):
        book = load_workbook(BytesIO(render(SCREENS[screen](hot), "xlsx")))
        cells = [str(cell.value) for row in book["Summary"].iter_rows() for cell in row]
        said = [text for text in cells if "REGRESSED" in text]
        assert said and all(WORDS in text for text in said)


def test_open_finding_says_what_else_it_may_be(hot):
    for number in range(3):
        save_run(hot, "v4", POWER, HELD * (1.0 + 0.001 * number), 50 + number)
    update(hot, tracks_of(hot))
    (line,) = board(hot).tables["lines"].records()
    assert (line["step_verdict"], line["open"], line["may_be_throttled"]) == ("UNCHANGED", 1, True)
    text = render(board(hot), "text")
    assert "maybe a throttled machine" in text and "open I-1" in text
    assert "REGRESSED" not in text
    assert f"(I-1, open since v3, {WORDS})" in render(show(hot, "run:10"), "text").replace("\n", " ")


def test_what_no_noise_makes_inconclusive_has_its_own_words(hot):
    operator = history(hot, options=HistoryOptions(key="mm"))
    assert "v3 INCONCLUSIVE: a clock was held down in its runs" in render(operator, "text")
    (found,) = diffs(hot, ["v2", "v3"])
    assert "1 INCONCLUSIVE (maybe a throttled machine)" in render(found, "text")


def test_free_runs_of_the_same_version_end_the_doubt(hot):
    for number in range(2):
        save_run(hot, "v3", FREE, 1.0 + 0.001 * number, 50 + number)
    update(hot, tracks_of(hot))
    assert len(findings(hot).tables["findings"]) == 0
    # three of its five runs were held down, and differ from the others by it
    (found,) = diffs(hot, ["v3"])
    assert found.explanation.verdict == "INCONCLUSIVE"
    assert "(3 of 5 runs of v3: held by power)" in found.explanation.remarks[-1]
