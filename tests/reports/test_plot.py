"""Drawings of series: the axis shows a change of some per cent, and says where it begins."""

from __future__ import annotations

import re

import pandas as pd
from msgspec.structs import replace

from tracker.reports import render_history, render_plot
from tracker.reports._plot import limits
from tracker.results import HISTORY_COLUMNS, History


def history(*values):
    """A series whose version number i took `values[i]` ms in its only run."""
    series = pd.DataFrame([{"series_id": 1, "workload": "gpt", "configuration": "", "device": "cpu", "kind": "op",
                            "metric": "host_self_ns", "unit": "ns", "name": "aten::mm", "input_shapes": "", "part": "",
                            "versions": len(values), "runs": len(values)}])  # fmt: skip
    points = [
        {"series_id": 1, "version": f"v{at}", "value": value * 1e6, "minimum": value * 1e6, "maximum": value * 1e6,
         "runs": 1, "change_point": False, "pinned": False}
        for at, value in enumerate(values)
    ]  # fmt: skip
    frames = {
        "series": series,
        "points": pd.DataFrame(points).reindex(columns=list(HISTORY_COLUMNS["points"])),
        "runs": pd.DataFrame(points).reindex(columns=list(HISTORY_COLUMNS["runs"])),
        "environment": pd.DataFrame(columns=list(HISTORY_COLUMNS["environment"])),
    }
    return History(**frames, pinned=None)


def heights(drawing):
    """How far down each of the large dots lies, in pixels."""
    return [float(y) for y in re.findall(r'cy="([\d.]+)" r="3.5"', drawing)]


def test_a_change_of_five_per_cent_takes_most_of_the_panel():
    drawing = render_plot(history(100.0, 100.0, 105.0), ".svg", tell=print)
    before, _, after = heights(drawing)
    assert before - after > 100  # of 156 pixels
    assert "the axis begins at 99.50 ms, not at 0" in drawing


def test_noise_of_a_thousandth_stays_flat():
    before, after = heights(render_plot(history(100.0, 100.1), ".svg", tell=print))
    assert before - after < 10


def test_what_comes_near_zero_is_drawn_from_zero():
    drawing = render_plot(history(1.0, 10.0), ".svg", tell=print)
    assert "0.00 ms" in drawing and "not at 0" not in drawing
    assert limits([0.0, 0.0]) == (0.0, 1.0)


def test_a_lasting_change_that_is_called_unchanged_says_how_little_of_the_step_it_is():
    told = history(100.0, 110.0, 110.0)
    points = told.points.assign(
        change_point=[False, True, False], baseline_verdict="BELOW_LIMIT", baseline_contribution=[None, 0.0009, 0.0]
    )
    lines = render_history(replace(told, points=points), "text").splitlines()
    assert "    lasting change from v1 on, +0.09 % of the step: too little for a finding" in lines
