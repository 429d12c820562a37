"""When a kernel of an NPU was launched: stories of one step (see `ascend_launches`), read as text and as database."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.readers import ascend_databases as db
from tests.readers import ascend_launches as made
from tests.readers.ascend_databases import write
from tests.readers.helpers import frame, only
from tracker.profile import Profile, Rows
from tracker.readers import ascend_db, ascend_text
from tracker.timeline import build

US = 1_000
NO_ARROWS = (
    "no HostToDevice arrow of trace_view.json leads to the device: it is not known when its work was launched, nor why "
    "it idles"
)
NO_CALLS = "no call in CANN_API leads to the device: it is not known when its work was launched, nor why it idles"


def of_text(folder: Path, **changes: Any) -> Profile:
    place = folder / "-".join(("text", *changes))
    place.mkdir(exist_ok=True)
    return ascend_text.read(made.write_text(place, **changes))


def of_database(folder: Path, **changes: Any) -> Profile:
    place = folder / "-".join(("database", *changes))
    return ascend_db.read(write(place / "ascend_pytorch_profiler_4.db", made.tables(**changes)))


def rows(profile: Profile) -> Rows:
    built = build(only(profile)).rows
    assert built is not None
    return built


def causes_us(profile: Profile) -> dict[str, float]:
    """Cause -> microseconds of the step, that of the host in one."""
    table, found = rows(profile).tables["idle"], Counter[str]()
    for cause, ns in zip(table["cause"], table["ns"].tolist(), strict=True):
        whose = {"launch latency", "between kernels", "dependency", "unknown"}
        found[cause if cause in whose else "host"] += ns
    return {cause: ns / US for cause, ns in found.items()}


def queue(profile: Profile) -> list[list[float]]:
    """Kernels, sum and largest of their leads in us, and how many found the device busy, of each stream."""
    table = rows(profile).tables["queue"]
    columns = (table["kernels"], table["lead_ns"] // US, table["max_lead_ns"] // US, table["queued"])
    return [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]


READ = pytest.mark.parametrize("read", [of_text, of_database])


@READ
def test_host_is_to_blame_until_cann_launches(tmp_path, read):
    """Of 785 us without work 124 + 540 lie before a launch, 100 behind the last kernel; 6 + 13 until a launched one
    starts, 2 between two of which the later one waited.
    """
    assert causes_us(read(tmp_path)) == {"host": 124 + 540 + 100, "launch latency": 6 + 13, "between kernels": 2}


@READ
def test_lead_counts_from_the_launch_by_cann(tmp_path, read):
    """130 - 124, 703 - 690, 802 - 710: only the third one found the device busy."""
    assert queue(read(tmp_path)) == [[3, 6 + 13 + 92, 92, 1]]


@READ
def test_compiler_of_cann_keeps_the_device_waiting(tmp_path, read):
    """From 150, where the first kernel ends, until the second one is launched at 690, the thread of CANN is in a call
    that compiles: it launches nothing else.
    """
    table = frame(rows(read(tmp_path)).tables["idle"])
    compiles = [(row["place"], row["ns"] / US) for row in table if row["cause"] == "compile"]
    assert compiles == [("aclopCompileAndExecute", 540)]


def test_text_and_database_of_one_step_idle_alike(tmp_path):
    text, database = rows(of_text(tmp_path)), rows(of_database(tmp_path))
    for name in ("idle", "queue"):
        assert frame(text.tables[name]) == frame(database.tables[name])
    assert text.steps[0].breakdown.idle_ns == database.steps[0].breakdown.idle_ns == 785 * US
    assert text.steps[0].breakdown.host_idle_ns == database.steps[0].breakdown.host_idle_ns == 764 * US


def test_innermost_call_of_a_connection_launches(tmp_path):
    """The outer call began 549 us before, and the connection comes again 250 us later."""
    assert frame(rows(of_database(tmp_path, outer=True)).tables["idle"]) == frame(
        rows(of_database(tmp_path)).tables["idle"]
    )


def test_arrows_without_calls_of_cann_have_the_time(tmp_path):
    """At its lowest level the profiler records no calls; the thread is that of `Dequeue@`."""
    assert queue(of_text(tmp_path, calls=False)) == queue(of_text(tmp_path))
    assert causes_us(of_text(tmp_path, calls=False)) == causes_us(of_text(tmp_path))


def test_clock_ahead_of_the_device_makes_no_dependency(tmp_path):
    """Each kernel starts 15 us earlier by its clock: the first one 9 us before its launch, the second one 2."""
    found = of_text(tmp_path, late_us=15)
    assert queue(found) == [[3, 77, 77, 1]]
    assert causes_us(found) == {"host": 115 + 553 + 115, "between kernels": 2}


@pytest.mark.parametrize(
    ("read", "without", "sentence"),
    [(of_text, {"arrows": frozenset()}, NO_ARROWS), (of_database, {"calls": False}, NO_CALLS)],
)
def test_queue_alone_says_nothing_of_launches(tmp_path, read, without, sentence):
    found = read(tmp_path, **without)
    assert sentence in found.warnings
    assert causes_us(found) == {"unknown": 785}
    assert queue(found) == []
    assert rows(found).steps[0].breakdown.host_idle_ns is None


@READ
def test_known_launches_need_no_sentence(tmp_path, read):
    assert not {NO_ARROWS, NO_CALLS} & set(read(tmp_path).warnings)


def test_kernel_without_an_arrow_among_others_is_unknown(tmp_path):
    """The gap of 553 us before the second kernel; the first and the third one have theirs."""
    found = of_text(tmp_path, arrows=frozenset((0, 2)))
    assert causes_us(found) == {"unknown": 553, "host": 124 + 100, "launch latency": 6, "between kernels": 2}
    assert queue(found) == [[2, 6 + 92, 92, 1]]
    assert NO_ARROWS not in found.warnings


@pytest.mark.parametrize(("read", "without"), [(of_text, {"arrows": frozenset()}), (of_database, {"calls": False})])
def test_operators_kernels_and_steps_stay_without_launches(tmp_path, read, without):
    whole, less = rows(read(tmp_path)), rows(read(tmp_path, **without))
    for name in ("op_key", "op", "kernel_key", "kernel"):
        assert frame(whole.tables[name]) == frame(less.tables[name])
    names = whole.tables["op_key"]["name"]
    device_us = {names[row["op_key"]]: row["device_self_ns"] / US for row in frame(whole.tables["op"])}
    assert device_us == {"aten::mm": 20, "aten::softmax": 97, "aten::add": 98}
    (step,), (other,) = whole.steps, less.steps
    assert (step.step, step.start_ns, step.breakdown.idle_ns) == (other.step, other.start_ns, other.breakdown.idle_ns)


def test_capture_without_any_launch_stays_as_it_was(tmp_path):
    """No arrow at all: nothing is known of launches, and nothing is missing that could tell."""
    path = made.write_text(tmp_path, arrows=frozenset(), calls=False)
    events = json.loads(path.read_text())
    path.write_text(json.dumps([event for event in events if event.get("cat") != "async_npu"]))
    found = ascend_text.read(path)
    assert NO_ARROWS not in found.warnings
    assert causes_us(found) == {"unknown": 785}


def test_calls_of_another_process_launch_nothing(tmp_path):
    """Connections are numbered by each process: one of process 8 has that of the second kernel."""
    content = made.tables()
    content["CANN_API"].append(db.cann(db.LAYER_NODE, "launch", 701 * US, 702 * US, 502, tid=8 << 32 | 71))
    found = ascend_db.read(write(tmp_path / "ascend_pytorch_profiler_4.db", content))
    assert causes_us(found) == causes_us(of_database(tmp_path))
