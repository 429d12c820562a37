"""How a calibration looks; the numbers are made by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.reports import workbooks
from tracker import reports
from tracker.results import Calibration
from tracker.results.thresholds import (
    CalibrationRows,
    CalibrationSuspect,
    NoisySeries,
    ProposedRatio,
    SeriesPower,
    TriedRatio,
)


def ratios(kind, *means):
    return [
        TriedRatio(
            kind=kind, min_ratio=ratio, splits=20, tested=40.0, false_share=mean / 40, mean_false=mean,
            worst_false=round(mean * 3), splits_with_false=2, windows_false=1,
        )
        for ratio, mean in zip((0.01, 0.03, 0.1), means, strict=True)
    ]  # fmt: skip


def proposal(kind, used, false, proposed):
    return ProposedRatio(
        device="NVIDIA H100", kind=kind, series=40, used_ratio=used, used_false=false, used_share=false / 40,
        proposed_ratio=proposed,
    )  # fmt: skip


@pytest.fixture
def found():
    """Ops are quiet; collectives need more than what was tried."""
    noisy = {
        "series_id": 7, "kind": "op", "metric": "device_self_ns", "unit": "ns", "name": "aten::mm", "part": "",
        "input_shapes": "[[2,3],[3,4]]", "value": 2_000_000.0, "share": 0.02, "spread": 0.25,
    }  # fmt: skip
    named = {name: noisy[name] for name in ("kind", "metric", "input_shapes", "part")}
    power = [
        SeriesPower(**named, share=0.02, series_id=8, name="aten::addmm", runs=runs, detectable=least)
        for runs, least in ((3, 0.12), (8, 0.05))
    ]
    suspect = CalibrationSuspect(
        **named, series_id=9, name="aten::bmm", version="v9", change=0.2, contribution=0.01, runs=1, more_runs=2
    )
    return Calibration(
        rows=CalibrationRows(
            ratios=(*ratios("op", 0.5, 0.25, 0.0), *ratios("communication", 9.0, 6.0, 2.0)),
            proposals=(proposal("op", 0.03, 0.25, 0.01), proposal("communication", 0.1, 2.0, None)),
            power=tuple(power),
            suspects=(suspect,),
            series=(NoisySeries(**noisy),),
        ),
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


def test_false_verdicts_stand_by_kind_with_the_threshold_in_use_and_the_one_needed(found):
    lines = reports.render(found, "text").splitlines()
    assert lines[0] == (
        "gpt, NVIDIA H100, batch=8: 6 runs of base; 3 against 3 runs, 1 window of neighbours, 20 splits"
    )
    op, collective = (line.split() for line in lines if line.startswith(("  op ", "  collective")))
    assert op == ["op", "40", "3", "%", "0.25", "0.62", "%", "1", "%"]
    assert collective == ["collective", "40", "10", "%", "2.00", "5", "%", "above", "10", "%"]
    assert "6 runs allow 3 against 3." in lines


def test_details_have_the_false_verdicts_at_every_threshold(found):
    lines = [" ".join(line.split()) for line in reports.render(found, "text", details=True).splitlines()]
    assert any(line.endswith("needed at 1 % at 3 % at 10 %") for line in lines)
    assert any(line.startswith("collective 40 ") and line.endswith("9.00 6.00 2.00") for line in lines)


def test_noisy_series_have_their_spread(found):
    (line,) = (line for line in reports.render(found, "text").splitlines() if "aten::mm" in line)
    assert "2.00 ms" in line
    assert "±25.0 %" in line


def test_headline_says_what_is_found_and_whether_thresholds_are_quiet(found):
    step = tuple(replace(row, kind="run", name="step") for row in found.rows.power)
    whole = replace(found, rows=replace(found.rows, power=step))
    lines = reports.render(whole, "text", width=200).splitlines()
    assert lines[1] == (
        "A slowdown of the step is found from 12 % with 3 runs on NVIDIA H100; "
        "thresholds are too low for collective (2 false verdicts)"
    )
    assert lines[-4:] == [
        "Next:",
        "  tracker calibrate base --workload gpt --apply --reason ...",
        "  tracker calibrate base --workload gpt --details",
        "  tracker history 7",
    ]
    quiet = replace(whole, rows=replace(whole.rows, proposals=found.rows.proposals[:1], series=()))
    lines = reports.render(quiet, "text", width=200).splitlines()
    assert lines[1].endswith("; the thresholds give at most 1 false verdict per comparison")
    assert lines[-1] == "  tracker calibrate base --workload gpt --details"


def test_the_workbook_has_a_sheet_per_table_with_percents(found):
    dumped = workbooks.dump(reports.render(found, "xlsx"))
    assert '"None"' not in dumped
    for word in ("Proposals", "aten::mm", "aten::addmm", "aten::bmm"):
        assert word in dumped


def test_power_stands_by_the_runs_of_a_version_and_suspects_by_what_decides_them(found):
    lines = [" ".join(line.split()) for line in reports.render(found, "text").splitlines()]
    assert any(line.endswith("3 runs 8 runs") for line in lines)
    assert any("aten::addmm" in line and line.endswith("+12.0 % +5.0 %") for line in lines)
    assert any("aten::bmm" in line and "+20.0 % 2" in line for line in lines)
