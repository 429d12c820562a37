"""Tables of every section fit a terminal of 80 columns: no header and no number is cut off at its end."""

import pytest

from tests.reports import builders
from tests.reports.builders import MS
from tracker.reports import _human_diff, _human_show
from tracker.reports._layout import GAP, fit
from tracker.results import SECTIONS

WIDTH = 78  # of 80, the rest is indentation


def wide_diff():
    """Numbers as a large run has them: 120.00 ms, 100.50 GB/s, 12,000 calls."""
    key = {"kind": "reduce_scatter", "group_role": "dp_cp", "group_size": 1024, "transport": "HCCS"}
    moved = {"level": "transport", "baseline_bytes": 8e11, "candidate_bytes": 7e11, "baseline_transit_ns": 120.0 * MS,
             "candidate_transit_ns": 480.0 * MS, "baseline_bandwidth_gb_per_s": 424.68,
             "candidate_bandwidth_gb_per_s": 100.5, "baseline_large_packet_ratio": 1.0,
             "candidate_large_packet_ratio": 0.931}  # fmt: skip
    links = [{**key, **moved}, {**key, **moved, "level": "link", "source_rank": 1000, "target_rank": 1001}]
    parts = ("transit_ns", "wait_ns", "synchronization_ns", "idle_ns", "exposed_ns")
    rows = [
        {**row, "baseline_calls": 12_000, "candidate_calls": 13_000,
         **{f"baseline_{name}": 120.0 * MS for name in parts}, **{f"candidate_{name}": 480.0 * MS for name in parts}}
        for row in builders.communication()
    ]  # fmt: skip
    return builders.diff(
        communication=builders.frame("communication", rows),
        communication_links=builders.frame("communication_links", links),
    )


@pytest.mark.parametrize("section", SECTIONS)
def test_tables_of_a_diff_fit_80_columns(section):
    for table in _human_diff.tables(wide_diff(), section, 10, SECTIONS):
        fitted = fit(table, WIDTH)
        assert sum(fitted.widths) + GAP * (len(fitted.widths) - 1) <= WIDTH, table.title
        assert all(len(column.header) <= width for column, width in zip(fitted.columns, fitted.widths, strict=True)), (
            table.title
        )


@pytest.mark.parametrize("section", SECTIONS)
def test_tables_of_a_run_fit_80_columns(section):
    for make in _human_show.TABLES[section]:
        table = make(builders.shown(), 10)
        fitted = fit(table, WIDTH)
        assert sum(fitted.widths) + GAP * (len(fitted.widths) - 1) <= WIDTH, table.title
        assert all(len(column.header) <= width for column, width in zip(fitted.columns, fitted.widths, strict=True)), (
            table.title
        )
