"""Every shared Ascend capture in text form, read twice: by the reader, and plainly with csv, json and Decimal."""

from __future__ import annotations

import csv
import json
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest

from tests.real import data
from tracker import readers, timeline
from tracker.profile import MISSING, DeviceKind, LaunchLevel
from tracker.readers import Found
from tracker.timeline.wait_tasks import waits_of

RUNS = [
    f"ascend/{run}/text/{level}/rank{rank}_ascend_pt"
    for run in ("run_2024-10", "run_2025-01")
    for level in ("level0", "level1")
    for rank in (0, 1)
]
TRANSFORMER = [f"ascend/transformer_4ranks_pp2_dp2/rank_{rank}_ascend_pt" for rank in range(4)]
KERNELS_2023 = "ascend/kernel_details_2023/kernel_details.csv"
TRACE_2024 = "ascend/trace_view_2024/trace_view.json"
WITH_KERNELS = [*RUNS, TRANSFORMER[0], TRANSFORMER[2], KERNELS_2023]
WITH_TRACE = [*RUNS, TRACE_2024]
WITH_COMMUNICATION = [*(name for name in RUNS if "level1" in name), *TRANSFORMER]
WITH_MEMORY = [*RUNS, TRANSFORMER[0], TRANSFORMER[2]]


def capture(name):
    path = data.path(name)
    return readers.read(Found(path, readers.claim(path))).captures[0]


def file_of(name, file):
    path = data.path(name)
    return path if path.is_file() else path / "ASCEND_PROFILER_OUTPUT" / file


def rows_of(name, file):
    with file_of(name, file).open(newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def trace_of(name):
    return json.loads(file_of(name, "trace_view.json").read_text(), parse_float=Decimal)


def ns(text):
    return int((Decimal(str(text).strip()) * 1000).to_integral_value())


def names(events, codes):
    return [events.strings[code] for code in codes.tolist()]


def total(table, rows=slice(None)):
    return int((table.end_ns[rows] - table.start_ns[rows]).sum())


@pytest.mark.parametrize("name", WITH_KERNELS)
def test_kernels_are_those_of_kernel_details(name):
    events = capture(name).events
    device = events.device
    rows = rows_of(name, "kernel_details.csv")
    count = len(rows)
    assert (device.kind[count:] == DeviceKind.COPY).all()
    assert device.start_ns[:count].tolist() == [ns(row["Start Time(us)"]) for row in rows]
    assert total(device, slice(count)) == sum(ns(row["Duration(us)"]) for row in rows)
    assert device.wait_ns[:count].sum() == sum(ns(row["Wait Time(us)"]) for row in rows)
    assert device.step[:count].tolist() == [int(row["Step Id"]) for row in rows]
    assert events.extras.block_num[:count].tolist() == [int(row["Block Dim"]) for row in rows]
    assert names(events, device.name[:count]) == [row["Name"] for row in rows]
    if "Type" in rows[0]:
        assert Counter(names(events, device.type[:count])) == Counter(row["Type"].replace("N/A", "") for row in rows)
    is_call = [row["Accelerator Core"] in ("HCCL", "COMMUNICATION") for row in rows]
    assert (device.kind[:count] == DeviceKind.COMMUNICATION).tolist() == is_call
    assert (device.collective >= 0).sum() == sum(is_call) == len(events.collectives)


@pytest.mark.parametrize("name", WITH_KERNELS)
def test_measurements_add_up_to_the_columns_of_kernel_details(name):
    events = capture(name).events
    metrics = events.extras.kernel_metrics
    rows = rows_of(name, "kernel_details.csv")
    titles = list(rows[0])
    last = next((title for title in ("Context ID", "Output Formats") if title in titles), titles[-1])
    measured = titles[titles.index(last) + 1 :]
    expected = {title: [float(row[title]) for row in rows if row[title] != "N/A"] for title in measured}
    found = {}
    for metric, value in zip(names(events, metrics.metric), metrics.value.tolist(), strict=True):
        found.setdefault(metric, []).append(value)
    assert found == {title: values for title, values in expected.items() if values}


def test_shapes_are_spelled_as_in_pytorch_traces():
    events = capture(RUNS[6]).events
    rows = rows_of(RUNS[6], "kernel_details.csv")
    row = next(index for index, row in enumerate(rows) if row["Name"] == "Conv2D1")
    assert rows[row]["Input Shapes"] == '"32,1,224,224,8;121,4,16,8;64"'
    assert names(events, events.device.input_shapes[row : row + 1]) == ["[[32,1,224,224,8],[121,4,16,8],[64]]"]
    assert names(events, events.device.input_types[row : row + 1]) == ["float32,float32,float32"]


@pytest.mark.parametrize("name", WITH_TRACE)
def test_host_events_are_those_of_the_trace(name):
    events = capture(name).events
    slices = [event for event in trace_of(name) if event["ph"] == "X"]
    ops = [e for e in slices if e.get("cat") == "cpu_op" and not e["name"].startswith("ProfilerStep#")]
    frames = [e for e in slices if e.get("cat") == "python_function"]
    calls = [e for e in slices if "level" in e.get("args", {})]
    queue = [e for e in slices if e.get("cat") in ("enqueue", "dequeue")]
    level = events.launches.level
    for table, expected, rows in (
        (events.ops, ops, slice(None)),
        (events.frames, frames, slice(None)),
        (events.launches, calls, ~np.isin(level, (LaunchLevel.FLOW, LaunchLevel.QUEUE))),
        (events.launches, queue, level == LaunchLevel.QUEUE),
    ):
        assert len(table.start_ns[rows]) == len(expected)
        assert total(table, rows) == sum(ns(event["dur"]) for event in expected)
        assert table.start_ns[rows].tolist() == [ns(event["ts"]) for event in expected]
    assert len(events.markers) == sum(event["name"].startswith("ProfilerStep#") for event in slices)
    assert [events.threads[thread] for thread in events.ops.thread.tolist()] == [f"Thread {e['tid']}" for e in ops]


@pytest.mark.parametrize("name", WITH_TRACE)
def test_every_arrow_of_the_trace_links_one_kernel_to_its_op(name):
    events = capture(name).events
    arrows = [event for event in trace_of(name) if event.get("cat") == "async_npu"]
    starts = {event["id"]: event for event in arrows if event["ph"] == "s"}
    ends = {ns(event["ts"]): starts[event["id"]] for event in arrows if event["ph"] == "f"}
    # beside the arrows there are links through the queue, for copies without an arrow
    is_arrow = np.array(names(events, events.launches.name)) == "async_npu"
    flow = (events.launches.level == LaunchLevel.FLOW) & is_arrow
    place = dict(zip(events.launches.correlation[flow].tolist(), np.flatnonzero(flow).tolist(), strict=True))
    linked = 0
    for start, correlation in zip(events.device.start_ns.tolist(), events.device.correlation.tolist(), strict=True):
        expected = next((ends[near] for near in (start, start - 1, start + 1) if near in ends), None)
        row = place.get(correlation)
        assert (row is None) == (expected is None)
        if row is not None:
            linked += 1
            assert events.launches.start_ns[row] == ns(expected["ts"])
            assert events.threads[events.launches.thread[row]] == f"Thread {expected['tid']}"
    assert linked == len(ends)
    op_starts = set(events.ops.start_ns.tolist())
    assert all(start in op_starts for start in events.launches.start_ns[flow].tolist())


@pytest.mark.parametrize("name", WITH_TRACE)
def test_every_arrow_of_cann_gives_its_task_time_and_thread(name):
    events = capture(name).events
    arrows = [event for event in trace_of(name) if event.get("cat") == "HostToDevice"]
    starts = {event["id"]: event for event in arrows if event["ph"] == "s"}
    ends = {ns(event["ts"]): starts[event["id"]] for event in arrows if event["ph"] == "f"}
    extras, known = events.extras, 0
    columns = (events.device.start_ns, extras.handover_ns, extras.handover_thread)
    for start, handover_ns, thread in zip(*(column.tolist() for column in columns), strict=True):
        expected = next((ends[near] for near in (start, start - 1, start + 1) if near in ends), None)
        if expected is None:
            continue
        known += 1
        assert handover_ns == ns(expected["ts"])
        assert events.threads[thread] == f"Thread {expected['tid']}"
    assert known == len(ends)


def test_compiler_on_the_host_makes_no_dependency():
    """274 kernels of which the framework had put most into its queue long before; CANN compiles 6 of 9.5 ms."""
    tables = timeline.build(capture(TRACE_2024)).rows.tables
    idle_ns = Counter()
    for cause, own_ns in zip(tables["idle"]["cause"], tables["idle"]["ns"].tolist(), strict=True):
        idle_ns[cause] += own_ns
    assert idle_ns["dependency"] + idle_ns["between kernels"] <= 100_000
    assert tables["queue"]["kernels"].tolist() == [274]
    # the kernels start 2.7 us before their launch in the mean, by the clock of the device
    assert tables["queue"]["lead_ns"].sum() / 274 < 5_000


@pytest.mark.parametrize("name", RUNS)
def test_all_kernels_of_a_whole_capture_have_an_op(name):
    device = capture(name).events.device
    kernels = device.kind != DeviceKind.COPY
    assert kernels.sum() == (349 if "2024" in name else 191)
    assert (device.correlation[kernels] > 0).all()
    assert (device.stream[kernels] >= 0).all()


@pytest.mark.parametrize("name", RUNS)
def test_the_trace_alone_has_the_kernels_of_kernel_details(name):
    whole = capture(name).events.device
    path = file_of(name, "trace_view.json")
    alone = readers.read(Found(path, readers.claim(path))).captures[0].events.device
    for kind in DeviceKind:
        assert (alone.kind == kind).sum() == (whole.kind == kind).sum(), kind
        difference = np.sort(alone.start_ns[alone.kind == kind]) - np.sort(whole.start_ns[whole.kind == kind])
        assert np.abs(difference).max(initial=0) <= 1


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_blocks_and_points_are_those_of_the_memory_tables(name):
    events = capture(name).events
    blocks, points = events.allocations, events.extras.memory_points
    rows = rows_of(name, "operator_memory.csv")
    sizes = [round(Decimal(row["Size(KB)"]) * 1024) for row in rows]
    assert blocks.bytes[blocks.bytes > 0].tolist() == sizes
    freed = [size for size, row in zip(sizes, rows, strict=True) if row["Release Time(us)"].strip()]
    assert (-blocks.bytes[blocks.bytes < 0]).tolist() == freed
    graph = [size for size, row in zip(sizes, rows, strict=True) if row["Name"].startswith("cann::")]
    of_graph = np.array(names(events, blocks.component)) == "GE"
    assert blocks.bytes[of_graph & (blocks.bytes > 0)].sum() == sum(graph)
    record = rows_of(name, "memory_record.csv")
    assert len(points) == len(record)
    for component in {row["Component"] for row in record}:
        mine = np.array(names(events, points.component)) == component
        reserved = [row["Total Reserved(MB)"] for row in record if row["Component"] == component]
        assert points.reserved_bytes[mine].max() == max(round(Decimal(value) * (1 << 20)) for value in reserved)
        assert (points.allocated_bytes[mine] == MISSING).all() == (component == "APP")


@pytest.mark.parametrize("name", WITH_COMMUNICATION)
def test_times_of_collectives_are_those_of_communication_json(name):
    events = capture(name).events
    times = events.extras.collective_times
    steps = json.loads(file_of(name, "communication.json").read_text()).values()
    records = {op: said for step in steps for kind in step.values() for op, said in kind.items() if "@" in op}
    assert len(times) == len(records) == len(events.collectives)
    for column in ("transit", "wait", "synchronization", "idle"):
        title = f"{column.title()} Time(ms)"
        expected = [round(said["Communication Time Info"][title] * 1e6) for said in records.values()]
        assert sorted(getattr(times, f"{column}_ns").tolist()) == sorted(expected)
    names_of_calls = Counter(
        events.strings[code] for code in events.device.name[events.device.kind == DeviceKind.COMMUNICATION].tolist()
    )
    assert names_of_calls == Counter(op.partition("@")[0] for op in records)


def test_waiting_by_the_tasks_is_that_of_communication_json():
    """On a 910A but for the tasks that wait for the chip itself: 52.22 ms with them in the longest call."""
    events = capture("ascend/run_2024-10/text/level1/rank0_ascend_pt").events
    times = events.extras.collective_times
    said = dict(zip(times.collective.tolist(), times.wait_ns.tolist(), strict=True))
    waits = waits_of(events)
    assert waits.has_peers.all()
    assert waits.wait_ns.tolist() == pytest.approx([said[call] for call in range(len(waits.wait_ns))], rel=0.005)


@pytest.mark.parametrize(
    ("rank", "waited_ms", "said_ms", "for_5_ms"), [(0, 102.04, 5.94, 101.68), (1, 96.34, 0.19, 96.08)]
)
def test_910b_waits_for_rank_5_of_the_group(rank, waited_ms, said_ms, for_5_ms):
    """The profiler's own column counts the first plane alone, on which a rank waits for its neighbour."""
    found = capture(f"ascend/run_2025-01/text/level1/rank{rank}_ascend_pt")
    assert round(sum(found.events.extras.collective_times.wait_ns.tolist()) / 1e6, 2) == said_ms
    assert round(sum(waits_of(found.events).wait_ns.tolist()) / 1e6, 2) == waited_ms
    table = timeline.rows_of(found.events).tables["communication_wait"]
    for_5 = table["total_ns"][table["peer"] == 5].sum()
    assert (round(for_5 / 1e6, 2), set(table["is_global"].tolist())) == (for_5_ms, {0})


@pytest.mark.parametrize("name", WITH_COMMUNICATION)
def test_bytes_between_ranks_are_the_totals_of_the_matrix(name):
    """Also where they are added up task by task from the planes of the trace."""
    events = capture(name).events
    links = events.extras.collective_links
    between = np.flatnonzero(links.source >= 0)
    steps = json.loads(file_of(name, "communication_matrix.json").read_text()).values()
    totals = [
        said
        for step in steps
        for kind in step.values()
        for op, ends in kind.items()
        if "-total@" in op
        for said in ends.values()
    ]
    for transport in {said["Transport Type"] for said in totals}:
        mine = between[np.array(names(events, links.transport[between])) == transport]
        expected = sum(round(said["Transit Size(MB)"] * 1e6) for said in totals if said["Transport Type"] == transport)
        assert links.bytes[mine].sum() == expected
        expected_ns = sum(said["Transit Time(ms)"] * 1e6 for said in totals if said["Transport Type"] == transport)
        assert abs(links.transit_ns[mine].sum() - expected_ns) <= len(mine) * 40


@pytest.mark.parametrize("name", TRANSFORMER)
def test_groups_of_megatron_are_known_by_role_and_members(name):
    read = capture(name)
    rank = int(name.split("rank_")[1][0])
    assert (read.rank, read.world_size) == (rank, 4)
    assert (read.parallel["dp"], read.parallel["stage"]) == (rank % 2, rank // 2)
    calls = read.events.collectives
    roles = Counter(zip(names(read.events, calls.group_role), calls.group_size.tolist(), strict=True))
    assert roles["pp", 2] == 3
    assert roles["default", 4] == 4
    assert "" not in names(read.events, calls.group_role)
    links = read.events.extras.collective_links
    assert set(links.source[links.source >= 0].tolist()) == {rank}


@pytest.mark.parametrize("name", [TRANSFORMER[1], TRANSFORMER[3]])
def test_ranks_without_kernels_are_partial(name):
    read = capture(name)
    assert read.quality == "partial"
    assert (read.events.device.kind == DeviceKind.COMMUNICATION).all()


@pytest.mark.parametrize("name", [*RUNS, *TRANSFORMER])
def test_the_breakdown_of_the_profiler_is_kept_as_counters(name):
    events = capture(name).events
    rows = rows_of(name, "step_trace_time.csv")
    counters = events.extras.counters
    mine = np.array(names(events, counters.source)) == "step_trace_time"
    expected = [
        (row["Step"], title, float(value))
        for title in rows[0]
        if title not in ("Step", "Device_id")
        for row in rows
        for value in [row[title]]
    ]
    said = zip(
        names(events, counters.name[mine]),
        names(events, counters.attribute[mine]),
        counters.value[mine].tolist(),
        strict=True,
    )
    assert sorted(said) == sorted(expected)
    assert events.extras.step_times.bubble_ns.tolist() == [ns(row["Bubble"]) for row in rows]


@pytest.mark.parametrize("name", [*RUNS, *TRANSFORMER])
def test_every_file_of_a_capture_is_read_or_says_nothing_new(name):
    path = data.path(name)
    read = readers.read(Found(path, readers.claim(path)))
    left = {file.name for file in path.rglob("*") if file.is_file()}
    left -= {source.path.rpartition("/")[2] for source in read.captures[0].sources}
    assert left <= {"analysis.db"}
    assert not any("not read" in warning for warning in read.warnings)


def test_all_captures_below_the_folder_are_found_once():
    folder = data.path("ascend")
    found = [one for one in readers.find(folder) if one.format == "ascend_text"]
    assert {str(one.path.relative_to(folder.parent)) for one in found} == {
        *RUNS,
        *TRANSFORMER,
        KERNELS_2023,
        TRACE_2024,
    }


def test_api_statistic_sums_the_calls_of_the_trace_to_the_nanosecond(tmp_path):
    whole = data.path(RUNS[6])
    for path in whole.rglob("*"):
        if path.is_file() and path.name != "trace_view.json":
            link = tmp_path / whole.name / path.relative_to(whole)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)

    def calls(folder):
        (found,) = readers.find(folder)
        api = timeline.rows_of(readers.read(found).captures[0].events).tables["api"]
        names = zip(api["level"], api["name"], api["step"].tolist(), strict=True)
        return dict(zip(names, zip(api["calls"].tolist(), api["total_ns"].tolist(), strict=True), strict=True))

    in_steps = {}
    for (level, name, _), (count, total_ns) in calls(whole).items():
        before = in_steps.get((level, name), (0, 0))
        in_steps[level, name] = (before[0] + count, before[1] + total_ns)
    said = {(level, name): sums for (level, name, _), sums in calls(tmp_path).items()}
    assert len(said) > 50
    assert said == {key: in_steps[key] for key in said}
