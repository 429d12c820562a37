"""Every shared export of CANN msprof, read twice: by the reader, and plainly with csv, json and Decimal."""

from __future__ import annotations

import csv
import json
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest

import tracker
from tests.real import data
from tracker import readers, reports, timeline
from tracker.compare import show
from tracker.intake import ingest
from tracker.profile import DeviceKind
from tracker.readers import Found
from tracker.readers._source import read_head
from tracker.results import ShowOptions
from tracker.store import open_store

DEVICES = {
    0: ("cann/PROF_000001_20230818142704322_COJGGGCANRMICFBC", 2),
    1: ("cann/PROF_000001_20230818142704567_GQFAMHBKGODKJMLA", 0),
}
ITERATIONS = range(1, 11)
OP_SUMMARIES = [
    "cann/neo-pan_ascend-msprof-skill_8d845a46/PROF_000001_20260605161708478_FRJKORBPFMHQMGLA",
    "cann/vllm-ascend_906343206e8d/PROF_L2Cache",
    "cann/vllm-ascend_906343206e8d/PROF_ResourceConflictRatio",
]
KERNEL_TYPES = ("AI_CORE", "AI_CPU")


def capture(name):
    path = data.path(name)
    (only,) = readers.read(Found(path, readers.claim(path))).captures
    return only


def plain(device, kind, iteration):
    """The events of one timeline file without its names, numbers with all their digits."""
    name, model = DEVICES[device]
    path = data.path(name) / f"device_{device}" / "timeline" / f"{kind}_{device}_{model}_{iteration}.json"
    return [event for event in json.loads(path.read_text(), parse_float=Decimal) if event["ph"] != "M"]


def every(device, kind):
    return [event for iteration in ITERATIONS for event in plain(device, kind, iteration)]


def key(event):
    return event["name"], event["ts"], event.get("dur"), json.dumps(event.get("args"), default=str)


def ns(value):
    return int((Decimal(value) * 1000).to_integral_value())


def names(events, codes):
    return [events.strings[code] for code in codes.tolist()]


def offset(device):
    """What to add to the machine's clock to get UTC, ns."""
    name, _ = DEVICES[device]
    start = json.loads((data.path(name) / f"device_{device}" / f"start_info.{device}").read_text())
    return int(start["collectionTimeBegin"]) * 1000 - int(start["clockMonotonicRaw"])


def rows_of(name):
    (path,) = (data.path(name) / "mindstudio_profiler_output").glob("op_summary_*.csv")
    with path.open(newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


@pytest.mark.slow
def test_every_shared_file_has_at_most_one_claimant():
    root = data.path("cann").parent
    for path in sorted(root.rglob("*")):
        head = read_head(path) if path.is_file() else b""
        claims = [name for name in readers.NAMES if readers.load(name).sniff(path, head)]
        assert len(claims) <= 1, f"{path}: {claims}"
        if path.is_relative_to(root / "cann"):
            assert claims in ([], ["cann"])
    found = readers.find(root / "cann")
    assert {item.format for item in found} == {"cann"}
    assert len(found) == len(DEVICES) + len(OP_SUMMARIES)


@pytest.mark.parametrize("device", DEVICES)
def test_msprof_holds_what_task_time_and_hccl_hold_and_step_trace_is_one_file(device):
    steps = Counter(map(key, plain(device, "step_trace", 1)))
    for iteration in ITERATIONS:
        whole = Counter(map(key, plain(device, "msprof", iteration)))
        tasks = Counter(map(key, plain(device, "task_time", iteration)))
        assert Counter({event: n for event, n in whole.items() if "Task Type" in event[3]}) == tasks
        assert not Counter(map(key, plain(device, "hccl", iteration))) - whole
        assert Counter(map(key, plain(device, "step_trace", iteration))) == steps
        own = {event for event in steps if event[0].endswith((f" {iteration}", f"_{iteration}_0"))}
        assert own == {event for event in steps if event in whole}


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_and_collectives_are_those_of_the_timeline(device):
    events = capture(DEVICES[device][0]).events
    rows, shift = events.device, offset(device)
    kernels = [event for event in every(device, "task_time") if event["args"]["Task Type"] in KERNEL_TYPES]
    calls = [event for event in every(device, "hccl") if event["tid"] == 70000]
    assert (len(kernels), len(calls)) == (1390, 10)
    for kind, expected in ((DeviceKind.KERNEL, kernels), (DeviceKind.COMMUNICATION, calls)):
        mine = np.flatnonzero(rows.kind == kind)
        spans = zip(
            names(events, rows.name[mine]), rows.start_ns[mine].tolist(), rows.end_ns[mine].tolist(), strict=True
        )
        assert sorted(spans) == sorted(
            (e["name"], ns(e["ts"]) + shift, ns(e["ts"]) + shift + ns(e["dur"])) for e in expected
        )
    # all copies run on streams of the collective: they are its tasks
    assert not (rows.kind == DeviceKind.COPY).any()


@pytest.mark.parametrize("device", DEVICES)
def test_tasks_and_bytes_of_collectives_are_those_of_their_planes(device):
    events = capture(DEVICES[device][0]).events
    tasks = [event for event in every(device, "hccl") if event["tid"] != 70000]
    found = events.extras.collective_tasks
    assert Counter(names(events, found.name)) == Counter(event["name"] for event in tasks)
    assert int((found.end_ns - found.start_ns).sum()) == sum(ns(event["dur"]) for event in tasks)
    moved = Counter()
    for event in tasks:
        args = event["args"]
        if args["size(Byte)"]:
            target = args["src rank"] if args["dst rank"] == 4294967295 else args["dst rank"]
            moved[args["src rank"], target] += args["size(Byte)"]
    links, counted = events.extras.collective_links, Counter()
    for source, target, size in zip(links.source.tolist(), links.target.tolist(), links.bytes.tolist(), strict=True):
        counted[source, target] += size
    assert counted == moved


@pytest.mark.parametrize("device", DEVICES)
def test_iterations_are_steps_and_hold_their_kernels(device):
    read = capture(DEVICES[device][0])
    spans = [event for event in plain(device, "step_trace", 1) if event.get("cat") == "Iteration Time"]
    steps = timeline.build(read).rows.steps
    assert [step.step for step in steps] == [event["args"]["Iteration ID"] for event in spans] == list(ITERATIONS)
    assert [step.breakdown.duration_ns for step in steps] == [ns(event["dur"]) for event in spans]
    assert {step.breakdown.kernel_count for step in steps} == {140}
    assert sum(step.breakdown.communication_ns for step in steps) == sum(
        ns(event["dur"]) for event in every(device, "hccl") if event["tid"] == 70000
    )


@pytest.mark.parametrize("device", DEVICES)
def test_compute_of_a_step_is_what_the_profiler_itself_calls_computing(device):
    steps = timeline.build(capture(DEVICES[device][0])).rows.steps
    for step in steps:
        slices = [event for event in plain(device, "msprof", step.step) if event["name"] == "Computing"]
        # the profiler's slices are unions of kernels, each end rounded to 10 ns
        assert abs(sum(ns(event["dur"]) for event in slices) - step.breakdown.compute_ns) <= 10 * len(slices)


@pytest.mark.parametrize("device", DEVICES)
def test_core_times_are_microseconds_by_their_cycles(device):
    read = capture(DEVICES[device][0])
    metrics, events = read.events.extras.kernel_metrics, read.events
    values = {}
    columns = (metrics.event.tolist(), names(events, metrics.metric), metrics.value.tolist())
    for event, metric, value in zip(*columns, strict=True):
        values.setdefault(event, {})[metric] = value
    on_core = [e["args"] for e in every(device, "task_time") if e["args"]["Aicore Time(ms)"] != "N/A"]
    assert len(values) == len(on_core)
    assert sum(value["total_cycles"] for value in values.values()) == sum(args["Total Cycle"] for args in on_core)
    cores, mhz = int(read.facts["ai_core_num"]), int(read.facts["aic_frequency"])
    largest = max(values.values(), key=lambda value: value["total_cycles"])
    assert largest["aicore_time(us)"] == pytest.approx(largest["total_cycles"] / cores / mhz, rel=1e-3)


def test_gaps_before_the_iterations_are_those_between_their_ends_and_starts():
    events = capture(DEVICES[0][0]).events
    spans = {
        e["args"]["Iteration ID"]: e["args"] for e in plain(0, "step_trace", 1) if e.get("cat") == "Iteration Time"
    }
    rows = events.extras.counters
    gaps = [row for row, code in enumerate(rows.attribute.tolist()) if events.strings[code] == "Data_aug Bound(us)"]
    found = {int(rows.step[row]): rows.value[row] for row in gaps}
    assert found == {
        number: pytest.approx(float(spans[number]["FP Start"] - spans[number - 1]["Iteration End"]), abs=0.01)
        for number in range(2, 11)
    }


def test_two_devices_are_two_ranks_of_one_run():
    with open_store("sqlite://") as store:
        (result,) = ingest(store, [data.path(name) for name, _ in DEVICES.values()], version="v1", workload="alexnet")
        assert (result.ranks, result.steps, result.device) == ((0, 1), 10, "Huawei Ascend910A")
        report = json.loads(reports.render(show(store, "latest", options=ShowOptions()), "json"))
    assert [row["kernel_count"] for row in report["overall"]] == [1400, 1400]
    for whole, table in (("e2e_ns", report["overall"]), ("duration_ns", report["steps"])):
        for row in table:
            parts = row["compute_ns"] + row["exposed_communication_ns"] + row["exposed_copy_ns"] + row["idle_ns"]
            assert parts == row[whole]


@pytest.mark.parametrize("name", OP_SUMMARIES)
def test_rows_of_op_summary_are_kernels_and_their_measurements(name):
    read, rows = capture(name), rows_of(name)
    events, device = read.events, read.events.device
    assert (read.rank, read.device_ordinal, read.device.model) == (None, 0, "unknown")
    assert device.start_ns.tolist() == [ns(row["Task Start Time(us)"].strip()) for row in rows]
    durations = (device.end_ns - device.start_ns).tolist()
    assert durations == [ns(row["Task Duration(us)"]) for row in rows]
    assert device.wait_ns.tolist() == [ns(row["Task Wait Time(us)"]) for row in rows]
    assert names(events, device.core_type) == [row["Task Type"] for row in rows]
    blocks = [int(row.get("Block Num") or row["Block Dim"]) for row in rows]
    assert events.extras.block_num.tolist() == blocks
    titles = list(rows[0])
    measured = titles[titles.index("Context ID") + 1 :]
    metrics = events.extras.kernel_metrics
    found = {}
    for metric, value in zip(names(events, metrics.metric), metrics.value.tolist(), strict=True):
        found.setdefault(metric, []).append(value)
    assert found == {title: [float(row[title]) for row in rows] for title in measured}


def test_dated_names_of_files_change_no_verdict(tmp_path):
    """Three runs, and three whose times are 1.3 times as long, each time 1 % of noise: in one name, and in six."""
    rows = rows_of(OP_SUMMARIES[0])
    start_us = Decimal(rows[0]["Task Start Time(us)"].strip())
    judged = []
    for name in ("op_summary.csv", "op_summary_2026060516170{run}.csv"):
        with open_store("sqlite://") as store:
            for run in range(6):
                noise = np.random.default_rng(run).normal(1.0, 0.01, len(rows))
                scale = Decimal("1.3") if run >= 3 else Decimal(1)
                file = tmp_path / name / str(run) / name.format(run=run)
                file.parent.mkdir(parents=True)
                with file.open("w", newline="", encoding="utf-8") as text:
                    writer = csv.DictWriter(text, list(rows[0]))
                    writer.writeheader()
                    for row, factor in zip(rows, noise.tolist(), strict=True):
                        since_us = Decimal(row["Task Start Time(us)"].strip()) - start_us
                        duration_us = Decimal(row["Task Duration(us)"]) * scale * round(Decimal(factor), 5)
                        changed = {
                            "Task Start Time(us)": f"{start_us + since_us * scale:.3f}",
                            "Task Duration(us)": f"{duration_us:.3f}",
                        }
                        writer.writerow(row | changed)
                ingest(store, [file], version="v1" if run < 3 else "v2", workload="w")
            compared = tracker.diff("v1", "v2", store=store)
            found = tracker.findings(store=store)
            judged.append([reports.render(compared, "json"), reports.render(found, "json")])
    assert judged[0] == judged[1]
    (kernel,) = found.findings.query("kind == 'kernel'").itertuples()
    assert (kernel.name, kernel.verdict, round(kernel.ratio, 1)) == ("main_kernel", "REGRESSED", 0.3)


def test_one_operator_measured_twice_has_the_metrics_of_both_groups_under_one_kernel():
    with open_store("sqlite://") as store:
        for version, name in zip(("l2", "conflict"), OP_SUMMARIES[1:], strict=True):
            (result,) = ingest(store, [data.path(name)], version=version, workload="w")
            assert result.steps == 1
    kernels = [timeline.build(capture(name)).rows.tables["kernel_key"] for name in OP_SUMMARIES[1:]]
    for column in ("canonical_name", "core_type", "input_shapes", "input_types"):
        assert kernels[0][column] == kernels[1][column]


@pytest.mark.parametrize("device", DEVICES)
def test_every_collective_waits_as_long_as_its_waiting_tasks_though_no_file_says_it(device):
    table = timeline.build(capture(DEVICES[device][0])).rows.tables["communication"]
    total, wait, exposed_wait = (table[name] for name in ("total_ns", "wait_ns", "exposed_wait_ns"))
    assert (wait > 0).all()
    # nothing computes beside these collectives
    assert table["exposed_ns"].tolist() == total.tolist()
    assert exposed_wait.tolist() == wait.tolist()
    assert (wait < total).all()


@pytest.mark.parametrize("device", DEVICES)
def test_the_bottleneck_says_how_much_of_the_capture_its_steps_leave_out(device):
    """The device is busy in its ten iterations, and these are little more than half of what was traced."""
    name, _ = DEVICES[device]
    work = [event for event in every(device, "task_time") if event["args"]["Task Type"] in KERNEL_TYPES]
    work += [event for event in every(device, "hccl") if event["tid"] == 70000]
    whole = max(ns(e["ts"]) + ns(e["dur"]) for e in work) - min(ns(e["ts"]) for e in work)
    inside = sum(ns(e["dur"]) for e in plain(device, "step_trace", 1) if e.get("cat") == "Iteration Time")
    with open_store("sqlite://") as store:
        ingest(store, [data.path(name)], version="v1", workload="w")
        shown = show(store, "v1")
    assert shown.bottleneck.outside_steps_share == pytest.approx(1 - inside / whole, abs=1e-6)
    share = {0: "47.0 %", 1: "44.6 %"}[device]
    told = f"This leaves out {share} of the capture's E2E, which lies outside of the steps."
    assert told in " ".join(reports.render(shown, "text").split())
