"""The data pipeline of MindSpore, from its tables to those of show and diff."""

from __future__ import annotations

import json

import pytest

from tests.readers.mindspore_windows import write_pipeline, write_window

FULL = (16, 15, 12, 9, 8, 7, 6, 5, 4, 3, 2, 2, 1, 1, 0, 0)
"""16 samples of a queue: their sum is 91, 2 of them are 0."""
DRY = (4, 2, 1, *[0] * 13)


@pytest.fixture
def two_runs(tmp_path):
    """Two windows of the same steps; in the second one Map takes twice as long, and the queue runs dry."""
    before, after = (write_window(tmp_path / name, 2, 5) for name in ("before", "after"))
    write_pipeline(before, batch=FULL)
    write_pipeline(after, batch=DRY, map_us=300.0)
    return before, after


def test_show_has_operations_with_their_shares(tracker, two_runs):
    """40 x 150 + 40 x 50 + 10 x 20 = 8,200 us."""
    rows = json.loads(tracker("show", two_runs[0], "--format", "json").out)["input_operations"]
    found = [(row["operation"], row["calls"], row["average_ns"], row["total_ns"], row["share"]) for row in rows]
    assert found == [
        ("Map Decode", 40, 150_000, 6_000_000, pytest.approx(6000 / 8200)),
        ("MindRecord Read", 40, 50_000, 2_000_000, pytest.approx(2000 / 8200)),
        ("Batch Collect", 10, 20_000, 200_000, pytest.approx(200 / 8200)),
    ]


def test_show_has_queues_with_their_course(tracker, two_runs):
    """8 parts of 2 samples, 10 ms apart. The operation next to the device has no queue; two are called Map."""
    rows = json.loads(tracker("show", two_runs[0], "--format", "json").out)["input_queues"]
    wholes = [row for row in rows if row["interval"] is None]
    assert [row["operation"] for row in wholes] == ["Batch", "Map(id:2)", "Map(id:3)"]
    batch = wholes[0]
    numbers = [batch[name] for name in ("workers", "capacity", "cpu_percent", "empty_share", "mean", "min", "max")]
    assert numbers == [2, 16, 12.5, 0.125, 91 / 16, 0, 16]
    assert batch["sampled_ns"] == 160_000_000
    parts = [(row["interval"], row["intervals"], row["mean"]) for row in rows if row["operation"] == "Batch"][1:]
    assert parts == [(place, 8, mean) for place, mean in enumerate([15.5, 10.5, 7.5, 5.5, 3.5, 2, 1, 0], start=1)]
    shown = tracker("show", two_runs[0], "--only", "input").out
    assert "15.5 10.5 7.5 5.5 3.5 2.0 1.0 0.0" in shown


def test_diff_has_both_sides_of_operations_and_queues(tracker, two_runs):
    compared = json.loads(tracker("diff", *two_runs, "--format", "json").out)
    slower = compared["input_operations"][0]
    assert (slower["operation"], slower["delta_ns"], slower["diff"]) == ("Map Decode", 150_000, 1.0)
    shares = [slower["baseline_share"], slower["candidate_share"]]
    assert shares == [pytest.approx(6000 / 8200), pytest.approx(12000 / 14200)]
    batch = compared["input_queues"][0]
    assert [batch[name] for name in ("operation", "interval", "baseline_mean", "candidate_mean")] == [
        "Batch", None, 91 / 16, 7 / 16,
    ]  # fmt: skip
    assert [batch["baseline_empty_share"], batch["candidate_empty_share"]] == [0.125, 13 / 16]
    courses = "15.5 10.5 7.5 5.5 3.5 2.0 1.0 0.0 -> 3.0 0.5 0.0 0.0 0.0 0.0 0.0 0.0"
    assert courses in tracker("diff", *two_runs, "--only", "input").out


def test_counters_do_not_repeat_the_pipeline(tracker, two_runs):
    rows = json.loads(tracker("show", two_runs[0], "--format", "json").out)["counters"]
    assert not {row["source"] for row in rows} & {"input_operation", "input_queue"}


def test_pipeline_of_chosen_steps_is_that_of_the_capture(tracker, two_runs):
    """The profiler does not say in which step an operation ran."""
    whole, chosen = (
        json.loads(tracker("show", two_runs[0], *words, "--format", "json").out) for words in ((), ("--step", "3"))
    )
    assert chosen["input_operations"] == whole["input_operations"]
    assert not any("input_operation" in note for note in chosen["notes"])


def test_summary_as_json_stands_in_for_its_csv(tracker, two_runs):
    (table,) = two_runs[0].glob("*/*/minddata_pipeline_summary_0.csv")
    before = json.loads(tracker("show", two_runs[0], "--format", "json").out)["input_queues"]
    rows = [line.split(",") for line in table.read_text(encoding="utf-8").splitlines()]
    numbers = {name: [float(cell) for cell in cells] for name, *cells in rows if name != "op_names"}
    whole = {"op_ids": [0, 1, 2, 3], "op_names": rows[1][1:], "per_pipeline_time": numbers["per_pipeline_time"][0]}
    table.with_suffix(".json").write_text(json.dumps({**numbers, **whole}), encoding="utf-8")
    table.unlink()
    assert json.loads(tracker("show", two_runs[0], "--format", "json").out)["input_queues"] == before


def test_side_without_a_pipeline_has_no_table(tracker, two_runs, tmp_path):
    bare = write_window(tmp_path / "bare", 2, 5)
    compared = json.loads(tracker("diff", two_runs[0], bare, "--format", "json").out)
    assert compared["input_operations"] == compared["input_queues"] == []
    shown = tracker("show", bare, "--only", "input").out
    assert "no rows: only MindSpore's profiler measures a data pipeline" in " ".join(shown.split())


def test_ranks_of_a_run_add_up(tracker, tmp_path):
    for rank in (0, 1):
        write_pipeline(write_window(tmp_path / "job", 2, 5, rank=rank), batch=FULL if rank else DRY)
    rows = json.loads(tracker("show", tmp_path / "job", "--format", "json").out)
    assert rows["input_operations"][0]["total_ns"] == 12_000_000
    assert rows["input_queues"][0]["mean"] == (91 + 7) / 32
    by_rank = json.loads(tracker("show", tmp_path / "job", "--by", "rank", "--format", "json").out)
    means = {
        row["rank"]: row["mean"]
        for row in by_rank["input_queues"]
        if row["interval"] is None and "B" in row["operation"]
    }
    assert means == {0: 7 / 16, 1: 91 / 16}


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("minddata_pipeline_raw_0.csv", "[1, 3]", "[1, x]", "row 5: output_queue_size is '[1, x]'"),
        ("minddata_pipeline_raw_0.csv", "3,MapOp", "last,MapOp", "row 5: op_id is 'last'"),
        ("minddata_pipeline_summary_0.csv", "12.5,40,3", "12.5,40,many", "avg_cpu_pct is 'many'"),
        ("dataset.csv", "Map,Decode,40", "Map,Decode,often", "row 3: Occurrences is 'often'"),
        ("dataset.csv", "50.0", "-50.0", "row 2: Avg. time(us) is '-50.0'"),
    ],
)
def test_table_with_a_bad_cell_is_one_line(tracker, two_runs, name, old, new, problem):
    (file,) = two_runs[0].glob(f"*/*/{name}")
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    done = tracker("show", two_runs[0])
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert name in done.err and problem in done.err
