"""The clock of the cores that captures of Ascend state, and what held it: by text, by database and by CANN."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.readers import ascend_texts
from tests.readers.ascend_databases import START, changed, kernel, task, write_capture
from tests.readers.cann.captures import NEW, capture
from tracker import intake, readers
from tracker.compare import show
from tracker.readers import Found
from tracker.reports import render

HELD = {
    "device_clock_mhz": "1350",
    "device_held": "NPU at 1350 of 1800 MHz by a cause that is not stated",
    "device_throttled": "a cause that is not stated",
}  # fmt: skip
CLOCK = ("device_max_clock_mhz", "device_clock_mhz", "device_held", "device_throttled")


def clock_of(folder):
    (found,) = readers.read(Found(folder, readers.claim(folder))).captures
    return {name: text for name, text in found.facts.items() if name in CLOCK}


@pytest.fixture
def stored(tmp_path):
    """Write a database whose one kernel runs from 500 to 600 ns, and these clocks: ns and MHz. Return its facts."""

    def facts(*clocks, tasks=()):
        kernels = [kernel(10, "MatMulV2_1"), kernel(21, "MatMulV2_2")]
        more = {"TASK": [*tasks], "COMPUTE_TASK_INFO": kernels} if tasks else {}
        rows = [{"deviceId": 0, "timestampNs": START + when, "freq": mhz} for when, mhz in clocks]
        return clock_of(write_capture(tmp_path / "rank4_ascend_pt", changed(AICORE_FREQ=rows, **more)))

    return facts


def test_two_entries_say_nothing_of_the_clock(stored):
    # without a measured one, msprof writes what it takes for the clock twice
    assert stored((0, 1800), (1000, 1800)) == {}


def test_clock_that_fell_under_half_of_the_work_is_held(stored):
    # 50 ns at 1800 and 50 ns at 900 MHz
    assert stored((0, 1800), (550, 900), (1000, 900)) == HELD


def test_clock_that_was_measured_before_all_work_is_stated(stored):
    # it may be less than what the cores are rated for
    assert stored((0, 1500), (400, 1500), (1000, 1500)) == {"device_clock_mhz": "1500"}


def test_clock_of_the_first_work_that_is_not_measured_is_unknown(stored):
    assert stored((0, 1800), (550, 1800), (1000, 1800)) == {}


def test_low_clock_where_little_runs_is_no_sign_of_a_limit(stored):
    # 900 MHz for 200 ns, in which the second kernel begins 60 ns before the clock is up again: 60 of 200 ns at half
    tasks = [task(10, "KERNEL_AICORE", 500, 600), task(21, "KERNEL_AICORE", 740, 840)]
    known = stored((0, 1800), (400, 1800), (600, 900), (800, 1800), (1000, 1800), tasks=tasks)
    assert known == {"device_clock_mhz": "1530"}


def test_low_clock_between_kernels_is_no_matter(stored):
    # of the second kernel 2 ns
    tasks = [task(10, "KERNEL_AICORE", 500, 600), task(21, "KERNEL_AICORE", 798, 898)]
    known = stored((0, 1800), (400, 1800), (600, 900), (800, 1800), (1000, 1800), tasks=tasks)
    assert known == {"device_clock_mhz": "1791"}


def test_work_of_two_streams_at_once_counts_once(stored):
    # 100 ns on both streams at 900, 300 ns at 1800: a quarter of the time at half of the clock
    tasks = [task(10, "KERNEL_AICORE", 500, 600), task(21, "KERNEL_AICORE", 500, 900, streamId=3)]
    found = stored((0, 1800), (400, 900), (600, 1800), (1000, 1800), tasks=tasks)
    assert found["device_held"] == "NPU at 1575 of 1800 MHz by a cause that is not stated"


def test_a_clock_that_cannot_be_leaves_all_unknown(stored):
    assert stored((0, 1800), (550, -1), (1000, 900)) == {}


def of_text(folder, clocks):
    """Return a capture of two steps of 600 us of work, with these clocks: us and MHz."""
    home = ascend_texts.write(folder, 0, ascend_texts.Written(steps=2))
    (trace,) = home.rglob("trace_view.json")
    named = {"ph": "M", "name": "process_name", "pid": 90, "tid": 0, "args": {"name": "AI Core Freq"}}
    events = [*json.loads(trace.read_text()), named]
    for when, mhz in clocks:
        event = {"name": "AI Core Freq", "ph": "C", "pid": 90, "tid": 0, "args": {"MHz": mhz}}
        events.append({**event, "ts": f"{ascend_texts.START_US + when}.000"})
    trace.write_text(json.dumps(events))
    return home


def test_trace_that_shows_a_fallen_clock_is_held(tmp_path):
    # the second of two steps at 900 MHz
    home = of_text(tmp_path, [(0, 1800), (1000, 900), (3000, 900)])
    assert clock_of(home) == HELD


def test_trace_with_a_clock_that_is_no_number_is_read(tmp_path):
    assert clock_of(of_text(tmp_path, [(0, 1800), (1000, "low"), (3000, 900)])) == {}


@pytest.fixture
def cann(tmp_path):
    return shutil.copytree(NEW, tmp_path / NEW.name)


def test_rated_clock_of_info_json_is_the_highest(cann):
    assert clock_of(cann) == {"device_max_clock_mhz": "1650"}


@pytest.mark.parametrize(("mhz", "throttled"), [(825, "a cause that is not stated"), (1650, "no")])
def test_timeline_of_cann_is_compared_with_the_rated_clock(cann, mhz, throttled):
    starts = capture(cann).events.device.start_ns
    (timeline,) = cann.rglob("msprof_*.json")
    events = json.loads(timeline.read_text())
    events.append({"ph": "M", "name": "process_name", "pid": 90, "tid": 0, "args": {"name": "AI Core Freq"}})
    for place in (-20, -10, 10**6):
        when = starts.min() // 1000 + place
        clock = {"name": "AI Core Freq", "ph": "C", "pid": 90, "tid": 0, "ts": int(when), "args": {"MHz": mhz}}
        events.append(clock)
    timeline.write_text(json.dumps(events))
    facts = clock_of(cann)
    assert (facts["device_max_clock_mhz"], facts["device_clock_mhz"]) == ("1650", str(mhz))
    assert facts["device_throttled"] == throttled
    assert facts.get("device_held") == (None if throttled == "no" else f"NPU at 825 of 1650 MHz by {throttled}")


def test_show_says_that_the_npu_was_held(tmp_path, store):
    home = of_text(tmp_path, [(0, 1800), (1000, 900), (3000, 900)])
    intake.ingest(store, [home], version="v1", workload="gpt")
    text = render(show(store, "run:1"), "text")
    assert "the NPU was held at 1,350 of 1,800 MHz by a cause that is not stated" in text
