"""Nsight Systems exports, made by hand: what each table becomes, and what the versions call it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.readers.nsys_databases import (
    DOMAIN,
    START_END,
    UTC,
    T,
    call,
    kernel,
    one_step,
    pid,
    span,
    tid,
    write,
)
from tracker import readers
from tracker.errors import SourceError
from tracker.profile import CPU, MISSING, MODULE_CALLS, UNKNOWN_DEVICE, Device, DeviceKind, LaunchLevel
from tracker.readers import ReadOptions, nsys_sqlite
from tracker.timeline import rows_of


def read(tmp_path, tables, name="a.sqlite", **options):
    return nsys_sqlite.read(write(tmp_path / name, tables), ReadOptions(**options))


def only(profile):
    (capture,) = profile.captures
    return capture


def texts(events, codes):
    return [events.strings[code] for code in codes.tolist()]


def frame(table):
    """The rows of a table of `Rows`, as dicts."""
    columns = {name: list(column) for name, column in table.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def kernels(capture):
    """Kernel name -> (launching op, its module, its phase, calls, total ns)."""
    rows = rows_of(capture.events).tables
    keys, ops = frame(rows["kernel_key"]), frame(rows["op_key"])
    found = {}
    for row in frame(rows["kernel"]):
        op = ops[row["op_key"]]
        found[keys[row["kernel_key"]]["name"]] = (
            op["name"], op["module"], op["phase"], int(row["calls"]), int(row["total_ns"]),
        )  # fmt: skip
    return found


def test_kernels_hang_on_the_innermost_range_around_their_launch(tmp_path):
    assert kernels(only(read(tmp_path, one_step()))) == {
        "ampere_sgemm_128x64_tn": ("attention", "layer_0/attention", "forward", 1, 60),
        "Memcpy HtoD (Pageable -> Device)": ("attention", "layer_0/attention", "forward", 1, 10),
        "void relu<(int)4>(float *)": ("(no op)", "", "", 1, 20),
        "Memset (Device)": ("(no op)", "", "", 1, 2),
    }


def test_calls_of_the_operating_system_are_host_calls_that_bound_no_capture(tmp_path):
    """A wait of 9 s reaches beyond the work; the ioctl inside cudaMalloc stays cudaMalloc's time."""
    tables = one_step()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(call("cudaMalloc", 1000, 1100))
    plain = only(read(tmp_path, tables))
    os_calls = [("pthread_cond_wait", 0, 9 * 10**9, tid(7, 8)), ("ioctl", 1010, 1050, tid(7)), ("poll", 5, 6, tid(99))]
    tables["OSRT_API"] = [
        {"start": start, "end": end, "eventClass": 27, "globalTid": thread, "nameId": T(name), "returnValue": 0}
        for name, start, end, thread in os_calls
    ]
    traced = only(read(tmp_path, tables, name="b.sqlite"))
    assert (traced.started_at_ns, traced.ended_at_ns) == (plain.started_at_ns, plain.ended_at_ns)
    rows = rows_of(traced.events)
    assert rows.overall == rows_of(plain.events).overall
    calls = {(row["level"], row["name"]): (row["total_ns"], row["self_ns"]) for row in frame(rows.tables["api"])}
    assert calls["os", "pthread_cond_wait"] == (9 * 10**9, 9 * 10**9)
    assert (calls["os", "ioctl"], calls["runtime", "cudaMalloc"]) == ((40, 40), (100, 100))
    assert ("os", "poll") not in calls  # of another process


def test_range_that_counts_up_is_the_step_and_no_op(tmp_path):
    capture = only(read(tmp_path, one_step()))
    rows = rows_of(capture.events)
    (step,) = rows.steps
    assert (step.step, step.breakdown.duration_ns) == (17, 300)
    assert step.breakdown.compute_ns == 80
    assert step.breakdown.copy_ns == 10
    assert rows.overall.copy_ns == 12, "the memset was launched behind the step"
    assert texts(capture.events, capture.events.ops.name) == ["forward", "layer_0", "attention"]


def test_who_ran_is_read_by_an_allow_list(tmp_path):
    capture = only(read(tmp_path, one_step()))
    assert capture.host == "node-3"
    assert capture.device == Device("NVIDIA", "A100-SXM4-80GB")
    assert capture.device_ordinal == 0
    assert (capture.started_at_ns, capture.ended_at_ns) == (UTC + 100, UTC + 432)
    assert capture.facts == {
        "nsys_version": "2025.1.0",
        "nsys_schema_version": "3.18.0",
        "driver_version": "570.172.08",
        "cuda_driver_version": "12.8",
    }
    assert capture.settings == {"cuda_graph_trace": "node"}
    assert "secret" not in f"{capture}{capture.events.strings.texts}"


def test_api_names_lose_the_version_of_the_binary_interface(tmp_path):
    events = only(read(tmp_path, one_step())).events
    names = texts(events, events.launches.name)
    assert names == ["cudaMemcpyAsync", "cudaLaunchKernel", "cuLaunchKernelEx", "cudaMemsetAsync"]
    levels = [LaunchLevel(level).name for level in events.launches.level.tolist()]
    assert levels == ["RUNTIME", "RUNTIME", "DRIVER", "RUNTIME"]


def test_nothing_is_written_into_or_beside_the_export(tmp_path):
    path = write(tmp_path / "a.sqlite", one_step())
    path.chmod(0o444)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    nsys_sqlite.read(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.sqlite"]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


# -- versions


def test_export_of_2019_has_texts_in_the_rows_no_process_of_kernels_and_one_name(tmp_path):
    tables = one_step()
    del tables["META_DATA_EXPORT"], tables["META_DATA_CAPTURE"], tables["TARGET_INFO_SESSION_START_TIME"]
    for row in tables["CUPTI_ACTIVITY_KIND_KERNEL"]:
        row["name"] = row.pop("demangledName")
        del row["shortName"]
    for name in ("KERNEL", "MEMCPY", "MEMSET"):
        for row in tables[f"CUPTI_ACTIVITY_KIND_{name}"]:
            del row["globalPid"]
    for row in tables["NVTX_EVENTS"]:
        row["text"] = str(row.pop("textId"))
        del row["endGlobalTid"], row["domainId"]
    tables["TARGET_INFO_GPU"] = [{"id": 0, "name": "Tesla V100-SXM2-16GB"}]
    capture = only(read(tmp_path, tables))
    assert kernels(capture)["ampere_sgemm_128x64_tn"] == ("attention", "layer_0/attention", "forward", 1, 60)
    assert capture.device == Device("NVIDIA", "Tesla V100-SXM2-16GB")
    assert capture.started_at_ns is None


def test_export_of_2022_calls_its_meta_data_otherwise(tmp_path):
    tables = one_step()
    tables["EXPORT_META_DATA"] = tables.pop("META_DATA_EXPORT")
    assert only(read(tmp_path, tables)).facts["nsys_version"] == "2025.1.0"


def test_times_that_were_normalised_are_utc(tmp_path):
    tables = one_step()
    for rows in tables.values():
        for row in rows:
            row |= {name: UTC + row[name] for name in ("start", "end") if name in row}
    assert only(read(tmp_path, tables)).started_at_ns == UTC + 100


# -- ranges


def with_ranges(*ranges):
    return {**one_step(), "NVTX_EVENTS": list(ranges)}


def test_ranges_of_pytorch_are_operators_with_shapes_and_no_modules(tmp_path):
    emitted = span("aten::mm, seq = 5, op_id = 41, sizes = [[8, 96], [96, 4]]", 145, 170)
    events = only(read(tmp_path, with_ranges(span("encoder", 100, 200), emitted))).events
    assert texts(events, events.ops.name) == ["encoder", "aten::mm"]
    assert texts(events, events.ops.input_shapes) == ["", "[[8,96],[96,4]]"]
    assert events.ops.sequence.tolist() == [-1, 5]
    assert events.ops.is_annotation.tolist() == [1, 0]
    rows = rows_of(events).tables
    assert {(row["name"], row["module"]) for row in frame(rows["op_key"])} >= {
        ("encoder", "encoder"),
        ("aten::mm", "encoder"),
    }


def test_backward_operator_takes_the_module_of_its_forward_operator(tmp_path):
    forward = span("aten::mm, seq = 5, op_id = 41", 145, 170)
    backward = span("autograd::engine::evaluate_function: MmBackward0, seq = 5, op_id = 60", 315, 335)
    capture = only(read(tmp_path, with_ranges(span("encoder", 100, 200), forward, backward)))
    assert kernels(capture)["void relu<(int)4>(float *)"][1:3] == ("encoder", "backward")


def test_running_numbers_make_no_new_ops_but_layers_stay_apart(tmp_path):
    names = ("Warm-up Step 1", "Warm-up Step 2", "layer_0", "layer_1", "layer_0")
    ranges = [span(name, 100 * row, 100 * row + 50) for row, name in enumerate(names)]
    events = only(read(tmp_path, with_ranges(*ranges))).events
    assert texts(events, events.ops.name) == ["Warm-up Step", "Warm-up Step", "layer_0", "layer_1", "layer_0"]
    assert len(events.markers) == 0


@pytest.mark.parametrize(
    "name", ["step 3", "iter_3", "Iteration: 3", "train_step=3", "ProfilerStep#3", "3", "step 3/9"]
)
def test_words_for_a_step(tmp_path, name):
    events = only(read(tmp_path, with_ranges(span(name, 100, 200)))).events
    assert events.markers.step.tolist() == [3]


def test_bare_numbers_that_come_again_are_no_steps(tmp_path):
    layers = [span(str(layer), 100 * row, 100 * row + 9) for row, layer in enumerate((0, 1, 0, 1))]
    events = only(read(tmp_path, with_ranges(*layers))).events
    assert len(events.markers) == 0
    assert len(events.ops) == 4


def test_of_two_counters_the_one_with_more_numbers_is_the_step(tmp_path):
    ranges = [span("step 1", 0, 1000), *(span(f"iteration {i}", 100 * i, 100 * i + 90) for i in (1, 2, 3))]
    events = only(read(tmp_path, with_ranges(*ranges))).events
    assert events.markers.step.tolist() == [1, 2, 3]


def test_step_number_that_comes_again_is_said(tmp_path):
    profile = read(tmp_path, with_ranges(span("step 1", 100, 200), span("step 1", 300, 450)))
    markers = only(profile).events.markers
    assert (markers.start_ns.tolist(), markers.end_ns.tolist()) == ([300], [450])
    assert "process 7: 1 step markers whose number comes again were left out, the longest kept" in profile.warnings


def test_range_that_was_never_closed_ends_with_the_capture(tmp_path):
    events = only(read(tmp_path, with_ranges(span("training", 100, None)))).events
    assert events.ops.end_ns.tolist() == [432]


def test_range_that_ends_on_another_thread_is_left_out_and_said(tmp_path):
    request = span("request", 100, 300, eventType=START_END, endGlobalTid=tid(7, 9))
    profile = read(tmp_path, with_ranges(request, span("stage", 120, 200, eventType=START_END, endGlobalTid=0)))
    assert texts(only(profile).events, only(profile).events.ops.name) == ["stage"]
    assert any("1 NVTX ranges that end on another thread" in text for text in profile.warnings)


def test_calls_of_libraries_are_ops_and_no_modules(tmp_path):
    tables = with_ranges(
        span("encoder", 100, 200),
        span("GemmPlan", 141, 165, domainId=4),
        span("CUBLAS", 0, None, eventType=DOMAIN, domainId=4),
    )
    tables["CUBLAS_EVENTS"] = [{"start": 145, "end": 164, "globalTid": tid(7), "nameId": T("cublasGemmEx")}]
    capture = only(read(tmp_path, tables))
    assert kernels(capture)["ampere_sgemm_128x64_tn"][:2] == ("cublasGemmEx", "encoder")
    assert {row["module"] for row in frame(rows_of(capture.events).tables["op_key"])} == {"", "encoder"}


def test_nccl_range_says_which_collective_its_kernel_is(tmp_path):
    tables = with_ranges(span("ncclAllReduce", 145, 170, domainId=3))
    tables["CUPTI_ACTIVITY_KIND_KERNEL"][0] |= {"demangledName": T("ncclDevKernel_Generic(ncclDevKernelArgs)")}
    (row,) = frame(rows_of(only(read(tmp_path, tables)).events).tables["communication"])
    assert (row["kind"], row["calls"], row["total_ns"]) == ("all_reduce", 1, 60)


def test_ranges_of_phases_name_the_phase_and_no_module(tmp_path):
    names = ("load_data", "Forward", "loss.backward()", "optimizer.step", "zero_grad", "benchmark")
    ranges = [span(name, 1000 * row, 1000 * row + 900) for row, name in enumerate(names)]
    tables = rows_of(only(read(tmp_path, with_ranges(*ranges))).events).tables
    assert {row["name"]: (row["phase"], row["module"]) for row in frame(tables["op_key"]) if row["name"][0] != "("} == {
        "load_data": ("dataloader", ""),
        "Forward": ("forward", ""),
        "loss.backward()": ("backward", ""),
        "optimizer.step": ("optimizer", ""),
        "zero_grad": ("clear_grad", ""),
        "benchmark": ("", "benchmark"),
    }


# -- several devices, graphs, memory


def test_each_process_and_device_is_a_capture_in_order_of_devices(tmp_path):
    tables = one_step()
    tables["TARGET_INFO_GPU"] = [
        {"id": number, "name": "NVIDIA H100 80GB HBM3", "cuDevice": number} for number in range(2)
    ]
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"] = [
        call("cudaLaunchKernel_v7000", 10, 20, 1, process=9),
        call("cudaLaunchKernel_v7000", 10, 20, 1, process=5),
    ]
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] = [
        kernel("gemm", 30, 40, 1, process=5, device=1),
        kernel("gemm", 30, 50, 1, process=9, device=0),
        kernel("gemm", 60, 70, 2, process=9, device=1),
    ]
    tables["CUPTI_ACTIVITY_KIND_MEMCPY"] = []
    del tables["CUPTI_ACTIVITY_KIND_MEMSET"], tables["CUPTI_ACTIVITY_KIND_MEMCPY"]
    profile = read(tmp_path, {**tables, "NVTX_EVENTS": [span("alone", 0, 9, process=3)]})
    said = [
        (c.device_ordinal, c.rank, c.events.host_is_primary, c.events.device.end_ns.tolist(), len(c.events.launches))
        for c in profile.captures
    ]
    assert said == [(0, None, True, [50], 1), (1, None, False, [70], 1), (1, None, True, [40], 1)]
    assert {c.device.model for c in profile.captures} == {"H100 80GB HBM3"}
    assert "NVTX ranges of processes without device work were left out: 3" in profile.warnings


def test_process_that_sees_one_of_several_devices_calls_it_number_0(tmp_path):
    tables = one_step()
    tables["TARGET_INFO_GPU"] = [
        {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "cuDevice": 0},
        {"id": 1, "name": "NVIDIA H100 80GB HBM3", "cuDevice": 1},
    ]
    tables["TARGET_INFO_CUDA_DEVICE"] = [{"gpuId": 1, "cudaId": 0, "pid": 7}]
    assert only(read(tmp_path, tables)).device.model == "H100 80GB HBM3"


def test_device_without_a_name_is_unknown(tmp_path):
    tables = one_step()
    del tables["TARGET_INFO_GPU"]
    assert only(read(tmp_path, tables)).device == UNKNOWN_DEVICE


def test_rank_in_the_name_of_the_file_counts(tmp_path):
    assert only(read(tmp_path, one_step(), name="report_rank3.sqlite")).rank == 3


def test_kernels_of_one_graph_launch_share_it(tmp_path):
    tables = one_step()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(call("cudaGraphLaunch_v10000", 126, 129, 30))
    nodes = [kernel("node", start, start + 5, 30, graphNodeId=start) for start in (210, 220, 230)]
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] = [kernel("gemm", 200, 205, 12, graphNodeId=None), *nodes]
    whole = {"start": 200, "end": 300, "deviceId": 0, "streamId": 7, "correlationId": 30, "globalPid": pid(7)}
    tables["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = [{**whole, "graphId": 4, "graphExecId": 5}]
    found = kernels(only(read(tmp_path, tables)))
    assert found["node"] == ("attention", "layer_0/attention", "forward", 3, 15)
    assert "CUDA graph 1" not in found, "its kernels are there one by one"


def test_graph_that_was_traced_as_a_whole_is_work_too(tmp_path):
    tables = one_step()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(call("cudaGraphLaunch_v10000", 126, 129, 30))
    whole = {"deviceId": 0, "streamId": 7, "correlationId": 30, "globalPid": pid(7), "graphId": 4, "graphExecId": 5}
    tables["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = [{"start": 600, "end": 700, **whole}]
    profile = read(tmp_path, tables)
    assert kernels(only(profile))["CUDA graph 1"] == ("attention", "layer_0/attention", "forward", 1, 100)
    assert any(text.startswith("1 runs of CUDA graphs were traced as a whole") for text in profile.warnings)


def test_memory_of_the_driver_belongs_to_the_range_that_asked_for_it(tmp_path):
    tables = one_step()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(call("cudaMalloc_v3020", 126, 129, 40))
    row = {"globalPid": pid(7), "deviceId": 0, "address": 77, "bytes": 512, "memKind": 2}
    tables["CUDA_GPU_MEMORY_USAGE_EVENTS"] = [
        {"start": 128, **row, "memoryOperationType": 0, "correlationId": 40},
        {"start": 228, **row, "memoryOperationType": 1, "correlationId": 41},
    ]
    rows = rows_of(only(read(tmp_path, tables)).events).tables
    (memory,) = frame(rows["memory"])
    assert rows["op_key"]["name"][memory["op_key"]] == "attention"
    assert (memory["component"], memory["bytes"], memory["held_ns"]) == ("cuda", 512, 100)


def test_metrics_of_the_gpu_are_counters_of_its_capture(tmp_path):
    tables = one_step()
    tables["TARGET_INFO_GPU_METRICS"] = [
        {"typeId": 0x500 | gpu, "metricId": 3, "metricName": "SMs Active [Throughput %]"} for gpu in (0, 1)
    ]
    tables["GPU_METRICS"] = [
        {"timestamp": 150, "typeId": 0x500 | gpu, "metricId": 3, "value": value}
        for gpu, value in ((0, 40), (0, 60), (1, 99))
    ]
    counters = frame(rows_of(only(read(tmp_path, tables)).events).tables["counter"])
    (row,) = [row for row in counters if row["source"] != MODULE_CALLS]
    assert (row["attribute"], row["calls"], row["mean"], row["max"]) == ("SMs Active [Throughput %]", 2, 50, 60)


# -- what is missing, what is damaged


def test_missing_tables_are_said(tmp_path):
    tables = one_step()
    for name in ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
        del tables[name]
    profile = read(tmp_path, tables)
    assert rows_of(only(profile).events).overall.unlinked_kernel_count == 2
    assert [text.partition(":")[0] for text in profile.warnings] == [
        "the export has no table CUPTI_ACTIVITY_KIND_RUNTIME",
        "the export has no table NVTX_EVENTS",
    ]


def test_capture_without_device_work_is_one_of_the_host(tmp_path):
    profile = read(tmp_path, {"NVTX_EVENTS": [span("encoder", 100, 300), span("attention", 150, 200)]})
    capture = only(profile)
    assert capture.device == CPU
    overall = rows_of(capture.events).overall
    assert (overall.timeline, overall.compute_ns, overall.e2e_ns) == ("host", 200, 200)
    assert any(text.startswith("the export has no table CUPTI_ACTIVITY_KIND_KERNEL") for text in profile.warnings)


def test_capture_that_missed_the_work_is_said(tmp_path):
    tables = one_step()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"] += [call("cudaLaunchKernel_v7000", 500, 501, 50 + i) for i in range(8)]
    (said,) = [text for text in read(tmp_path, tables).warnings if "launches" in text]
    assert said.startswith("8 of 10 launches have no work on a device")


def test_export_without_anything_is_an_error(tmp_path):
    with pytest.raises(SourceError, match=r"no kernels, no CUDA calls and no NVTX ranges; profile again"):
        read(
            tmp_path,
            {"META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.1"}], "TARGET_INFO_SYSTEM_ENV": []},
        )


def test_span_that_ends_before_it_starts_is_an_error_or_left_out(tmp_path):
    tables = one_step()
    tables["CUPTI_ACTIVITY_KIND_KERNEL"][1] |= {"end": 5}
    with pytest.raises(SourceError, match=r"KERNEL, row 2: starts at 340 and ends at 5; .* --skip-bad-rows"):
        read(tmp_path, tables)
    profile = read(tmp_path, tables, name="b.sqlite", skip_bad_rows=True)
    assert (only(profile).events.device.kind == DeviceKind.KERNEL).sum() == 1
    assert "1 rows that end before they start were left out" in profile.warnings


def test_text_that_is_no_utf8_hides_nothing_else(tmp_path):
    import sqlite3
    from contextlib import closing

    path = write(tmp_path / "a.sqlite", one_step())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE StringIds SET value = CAST(x'ff41' AS TEXT) WHERE value = 'attention'")
    assert kernels(only(nsys_sqlite.read(path)))["ampere_sgemm_128x64_tn"][0] == "\ufffdA"


def test_bytes_that_are_not_known_stay_missing(tmp_path):
    tables = one_step()
    for row in tables["CUPTI_ACTIVITY_KIND_MEMCPY"]:
        del row["bytes"]
    device = only(read(tmp_path, tables)).events.device
    assert device.bytes[device.kind == DeviceKind.COPY].tolist() == [MISSING]


# -- claims


def test_export_is_claimed_by_its_tables_whatever_its_name(tmp_path):
    for name in ("a.sqlite", "a.db", "report"):
        assert readers.claim(write(tmp_path / name, one_step())) == "nsys_sqlite"


def test_other_databases_are_not_claimed(tmp_path):
    path = write(tmp_path / "a.sqlite", {"measurements": [{"id": 1}]})
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.claim(path)


def test_export_that_was_cut_says_so(tmp_path):
    path = write(tmp_path / "a.sqlite", one_step())
    path.write_bytes(path.read_bytes()[:-4096])
    with pytest.raises(SourceError, match="the database ends early"):
        readers.read(*readers.find(path))


@pytest.mark.parametrize("suffix", [".nsys-rep", ".qdrep"])
def test_report_is_refused_with_the_command_that_exports_it(tmp_path, suffix):
    report = tmp_path / f"run1{suffix}"
    report.write_bytes(b"\x00report")
    with pytest.raises(SourceError, match=rf"nsys export --type sqlite --output run1\.sqlite run1\{suffix}"):
        readers.read(*readers.find(report))


def test_report_beside_its_export_is_refused_with_the_name_of_the_export(tmp_path):
    (tmp_path / "run1.nsys-rep").write_bytes(b"\x00report")
    export = write(tmp_path / "run1.sqlite", one_step())
    with pytest.raises(SourceError, match=f"give {export}"):
        readers.find(tmp_path / "run1.nsys-rep")
    with pytest.raises(SourceError, match=f"give {export}, its export"):
        readers.read(readers.Found(tmp_path / "run1.nsys-rep", "nsys_sqlite"))


def test_report_beside_its_export_is_passed_over(tmp_path):
    (tmp_path / "run1.nsys-rep").write_bytes(b"\x00report")
    write(tmp_path / "run1.sqlite", one_step())
    assert [found.path.name for found in readers.find(tmp_path)] == ["run1.sqlite"]


@pytest.mark.parametrize("folder_mode", [0o700, 0o500])
def test_nothing_is_written_beside_an_export_that_another_program_has_open(tmp_path, folder_mode):
    """Its last changes lie in a -wal file: they are not read, which is said, and all files stay as they are."""
    folder = tmp_path / "run"
    folder.mkdir()
    path = write(folder / "a.sqlite", one_step())
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("INSERT INTO StringIds VALUES (999999, 'late')")
        writer.commit()
        before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}
        assert before["a.sqlite-wal"][0]
        folder.chmod(folder_mode)
        found = nsys_sqlite.read(path)
        folder.chmod(0o700)
        assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()} == before
    assert found.warnings[0] == "a.sqlite-wal holds changes of another program, which were not read"
