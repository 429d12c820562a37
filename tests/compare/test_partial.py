"""Every screen says first that records were lost, and diagnoses nothing on what is left."""

from __future__ import annotations

import pytest

from tests.compare.test_incomplete import LOST, incomplete
from tests.compare.test_recordings import recorded
from tracker import reports
from tracker.compare import diff, show
from tracker.compare.advised import advise
from tracker.ranks.job import cluster
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.schema.series import LOST_DEVICE, LOST_STEPS

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


def test_whole_run_has_its_bottleneck_and_no_remark(store):
    recorded(store, "v1")
    found = show(store, "v1")
    assert found.bottleneck.bound is not None and found.partial.sentences == ()
