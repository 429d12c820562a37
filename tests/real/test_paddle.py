"""Every shared Paddle file, against a plain reading of it with json and regular expressions."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from tests.real import data
from tracker import readers, timeline
from tracker.compare import diff
from tracker.errors import UsageError
from tracker.intake import ingest
from tracker.profile import MISSING, Capture, Profile, Rows
from tracker.readers import Found
from tracker.results import DiffOptions
from tracker.store import open_store, queries

CAPTURES = [f"{variant}_run{run}" for variant in ("baseline", "slow_loader", "python_gelu") for run in (1, 2)]
TOOK = re.compile(r"\[[\d.]+ \w+\]$")
SPREAD = re.compile(
    r"^(?P<indent> *)(?P<name>\S.*?) {2,}(?P<calls>\d+|-) {2,}(?P<host>[^ ].*?)(?: {2,}(?P<device>\S.*?))? *$"
)
# a number that a log says, told apart from names of hosts
INTERVAL = re.compile(r"(?:batch_cost|elapse|speed|ips) ?: *\d+\.\d+(?!\.)")


def logs() -> list[str]:
    folder = data.folder()
    return [str(path.relative_to(folder)) for path in sorted(folder.glob("paddle/logs/*/logs/**/*")) if path.is_file()]


def summaries() -> list[str]:
    folder = data.folder()
    return [str(path.relative_to(folder)) for path in sorted(folder.glob("paddle/summary_text/*/*.txt"))]


@lru_cache(maxsize=4)
def profile(path: Path) -> Profile:
    return readers.read(Found(path, readers.claim(path)))


def capture(path: Path) -> Capture:
    (one,) = profile(path).captures
    return one


def rows_of(path: Path) -> Rows:
    rows = timeline.build(capture(path)).rows
    assert rows is not None
    return rows


def ops(rows: Rows) -> pd.DataFrame:
    """The op table with names, summed over steps and all else but name and phase; MISSING is NA."""
    keys = pd.DataFrame(rows.tables["op_key"])
    table = pd.DataFrame(rows.tables["op"]).merge(keys, left_on="op_key", right_index=True)
    numbers = ["calls", "host_total_ns", "host_self_ns"]
    table[numbers] = table[numbers].mask(table[numbers] == MISSING).astype("float64")
    return table.groupby("name")[numbers].sum(min_count=1)


def trace_in(name: str) -> Path:
    (path,) = data.path(f"paddle/cpu_captures/{name}").glob("*.paddle_trace.json")
    return path


def test_the_shared_files_are_there():
    data.path("paddle")
    assert (len(logs()), len(summaries())) == (90, 22)


# -- traces


@pytest.mark.parametrize("name", CAPTURES)
def test_calls_and_times_of_a_trace_are_those_of_plain_json(name):
    path = trace_in(name)
    calls: Counter[str] = Counter()
    total_ns: Counter[str] = Counter()
    for event in json.loads(path.read_text())["traceEvents"]:
        if event.get("ph") == "X" and event["cat"] != "ProfileStep":
            plain = TOOK.sub("", event["name"])
            calls[plain] += 1
            total_ns[plain] += round(event["dur"] * 1000)
    found = ops(rows_of(path)).drop(index=["(no op)", "(unlinked)"], errors="ignore")
    assert found["calls"].to_dict() == dict(calls)
    assert found["host_total_ns"].to_dict() == dict(total_ns)


@pytest.mark.parametrize("name", CAPTURES)
def test_a_trace_has_five_steps_of_the_length_it_says(name):
    path = trace_in(name)
    markers = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("cat") == "ProfileStep"]
    expected = {int(re.search(r"#(\d+)", e["name"])[1]): round(e["dur"] * 1000) for e in markers}
    rows = rows_of(path)
    assert {row.step: row.breakdown.duration_ns for row in rows.steps} == expected
    assert len(rows.steps) == 5
    assert rows.overall.timeline == "host"


@pytest.mark.parametrize("name", CAPTURES)
def test_own_times_of_the_main_thread_add_up_to_its_outermost_events(name):
    rows = rows_of(trace_in(name))
    roots = pd.DataFrame(rows.tables["op_tree"])
    outermost = roots[(roots["parent"] == -1) & (roots["host_total_ns"] != MISSING)]["host_total_ns"].sum()
    assert ops(rows)["host_self_ns"].sum() == outermost


@pytest.mark.parametrize("name", CAPTURES)
def test_allocations_of_a_trace_are_all_there_and_belong_to_the_kernel_launches(name):
    path = trace_in(name)
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("cat") == "Allocate"]
    rows = rows_of(path)
    assert rows.tables["memory"]["calls"].sum() == len(events)
    assert rows.tables["memory"]["bytes"].sum() == sum(e["args"]["increase_bytes"] for e in events)
    assert rows.overall.peak_allocated_bytes == max(
        e["args"]["current_allocated"]
        for e in json.loads(path.read_text())["traceEvents"]
        if e.get("name") == "[memory]"
    )


# -- summaries


def printed(path: Path, title: str) -> list[re.Match[str]]:
    """The rows of a section, as they are printed."""
    section = re.search(rf"-{{3,}}{title} Summary-{{3,}}\n(?P<body>.*?)(?:Note|\n\n|\Z)", path.read_text(), re.DOTALL)
    return [match for line in section["body"].splitlines() if "/" in line and (match := SPREAD.match(line))][1:]


@pytest.mark.parametrize("name", CAPTURES)
def test_calls_and_times_of_a_summary_are_those_it_prints(name):
    path = data.path(f"paddle/cpu_captures/{name}/summary.txt")
    found = ops(rows_of(path))
    expected: dict[str, list[float]] = {}
    for match in printed(path, "Operator"):
        row = expected.setdefault(match["name"], [0, 0])
        row[0] += int(match["calls"])
        row[1] += round(float(match["host"].split(" / ")[0]) * 1_000_000)
    assert len(expected) > 80
    assert {op: found.loc[op, ["calls", "host_total_ns"]].tolist() for op in expected} == expected


@pytest.mark.parametrize("name", CAPTURES)
def test_trace_and_summary_of_one_capture_agree(name):
    trace, summary = rows_of(trace_in(name)), rows_of(data.path(f"paddle/cpu_captures/{name}/summary.txt"))
    of_trace, of_summary = ops(trace), ops(summary)
    outermost = [match["name"] for match in printed(data.path(f"paddle/cpu_captures/{name}/summary.txt"), "Operator")
                 if not match["indent"]]  # fmt: skip
    for op in outermost:
        assert of_summary.loc[op, "calls"] == of_trace.loc[op, "calls"], op
        # printed in ms with two decimals
        assert of_summary.loc[op, "host_total_ns"] == pytest.approx(of_trace.loc[op, "host_total_ns"], abs=5_001), op
    assert sum(row.steps for row in summary.steps) == len(trace.steps) == 5
    mean_ns = sum(row.breakdown.duration_ns or 0 for row in trace.steps) / 5
    assert summary.steps[0].breakdown.duration_ns == pytest.approx(mean_ns, abs=1_001)
    assert summary.overall.data_loading_ns == pytest.approx(trace.overall.data_loading_ns, abs=5_001)


@pytest.mark.parametrize("name", CAPTURES)
def test_the_memory_of_a_summary_is_that_of_its_trace(name):
    """A summary counts to the innermost operator, which a trace keeps as the allocator beside the owner."""

    def sums(table: pd.DataFrame, column: str) -> dict[str, tuple[int, int]]:
        found = table.groupby(column)[["calls", "bytes"]].sum()
        return {op: (int(row.calls), int(row.bytes)) for op, row in found.iterrows() if op not in ("", "(no op)")}

    summary, trace = rows_of(data.path(f"paddle/cpu_captures/{name}/summary.txt")), rows_of(trace_in(name))
    keys = summary.tables["op_key"]["name"]
    of_summary = pd.DataFrame(summary.tables["memory"]).assign(name=lambda t: [keys[k] for k in t["op_key"]])
    assert sums(of_summary, "name") == sums(pd.DataFrame(trace.tables["memory_allocator"]), "allocator")


@pytest.mark.parametrize("name", summaries())
def test_every_piece_of_a_printed_summary_is_read(name, tmp_path):
    path = tmp_path / Path(name).name  # alone: pieces beside each other may be one summary
    path.symlink_to(data.path(name))
    claimed = readers.claim(path)
    assert claimed == ("training_log" if "PerfSummary" in name else "paddle_summary")
    rows = rows_of(path)
    if "KernelSummary" in name:
        printed_rows = [line for line in path.read_text().splitlines() if line.count(" / ") == 4][1:]
        # these tables are cut: what they list is theirs, the sum is that of which the first row is so many per cent
        keys, table = rows.tables["kernel_key"]["name"], rows.tables["kernel"]
        listed = [not keys[key].endswith("not listed)") for key in table["kernel_key"].tolist()]
        assert (sum(listed), len(listed)) == (len(printed_rows), len(printed_rows) + 1)
        assert table["total_ns"][listed].sum() == sum(
            round(float(re.search(r"([\d.]+) /", line)[1]) * 1_000_000) for line in printed_rows
        )
        first = float(re.search(r"([\d.]+) /", printed_rows[0])[1])
        percent = float(printed_rows[0].split()[-1])
        assert table["total_ns"].sum() / 1e6 == pytest.approx(first / percent * 100, rel=0.005 / percent * 2)
        assert all(rows.tables["kernel_key"]["canonical_name"])
    if "ModelSummary" in name or "OverviewSummary" in name:
        calls, total = re.search(r"ProfileStep +(\d+) +([\d.]+)", path.read_text()).groups()
        assert rows.steps[0].steps == int(calls)
        assert rows.overall.duration_ns == round(float(total) * 1_000_000)
        assert rows.overall.timeline == "device"
    if "OperatorSummary" in name:
        outer = [m for m in printed(path, "Operator") if not m["indent"]]
        found = ops(rows)
        for match in outer:
            assert found.loc[match["name"], "calls"] == int(match["calls"])


def test_the_fix_of_the_data_loader_shows_in_the_summaries_of_the_guide():
    folder = data.path("paddle/summary_text/docs_profiling_model_HEAD")
    (before,) = rows_of(folder / "02_ModelSummary.txt").steps
    assert (before.steps, before.breakdown.data_loading_ns) == (11, round(141_490_000 / 11))
    after = rows_of(folder / "03_PerfSummary.txt").overall
    assert after.data_loading_ns == 110_000


# -- logs


@pytest.mark.parametrize("name", logs())
def test_every_line_of_a_log_is_read(name):
    path = data.path(name)
    lines = [
        line
        for line in path.read_text(errors="replace").splitlines()
        if INTERVAL.search(line) and "END epoch" not in line and "step" in line
    ]
    one = capture(path)
    rows = one.rows
    assert rows is not None
    counters = rows.tables["counter"]
    left_out = [
        (calls, calls * mean * 1e6)
        for name, calls, mean in zip(counters["name"], counters["calls"], counters["mean"], strict=True)
        if name.startswith("left out")
    ]
    assert len(rows.steps) + sum(calls for calls, _ in left_out) == len(lines) > 0

    def sum_of(pattern: str) -> float:
        return sum(float(match[1]) for line in lines if (match := re.search(pattern, line)))

    took_ns = sum(row.breakdown.duration_ns or 0 for row in rows.steps) + sum(total for _, total in left_out)
    if "elapse" in lines[0] or "batch_cost" in lines[0]:
        assert took_ns == pytest.approx(sum_of(r"(?:batch_cost|elapse): ([\d.]+)") * 1e9, abs=1000)
    else:
        speeds = [float(re.search(r"speed: ([\d.]+)", line)[1]) for line in lines]
        assert took_ns == pytest.approx(sum(1e9 / speed for speed in speeds), abs=len(lines))
    loads = [row.breakdown.data_loading_ns for row in rows.steps if row.breakdown.data_loading_ns is not None]
    reader_s = [float(cost) for line in lines for cost in re.findall(r"reader_cost: ([\d.]+)", line)]
    assert set(loads) <= {round(cost * 1e9) for cost in reader_s}
    numbers = [int(re.search(r"step(?:_idx)?:? *(\d+)", line)[1]) for line in lines]
    skips = any(number not in (before + 1, 0) for before, number in pairwise(numbers))
    assert (rows.overall.duration_ns is None) == (skips or bool(left_out))
    rates = [row.breakdown.samples_per_second for row in rows.steps]
    printed_rates = [float(re.search(r"ips ?: ?([\d.]+)", line)[1]) for line in lines]
    assert set(rates) <= set(printed_rates)
    assert one.labels["version"] == path.name
    assert set(one.configuration) >= {"batch_size", "precision", "devices"}
    assert one.labels["workload"] in ("ResNet50", "bert-base-uncased")


COPIES = {
    "Bert/logs/A100_LOG/PaddleNLP_bert_base_seqlen128_bs96_fp16_DP_N1C8_log": "20230108_8707ba8bbf",
    "Bert/logs/A100_LOG/PaddleNLP_bert_base_seqlen128_bs96_fp32_DP_N1C8_log": "20230108_8707ba8bbf",
    "ResNet50V1.5/logs/paddle_gpu8_fp32_bs256.txt": "20221204_3b2ad7842f",
    "ResNet50V1.5/logs/paddle_gpu8_pure_fp16_bs256.txt": "20221204_3b2ad7842f",
}
COPIED_AS = "20230109_2bd187f74e"
"""Folder -> version whose log lies there under this version, too, equal to the ms but for lines of the launcher."""


@pytest.mark.parametrize("folder", COPIES)
def test_log_and_its_copy_are_not_taken_for_two_versions(folder):
    both = [data.path(f"paddle/logs/{folder}/{version}") for version in (COPIES[folder], COPIED_AS)]
    with open_store("sqlite://") as store, pytest.raises(UsageError, match="hold the same capture"):
        ingest(store, both)


@pytest.mark.slow
def test_all_logs_come_in_with_one_call_and_versions_stand_in_order_of_their_dates():
    """90 logs, of which four are copies of others. They were runs of a version of their own until copies were seen."""
    copies = {f"paddle/logs/{folder}/{COPIED_AS}" for folder in COPIES}
    distinct = [data.path(name) for name in logs() if name not in copies]
    with open_store("sqlite://") as store:
        results = ingest(store, distinct)
        assert len(results) == len({result.run_id for result in results}) == 86
        versions = queries.versions(store, "ResNet50").frame
        assert versions["version"].tolist() == sorted(versions["version"])
        assert len(versions) == 8
        runs = queries.runs(store).frame
        wanted = {"batch_size=256", "devices=8", "precision=fp32"}
        alike = runs["configuration"].map(lambda title: set(re.findall(r"\w+=\w+", title)) == wanted)
        one = runs[alike & (runs["device"] == "A100")]
        assert sorted(one["version"]) == ["20230129_8d0ca2f4eb", "20230808_69edec3bb7"]


@pytest.mark.parametrize("name", CAPTURES)
def test_what_the_timer_printed_is_read(name):
    path = data.path(f"paddle/cpu_captures/{name}/timer_only.txt")
    rows = capture(path).rows
    assert rows is not None
    printed_ips = [float(ips) for ips in re.findall(r"ips: ([\d.]+)", path.read_text())]
    # the first interval is warm-up
    assert [row.breakdown.samples_per_second for row in rows.steps] == printed_ips[1:]
    steps = [row.breakdown for row in rows.steps]
    ratio = sum(step.data_loading_ns or 0 for step in steps) / sum(step.duration_ns or 0 for step in steps)
    assert (ratio > 0.3) == name.startswith("slow_loader")


# -- as a user compares them


@pytest.mark.parametrize(("source", "pattern"), [("trace", "*.json"), ("summary", "summary.txt")])
def test_a_gelu_in_python_shows_as_added_ops(source, pattern):
    with open_store("sqlite://") as store:
        for name in CAPTURES:
            (path,) = data.path(f"paddle/cpu_captures/{name}").glob(pattern)
            ingest(store, [path], version=name.rpartition("_")[0], workload=source)
        result = diff(store, "baseline", "python_gelu")
    found = result.ops.set_index("name")
    assert result.baseline.steps == 5
    # per step: x * 0.5 * (1 + tanh(0.7978 * (x + 0.044715 * x ** 3))) instead of one gelu
    for op in ("tanh dygraph", "pow dygraph"):
        assert found.loc[op, ["baseline_calls", "candidate_calls"]].isna().tolist() == [True, False], op
        assert found.loc[op, "candidate_calls"] == 1
    assert found.loc["gelu dygraph", "baseline_calls"] == 1
    assert pd.isna(found.loc["gelu dygraph", "candidate_calls"])
    assert found.loc["adamw_ dygraph", "candidate_calls"] == 10


@pytest.mark.parametrize("name", ["01_PerfSummary", "03_OverviewSummary", "05_OperatorSummary", "06_KernelSummary"])
def test_a_summary_has_the_same_numbers_whether_its_one_row_of_steps_is_chosen_or_not(name):
    path = str(data.path(f"paddle/summary_text/FleetX_gpt_single_profiler_330db42e/{name}.txt"))
    whole = diff(None, path, path)
    chosen = diff(None, path, path, options=DiffOptions(baseline_steps=(0,), candidate_steps=(0,)))
    for table in ("ops", "kernels", "kernel_types", "communication", "memory", "modules", "api"):
        pd.testing.assert_frame_equal(getattr(whole, table), getattr(chosen, table))
    numbers, others = (result.overall.set_index("metric")["baseline_value"] for result in (whole, chosen))
    assert numbers[others.index].to_dict() == pytest.approx(others.to_dict(), nan_ok=True)
    assert chosen.baseline.steps == whole.baseline.steps
