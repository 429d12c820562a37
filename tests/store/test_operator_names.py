"""Runs of an earlier program get the keys of today from the names that are stored, and their histories go on."""

from __future__ import annotations

import pytest
from alembic import command
from sqlalchemy import text

from tests.factories import EPOCH_NS, save
from tracker.regressions.inbox import found_rows
from tracker.regressions.judgement import tracks_of, update
from tracker.results import FindingsOptions
from tracker.results.thresholds import Threshold
from tracker.store import connect, health, open_store, pruning, queries, schema, tracks
from tracker.store.operator_names import RULES_AFTER, RULES_BEFORE

GRAPHS = [f"## Call CompiledFxGraph f{letter * 50}2 ##" for letter in "ab"]
TODAY = {"of_run": {"rules_version": RULES_AFTER}}


def save_before(store, version, *ops, **values):
    """Three runs that a program of before read; ops: (name, device time[, more])."""
    return save(store, version, runs=3, ops=ops, of_run={"rules_version": RULES_BEFORE}, **values)


def upgrade(database_url):
    with open_store(database_url) as store, store.begin() as connection:
        command.downgrade(schema.alembic_config(connection), "0013")
    assert connect.upgrade(database_url) == ("0013", schema.SCHEMA_HEAD)


def ops_of(store, run_id, *columns):
    return set(queries.ops(store, [run_id]).rows("name", *columns))


def rules_of(store, run_id):
    with store.connect() as connection:
        return connection.execute(text("SELECT rules_version FROM run WHERE id = :id"), {"id": run_id}).scalar_one()


def test_stored_names_become_keys_and_stay_beside_them(database_url):
    with open_store(database_url) as store:
        first, *_ = save_before(
            store, "v1",
            ("Torch-Compiled Region: 0/0", 0), (GRAPHS[0], 0), ("triton_red_fused_norm_4", 450), ("aten::mm", 600),
        )  # fmt: skip
    upgrade(database_url)
    with open_store(database_url) as store:
        assert ops_of(store, first, "device_self_ns", "raw_name") == {
            ("Torch-Compiled Region", 0, "Torch-Compiled Region: 0/0"),
            ("## Call CompiledFxGraph ##", 0, GRAPHS[0]),
            ("triton_red_fused_norm", 450, "triton_red_fused_norm_4"),
            ("aten::mm", 600, None),
        }
        assert rules_of(store, first) == RULES_AFTER
        assert health.check(store) == []


def test_history_goes_on_under_the_key(database_url):
    """v1 was read by a program of before; in v2, read today, the kernel has another number and takes 585 for 450."""
    with open_store(database_url) as store:
        save_before(store, "v1", ("triton_red_fused_norm_4", 450_000), ("aten::mm", 600_000))
        update(store, tracks_of(store))
    upgrade(database_url)
    with open_store(database_url) as store:
        kernels = (("triton_red_fused_norm", 585_000), ("aten::mm", 600_000))
        save(store, "v2", runs=3, ops=kernels, started_at_ns=EPOCH_NS + 10**15, **TODAY)
        update(store, tracks_of(store))
        rows = found_rows(store, FindingsOptions(workload="gpt"))
        assert {(row.name, row.verdict) for row in rows if row.kind.startswith("op")} == {
            ("triton_red_fused_norm", "REGRESSED")
        }


def test_two_names_that_become_one_are_one_row(database_url):
    with open_store(database_url) as store:
        first, *_ = save_before(
            store, "v1", ("Torch-Compiled Region: 0/0", 30), ("Torch-Compiled Region: 1/0", 12), memory=[
                ("Torch-Compiled Region: 0/0", 8), ("Torch-Compiled Region: 1/0", 4)
            ],
        )  # fmt: skip
    upgrade(database_url)
    with open_store(database_url) as store:
        found = ops_of(store, first, "calls", "device_self_ns", "min_ns", "max_ns")
        assert found == {("Torch-Compiled Region", 2, 42, 12, 30)}
        assert set(queries.memory(store, [first]).rows("op", "bytes")) == {("Torch-Compiled Region", 12)}
        assert health.check(store) == []


def test_kernels_of_one_base_keep_their_order_within_a_graph(database_url):
    """The second graph counts from 0 again; its kernel 5 is the first of its base there."""
    with open_store(database_url) as store:
        first, *_ = save_before(
            store, "v1",
            (GRAPHS[0], 0), ("triton_poi_fused_add_1", 10, {"parent": GRAPHS[0]}),
            ("triton_poi_fused_add_3", 20, {"parent": GRAPHS[0]}),
            (GRAPHS[1], 0), ("triton_poi_fused_add_5", 40, {"parent": GRAPHS[1]}),
        )  # fmt: skip
    upgrade(database_url)
    with open_store(database_url) as store:
        found = {name: ns for name, ns in ops_of(store, first, "device_self_ns") if name.startswith("triton")}
        assert found == {"triton_poi_fused_add": 50, "triton_poi_fused_add #2": 20}


def engine(mark="step[DECODE bs=1]", **of_mark):
    """A range that lasts as long as each step, 1 us, and owns two kernels, one of them with aten::mm in it."""
    ops = ((mark, 500, {"host_total_ns": 1000, **of_mark}), ("aten::mm", 20, {"parent": mark}))
    kernels = (("attention", 500, {"op": mark}), ("gemm", 20, {"op": "aten::mm"}))
    idle = (("host: no operator", mark, 5),)
    return ops, {"kernels": kernels, "idle": idle, "steps": 2, "step_ns": 1000}


def test_marks_of_steps_are_no_operators_any_more(database_url):
    ops, values = engine()
    with open_store(database_url) as store:
        first, *_ = save_before(store, "v1", *ops, **values, api=[("cudaGraphLaunch", 10)], memory=[(ops[0][0], 8)])
    upgrade(database_url)
    with open_store(database_url) as store:
        assert ops_of(store, first, "calls", "device_self_ns") == {("(no op)", 0, 1000), ("aten::mm", 2, 40)}
        kernels = set(queries.kernels(store, [first]).rows("name", "op", "total_ns"))
        assert kernels == {("attention", "(no op)", 1000), ("gemm", "aten::mm", 40)}
        assert set(queries.idle(store, [first]).rows("cause", "place", "ns")) == {("host: no operator", "", 10)}
        assert set(queries.memory(store, [first]).rows("op", "bytes")) == {("(no op)", 16)}
        assert rules_of(store, first) == RULES_AFTER
        assert health.check(store) == []


def test_calls_in_a_mark_are_roots_of_the_tree(database_url):
    ops, values = engine()
    with open_store(database_url) as store:
        first, *_ = save_before(store, "v1", *ops, **values)
    upgrade(database_url)
    with open_store(database_url) as store:
        tree = set(queries.op_tree(store, [first]).rows("name", "parent", "device_self_ns"))
        assert tree == {("aten::mm", -1, 40), ("(no op)", -1, 1000)}


def test_range_that_fills_a_capture_without_marks_stays(database_url):
    """It is as long as the one step, which is the whole capture."""
    with open_store(database_url) as store:
        ops = [("train step", 5, {"host_total_ns": 1000}), ("batch loop", 5, {"host_total_ns": 1000})]
        first, *_ = save_before(store, "v1", *ops, step_ns=1000)
    upgrade(database_url)
    with open_store(database_url) as store:
        assert ops_of(store, first) == {("train step",), ("batch loop",)}
        assert rules_of(store, first) == RULES_AFTER


def test_range_that_is_not_surely_a_mark_waits_for_the_files(database_url):
    """Two ranges in each other are as long as the step: only the file says which of them marks it."""
    ops, values = engine()
    second = engine(calls=2)[0]
    with open_store(database_url) as store:
        first, *_ = save_before(
            store, "v1", *ops, ("decode step", 0, {"host_total_ns": 1000, "parent": ops[0][0]}), **values
        )
        other, *_ = save_before(store, "v2", *second, **values)
    upgrade(database_url)
    with open_store(database_url) as store:
        # the inner range lasts as long as the outer one: which of them is the mark
        assert ("step[DECODE bs=1]",) in ops_of(store, first)
        assert rules_of(store, first) == RULES_BEFORE
        # never as a mark is: a range like any other
        assert ("step[DECODE bs=1]",) in ops_of(store, other)
        assert rules_of(store, other) == RULES_AFTER


@pytest.mark.parametrize("api", ["cudaGraphLaunch", "cudaLaunchKernel"])
def test_only_annotations_beside_graphs_wait_for_the_files(database_url, api):
    with open_store(database_url) as store:
        first, *_ = save_before(store, "v1", ("decode", 500), api=[(api, 10)])
    upgrade(database_url)
    with open_store(database_url) as store:
        assert rules_of(store, first) == (RULES_BEFORE if api == "cudaGraphLaunch" else RULES_AFTER)


def test_series_of_runs_without_details_goes_on(database_url):
    with open_store(database_url) as store:
        save_before(store, "v1", ("triton_red_fused_norm_4", 450_000), ("aten::mm", 600_000))
        update(store, tracks_of(store))
        pruning.prune(store, 1, now_ns=EPOCH_NS)
        pruning.prune(store, 2, now_ns=EPOCH_NS)
        pruning.prune(store, 3, now_ns=EPOCH_NS)
    upgrade(database_url)
    with open_store(database_url) as store, store.connect() as connection:
        question = (
            "SELECT DISTINCT s.name, m.value FROM sample AS m INNER JOIN series AS s ON m.series_id = s.id "
            "WHERE s.kind = 'op'"
        )
        assert {tuple(row) for row in connection.execute(text(question))} == {
            ("triton_red_fused_norm", 450_000), ("aten::mm", 600_000)
        }  # fmt: skip
        assert rules_of(store, 1) == RULES_AFTER


def test_finding_stays_the_same_under_the_new_name(database_url):
    """450 -> 585 in v2, both read by a program of before: the operator and its name have one finding each, before
    and after.
    """
    with open_store(database_url) as store:
        save_before(store, "v1", ("triton_red_fused_norm_4", 450_000), ("aten::mm", 600_000))
        save_before(
            store, "v2", ("triton_red_fused_norm_4", 585_000), ("aten::mm", 600_000), started_at_ns=EPOCH_NS + 10**15
        )
        update(store, tracks_of(store))
        before = findings_of_operators(store)
    upgrade(database_url)
    with open_store(database_url) as store:
        update(store, tracks_of(store))
        assert before == {(1, "triton_red_fused_norm_4", "REGRESSED"), (2, "triton_red_fused_norm_4", "REGRESSED")}
        assert findings_of_operators(store) == {(number, "triton_red_fused_norm", word) for number, _, word in before}


def findings_of_operators(store):
    """Number, name and verdict of each finding of an operator."""
    rows = found_rows(store, FindingsOptions(workload="gpt"))
    return {(row.finding_id, row.name, row.verdict) for row in rows if row.kind.startswith("op")}


def test_places_of_idle_time_and_allocators_get_the_name_too(database_url):
    with open_store(database_url) as store:
        first, *_ = save_before(
            store, "v1", (GRAPHS[0], 30), (GRAPHS[1], 12), idle=[("host: operator", GRAPHS[0], 5)],
            memory=[("aten::mm", 8, {"allocator": GRAPHS[0]})], peak=[("aten::mm", 8, {"allocator": GRAPHS[1]})],
        )  # fmt: skip
    upgrade(database_url)
    with open_store(database_url) as store:
        assert set(queries.idle(store, [first]).rows("place", "ns")) == {("## Call CompiledFxGraph ##", 5)}
        allocators = {*queries.memory_allocators(store, [first])["allocator"]}
        assert allocators == {*queries.memory_owners(store, [first])["allocator"]} == {"## Call CompiledFxGraph ##"}
        assert health.check(store) == []


def test_threshold_of_an_operator_holds_for_its_key(database_url):
    limits = [
        Threshold("min_ratio", 0.07, "op", pattern, who="ann", when_ns=1, reason="noisy")
        for pattern in ("triton_red_fused_norm_4", "aten::mm")
    ]
    with open_store(database_url) as store:
        save_before(store, "v1", ("triton_red_fused_norm_4", 450_000), ("aten::mm", 600_000))
        with store.begin() as connection:
            tracks.write_limits(connection, 1, limits)
    upgrade(database_url)
    with open_store(database_url) as store, store.connect() as connection:
        found = connection.execute(text("SELECT pattern FROM threshold")).scalars()
        assert {*found} == {"triton_red_fused_norm", "aten::mm"}
