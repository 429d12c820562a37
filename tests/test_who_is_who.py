"""Which captures are repeats, ranks, cycles of one process or copies: by what files say, their names and times."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.factories import EPOCH_NS, capture
from tests.test_intake import write_trace
from tracker.errors import SourceError, UsageError
from tracker.intake import Piece, form_runs, ingest
from tracker.intake.identity import Fingerprint, fingerprint_of
from tracker.store import Store, queries

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
    pieces = [replace(one, capture=replace(one.capture, process=str(i))) for i, one in enumerate(pieces)]
    assert len(form_runs(pieces)) == 2


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
    path.write_text("\n".join(lines[:2]) + "\n")
    ingest(memory_store, [path], version="v1", workload="toy")
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(UsageError, match=r"train.log is the log of run 1 with 2 more steps; to replace it"):
        ingest(memory_store, [path], version="v1", workload="toy")
    path.write_text("\n".join(lines[:1]) + "\n")
    (result,) = ingest(memory_store, [path], version="v1", workload="toy")
    assert result.already
