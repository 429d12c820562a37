"""Which captures are repeats, ranks, cycles of one process or copies: by what files say, their names and times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.factories import EPOCH_NS, H100, capture, record
from tests.test_intake import write_trace
from tracker.errors import SourceError, UsageError
from tracker.intake import IngestOptions, Piece, form_runs, ingest
from tracker.intake.at_once import read_all
from tracker.intake.fingerprints import Fingerprint, fingerprint_of
from tracker.profile import CPU, PROCESS_SETTING, Device
from tracker.store import Store, queries, save_run, save_runs

SECOND = 10**9


def piece(
    name: str,
    *,
    at: float = 0,
    lasts: float = 1,
    rank: int | None = None,
    ordinal: int | None = 0,
    steps: tuple[int, ...] = (0,),
    host: str = "",
    **values: object,
) -> Piece:
    """A capture in `name`, `at` seconds from the start, with a step of 1 us each."""
    start = EPOCH_NS + int(at * SECOND)
    end = start + int(lasts * SECOND)
    made = capture(rank, started_at_ns=start, ended_at_ns=end, path=f"job/{name}", steps=steps, **values)
    made = replace(made, device_ordinal=ordinal, host=host)
    return Piece(made, "torch_profiler", (), f"job/{name}", fingerprint=fingerprint_of(made, "torch_profiler"))


def ranks(pieces: list[Piece]) -> list[list[tuple[str, int | None]]]:
    return [[(Path(one.place).name, one.capture.rank) for one in group] for group in form_runs(pieces)]


def warnings(pieces: list[Piece]) -> list[str]:
    return [warning for group in form_runs(pieces) for one in group for warning in one.warnings]


def four(prefix: str, **values: object) -> list[Piece]:
    """Four captures that ran at the same time and differ in one op each."""
    return [piece(f"{prefix}{i}.json", ops=[(f"op{i}", 100)], **values) for i in range(4)]


@pytest.mark.parametrize("prefix", ["9.25-TP-", "trace_", "worker"])
def test_files_that_differ_in_one_number_are_ranks(prefix: str):
    expected = [[(f"{prefix}{i}.json", i) for i in range(4)]]
    for order in permutations(four(prefix)):
        assert ranks(list(order)) == expected


def test_ranks_by_name_are_said():
    assert warnings(four("trace_")) == [
        "4 files such as trace_0.json and trace_1.json name no rank, ran at the same time, and differ in number or "
        "device: ranks 0-3 of one run"
    ]


def test_ranks_of_the_second_node_keep_their_numbers():
    pieces = [piece(f"rank{i}.json", ops=[(f"op{i}", 1)]) for i in (4, 5)]
    assert ranks(pieces) == [[("rank4.json", 4), ("rank5.json", 5)]]


def test_process_numbers_are_ranks_in_their_order():
    pieces = [piece(f"pid{pid}.json", ops=[(f"op{pid}", 1)]) for pid in (4103, 4101)]
    assert ranks(pieces) == [[("pid4101.json", 0), ("pid4103.json", 1)]]


def test_processes_on_other_devices_are_ranks_whatever_numbers_differ():
    pieces = [piece(f"host_{41 + i}.{900 + i}.json", ordinal=1 - i, ops=[(f"op{i}", 1)]) for i in range(2)]
    assert ranks(pieces) == [[("host_42.901.json", 0), ("host_41.900.json", 1)]]


def test_names_that_count_repeats_are_repeats():
    assert len(ranks(four("run"))) == 4
    assert warnings(four("run")) == []


@pytest.mark.parametrize(
    "pieces",
    [
        # two numbers on one device
        [piece(f"TP-{i}-DP-{i}.json", ops=[(f"op{i}", 1)]) for i in range(2)],
        # repeats by their names, ranks by their devices
        [piece(f"run{i}.json", ordinal=i, ops=[(f"op{i}", 1)]) for i in range(2)],
        # the first and the last did not run at the same time
        [piece(f"trace_{i}.json", at=0.6 * i, ops=[(f"op{i}", 1)]) for i in range(3)],
    ],
)
def test_open_question_is_refused_with_the_way_out(pieces: list[Piece]):
    with pytest.raises(SourceError, match=r"one job, or several\?.*--as-run") as refused:
        form_runs(pieces)
    assert Path(refused.value.path).name == Path(pieces[0].place).name
    assert len(form_runs(pieces, as_run=True)) == 1


@pytest.mark.parametrize("names", [["a_rank3.json", "b-rank_4.json"], ["rank_3/trace.json", "rank_4/trace.json"]])
def test_name_that_states_a_rank_is_believed(names: list[str]):
    pieces = [piece(name, ops=[(name, 1)]) for name in names]
    assert ranks(pieces) == [[(Path(name).name, rank) for name, rank in zip(names, (3, 4), strict=True)]]
    assert warnings(pieces) == ["no rank stands in it: it is the one of its name"] * 2


def test_ranks_by_name_need_no_equal_times_in_their_names():
    pieces = [piece(f"9.{25 + i}-TP-{i}.json", ops=[(f"op{i}", 1)]) for i in range(2)]
    assert ranks(pieces) == [[("9.25-TP-0.json", 0), ("9.26-TP-1.json", 1)]]


def test_ranks_that_overlap_in_part_are_one_run_where_each_names_its_rank():
    pieces = [piece(f"{i}.json", at=0.6 * i, rank=i, world_size=3) for i in range(3)]
    for order in permutations(pieces):
        assert [len(group) for group in form_runs(order)] == [3]


def test_nameless_files_of_other_folders_at_the_same_time_are_said():
    pieces = [piece("a/trace.json"), piece("b/trace.json", ops=[("other", 1)]), piece("c/trace.json", at=9)]
    assert len(form_runs(pieces)) == 3
    assert warnings(pieces) == [
        "2 files that ran at the same time name no rank, so each is a run of its own; where they are ranks of one job, "
        "ingest them with --as-run"
    ]


def test_ranks_of_two_jobs_one_after_the_other_are_two_runs():
    pieces = [*four("TP-"), *(piece(f"TP-{i + 4}.json", at=9, ops=[(f"op{i}", 1)]) for i in range(4))]
    assert [len(group) for group in ranks(pieces)] == [4, 4]


def test_file_of_another_folder_with_the_same_name_is_no_rank():
    first = piece("trace_0.json")
    other = replace(piece("trace_0.json", ops=[("other", 1)]), path="elsewhere/trace_0.json")
    assert len(form_runs([first, other])) == 2


def test_cycles_of_one_process_are_one_run():
    cycles = [piece(f"node_41.{i}00.json", at=60 * i, rank=0, steps=(10 * i, 10 * i + 1)) for i in range(3)]
    for order in permutations(cycles):
        assert ranks(list(order)) == [[("node_41.200.json", 0)]]
    assert warnings(cycles) == [
        "3 files are cycles of one process, so they are one run, of which node_41.200.json counts (node_41.000.json, "
        "node_41.100.json left out)"
    ]


@pytest.mark.parametrize("names", [("node_41.1.json", "node_41.2.json"), ("run1.json", "run2.json")])
def test_processes_that_count_their_steps_anew_are_repeats(names: tuple[str, str]):
    pieces = [piece(name, at=60 * i, rank=0, steps=(0, 1)) for i, name in enumerate(names)]
    assert len(form_runs(pieces)) == 2


def test_cycles_of_another_process_are_repeats():
    pieces = [piece(f"node.{i}.json", at=60 * i, rank=0, steps=(10 * i,)) for i in range(2)]
    pieces = [of_process(one, str(i)) for i, one in enumerate(pieces)]
    assert len(form_runs(pieces)) == 2


def of_process(one: Piece, number: str) -> Piece:
    return replace(one, capture=replace(one.capture, settings={PROCESS_SETTING: number}))


def test_cycles_of_two_processes_are_two_runs():
    cycles = [
        of_process(piece(f"node_{pid}.{at}.json", at=at, rank=0, steps=(at, at + 1)), pid)
        for pid, at in (("41", 10), ("41", 20), ("52", 13), ("52", 23))
    ]
    for order in permutations(cycles):
        assert ranks(list(order)) == [[("node_41.20.json", 0)], [("node_52.23.json", 0)]]


def test_repeats_that_count_from_the_start_have_cycles_of_their_own():
    at_steps = ((0, 1), (5, 9), (10, 1), (15, 9))
    cycles = [piece(f"trace_{at}.json", at=at, rank=0, steps=(step,)) for at, step in at_steps]
    assert ranks(cycles) == [[("trace_5.json", 0)], [("trace_15.json", 0)]]


def in_folders(rank_of: dict[str, int]) -> list[Piece]:
    """A trace in each folder, whose name states sizes as that of a benchmark does, with its rank."""
    pieces = []
    for folder, rank in rank_of.items():
        one = piece(f"{folder}/trace.json", rank=rank, ops=[(folder, 1)])
        sizes = {"tp": folder[2], "pp": folder[6]}
        pieces.append(replace(one, capture=replace(one.capture, configuration=sizes)))
    return pieces


def test_folders_of_ranks_that_differ_in_parallelism_name_indices():
    (run,) = form_runs(in_folders({"tp1_pp1": 0, "tp2_pp1": 1}))
    assert [(one.capture.rank, one.capture.configuration) for one in run] == [(0, {}), (1, {})]


def test_folders_of_jobs_that_differ_in_parallelism_name_sizes():
    runs = form_runs(in_folders({"tp1_pp1": 0, "tp2_pp1": 0}))
    assert [run[0].capture.configuration["tp"] for run in runs] == ["1", "2"]


def test_one_folder_that_names_parallelism_states_sizes():
    ((one,),) = form_runs(in_folders({"tp2_pp4": 3}))
    assert one.capture.configuration == {"tp": "2", "pp": "4"}


def test_ranks_of_an_inference_server_are_one_run(tmp_path: Path):
    for rank in range(4):
        name = f"dp0_pp0_tp{rank}_dcp0_ep{rank}_rank{rank}.177290000{rank}.pt.trace.json"
        write_trace(tmp_path / name, rank=rank, world_size=4)
    pieces = read_all([tmp_path], IngestOptions(one_process=True)).pieces
    (run,) = form_runs(pieces)
    assert [(one.capture.rank, one.capture.configuration) for one in run] == [(rank, {}) for rank in range(4)]


UNNAMED = Device("NVIDIA", "unknown")


def test_rank_that_names_no_chip_is_of_the_chip_of_the_others():
    pieces = [piece("a.json", rank=0, device=H100), piece("b.json", rank=1, device=UNNAMED)]
    for order in permutations(pieces):
        (run,) = form_runs(order)
        assert [one.capture.device for one in run] == [H100, H100]
    assert warnings(pieces) == [
        "the files of rank 1 do not name the chip: it is taken for that of the others, H100",
    ]


@pytest.mark.parametrize("other", [Device("NVIDIA", "A100"), Device("AMD", "unknown"), CPU])
def test_rank_on_another_device_is_another_run(other: Device):
    pieces = [piece("a.json", rank=0, device=H100), piece("b.json", rank=1, device=other)]
    assert [len(run) for run in form_runs(pieces)] == [1, 1]


def test_unnamed_chip_beside_two_named_ones_joins_one_of_them():
    devices = {"a.json": H100, "b.json": Device("NVIDIA", "A100"), "c.json": UNNAMED}
    pieces = [piece(name, rank=rank, device=device) for rank, (name, device) in enumerate(devices.items())]
    assert ranks(pieces) == [[("a.json", 0), ("c.json", 2)], [("b.json", 1)]]


def test_ranks_by_their_names_are_one_run_where_one_names_the_chip():
    pieces = [
        piece("TP-0.json", ops=[("op0", 1)], device=UNNAMED),
        piece("TP-1.json", ops=[("op1", 1)], device=H100),
    ]
    assert ranks(pieces) == [[("TP-0.json", 0), ("TP-1.json", 1)]]


def test_rank_that_names_no_chip_in_another_call_is_said(memory_store: Store):
    for rank, device in enumerate((H100, UNNAMED)):
        one = piece(f"{rank}.json", rank=rank, device=device, world_size=2)
        saved = save_run(memory_store, record(device=device), [one.capture], formats=["torch_profiler"])
    assert (saved.run_id, saved.created) == (2, True)
    (note,) = saved.notes
    assert note.startswith("run:1 has other ranks of this time, and the files of one of both do not name the chip")
    assert "tracker runs delete 2 --purge" in note


def test_device_of_the_user_holds_before_runs_are_formed(memory_store: Store, tmp_path: Path):
    paths = [write_trace(tmp_path / f"rank{rank}.json", rank=rank) for rank in (0, 1)]
    # another name of the same chip, as another driver writes it
    paths[1].write_text(paths[1].read_text().replace("NVIDIA H100", "NVIDIA H100 80GB HBM3"))
    options = IngestOptions(device="H100")
    (result,) = ingest(memory_store, paths, version="v1", workload="toy", options=options)
    assert (result.ranks, result.device) == ((0, 1), "NVIDIA H100")


def test_capture_that_was_exported_again_counts_once():
    pieces = [piece("a.json"), piece("b.json")]  # the same start and events under another digest
    for order in permutations(pieces):
        assert ranks(list(order)) == [[("a.json", 0)]]
    assert warnings(pieces) == ["job/b.json is the same capture as job/a.json: it counts once"]


def test_beginning_of_a_capture_counts_with_the_whole():
    pieces = [piece("half.json", steps=(0, 1)), piece("whole.json", steps=(0, 1, 2))]
    assert ranks(pieces) == [[("whole.json", 0)]]
    assert warnings(pieces) == ["job/half.json is the beginning of job/whole.json: it counts once"]


def test_captures_without_a_start_are_never_copies():
    made = replace(piece("a.json").capture, started_at_ns=None)
    assert fingerprint_of(made, "torch_profiler") == Fingerprint()
    assert Fingerprint().digest() == b""


def job(at_b: float, **of_b: object) -> list[Piece]:
    """Ranks 0 and 1 on two hosts, of which the clock of b is ahead."""
    exchange = {"communication": [("all_reduce", 10)], "world_size": 2}
    return [
        piece("a.json", rank=0, host="a", **exchange),
        piece("b.json", rank=1, host="b", at=at_b, **{**exchange, **of_b}),
    ]


@pytest.mark.parametrize("at_b", [3.2, -3.2, 59])
def test_ranks_on_hosts_with_other_clocks_are_one_run(at_b: float):
    assert [len(group) for group in form_runs(job(at_b))] == [2]
    (said,) = warnings(job(at_b))
    assert f"{abs(at_b):.1f} s apart" in said


@pytest.mark.parametrize(
    ("at_b", "of_b"),
    [(90, {}), (3.2, {"communication": [("all_gather", 10)]}), (3.2, {"steps": (1,)}), (3.2, {"host": "a"})],
)
def test_ranks_that_exchanged_something_else_are_other_runs(at_b: float, of_b: dict):
    host = of_b.pop("host", "b")
    pieces = job(at_b, **of_b)
    pieces[1] = replace(pieces[1], capture=replace(pieces[1].capture, host=host))
    assert [len(group) for group in form_runs(pieces)] == [1, 1]


def test_ranks_are_one_run_in_any_order_and_grouping(memory_store: Store, tmp_path: Path):
    paths = [write_trace(tmp_path / f"9-TP-{i}.json", kernel_us=100 + i) for i in range(4)]
    for call in ([paths[2]], [paths[3], paths[0]], [paths[1]], paths):
        ingest(memory_store, call, version="v1", workload="toy")
    assert queries.runs(memory_store).frame[["run_id", "ranks"]].values.tolist() == [[1, 4]]


def test_capture_under_another_digest_is_found(memory_store: Store, tmp_path: Path):
    path = write_trace(tmp_path / "a.pt.trace.json")
    again = tmp_path / "again.pt.trace.json"
    again.write_text(path.read_text().replace("{", '{"exported": "again", ', 1))
    ingest(memory_store, [path], version="v1", workload="toy")
    (result,) = ingest(memory_store, [again], version="v1", workload="toy")
    assert result.already
    with pytest.raises(UsageError, match="already in as run 1, version 'v1'"):
        ingest(memory_store, [again], version="v2", workload="toy")


def test_log_that_grew_since_it_was_ingested_is_named(memory_store: Store, tmp_path: Path):
    lines = [f"2026-05-28 20:00:{i:02} step {i}: batch_cost: 0.{i + 1} s, ips: 10.0 samples/s" for i in range(4)]
    path = tmp_path / "train.log"
    path.write_text("\n".join(lines[:2]) + "\n")  # the first one is warm-up
    ingest(memory_store, [path], version="v1", workload="toy")
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(UsageError, match=r"train.log is the log of run 1 with 2 more steps; to replace it"):
        ingest(memory_store, [path], version="v1", workload="toy")
    path.write_text("\n".join(lines[:2]) + "\n")
    (result,) = ingest(memory_store, [path], version="v1", workload="toy")
    assert result.already


def save_in_calls(store: Store, calls: list[list[Piece]], workload: str) -> list[tuple[int, int]]:
    """Save what each call forms, and return how many ranks each run has in the end, and when it began."""
    for call in calls:
        batch = []
        for group in form_runs(call):
            started_at_ns = min(one.capture.started_at_ns or 0 for one in group)
            of_run = record(workload=workload, started_at_ns=started_at_ns)
            batch.append((of_run, [one.capture for one in group], ["torch_profiler"]))
        save_runs(store, batch)
    found = queries.runs(store, workload=workload).frame
    return sorted((int(ranks), int(start)) for ranks, start in found[["ranks", "started_at_ns"]].values.tolist())


def groupings(count: int) -> Iterator[list[list[int]]]:
    """Yield each order of so many calls of one file, and each call of one file after a call of the others."""
    for order in permutations(range(count)):
        yield [[place] for place in order]
    for last in range(count):
        yield [[place for place in range(count) if place != last], [last]]


LAWFUL = {
    "hosts with other clocks": lambda: job(3.2),
    "cycles of one process": lambda: [
        of_process(piece(f"n_41.{i}.json", at=60 * i, rank=0, steps=(10 * i, 10 * i + 1)), "41") for i in (1, 2, 3)
    ],
    "cycles of two processes": lambda: [
        of_process(piece(f"n_{pid}.{at}.json", at=at, rank=0, steps=(at,)), pid)
        for pid, at in (("41", 10), ("41", 20), ("52", 13))
    ],
    "ranks of a job of unknown size": lambda: [piece(f"{i}.json", rank=i, ops=[(f"op{i}", 1)]) for i in range(3)],
    "ranks by their names": lambda: [piece(f"rank{i}.json", ops=[(f"op{i}", 1)]) for i in range(3)],
    "repeats": lambda: [piece(f"run{i}.json", at=60 * i, rank=0) for i in range(3)],
}


@pytest.mark.parametrize("made", LAWFUL.values(), ids=LAWFUL)
def test_same_files_in_other_calls_are_the_same_runs(memory_store: Store, made: Callable[[], list[Piece]]):
    expected = save_in_calls(memory_store, [made()], "at once")
    for number, calls in enumerate(groupings(len(made()))):
        files = made()  # each time other files: their digests differ
        in_calls = [[files[place] for place in call] for call in calls]
        assert save_in_calls(memory_store, in_calls, str(number)) == expected, calls


def test_cycle_that_comes_later_takes_the_place_of_the_shorter_one(memory_store: Store):
    first, longer, shorter = (
        piece(f"n_41.{at}.json", at=at, rank=0, steps=tuple(range(at, at + count)))
        for at, count in ((10, 2), (20, 3), (30, 1))
    )
    formats = ["torch_profiler"]
    save_run(memory_store, record(), [first.capture], formats=formats)
    joined = save_run(memory_store, record(), [longer.capture], formats=formats)
    assert (joined.run_id, joined.renewed, joined.joined) == (1, True, False)
    assert joined.notes == (
        "n_41.20.json is another cycle of the process of this run, of which the longest counts: it takes the place of "
        "the one before",
    )
    left_out = save_run(memory_store, record(), [shorter.capture], formats=formats)
    assert (left_out.run_id, left_out.already) == (1, True)
    assert queries.steps(memory_store, [1]).frame["step"].tolist() == [20, 21, 22]
    again = save_run(memory_store, record(), [shorter.capture], formats=formats)
    assert (again.already, again.notes) == (True, ())


def test_host_with_another_clock_that_fits_two_runs_is_said(memory_store: Store):
    formats = ["torch_profiler"]
    for at in (0, 20):
        (first, _) = job(3.2)
        start = EPOCH_NS + at * SECOND
        of_a = replace(first.capture, started_at_ns=start, ended_at_ns=start + SECOND)
        save_run(memory_store, record(), [of_a], formats=formats)
    (_, of_b) = job(30)
    saved = save_run(memory_store, record(), [of_b.capture], formats=formats)
    assert saved.created
    assert saved.notes == (
        "run:1 and run:2 may have other ranks of this job, on hosts with other clocks: ingest the profiles of all of "
        "them in one call, with --as-run",
    )
