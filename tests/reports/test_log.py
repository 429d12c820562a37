"""How an optimisation log looks; the numbers are made by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tracker import reports
from tracker.results import Log, LogOptions
from tracker.results.log import LogCellRow, LogColumnRow, LogRows, LogVersionRow


def changed(log, **rows):
    """The log with other rows in some tables."""
    return replace(log, rows=replace(log.rows, **{name: tuple(own) for name, own in rows.items()}))


def version(name, runs=1):
    return LogVersionRow(version=name, runs=runs)


def cell(version, column, value, baseline_diff=None, previous_diff=None, **more):
    return LogCellRow(
        version=version, column=column, value=value, runs=1, minimum=value, maximum=value,
        baseline_diff=baseline_diff, previous_diff=previous_diff, gain=previous_diff, **more,
    )  # fmt: skip


def column(number, batch, **changes):
    measure = "throughput in images/s without a profiler"
    row = LogColumnRow(
        column=number, title=f"batch={batch}, NVIDIA V100, {measure}", measure="throughput", unit="images/s", scope="",
        profiler="off", device="NVIDIA V100", configuration=f"batch={batch}", higher_is_better=True,
    )  # fmt: skip
    return replace(row, **changes)


@pytest.fixture
def found():
    """Two batch sizes; the second version was measured with one of them."""
    return Log(
        workload="resnet",
        baseline="v1",
        options=LogOptions(),
        rows=LogRows(
            versions=(version("v1", 2), version("v2")),
            columns=(column(0, 2), column(1, 4)),
            cells=(cell("v1", 0, 100.0, 0.0), cell("v2", 0, 90.0, -0.1, -0.1), cell("v1", 1, 200.0, 0.0)),
        ),
    )


def test_columns_stand_beside_each_other_and_a_missing_cell_is_a_dash(found):
    lines = reports.render(found, "text", width=120).splitlines()
    assert lines[0] == "resnet, 2 versions, 2 columns: NVIDIA V100, throughput in images/s without a profiler"
    assert lines[1] == "The newest version against v1: batch=2 -10.0 %, batch=4 without another version"
    assert [line.split() for line in lines[3:7]] == [
        ["batch", "2", "vs", "vs", "4", "vs", "vs"],
        ["version", "images/s", "v1", "previous", "images/s", "v1", "previous"],
        ["v1", "100.00", "0.0", "%", "-", "200.00", "0.0", "%", "-"],
        ["v2", "90.00", "-10.0", "%", "-10.0", "%", "-", "-", "-"],
    ]


def test_less_throughput_is_worse_and_no_change_has_no_colour(found):
    page = reports.render(found, "text", width=120, color=True)
    assert page.count("\x1b[31m") == 2
    assert "\x1b[32m" not in page


def test_columns_that_do_not_fit_become_lines_and_details_have_their_tables(found):
    page = reports.render(found, "text", width=45)
    assert max(len(line) for line in page.splitlines()[:-1]) <= 45
    assert [line.split() for line in page.splitlines() if line.startswith(("  2 ", "  4 "))] == [
        ["2", "90.00", "-10.0", "%", "-10.0", "%"],
        ["4", "200.00", "0.0", "%", "-"],
    ]
    assert "--details has all versions of each column" in page
    details = reports.render(found, "text", width=45, details=True)
    assert "\nbatch=2\n" in details and "\nbatch=4\n" in details
    # a version without a value in a column has no row there
    assert details.count("\n  v2 ") == 1


@pytest.mark.parametrize("format", reports.able("log"))
def test_every_format_has_the_document(found, format):
    kind = bytes if format == "xlsx" else str
    assert isinstance(reports.render(found, format), kind)


def test_columns_that_differ_in_several_things_have_a_line_of_the_head_for_each(found):
    columns = [
        column(0, 2, configuration="batch=2 devices=1"),
        column(1, 4, configuration="batch=4 devices=8", scope="per rank"),
    ]
    lines = reports.render(changed(found, columns=columns), "text", width=120).splitlines()
    # one process: per rank and total are the same, so this makes no difference
    assert lines[0].endswith("throughput in images/s without a profiler, per rank")
    start = next(number for number, line in enumerate(lines) if line.split()[:1] == ["batch"])
    assert [line.split()[:2] for line in lines[start : start + 3]] == [
        ["batch", "2"],
        ["devices", "1"],
        ["version", "images/s"],
    ]


def test_headline_of_one_column_has_both_references(found):
    cells = [cell("v1", 0, 100.0, 0.0), cell("v2", 0, 90.0, -0.1, -0.1, previous_version="v0")]
    one = changed(found, columns=[column(0, 2)], cells=cells)
    assert reports.render(one, "text").splitlines()[1] == (
        "v2 is at 90.00 images/s: -10.0 % against v1, -10.0 % against v0"
    )


def test_two_devices_are_both_in_the_headline_and_many_columns_are_counted(found):
    devices = [column(at, 2, configuration="", device=name) for at, name in enumerate(("H100", "MI300X"))]
    cells = [*found.rows.cells, cell("v2", 1, 300.0, 0.5, 0.5)]
    page = reports.render(changed(found, columns=devices, cells=cells), "text", width=120)
    assert page.splitlines()[1] == "The newest version against v1: H100 -10.0 %, MI300X +50.0 %"
    columns = [column(at, at) for at in range(5)]
    cells = [cell(version, at, 100.0, diff) for at in range(5) for version, diff in (("v1", 0.0), ("v2", -0.1))]
    page = reports.render(changed(found, columns=columns, cells=cells), "text", width=120)
    assert page.splitlines()[1] == "The newest version of each of 5 columns against v1: 5 worse"


def test_older_versions_are_counted(found):
    names = [f"v{number:02}" for number in range(40)]
    many = changed(
        found,
        versions=[version(name) for name in names],
        columns=[column(0, 2)],
        cells=[cell(name, 0, 100.0, 0.0, 0.0) for name in names],
    )
    page = reports.render(many, "text", width=100)
    assert len(page.splitlines()) <= 40
    assert "15 older versions left out; --details shows all" in page
    assert "\n  v14 " not in page and "\n  v15 " in page
    assert "\n  v14 " in reports.render(many, "text", width=100, details=True)


def test_hostile_values_of_a_configuration_stay_in_the_head(found):
    columns = [column(0, "2\n\x1b[31m"), column(1, 4)]
    page = reports.render(changed(found, columns=columns), "text", width=120)
    assert "\x1b" not in page
    assert "2\\n\\x1b[31m" in page.splitlines()[3]


def test_log_without_a_column_says_so(found):
    empty = replace(found, rows=LogRows())
    assert reports.render(empty, "text").splitlines() == [
        "resnet, no version",
        "No active run of resnet has a number to show",
        "",
        "Next:",
        "  tracker runs --state all",
    ]
