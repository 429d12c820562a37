"""The gates that need the shared captures: repeats of one version, labelled changes, made series of a real trace.

Shared by the tests, which assert them, and by scripts/score_detectors.py, which prints them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import tracker
from tests.detectors.whole import judge_totals
from tests.real.per_run import Run, by_name, keys_of, run_of, table
from tracker.detectors import judge
from tracker.detectors.calibrate import calibrate, consecutive_splits, random_splits
from tracker.detectors.centre import Centre
from tracker.detectors.judging import Weights, judge_series
from tracker.detectors.presence import judge_calls, judge_presence
from tracker.judgement import lines_of
from tracker.judgement.follow import follow
from tracker.judgement.keep import watched_line
from tracker.store import judged

INJECTED = ("aten::bmm", "aten::native_layer_norm")
"""Operators that are slowed down in made series: a twentieth to a tenth of all that are judged."""

FACTORS = (1.1, 1.2)

_OP_KINDS = frozenset({"op", "op_name", "kernel"})
_FOUND = ("REGRESSED", "IMPROVED", "ADDED", "REMOVED")


# -- made series of a real trace ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Series:
    """Runs of tools/make_series.py. `values` (series, runs): device self time, nan for missing. `share`: of the step.

    `clean`: how many runs come first, as they are. After them, for each of FACTORS, `slow` runs in which INJECTED are
    slower. `truth` (series, factors): what that does to each series, as the tool does it without noise.
    """

    values: np.ndarray
    share: np.ndarray
    truth: np.ndarray
    clean: int
    slow: int

    @property
    def tested(self) -> np.ndarray:
        """Series that are large enough to be judged, and in all runs."""
        return (self.share >= 1e-4) & ~np.isnan(self.values).any(axis=1)

    def slowed(self, factor: float) -> np.ndarray:
        """The runs in which INJECTED take `factor` as long."""
        first = self.clean + self.slow * FACTORS.index(factor)
        return np.arange(first, first + self.slow)


def make_series(tool: Path, base: Path, out: Path, *, clean: int = 12, slow: int = 8) -> Series:
    """Runs made from the trace `base` with 2 % noise and 0.5 % drift, below the empty folder `out`."""

    def made(folder: str, clean: int, slow: int, *noise: str) -> list[Run]:
        firsts = [clean + 1 + slow * number for number in range(len(FACTORS))]
        inject = [
            f"--inject={name} x{factor} @{first}-{first + slow - 1}"
            for name in INJECTED
            for factor, first in zip(FACTORS, firsts, strict=True)
        ]
        runs = f"--runs={clean + slow * len(FACTORS)}"
        call = [sys.executable, str(tool), str(base), str(out / folder), runs, *noise, *inject]
        subprocess.run(call, check=True, capture_output=True)
        return [run_of(path, "device_self_ns") for path in sorted((out / folder).glob("run_*.gz"))]

    still = made("still", 1, 1, "--noise=0", "--drift=0")
    runs = made("noisy", clean, slow, "--noise=0.02", "--drift=0.005")
    keys = keys_of(runs, still)
    before = table(still, keys)
    step = float(np.mean([run.step_ns for run in runs[:clean]]))
    return Series(table(runs, keys), np.nan_to_num(before[:, 0]) / step, before[:, 1:] / before[:, :1], clean, slow)


@dataclass(frozen=True, slots=True)
class Score:
    """5 runs against 3. `false_per_500`: findings, slower or faster, per 500 operators and comparison where nothing
    changed. `recall`, `fdr`: where INJECTED are slower. `operators`: how many are judged.
    """

    false_per_500: float
    recall: float
    fdr: float
    operators: int


def score(series: Series, factor: float, *, draws: int = 40, seed: int = 1) -> Score:
    """The public `judge` on made series, the runs of both sides drawn at random."""
    values, share = series.values[series.tested], series.share[series.tested]
    truth = series.truth[series.tested, FACTORS.index(factor)]
    slower, same = np.isclose(truth, factor, rtol=1e-2), np.isclose(truth, 1.0, rtol=1e-6)
    draw = np.random.default_rng(seed)
    splits = random_splits(series.clean, 5, 3, most=draws, seed=seed)
    false = hits = wrong = 0
    for one, other in splits:
        before, after = values[:, list(one)], values[:, draw.choice(series.slowed(factor), 3, replace=False)]
        unchanged, changed = (
            judge(before, side, share=share)["verdict"].isin(["REGRESSED", "IMPROVED"]).to_numpy()
            for side in (values[:, list(other)], after)
        )
        false, hits, wrong = false + unchanged.sum(), hits + changed[slower].sum(), wrong + changed[same].sum()
    per_500 = 500 * false / (len(values) * len(splits))
    return Score(float(per_500), float(hits / (slower.sum() * len(splits))), wrong / max(1, hits + wrong), len(values))


# -- 5 runs against 3, all ways of judging -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Findings:
    """What one comparison says: ops, sums by name, calls, added and removed, and the run-level series."""

    ops: pd.DataFrame
    names: pd.DataFrame
    calls: pd.DataFrame
    presence: pd.DataFrame
    totals: pd.DataFrame
    centre: Centre

    def called(self, frame: str, *words: str) -> set:
        """The names that `frame` gives one of these verdicts."""
        rows = getattr(self, frame)
        return {key[0] for key in rows.index[rows["verdict"].isin(words)]}


def compare(before: list[Run], after: list[Run]) -> Findings:
    """All ways of judging `after` against `before`."""
    keys = keys_of(before, after)
    step = max(np.mean([run.step_ns for run in side]) for side in (before, after))
    x, y = table(before, keys), table(after, keys)
    judged_ops = judge_series(x, y, Weights(step=step))
    names = keys_of([by_name(run) for run in before], [by_name(run) for run in after])
    sums = [table([by_name(run) for run in side], names) for side in (before, after)]
    by_names = judge_series(*sums, Weights(step=step), center=judged_ops.centre)
    calls = pd.DataFrame(judge_calls(table(before, keys, "calls"), table(after, keys, "calls"), x, y, step))
    presence = pd.DataFrame(judge_presence(x, y, step))
    found = judged_ops.table["verdict"].isin(["REGRESSED", "IMPROVED"]).to_numpy()
    explained = np.nansum(np.where(found, judged_ops.table["contribution"], 0.0)) * step
    explained += presence.loc[presence["verdict"].isin(["ADDED", "REMOVED"]), "contribution"].sum() * step
    rows = [
        np.array([[getattr(run, name) for run in side] for name in ("step_ns", "free_ns", "peak_bytes")])
        for side in (before, after)
    ]
    free = float(rows[1][1].mean() - rows[0][1].mean())
    totals = judge_totals(
        *rows,
        judged_ops.centre,
        explained=np.array([explained + free, np.nan, np.nan]),
        timed=np.array([True, True, False]),
        device_timed=False,
    )
    index = pd.Index(keys, tupleize_cols=False)
    return Findings(
        judged_ops.table.set_index(index),
        by_names.table.set_index(pd.Index(names, tupleize_cols=False)),
        calls.set_index(index),
        presence.set_index(index),
        totals.set_axis(["step", "free", "memory"]),
        judged_ops.centre,
    )


def found_in_windows(repeats: Sequence[Run]) -> list[tuple[str, str]]:
    """All findings of all consecutive 5-against-3 windows of repeats: (way of judging, name). Every one is false."""
    found = []
    for one, other in consecutive_splits(len(repeats)):
        said = compare([repeats[run] for run in one], [repeats[run] for run in other])
        for frame in ("ops", "names", "calls", "presence"):
            found += [(frame, name) for name in sorted(said.called(frame, *_FOUND))]
        found += [("totals", "step")] * (said.totals["verdict"]["step"] in _FOUND)
    return found


def false_per_split(repeats: Sequence[Run], *, draws: int) -> float:
    """Ops found slower or faster, per random split of repeats into 5 and 3."""
    values = table(repeats, keys_of(repeats))
    weights = Weights(step=float(np.mean([run.step_ns for run in repeats])))
    splits = random_splits(len(repeats), 5, 3, most=draws, seed=0)
    return float(calibrate(values, splits, weights, ratios=(0.03,))["mean_false"][0])


# -- run by run --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A series that is confirmed to be worse (`sign` 1) or better (-1) from `version` on. `how`: `confirmed`,
    `reopened`, `relapsed`.
    """

    version: str
    kind: str
    name: str
    sign: int
    change: str
    how: str


def nightly_versions(folder: Path) -> dict[str, list[Path]]:
    """The captures of nightly_gpt by version."""
    return {f"v{number:02}": sorted(folder.glob(f"v{number:02}_*.gz")) for number in range(1, 13)}


@contextmanager
def ingested(versions: Mapping[str, Iterable[Path]]):
    """A database in memory with the captures of these versions, in this order."""
    with tracker.open_store("sqlite://") as store:
        for version, paths in versions.items():
            tracker.ingest(paths, version=version, workload="gpt", store=store)
        yield store


def followed(store) -> list[Confirmed]:
    """What the follower confirms on the one line of a database, by the version it is dated to.

    The runs of a version are judged together, so that what came back did so in the version of the run that decided.
    """
    (line,) = lines_of(store)
    with store.connect() as connection:
        runs = judged.runs_of(connection, line)
        watched, _ = watched_line(connection, line, runs)
    places = {run.run_id: place for place, run in enumerate(runs)}
    found = []
    for tracked in follow(watched):
        kind, name = watched.families[tracked.row][0], watched.names[tracked.row]
        for step in tracked.transitions:
            if step.kind == "confirmed":
                first = tracked.first
            elif step.kind in {"reopened", "relapsed"}:
                first = places[step.run]
            else:
                continue
            found.append(Confirmed(runs[first].version, kind, name, tracked.sign, tracked.change, step.kind))
    return found


def regressions(found: Iterable[Confirmed], *versions: str) -> list[Confirmed]:
    """What is confirmed, or confirmed anew, to be worse from one of `versions` on; without versions, from any."""
    return [
        one for one in found if one.sign > 0 and one.how != "relapsed" and (one.version in versions or not versions)
    ]


QUIET = ("v02", "v03", "v04", "v06", "v07", "v09", "v12")
"""Versions of nightly_gpt in which nothing got worse."""

LABELS: Mapping[str, tuple[tuple[str, int, str], ...]] = {
    "v05": (
        ("op_name", 1, "aten::native_layer_norm"), ("op_name", 1, "aten::native_layer_norm_backward"),
        ("op_name", 1, "aten::copy_"),
    ),
    "v08": (
        ("op_name", 1, "aten::mul"), ("op_name", 1, "aten::pow"), ("op_name", 1, "aten::tanh"),
        ("op_name", 1, "aten::add"), ("op_name", -1, "aten::gelu"), ("op_name", -1, "aten::gelu_backward"),
        ("run", 1, "step"),
    ),
    "v10": (("op", 1, "aten::copy_"), ("run", 1, "peak memory")),
    "v11": (("run", 1, "step"),),
}  # fmt: skip
"""What MANIFEST.md says of nightly_gpt: kind of series, 1 for worse and -1 for gone, name. v10 copies other shapes than
before, and comes before the memory of v08 had recovered, so that its memory is the same finding, bad again.
"""


def missed(found: Sequence[Confirmed], version: str) -> list[tuple[str, int, str]]:
    """The labels of a version that the follower did not find, or dated to another version."""
    known = {(one.kind, one.sign, one.name) for one in found if one.version == version}
    return [label for label in LABELS[version] if label not in known]


def ops_blamed(found: Iterable[Confirmed], version: str) -> list[Confirmed]:
    """The ops and kernels that are said to be worse from `version` on."""
    return [one for one in regressions(found, version) if one.kind in _OP_KINDS]
