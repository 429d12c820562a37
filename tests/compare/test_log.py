"""The optimisation log: which numbers share a column, and what a change is against."""

from __future__ import annotations

from itertools import count

import pytest
from msgspec.structs import replace

from tests.factories import capture, record, same_table, save
from tracker.compare import diff, log
from tracker.errors import UsageError
from tracker.profile import Device
from tracker.regressions.history import history
from tracker.regressions.judgement import tracks_of, update
from tracker.results import LOG_COLUMNS, HistoryOptions, LogOptions
from tracker.store import runs as edits
from tracker.store import save_run
from tracker.store.versions import pin_version

NO_PROFILER = {"profiler": "off", "throughput_unit": "images/s"}
V100 = Device("NVIDIA", "V100")


_clock = count(10**18, 10**12)


def benchmark(store, version, samples_per_second, *, settings=NO_PROFILER, tags=None, batch="32", **of_run):
    """One run of a benchmark log: two steps of 1000 ns with this throughput each."""
    made = capture(settings=settings, ops=(), kernels=(), steps=2, started_at_ns=next(_clock))
    steps = tuple(
        replace(step, breakdown=replace(step.breakdown, samples_per_second=samples_per_second))
        for step in made.rows.steps
    )
    made = replace(made, device=of_run.get("device", made.device), rows=replace(made.rows, steps=steps))
    values = {"configuration": {"batch": batch}, "tags": tags or {}, **of_run}
    return save_run(store, record(version, **values), [made], formats=["training_log"]).run_id


def lines_of_log(store, *, speeds, durations, steps=None, settings=NO_PROFILER):
    """One run of version v1: a step for each throughput and duration in ns; `steps`: how many each is the mean of."""
    counts = steps or [1] * len(speeds)
    made = capture(settings=settings, ops=(), kernels=(), steps=len(speeds), started_at_ns=next(_clock))
    steps = tuple(
        replace(step, breakdown=replace(step.breakdown, samples_per_second=speed, duration_ns=duration), steps=number)
        for step, speed, duration, number in zip(made.rows.steps, speeds, durations, counts, strict=True)
    )
    save_run(store, record("v1"), [replace(made, rows=replace(made.rows, steps=steps))], formats=["training_log"])


def test_throughput_is_compared_with_the_baseline_and_with_the_version_before(store):
    for version, speed in (("v1", 100.0), ("v2", 150.0), ("v3", 75.0)):
        benchmark(store, version, speed)
    same_table(
        log(store).cells,
        """
        version  value  runs  baseline_diff  previous_diff  previous_version
        v1       100    1     0              -              -
        v2       150    1     0.5            0.5            v1
        v3       75     1     -0.25          -0.5           v2
        """,
    )


def test_numbers_with_and_without_a_profiler_never_share_a_column(store):
    benchmark(store, "v1", 100.0)
    save(store, "v1", of_run={"configuration": {"batch": "32"}}, step_ns=2000)
    columns = log(store).columns
    assert list(columns["title"]) == [
        "batch=32, NVIDIA H100, throughput in images/s without a profiler",
        "batch=32, NVIDIA H100, step time under a profiler",
    ]
    step = log(store, options=LogOptions(metric="step"))
    assert list(step.columns["profiler"]) == ["off", "on"]
    assert list(step.cells["value"]) == [1000.0, 2000.0]


def test_throughput_under_a_profiler_has_a_column_of_its_own(store):
    benchmark(store, "v1", 100.0)
    benchmark(store, "v1", 80.0, settings={})
    assert list(log(store).cells["value"]) == [100.0, 80.0]
    assert list(log(store).columns["unit"]) == ["images/s", "samples/s"]


def test_devices_and_configurations_have_columns_of_their_own_in_natural_order(store):
    for batch, device in (("128", V100), ("32", V100), ("32", Device("NVIDIA", "A100"))):
        benchmark(store, "v1", 100.0, batch=batch, device=device)
    assert list(log(store).columns["configuration"]) == ["batch=32", "batch=32", "batch=128"]
    assert list(log(store).columns["device"]) == ["NVIDIA A100", "NVIDIA V100", "NVIDIA V100"]
    assert len(log(store, options=LogOptions(config={"batch": "128"})).columns) == 1
    assert len(log(store, options=LogOptions(device="a100")).columns) == 1


def test_several_runs_are_their_geometric_mean_with_range(store):
    for speed in (90.0, 160.0):
        benchmark(store, "v1", speed)
    (cell,) = log(store).cells.to_dict("records")
    assert (cell["value"], cell["minimum"], cell["maximum"], cell["runs"]) == (pytest.approx(120), 90, 160, 2)


def test_step_time_is_the_mean_over_steps_and_ranks_as_in_a_diff(store):
    save(store, "v1", ranks=2, steps=4, step_ns=3000)
    found = log(store)
    assert list(found.cells["value"]) == [3000.0]
    assert not found.columns["higher_is_better"].any()


def test_gain_is_in_speed_and_stands_beside_what_was_expected(store):
    save(store, "v1", step_ns=1200)
    save(store, "v2", step_ns=1000, of_run={"tags": {"expected": "+10%"}})
    save(store, "v3", step_ns=1000, of_run={"tags": {"expected": "a lot"}})
    found = log(store).cells
    assert found["gain"].iloc[1] == pytest.approx(0.2)
    assert found["previous_diff"].iloc[1] == pytest.approx(-1 / 6)
    assert list(found["expected_gain"].astype(object).where(found["expected_gain"].notna(), None)) == [None, 0.1, None]
    assert list(found["expected"].astype(object).where(found["expected"].notna(), None)) == [None, "+10%", "a lot"]


def test_speeds_of_one_direction_multiply(store):
    for version, speed, direction in (("v1", 100.0, ""), ("v2", 200.0, "input"), ("v3", 300.0, "input")):
        benchmark(store, version, speed, tags={"direction": direction} if direction else {})
    same_table(log(store).directions, "direction versions gain\ninput 2 2")
    assert list(log(store).versions["direction"].fillna("-")) == ["-", "input", "input"]


def test_previous_is_the_last_version_that_was_measured_there(store):
    benchmark(store, "v1", 100.0)
    benchmark(store, "v2", 100.0, batch="64")
    benchmark(store, "v3", 110.0)
    cells = log(store).cells
    assert list(cells[cells["column"] == 0]["version"]) == ["v1", "v3"]
    assert cells[cells["version"] == "v3"]["previous_version"].iloc[0] == "v1"


def test_excluded_and_deleted_runs_are_left_out(store):
    benchmark(store, "v1", 100.0)
    excluded, deleted = benchmark(store, "v2", 50.0), benchmark(store, "v3", 60.0)
    edits.exclude_all(store, [excluded], "noisy")
    edits.delete_all(store, [deleted], "wrong machine", purge=False)
    assert list(log(store).versions["version"]) == ["v1"]


def test_baseline_is_the_named_version_else_the_pinned_one(store):
    for version, speed in (("v1", 100.0), ("v2", 200.0), ("v3", 400.0)):
        benchmark(store, version, speed)
    assert list(log(store, options=LogOptions(baseline="v2")).cells["baseline_diff"]) == [-0.5, 0.0, 1.0]
    pin_version(store, "v3")
    assert list(log(store).cells["baseline_diff"]) == [-0.75, -0.5, 0.0]
    assert log(store).baseline == "v3"


def test_last_hides_versions_but_compares_with_them(store):
    for version, speed in (("v1", 100.0), ("v2", 200.0), ("v3", 400.0)):
        benchmark(store, version, speed)
    found = log(store, options=LogOptions(last=1))
    same_table(found.cells, "version baseline_diff previous_diff\nv3 3 1")


def test_throughput_of_a_job_with_several_processes_says_what_it_counts_or_that_this_is_not_stated(store):
    for speed, said in (
        (100.0, {"throughput_scope": "per rank"}),
        (800.0, {"throughput_scope": "total"}),
        (101.0, {}),
    ):
        benchmark(store, "v1", speed, configuration={"devices": "8"}, settings=NO_PROFILER | said)
    benchmark(
        store, "v1", 99.0, configuration={"devices": "1"}, settings=NO_PROFILER | {"throughput_scope": "per rank"}
    )
    assert sorted(log(store).columns["scope"]) == ["", "per rank", "per rank or total: not stated", "total"]


def test_throughput_of_a_log_is_the_median_of_its_lines_since_the_first_holds_the_start_up(store):
    lines_of_log(store, speeds=[10.0, 100.0, 102.0], durations=[9000, 1000, 1020])
    assert list(log(store).cells["value"]) == [100.0]  # the mean would be 70.67
    assert list(log(store, options=LogOptions(metric="step")).cells["value"]) == [1020.0]


def test_median_of_an_even_number_of_lines_is_the_mean_of_the_two_in_the_middle(store):
    lines_of_log(store, speeds=[10.0, 100.0, 102.0, 104.0], durations=[9000, 1000, 1020, 1040])
    assert list(log(store).cells["value"]) == [101.0]


def test_a_line_that_stands_for_many_steps_counts_as_many_in_the_median(store):
    """Ten steps at 10, one at 100 and one at 102: the sixth and the seventh of twelve are at 10."""
    lines_of_log(store, speeds=[10.0, 100.0, 102.0], durations=[9000, 1000, 1020], steps=[10, 1, 1])
    assert list(log(store).cells["value"]) == [10.0]
    assert list(log(store, options=LogOptions(metric="step")).cells["value"]) == [9000.0]


@pytest.mark.parametrize(("counts", "middle"), [((2, 2), 55.0), ((2, 1), 10.0), ((1, 2), 100.0)])
def test_the_middle_of_lines_with_many_steps_may_lie_between_two(store, counts, middle):
    lines_of_log(store, speeds=[10.0, 100.0], durations=[9000, 1000], steps=counts)
    assert list(log(store).cells["value"]) == [middle]


def test_step_time_under_a_profiler_is_the_median_of_its_steps(store):
    lines_of_log(store, speeds=[None] * 3, durations=[900, 100, 200], settings={})
    assert list(log(store).cells["value"]) == [200.0]


def test_the_summary_that_a_profiler_printed_has_a_column_of_its_own(store):
    benchmark(store, "v1", None, settings={"profiler": "summary"})
    benchmark(store, "v1", None, settings={})
    assert list(log(store).columns["title"]) == [
        "batch=32, NVIDIA H100, step time under a profiler",
        "batch=32, NVIDIA H100, step time in a profiler's summary",
    ]


def test_tags_can_part_columns(store):
    benchmark(store, "v1", 100.0, tags={"image": "a"})
    benchmark(store, "v1", 120.0, tags={"image": "b"})
    assert len(log(store).columns) == 1
    assert list(log(store, options=LogOptions(by=("image",))).columns["configuration"]) == [
        "batch=32 image=a",
        "batch=32 image=b",
    ]


@pytest.mark.parametrize("settings", [NO_PROFILER, {}], ids=["a training log", "a profile"])
def test_a_version_has_the_verdict_that_history_gives_it(store, settings):
    """Three runs each: 100 to 102 images/s, then 80, then 100 again, which is neither news nor a gain."""
    for version, speed in (("v1", 100.0), ("v2", 101.0), ("v3", 80.0), ("v4", 100.0)):
        for more in (0.0, 1.0, 2.0):
            benchmark(store, version, speed + more, settings=settings)
    update(store, tracks_of(store))
    cells = log(store, options=LogOptions(metric="throughput")).cells.set_index("version")
    options = HistoryOptions(metric="samples_per_second", kind="run", key="*")
    points = history(store, options=options).points.set_index("version")
    assert cells.loc["v3", "verdict"] == "REGRESSED"
    assert cells.loc["v4", "verdict"] == "IMPROVED", "against v3: it is back at the level of v1"
    assert points.loc["v4", "back_to"] == "v1"
    said = points["verdict"].reindex(cells.index)
    assert cells["verdict"].fillna("").tolist() == said.fillna("").tolist()
    assert cells.loc["v3", "judged_diff"] == pytest.approx(points.loc["v3", "change"])


def test_what_was_not_judged_has_no_verdict(store):
    benchmark(store, "v1", 100.0)
    assert log(store).cells["verdict"].isna().all()


def test_frames_have_the_promised_columns(store):
    benchmark(store, "v1", 100.0)
    found = log(store)
    for name, columns in LOG_COLUMNS.items():
        assert tuple(getattr(found, name).columns) == columns


def test_what_is_not_there_is_said_with_what_is(store):
    benchmark(store, "v1", 100.0)
    with pytest.raises(UsageError, match="no workload 'bert'; there is gpt"):
        log(store, options=LogOptions(workload="bert"))
    with pytest.raises(UsageError, match="no version 'v11' of workload 'gpt' with active runs; did you mean v1"):
        log(store, options=LogOptions(baseline="v11"))
    with pytest.raises(UsageError, match="no configuration 'batch=1' of workload 'gpt'; there is batch=32"):
        log(store, options=LogOptions(config={"batch": "1"}))
    with pytest.raises(UsageError, match="no tag 'image' of workload 'gpt'; no run has any"):
        log(store, options=LogOptions(by=("image",)))
    with pytest.raises(UsageError, match="no run of gpt has a number that --metric asks for; tracker log without it"):
        log(store, options=LogOptions(metric="memory"))
    benchmark(store, "v1", 100.0, workload="bert")
    with pytest.raises(UsageError, match="several workloads: bert, gpt; choose one with --workload"):
        log(store)


@pytest.mark.parametrize(
    ("stated", "title"), [(NO_PROFILER, "images/s"), ({"profiler": "off"}, "samples/s")], ids=["both", "one"]
)
def test_a_throughput_has_a_name_only_where_both_sides_state_it(store, stated, title):
    benchmark(store, "v1", 100.0)
    benchmark(store, "v2", 90.0, settings=stated)
    titles = dict(diff(store, "v1", "v2").overall[["metric", "title"]].to_numpy())
    assert titles["samples_per_second"] == title
