"""How a calibration looks; the numbers are made by hand."""

from __future__ import annotations

import pandas as pd
import pytest
from msgspec.structs import replace

from tests.reports import workbooks
from tracker import reports
from tracker.results import CALIBRATION_COLUMNS, Calibration


def frame(table, rows):
    columns = CALIBRATION_COLUMNS[table]
    return pd.DataFrame([{**dict.fromkeys(columns), **row} for row in rows], columns=list(columns))


def ratios(kind, *means):
    return [
        {"kind": kind, "min_ratio": ratio, "splits": 20, "mean_false": mean, "worst_false": round(mean * 3),
         "splits_with_false": 2, "windows_false": 1}
        for ratio, mean in zip((0.01, 0.03, 0.1), means, strict=True)
    ]  # fmt: skip


def proposal(kind, used, false, proposed):
    return {
        "device": "NVIDIA H100", "kind": kind, "series": 40, "used_ratio": used, "used_false": false,
        "proposed_ratio": proposed,
    }  # fmt: skip


@pytest.fixture
def found():
    """Ops are quiet; collectives need more than what was tried."""
    noisy = {
        "series_id": 7, "kind": "op", "metric": "device_self_ns", "unit": "ns", "name": "aten::mm", "part": "",
        "input_shapes": "[[2,3],[3,4]]", "value": 2_000_000.0, "share": 0.02, "spread": 0.25, "low": 2_000_000.0,
        "high": 3_000_000.0, "upper_share": 0.4,
    }  # fmt: skip
    chances = [
        {**{name: noisy[name] for name in ("kind", "metric", "input_shapes", "part", "share")},
         "series_id": 8, "name": "aten::addmm", "change": change, "runs": runs, "recall": recall}
        for change, runs, recall in ((0.05, 3, 0.04), (0.05, 8, 0.25), (0.1, 3, 0.3), (0.1, 8, 0.78))
    ]  # fmt: skip
    return Calibration(
        recall=frame("recall", chances),
        ratios=frame("ratios", [*ratios("op", 0.5, 0.25, 0.0), *ratios("communication", 9.0, 6.0, 2.0)]),
        proposals=frame("proposals", [proposal("op", 0.03, 0.25, 0.01), proposal("communication", 0.1, 2.0, None)]),
        series=frame("series", [noisy]),
        workload="gpt",
        configuration="batch=8",
        device="NVIDIA H100",
        versions=("base",),
        run_ids=(1, 2, 3, 4, 5, 6),
        baseline=3,
        candidate=3,
        windows=1,
        splits=20,
        notes=("6 runs allow 3 against 3.",),
    )


def test_the_table_has_false_findings_by_smallest_change_and_what_is_in_use(found):
    lines = reports.render_calibration(found, "text").splitlines()
    assert lines[0] == "gpt, NVIDIA H100, batch=8: 6 runs of base"
    op, communication = (line.split() for line in lines if line.startswith(("  op ", "  communication")))
    assert op == ["op", "40", "3", "%", "1", "%", "0.50", "0.25", "0.00", "1"]
    assert communication == ["communication", "40", "10", "%", "none", "tried", "9.00", "6.00", "2.00", "1"]
    assert "Note: 6 runs allow 3 against 3." in lines


def test_noisy_series_have_their_two_levels(found):
    (line,) = (line for line in reports.render_calibration(found, "text").splitlines() if "aten::mm" in line)
    assert "2.00 ms, 3.00 ms (40.0 %)" in line
    assert "±25.0 %" in line


def test_the_last_line_says_what_is_noise_and_what_to_do(found):
    *_, last = reports.render_calibration(found, "text").splitlines()
    assert last.startswith(
        "On NVIDIA H100 smaller changes are noise. Proposed: communication: none tried instead of 10 %."
    )
    assert last.endswith("Noisiest: tracker history 7")
    quiet = replace(found, proposals=found.proposals.head(1), series=found.series.head(0))
    *_, last = reports.render_calibration(quiet, "text").splitlines()
    assert last.strip() == "On NVIDIA H100 the rule is quiet: at most one false finding per comparison for every kind."


def test_the_workbook_has_a_sheet_per_table_with_percents(found):
    dumped = workbooks.dump(reports.render_calibration(found, "xlsx"))
    assert "None" not in dumped
    for word in ("False findings", "Proposals", "Noisy series", "Upper share", "aten::mm"):
        assert word in dumped


def test_what_would_be_found_stands_by_the_size_of_the_change_and_the_runs(found):
    lines = reports.render_calibration(found, "text").splitlines()
    at = next(
        at for at, line in enumerate(lines) if line.startswith("What would be found, with 3, 8 runs of a version")
    )
    assert lines[at + 1].split()[-4:] == ["+5", "%", "+10", "%"]
    assert " ".join(lines[at + 2].split()) == "aten::addmm 2.0 % 4 %, 25 % 30 %, 78 %"
