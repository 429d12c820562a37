"""A part of the step that is no operator counts by what it changes of the step, not of itself."""

from __future__ import annotations

import pytest

from tests.judgement.test_findings import found
from tests.regressions.made import runs
from tracker.judgement import gate_of_findings, history, lines_of, update
from tracker.results import HistoryOptions

MS = 1_000_000


def idle(store, after_ns, before_ns=2 * MS):
    """Version v2 idles `after_ns` of a step of 42 ms, where v1 idles `before_ns`."""
    runs(store, "v1", count=5, idle_ns=before_ns)
    runs(store, "v2", count=3, start=5, idle_ns=after_ns)
    update(store, lines_of(store))
    return history(store, options=HistoryOptions(key="free", kind="run")).points.set_index("version").loc["v2"]


def test_idle_time_that_grows_by_a_tenth_of_itself_is_half_a_percent_of_the_step_and_no_news(store):
    """2.0 to 2.2 ms of 42 ms: the device idles 10 % longer, and the step is as long as before."""
    point = idle(store, 22 * MS // 10)
    assert (point["baseline_verdict"], point["reason"]) == ("BELOW_LIMIT", "below the contribution floor")
    assert found(store).incidents.empty
    assert gate_of_findings(found(store, only_new=True), "new").code == 0


@pytest.mark.parametrize(("after_ns", "word"), [(3 * MS, "REGRESSED"), (1 * MS, "IMPROVED")])
def test_idle_time_that_is_2_percent_of_the_step_is_a_finding(store, after_ns, word):
    assert idle(store, after_ns)["baseline_verdict"] == word
