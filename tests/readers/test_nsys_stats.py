"""Text of `nsys stats`: the same capture as three versions print it, and what text can be wrong with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.readers.helpers import frame
from tracker import readers
from tracker.errors import SourceError
from tracker.profile import CPU, MISSING, UNKNOWN_DEVICE
from tracker.readers import ReadOptions, nsys_stats
from tracker.timeline import build

STYLES = sorted((Path(__file__).parents[1] / "data" / "nsys_stats").glob("style_*.txt"))
every_style = pytest.mark.parametrize("path", STYLES, ids=lambda path: path.stem)

KERNELS = """
 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)  Name
 --------  ---------------  ---------  --------  --------  --------  --------  -----------  ----
"""
RANGES = """
 ** NVTX Range Summary (nvtx_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)   Style   Range
 --------  ---------------  ---------  --------  --------  --------  --------  -----------  -------  -----
"""


def read(path):
    profile = nsys_stats.read(path, ReadOptions())
    (capture,) = profile.captures
    return build(capture), profile.warnings


def written(tmp_path, text):
    path = tmp_path / "stats.txt"
    path.write_text(text, encoding="utf-8")
    return path


@every_style
def test_kernels_and_copies_of_every_style(path):
    capture, _ = read(path)
    keys = [(row["name"], row["canonical_name"]) for row in frame(capture.rows.tables["kernel_key"])]
    assert keys == [
        ("void gemm<(int)4>(float *)", "gemm<4>"),
        ("(no name)", "(no name)"),
        ("Memcpy HtoD", "Memcpy HtoD"),
    ]
    columns = ("category", "calls", "total_ns", "min_ns", "max_ns", "bytes")
    assert [tuple(row[column] for column in columns) for row in frame(capture.rows.tables["kernel"])] == [
        ("matmul", 3, 600, 100, 300, MISSING),
        ("other", 1, 200, 200, 200, MISSING),
        ("copy", 2, 50, 20, 30, 8192),
    ]


@every_style
def test_calls_and_ranges_of_every_style(path):
    capture, warnings = read(path)
    assert warnings == ()
    columns = ("level", "name", "calls", "total_ns", "self_ns", "min_ns", "max_ns")
    assert [tuple(row[column] for column in columns) for row in frame(capture.rows.tables["api"])] == [
        ("runtime", "cudaLaunchKernel", 4, 8000, MISSING, 1000, 3000),
        ("runtime", "cudaMemcpy", 1, 2000, MISSING, 2000, 2000),
        ("os", "poll", 3, 900, MISSING, 100, 500),
    ]
    keys = [(row["name"], row["phase"]) for row in frame(capture.rows.tables["op_key"])]
    assert keys == [("(unlinked)", ""), ("forward", "forward")]
    unlinked, forward = frame(capture.rows.tables["op"])
    assert (unlinked["device_self_ns"], unlinked["kernel_count"], unlinked["host_total_ns"]) == (850, 6, MISSING)
    assert (forward["calls"], forward["host_total_ns"], forward["device_total_ns"]) == (2, 7000, MISSING)


@every_style
def test_what_the_text_does_not_say_is_missing_and_not_zero(path):
    capture, _ = read(path)
    unlinked, forward = frame(capture.rows.tables["op"])
    # no range says how many kernels it launched; nothing calls the op that stands for unknown launches
    assert (forward["kernel_count"], unlinked["calls"]) == (MISSING, 0)
    assert {row["step"] for name in ("op", "kernel", "api") for row in frame(capture.rows.tables[name])} == {0}
    assert {row["block_num"] for row in frame(capture.rows.tables["kernel"])} == {MISSING}


@every_style
def test_sums_are_known_and_unions_are_not(path):
    capture, _ = read(path)
    overall = capture.rows.overall
    assert (overall.kernel_count, overall.kernel_total_ns, overall.compute_total_ns) == (4, 800, 800)
    assert (overall.communication_total_ns, overall.copy_total_ns) == (0, 50)
    assert overall.e2e_ns is None
    assert overall.compute_ns is None
    assert overall.idle_ns is None
    (step,) = capture.rows.steps
    assert (step.step, step.breakdown) == (0, overall)
    assert capture.device == UNKNOWN_DEVICE
    assert capture.started_at_ns is None


def test_communication_is_told_by_the_name(tmp_path):
    rows = "     60.0   60  1  60.0  60.0  60  60  0.0  ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)\n"
    capture, _ = read(written(tmp_path, f"{KERNELS}{rows}     40.0   40  1  40.0  40.0  40  40  0.0  gemm\n\n"))
    assert [row["category"] for row in frame(capture.rows.tables["kernel"])] == ["communication", "matmul"]
    assert capture.rows.overall.communication_total_ns == 60
    assert capture.rows.overall.compute_total_ns == 40


def test_ranges_that_differ_in_a_running_number_are_one(tmp_path):
    rows = (
        " 50.0  100  1  100.0  100.0  100  100  0.0  PushPop  :Warm-up Step 1\n"
        " 50.0  300  2  150.0  150.0   90  210  0.0  PushPop  :Warm-up Step 2\n"
        " 50.0  300  1  300.0  300.0  300  300  0.0  PushPop  PyTorch:aten::mm, op_id = 7, sizes = [[2, 3]]\n"
    )
    capture, warnings = read(written(tmp_path, RANGES + rows))
    keys = [(row["name"], row["input_shapes"]) for row in frame(capture.rows.tables["op_key"])]
    assert keys == [("Warm-up Step", ""), ("aten::mm", "[[2,3]]")]
    row = frame(capture.rows.tables["op"])[0]
    assert (row["calls"], row["host_total_ns"], row["min_ns"], row["max_ns"]) == (3, 400, 90, 210)
    assert capture.device == CPU
    assert warnings == ("the text has no kernels, no copies, no CUDA calls",)


def test_launches_without_kernels_are_said(tmp_path):
    text = STYLES[-1].read_text(encoding="utf-8")
    head, _, rest = text.partition(" ** CUDA GPU Kernel Summary")
    skipped = "SKIPPED: run.sqlite does not contain CUDA kernel data.\n"
    _, warnings = read(written(tmp_path, head + skipped + rest[rest.index("Processing") :]))
    assert warnings == (
        "the text has no kernels (nsys: no CUDA kernel data)",
        "4 launches have no kernel: the capture did not trace the device, or ended before the work",
    )


def test_names_that_were_cut_are_kept_and_said(tmp_path):
    row = " 100.0  60  1  60.0  60.0  60  60  0.0  void at::native::vectorized_elementwise_ker...\n"
    capture, warnings = read(written(tmp_path, KERNELS + row))
    assert frame(capture.rows.tables["kernel_key"])[0]["name"] == "void at::native::vectorized_elementwise_ker..."
    assert "1 names were cut by nsys (...); nsys stats --format csv has the whole names" in warnings


def test_number_that_is_none_names_line_and_column(tmp_path):
    path = written(tmp_path, f"{KERNELS} 100.0  sixty  1  60.0  60.0  60  60  0.0  gemm\n")
    with pytest.raises(SourceError, match=r"line 6: Total Time \(ns\) is 'sixty', expected a number"):
        read(path)


def test_text_of_two_reports_is_an_error(tmp_path):
    one = f"{KERNELS} 100.0  60  1  60.0  60.0  60  60  0.0  gemm\n"
    assert read(written(tmp_path, one + one))[0].rows.overall.kernel_total_ns == 60
    with pytest.raises(SourceError, match=r"line 8: a second table of kernels.*keep one report per file"):
        read(written(tmp_path, one + one.replace("60  1", "90  1")))


def test_tables_without_rows_are_an_error(tmp_path):
    with pytest.raises(SourceError, match="have no rows"):
        read(written(tmp_path, KERNELS))


@every_style
def test_text_behind_a_training_log_is_claimed(tmp_path, path):
    log = "step 1: loss 2.3\n" * 1000
    assert readers.claim(path) == "nsys_stats"
    assert readers.claim(written(tmp_path, log + path.read_text(encoding="utf-8"))) == "nsys_stats"


CUT = KERNELS + (
    "     60.0              600          3     200.0     200.0       100       300          0.0  gemm\n"
    "     20.0              200          1     200.0     200.0       200       200          0.0  softmax\n"
)


def test_a_cut_kernel_table_keeps_the_sums_of_the_whole(tmp_path):
    """Somebody kept the first two rows: 800 ns are 80 %, so the others took 200 ns, in nobody knows how many calls."""
    capture, warnings = read(written(tmp_path, CUT))
    table = capture.rows.tables["kernel"]
    names = [capture.rows.tables["kernel_key"]["name"][key] for key in table["kernel_key"]]
    found = zip(table["category"], table["calls"].tolist(), table["total_ns"].tolist(), strict=True)
    assert dict(zip(names, found, strict=True)) == {
        "gemm": ("matmul", 3, 600), "softmax": ("vector", 1, 200), "(not listed)": ("other", MISSING, 200),
    }  # fmt: skip
    assert (capture.rows.overall.kernel_total_ns, capture.rows.overall.kernel_count) == (1000, None)
    assert (
        "the table of kernels is cut: it lists 800 ns of 1.00 us; the rest, which follows from its percents, is the "
        "row (not listed)"
    ) in warnings


def test_percents_that_rounding_shortened_are_no_cut(tmp_path):
    """19 rows of 5.2 % and 1.2 % that nothing prints: 98.8 %, of which rounding can have taken 1 %."""
    rows = "".join(f"      5.2              520          1     520.0     520.0       520       520          0.0  k{n}\n"
                   for n in range(19))  # fmt: skip
    capture, warnings = read(written(tmp_path, KERNELS + rows))
    assert capture.rows.overall.kernel_total_ns == 19 * 520
    assert not [text for text in warnings if "is cut" in text]


def test_other_cut_tables_are_said(tmp_path):
    row = "     40.0              400          1     400.0     400.0       400       400          0.0  PushPop  :f\n"
    _, warnings = read(written(tmp_path, CUT + RANGES + row))
    assert "the table of NVTX ranges is cut: it lists 400 ns of 1.00 us, and so are its sums" in warnings
