"""Which captures form a run, and what an ingest says and stores."""

from __future__ import annotations

import gzip
import json
import uuid
from pathlib import Path

import pytest
from msgspec.structs import replace

import tracker
from tests.conftest import count_rows
from tests.factories import EPOCH_NS, capture
from tracker.errors import SourceError, UsageError
from tracker.intake import IngestOptions, Piece, Sidecar, form_runs, ingest
from tracker.profile import Device
from tracker.store import Store, queries

SECOND = 10**9


def piece(
    rank: int | None, *, at: int = 0, world_size: int | None = 2, path: str | None = None, **values: object
) -> Piece:
    start = EPOCH_NS + at * SECOND
    path = path or f"{uuid.uuid4().hex}.json"
    made = capture(rank, world_size=world_size, started_at_ns=start, ended_at_ns=start + SECOND, path=path, **values)
    return Piece(made, "torch_profiler", ())


def ranks_of(groups: list[list[Piece]]) -> list[list[int | None]]:
    return [[member.capture.rank for member in group] for group in groups]


def test_two_ranks_at_the_same_time_are_one_run():
    assert ranks_of(form_runs([piece(1), piece(0)])) == [[0, 1]]


def test_two_captures_of_one_rank_are_two_runs():
    assert ranks_of(form_runs([piece(0), piece(0)])) == [[0], [0]]


def test_ranks_of_another_time_are_another_run():
    assert ranks_of(form_runs([piece(0), piece(1), piece(0, at=60), piece(1, at=60)])) == [[0, 1], [0, 1]]


def test_ranks_of_worlds_of_different_size_are_different_runs():
    assert sorted(ranks_of(form_runs([piece(0, world_size=2), piece(1, world_size=4)]))) == [[0], [1]]


def test_ranks_on_different_devices_are_different_runs():
    assert len(form_runs([piece(0), piece(1, device=Device("AMD", "MI300X"))])) == 2


def test_files_that_name_no_rank_are_a_run_each_with_rank_0():
    assert ranks_of(form_runs([piece(None, path="a.json"), piece(None, path="b.json")])) == [[0], [0]]


def test_the_devices_of_one_file_are_one_run():
    pieces = [piece(None, path="a.json", world_size=None) for _ in range(3)]
    assert ranks_of(form_runs(pieces)) == [[0, 1, 2]]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 2, 0)])
def test_further_devices_of_a_process_take_no_rank_of_the_job(order: tuple[int, ...]):
    # every rank of four touched a second device: a stray copy, say
    pieces = [
        piece(number, path=f"{rank}.json", world_size=4)
        for rank in order
        for number in (rank, None)
    ]  # fmt: skip
    (group,) = form_runs(pieces)
    assert [(member.paths[0], member.capture.rank) for member in group] == [
        *((f"{rank}.json", rank) for rank in range(4)),
        *((f"{rank}.json", rank + 4) for rank in range(4)),
    ]


def test_further_devices_get_the_same_numbers_when_ranks_come_one_by_one():
    for rank in range(4):
        pieces = [piece(number, path=f"{rank}.json", world_size=4) for number in (rank, None)]
        assert ranks_of(form_runs(pieces)) == [[rank, rank + 4]]


def test_as_run_forces_one_run_but_never_two_captures_of_one_rank():
    pieces = [piece(None, path="a.json"), piece(None, path="b.json", at=60)]
    assert ranks_of(form_runs(pieces, as_run=True)) == [[0, 1]]
    with pytest.raises(SourceError, match=r"rank 0: 2 captures of one rank cannot be one run.*leave out --as-run"):
        form_runs([piece(0), piece(0)], as_run=True)


def test_a_clock_that_is_not_absolute_contradicts_nothing():
    timeless = piece(1)
    timeless = Piece(replace(timeless.capture, started_at_ns=None, ended_at_ns=None), timeless.format, ())
    assert ranks_of(form_runs([piece(0), timeless])) == [[0, 1]]


def write_trace(
    path: Path, *, rank: int | None = None, world_size: int = 2, kernel_us: int = 100, start_us: int = 0,
    all_reduce_us: int | None = None,
) -> Path:  # fmt: skip
    """A trace of one step in which aten::mm launches one kernel; and that of an all-reduce, where it lasts a time."""
    device = {"device": 0, "stream": 7, "correlation": 1}
    events = [
        ("user_annotation", "ProfilerStep#1", 1, 0, 1000, {}),
        ("cpu_op", "aten::mm", 1, 100, 50, {"Input Dims": [[2, 2], [2, 2]]}),
        ("cuda_runtime", "cudaLaunchKernel", 1, 110, 10, {"correlation": 1}),
        ("kernel", "gemm", 0, 200, kernel_us, device),
    ]
    if all_reduce_us is not None:
        arguments = {"device": 0, "stream": 20, "Collective name": "allreduce", "Group size": world_size}
        events.append(("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 400, all_reduce_us, arguments))
    base_us = 1_700_000_000_000_000 + start_us
    trace = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
        "traceEvents": [
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": pid, "ts": base_us + ts, "dur": dur, "args": args}
            for cat, name, pid, ts, dur, args in events
        ],
    }  # fmt: skip
    if rank is not None:
        trace["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world_size}
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(trace).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def test_a_folder_of_two_ranks_becomes_one_run(store: Store, tmp_path: Path):
    write_trace(tmp_path / "rank0.pt.trace.json", rank=0)
    write_trace(tmp_path / "rank1.pt.trace.json.gz", rank=1)
    (result,) = ingest(store, [tmp_path], version="v1", workload="toy")
    assert (result.ranks, result.steps, result.created, result.device) == ((0, 1), 1, True, "NVIDIA H100")
    run = queries.runs(store).frame.iloc[0]
    assert (run["ranks"], run["world_size"], run["configuration"]) == (2, 2, "world_size=2")


def test_the_same_file_again_changes_nothing_and_names_the_run(store: Store, tmp_path: Path):
    path = write_trace(tmp_path / "a.pt.trace.json")
    (first,) = ingest(store, [path], version="v1", workload="toy")
    before = count_rows(store)
    (again,) = ingest(store, [write_trace(tmp_path / "same bytes, zipped.json.gz")], version="v1", workload="toy")
    assert (again.run_id, again.already, again.created) == (first.run_id, True, False)
    assert count_rows(store) == before


def test_an_ingest_that_ends_before_it_judges_is_completed_by_the_next(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = write_trace(tmp_path / "a.pt.trace.json")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("tracker.regressions.judgement.update", interrupted)
        ingest(store, [path], version="v1", workload="toy")
    assert (count_rows(store)["run"], "judged_version" in count_rows(store)) == (1, False)
    (again,) = ingest(store, [path], version="v1", workload="toy")
    assert again.already
    assert count_rows(store)["judged_version"] == 1


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_the_same_file_under_another_label_is_an_error_that_tells_how_to_relabel(store: Store, tmp_path: Path):
    path = write_trace(tmp_path / "a.pt.trace.json")
    ingest(store, [path], version="v1", workload="toy")
    before = count_rows(store)
    with pytest.raises(UsageError, match=r"tracker runs edit 1 --version v2"):
        ingest(store, [path], version="v2", workload="toy")
    assert count_rows(store) == before


def test_one_bad_file_in_a_folder_leaves_the_database_untouched(store: Store, tmp_path: Path):
    write_trace(tmp_path / "a.pt.trace.json")
    (tmp_path / "b.pt.trace.json").write_text('{"traceEvents": [{"ph": "X", "cat": "kernel", "na')
    before = count_rows(store)
    with pytest.raises(SourceError, match=r"b\.pt\.trace\.json"):
        ingest(store, [tmp_path], version="v1", workload="toy")
    assert count_rows(store) == before


def test_a_late_rank_joins_its_run(store: Store, tmp_path: Path):
    options = IngestOptions(expect_ranks=2)
    (first,) = ingest(store, [write_trace(tmp_path / "r0.json", rank=0)], version="v1", workload="toy", options=options)
    (late,) = ingest(store, [write_trace(tmp_path / "r1.json", rank=1)], version="v1", workload="toy", options=options)
    assert (late.run_id, late.joined, late.ranks) == (first.run_id, True, (0, 1))
    assert queries.runs(store).frame["ranks"].tolist() == [2]


def test_the_user_may_name_what_the_files_do_not_say(store: Store, tmp_path: Path):
    options = IngestOptions(
        device="NVIDIA H200", configuration={"batch": "64"}, tags={"owner": "perf"}, commit="abc", note="try"
    )
    path = write_trace(tmp_path / "a.json")
    (result,) = ingest(store, [path], version="v1", workload="toy", options=options)
    run = queries.runs(store).frame.iloc[0]
    assert (result.device, run["vendor"], run["device"]) == ("NVIDIA H200", "NVIDIA", "H200")
    assert run["configuration"] == "batch=64"
    assert "owner" in run["tags"]


def test_options_that_a_known_file_cannot_take_are_told(store: Store, tmp_path: Path):
    path = write_trace(tmp_path / "a.json")
    ingest(store, [path], version="v1", workload="toy")
    options = IngestOptions(device="NVIDIA H200", tags={"owner": "perf"})
    (again,) = ingest(store, [path], version="v1", workload="toy", options=options)
    assert (again.already, again.device) == (True, "NVIDIA H100")
    assert again.warnings == ("already in, so --device, --tag changed nothing; tracker runs edit and tag do",)


def test_two_jobs_at_the_same_time_in_one_folder_are_two_runs(store: Store, tmp_path: Path):
    for job, kernel_us in (("a", 100), ("b", 200)):
        for rank in (0, 1):
            write_trace(tmp_path / job / f"rank{rank}.json", rank=rank, kernel_us=kernel_us + rank)
    results = ingest(store, [tmp_path], version="v1", workload="toy")
    assert [result.ranks for result in results] == [(0, 1), (0, 1)]
    assert len({result.run_id for result in results}) == 2


def write_log(folder: Path, name: str, *, model: str = "ResNet50", batch_s: float = 0.5) -> Path:
    """A log of two intervals; the name of the folder above it states the configuration."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    interval = f"batch_cost: {batch_s} s, reader_cost: 0.1 s, ips: 8.0 images/s"
    lines = [f"--model_name_or_path {model} {name}", *(f"train step:{step} {interval}" for step in (10, 20))]
    path.write_text("\n".join(lines))
    return path


def test_logs_that_state_version_and_model_are_filed_under_them_in_order_of_their_dates(
    memory_store: Store, tmp_path: Path
):
    for name in ("b_bs8_gpu1/20230101_aaaaaaa", "a_bs8_gpu1/20230201_bbbbbbb", "a_bs8_gpu1/20221231_ccccccc"):
        write_log(tmp_path, name)
    results = ingest(memory_store, [tmp_path])
    assert [(result.version, result.workload) for result in results] == [
        ("20221231_ccccccc", "ResNet50"),
        ("20230101_aaaaaaa", "ResNet50"),
        ("20230201_bbbbbbb", "ResNet50"),
    ]
    versions = queries.versions(memory_store, "ResNet50").frame
    assert versions["version"].tolist() == ["20221231_ccccccc", "20230101_aaaaaaa", "20230201_bbbbbbb"]
    assert versions["commit"].tolist() == ["ccccccc", "aaaaaaa", "bbbbbbb"]


def test_what_the_user_says_goes_before_what_files_state(memory_store: Store, tmp_path: Path):
    path = write_log(tmp_path, "a_bs8_gpu1/20230101_aaaaaaa")
    options = IngestOptions(configuration={"batch_size": "16"})
    (result,) = ingest(memory_store, [path], version="v1", workload="mine", options=options)
    assert (result.version, result.workload) == ("v1", "mine")
    (run,) = queries.runs(memory_store).frame.itertuples()
    assert "batch_size=16" in run.configuration
    assert "devices=1" in run.configuration
    assert queries.versions(memory_store, "mine").frame["commit"].isna().all()


def test_files_that_state_nothing_need_labels(memory_store: Store, tmp_path: Path):
    path = write_trace(tmp_path / "a.json")
    with pytest.raises(UsageError, match=r"a\.json states no workload; give --workload"):
        ingest(memory_store, [path], version="v1")
    with pytest.raises(UsageError, match=r"a\.json states no version; give --version LABEL"):
        ingest(memory_store, [path], workload="toy")
    assert queries.runs(memory_store).frame.empty


def test_one_run_has_one_version(memory_store: Store, tmp_path: Path):
    for name in ("20230101_aaaaaaa", "20230201_bbbbbbb"):
        write_log(tmp_path, name)
    problem = r"different versions \(20230101_aaaaaaa, 20230201_bbbbbbb\); give --version"
    with pytest.raises(UsageError, match=problem):
        ingest(memory_store, [tmp_path], options=IngestOptions(as_run=True))


def test_the_logs_of_two_workers_are_one_run(memory_store: Store, tmp_path: Path):
    for rank in (0, 1):
        write_log(tmp_path, f"workerlog.{rank}")
    (result,) = ingest(memory_store, [tmp_path], version="v1")
    assert result.ranks == (0, 1)


@pytest.mark.parametrize(("version", "workload"), [("", "toy"), ("v1", " ")])
def test_an_empty_label_is_refused(memory_store: Store, tmp_path: Path, version: str, workload: str):
    with pytest.raises(UsageError, match=r"is empty; give --"):
        ingest(memory_store, [write_trace(tmp_path / "a.json")], version=version, workload=workload)


def test_the_python_interface_ingests_diffs_and_shows(tmp_path: Path):
    with tracker.open_store(f"sqlite:///{tmp_path / 'my.db'}") as store:
        runs = tracker.ingest(write_trace(tmp_path / "a.json"), version="v1", workload="toy", store=store)
        tracker.ingest([write_trace(tmp_path / "b.json", kernel_us=150)], version="v2", workload="toy", store=store)
        assert runs[["run_id", "version", "device"]].values.tolist() == [[1, "v1", "NVIDIA H100"]]
        ops = tracker.diff("v1", "v2", store=store).ops
        assert ops.loc[0, ["name", "baseline_ns", "candidate_ns", "diff"]].tolist() == ["aten::mm", 100e3, 150e3, 0.5]
        shown = tracker.show("run:2", store=store)
        assert shown.kernels["total_ns"].tolist() == [150_000]
        assert shown.overall["kernel_total_ns"].tolist() == [150_000]
    assert tracker.diff(tmp_path / "a.json", tmp_path / "b.json").explanation.delta_ns == 0
    assert tracker.show(tmp_path / "a.json").kernels["total_ns"].tolist() == [100_000]


def test_the_python_interface_finds_the_database_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "mine.db"))
    with tracker.open_store() as store:
        tracker.ingest(write_trace(tmp_path / "a.json"), version="v1", workload="toy", store=store)
    assert tracker.diff("v1", "latest").baseline.run_ids == (1,)
    assert tracker.show("v1").run["version"] == "v1"


ASCEND = Path(__file__).parent / "data" / "ascend_text" / "bare" / "trace_view.json"


@pytest.mark.parametrize(
    ("named", "device"),
    [
        ("Ascend910B", "Huawei Ascend910B"),
        ("huawei Ascend910B", "Huawei Ascend910B"),
        ("NVIDIA H100", "NVIDIA H100"),
        ("cpu", "cpu"),
    ],
)
def test_a_device_that_is_named_without_its_vendor_has_that_of_the_profile(store: Store, named: str, device: str):
    said = {"version": "v1", "workload": "toy"}
    (result,) = ingest(store, [ASCEND], **said, options=IngestOptions(device=named))
    assert (result.device, result.created) == (device, True)


def test_what_holds_otherwise_names_the_chip_of_which_the_files_say_only_the_vendor(store: Store):
    options = IngestOptions(otherwise=Sidecar(device="Ascend910B"))
    (result,) = ingest(store, [ASCEND], version="v1", workload="toy", options=options)
    assert result.device == "Huawei Ascend910B"
