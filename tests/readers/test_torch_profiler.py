"""What the reader makes of small hand-written traces: one fact of the format per test."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.readers.helpers import texts
from tests.readers.traces import HOST, flow, kernel, launch, memory, op, step, write
from tracker import readers
from tracker.profile import MISSING, DeviceKind, LaunchLevel
from tracker.readers import Found, ReadOptions
from tracker.timeline import build, rows_of

pytestmark = pytest.mark.usefixtures("decoder")

FIXTURES = Path(__file__).parents[1] / "data" / "torch_profiler"


def read(path, **options):
    return readers.read(Found(path, "torch_profiler"), ReadOptions(**options))


def only(path, **options):
    (capture,) = read(path, **options).captures
    return capture


def collective(events, row):
    table = events.collectives
    words = [events.strings[getattr(table, name)[row]] for name in ("kind", "group_role", "data_type")]
    return (*words, int(table.group_size[row]), int(table.bytes[row]))


def test_bare_list_of_2020_has_text_tids_old_categories_and_absolute_integer_times():
    capture = only(FIXTURES / "bare_list_2020.pt.trace.json")
    events = capture.events
    assert texts(events, events.ops.name) == ["aten::mm"]
    assert texts(events, events.ops.input_shapes) == ["[[8,96],[96,4]]"]
    assert texts(events, events.ops.input_types) == ["float,float"]
    assert events.ops.start_ns.tolist() == [1606910596000100000]
    assert [DeviceKind(kind).name for kind in events.device.kind] == ["KERNEL", "COPY", "MEMSET"]
    assert events.device.stream.tolist() == [7, 7, 7]
    assert events.device.correlation.tolist() == [7, 3, 8]
    assert events.device.bytes.tolist() == [MISSING, 4096, 64]
    assert events.markers.step.tolist() == [5]
    assert events.threads == ("thread 0 (python)",)
    assert (capture.device.model, capture.device_ordinal, capture.rank) == ("unknown", 0, None)
    assert capture.started_at_ns == 1606910596000000000


def test_trace_of_2025_has_relative_times_and_its_facts_behind_the_events():
    capture = only(FIXTURES / "nvidia_2025.pt.trace.json")
    events = capture.events
    assert events.ops.start_ns.tolist() == [1428625731610125]
    assert events.ops.end_ns.tolist() == [1428625731690375]
    assert (events.ops.sequence.tolist(), events.ops.is_backward.tolist()) == ([12], [0])
    assert texts(events, events.frames.name) == ["Linear_0"]
    assert events.frames.is_module.tolist() == [1]
    assert [LaunchLevel(level).name for level in events.launches.level] == ["DRIVER", "PROFILER"]
    assert (events.device.end_ns - events.device.start_ns).tolist() == [20003, 768]
    assert (events.allocations.bytes.tolist(), events.allocations.on_device.tolist()) == ([1024], [1])
    assert capture.started_at_ns == 1751410836000000000 + 1428625731500000
    assert (capture.device.vendor, capture.device.model) == ("NVIDIA", "H100 80GB HBM3")
    assert capture.settings == {"record_shapes": "on", "profile_memory": "on", "with_stack": "on", "process": "100"}
    assert capture.facts["cuda_runtime_version"] == "12.4"


def test_collective_of_kernel_and_of_the_innermost_host_event_are_one_and_the_same():
    capture = only(FIXTURES / "amd_rccl_rank2.pt.trace.json")
    events = capture.events
    # the annotation counts, what lies around it does not; waiting is no collective
    assert dict(zip(texts(events, events.ops.name), events.ops.collective.tolist(), strict=True)) == {
        "c10d::allreduce_": -1,
        "record_param_comms": -1,
        "nccl:all_reduce": 0,
    }
    assert events.device.collective.tolist() == [0]
    assert collective(events, 0) == ("all_reduce", "dp", "bfloat16", 4, 2000)
    assert events.device.kind.tolist() == [DeviceKind.COMMUNICATION]
    assert (capture.rank, capture.world_size, capture.host) == (2, 8, "node-17")
    assert (capture.device.vendor, capture.device.model, capture.device_ordinal) == ("AMD", "Instinct MI300X", 2)
    assert events.device.stream.tolist() == [0]
    assert events.allocations.on_device.tolist() == [1]
    assert capture.facts["hip_runtime_version"] == "6.4.43483"
    assert capture.facts["process_groups"] == "default_pg 8 cuda:nccl; mesh_dp 4 cuda:nccl"


def test_gloo_on_the_cpu_takes_size_from_its_input_and_group_from_the_only_group():
    capture = only(FIXTURES / "cpu_gloo_rank1.pt.trace.json")
    assert capture.device.model == "cpu"
    assert capture.device_ordinal is None
    assert collective(capture.events, 0) == ("all_reduce", "default", "float32", 2, 48)
    assert capture.events.ops.collective.tolist() == [-1, 0]
    assert capture.events.allocations.on_device.tolist() == [0]


def test_absolute_float_times_keep_their_last_digit(tmp_path):
    text = (
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1,'
        ' "ts": 1736413971558972.912, "dur": 0.001}]}'
    )
    (tmp_path / "a.json").write_text(text)
    events = only(tmp_path / "a.json").events
    assert (events.ops.start_ns.tolist(), events.ops.end_ns.tolist()) == ([1736413971558972912], [1736413971558972913])


def test_times_as_text_are_read_like_numbers(tmp_path):
    events = only(write(tmp_path, [op("a", "1736413971558972.912", "2.5"), op("b", 5, 1)])).events
    assert events.ops.start_ns.tolist() == [1736413971558972912, 5000]


def test_gzip_is_told_by_content_not_by_name(tmp_path):
    plain = write(tmp_path, [op("a", 1, 2)])
    (tmp_path / "zipped.json").write_bytes(gzip.compress(plain.read_bytes()))
    (tmp_path / "plain.json.gz").write_bytes(plain.read_bytes())
    digests = {only(path).sources[0].digest for path in tmp_path.iterdir()}
    assert len(digests) == 1


def test_shapes_read_alike_in_old_and_new_spelling_and_missing_is_not_empty(tmp_path):
    events = only(
        write(
            tmp_path,
            [
                op("a", 1, 1, **{"Input Dims": [[2, 3], []], "Input type": ["float", ""]}),
                op("a", 2, 1, **{"Input dims": [[2, 3], []], "Input type": ["float", ""]}),
                op("a", 3, 1),
                op("a", 4, 1, **{"Input Dims": [[], []], "Input type": ["", ""]}),
                op("a", 5, 1, **{"Input Dims": "8,8;8", "Input type": "float;int"}),
            ],
            indent=2,
        )
    ).events
    assert texts(events, events.ops.input_shapes) == ["[[2,3],[]]", "[[2,3],[]]", "", "[[],[]]", "8,8;8"]
    assert texts(events, events.ops.input_types) == ["float,", "float,", "", ",", "float;int"]


def test_call_stack_module_path_and_backward_flag_come_from_args(tmp_path):
    more = {"Call stack": "a.py(1): f;b.py(2): g", "Module Hierarchy": "Net.block.linear", "Fwd thread id": 1}
    events = only(write(tmp_path, [op("MmBackward0", 1, 1, **more, **{"Sequence number": 7}), op("x", 3, 1)])).events
    assert texts(events, events.ops.call_stack) == ["a.py(1): f;b.py(2): g", ""]
    assert texts(events, events.ops.module) == ["Net/block/linear", ""]
    assert (events.ops.is_backward.tolist(), events.ops.sequence.tolist()) == ([1, 0], [7, -1])


def measured(events):
    table = events.extras.kernel_metrics
    return list(zip(table.event.tolist(), texts(events, table.metric), table.value.tolist(), strict=True))


def test_kernels_state_their_occupancy_blocks_and_warps(tmp_path):
    states = {"est. achieved occupancy %": 75, "blocks per SM": 39.280304, "warps per SM": 157.121216}
    events = only(write(tmp_path, [kernel("a", 1, 1, **states), kernel("b", 3, 1), kernel("c", 5, 1)])).events
    assert measured(events) == [(0, name, value) for name, value in states.items()]


def test_an_occupancy_of_zero_is_stated_and_a_negative_one_is_not(tmp_path):
    # Kineto writes -99 where it could not compute one
    kernels = [kernel("k", at, 1, **{"est. achieved occupancy %": value}) for at, value in enumerate((0, -99, None, 3))]
    assert [row[::2] for row in measured(only(write(tmp_path, kernels)).events)] == [(0, 0.0), (3, 3.0)]


def test_copies_have_no_occupancy(tmp_path):
    copy = kernel("Memcpy HtoD", 1, 1, cat="gpu_memcpy", **{"blocks per SM": 1.5})
    assert measured(only(write(tmp_path, [copy, kernel("k", 3, 1)])).events) == []


def test_metrics_of_two_devices_belong_to_their_kernels(tmp_path):
    kernels = [kernel("k", at, 1, device=at % 2, **{"blocks per SM": at + 0.5}) for at in range(4)]
    captures = read(write(tmp_path, [op("a", 0, 9), *kernels])).captures
    assert [[row[::2] for row in measured(one.events)] for one in captures] == [
        [(0, 0.5), (1, 2.5)],
        [(0, 1.5), (1, 3.5)],
    ]


@pytest.mark.parametrize("value", [[], {}, ["a"], {"a": 1}, 7, False, 0.0, None])
@pytest.mark.parametrize("key", ["Call stack", "Module Hierarchy"])
def test_a_stack_or_module_that_is_no_text_is_none(tmp_path, key, value):
    events = only(write(tmp_path, [op("a", 1, 1, **{key: value}), op("b", 3, 1)])).events
    assert events.ops.call_stack.tolist() == events.ops.module.tolist() == [0, 0]


def test_frames_kineto_could_not_place_go_to_the_thread_of_the_marker(tmp_path):
    frame = {"cat": "python_function", "pid": 0, "tid": 0}
    events = only(
        write(
            tmp_path,
            [
                op("nn.Module: Net_0", 1, 90, **frame),
                op("busy", 1, 1, tid=8),
                op("busy", 2, 1, tid=8),
                step(1, 0, 99),
                op("a", 5, 1),
            ],
        )
    ).events
    marked = events.threads.index(f"thread {HOST}")
    assert events.frames.thread.tolist() == [marked]


def test_frames_of_a_helper_thread_stay_apart_from_those_of_the_main_thread(tmp_path):
    helper = {"cat": "python_function", "pid": 0, "tid": 0}
    events = only(
        write(
            tmp_path,
            [
                op("threading.py(1): run", 0, 99, **helper),
                op("train.py(1): f", 0, 99, cat="python_function"),
                step(1, 0, 99),
                op("a", 5, 1),
            ],
        )
    ).events
    assert events.frames.thread[0] != events.frames.thread[1]
    assert events.frames.thread[1] == events.ops.thread[0]


def test_what_is_no_work_is_left_out(tmp_path):
    skipped = [
        op("ProfilerStep#1", 1, 5, cat="gpu_user_annotation", pid=0, tid=7),
        op("PyTorch Profiler (0)", 0, 99, cat="Trace", pid="Spans", tid="PyTorch Profiler"),
        {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "T", "ts": 0},
        {},
    ]
    capture = only(write(tmp_path, [*skipped, op("a", 1, 1)]))
    assert (len(capture.events.ops), len(capture.events.device), len(capture.events.markers)) == (1, 0, 0)


def test_work_of_the_profiler_itself_is_a_call_that_bounds_no_capture_and_explains_no_gap(tmp_path):
    """Kineto does not say which thread it keeps busy, so that nobody knows for whom the device waits."""
    events = [op("a", 1, 9), launch(5, 2), kernel("k", 3, 2, 5), launch(6, 20), kernel("k", 21, 2, 6)]
    flush = op("Buffer Flush", 6, 900, cat="overhead", pid=-1, tid=0)
    plain, flushed = (rows_of(only(write(tmp_path, [*events, *more])).events) for more in ((), (flush,)))
    assert flushed.overall == plain.overall
    assert flushed.tables["idle"]["cause"] == plain.tables["idle"]["cause"]
    calls = flushed.tables["api"]
    assert ("profiler", "Buffer Flush") in zip(calls["level"], calls["name"], strict=True)


def test_outermost_of_two_markers_with_one_number_stays(tmp_path):
    events = only(write(tmp_path, [step(4, 10, 5), step(4, 8, 20), step(5, 40, 1), op("a", 9, 1)])).events
    assert list(zip(events.markers.step.tolist(), events.markers.start_ns.tolist(), strict=True)) == [
        (4, 8000),
        (5, 40000),
    ]


def test_marker_of_another_process_counts_for_the_process_with_the_ops(tmp_path):
    path = write(tmp_path, [step(1, 0, 99, pid=555, tid=555), op("a", 5, 1), launch(3, 5), kernel("k", 7, 2, 3)])
    events = only(path).events
    assert events.markers.step.tolist() == [1]
    assert events.threads == (f"thread {HOST}",)


def test_each_device_of_a_process_is_a_capture_and_host_time_counts_with_the_first(tmp_path):
    names = [{"id": 0, "name": "NVIDIA A"}, {"id": 1, "name": "NVIDIA B"}]
    events = [
        op("a", 1, 9),
        launch(1, 2),
        launch(2, 3),
        kernel("k0", 4, 1, 1),
        kernel("k1", 5, 1, 2, device=1),
        memory(6, 100, **{"Device Id": 1}),
        memory(7, 8, device_type=0),
    ]
    first, second = read(write(tmp_path, events, deviceProperties=names, distributedInfo={"rank": 3})).captures
    assert (first.device.model, first.rank, first.events.host_is_primary) == ("A", 3, True)
    assert (second.device.model, second.rank, second.events.host_is_primary) == ("B", None, False)
    assert texts(first.events, first.events.device.name) == ["k0"]
    assert texts(second.events, second.events.device.name) == ["k1"]
    assert (first.events.allocations.bytes.tolist(), second.events.allocations.bytes.tolist()) == ([8], [100])


def test_device_events_belong_to_the_process_that_launched_them(tmp_path):
    events = [
        op("a", 1, 9),
        op("a", 2, 9),
        op("b", 1, 9, pid=200, tid=200),
        launch(1, 2),
        launch(7, 3),
        launch(7, 3, pid=200, tid=200),
        launch(2, 4, pid=200, tid=200),
        kernel("mine", 5, 1, 1),
        kernel("theirs", 6, 1, 2, device=1),
        kernel("either", 8, 1, 7, device=1),
        kernel("nobody's", 9, 1, 99, device=1),
    ]
    first, second = read(write(tmp_path, events)).captures
    assert texts(first.events, first.events.device.name) == ["mine"]
    assert texts(second.events, second.events.device.name) == ["theirs", "either", "nobody's"]
    assert texts(second.events, second.events.ops.name) == ["b"]


def test_device_event_without_correlation_is_linked_by_its_flow_arrow(tmp_path):
    events = [
        op("a", 1, 9),
        launch(5, 2),
        kernel("called", 20, 1, 5),
        kernel("arrow", 30, 1),
        kernel("alone", 40, 1),
        flow("s", 77, 4),
        flow("f", 77, 30.001, pid=0, tid=7),
    ]
    found = only(write(tmp_path, events)).events
    assert [LaunchLevel(level).name for level in found.launches.level] == ["RUNTIME", "FLOW"]
    assert found.launches.start_ns.tolist() == [2000, 4000]
    assert found.device.correlation.tolist() == [5, found.launches.correlation[1], -1]


def test_correlation_of_all_ones_names_no_launch(tmp_path):
    """4294967295 is -1 in 32 bits: the kernels are of nobody, and no launch lost any."""
    none = 4_294_967_295
    path = write(tmp_path, [launch(5, 0), kernel("k", 2, 3, none), kernel("k", 6, 3, none)])
    capture = only(path)
    assert capture.events.device.correlation.tolist() == [-1, -1]
    assert build(capture).quality == "ok"


def test_chosen_flow_category_goes_before_correlation_and_a_wrong_one_is_told(tmp_path):
    arrow = [flow("s", 9, 4, cat="mine"), flow("f", 9, 20, pid=0, tid=7, cat="mine")]
    path = write(tmp_path, [op("a", 1, 9), launch(5, 2), kernel("k", 20, 1, 5), *arrow])
    chosen = only(path, flow_category="mine").events
    assert chosen.device.correlation.tolist() == [chosen.launches.correlation[1]]
    assert only(path).events.device.correlation.tolist() == [5]
    assert read(path, flow_category="typo").warnings[0] == "no flow events of category 'typo'; linked by correlation"


def test_a_trace_without_steps_or_without_known_work_says_so(tmp_path):
    work, steps = [op("a", 1, 9), kernel("k", 2, 1)], [step(1, 0, 20)]
    strange = [op("a", 1, 9, cat="cpu_task"), kernel("k", 2, 1, cat="gpu_task")]
    traces = (work + steps, work, strange + steps)
    marked, unmarked, unknown = (read(write(tmp_path, events)).warnings for events in traces)
    assert marked == ()
    assert [text.split(":")[0] for text in unmarked] == ["no ProfilerStep marks a step (prof.step())"]
    assert [text.split(":")[0] for text in unknown] == ["no event of a known category is an operator or a kernel"]


def test_file_name_tells_the_rank_only_where_the_trace_does_not(tmp_path):
    events = [op("a", 1, 1)]
    assert only(write(tmp_path, events, name="rank-12.pt.trace.json")).rank == 12
    assert only(write(tmp_path, events, name="rank0.json", distributedInfo={"rank": 5})).rank == 5
    assert only(write(tmp_path, events, name="worker0.json")).rank is None


def test_time_without_base_is_utc_only_where_it_can_be(tmp_path):
    assert only(write(tmp_path, [op("a", 1661203462598738, 1)])).started_at_ns == 1661203462598738000
    assert only(write(tmp_path, [op("a", 5, 1)])).started_at_ns is None


@pytest.mark.parametrize(
    ("events", "name"),
    [
        ([op("a", 1, 1)], "cpu"),
        ([op("a", 1, 1), launch(1, 2)], "H100 80GB HBM3"),
        ([op("a", 1, 1), memory(2, 64)], "H100 80GB HBM3"),
    ],
)
def test_device_counts_only_where_the_trace_uses_it(tmp_path, events, name):
    assert only(write(tmp_path, events)).device.model == name


def test_secrets_of_a_trace_reach_no_text_of_the_profile(tmp_path):
    token = "hf_PLANTED_TOKEN"
    secret = {"HF_TOKEN": token}
    event = op("a", 1, 1, env=secret, **{"Concrete Inputs": [token]})
    path = write(
        tmp_path, [event], metadata=secret, INFO=secret, username=token, traceName=token, cupti_version=secret,
        distributedInfo={"rank": 0, "env": token, "nccl_version": [token]}, record_shapes=token,
    )  # fmt: skip
    profile = read(path)
    assert token in path.read_text()
    assert token not in repr(profile)
    assert not [text for capture in profile.captures for text in capture.events.strings.texts if token in text]


def test_input_file_is_left_as_it_was(tmp_path):
    path = write(tmp_path, [op("a", 1, 1)])
    path.chmod(0o444)
    before = path.stat().st_mtime_ns, path.read_bytes()
    only(path)
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_progress_ends_at_the_size_on_disk(tmp_path):
    path = write(tmp_path, [op("a", 1, 1)])
    calls = []
    only(path, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (path.stat().st_size, path.stat().st_size)
