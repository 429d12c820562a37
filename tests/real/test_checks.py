"""The checks of captures: silent on the untouched ones, and a line for whatever was taken from them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from tests.conftest import slow as at_night
from tests.real import data
from tracker import readers
from tracker.profile import (
    IDLE_CAUSES,
    INCOMPLETE_SETTING,
    Capture,
    DeviceEvents,
    DeviceKind,
    Events,
    IdleCause,
)
from tracker.readers import ReadOptions
from tracker.timeline import build
from tracker.timeline.joined import join
from tracker.timeline.lost_launches import launching_calls

EVERY = ("cann", "nsys", *map(at_night, ("pytorch", "ascend", "paddle")))
LAUNCHED = ("pytorch/two_ranks_nccl/rank-0.pt.trace.json.gz", "pytorch/h100_vs_mi300/mi300")
SECONDS = 10**9


def captures_below(name: str) -> list[Capture]:
    found = readers.search(data.path(name), None, keep_going=True).found
    return [one for item in found for one in readers.read(item, ReadOptions()).captures if one.events is not None]


@pytest.mark.parametrize("name", EVERY)
def test_untouched_captures_have_no_line_and_idle_time_that_adds_up(name):
    for capture in captures_below(name):
        found = build(capture)
        assert INCOMPLETE_SETTING not in found.settings
        assert found.rows is not None
        idle_ns = {row.step: row.breakdown.idle_ns or 0 for row in found.rows.steps}
        if found.rows.overall.timeline == "device":
            assert {step: ns for step, ns in idle_ns.items() if ns} == idle_by_step(found)


@pytest.mark.parametrize("name", ["cann", at_night("ascend")])
def test_every_device_event_of_an_untouched_npu_counts(name):
    """None of these captures has a kernel by which HCCL communicates, nor a compute kernel that looks like one."""
    for capture in captures_below(name):
        assert capture.events is not None
        found = build(capture)
        assert found.rows is not None
        assert int(np.asarray(found.rows.tables["kernel"]["calls"]).sum()) == len(capture.events.device)


def idle_by_step(capture: Capture) -> Counter[int]:
    """The idle time of each step, all causes together."""
    assert capture.rows is not None
    table = capture.rows.tables["idle"]
    sums = Counter[int]()
    for step, ns in zip(np.asarray(table["step"]).tolist(), np.asarray(table["ns"]).tolist(), strict=True):
        sums[step] += ns
    return sums


@pytest.mark.parametrize(
    ("name", "host", "between", "dependency"),
    [
        ("pytorch/a100_vs_v100_nccl/test.pt.trace.json.gz", 0.407, 26.33, 0.0),
        ("pytorch/two_ranks_nccl/rank-0.pt.trace.json.gz", 283.414, 9.66, 388.899),
    ],
)
def test_causes_of_idle_time_are_those_of_the_whole_capture(name, host, between, dependency):
    """Milliseconds over all steps: what waits for a launch, goes from kernel to kernel, and waits for other work."""
    (capture,) = captures_below(name)
    rows = build(capture).rows
    assert rows is not None
    table = rows.tables["idle"]
    sums = Counter[str]()
    for cause, ns in zip(table["cause"], np.asarray(table["ns"]).tolist(), strict=True):
        is_host = IdleCause(IDLE_CAUSES.index(str(cause))).is_of_host
        sums["host" if is_host else str(cause)] += ns
    found = [round(sums[word] / 1e6, 3) for word in ("host", "between kernels", "dependency")]
    assert found == [host, between, dependency]


def changed(events: Events, rows: np.ndarray, **columns: Any) -> Events:
    """The events with other values in some rows of the device."""
    values = {name: getattr(events.device, name).copy() for name in columns}
    for name, value in columns.items():
        values[name][rows] = value if np.isscalar(value) else value[rows]
    return replace(events, device=replace(events.device, **values))


def with_device_rows(events: Events, rows: np.ndarray) -> Events:
    """The events with these rows of the device."""
    device = DeviceEvents(**{name: getattr(events.device, name)[rows] for name in events.device.__struct_fields__})
    external = events.extras.device_external
    # some sources know no external ids
    extras = replace(events.extras, device_external=external[rows] if len(external) else external)
    return replace(events, device=device, extras=extras)


def launched_kernels(events: Events) -> np.ndarray:
    """Rows of the kernels that a launch call of their own started."""
    joined, streams = join(events), events.device.stream.tolist()
    is_own = (joined.launch >= 0) & launching_calls(joined)[np.maximum(joined.launch, 0)]
    # the last event of a stream may take as long as it says
    last_ns = {stream: events.device.start_ns[events.device.stream == stream].max() for stream in set(streams)}
    is_last = events.device.start_ns >= np.array([last_ns[stream] for stream in streams])
    return np.flatnonzero(is_own & ~is_last & (events.device.kind == DeviceKind.KERNEL))


def parts_fit(capture: Capture) -> None:
    """No part of a step is outside of its whole."""
    assert capture.rows is not None
    for row in capture.rows.steps:
        own = row.breakdown
        if own.duration_ns is None:
            continue
        for part in (own.compute_ns, own.communication_ns, own.copy_ns, own.idle_ns):
            assert part is None or 0 <= part <= own.duration_ns
    assert capture.rows.overall.duration_ns is not None
    assert capture.rows.overall.duration_ns < 3600 * SECONDS


@pytest.mark.parametrize("name", LAUNCHED)
@pytest.mark.parametrize("seed", range(4))
def test_records_that_are_taken_away_or_bent_are_said(name, seed):
    """Of 1 to 20 kernels: dropped, twice, at time 0, years away, 100 ms early, or 100 ms long."""
    random = np.random.default_rng(seed)
    for capture in captures_below(name):
        assert capture.events is not None
        events = capture.events
        kernels = launched_kernels(events)
        rows = random.choice(kernels, size=min(len(kernels), int(random.integers(1, 20))), replace=False)
        every, start_ns, end_ns = np.arange(len(events.device)), events.device.start_ns, events.device.end_ns
        year_ns, tenth_ns = 365 * 24 * 3600 * SECONDS, SECONDS // 10
        bent = {
            "dropped": with_device_rows(events, np.delete(every, rows)),
            "twice": with_device_rows(events, np.append(every, rows)),
            "zero": changed(events, rows, start_ns=0, end_ns=0),
            "far": changed(events, rows, start_ns=start_ns + year_ns, end_ns=end_ns + year_ns),
            "early": changed(events, rows, start_ns=start_ns - tenth_ns, end_ns=end_ns - tenth_ns),
            "long": changed(events, rows, end_ns=start_ns + tenth_ns),
        }
        for how, other in bent.items():
            found = build(replace(capture, events=other))
            parts_fit(found)
            assert INCOMPLETE_SETTING in found.settings, (how, capture.sources[0].path)


@pytest.mark.parametrize("name", LAUNCHED)
def test_whatever_a_file_says_no_part_is_larger_than_its_whole(name):
    """A tenth of the kernels somewhere else within 10 ms: that is possible, and cannot be seen."""
    random = np.random.default_rng(1)
    for capture in captures_below(name):
        assert capture.events is not None
        device = capture.events.device
        rows = np.flatnonzero(random.random(len(device)) < 0.1)
        by_ns = random.integers(-SECONDS // 100, SECONDS // 100, len(device))
        moved = changed(capture.events, rows, start_ns=device.start_ns + by_ns, end_ns=device.end_ns + by_ns)
        parts_fit(build(replace(capture, events=moved)))
