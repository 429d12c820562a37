"""The captures of MindSpore, of older versions and of one folder among others; steps without a trace."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from tests.readers.ascend_text.captures import DATA, MS, PT, capture, counters, edited, links, profile, without_trace
from tests.readers.helpers import texts
from tracker import intake, readers, timeline
from tracker.profile import EMPTY_QUEUE, MISSING, PIPELINE_TIME
from tracker.readers import Found


def test_mindspore_reads_its_own_tables():
    (found,) = readers.find(MS)
    assert found.format == "ascend_text"
    read = readers.read(found).captures[0]
    assert (read.rank, read.host, read.device_ordinal) == (1, "node-2", 5)
    said = read.events
    assert said.extras.block_num.tolist() == [8, 0]
    assert said.device.step.tolist() == [MISSING, MISSING]
    assert texts(said, said.collectives.kind) == ["all_gather"]
    assert texts(said, said.allocations.component) == ["MindSpore", "MindSpore"]
    assert said.extras.memory_points.allocated_bytes.tolist() == [1048576]
    counted = counters(said)
    assert counted["dataset", "Map DataLoad", "Avg. time (us)"][0] == 12.5
    assert counted["minddata_pipeline_raw", "ImageFolder", "output_queue_usage_rate"][0] == 0.19
    assert counted["minddata_pipeline_summary", "Batch", "avg_cpu_pct"][0] == 1.5


SUMMARY = """op_ids,0,1,2,3
op_names,DeviceQueue,EpochCtrl,Batch,ImageFolder
queue_empty_freq_pct,-1,-1,97.76,12.5
queue_average_size,-1,-1,0.02,12.5
parent_id,-1,0,1,2
per_pipeline_time,31.25
per_push_queue_time,-1
"""
RAW = """op_id,op_type,output_queue_size,parent_id
0,DeviceQueueOp,,
1,BatchOp,"[0, 3, 0, 0]",0
2,ImageFolderOp,"[5, 5]",1
"""


@pytest.mark.parametrize(("files", "empty"), [({"summary": SUMMARY, "raw": RAW}, 97.76), ({"raw": RAW}, 75.0)])
def test_queue_to_the_device_is_that_of_the_last_operation_with_one(tmp_path, files, empty):
    folder = Path(shutil.copytree(MS, tmp_path / MS.name)).iterdir().__next__()
    for old in (folder / "ASCEND_PROFILER_OUTPUT").glob("minddata_pipeline_*"):
        old.unlink()
    for name, text in files.items():
        (folder / "ASCEND_PROFILER_OUTPUT" / f"minddata_pipeline_{name}_1.csv").write_text(text)
    counted = counters(capture(folder).events)
    assert counted[EMPTY_QUEUE][0] == empty
    assert counted.get(PIPELINE_TIME, [None])[0] == (31.25 if "summary" in files else None)
    assert not any(value == -1 for (source, *_), (value, _) in counted.items() if source.startswith("minddata"))


def test_two_ranges_of_the_dynamic_profiler_are_two_captures_of_one_rank(tmp_path):
    """`rank1_start2_stop5` and `rank1_start8_stop10`, with or without a folder of the capture inside."""
    first = Path(shutil.copytree(MS, tmp_path / MS.name))
    second = tmp_path / "rank1_start8_stop10"
    (inside,) = MS.iterdir()
    shutil.copytree(inside, second)
    edited(second, "kernel_details.csv", "17000000000000", "17000000090000")
    found = readers.find(tmp_path)
    assert [one.path for one in found] == [*first.iterdir(), second / "ASCEND_PROFILER_OUTPUT"]
    read = [readers.read(one).captures[0] for one in found]
    assert [capture.rank for capture in read] == [1, 1]
    for events in (one.events for one in read):
        assert texts(events, events.allocations.component) == ["MindSpore", "MindSpore"]
        assert events.extras.memory_points.allocated_bytes.tolist() == [1 << 20]
    pieces = [intake.Piece(capture, "ascend_text", ()) for capture in read]
    assert [len(run) for run in intake.form_runs(pieces)] == [1, 1]


def test_the_call_stack_that_mindspore_glues_to_a_kernel_is_no_part_of_its_name(tmp_path):
    folder = Path(shutil.copytree(MS, tmp_path / MS.name)).iterdir().__next__()
    glued = '"Default/Add-op1;/home/a/net.py(7): construct;\r\n/home/a/train.py(9): main"'
    edited(folder, "kernel_details.csv", ",Default/Add-op1,", f",{glued},")
    device = capture(folder).events.device
    assert texts(capture(folder).events, device.name)[0] == "Default/Add-op1"


def test_the_matrix_of_mindspore_spells_the_operation_its_own_way(copy, events):
    edited(copy, "communication_matrix.json", '"Op Name"', '"op_name"')
    (copy / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()
    assert sorted(links(capture(copy).events)) == sorted(links(events))


def test_a_bare_trace_has_kernels_but_no_memory():
    read = profile(DATA / "bare" / "trace_view.json")
    said = read.captures[0].events
    assert texts(said, said.device.name) == ["MatMulV2_1", "Cast_2", "MEMCPY_ASYNC", "MEMCPY_ASYNC"]
    assert (said.device.correlation[:1] > 0).all()
    assert any("nothing is known of memory" in warning for warning in read.warnings)


def test_the_oldest_kernel_details_has_times_without_unit():
    read = profile(DATA / "oldest" / "kernel_details.csv")
    device = read.captures[0].events.device
    assert device.start_ns.tolist() == [1699529622790614800, 1699529622793969500]
    assert (device.end_ns - device.start_ns).tolist() == [607_980, 10_500]
    assert read.captures[0].started_at_ns == 1699529622790614800


def test_the_output_folder_alone_is_the_same_capture():
    read = capture(PT / "ASCEND_PROFILER_OUTPUT")
    assert (read.rank, read.host) == (3, "worker-1")
    assert len(read.sources) == len(capture().sources)


def test_a_rank_with_communication_files_only_is_partial(copy):
    for name in ("trace_view.json", "kernel_details.csv"):
        (copy / "ASCEND_PROFILER_OUTPUT" / name).unlink()
    read = capture(copy)
    assert read.quality == "partial"
    assert (read.events.device.end_ns - read.events.device.start_ns).tolist() == [300_000]


def test_of_a_rank_with_communication_files_only_compute_is_unknown_and_not_zero(copy):
    for name in ("trace_view.json", "kernel_details.csv"):
        (copy / "ASCEND_PROFILER_OUTPUT" / name).unlink()
    (copy / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv").unlink()
    read = capture(copy)
    assert read.quality_reason == "neither kernel_details.csv nor trace_view.json: collectives are all that is known"
    rows = timeline.rows_of(read.events)
    (step,) = rows.steps
    for found in (rows.overall, step.breakdown):
        assert (found.communication_ns, found.communication_total_ns, found.bubble_ns) == (300_000, 300_000, None)
        unknown = (found.compute_ns, found.e2e_ns, found.idle_ns, found.exposed_communication_ns, found.copy_ns)
        assert unknown == (None,) * 5
        assert (found.kernel_count, found.duration_ns) == (None, None)
    assert rows.tables["communication"]["exposed_ns"].tolist() == [MISSING]


def test_of_a_rank_without_kernels_the_profilers_own_times_of_the_step_stand_in(copy):
    for name in ("trace_view.json", "kernel_details.csv"):
        (copy / "ASCEND_PROFILER_OUTPUT" / name).unlink()
    edited(copy, "step_trace_time.csv", "7,60.0,300.0,0.0,300.0,", "7,60.0,290.0,10.0,300.0,")
    read = capture(copy)
    assert (read.quality, "step_trace_time.csv" in read.quality_reason) == ("partial", True)
    rows = timeline.rows_of(read.events)
    (step,) = rows.steps
    assert step.step == 7
    for found in (rows.overall, step.breakdown):
        assert (found.compute_ns, found.communication_ns, found.overlap_ns) == (60_000, 300_000, 10_000)
        assert (found.exposed_communication_ns, found.idle_ns) == (290_000, 40_000)
        # 60 + 290 + 40 us
        assert (found.e2e_ns, found.duration_ns) == (390_000, 390_000)
        assert (found.copy_ns, found.exposed_copy_ns, found.kernel_count, found.compute_total_ns) == (None,) * 4


def steps_of(path):
    rows = timeline.rows_of(capture(path).events)
    return {row.step: (row.breakdown.duration_ns, row.breakdown.kernel_count) for row in rows.steps}


def test_without_a_trace_the_step_is_the_one_that_the_kernels_name(copy):
    # Computing 60 + Communication 300 + Free 40 us of step_trace_time.csv, not the span of the work on the device
    assert steps_of(without_trace(copy)) == {7: (400_000, 3)}


def test_without_a_trace_two_step_ids_are_two_steps_as_long_as_their_work_on_the_device(copy):
    edited(without_trace(copy), "kernel_details.csv", "7,4294967295,N/A", "8,4294967295,N/A")
    # Cast_2 ends at 170 us; the collective takes 300 us
    assert steps_of(copy) == {7: (69_999, 2), 8: (300_000, 1)}


def test_steps_that_overlap_on_the_device_keep_the_kernels_that_name_them(copy):
    edited(without_trace(copy), "kernel_details.csv", "7,4294967295,12,", "8,4294967295,12,")
    # step 8 begins at 160 us, and ends step 7, whose work began at 100.001 us
    assert steps_of(copy) == {7: (59_999, 2), 8: (10_000, 1)}


def test_where_no_kernel_names_a_step_the_only_one_of_step_trace_time_is_it(copy):
    edited(without_trace(copy), "kernel_details.csv", "7,4294967295", "N/A,4294967295")
    assert list(steps_of(copy)) == [7]


def test_a_capture_that_names_no_step_is_one_step(copy):
    edited(without_trace(copy), "kernel_details.csv", "7,4294967295", "N/A,4294967295")
    (copy / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv").unlink()
    assert list(steps_of(copy)) == [0]


def test_renamed_columns_are_understood(copy, events):
    edited(copy, "kernel_details.csv", "Step Id,", "Step ID,")
    edited(copy, "kernel_details.csv", ",Block Dim,Mix Block Dim,", ",Block Num,Mix Block Num,")
    edited(copy, "kernel_details.csv", ",HCCL,", ",COMMUNICATION,")
    said = capture(copy).events
    assert said.device.step.tolist() == events.device.step.tolist()
    assert said.device.kind.tolist() == events.device.kind.tolist()
    assert said.extras.block_num.tolist() == events.extras.block_num.tolist()


@pytest.mark.parametrize("wrapped", ['{"traceEvents": %s}', '{"schemaVersion": 1, "traceEvents":\n%s, "a": 2}'])
def test_a_trace_in_an_object_is_read_as_the_bare_list(tmp_path, wrapped):
    bare = (PT / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text()
    alone = tmp_path / "other_name.json"
    alone.write_text(bare)
    one = capture(alone).events
    alone.write_text(wrapped % bare)
    assert readers.claim(alone) == "ascend_text"
    other = capture(alone).events
    assert len(other.ops) and other.ops.start_ns.tolist() == one.ops.start_ns.tolist()
    assert len(other.device) and other.device.end_ns.tolist() == one.device.end_ns.tolist()


def test_an_unknown_table_is_named_as_not_read(copy):
    (copy / "ASCEND_PROFILER_OUTPUT" / "new_table.csv").write_text("a,b\n1,2\n")
    (copy / "ASCEND_PROFILER_OUTPUT" / "analysis.db").write_bytes(b"")
    assert profile(copy).warnings == ("not read, unknown to this reader: new_table.csv",)


def test_a_database_beside_the_tables_goes_before_unless_kernels_are_there(copy):
    (copy / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_3.db").write_bytes(b"")
    assert readers.load("ascend_text").sniff(copy, b"")
    (copy / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").unlink()
    assert not readers.load("ascend_text").sniff(copy, b"")


@pytest.mark.parametrize(
    ("files", "format"),
    [
        (("trace_view.json",), "ascend_db"),
        (("kernel_details.csv",), "ascend_text"),
        (("trace_view.json", "kernel_details.csv"), "ascend_text"),
    ],
)
def test_a_folder_of_any_name_with_both_exports_is_one_capture(tmp_path, files, format):
    folder = tmp_path / "somewhere"
    folder.mkdir()
    for name in files:
        shutil.copy(PT / "ASCEND_PROFILER_OUTPUT" / name, folder)
    database = DATA.parent / "ascend_db" / "rank4_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_4.db"
    shutil.copy(database, folder)
    assert readers.find(tmp_path) == [Found(folder, format)]


def test_without_a_trace_copies_are_unknown_and_the_free_time_is_that_of_step_trace_time(copy):
    edited(without_trace(copy), "step_trace_time.csv", "7,60.0,300.0,0.0,300.0,", "7,60.0,290.0,10.0,300.0,")
    assert any("lists no copies" in warning for warning in profile(copy).warnings)
    rows = timeline.rows_of(capture(copy).events)
    for found in (rows.overall, rows.steps[0].breakdown):
        assert (found.copy_ns, found.exposed_copy_ns, found.copy_total_ns) == (None, None, None)
        # step_trace_time.csv says 40 us of free time; the rest are the kernels
        assert found.idle_ns == 40_000
        assert found.e2e_ns == found.compute_ns + found.exposed_communication_ns + 40_000


def zipped(trace):
    trace.with_suffix(".json.gz").write_bytes(gzip.compress(trace.read_bytes()))


def test_a_trace_may_be_gzipped_and_is_the_same_capture(copy):
    trace = copy / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    zipped(trace)
    both = profile(copy)
    trace.unlink()
    alone = profile(copy)
    assert both.warnings == alone.warnings == profile().warnings
    digests = [{file.digest for file in read.captures[0].sources} for read in (both, alone, profile())]
    assert digests[0] == digests[1] == digests[2]
    assert len(alone.captures[0].events.ops) == len(capture().events.ops) > 0


def test_a_folder_whose_gzipped_trace_has_no_kernels_beside_it_is_one_capture(tmp_path):
    for name in ("trace_view.json", "operator_memory.csv"):
        shutil.copy(PT / "ASCEND_PROFILER_OUTPUT" / name, tmp_path)
    zipped(tmp_path / "trace_view.json")
    (tmp_path / "trace_view.json").unlink()
    assert readers.find(tmp_path) == [Found(tmp_path, "ascend_text")]
    assert len(capture(tmp_path).events.ops) > 0


def test_without_a_trace_memory_is_that_of_the_ops_that_operator_memory_names(copy):
    memory = timeline.rows_of(capture(without_trace(copy)).events).tables
    keys = memory["memory"]["op_key"].tolist()
    found = {memory["op_key"]["name"][key]: size for key, size in zip(keys, memory["memory"]["bytes"], strict=True)}
    # 1.5 and 2 KB; the row of MmBackward0 frees
    assert found == {"aten::mm": 1536, "cann::Mm": 2048}


def test_with_a_trace_memory_is_that_of_the_ops_around_it(events):
    said = [events.strings[code] for code in events.extras.allocation_op.tolist()]
    assert said[:2] == ["aten::mm", "cann::Mm"]


def test_trace_relative_to_its_start_is_put_on_the_clock_of_its_tables(copy):
    """The same capture, its trace without the date: the same steps, the same start, and one warning."""
    in_table = '"Task Type": "AI_CORE", "Physic Stream Id": 2, "Task Id": '
    edited(copy, "trace_view.json", f"{in_table}1,", f"{in_table}11,")
    dated, steps = capture(copy), steps_of(copy)
    trace = copy / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    trace.write_text(trace.read_text().replace('"ts": "1700000000000', '"ts": "'))
    read = profile(copy)
    assert steps_of(copy) == steps
    # the table writes the start of a task 1 ns later than the trace
    assert read.captures[0].started_at_ns == dated.started_at_ns + 1
    assert [text for text in read.warnings if "counts from its own start" in text]
