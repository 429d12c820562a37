"""Every screen says first that records were lost, and diagnoses nothing on what is left."""

from __future__ import annotations

import pytest

from tests.compare.test_incomplete import LOST, incomplete
from tests.compare.test_recordings import recorded
from tracker import reports
from tracker.compare import diff, show
from tracker.compare.advised import advise
from tracker.compare.gates import gate_of_diff
from tracker.compare.log import log
from tracker.profile import AS_WINDOWS, MARKERS_SETTING
from tracker.ranks.job import cluster
from tracker.regressions.board import board
from tracker.regressions.history import history
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.results import HistoryOptions
from tracker.schema.series import LOST_DEVICE, LOST_PARTS, LOST_STEPS

SCREENS = {
    "show": lambda store: show(store, "v2"),
    "diff": lambda store: diff(store, "v1", "v2"),
    "advise": lambda store: advise(store, "v2"),
    "cluster": lambda store: cluster(store, "v2"),
    "findings": findings,
}
DIAGNOSES = ("Bottleneck", "bound", "Idle:", "HFU", "faster", "fewer calls", "H1", "K")


@pytest.fixture
def lost(store):
    """v2 took a third of the time of v1, for most of its kernels were lost."""
    recorded(store, "v1")
    recorded(store, "v2", slower=1 / 3, settings=incomplete(LOST_DEVICE), quality_reason=LOST)
    update(store, tracks_of(store))
    return store


@pytest.mark.parametrize("screen", SCREENS)
def test_lost_records_are_said_first_and_nothing_is_diagnosed(lost, screen):
    lines = reports.render(SCREENS[screen](lost), "text", width=140).splitlines()
    below = next(at for at, line in enumerate(lines) if f"{LOST}; not judged: work of the device." in line)
    assert below <= 2, "behind the title and the headline"
    words = " ".join(lines).split()
    assert [word for word in DIAGNOSES if word in words] == []


def test_steps_that_are_not_judged_have_kernels_and_no_bottleneck(store):
    recorded(store, "v1")
    recorded(store, "v2", slower=1.5, settings=incomplete(LOST_STEPS), quality_reason="95 % lies in no step")
    found = diff(store, "v1", "v2")
    assert found.explanation.contributions
    assert [one.bound for one in found.bottlenecks][1] is None


BY_MARKERS = incomplete(LOST_DEVICE, has_markers=True)
"""Of a host that waits for the device in each step: the step is as long as its marker."""


def test_step_by_markers_is_judged_where_windows_were_as_long(store):
    """v2 lost its kernels and takes 30 % longer. v3 is whole and as v1: v2 is in no level, and the loss is over."""
    recorded(store, "v1", settings={MARKERS_SETTING: AS_WINDOWS})
    recorded(store, "v2", slower=1.3, settings=BY_MARKERS, quality_reason=LOST)
    update(store, tracks_of(store))
    found = diff(store, "v1", "v2")
    assert (found.explanation.verdict, gate_of_diff(found).code) == ("REGRESSED", 1)
    assert found.explanation.remarks[0].endswith("work of the device; the step is, by the markers of the host.")
    assert findings(store).tables["findings"].listed("name") == ["step"]
    assert set(found.tables["ops"].listed("verdict")) == {None}
    recorded(store, "v3", settings={MARKERS_SETTING: AS_WINDOWS})
    update(store, tracks_of(store))
    assert len(findings(store).tables["findings"]) == 0


@pytest.mark.parametrize("settings", [{}, {MARKERS_SETTING: "longer"}], ids=["not known", "host runs ahead"])
def test_markers_are_not_compared_with_other_windows(store, settings):
    recorded(store, "v1", settings=settings)
    recorded(store, "v2", slower=1.3, settings=BY_MARKERS, quality_reason=LOST)
    update(store, tracks_of(store))
    assert len(findings(store).tables["findings"]) == 0
    assert gate_of_diff(diff(store, "v1", "v2")).code == 4


def test_whole_run_has_its_bottleneck_and_no_remark(store):
    recorded(store, "v1")
    found = show(store, "v1")
    assert found.bottleneck.bound is not None and found.partial.sentences == ()


def test_run_of_which_parts_alone_are_not_judged_stays_in_the_step(store):
    """Its step is judged with those of the others: all three take 60 ms or 63."""
    recorded(store, "v1")
    recorded(store, "v2", slower=1.5, count=2)
    recorded(store, "v2", slower=1.575, count=1, settings=incomplete(LOST_PARTS), quality_reason="3 events were cut")
    update(store, tracks_of(store))
    found = diff(store, "v1", "v2")
    assert found.candidate.runs == 3
    assert found.explanation.candidate_ns == pytest.approx((60e6 * 60e6 * 63e6) ** (1 / 3))


@pytest.mark.parametrize("screen", ["diff", "board", "log", "history", "findings"])
def test_partial_run_beside_whole_ones_is_in_no_number(store, screen):
    """Two runs of v2 take 60 ms, and one that lost its kernels 20: the mean of all three would be 41.60 ms."""
    recorded(store, "v1")
    recorded(store, "v2", slower=1.5, count=2)
    recorded(store, "v2", slower=0.5, count=1, settings=incomplete(LOST_DEVICE), quality_reason=LOST)
    update(store, tracks_of(store))
    made = {
        "diff": lambda: diff(store, "v1", "v2"), "board": lambda: board(store), "log": lambda: log(store),
        "history": lambda: history(store, options=HistoryOptions(key="step")), "findings": lambda: findings(store),
    }  # fmt: skip
    text = reports.render(made[screen](), "text", width=200)
    verdict = "new I-1" if screen == "board" else "REGRESSED"
    assert "60.00 ms" in text and "+50.0 %" in text and verdict in text
    assert "41.60 ms" not in text
