"""Verdicts of what is not in the main tables of a diff: memory, host API calls, the rows of trees."""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories import save
from tests.regressions.made import runs
from tracker.compare import diff
from tracker.results import VERDICT_COLUMNS, DiffOptions
from tracker.store import Store

FORWARD, BACKWARD = {"phase": "forward"}, {"phase": "backward"}


def three_runs_each(store: Store, **tables: tuple[list[Any], list[Any]]) -> None:
    """v1 with the first rows of each table, v2 with the second ones; three runs that differ by a per cent."""
    for at, version in enumerate(("v1", "v2")):
        for number, noise in enumerate((1.0, 1.01, 0.99)):
            own = {
                name: [(entry[0], int(entry[1] * noise), *entry[2:]) for entry in sides[at]]
                for name, sides in tables.items()
            }
            started = 10**18 + number * 10**12 + at * 10**14
            save(store, version, **own, steps=2, step_ns=100_000, started_at_ns=started)


def words(frame, *names):
    rows = frame.set_index("name")["verdict"]
    return [rows.loc[name] for name in names]


def test_bytes_that_ops_allocate_are_judged(store):
    before = [("mm", 1000, {"component": "device"}), ("add", 500), ("old", 400)]
    after = [("mm", 2000, {"component": "device"}), ("add", 500), ("new", 300)]
    three_runs_each(store, memory=(before, after))
    memory = diff(store, "v1", "v2").memory
    assert words(memory, "mm", "add", "old", "new") == ["REGRESSED", "UNCHANGED", "REMOVED", "ADDED"]
    assert memory.set_index("name").loc["mm", "judged_diff"] == pytest.approx(1.0)


def test_a_row_of_several_shapes_is_no_series_of_memory(store):
    shapes = [("mm", 1000, {"input_shapes": "[2]"}), ("mm", 1000, {"input_shapes": "[4]"})]
    three_runs_each(store, memory=(shapes, [(*entry[:1], 2000, entry[2]) for entry in shapes]))
    assert diff(store, "v1", "v2").memory["verdict"].tolist() == ["REGRESSED", "REGRESSED"]
    by_name = diff(store, "v1", "v2", options=DiffOptions(match="name", only=("memory",)))
    assert by_name.memory["verdict"].isna().all()
    assert by_name.judgement.sentences[-1].startswith("Memory is listed without verdicts: with --match name ")


def test_host_api_calls_are_judged_by_name_and_level(store):
    before = [("launch", 1000, {"level": "runtime"}), ("launch", 800, {"level": "driver"})]
    after = [("launch", 1500, {"level": "runtime"}), ("launch", 800, {"level": "driver"})]
    three_runs_each(store, api=(before, after))
    found = diff(store, "v1", "v2").api.set_index("level")["verdict"]
    assert found.to_dict() == {"runtime": "REGRESSED", "driver": "UNCHANGED"}


def test_rows_of_a_tree_have_the_verdict_of_the_series_that_they_are(store):
    def ops(mm: int) -> list[Any]:
        return [
            ("mm", mm, {"module": "A_0/B_0", **FORWARD}),
            ("add", 4000, {"module": "A_0", **FORWARD}),
            ("twice", 5000, {"module": "A_0/B_0", **FORWARD}),
            ("twice", 5000, {"module": "C_0", **BACKWARD}),
        ]

    three_runs_each(store, ops=(ops(10_000), ops(20_000)))
    tree = diff(store, "v1", "v2", options=DiffOptions(by=("module",))).tree
    found = {(row.kind, row.path): row.verdict for row in tree.fillna({"verdict": ""}).itertuples()}
    assert found["op", "A_0/B_0 > mm"] == "REGRESSED"
    assert found["module", "A_0/B_0"] == "REGRESSED"  # 15 -> 25 of 100 us, all of it its own
    assert found["module", "C_0"] == "UNCHANGED"
    # A_0 holds B_0, so that its row sums up two series; `twice` has its time in two places
    assert found["module", "A_0"] == found["op", "C_0 > twice"] == ""
    phases = diff(store, "v1", "v2", options=DiffOptions(by=("phase",))).tree
    found = {row.path: row.verdict for row in phases.itertuples()}
    assert (found["forward"], found["backward"]) == ("REGRESSED", "UNCHANGED")


def test_a_tree_cut_short_does_not_take_a_part_for_the_whole(store):
    def ops(mm: int) -> list[Any]:
        return [("mm", mm), ("mm", mm, {"module": "A_0"})]

    three_runs_each(store, ops=(ops(10_000), ops(20_000)))
    options = DiffOptions(by=("module",), depth=1)
    tree = diff(store, "v1", "v2", options=options).tree
    assert tree.set_index("name")["verdict"].fillna("").to_dict() == {"(no module)": "", "A_0": "REGRESSED"}
    some = DiffOptions(by=("module",), op="mm")
    assert diff(store, "v1", "v2", options=some).tree["verdict"].isna().all()


def test_ops_are_judged_where_they_call_nothing_and_kernels_at_the_top(store):
    runs(store, "v1")
    runs(store, "v2", {"op07": 1.2}, start=3)
    by_op = diff(store, "v1", "v2", options=DiffOptions(by=("op",))).tree
    assert words(by_op, "op07", "op08") == ["REGRESSED", "UNCHANGED"]
    by_kernel = diff(store, "v1", "v2", options=DiffOptions(by=("kernel",))).tree
    assert words(by_kernel[by_kernel["level"] == 0], "gemm") == ["UNCHANGED"]
    assert by_kernel.loc[by_kernel["level"] == 1, "verdict"].isna().all()


def test_nothing_of_it_is_judged_where_the_sides_are_not(store):
    three_runs_each(store, memory=([("mm", 1000)], [("mm", 2000)]), api=([("launch", 9)], [("launch", 18)]))
    result = diff(store, "v1", "v1", options=DiffOptions(by=("op",)))
    for frame in (result.memory, result.api, result.tree):
        assert frame[list(VERDICT_COLUMNS)].isna().all(axis=None)
