"""What the report of one run says first, and in its tables."""

from __future__ import annotations

import re

import pandas as pd

from tests.reports import builders
from tests.reports.builders import METRIC, MS
from tests.reports.test_diff_screen import cells_of, line_of
from tracker.profile import UNLINKED_OP
from tracker.reports import render
from tracker.results import ShowOptions


def test_the_first_two_lines_say_which_run_and_how_long_a_step_takes():
    title, headline = render(builders.shown(), "text", width=120).splitlines()[:2]
    assert title == "run 41: resnet50 v41, NVIDIA H100, batch=64, 2 ranks, 4 steps [excluded: bad host]"
    assert headline == "90.00 ms per step"


def test_the_spread_of_the_steps_stands_behind_the_headline():
    steps = builders.shown().steps.assign(shortest_ns=[88 * MS, 89 * MS, 91 * MS, 92 * MS])
    steps = steps.assign(longest_ns=steps["shortest_ns"])
    assert render(builders.shown(steps=steps), "text").splitlines()[1] == "90.00 ms per step (88.00 to 92.00 ms)"


def test_the_parts_of_a_step_have_their_share_of_it():
    """60 + 10 + 2 + 18 = 90 ms."""
    text = render(builders.shown(), "text", width=100)
    assert cells_of(text, "compute")[:3] == ["compute", "60.00 ms", "66.7 %"]
    assert cells_of(text, "idle")[:3] == ["idle", "18.00 ms", "20.0 %"]


def test_by_step_each_step_is_a_row_of_its_parts():
    """Rank 0, step 0: 60 + 10 + 2 + 18 = 90 ms, of which the host marked 30."""
    text = render(builders.shown(options=ShowOptions(by=("step",))), "text", width=140)
    row = cells_of(text, "rank 0, step 0")
    assert row[:4] == ["rank 0, step 0", "90.00 ms", "30.00 ms", "60.00 ms"]
    assert "Each step" not in render(builders.shown(), "text", width=140)


def test_operators_are_summed_over_shapes_and_the_others_together():
    ops = builders.shown().ops.head(1)
    rows = [("aten::a", "[[1]]", 6), ("aten::b", "[[1]]", 4), ("aten::b", "[[2]]", 4), ("aten::c", "", 2)]
    made = [ops.assign(name=name, input_shapes=shapes, device_self_ns=ms * MS) for name, shapes, ms in rows]
    text = render(builders.shown(ops=pd.concat(made)), "text", limit=1, width=100)
    # 4 + 4 and 6 + 2 of 16 ms in four steps
    assert "Largest operators, per step, median of 2 ranks" in text
    assert cells_of(text, "aten::b")[1:3] == ["2.00 ms", "50.0 %"]
    assert cells_of(text, "2 other operators")[1:3] == ["2.00 ms", "50.0 %"]


def test_without_known_operators_kernels_take_their_place():
    whole = builders.shown()
    kernel = whole.kernels.iloc[[0, 0, 0]].reset_index(drop=True)
    kernel["canonical_name"] = ["matmul", "hcom_allReduce", "hcom_allReduce"]
    kernel["total_ns"] = [5 * MS, 4 * MS, 3 * MS]  # 4 + 3 > 5
    ops = whole.ops.tail(1).assign(name=UNLINKED_OP)
    text = render(builders.shown(ops=ops, kernels=kernel), "text", width=100)
    assert cells_of(text, "hcom_allReduce")[1] == "1.75 ms" and "unlinked" not in text


def test_a_folder_of_many_files_is_named_once():
    sources = builders.nullable([{"rank": at, "path": f"job/r{at}.json"} for at in range(4)])
    run = builders.shown().run | {"workload": "files", "run_id": 0, "reference": "job/", "state": "active"}
    named = render(builders.shown(sources=sources, run=run), "text", width=100).splitlines()[0]
    assert named == "job/: NVIDIA H100, batch=64, 2 ranks, 4 steps"
    unnamed = render(builders.shown(sources=sources, run=run | {"reference": ""}), "text", width=100)
    assert unnamed.startswith("job/r0.json, job/r1.json and 2 more: NVIDIA H100, ")


def test_chosen_steps_stand_over_the_largest_operators():
    chosen = builders.shown(options=ShowOptions(steps=(3, 4)))
    assert "Largest operators, per step, steps 3,4, median of 2 ranks" in render(chosen, "text", width=100)


def test_what_is_not_stated_has_no_row_and_no_dash():
    whole = builders.shown()
    bare = whole.overall.assign(e2e_ns=pd.NA, duration_ns=pd.NA)
    run = whole.run | {"step_ns": None, "e2e_ns": None, "per_step": {}}
    text = render(builders.shown(overall=bare, run=run), "text", only=["overall"], width=100)
    assert text.splitlines()[1] == "The source states neither a step time nor how long the capture is"
    assert not any(f"\n  {word}  " in text.partition("Steps (")[0] for word in ("E2E", "duration"))


def test_ranks_of_one_reason_are_one_line_and_no_note():
    why = {"quality": "partial", "quality_reason": "the file ends at 40 ms"}
    ranks = builders.nullable([builders.breakdown(rank, **why) for rank in range(3)])
    text = render(builders.shown(overall=ranks, notes=("partial: the file ends at 40 ms",)), "text", width=100)
    assert "\nranks 0-2 are partial: the file ends at 40 ms\n" in text and text.count("ends at") == 1


def test_no_operator_has_time_is_said():
    ops = builders.shown().ops.assign(device_self_ns=0, name="aten::empty")
    text = render(builders.shown(ops=ops, kernels=builders.shown().kernels.head(0)), "text")
    assert "no operator has device self time" in text and "aten::empty" not in text


def test_a_run_without_details_says_who_deleted_them():
    text = render(
        builders.shown(ops=builders.shown().ops.head(0), kernels=builders.shown().kernels.head(0), is_pruned=True),
        "text",
    )
    assert "the details of the run were deleted (tracker prune)" in text


def test_next_commands_name_the_path_and_the_options():
    run = builders.shown().run | {"reference": "my run.json"}
    lines = render(builders.shown(run=run), "text").splitlines()
    assert lines[-5:] == [
        "Next:",
        "  tracker show 'my run.json' --details",
        "  tracker show 'my run.json' --by module",
        "  tracker show 'my run.json' -o run41.xlsx",
        "  tracker advise 'my run.json'",
    ]
    shown = builders.shown(options=ShowOptions(op="aten::mm", ranks=(0, 2), minimum_ns=5_000))
    following = render(shown, "text").partition("\nNext:\n")[2].splitlines()
    assert following[0] == "  tracker show run:41 --rank 0 --rank 2 --op aten::mm --min-us 5 --details"


def test_many_ranks_are_summed_up_with_the_slowest_named():
    ranks = builders.nullable([builders.breakdown(rank, e2e_ns=(80 + rank) * MS) for rank in range(9)])
    text = render(builders.shown(overall=ranks), "text", only=["overall"], width=100)
    assert cells_of(text, "E2E")[:6] == ["E2E", "40.50 ms", "80.00 ms", "84.00 ms", "88.00 ms", "rank 8"]


def test_the_overall_table_has_a_step_beside_the_capture():
    """The 4 steps of 2 ranks took 90 ms each; with one step there is no other number than that of the capture."""
    text = render(builders.shown(), "text", only=["overall"], width=100)
    assert "Overall, per step and over the whole capture (device timeline, 2 ranks)" in text
    assert cells_of(text, "idle")[:4] == ["idle", "18.00 ms", "8.00 ms", "8.00 ms"]
    one = render(builders.shown(steps=builders.shown().steps.head(1)), "text", only=["overall"], width=100)
    assert "Overall, whole capture (" in one and cells_of(one, "idle")[:3] == ["idle", "8.00 ms", "8.00 ms"]


def test_a_run_without_a_device_shows_host_times_only():
    host = builders.nullable([builders.breakdown(0, timeline="host", kernel_count=0, kernel_total_ns=0)])
    text = render(builders.shown(overall=host), "text", width=140, details=True)
    assert "device self" not in text.partition("Modules")[0] and "kernel time, summed" not in text
    assert cells_of(text, "aten::mm")[1] == "250.00 us", "1.00 ms of four steps"


def test_grain_columns_stand_first():
    ops = builders.shown().ops
    ops.insert(0, "rank", [1, 0])
    ops.insert(1, "step", [7, 7])
    text = render(builders.shown(ops=ops), "text", only=["operator"], width=140)
    assert line_of(text, "rank 1, step 7").startswith("rank 1, step 7  aten::mm")


def test_ops_are_summed_over_modules_types_and_phases():
    first = builders.shown().ops.iloc[[0]]
    ops = pd.concat([first.assign(module=f"Block_{i}", phase="forward", input_types=str(i)) for i in range(3)])
    text = render(builders.shown(ops=ops), "text", only=["operator"], width=140)
    assert len([line for line in text.splitlines() if line.strip().startswith("aten::mm")]) == 1
    assert f"{3 * int(first['calls'].iloc[0]):,}" in line_of(text, "aten::mm")


def test_ops_of_unknown_self_time_are_ordered_by_their_total():
    ops = builders.shown().ops.head(1)
    totals = {"small": 5, "large": 900, "middle": 70}
    rows = [
        ops.assign(name=name, device_self_ns=pd.array([None], dtype="Int64"), device_total_ns=total)
        for name, total in totals.items()
    ]
    text = render(builders.shown(ops=pd.concat(rows)), "text", only=["operator"])
    assert text.index("large") < text.index("middle") < text.index("small")


def test_operators_show_average_and_share_at_80_columns():
    """Two ops with 6 and 2 ms in 3 and 4 calls: 75 % and 25 %, 2 and 0.5 ms a call."""
    ops = builders.shown().ops.iloc[[0, 0]].reset_index(drop=True)
    ops = ops.assign(name=["aten::mm", "aten::add"], input_shapes="", calls=[3, 4])
    for column in ("device_self_ns", "device_total_ns"):
        ops[column] = [6 * MS, 2 * MS]
    text = render(builders.shown(ops=ops), "text", only=["operator"], width=80)
    assert cells_of(text, "aten::mm")[-2:] == ["75.0 %", "2.00 ms"]
    assert cells_of(text, "aten::add")[-2] == "25.0 %"


def test_metrics_and_counters_of_nothing_but_zeros_come_last():
    numbers = {"fixpipe": 0.0, "mac": 2.5, "mte": 0.0, "scalar": 1.5}
    metrics = [
        {**METRIC, "metric": name, "kind": "ratio", "mean": value, "min": value, "max": value}
        for name, value in numbers.items()
    ]
    counters = [
        {"source": "acc_pmu", "name": "read", "attribute": name, "calls": 1, "mean": value, "min": value, "max": value}
        for name, value in numbers.items()
    ]
    shown = builders.shown(kernel_metrics=builders.nullable(metrics), counters=builders.nullable(counters))
    for section, title in (("metric", "Kernel metrics\n"), ("counter", "All counters")):
        text = render(shown, "text", only=[section], width=200)
        words = text[text.index(title) :].split()
        places = [words.index(name) for name in ("mac", "scalar", "fixpipe", "mte")]
        assert places == sorted(places)


def test_counters_of_several_names_have_no_common_mean():
    """The mean of 8 ms in operators and 2 ms in data loading is the time of nothing."""
    one = {"source": "overview", "attribute": "time (ms)", "calls": 1}
    counters = [{**one, "name": name, "mean": ms, "min": ms, "max": ms} for name, ms in (("op", 8.0), ("load", 2.0))]
    counters.append({**one, "attribute": "share", "name": "op", "mean": 0.5, "min": 0.5, "max": 0.5})
    text = render(builders.shown(counters=builders.nullable(counters)), "text", only=["counter"], width=120)
    rows = [line.split() for line in text.partition("All counters")[0].splitlines() if line.startswith("  overview")]
    assert rows == [
        ["overview", "time", "(ms)", "2", "-", "2", "8", "op"],
        ["overview", "share", "1", "0.5", "0.5", "0.5", "op"],
    ]


def test_kernel_types_have_calls_time_and_share():
    text = render(builders.shown(), "text", only=["kernel_type"], width=140)
    # 6 of 6 + 2 ms; four calls of 1 to 2 ms
    assert cells_of(text, "Cast")[-6:] == ["4", "6.00 ms", "75.0 %", "1.50 ms", "1.00 ms", "2.00 ms"]


def test_page_of_a_run_draws_its_steps_beside_their_table():
    """Two ranks with two steps: a series per rank, and a line per rank and step."""
    page = render(builders.shown(), "html")
    part = page.partition("<h2>Each step</h2>")[2].partition("</details>")[0]
    assert re.findall(r"</svg>(rank \d) <b>", part) == ["rank 0", "rank 1"]
    assert re.findall(r"<tr><td[^>]*>(rank \d, step \d)<", part) == [
        "rank 0, step 0", "rank 0, step 1", "rank 1, step 0", "rank 1, step 1"
    ]  # fmt: skip
    assert "Each step" not in render(builders.shown(), "text", details=True)


def test_page_of_a_run_has_the_numbers_of_its_memory_curve():
    curve = [
        {"rank": 0, "component": "cpu", "time_ns": at * 10 * MS, "allocated_bytes": size << 20, "reserved_bytes": None}
        for at, size in enumerate((1, 5, 2))
    ]
    page = render(builders.shown(memory_curve=builders.nullable(curve)), "html")
    assert "rank 0, cpu: at most 5.00 MiB after 0.01 s" in page
    section = page.partition("Memory over time, rank 0, cpu")[2]
    assert "<figure" in section.partition("</details>")[0]
    rows = re.findall(r"<tr><td>([^<]+)<td>([^<]+)(?=<)", section)
    assert rows[:3] == [("0.00 ms", "1.00 MiB"), ("10.00 ms", "5.00 MiB"), ("20.00 ms", "2.00 MiB")]
