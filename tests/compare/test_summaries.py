"""Shares, sums and spreads of the tables of one run."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.factories import capture, record, same_table, save
from tests.reports.builders import nullable
from tracker.columns import Columns
from tracker.compare import diff, show, summaries
from tracker.profile import BEFORE_CAPTURE, MISSING
from tracker.results import DiffOptions, ShowOptions
from tracker.store import Store, save_run

LINK = {"kind": "all_reduce", "transport": "HCCS", "group_role": "dp", "group_size": 2, "source_rank": None,
        "target_rank": None, "packet_bytes": None, "packets": None, "large_packet_ratio": None}  # fmt: skip


def columns(rows) -> Columns:
    return Columns.of_frame(nullable(rows))


def link(level, size, transit, **more):
    return {**LINK, "level": level, "bytes": size, "transit_ns": transit, **more}


def test_share_of_an_op_is_of_all_ops_whatever_the_filter(store: Store):
    save(store, ops=[("aten::mm", 60), ("aten::add", 30), ("aten::mul", 10)])
    same_table(show(store, "v1").ops, "name share\n aten::mm 0.6\n aten::add 0.3\n aten::mul 0.1")
    same_table(show(store, "v1", options=ShowOptions(op="aten::add")).ops, "name share\n aten::add 0.3")


def test_share_of_a_kernel_is_of_all_kernels_without_copies(store: Store):
    kernels = [("gemm", 75), ("relu", 25), ("Memcpy HtoD", 900, {"category": "copy"})]
    save(store, kernels=kernels)
    found = show(store, "v1")
    same_table(found.kernels, "name share\n gemm 0.75\n relu 0.25")
    same_table(found.copies, "name share\n Memcpy_HtoD 1")


def test_share_of_a_kernel_type_is_of_all_types_but_collectives(store: Store):
    kernels = [("a", 30, {"type": "MatMul"}), ("b", 30, {"type": "MatMul"}), ("c", 20, {"type": "Cast"}),
               ("d", 900, {"type": "hcom", "category": "communication"})]  # fmt: skip
    save(store, kernels=kernels)
    same_table(show(store, "v1").kernel_types, "type total_ns share\n MatMul 60 0.75\n Cast 20 0.25")


def test_share_of_an_owner_is_of_the_peak_of_its_component(store: Store):
    peak = [("aten::mm", 300), ("aten::add", 100), (BEFORE_CAPTURE, 50, {"component": "cpu"})]
    save(store, ops=[("aten::mm", 100), ("aten::add", 1)], memory=[("aten::mm", 300)], peak=peak)
    found = show(store, "v1", options=ShowOptions(op="aten::add"))
    same_table(found.memory_peak, "op bytes share\n aten::add 100 0.25")
    same_table(found.memory_peak_totals, "rank component bytes\n 0 device 400\n 0 cpu 50")


def test_a_peak_of_which_an_owner_is_unknown_has_no_total():
    owners = columns(
        [{"rank": 0, "component": "device", "bytes": size, "peak_ns": 5, "peak_step": 1} for size in (300, None)]
    )
    assert summaries.of_peaks(owners).listed("bytes") == [None]


def test_peaks_of_both_sides_have_a_total_per_component(store: Store):
    for version, size in (("v1", 100), ("v2", 300)):
        peak = [("aten::mm", size), ("aten::add", 100)]
        save(store, version, ops=[("aten::mm", 100), ("aten::add", 1)], memory=[("aten::mm", size)], peak=peak)
    found = diff(store, "v1", "v2", options=DiffOptions(op="aten::add"))
    same_table(
        found.memory_peak_totals,
        "component baseline_bytes candidate_bytes delta_bytes diff\n device 200 400 200 1",
    )


def test_a_peak_that_only_one_side_reports_is_not_compared(store: Store):
    save(store, "v1")
    save(store, "v2", memory=[("aten::mm", 1)], peak=[("aten::mm", 1)])
    assert diff(store, "v1", "v2").memory_peak_totals.empty


def test_ranks_have_shares_of_the_whole_and_a_spread():
    ranks = [{"rank": rank, "whole_ns": whole, "compute_ns": compute, "idle_ns": None}
             for rank, whole, compute in ((0, 100, 60), (1, 300, 240), (2, 0, None))]  # fmt: skip
    ranks = [{**row, "exposed_communication_ns": 0, "exposed_copy_ns": 0} for row in ranks]
    overall = summaries.with_shares(columns(ranks))
    assert overall.listed("compute_share") == [0.6, 0.8, None]
    found = summaries.of_ranks(overall)
    assert found.only(["metric", "rows", "minimum", "median", "mean", "maximum", "maximum_rank"]).records()[0] == {
        "metric": "compute_ns", "rows": 2, "minimum": 60, "median": 150, "mean": 150, "maximum": 240, "maximum_rank": 1
    }  # fmt: skip
    # 60 and 240 of 100 and 300
    assert dict(found.rows("metric", "share"))["compute_ns"] == 0.75
    assert "idle_ns" not in found.listed("metric")


def test_steps_have_a_spread_and_the_place_of_the_longest():
    rows = [{"rank": rank, "step": step, "steps": 1, "duration_ns": ns, "shortest_ns": ns, "longest_ns": ns}
            for rank, step, ns in ((0, 7, 10), (0, 8, 20), (1, 7, 60))]  # fmt: skip
    (row,) = summaries.of_steps(columns(rows)).records()
    assert row == {
        "metric": "duration_ns", "unit": "ns", "rows": 3, "minimum": 10, "median": 20, "mean": 30, "maximum": 60,
        "maximum_rank": 1, "maximum_step": 7,
    }  # fmt: skip


def test_of_means_of_several_steps_only_named_extremes_are_known():
    rows = [{"rank": 0, "step": step, "steps": steps, "duration_ns": ns, "compute_ns": 5, "shortest_ns": low,
             "longest_ns": 90} for step, steps, ns, low in ((0, 3, 10, 8), (3, 1, 50, 50))]  # fmt: skip
    found = summaries.of_steps(columns(rows))
    # (3 * 10 + 50) / 4
    assert list(found.rows("metric", "minimum", "median", "mean", "maximum", "maximum_step")) == [
        ("duration_ns", 8, None, 20, 90, None), ("compute_ns", None, None, 5, None, None)
    ]  # fmt: skip


def test_links_add_up_per_transport_pair_and_packet():
    rows = [
        link("transport", 600, 30, large_packet_ratio=1.0),
        link("transport", 200, 10, kind="all_gather", large_packet_ratio=0.0),
        link("link", 600, 30, source_rank=0, target_rank=1),
        link("link", 200, 10, source_rank=0, target_rank=1, kind="all_gather"),
        link("packet", 600, 30, packet_bytes=300, packets=2),
    ]
    found = summaries.of_links(columns(rows))
    names = ("level", "source_rank", "packet_bytes", "packets", "bytes", "transit_ns", "bandwidth_gb_per_s")
    assert list(found.rows(*names, "large_packet_ratio")) == [
        ("transport", None, None, None, 800, 40, 20, 0.75),
        ("link", 0, None, None, 800, 40, 20, None),
        ("packet", None, 300, 2, 600, 30, 20, None),
    ]


def test_link_total_with_an_unknown_part_is_unknown(store: Store):
    exchange = [("all_reduce", 100, {"links": [("HCCS", size, {"transit_ns": 10})], "size_class_bytes": place})
                for place, size in ((1, 100), (2, MISSING))]  # fmt: skip
    save(store, communication=exchange)
    same_table(show(store, "v1").link_totals, "transport bytes transit_ns bandwidth_gb_per_s\n HCCS - 20 -")


def test_counters_have_their_extremes_over_all_names(store: Store):
    values = [("hbm", "0", "read(MB/s)", 10.0), ("hbm", "1", "read(MB/s)", 30.0), ("freq", "core", "MHz", 1800.0),
              ("llc", "0", "hits", 0.0), ("step_trace_time", "0", "Computing", 5.0)]  # fmt: skip
    save(store, counters=values)
    same_table(
        show(store, "v1").counter_summary,
        """
        source  attribute    names  mean  min   max   max_name
        freq    MHz          1      1800  1800  1800  core
        hbm     read(MB/s)   2      -     10    30    1
        """,
    )


def test_kernels_have_the_pipes_that_worked_longest(store: Store):
    metrics = {"aicore_time(us)": 2.0, "mac_time(us)": 0.5, "vec_time(us)": 1.5, "mte2_time(us)": 1.0,
               "scalar_time(us)": 0.1, "mac_ratio": 0.9}  # fmt: skip
    save(store, kernels=[("MatMul", 100, {"metrics": metrics}), ("Cast", 50, {"metrics": {"vec_ratio": 0.25}})])
    same_table(
        show(store, "v1").kernel_pipes,
        """
        name    core_time_ns  place  kind       metric         mean
        MatMul  2000          1      pipe_time  vec_time(us)   1.5
        MatMul  2000          2      pipe_time  mte2_time(us)  1
        MatMul  2000          3      pipe_time  mac_time(us)   0.5
        Cast    -             1      ratio      vec_ratio      0.25
        """,
    )


@pytest.mark.parametrize("by", [(), ("rank",), ("step",)])
def test_shares_of_all_rows_sum_to_one_at_every_grain(store: Store, by):
    save(store, ranks=2, steps=2, ops=[("aten::mm", 60), ("aten::add", 40)], kernels=[("gemm", 100)])
    found = show(store, "v1", options=ShowOptions(by=by))
    assert found.ops["share"].sum() == pytest.approx(1)
    assert found.kernels["share"].sum() == pytest.approx(1)


@pytest.mark.parametrize(("device", "expected"), [(True, "5 7 20 30"), (False, "5 7 5 7")])
def test_ops_have_their_extremes_on_the_host(store: Store, device, expected):
    """Beside a device both are stored; on a host timeline the extremes are of the host."""
    more = {"min_ns": 5, "max_ns": 7, **({"host_min_ns": 20, "host_max_ns": 30} if device else {})}
    made = capture(ops=[("aten::mm", 12, more)])
    if not device:
        rows = made.rows
        whole = replace(rows.overall, timeline="host")
        steps = tuple(replace(step, breakdown=replace(step.breakdown, timeline="host")) for step in rows.steps)
        made = replace(made, rows=replace(rows, overall=whole, steps=steps))
    save_run(store, record("v1"), [made], formats=["torch_profiler"])
    columns = "min_ns max_ns host_min_ns host_max_ns"
    same_table(show(store, "v1").ops, f"{columns}\n {expected}")
    both = " ".join(f"candidate_{name}" for name in columns.split())
    same_table(diff(store, "v1", "v1").ops, f"{both}\n {expected}")
