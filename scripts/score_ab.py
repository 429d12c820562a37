"""Print how often an A/B of two builds is wrong, and how many runs it takes: docs/ab.md has the table.

    .venv/bin/python scripts/score_ab.py                  # 2,000 experiments a cell
    .venv/bin/python scripts/score_ab.py --experiments 200
    .venv/bin/python scripts/score_ab.py FOLDER           # operators, too: FOLDER/torch_cpu has repeats_gpt

Step times are made: six kinds of noise, 20 runs of history and 80 runs by turns, each pair in random order. The seed is
fixed. Operators are those of 20 repeats of one small model: runs of pairs are drawn from the repeats.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from msgspec import Struct

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tracker.experiment.decide import MOST_PAIRS, Looks, Word, look_after_each_pair, noise_of_differences  # noqa: E402
from tracker.experiment.decide_operators import decide_operators  # noqa: E402

HISTORY = 20
RUNS = 2 * MOST_PAIRS
LIMIT = 0.05
EXPERIMENTS = 2000
SEED = 5
CHANGES = (0.0, 0.01, 0.03, 0.05, 0.10)
MISSED_NOISES = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Standard deviations of y."""
MISSED_LIMITS = (0.01, 0.02, 0.05, 0.1, 0.2)
HISTORY_RATIOS = {
    "without history": None,
    "a history three times as noisy": 3.0,
    "a history as noisy as today": 1.0,
    "a history a third as noisy": 1.0 / 3.0,
    "a history a tenth as noisy": 0.1,
}
OPERATOR_CHANGES = (0.0, 0.05, 0.10, 0.20)
OPERATOR_PAIRS = (2, 4, 8, 12, 20)
OPERATOR_HISTORY = 8
COMPARISONS = 100


class Noise(Struct, frozen=True):
    """How log step times vary: standard deviation, correlation of neighbouring runs, degrees of freedom of Student's t
    (inf: normal), drift over the experiment, and by how much one run in ten is longer.
    """

    words: str
    deviation: float
    correlation: float = 0.0
    freedom: float = np.inf
    drift: float = 0.0
    outlier: float = 0.0


NOISES = (
    Noise("5.45 %, neighbours alike by .5", 0.0545, correlation=0.5),
    Noise("2.5 %, heavy tails", 0.025, correlation=0.05, freedom=5.0),
    Noise("3.55 %, neighbours alike by .4", 0.0355, correlation=0.4),
    Noise("1.5 %, a drift of 10 %", 0.015, drift=0.1),
    Noise("1.5 %, one run in ten +30 %", 0.015, outlier=0.3),
    Noise("0.5 %, neighbours alike by .8", 0.005, correlation=0.8),
)


class Score(Struct, frozen=True):
    """How experiments with one noise ended, as parts of 1, and their mean runs of both sides together.

    `false`: decided where nothing changed, at any of 80 runs; `false_quiet`: the same with a history half as noisy as
    today; `runs`, `slower`, `same`: by change.
    """

    words: str
    false: float
    false_quiet: float
    runs: dict[float, float]
    slower: dict[float, float]
    same: dict[float, float]


def make_logs(noise: Noise, experiments: int, draw: np.random.Generator) -> np.ndarray:
    """Return logs of step times (experiments, runs): the history, then the runs of the experiment."""
    shape = (experiments, HISTORY + RUNS)
    steps = draw.standard_normal(shape)
    if np.isfinite(noise.freedom):
        steps = draw.standard_t(noise.freedom, shape) / np.sqrt(noise.freedom / (noise.freedom - 2.0))
    logs = steps.copy()
    for run in range(1, shape[1]):
        logs[:, run] = noise.correlation * logs[:, run - 1] + np.sqrt(1.0 - noise.correlation**2) * steps[:, run]
    logs *= noise.deviation
    logs += noise.outlier * (draw.random(shape) < 0.1)
    direction = np.where(draw.random((experiments, 1)) < 0.5, -1.0, 1.0)
    return logs + direction * noise.drift * np.arange(shape[1]) / shape[1]


def make_pairs(logs: np.ndarray, change: float, draw: np.random.Generator) -> np.ndarray:
    """Return y (experiments, pairs) of runs by turns, of which each pair is in random order."""
    pairs = logs[:, HISTORY:].reshape(len(logs), -1, 2)
    order = np.where(draw.random(pairs.shape[:2]) < 0.5, -1.0, 1.0)
    return order * (pairs[:, :, 1] - pairs[:, :, 0]) + np.log1p(change)


def end_of(looks: Looks) -> tuple[np.ndarray, np.ndarray]:
    """Return the word that each experiment ends with, and how many runs it took."""
    is_decided = looks.words != Word.UNDECIDED
    first = is_decided.argmax(axis=1)
    words = looks.words[np.arange(len(first)), first]
    return words, 2 * np.where(is_decided.any(axis=1), first + 1, looks.words.shape[1])


def part_called_different(looks: Looks) -> float:
    """Return the part of experiments that are slower or faster after any of their pairs, if none ended before.

    Such a change within the limit would be "no difference" first, so the interval is looked at, not the word.
    """
    is_different = (looks.low > 0) | (looks.high < 0)
    return float(is_different[:, 1:].any(axis=1).mean())


def score(noise: Noise, experiments: int) -> Score:
    """Return how experiments with this noise end."""
    runs, slower, same = {}, {}, {}
    false = false_quiet = 0.0
    for number, change in enumerate(CHANGES):
        draw = np.random.default_rng([SEED, NOISES.index(noise), number])
        logs = make_logs(noise, experiments, draw)
        history = noise_of_differences(np.diff(logs[:, :HISTORY], axis=1))
        log_ratios = make_pairs(logs, change, draw)
        looks = look_after_each_pair(log_ratios, LIMIT, history)
        words, taken = end_of(looks)
        runs[change] = float(taken.mean())
        slower[change] = float((words == Word.SLOWER).mean())
        same[change] = float((words == Word.NO_DIFFERENCE).mean())
        if change == 0.0:
            false = part_called_different(looks)
            false_quiet = part_called_different(look_after_each_pair(log_ratios, LIMIT, history / 2.0))
    return Score(noise.words, false, false_quiet, runs, slower, same)


def score_all(experiments: int = EXPERIMENTS) -> list[Score]:
    """Return how experiments end, with each noise."""
    return [score(noise, experiments) for noise in NOISES]


def format_table(scores: list[Score]) -> str:
    """Return the table of docs/ab.md."""
    lines = [
        "| noise of a run | false; history half as noisy | mean runs at +10, +5, +3, 0 % | "
        "no difference of 5 %: decided at 0, wrong at +5 % | slower at +1, +3, +5 % |",
        "|---|---|---|---|---|",
    ]
    for one in scores:
        runs = ", ".join(f"{one.runs[change]:.1f}" for change in (0.10, 0.05, 0.03, 0.0))
        slower = ", ".join(f"{one.slower[change]:.2f}" for change in (0.01, 0.03, 0.05))
        lines.append(
            f"| {one.words} | {one.false:.3f}; {one.false_quiet:.3f} | {runs} | {one.same[0.0]:.2f}, "
            f"{one.same[0.05]:.3f} | {slower} |"
        )
    return "\n".join(lines)


def table() -> str:
    """Return the table of docs/ab.md, of 2,000 experiments a cell."""
    return format_table(score_all())


def count_missed(experiments: int, history_ratio: float | None) -> tuple[int, int]:
    """Return how many experiments with a candidate 3 limits slower are "no difference" at any pair, and of how many.

    `history_ratio`: the noise of the history by that of today; None: without history.
    """
    draw = np.random.default_rng([SEED, 3])
    missed = total = 0
    for noise_sd in MISSED_NOISES:
        for limit in MISSED_LIMITS:
            log_ratios = np.log1p(3.0 * limit) + noise_sd * draw.standard_normal((experiments, MOST_PAIRS))
            history = None if history_ratio is None else np.full(experiments, noise_sd * history_ratio)
            looks = look_after_each_pair(log_ratios, limit, history)
            missed += int((looks.words == Word.NO_DIFFERENCE).any(axis=1).sum())
            total += experiments
    return missed, total


def print_missed(experiments: int) -> None:
    """Print how often a candidate 3 limits slower is "no difference"."""
    for words, ratio in HISTORY_RATIOS.items():
        missed, total = count_missed(experiments, ratio)
        print(f"3 limits slower, {words}: no difference in {missed:,} of {total:,}", flush=True)


# ---- operators ----


class FoundOperators(Struct):
    """Counts over comparisons: operators that were slowed, those of them that were found, and others that were."""

    slowed: int = 0
    found: int = 0
    false: int = 0


def score_operators(
    logs: np.ndarray, step_ns: float, change: float, comparisons: int, *, has_history: bool
) -> dict[int, FoundOperators]:
    """Return by number of pairs how the operators of comparisons were decided, in all looks up to that pair.

    `logs` (operators, runs): of runs of one build, of which whole runs are drawn, 8 of them as the history. A tenth of
    the operators is slower by `change` (0: none), of those that lengthen the step by 0.1 % or more.
    """
    draw = np.random.default_rng([SEED, round(1000 * change)])
    changeable = np.flatnonzero(np.exp(logs).mean(axis=1) * change >= 0.001 * step_ns)
    counts = {pairs: FoundOperators() for pairs in OPERATOR_PAIRS}
    most = max(OPERATOR_PAIRS)
    for _ in range(comparisons):
        picked = draw.integers(0, logs.shape[1], OPERATOR_HISTORY + 2 * most)
        history = (logs[:, picked[:OPERATOR_HISTORY]],) if has_history else ()
        baseline, candidate = logs[:, picked[OPERATOR_HISTORY::2]], logs[:, picked[OPERATOR_HISTORY + 1 :: 2]].copy()
        is_slowed = np.zeros(len(logs), dtype=bool)
        if change:
            is_slowed[draw.choice(changeable, max(2, len(logs) // 10), replace=False)] = True
        candidate[is_slowed] += np.log1p(change)
        ever_found = np.zeros(len(logs), dtype=bool)
        for pairs in range(2, most + 1):
            step = np.full(pairs, step_ns)
            for one in decide_operators(baseline[:, :pairs], candidate[:, :pairs], step, history):
                ever_found[one.row] |= one.is_found
            if pairs in counts:
                counts[pairs].slowed += int(is_slowed.sum())
                counts[pairs].found += int((ever_found & is_slowed).sum())
                counts[pairs].false += int((ever_found & ~is_slowed).sum())
    return counts


def read_repeats(folder: Path) -> tuple[np.ndarray, float]:
    """Return the logs of the operators (by name and shapes) that all 20 repeats have, and their median step (ns)."""
    import score_detectors

    with tempfile.TemporaryDirectory() as own:
        runs = score_detectors.read(folder, Path(own) / "repeats.db")["repeats"]
    is_operator = np.array([key[0] == "op" for key in runs.keys])
    values = runs.values[is_operator & ~np.isnan(runs.values).any(axis=1)]
    step = float(np.median(runs.values[runs.named("step", "run")]))
    values = values[(values > 0).all(axis=1)]
    return np.log(values[values.mean(axis=1) >= 0.001 * step]), step


def print_operators(folder: Path, comparisons: int) -> None:
    """Print how operators of pairs made of the repeats are decided."""
    logs, step_ns = read_repeats(folder)
    print(f"\n{len(logs)} operators, {comparisons} comparisons; found of those slowed, false per comparison:")
    for has_history in (True, False):
        for change in OPERATOR_CHANGES:
            counts = score_operators(logs, step_ns, change, comparisons, has_history=has_history)
            cells = []
            for pairs, count in counts.items():
                recall = count.found / max(count.slowed, 1)
                cells.append(f"{pairs} pairs {recall:.2f}, {count.false / comparisons:.3f}")
            words = "with" if has_history else "without"
            print(f"+{change:.0%} {words} history: {'; '.join(cells)}", flush=True)


def main() -> None:
    """Print the table, and with a folder of captures how operators are decided."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="shared captures, for the operators")
    parser.add_argument("--experiments", type=int, default=EXPERIMENTS, help="of each cell of the table")
    parser.add_argument("--comparisons", type=int, default=COMPARISONS, help="of operators, per change")
    arguments = parser.parse_args()
    print(format_table(score_all(arguments.experiments)))
    print_missed(arguments.experiments)
    if arguments.folder:
        print_operators(arguments.folder, arguments.comparisons)


if __name__ == "__main__":
    main()
