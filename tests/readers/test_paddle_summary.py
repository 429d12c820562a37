"""The reader of the text of `Profiler.summary()`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tracker import readers, timeline
from tracker.compare import show
from tracker.errors import SourceError
from tracker.profile import CPU, MISSING, UNKNOWN_DEVICE, Capture, Profile, Rows
from tracker.readers import ReadOptions, paddle_summary
from tracker.reports import render

HEADER = "Name   Calls  CPU Total / Avg / Max / Min / Ratio(%)  GPU Total / Avg / Max / Min / Ratio(%)"
RULE = "-----  -----  --------------------------------------  --------------------------------------"


def section(title: str, *rows: str, unit: str = "ms", header: str = HEADER, end: bool = True) -> str:
    lines = [f"-----{title} Summary-----", f"Time unit: {unit}", RULE, header, RULE, *rows]
    return "\n".join([*lines, *([RULE] if end else []), "", ""])


MODEL = section(
    "Model",
    "ProfileStep     4   40.00 / 10.00 / 12.00 / 9.00 / 100.00  0.00 / 0.00 / 0.00 / 0.00 / 0.00",
    "  Dataloader    4   2.00 / 0.50 / 0.60 / 0.40 / 5.00       0.00 / 0.00 / 0.00 / 0.00 / 0.00",
    "  Forward       8   20.00 / 2.50 / 3.00 / 2.00 / 50.00     0.00 / 0.00 / 0.00 / 0.00 / 0.00",
    "  Others        -   18.00 / - / - / - / 45.00              0.00 / - / - / - / 0.00",
)
OPERATORS = section(
    "Operator",
    "-----Thread: All threads merged-----",
    "relu dygraph           8   16.00 / 2.00 / 3.00 / 1.00 / 80.00  0.00 / 0.00 / 0.00 / 0.00 / 0.00",
    "  relu infer_meta      8   1.00 / 0.12 / 0.20 / 0.10 / 6.25    0.00 / 0.00 / 0.00 / 0.00 / 0.00",
    "  relu kernel launch   8   12.00 / 1.50 / 2.00 / 0.90 / 75.00  0.00 / 0.00 / 0.00 / 0.00 / 0.00",
)
OVERVIEW = """-----Overview Summary-----
Time unit: s
----------  -----  --------  ---------
Event Type  Calls  CPU Time  Ratio (%)
----------  -----  --------  ---------
ProfileStep  4      0.04      100.00
  Operator   8      0.016     40.00
----------  -----  --------  ---------
             Calls  GPU Time  Ratio (%)
----------  -----  --------  ---------
----------  -----  --------  ---------
"""
DEVICES = """-----Device Summary-----
------------  ---------------
Device        Utilization (%)
------------  ---------------
CPU(Process)  99.50
CPU(System)   12.00
------------  ---------------
"""


def profile(folder: Path, *sections: str, **options: Any) -> Profile:
    path = folder / "summary.txt"
    path.write_text("".join(sections))
    return paddle_summary.read(path, ReadOptions(**options))


def built(folder: Path, *sections: str) -> tuple[Capture, Rows]:
    (capture,) = profile(folder, *sections).captures
    rows = timeline.build(capture).rows
    assert rows is not None
    return capture, rows


def ops(rows: Rows) -> pd.DataFrame:
    keys = pd.DataFrame(rows.tables["op_key"])
    table = pd.DataFrame(rows.tables["op"]).merge(keys, left_on="op_key", right_index=True).set_index("name")
    return table.mask(table == MISSING)


def test_sums_over_four_steps_are_one_row_that_stands_for_four(tmp_path: Path):
    capture, rows = built(tmp_path, MODEL, OPERATORS)
    (one,) = rows.steps
    assert (one.step, one.steps) == (0, 4)
    assert rows.overall.duration_ns == 40_000_000
    assert one.breakdown.duration_ns == 10_000_000
    assert (rows.overall.data_loading_ns, one.breakdown.data_loading_ns) == (2_000_000, 500_000)
    assert (capture.device, rows.overall.timeline) == (CPU, "host")


def test_indented_rows_are_ops_of_their_own_inside_the_op_above(tmp_path: Path):
    _, rows = built(tmp_path, MODEL, OPERATORS)
    found = ops(rows).loc[["relu dygraph", "relu infer_meta", "relu kernel launch"]]
    assert found["calls"].tolist() == [8, 8, 8]
    assert found["host_total_ns"].tolist() == [16_000_000, 1_000_000, 12_000_000]
    assert found["host_self_ns"].tolist() == [3_000_000, 1_000_000, 12_000_000]
    assert found[["min_ns", "max_ns"]].values.tolist()[0] == [1_000_000, 3_000_000]
    assert rows.tables["op_tree"]["parent"].tolist() == [-1, 0, 0]


def test_phases_have_a_total_and_no_own_time(tmp_path: Path):
    _, rows = built(tmp_path, MODEL, OPERATORS)
    phases = ops(rows).query("phase != ''")
    assert phases["phase"].to_dict() == {"Dataloader": "dataloader", "Forward": "forward"}
    assert phases["host_total_ns"].tolist() == [2_000_000, 20_000_000]
    assert phases["host_self_ns"].isna().all()


@pytest.mark.parametrize(("unit", "factor"), [("s", 1000), ("ms", 1), ("us", 0.001), ("ns", 0.000001)])
def test_every_unit_of_time_is_understood(tmp_path: Path, unit: str, factor: float):
    _, rows = built(tmp_path, MODEL.replace("Time unit: ms", f"Time unit: {unit}"))
    assert rows.overall.duration_ns == round(40_000_000 * factor)


def test_each_section_has_its_own_unit_and_the_host_breakdown_adds_up(tmp_path: Path):
    _, rows = built(tmp_path, DEVICES, OVERVIEW, MODEL)
    overall = rows.overall
    assert (overall.e2e_ns, overall.compute_ns, overall.idle_ns) == (40_000_000, 16_000_000, 24_000_000)
    counters = pd.DataFrame(rows.tables["counter"]).set_index(["name", "attribute"])["mean"]
    assert counters["CPU(Process)", "Utilization (%)"] == 99.5
    assert counters["Operator", "calls per step"] == 2
    assert counters["Operator", "CPU time per step (ms)"] == 4
    assert counters["ProfileStep", "CPU time (ms)"] == 10


GPU_OPERATORS = section(
    "Operator",
    "matmul                 4   8.00 / 2.00 / 2.00 / 2.00 / 100.00  30.00 / 7.50 / 8.00 / 7.00 / 100.00",
    "  compute              4   6.00 / 1.50 / 2.00 / 1.00 / 75.00   28.00 / 7.00 / 8.00 / 6.00 / 93.00",
    "    gemm_128x128_s...  4   - / - / - / - / -                   28.00 / 7.00 / 8.00 / 6.00 / 93.00",
    "  MEMSET               4   - / - / - / - / -                   2.00 / 0.50 / 0.50 / 0.50 / 6.60",
)
KERNELS = section(
    "Kernel",
    "ampere_sgemm_128x128_nn  4   28.00 / 7.00 / 8.00 / 6.00 / 70.00",
    "ncclKernel_AllReduce     4   12.00 / 3.00 / 3.00 / 3.00 / 30.00",
    header="Name   Calls  GPU Total / Avg / Max / Min / Ratio(%)",
)
GPU_OVERVIEW = OVERVIEW.replace(
    "             Calls  GPU Time  Ratio (%)\n----------  -----  --------  ---------\n",
    "             Calls  GPU Time  Ratio (%)\n----------  -----  --------  ---------\n"
    "  Kernel           8   0.039  97.50\n  Memcpy           2   0.001  2.50\n  Communication    4   0.012  30.00\n",
)
DISTRIBUTION = """-----Distribution Summary-----
Time unit: ms
-------------  ----------  ---------
Name           Total Time  Ratio (%)
-------------  ----------  ---------
ProfileStep    40.00       100.00
  Communication  12.00     30.00
  Computation    28.00     70.00
  Overlap        1.00      2.50
-------------  ----------  ---------
"""


def test_kernels_of_an_op_are_device_time_and_no_ops(tmp_path: Path):
    capture, rows = built(tmp_path, GPU_OPERATORS)
    assert capture.device == UNKNOWN_DEVICE
    found = ops(rows)
    assert found.index.tolist() == ["matmul", "compute"]
    assert found["device_total_ns"].tolist() == [30_000_000, 28_000_000]
    assert found["device_self_ns"].tolist() == [2_000_000, 28_000_000]
    assert found[["min_ns", "max_ns", "host_min_ns", "host_max_ns"]].values.tolist() == [
        [7_000_000, 8_000_000, 2_000_000, 2_000_000],
        [6_000_000, 8_000_000, 1_000_000, 2_000_000],
    ]
    assert rows.tables["kernel_key"]["name"] == ["MEMSET", "gemm_128x128_s..."]
    assert rows.tables["kernel"]["category"] == ["memset", "matmul"]


def test_the_kernel_summary_goes_before_the_cut_names_of_the_operators(tmp_path: Path):
    _, rows = built(tmp_path, GPU_OVERVIEW, MODEL, DISTRIBUTION, GPU_OPERATORS, KERNELS)
    assert rows.tables["kernel_key"]["name"] == ["ampere_sgemm_128x128_nn", "ncclKernel_AllReduce"]
    assert rows.tables["kernel"]["total_ns"].tolist() == [28_000_000, 12_000_000]
    assert rows.tables["kernel"]["category"] == ["matmul", "communication"]
    assert {rows.tables["op_key"]["name"][key] for key in rows.tables["kernel"]["op_key"].tolist()} == {"(unlinked)"}


def test_device_times_are_those_of_the_distribution_and_what_is_not_said_is_missing(tmp_path: Path):
    _, rows = built(tmp_path, GPU_OVERVIEW, MODEL, DISTRIBUTION, KERNELS)
    overall = rows.overall
    assert overall.timeline == "device"
    assert (overall.compute_ns, overall.communication_ns, overall.overlap_ns) == (28_000_000, 12_000_000, 1_000_000)
    assert (overall.exposed_communication_ns, overall.copy_ns) == (11_000_000, 1_000_000)
    assert (overall.kernel_count, overall.kernel_total_ns) == (8, 40_000_000)
    assert (overall.e2e_ns, overall.idle_ns, overall.exposed_copy_ns) == (None, None, None)


def test_memory_is_counted_once_although_an_operator_counts_its_inner_ops(tmp_path: Path):
    memory = """-----Memory Summary - Place(gpu:0)-----
Peak Allocated Memory: 4096
Peak Reserved Memory: 8192
----  ----  ----------------  ----------  ---------------  ---------  --------------
Name  Type  Allocation Count  Free Count  Allocation Size  Free Size  Increased Size
----  ----  ----------------  ----------  ---------------  ---------  --------------
relu dygraph        Allocated  8   0  800  0   800
relu kernel launch  Allocated  8   0  800  0   800
backward            Allocated  0   8  0    800  -800
relu kernel launch  Reserved   1   0  9999  0   9999
----  ----  ----------------  ----------  ---------------  ---------  --------------
"""
    _, rows = built(tmp_path, MODEL, OPERATORS, memory)
    table = rows.tables["memory"]
    names = [rows.tables["op_key"]["name"][key] for key in table["op_key"]]
    assert list(zip(names, table["component"], table["calls"].tolist(), table["bytes"].tolist(), strict=True)) == [
        ("relu kernel launch", "device", 8, 800)
    ]
    assert (rows.overall.peak_allocated_bytes, rows.overall.peak_reserved_bytes) == (4096, 8192)


def test_copies_of_the_memory_manipulation_summary_are_api_calls(tmp_path: Path):
    copies = section(
        "Memory Manipulation",
        "GpuMemcpySync:GPU->CPU  4   8.00 / 2.00 / 3.00 / 1.00 / 20.00  0.07 / 0.00 / 0.00 / 0.00 / 0.00",
    )
    api = built(tmp_path, MODEL, copies)[1].tables["api"]
    assert (api["level"], api["name"], api["total_ns"].tolist()) == (
        ["memory"],
        ["GpuMemcpySync:GPU->CPU"],
        [8_000_000],
    )


def test_what_cannot_be_known_is_said(tmp_path: Path):
    without_ratios = GPU_OPERATORS.replace("/ 100.00", "/ -")
    shortened = without_ratios.replace(f"{RULE}\n\n", "...\n")
    assert profile(tmp_path, shortened).warnings == (
        "no table says how many steps were profiled; sums are over the whole capture, as if it were one step",
        "the table 'Operator Summary' is incomplete, and so are its sums",
        "1 name cut with '...' by Paddle; different kernels of one beginning are counted together",
    )


# -- tables of which only the first rows were kept

CUT_KERNELS = section(
    "Kernel",
    "ampere_sgemm_128x128_nn  4   24.00 / 6.00 / 8.00 / 5.00 / 60.00",
    "ncclKernel_AllReduce     2   4.00 / 2.00 / 2.00 / 2.00 / 10.00",
    "...",
    header="Name   Calls  GPU Total / Avg / Max / Min / Ratio(%)",
    end=False,
)
CUT_OVERVIEW = GPU_OVERVIEW.replace("Kernel           8   0.039 ", "Kernel           20  0.040 ").replace(
    "Communication    4   0.012  30.00", "Communication    3   0.010  25.00"
)


def kernels(rows: Rows) -> dict[str, tuple[str, int, int]]:
    names = [rows.tables["kernel_key"]["name"][key] for key in rows.tables["kernel"]["kernel_key"]]
    table = rows.tables["kernel"]
    found = zip(table["category"], table["calls"].tolist(), table["total_ns"].tolist(), strict=True)
    return dict(zip(names, found, strict=True))


def test_a_cut_kernel_table_keeps_the_sums_of_the_whole(tmp_path: Path):
    """28 ms are listed as 70 %, so all kernels take 40 ms; the Overview says 20 kernels, 3 of them collectives."""
    _, rows = built(tmp_path, CUT_OVERVIEW, MODEL, CUT_KERNELS)
    assert kernels(rows) == {
        "ampere_sgemm_128x128_nn": ("matmul", 4, 24_000_000),
        "ncclKernel_AllReduce": ("communication", 2, 4_000_000),
        "(collectives not listed)": ("communication", 1, 6_000_000),
        "(not listed)": ("other", 13, 6_000_000),
    }
    overall = rows.overall
    assert (overall.kernel_total_ns, overall.compute_total_ns, overall.communication_total_ns) == (
        40_000_000,
        30_000_000,
        10_000_000,
    )


def test_a_cut_table_is_noted_with_the_part_it_lists(tmp_path: Path):
    (said,) = profile(tmp_path, CUT_OVERVIEW, MODEL, CUT_KERNELS).warnings
    assert said == (
        "the table 'Kernel Summary' is incomplete: it lists 28.00 ms of 40.00 ms; the rest, which follows from its"
        " ratios, is the row (not listed)"
    )


def test_fewer_kernels_than_the_overview_are_a_cut(tmp_path: Path):
    """No mark says that rows were taken out; the ratios do, and so does the Overview."""
    unmarked = CUT_KERNELS.replace("...\n", f"{RULE}\n")
    _, rows = built(tmp_path, CUT_OVERVIEW, MODEL, unmarked)
    assert kernels(rows)["(not listed)"] == ("other", 13, 6_000_000)


def test_a_whole_kernel_table_has_no_rest(tmp_path: Path):
    _, rows = built(tmp_path, GPU_OVERVIEW, MODEL, KERNELS)
    assert set(kernels(rows)) == {"ampere_sgemm_128x128_nn", "ncclKernel_AllReduce"}


def test_steps_keep_their_shortest_and_longest(tmp_path: Path):
    """The Model Summary says 4 steps of 10 ms on average, 9 to 12 ms."""
    profile(tmp_path, MODEL, OPERATORS)
    shown = show(None, str(tmp_path / "summary.txt"))
    assert shown.steps[["shortest_ns", "longest_ns"]].values.tolist() == [[9_000_000, 12_000_000]]
    text = render(shown, "text", only=["overall"])
    line = next(line for line in text.partition("Steps (")[2].splitlines() if line.startswith("  duration"))
    assert line.split() == ["duration", "9.00", "ms", "10.00", "ms", "12.00", "ms"]


def test_a_cut_operator_table_keeps_the_sums_of_the_whole(tmp_path: Path):
    """8 of 10 ms on the host and 30 of 40 ms on the device are listed."""
    cut = GPU_OPERATORS.replace("2.00 / 100.00 ", "2.00 / 80.00 ").replace("7.00 / 100.00", "7.00 / 75.00")
    found = ops(built(tmp_path, MODEL, cut.replace(f"{RULE}\n\n", "...\n"))[1])
    rest = found.loc["(not listed)"]
    assert (rest["host_self_ns"], rest["device_self_ns"]) == (2_000_000, 10_000_000)
    assert pd.isna(rest["calls"])
    outermost = found.loc[["matmul", "(not listed)"]]
    assert outermost[["host_total_ns", "device_total_ns"]].sum().tolist() == [10_000_000, 40_000_000]


def test_the_first_dialect_has_a_total_time_and_no_steps(tmp_path: Path):
    old = section(
        "Model",
        "Total Time    -  40.00 / - / - / - / 100.00            - / - / - / -/ -",
        "  Forward     8  20.00 / 2.50 / 3.00 / 2.00 / 50.00    1.00 / 0.10 / 0.20 / 0.10 / 2.50",
        "  Others      -  20.00 / - / - / - / 50.00             - / - / - / - / -",
    )
    _, rows = built(tmp_path, old)
    assert (rows.overall.duration_ns, rows.steps[0].steps) == (40_000_000, 1)


def test_a_summary_inside_of_a_log_is_a_summary(tmp_path: Path):
    path = tmp_path / "train.log"
    path.write_text("iter 5: batch_cost: 0.02 s ips: 100.0 images/s\n" + MODEL + "bye  bye\n")
    assert readers.claim(path) == "paddle_summary"
    assert paddle_summary.read(path).warnings == ()


def test_two_summaries_in_one_text_are_an_error(tmp_path: Path):
    with pytest.raises(SourceError, match=r"'Model Summary' stands twice.*save each in a file of its own"):
        profile(tmp_path, MODEL, MODEL)


def test_a_row_that_is_none_is_an_error_with_its_line_and_can_be_skipped(tmp_path: Path):
    bad = MODEL.replace("2.00 / 0.50 / 0.60", "2.00 / oops / 0.60")
    with pytest.raises(SourceError, match="line 7: 'Model Summary': 'oops' is not a number"):
        profile(tmp_path, bad)
    assert profile(tmp_path, bad, skip_bad_rows=True).warnings == ("left out: 1 row that could not be read",)


def test_a_text_without_tables_says_what_was_looked_for(tmp_path: Path):
    with pytest.raises(SourceError, match="looked for the headings Device, Overview, Model"):
        profile(tmp_path, "nothing\n")


# -- a summary in several files


def parts(folder: Path, **texts: str) -> Path:
    """A folder with a file per section: parts(folder, _01_Model=MODEL) writes 01_ModelSummary.txt."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name.removeprefix('_')}Summary.txt").write_text(text)
    return folder


def test_the_sections_of_a_summary_in_files_of_their_own_are_one_capture(tmp_path: Path):
    folder = parts(tmp_path / "run", _01_Device=DEVICES, _02_Model=MODEL, _03_Operator=OPERATORS)
    (found,) = readers.find(folder)
    assert found == readers.find(folder / "03_OperatorSummary.txt")[0]
    assert found.path.name == "01_DeviceSummary.txt"
    (capture,) = readers.read(found).captures
    assert [Path(source.path).name[:2] for source in capture.sources] == ["01", "02", "03"]
    assert capture.rows is not None
    assert [(row.steps, row.breakdown.duration_ns) for row in capture.rows.steps] == [(4, 10_000_000)]
    assert {"relu dygraph", "Forward"} <= set(capture.rows.tables["op_key"]["name"])


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ({"_01_Model": MODEL, "_02_Model": MODEL}, "a section stands twice"),
        ({"_01_Model": MODEL, "_02_Overview": OVERVIEW.replace("ProfileStep  4", "ProfileStep  5")}, "other steps"),
        ({"a_Model": MODEL, "b_Operator": OPERATORS}, "other names"),
        ({"_01_Model": MODEL, "_02_Operator": DEVICES + OPERATORS, "_03_Device": DEVICES}, "a section stands twice"),
    ],
)
def test_files_that_may_be_of_several_summaries_stay_apart(tmp_path: Path, texts: dict[str, str], why: str):
    assert len(readers.find(parts(tmp_path / "run", **texts))) == len(texts), why
