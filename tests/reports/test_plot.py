"""Charts of series: axes, gaps, labels and signs, as the SVG that needs no browser."""

from __future__ import annotations

import gzip
import json
import re
import time
from base64 import b64decode

import pytest

from tests.reports.test_history import MS, history, point
from tests.reports.test_html import HOSTILE
from tracker import reports
from tracker.reports.document import Courses, Curves, Look, Marker, Plot, PlotSeries, Target, Trend
from tracker.reports.plot import limits, ticks_of
from tracker.reports.svg import chart, spark
from tracker.reports.views.history import document

NAMES = tuple(f"v{at}" for at in range(1, 6))


def plot(*values, names=None, **more):
    """The drawing of one series, or of one per row of `values`."""
    rows = values if isinstance(values[0], tuple) else (values,)
    series = tuple(PlotSeries(f"series {at}" * (len(rows) > 1), "ns", row) for at, row in enumerate(rows))
    return str(chart(Plot(names=names or NAMES[: len(rows[0])], series=series, **more), more.pop("link", None)))


def path_of(drawn, kind="line"):
    return re.search(rf'<path class="{kind}" d="([^"]*)"', drawn)[1]


def packed_of(drawn):
    """What the script of a page reads."""
    return json.loads(gzip.decompress(b64decode(re.search(r"octet-stream\">([^<]+)<", drawn)[1])))


def scale_of(drawn):
    return re.findall(r"<text class=scale [^>]*>([^<]+)<", drawn)


@pytest.mark.parametrize(
    ("low", "high", "unit", "written"),
    [
        (94.81 * MS, 138.3 * MS, "ns", ["80 ms", "100 ms", "120 ms", "140 ms"]),
        (0, 0.9 * MS, "ns", ["0 us", "250 us", "500 us", "750 us", "1,000 us"]),
        (0, 3.5 * 2**30, "bytes", ["0 GiB", "1 GiB", "2 GiB", "3 GiB", "4 GiB"]),
        (-0.07, 0.31, "change", ["-10 %", "0 %", "+10 %", "+20 %", "+30 %", "+40 %"]),
        (997, 1003, "per_second", ["996/s", "998/s", "1,000/s", "1,002/s", "1,004/s"]),
    ],
)
def test_ticks_are_round_and_enclose_the_values(low, high, unit, written):
    ticks, write = ticks_of(low, high, unit)
    assert [write(tick) for tick in ticks] == written
    assert ticks[0] <= low and ticks[-1] >= high


@pytest.mark.parametrize("value", [100 * MS, 1, 0, 2**40])
def test_axis_of_a_constant_series_spans_two_percent_each_way(value):
    low, high = limits([value, value])
    assert low <= value * 0.98 and high >= value * 1.02 and low < high


def test_constant_series_is_a_flat_line():
    heights = {float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", path_of(plot(*[100 * MS] * 5)))}
    assert len(heights) == 1


def test_missing_value_is_a_gap_and_never_zero():
    """v3 of 1, 2, -, 4, 5 ms has no value: two lines of two points each, none of them at the floor."""
    drawn = plot(1 * MS, 2 * MS, None, 4 * MS, 5 * MS)
    assert path_of(drawn).count("M") == 2 and path_of(drawn).count("L") == 2
    assert drawn.count("<circle") == 4
    assert packed_of(drawn)["series"][0]["y"][2] is None
    assert packed_of(drawn)["series"][0]["says"][2] == "-"


def test_small_chart_of_a_row_has_the_gap_too():
    points = tuple((f"v{at}", value, (), "", "") for at, value in enumerate([1.0, 2.0, None, 3.0]))
    assert path_of(str(spark(Trend("ns", points))).replace("class=line", 'class="line"')).count("M") == 2


def test_small_chart_of_two_versions_is_two_dots():
    drawn = str(spark(Trend("ns", (("v1", 1.0, (), "", ""), ("v2", 3.0, (), "", "")))))
    assert (drawn.count("<circle"), path_of(drawn.replace("class=line", 'class="line"'))) == (2, "")


def test_small_chart_says_by_how_much_a_value_is_beyond_its_scale():
    points = (("v1", 100.0, (), "", ""), ("v2", 101.0, (), "", ""), ("v3", 140.0, (), "", "worse"))
    assert ">+40.0 %</text>" in str(spark(Trend("ns", points, middle=100.0)))
    assert "</text>" not in str(spark(Trend("ns", points, middle=120.0)))


def test_axis_from_zero_starts_there_and_a_cut_one_says_where():
    values = (100 * MS, 110 * MS)
    assert scale_of(plot(*values, axis="zero"))[0] == "0 ms"
    assert "the axis begins at" not in plot(*values, axis="zero")
    cut = plot(*values)
    assert scale_of(cut)[0] == "100.0 ms" and "the axis begins at 100.0 ms" in cut


def test_axis_of_changes_starts_every_series_at_zero():
    """100 to 150 ms and 1 to 2 ms: +50 % and +100 %; what is said are the values themselves."""
    drawn = plot((100 * MS, 150 * MS), (1 * MS, 2 * MS), axis="change")
    assert scale_of(drawn)[0] == "0 %" and scale_of(drawn)[-1] == "+100 %"
    first, second = packed_of(drawn)["series"]
    assert first["y"][0] == second["y"][0] and first["y"][1] > second["y"][1]
    assert second["says"] == ["1.00 ms", "2.00 ms"]


def test_verdicts_have_a_shape_as_well_as_a_colour():
    series = PlotSeries("", "ns", (1.0, 2.0, 1.0), (), ("", "REGRESSED", "IMPROVED"), ("", "worse", "better"))
    drawn = str(chart(Plot(names=("v1", "v2", "v3"), series=(series,))))
    shapes = re.findall(r'<svg class="dot (\w+)".*?<path d="([^"]+)"', drawn)
    assert [tone for tone, _ in shapes] == ["worse", "better"] and shapes[0][1] != shapes[1][1]
    assert "v2: 2 ns, REGRESSED" in drawn


def test_series_of_one_chart_have_dashes_of_their_own():
    drawn = plot(*[(at, at + 1) for at in range(1, 9)])
    assert re.findall(r'<path class="curve s(\d)" d="M0 5', drawn) == list("012345")  # the first six of eight


def test_markers_have_a_shape_a_text_and_a_legend():
    markers = ((), (Marker("environment", "driver 535 -> 550"),), (Marker("note", "GELU"),))
    drawn = plot(1, 2, 3, markers=markers)
    assert "driver 535 -&gt; 550" in drawn and "GELU" in drawn
    legend = drawn.partition('<p class="legend">')[2]
    assert "environment changed" in legend and "note" in legend and "level" not in legend


def test_two_markers_of_one_version_stand_beside_each_other():
    both = (Marker("note", "GELU"), Marker("level", "a level begins"))
    shifts = re.findall(
        r'<svg class="mark [^>]*><title>[^<]+</title><path transform="translate\((\S+) 0',
        plot(1, 2, markers=((), both)),
    )
    assert shifts == ["-6", "6"]


def test_by_date_a_long_pause_is_wide_and_ticks_are_round_dates():
    """Days 0, 1 and 9: the second step is eight times the first."""
    day = 86_400.0
    start = 1_700_006_400.0  # 2023-11-15 00:00 UTC
    drawn = plot(1, 2, 3, places=(start, start + day, start + 9 * day), is_dated=True)
    first, second, third = packed_of(drawn)["x"]
    assert (third - second) / (second - first) == pytest.approx(8, rel=1e-3)
    written = re.findall(r">(2023-11-\d\d)<", drawn)
    assert len(written) > 2 and {*written} <= {f"2023-11-{at}" for at in (15, 17, 19, 21, 23)}


def test_moments_at_one_date_are_drawn():
    assert "<circle" in plot(1, 2, places=(5.0, 5.0), is_dated=True)


def test_long_and_hostile_names_stay_text_and_fit():
    names = (HOSTILE, "n" * 600, "v3")
    drawn = plot(1, 2, 3, names=names, heads=tuple(f"{name} head" for name in names))
    assert "<img" not in drawn and "<script>" not in drawn
    below = re.findall(r'<text class=""[^>]*>([^<]+)<', drawn)
    assert below and max(map(len, below)) <= 40  # a character of markup is up to 5
    assert packed_of(drawn)["names"][1] == "n" * 600


def test_a_file_has_no_links_and_a_page_has_them():
    more = {
        "links": (None, Target("diff", (("side", "v1"), ("side", "v2")))), "pair": Target("diff"),
        "zoom": Target("history"), "leads_to": "their diff",
    }  # fmt: skip
    series = (PlotSeries("", "ns", (1.0, 2.0)),)
    drawn = Plot(names=("v1", "v2"), series=series, **more)
    assert "<a " not in chart(drawn) and "data-pair" not in chart(drawn) and "role=img" in chart(drawn)
    page = str(chart(drawn, lambda target: f"/{target.page}?"))
    assert 'data-click="their diff"' in page and 'data-pair="/diff?"' in page and 'data-zoom="/history?"' in page
    assert packed_of(page)["links"] == ["", "/diff?"]
    # what holds links is no picture for a screen reader
    assert "role=group" in page and "role=img" not in page


def test_curve_has_its_peak_and_says_nothing_after_its_end():
    """1 GiB, 3 GiB after 1 s, until 2 s; the other one ends after 4 s."""
    gib = 2**30
    drawn = str(
        chart(Curves("bytes", (("v1", ((0.0, gib), (1.0, 3 * gib), (2.0, gib))), ("v2", ((0.0, gib), (4.0, gib))))))
    )
    assert "v1: at most 3.00 GiB after 1 s" in drawn
    data = packed_of(drawn)
    assert data["seconds"] == 4.0 and data["names"][1] == "after 1 s"
    assert data["series"][0]["says"] == ["1.00 GiB", "3.00 GiB", "1.00 GiB", "-"]
    assert data["series"][1]["says"] == ["1.00 GiB"] * 4
    assert scale_of(drawn)[0] == "0 GiB"


def test_changes_of_an_incident_have_signs_and_its_version_a_mark():
    drawn = str(chart(Courses(("v1", "v2"), (("step", (0.0, 2.0 * MS)), ("mm", (0.0, -1.0 * MS))), "v2")))
    assert [one["says"][1] for one in packed_of(drawn)["series"]] == ["+2.00 ms", "-1.00 ms"]
    assert "v2: version of the incident" in drawn and "a level begins" not in drawn


# ---- the history of series ----


def page_of(found):
    return str(reports.render(found, "html"))


def test_history_of_one_version_has_no_chart_and_of_two_has():
    points = [point("v1", 100 * MS), point("v2", 101 * MS)]
    assert "class=plot" not in page_of(history(points[:1]))
    assert "class=plot" in page_of(history(points))


def test_crosshair_says_value_change_verdict_runs_commit_and_what_came_along():
    points = [
        point("v1", 100 * MS),
        point("v2", 130 * MS, "REGRESSED", 0.3, commit="c0ffee0123456", note="GELU", environment="driver 1 -> 2"),
    ]
    data = packed_of(page_of(history(points)))
    assert data["series"][0]["says"][1] == "130.00 ms, +30.0 % against v1, REGRESSED, 3 runs"
    assert data["heads"][1] == "v2 · commit c0ffee0123 · environment: driver 1 -> 2 · note: GELU"


def test_several_series_are_in_one_chart_with_their_table():
    """Times and bytes share no axis, so that both are drawn as changes."""
    series = [
        {"series_id": number, "workload": "gpt", "configuration": "", "device": "H100", "kind": "op", "metric": metric,
         "unit": unit, "name": f"op{number}", "input_shapes": "", "part": "", "versions": 2, "runs": 6}
        for number, metric, unit in ((1, "device_self_ns", "ns"), (2, "bytes", "bytes"))
    ]  # fmt: skip
    points = [
        point(version, value, series_id=number)
        for number, values in ((1, (2 * MS, 3 * MS)), (2, (1024, 1024)))
        for version, value in zip(("v1", "v2"), values, strict=True)
    ]
    page = page_of(history(points, series=series, key="op*"))
    assert scale_of(page)[-1] == "+60 %"
    assert [one["says"][1].partition(",")[0] for one in packed_of(page)["series"]] == ["3.00 ms", "1.00 KiB"]
    table = page.partition("Values of the chart")[2]
    assert "3.00 ms" in table and "1.00 KiB" in table


def test_five_thousand_versions_are_readable_small_and_fast():
    words = [("REGRESSED", 0.3) if at % 100 == 99 else ("UNCHANGED", 0.0) for at in range(5000)]
    points = [
        point(f"v{at:04}", (100 + at % 7) * MS, word, change, commit=f"{at:040x}")
        for at, (word, change) in enumerate(words)
    ]
    runs = [
        {"series_id": 7, "version": row["version"], "run_id": at, "started_at_ns": at, "value": row["value"]}
        for at, row in enumerate(points)
    ]
    found = history(points, runs=runs)
    began = time.process_time()
    drawn = str(chart(document(found, Look(details=True, has_drawings=True)).blocks[0].chart))
    # a quadratic drawing would take a minute
    assert time.process_time() - began < 3.0
    assert len(drawn) < 200_000
    assert drawn.count('class="dot worse"') == 50 and "<circle" not in drawn
    assert len(packed_of(drawn)["x"]) == 5000
    labels = re.findall(r'<text class="(?:odd)?"[^>]*>(v\d+)<', drawn)
    assert 5 < len(labels) < 25 and labels[-1] == "v4999"
