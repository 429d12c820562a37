"""The declarations of series refer to what is there, and whoever makes a key of one makes the same."""

from __future__ import annotations

import pytest

from tracker.detect import KindCode
from tracker.results import DIFF_COLUMNS, SERIES_KINDS
from tracker.results.recording import records_of, rests_on
from tracker.schema.levels import KERNEL_KEY, LEVEL, OP_KEY
from tracker.schema.series import (
    KIND,
    KINDS,
    NO_SERIES,
    RUN_SERIES,
    RUN_SERIES_OF,
    STEP_KEY,
    STEP_SERIES,
    WAYS,
    SeriesKey,
    find_metric,
    key_of_run,
    metric_of_number,
    own_time_of,
    part_of_collective,
)
from tracker.store.samples.rows import SAMPLED_COLUMNS

TEXTS = {"op_key": OP_KEY, "kernel_key": KERNEL_KEY}
OF_LEVELS = [kind for kind in KINDS if kind.level]


@pytest.mark.parametrize("kind", OF_LEVELS, ids=lambda kind: kind.word)
def test_a_kind_names_columns_of_its_level(kind):
    columns = LEVEL[kind.level].row_kinds
    assert {*kind.key_columns} <= {*TEXTS.get(kind.texts, columns)}
    assert not kind.texts or kind.texts in columns
    for metric in kind.metrics:
        assert {metric.column or metric.name, metric.if_missing or "calls"} <= columns.keys()


def test_series_that_are_the_step_begin_with_the_marked_one():
    assert STEP_SERIES[0] == STEP_KEY.name
    assert {RUN_SERIES_OF[name].judged_as for name in STEP_SERIES} == {"STEP", "WHOLE"}


@pytest.mark.parametrize("kind", OF_LEVELS, ids=lambda kind: kind.word)
def test_a_kind_names_columns_of_its_table_of_a_diff(kind):
    assert not kind.diff_table or {*kind.diff_columns} <= {*DIFF_COLUMNS[kind.diff_table]}


def test_the_judge_knows_what_each_series_is():
    judged_as = {series.judged_as for series in (*OF_LEVELS, *RUN_SERIES)}
    assert judged_as == {code.name for code in KindCode}


def test_samples_read_what_the_kinds_name():
    # the level idle has no kind: its series are of whole runs
    assert SAMPLED_COLUMNS.keys() == {*(kind.level for kind in OF_LEVELS), "idle"}
    assert SAMPLED_COLUMNS["kernel"] == ("step", "kernel_key", "category", "calls", "total_ns")
    assert SAMPLED_COLUMNS["api"] == ("step", "level", "name", "calls", "total_ns", "self_ns")


def test_names_are_looked_for_in_all_kinds():
    assert sorted(SERIES_KINDS) == sorted(KIND)
    assert (SERIES_KINDS[0], SERIES_KINDS[-1]) == ("run", "memory")


def test_keys_of_kinds():
    assert KIND["op"].make_key("device_self_ns", ("mm", "[[2, 3]]")) == (
        "op",
        "device_self_ns",
        "mm",
        "[[2, 3]]",
        "",
        "",
    )
    assert KIND["op_name"].make_key("device_self_ns", ("mm",)) == ("op_name", "device_self_ns", "mm", "", "", "")
    assert KIND["api"].make_key("self_ns", ("cudaLaunchKernel", "runtime")).part == "runtime"
    assert KIND["module"].make_key("host_self_ns", ("net/fc", "forward")).part == "forward"
    assert KIND["module"].make_key("host_self_ns", ("", "forward")) is NO_SERIES


def test_part_of_a_collective_is_role_and_size_class():
    key = KIND["communication"].make_key("total_ns", ("all_reduce", "data parallel", 2048))
    assert key.part == part_of_collective("data parallel", 2048.0) == "data parallel, 2.00 KiB"
    assert part_of_collective("", 7) == "7 B"
    # missing in a profile, in an answer, and in an array of an answer
    assert {part_of_collective("world", size) for size in (-1, None, float("nan"))} == {"world"}


def test_series_of_whole_runs():
    assert key_of_run("step") == SeriesKey("run", "duration_ns", "step")
    assert key_of_run("throughput", unit="images/s", way=WAYS[1]).part == "summary"
    assert metric_of_number("step_ns") == key_of_run("step").metric
    assert own_time_of("device") == "device_self_ns"


def test_a_number_that_no_series_follows_rests_on_the_step():
    # host_idle_ns is a row of a diff alone; unlike the sum of idle time it needs to know why the device idles
    of_idle_time = rests_on("run", "idle_ns", "device")
    assert rests_on("run", "host_idle_ns", "device") == of_idle_time | {
        "why the device idles, and what data loading is"
    }
    assert records_of("run", "kernel_count") == records_of("run", "compute_ns")
    assert find_metric("op", "of an older database").records == find_metric("op", "device_self_ns").records
