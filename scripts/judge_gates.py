"""Prints the gates of the judgement with their figures: how often it is wrong, and how much it finds.

    .venv/bin/python scripts/judge_gates.py                    # on made runs
    .venv/bin/python scripts/judge_gates.py --shared FOLDER    # also on the real repeats in FOLDER/data/torch_cpu

Exit 1 where a gate fails.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.detectors import gates, made  # noqa: E402

LINE = "{:<58} {:>12} {:>10}  {}"


def main() -> int:
    """All gates in turn; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, help="folder of the shared captures")
    parser.add_argument("--draws", type=int, default=40, help="comparisons per gate")
    args = parser.parse_args()
    print(LINE.format("gate", "figure", "limit", ""))
    passed = [*judging("made runs", made.operators(500, 40), args.draws), *dating()]
    if args.shared:
        os.environ["TRACKER_SHARED"] = str(args.shared)
        passed += real(args.draws)
    return 0 if all(passed) else 1


def row(gate: str, figure: float, limit: float, *, at_least: bool = False) -> bool:
    """One line of the table; whether the gate holds."""
    holds = figure >= limit if at_least else figure <= limit
    print(LINE.format(gate, f"{figure:.3f}", f"{'>=' if at_least else '<='} {limit:g}", "ok" if holds else "FAILS"))
    return holds


def judging(name: str, runs: np.ndarray, draws: int) -> list[bool]:
    """The gates of one comparison, on random splits of `runs` (series, runs)."""
    passed = []
    for factor, recall in ((1.10, 0.60), (1.20, 0.80)):
        rates = gates.judge_rates(runs, factor, draws=draws)
        label = f"{name}, 5 against 3, +{factor - 1:.0%}"
        passed += [
            row(f"{label}: false, nothing changed", rates.false_unchanged, 1.0),
            row(f"{label}: recall", rates.recall, recall, at_least=True),
            row(f"{label}: false discovery rate", rates.fdr, 0.08),
        ]
    still, drifting = (gates.judge_rates(runs, 1.10, drift=drift, draws=draws).recall for drift in (0.0, 0.05))
    passed.append(row(f"{name}, 5 % drift: recall lost at +10 %", still - drifting, 0.03))
    confirmed = gates.confirmed_rates(runs, 1.10, draws=draws)
    passed.append(row(f"{name}, 5 against 1, confirmed by 2: false", confirmed.false_unchanged, 1.0))
    print(f"    recall {confirmed.recall:.3f}, false discovery rate {confirmed.fdr:.3f}")
    return passed


def dating() -> list[bool]:
    """The gates of change points, on 300 made series of 60 runs: normal and heavy-tailed, 1 to 5 % noise."""

    def noise(draw: np.random.Generator, number: int) -> np.ndarray:
        wild = draw.standard_t(3, 60) if number % 2 else draw.normal(0, 1, 60)
        return 100 * np.exp(draw.choice([0.01, 0.02, 0.03, 0.05]) * wild)

    series = gates.labelled(300, 60, noise, seed=7)
    found = gates.change_point_rates(series)
    told = sum(len(gates.replayed(unchanged)) for unchanged, _, _ in series[:60])
    return [
        row("change points: F1", found.f1, 0.77, at_least=True),
        row("change points: precision", found.precision, 0.95, at_least=True),
        row("change points: unchanged series with one", found.false_series, 0),
        row("change points, looking after every run: false per 100 runs", told / 36, 0.1),
    ]


def real(draws: int) -> list[bool]:
    """The same rule on the 20 repeats of one version, where nothing changed."""
    from tests.real import data
    from tests.real.per_run import keys_of, run_of, table
    from tracker.detectors.calibrate import calibrate, consecutive_splits, random_splits, smallest_ratio
    from tracker.detectors.judging import Weights

    runs = [run_of(path) for path in sorted(data.path("torch_cpu/repeats_gpt").glob("*.gz"))]
    values = table(runs, keys_of(runs))
    weights = Weights(step=float(np.mean([run.step_ns for run in runs])))
    windows = calibrate(values, consecutive_splits(len(runs)), weights)
    print(windows.to_string(index=False))
    print(f"    smallest change that stays silent: {smallest_ratio(windows)}")
    at = windows.set_index("min_ratio").loc[0.03]
    splits = calibrate(values, random_splits(len(runs), 5, 3, most=draws, seed=0), weights, ratios=(0.03,))
    return [
        row("20 real repeats, consecutive windows: findings in all", at["mean_false"] * at["splits"], 1.0),
        row("20 real repeats, random splits: findings of either side", float(splits["mean_false"][0]), 1.0),
    ]


if __name__ == "__main__":
    sys.exit(main())
