"""Real exports and text of Nsight Systems: against plain SQL to the ns, and as a user meets them."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from functools import cache

import numpy as np
import pytest

from tests.real import data
from tracker.profile import CPU, MISSING, Device, DeviceKind, LaunchLevel
from tracker.readers import find, nsys_sqlite, nsys_stats, read
from tracker.timeline import build, rows_of

A100 = (
    "result.39d90997",
    "result_2_7B.509f5606",
    "result_2_7B_clean.954d9fe8",
    "result_2_7B_compile_ro.1c3e0073",
    "result_2_7B_nvtx.6a707bc0",
)
PAIR = ("mfu_2gpu_before", "mfu_2gpu_after")
WITH_KERNELS = [f"a100_transformer/{name}" for name in A100] + [f"wan_2gpu_before_after/{name}" for name in PAIR]
with_kernels = pytest.mark.parametrize("name", WITH_KERNELS)
TABLES = {DeviceKind.KERNEL: "KERNEL", DeviceKind.COPY: "MEMCPY", DeviceKind.MEMSET: "MEMSET"}


def path_of(name):
    return data.path(f"nsys/{name}.sqlite")


@cache
def profile(name):
    return nsys_sqlite.read(path_of(name))


@cache
def rows(name):
    return [rows_of(capture.events) for capture in profile(name).captures]


def ask(name, question, *values):
    with closing(sqlite3.connect(f"{path_of(name).as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        return db.execute(question, values).fetchall()


def has(name, table):
    return bool(ask(name, "SELECT 1 FROM sqlite_master WHERE name = ?", table))


@with_kernels
def test_work_of_each_device_equals_plain_sql_to_the_ns(name):
    for capture in profile(name).captures:
        device = capture.events.device
        for kind, word in TABLES.items():
            mine = device.kind == kind
            graphs = mine & np.isin(device.name, codes(capture.events, "CUDA graph"))
            mine &= ~graphs
            found = (int(mine.sum()), int((device.end_ns[mine] - device.start_ns[mine]).sum()))
            table = f"CUPTI_ACTIVITY_KIND_{word}"
            question = f"SELECT COUNT(*), COALESCE(SUM(end - start), 0) FROM {table} WHERE deviceId = ?"
            assert found == (ask(name, question, capture.device_ordinal)[0] if has(name, table) else (0, 0))


def codes(events, start):
    return [code for code in np.unique(events.device.name).tolist() if events.strings[code].startswith(start)]


WARNED = {
    "a100_transformer/result_2_7B_clean.954d9fe8": (2456597, "36,642"),
    "a100_transformer/result_2_7B_compile_ro.1c3e0073": (2460631, "92"),
}
"""Reports that warn of themselves, though nothing of them is missing: process and count of events."""


@pytest.mark.parametrize("name", [*WITH_KERNELS, "no_kernel_table/nvtx_only", "no_kernel_table/runtime_only"])
def test_whole_captures_are_judged_and_two_warn_of_themselves(name):
    assert [build(capture).quality_reason for capture in profile(name).captures] == [""] * len(profile(name).captures)
    said = [text for text in profile(name).warnings if text.startswith("process ")]
    expected = []
    if name in WARNED:
        process, count = WARNED[name]
        words = "the report says that not all CUDA events might have been collected"
        expected = [f"process {process}: {words}, and counts {count} events, which are in the export"]
    assert said == expected


@with_kernels
def test_events_that_a_report_counts_are_all_in_the_export(name):
    for capture in profile(name).captures:
        extras = capture.events.extras
        assert extras.collected_events in (MISSING, extras.exported_events)
    assert (profile(name).captures[0].events.extras.collected_events == MISSING) == ("wan" in name)


def test_the_range_around_a_benchmark_is_no_step():
    """Its loop of 2,523.6 ms holds three iterations of 841 ms, as those of the same program without ranges."""
    (marked,) = rows("a100_transformer/result_2_7B_nvtx.6a707bc0")
    (clean,) = rows("a100_transformer/result_2_7B_clean.954d9fe8")
    median_ms = [np.median([step.breakdown.duration_ns for step in table.steps]) / 1e6 for table in (marked, clean)]
    assert [len(marked.steps), len(clean.steps)] == [4, 10]
    assert median_ms == pytest.approx([841.2, 841.0], abs=0.1)


@with_kernels
def test_rows_hold_all_kernel_time(name):
    for capture, table in zip(profile(name).captures, rows(name), strict=True):
        device = capture.events.device
        assert int(table.tables["kernel"]["total_ns"].sum()) == int((device.end_ns - device.start_ns).sum())
        overall = table.overall
        assert overall.e2e_ns == (
            overall.compute_ns + overall.exposed_communication_ns + overall.exposed_copy_ns + overall.idle_ns
        )


@pytest.mark.parametrize("name", [*WITH_KERNELS, "no_kernel_table/runtime_only"])
def test_calls_of_the_operating_system_equal_plain_sql(name):
    processes = sorted(
        {int(thread) >> 24 for (thread,) in ask(name, "SELECT DISTINCT globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME")}
    )
    expected = (
        []
        if not has(name, "OSRT_API")
        else ask(
            name,
            "SELECT s.value, COUNT(*), SUM(o.end - o.start) FROM OSRT_API AS o JOIN StringIds AS s ON s.id = o.nameId"
            f" WHERE o.globalTid >> 24 IN ({','.join('?' * len(processes))}) GROUP BY s.value ORDER BY s.value",
            *processes,
        )
    )
    found = {}
    for of_capture in rows(name):
        table = of_capture.tables["api"]
        for level, call, calls, total in zip(
            table["level"], table["name"], table["calls"], table["total_ns"], strict=True
        ):
            if level == "os":
                before = found.get(call, (0, 0))
                found[call] = (before[0] + int(calls), before[1] + int(total))
    assert [(call, *sums) for call, sums in sorted(found.items())] == expected
    assert bool(found) == has(name, "OSRT_API")


@with_kernels
def test_kernels_are_linked_to_their_launches(name):
    for table in rows(name):
        share = table.overall.unlinked_kernel_count / table.overall.kernel_count
        # a window was cut out of the pair: the launches of its first kernels lie before it
        assert share <= (0.05 if "wan" in name else 0)


@pytest.mark.parametrize("name", A100)
def test_device_is_named_as_other_profilers_name_it(name):
    (capture,) = profile(f"a100_transformer/{name}").captures
    assert capture.device == Device("NVIDIA", "A100-SXM4-80GB")
    assert capture.facts["nsys_version"] == "2024.6.2.225"
    assert capture.started_at_ns // 10**9 // 86400 == 20428  # 2025-12-06


@with_kernels
def test_no_secret_of_the_environment_is_kept(name):
    secrets = {value for (value,) in ask(name, "SELECT value FROM META_DATA_CAPTURE WHERE name LIKE '%ENVIRONMENT%'")}
    assert secrets
    kept = " ".join(f"{c.facts}{c.settings}{c.host}" for c in profile(name).captures)
    assert not [text for text in secrets if len(text) > 12 and text in kept]
    assert "TOKEN" not in kept


def test_modules_are_the_paths_of_the_ranges():
    (table,) = rows("a100_transformer/result_2_7B_nvtx.6a707bc0")
    keys, ops = table.tables["op_key"], table.tables["op"]
    module = np.array(keys["module"], dtype=object)[ops["op_key"]]
    calls = Counter()
    for path, count in zip(module.tolist(), ops["calls"].tolist(), strict=True):
        calls[path] += count
    inside = "scaled dot product attention"
    assert calls[f"benchmark_loop/{inside}/final matmul"] == 96
    assert calls[f"warmup/{inside}/final matmul"] == 32
    assert set(keys["phase"]) == {""}, "no range of this capture names a phase"


def test_graphs_traced_as_a_whole_are_nearly_all_of_the_time():
    (table,) = rows("a100_transformer/result_2_7B_compile_ro.1c3e0073")
    assert table.overall.kernel_count == 30 + 10
    assert table.overall.compute_ns / table.overall.e2e_ns > 0.99
    assert any("10 runs of CUDA graphs" in text for text in profile("a100_transformer/" + A100[3]).warnings)


@pytest.mark.parametrize("name", PAIR)
def test_two_processes_with_a_device_each_are_two_ranks(name):
    captures = profile(f"wan_2gpu_before_after/{name}").captures
    assert [capture.device_ordinal for capture in captures] == [0, 1]
    assert all(capture.events.host_is_primary for capture in captures)
    for table in rows(f"wan_2gpu_before_after/{name}"):
        kinds = dict(zip(table.tables["communication"]["kind"], table.tables["communication"]["calls"], strict=True))
        assert kinds["all_to_all"] >= 30


def test_operators_of_pytorch_in_ranges_are_operators():
    (table, _) = rows("wan_2gpu_before_after/mfu_2gpu_after")
    keys = table.tables["op_key"]
    assert {"aten::addmm", "flash_attn::_flash_attn_forward", "ncclGroupEnd"} <= set(keys["name"])
    assert not [name for name in keys["name"] if "op_id" in name]
    assert set(keys["module"]) == {""}


def test_average_of_the_attention_kernel_before_and_after_equals_plain_sql():
    """Windows of equal length hold more or fewer steps: averages can be compared, totals cannot."""
    question = (
        "SELECT COUNT(*), SUM(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k"
        " JOIN StringIds AS s ON s.id = k.demangledName WHERE s.value LIKE '%flash_fwd_kernel%'"
    )
    averages = []
    for name in PAIR:
        calls = total = 0
        for table in rows(f"wan_2gpu_before_after/{name}"):
            names = np.array(table.tables["kernel_key"]["name"], dtype=object)[table.tables["kernel"]["kernel_key"]]
            mine = np.array(["flash_fwd_kernel" in text for text in names])
            calls += int(table.tables["kernel"]["calls"][mine].sum())
            total += int(table.tables["kernel"]["total_ns"][mine].sum())
        assert (calls, total) == ask(f"wan_2gpu_before_after/{name}", question)[0]
        averages.append(total / calls)
    assert averages[1] / averages[0] - 1 == pytest.approx(0.0024, abs=0.01)


def test_capture_without_kernels_says_what_is_missing():
    found = profile("no_kernel_table/nvtx_only")
    (capture,) = found.captures
    assert capture.device == CPU
    assert len(capture.events.ops) == 576
    assert [text.partition(":")[0] for text in found.warnings[:2]] == [
        "the export has no table CUPTI_ACTIVITY_KIND_KERNEL",
        "the export has no table CUPTI_ACTIVITY_KIND_RUNTIME",
    ]
    (runtime,) = profile("no_kernel_table/runtime_only").captures
    assert runtime.device == Device("NVIDIA", "GeForce RTX 4060")
    cuda = ~np.isin(runtime.events.launches.level, (LaunchLevel.OS, LaunchLevel.PROFILER))
    assert (cuda.sum(), len(runtime.events.device)) == (23, 1)


def test_every_file_of_the_folder_is_claimed_and_left_as_it_was():
    folder = data.path("nsys")
    before = sorted(path.name for path in folder.rglob("*"))
    found = find(folder)
    assert {item.format for item in found} == {"nsys_sqlite", "nsys_stats"}
    assert len(found) == 10
    for item in found:
        assert read(item).captures
    assert sorted(path.name for path in folder.rglob("*")) == before


def test_text_with_skipped_reports_gives_what_it_has():
    found = nsys_stats.read(data.path("nsys/stats_text/summary.txt"))
    (capture,) = found.captures
    table = build(capture).rows
    assert len(table.tables["kernel"]["calls"]) == 0
    api = dict(zip(table.tables["api"]["name"], table.tables["api"]["total_ns"].tolist(), strict=True))
    assert api["cudaLaunchKernel"] == 810104412
    assert table.overall.kernel_total_ns is None
    assert "the text has no kernels, no copies (nsys: no CUDA kernel data, no GPU memory data)" in found.warnings
    assert any(text.startswith("17032 launches have no kernel") for text in found.warnings)
