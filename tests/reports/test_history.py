"""How series over versions look; the numbers are made by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.reports import workbooks
from tracker import reports
from tracker.columns import Columns
from tracker.reports.document import Target
from tracker.reports.rows import records, rows_of
from tracker.reports.views.history import plot_of, points_of
from tracker.results import HISTORY_COLUMNS, History, HistoryOptions
from tracker.results.budgets import JudgedBudget
from tracker.results.history import FollowedSeries

MS = 1_000_000
POINT = {
    "series_id": 7, "pinned": False, "runs": 3, "calls": None, "level_version": "", "change_point": False, "facts": "",
    "environment": "", "contribution": 0.1,
}  # fmt: skip


def tables(**rows):
    return {name: Columns.of_rows(rows.get(name, []), columns) for name, columns in HISTORY_COLUMNS.items()}


def point(version, value, verdict=None, change=None, **more):
    numbers = {"value": value, "minimum": value and value * 0.99, "maximum": value and value * 1.01}
    return {**POINT, "version": version, **numbers, "verdict": verdict, "change": change, **more}


def history(points, pinned=None, series=(), runs=(), **options):
    one = {
        "series_id": 7, "workload": "gpt", "configuration": "batch=8", "device": "NVIDIA H100", "kind": "run",
        "metric": "duration_ns", "unit": "ns", "name": "step", "input_shapes": "", "part": "",
        "versions": len(points), "runs": 3 * len(points),
    }  # fmt: skip
    return History(
        tables=tables(series=series or [one], points=points, runs=runs),
        pinned=pinned,
        options=HistoryOptions(**options),
    )


@pytest.fixture
def found():
    """Five versions: one is slower, the next one back; then a drift, and a version without runs of its own."""
    return history(
        [
            point("v1", 100 * MS, "TOO_FEW_RUNS"),
            point("v2", 102 * MS, "INCONCLUSIVE", 0.02, q=0.4, judged_change=0.018),
            point("v3", 130 * MS, "REGRESSED", 0.28, q=0.0001, change_point=True, facts="peak 3 GiB -> 4 GiB",
                  environment="driver 535 -> 550"),
            point("v4", 101 * MS, "IMPROVED", -0.22, back_to="v1", level_version="v3"),
            point("v5", 108 * MS, "DRIFT", 0.07, gradual_change=0.06),
        ],
        key="step",
    )  # fmt: skip


def test_inconclusive_by_rounding_or_host_is_not_called_noisy():
    points = [
        point("v1", 100 * MS),
        point("v2", 108 * MS, "INCONCLUSIVE", 0.08, reason="ROUNDING"),
        point("v3", 114 * MS, "INCONCLUSIVE", 0.14, reason="HOST"),
        point("v4", 104 * MS, "INCONCLUSIVE", 0.04, reason="SIGNIFICANCE"),
    ]
    (note,) = (line for line in reports.render(history(points), "text", width=250).splitlines() if "noisy" in line)
    assert note.strip().split("; ") == [
        "INCONCLUSIVE: too noisy",
        "v2 INCONCLUSIVE: known no better than the source rounds it",
        "v3 INCONCLUSIVE: too few of the runs before are of the same host, which alone may make the difference",
    ]


def test_recovery_names_the_version_that_left_its_level():
    points = [
        point("v1", 100 * MS),
        point("v2", 130 * MS, "REGRESSED", change_point=True),
        point("v3", 160 * MS, "REGRESSED", change_point=True),
        point("v4", 104 * MS, "IMPROVED", -0.35, back_to="v1"),
    ]
    _, answer, more, *_ = lines_of(history(points))
    assert answer.startswith("v4 is at 104.00 ms: back to the level before v2, +4.0 % against v1  ")
    assert answer.endswith("  IMPROVED") and more.strip()


def with_budget(found, limit="at most 120 ms", value=120 * MS, **more):
    """Return a history of a step that has a budget."""
    one = {
        "workload": "gpt", "configuration": "batch=8", "device": "NVIDIA H100", "version": "v5", "series": "step",
        "verdict": "met", "name": "step", "unit": "ns", "limit": limit, "limit_value": value,
    }  # fmt: skip
    return replace(found, budgets=(JudgedBudget(**one | more),))


def test_text_names_the_budget_beside_the_course(found):
    assert "100.00 ms to 130.00 ms, budget: at most 120 ms" in reports.render(with_budget(found), "text")


def test_chart_has_a_line_at_the_budget(found):
    page = reports.render(with_budget(found), "html")
    assert page.count("class=limit width") == 1
    assert "budget: at most 120 ms" in page


@pytest.mark.parametrize("other", [{"device": "NVIDIA A100"}, {"name": "mean step"}, {"unit": "bytes"}])
def test_chart_has_no_line_of_another_budget(found, other):
    assert "class=limit width" not in reports.render(with_budget(found, **other), "html")


def test_budget_far_from_all_values_does_not_press_them_together(found):
    page = reports.render(with_budget(found, "at most 2 s", 2000 * MS), "html")
    assert "class=limit width" not in page
    assert "the axis begins at 100 ms" in page


def lines_of(result, **look):
    return reports.render(result, "text", width=100, **look).splitlines()


def test_one_series_has_title_headline_and_a_line_per_version(found):
    lines = lines_of(found)
    assert lines[0] == "step time of gpt, NVIDIA H100, batch=8: 5 versions, 15 runs"
    assert lines[1] == "v5 is at 108.00 ms: +7.0 % against the runs before it; lasting changes with v3, v4"
    assert [" ".join(line.split()) for line in lines[3:-5]] == [
        "▁▁█▁▂ 100.00 ms to 130.00 ms",
        "version step vs previous vs level verdict",
        "v1 100.00 ms - -",
        "v2 102.00 ms +2.0 % +2.0 % INCONCLUSIVE",
        "v3 130.00 ms +27.5 % +28.0 % REGRESSED",
        "peak 3 GiB -> 4 GiB; driver 535 -> 550",
        "v4 101.00 ms -22.3 % -22.0 % IMPROVED (as before v3)",
        "v5 108.00 ms +6.9 % +7.0 % DRIFT",
        "gradual slowdown: +6.0 % against the first runs of its level",
        "INCONCLUSIVE: too noisy; DRIFT: moved as all operators did",
    ]
    assert lines[-4:] == [
        "Next:",
        "  tracker history 7 --details",
        "  tracker history 7 -o history.xlsx",
        "  tracker findings --version v4 --workload gpt --state all",
    ]


def test_details_have_what_a_verdict_rests_on(found):
    lines = [" ".join(line.split()) for line in reports.render(found, "text", width=110, details=True).splitlines()]
    assert "version step vs previous vs level verdict without drift q runs" in lines
    assert "v2 102.00 ms +2.0 % +2.0 % INCONCLUSIVE +1.8 % 0.400 3, ±1.0 %" in lines


def test_visible_change_without_a_verdict_says_why():
    verdicts = ("INCONCLUSIVE", "BELOW_LIMIT", "TOO_FEW_RUNS", "UNCHANGED", None)
    points = [
        point("v0", 100 * MS),
        *(point(f"v{at}", (100 + 10 * at) * MS, word) for at, word in enumerate(verdicts, 1)),
    ]
    rows = {line.split()[0]: line.partition("%")[2].strip() for line in lines_of(history(points))[5:11]}
    assert rows == {
        "v0": "", "v1": "INCONCLUSIVE", "v2": "BELOW_LIMIT", "v3": "TOO_FEW_RUNS", "v4": "UNCHANGED",
        "v5": "not judged",
    }  # fmt: skip
    gloss = "INCONCLUSIVE: too noisy; TOO_FEW_RUNS: too few runs; BELOW_LIMIT: too small to matter; UNCHANGED:"
    assert lines_of(history(points))[11].strip() == gloss


def test_small_change_without_a_verdict_has_no_word():
    points = [point("v1", 100 * MS), point("v2", 101 * MS, "INCONCLUSIVE", 0.01)]
    assert lines_of(history(points))[6].endswith("+1.0 %")


def test_long_history_shows_the_newest_and_counts_the_others():
    many = history([point(f"v{at:03}", 100 * MS, "UNCHANGED", 0.0) for at in range(60)])
    lines = lines_of(many)
    assert len(lines) <= 40
    assert "  35 older versions left out; --details shows all" in lines
    assert any(line.startswith("  v059 ") for line in lines) and not any(line.startswith("  v034 ") for line in lines)
    assert any(line.startswith("  v000 ") for line in lines_of(many, details=True))


def test_version_without_a_value_is_a_gap_and_the_next_one_has_a_reference():
    points = [point("v1", 100 * MS), point("v2", None, "REMOVED"), point("v3", 100 * MS, "ADDED", 0.0)]
    lines = lines_of(history(points))
    assert lines[3].startswith("  ▁·▁  ")
    assert lines[6].split() == ["v2", "-", "-", "-", "REMOVED"]
    assert lines[1].startswith("v3 is at 100.00 ms: new; no lasting change")
    assert lines_of(history(points[:2]))[1].startswith("v2 has no step; v1 was at 100.00 ms")


def test_pinned_version_has_columns_of_its_own_only_when_chosen(found):
    points = [
        {**row, "pinned": row["version"] == "v1", "pinned_change": 0.3, "pinned_verdict": "REGRESSED"}
        for row in found.points.to_dict("records")
    ]
    head = next(line for line in lines_of(history(points, pinned="v1")) if "version " in line)
    assert head.split("  ")[-1] == "verdict"
    against = lines_of(history(points, pinned="v1", against="pinned"))
    assert next(line for line in against if line.startswith("  version ")).endswith("vs v1  verdict vs v1")
    assert any(line.startswith("  v1 (pinned) ") for line in against)


def test_several_series_have_a_line_each_and_changes_come_first():
    names = ("aten::mm", "aten::add", "aten::mul")
    series = [
        {"series_id": at, "workload": "gpt", "configuration": "", "device": "cpu", "kind": "op_name", "name": name,
         "metric": "host_self_ns", "unit": "ns", "input_shapes": "", "part": "", "versions": 2, "runs": 6}
        for at, name in enumerate(names)
    ]  # fmt: skip
    points = [
        {**point(version, value * MS, word), "series_id": at}
        for at, word in enumerate(("INCONCLUSIVE", "REGRESSED", "IMPROVED"))
        for version, value, word in (("v1", 10, None), ("v2", 12, word))
    ]
    lines = lines_of(history(points, series=series, key="aten::*", kind="op_name"))
    assert lines[:2] == [
        "gpt, cpu: 3 series, 2 versions",
        "1 REGRESSED, 1 IMPROVED among 3 series in the newest version",
    ]
    assert [line.split()[1] for line in lines[4:7]] == ["aten::add", "aten::mul", "aten::mm"]
    assert lines[-2:] == ["Next:", "  tracker history 1"], "details would show no more"
    wide = [{**one, "configuration": f"sequence_length={at} precision=bf{at}"} for at, one in enumerate(series)]
    narrow = reports.render(history(points, series=wide, key="aten::*", kind="op_name"), "text", width=70)
    assert all(len(line) <= 70 for line in narrow.splitlines())
    many = [{**series[0], "series_id": at} for at in range(40)]
    found = history([{**one, "series_id": at} for at in range(40) for one in points[:2]], series=many, key="aten::*")
    assert lines_of(found)[-1].endswith("tracker history 'aten::*' --details")


def test_hostile_names_stay_on_their_lines():
    points = [point("v\x1b[31m1", 100 * MS), point("=v2|<b>\n", 90 * MS, "IMPROVED", -0.1)]
    page = reports.render(history(points), "text", width=100)
    assert "\x1b" not in page
    assert "v\\x1b[31m1" in page and "=v2|<b>\\n" in page
    assert "<b>" not in reports.render(history(points), "markdown")


def test_workbook_has_a_chart_on_its_summary_and_on_the_sheet_of_a_series(found):
    book = workbooks.opened(reports.render(found, "xlsx"))
    assert book.sheetnames == ["Summary", "7 step", "Series", "Points"]
    assert [len(book[name]._charts) for name in ("Summary", "7 step")] == [1, 1]
    slower = workbooks.values(book["7 step"])[2]
    assert (slower["Version"], slower["Mean of the runs (ms)"], slower["Change"]) == ("v3", 130, 0.28)


@pytest.mark.parametrize("format", reports.able("history"))
def test_every_format_has_all_versions(found, format):
    document = reports.render(found, format)
    text = workbooks.dump(document) if isinstance(document, bytes) else document
    assert all(version in text for version in ("v1", "v2", "v3", "v4", "v5"))


def test_band_of_each_level_holds_all_of_its_runs():
    """Two versions at 100 ms, then two at 130: the first level reaches from 99 to 103.02 ms."""
    points = [
        point("v1", 100 * MS),
        point("v2", 102 * MS),
        point("v3", 130 * MS, "REGRESSED", 0.28, change_point=True),
        point("v4", 131 * MS),
    ]
    (one,) = rows_of(FollowedSeries, history(points).tables["series"])
    (series,) = plot_of(history(points), [one], {7: points_of(history(points))[7]}).series
    assert [(one.first, one.last) for one in series.levels] == [(0, 1), (2, 3)]
    first = series.levels[0]
    assert (first.smallest, first.largest) == (99 * MS, 102 * MS * 1.01)
    assert first.mean == pytest.approx((100 * 102) ** 0.5 * MS)
    assert reports.render(history(points), "html").count("<path class=levels") == 1


def chart_of(found):
    """The chart of the one series of a history."""
    (one,) = rows_of(FollowedSeries, found.tables["series"])
    return plot_of(found, [one], points_of(found))


def test_a_change_of_a_history_leads_to_its_incident(found):
    found = replace(found, incidents={(7, "v3"): 12, (7, "v5"): 13})
    assert chart_of(found).links[2] == Target("incident", (("ID", "I-12"),))
    assert {chart_of(found).links[place].page for place in (1, 3, 4)} == {"diff"}, "a drift is no change"


def test_a_part_of_a_history_has_all_versions_below_its_chart(found):
    """v3 and v4 of seven versions: as many earlier ones, and as many later ones."""
    values = tuple((f"v{at}", 100.0 * MS + at) for at in range(1, 8))
    points = [one for one in records(found.tables["points"]) if one["version"] in ("v3", "v4")]
    part = replace(history(points, key="step", from_version="v3", to_version="v4"), overview=values)
    overview = chart_of(part).overview
    assert (overview.first, overview.last, len(overview.names)) == (2, 3, 7)
    ways = {words: dict(target.query) for words, target in overview.ways}
    assert ways["earlier"] == {"--last": "", "--from": "v1", "--to": "v2"}
    assert ways["later"] == {"--last": "", "--from": "v5", "--to": "v6"}
    assert ways["all"] == {"--last": "", "--from": "", "--to": ""}
    assert chart_of(found).overview is None, "all are shown"
