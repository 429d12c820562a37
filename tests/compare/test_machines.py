"""What the machine did to runs: beside the run, in the answer of a diff, in the log and the history of versions."""

from __future__ import annotations

import pytest

from tests.factories import EPOCH_NS, save
from tracker.compare import diff, log, show
from tracker.regressions.history import history
from tracker.reports import render
from tracker.results import HistoryOptions
from tracker.store import queries

POWER = {"device_throttled": "power", "device_held": "1580 of 1965 MHz by power", "device_temperature_celsius": "71"}
FREE = {"device_throttled": "no", "device_temperature_celsius": "64"}


@pytest.fixture
def nights(store):
    """Two versions of three runs: the GPU of the last run of v2 was held down."""
    runs = [("v1", FREE), ("v1", FREE), ("v1", FREE), ("v2", FREE), ("v2", FREE), ("v2", POWER)]
    for number, (version, facts) in enumerate(runs):
        start = EPOCH_NS + number * 10**13
        ns = 10**7 + number * 10**4
        save(store, version, ops=[("mm", ns)], steps=3, step_ns=ns, started_at_ns=start, of_run={"facts": facts})
    return store


def test_diff_names_the_run_whose_gpu_was_held(nights):
    found = diff(nights, "v1", "v2")
    sentence = "run 6: the GPU was held at 1,580 of 1,965 MHz by power (1 of 3 runs of v2: held by power)."
    assert sentence in found.explanation.remarks
    rows = [(row.key, row.baseline, row.candidate) for row in found.environment.itertuples()]
    # heat differs from run to run, and is no change of the environment
    assert rows == [("device_throttled", "no", "no | power")]


def test_show_says_that_the_gpu_was_held(nights):
    text = render(show(nights, "run:6"), "text")
    assert "the GPU was held at 1,580 of 1,965 MHz by power" in text
    assert "held" not in render(show(nights, "run:5"), "text").partition("Facts")[0]


def test_runs_have_a_column_of_the_machine(nights):
    found = queries.runs(nights)
    assert dict(found.rows("run_id", "machine")) == {6: "held by power"} | dict.fromkeys((1, 2, 3, 4, 5), "")


def test_log_has_a_column_of_the_machine(nights):
    found = log(nights)
    assert found.tables["versions"].listed("machine") == [None, "held by power in 1 of 3 runs"]
    assert "held by power in 1 of 3 runs" in render(found, "text")


def test_history_marks_the_version_that_was_held(nights):
    found = history(nights, options=HistoryOptions(key="step"))
    assert found.tables["points"].listed("machine") == ["", "held by power in 1 of 3 runs"]
    assert "held by power in 1 of 3 runs" in render(found, "text")


def test_ranks_that_were_held_name_the_lowest_clock(store):
    held = "1600 of 1965 MHz by power | 1400 of 1965 MHz by temperature"
    facts = {"device_throttled": "no | power | temperature", "device_held": held, "device_shared": "no | yes"}
    save(store, "v1", ranks=2, ops=[("mm", 10**6)], of_run={"facts": facts})
    text = render(show(store, "run:1"), "text")
    assert "the GPU was held at 1,400 of 1,965 MHz by temperature, another job computed on its GPU" in text
