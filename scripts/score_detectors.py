"""Prints the gates of the judgement with their figures: how often it is wrong, how much it finds, how it dates it.

First of what users are told, the whole way from runs in a database to findings, incidents and exit codes; then of the
judge alone, which says where a figure comes from.

    .venv/bin/python scripts/score_detectors.py                    # on made runs
    .venv/bin/python scripts/score_detectors.py --shared FOLDER    # also on real ones: FOLDER/data, FOLDER/tools

Exit 1 where a gate fails. A figure without a limit is no gate.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.detectors import gates, made, made_lines  # noqa: E402
from tests.detectors.stories import changes  # noqa: E402
from tests.detectors.whole_rates import Alarms, Found, alarms_of, found_of  # noqa: E402
from tests.real import gates as real  # noqa: E402
from tests.real import noise, whole_way  # noqa: E402
from tests.real.nights import as_versions, made_story, nights  # noqa: E402
from tests.real.per_run import run_of  # noqa: E402
from tracker.detectors import judge  # noqa: E402

LINE = "{:<76} {:>9} {:>8}  {}"
RECALL = {1.1: 0.6, 1.2: 0.8}
WHOLE_MADE = {0.05: None, 0.1: 0.6, 0.2: 0.8, 0.5: 0.95}
WHOLE_REAL = {0.05: None, 0.1: 0.4, 0.2: 0.8, 0.5: 0.9}
"""Slow-down -> least recall of the whole way; None: a figure, no gate. Real runs of a host vary more."""
FDR = 0.06
REPEATED = ((40, 1), (20, 2), (8, 5))
"""Versions and runs of each in which nothing changes."""
BASES = ("two_ranks_nccl/rank-0", "a100_vs_v100_nccl/control")


@dataclass(frozen=True, slots=True)
class Gate:
    """A line of the table. `limit`: what `figure` must not exceed, or must reach with `at_least`; None: no gate."""

    name: str
    figure: float
    limit: float | None = None
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the figure keeps the limit."""
        if self.limit is None:
            return True
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit

    def __str__(self) -> str:
        if self.limit is None:
            return LINE.format(self.name, f"{self.figure:.3f}", "", "")
        bound = f"{'>=' if self.at_least else '<='} {self.limit:g}"
        return LINE.format(self.name, f"{self.figure:.3f}", bound, "ok" if self.holds else "FAILS").rstrip()


def main() -> int:
    """All gates in turn; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, help="folder of the shared captures and tools")
    parser.add_argument("--draws", type=int, default=40, help="comparisons per gate; lines of versions: a tenth of it")
    args = parser.parse_args()
    print(f"python {platform.python_version()}, numpy {np.__version__}, pandas {pd.__version__}")
    print(LINE.format("gate", "figure", "limit", ""))
    lines = max(1, args.draws // 10)
    sections: list[Iterator[Gate]] = [told_of_made_lines(lines)]
    if args.shared:
        captures = args.shared / "data" / "torch_cpu"
        sections += [told_of_real_runs(captures, lines), told_by_night(captures)]
    sections += [made_runs(args.draws), change_points()]
    if args.shared:
        sections += [
            real_noise(captures), made_series(args.shared, args.draws), repeats(captures, args.draws), nightly(captures)
        ]  # fmt: skip
    holding = []
    for gate in (gate for section in [*sections, speed()] for gate in section):
        print(gate, flush=True)
        holding.append(gate.holds)
    return 0 if all(holding) else 1


def told_of_made_lines(lines: int) -> Iterator[Gate]:
    """What users are told of made lines: so many of each kind of noise."""
    name = "told of made lines"
    by_ratio = {
        ratio: sum(
            (made_lines.slow_downs(own, ratio, runs=3, seeds=range(lines)) for own in made_lines.NOISES.values()),
            Found(),
        )
        for ratio in WHOLE_MADE
    }
    yield from _found(name, by_ratio, WHOLE_MADE)
    for versions, runs in REPEATED:
        alarms = (
            made_lines.false_alarms(own, versions, runs, seeds=range(lines)) for own in made_lines.NOISES.values()
        )
        yield from _alarms(f"{name}, {versions} unchanged of {runs}", sum(alarms, Alarms()))


def told_of_real_runs(captures: Path, lines: int) -> Iterator[Gate]:
    """What users are told of 41 real runs of one code: in their order, and in so many others; with slow-downs twice as
    many, since there is one kind of noise alone.
    """
    name = "told of real runs"
    days = whole_way.same_code(captures)
    by_ratio = {ratio: whole_way.slow_downs(days, ratio, runs=3, seeds=range(2 * lines)) for ratio in WHOLE_REAL}
    yield from _found(name, by_ratio, WHOLE_REAL)
    for versions, runs in REPEATED:
        for order, seeds in (("as they came", [None]), ("shuffled", range(lines))):
            alarms = whole_way.false_alarms(days, versions, runs, seeds=seeds)
            yield from _alarms(f"{name}, {versions} unchanged of {runs}, {order}", alarms)


def _found(name: str, by_ratio: dict[float, Found], least: dict[float, float | None]) -> Iterator[Gate]:
    """The gates of slow-downs in versions of 3 runs, that are taken back later."""
    for ratio, found in by_ratio.items():
        yield Gate(f"{name}: recall at {ratio:+.0%}, of {found.injected}", found.recall, least[ratio], at_least=True)
    for ratio, found in by_ratio.items():
        yield Gate(f"{name}: false discovery rate at {ratio:+.0%}", found.fdr)
    whole = sum(by_ratio.values(), Found())
    yield Gate(f"{name}: false discovery rate, of {whole.right + whole.wrong} findings", whole.fdr, FDR)
    yield Gate(f"{name}: found, but dated to another version, of {whole.found}", whole.misdated, 0)
    lost = whole.ended - whole.recovered
    yield Gate(f"{name}: taken back, but not recovered in that version, of {whole.ended}", lost)


def _alarms(name: str, alarms: Alarms) -> Iterator[Gate]:
    """The gates of versions in which nothing changes."""
    yield Gate(f"{name}: findings of the step", alarms.steps, 0)
    yield Gate(f"{name}: verdicts of the step", alarms.verdicts, 0)
    yield Gate(f"{name}: findings of ops per 20 versions", alarms.operators_per_20, 1)
    yield Gate(f"{name}: incidents, of {alarms.versions} versions", alarms.incidents)


def told_by_night(captures: Path) -> Iterator[Gate]:
    """What users are told of 12 labelled versions, as they come. What fails is named."""
    grown = nights(real.nightly_versions(captures / "nightly_gpt"))
    alarms = grown.alarms
    for version in real.LABELS:
        missed, lasting = grown.missed(version), grown.not_recovered(version)
        yield Gate(_naming(f"told of {version}: labels missed or misdated", missed), len(missed), 0)
        yield Gate(_naming(f"told of {version}: labels that do not end when taken back", lasting), len(lasting), 0)
    wrong = grown.wrong_steps
    yield Gate(_naming("told by night: labelled steps with another verdict", wrong), len(wrong), 0)
    yield Gate("told by night: verdicts of the step, nothing changed", alarms.verdicts, 0)
    yield Gate("told by night: incidents where nothing changed", alarms.incidents, 0)
    yield Gate("told by night: incidents where a change is taken back", len(grown.incidents_taken_back), 0)
    for command in ("findings", "diff"):
        wrong = grown.wrong_codes(command)
        yield Gate(_naming(f"told by night: {command} --fail-on new, wrong codes", wrong), len(wrong), 0)
    yield Gate("told by night: nights with runs enough that end with 4", len(grown.blocked), 0)


def _naming(name: str, found: Sequence[object]) -> str:
    return f"{name} ({', '.join(map(str, found))})" if found else name


def made_runs(draws: int) -> Iterator[Gate]:
    """One comparison at a time, on random splits of made runs."""
    runs = made.operators(500, 40)
    name = "made runs, 5 against 3"
    for factor, recall in RECALL.items():
        rates = gates.judge_rates(runs, factor, draws=draws)
        if factor == 1.1:
            yield Gate(f"{name}: false findings, nothing changed", rates.false_unchanged, 1.0)
        yield Gate(f"{name}: recall at {factor - 1:+.0%}", rates.recall, recall, at_least=True)
        yield Gate(f"{name}: false discovery rate at {factor - 1:+.0%}", rates.fdr, 0.08)
    still, drifting = (gates.judge_rates(runs, 1.10, drift=drift, draws=draws).recall for drift in (0.0, 0.05))
    yield Gate(f"{name}: recall lost at +10% by 5 % drift", still - drifting, 0.03)
    confirmed = gates.confirmed_rates(runs, 1.10, draws=draws)
    name = "made runs, 1 and 2 that confirm"
    yield Gate(f"{name}: false findings, nothing changed", confirmed.false_unchanged, 1.0)
    yield Gate(f"{name}: recall at +10%", confirmed.recall, 0.6, at_least=True)
    yield Gate(f"{name}: false discovery rate at +10%", confirmed.fdr, 0.1)


def change_points() -> Iterator[Gate]:
    """300 made series of 60 runs: normal and heavy-tailed, 1 to 5 % noise."""
    series = gates.noisy_labelled(300, 60, seed=7)
    found = gates.change_point_rates(series)
    told = sum(len(gates.replayed(unchanged)) for unchanged, _, _ in series[:60])
    yield Gate("change points: F1", found.f1, 0.77, at_least=True)
    yield Gate("change points: precision", found.precision, 0.95, at_least=True)
    yield Gate("change points: unchanged series with one", found.false_series, 0)
    yield Gate("change points, looking after every run: false per 100 runs", told / 36, 0.1)


def real_noise(captures: Path) -> Iterator[Gate]:
    """200 series of 60 runs with the noise of real operators, none of which the detectors were tuned on."""
    residuals = noise.residuals([run_of(path) for path in sorted((captures / "repeats_gpt").glob("*.gz"))])
    series = noise.labelled(residuals, "held out", 200)
    found = gates.change_point_rates(series)
    told = sum(len(gates.replayed(unchanged)) for unchanged, _, _ in series[:60])
    name = "change points on real noise"
    yield Gate(f"{name}: F1", found.f1, 0.77, at_least=True)
    yield Gate(f"{name}: precision", found.precision, 0.95, at_least=True)
    yield Gate(f"{name}: unchanged series with one, of 200", found.false_series, 0)
    yield Gate(f"{name}, after every run: false per 100 runs", told / 36, 0.1)
    for ratio, least in {0.1: 0.6, 0.2: 0.8, 0.5: 0.85}.items():
        recall = noise.recall_online(residuals, "held out", ratio, 40)
        yield Gate(f"{name}, after every run: recall at {ratio:+.0%}", recall, least, at_least=True)
    for kind in noise.KINDS[1:]:
        found = gates.change_point_rates(noise.labelled(residuals, "held out", 100, kind=kind))
        yield Gate(f"{name}, {kind}: F1", found.f1)
        yield Gate(f"{name}, {kind}: precision", found.precision)


def made_series(shared: Path, draws: int) -> Iterator[Gate]:
    """Series of tools/make_series.py: 2 % noise, 0.5 % drift."""
    for base in BASES:
        with tempfile.TemporaryDirectory() as folder:
            trace = shared / "data" / "pytorch" / f"{base}.pt.trace.json.gz"
            series = real.make_series(shared / "tools" / "make_series.py", trace, Path(folder))
            yield from _told_of_made_series(f"told of series of {base}", Path(folder) / "noisy")
        scores = {factor: real.score(series, factor, draws=draws) for factor in RECALL}
        name = f"series of {base}"
        yield Gate(f"{name}: operators", scores[1.1].operators)
        yield Gate(f"{name}: false findings per 500", scores[1.1].false_per_500, 1.0)
        for factor, recall in RECALL.items():
            yield Gate(f"{name}: recall at {factor - 1:+.0%}", scores[factor].recall, recall, at_least=True)
            yield Gate(f"{name}: false discovery rate at {factor - 1:+.0%}", scores[factor].fdr, 0.08)


def _told_of_made_series(name: str, folder: Path) -> Iterator[Gate]:
    """What users are told of the runs in `folder`, of which 16 of 28 have slower operators."""
    story = made_story()
    grown = nights(as_versions(story, sorted(folder.glob("run_*.gz"))))
    found, truth = found_of(grown.told, story), changes(story)
    quiet = [version.label for version in story if not truth[version.label]]
    yield Gate(f"{name}: slow-downs found, of {found.injected} large and small ones", found.found)
    yield Gate(f"{name}: found, but dated to another version", found.misdated, 0)
    yield Gate(f"{name}: false findings", found.wrong, 0)
    yield Gate(f"{name}: incidents where nothing changed", alarms_of(grown.told, quiet).incidents, 0)
    failing = [version for version in quiet[1:] if grown.gates[version].findings or grown.gates[version].diff]
    yield Gate(_naming(f"{name}: unchanged versions that fail", failing), len(failing), 0)


def repeats(captures: Path, draws: int) -> Iterator[Gate]:
    """20 real repeats of one version, in windows, in splits, and run by run."""
    paths = sorted((captures / "repeats_gpt").glob("*.gz"))
    runs = [run_of(path) for path in paths]
    yield Gate("20 repeats, all consecutive windows: findings", len(real.found_in_windows(runs)), 1)
    yield Gate("20 repeats, random splits: findings per split", real.false_per_split(runs, draws=draws), 0.3)
    with real.ingested({"v1": paths}) as store:
        found = real.followed(store)
    yield Gate("20 repeats, run by run: confirmed regressions", len(real.regressions(found)), 1)
    better = sum(one.sign < 0 and one.how == "confirmed" for one in found)
    yield Gate("20 repeats, run by run: confirmed improvements", better)


def nightly(captures: Path) -> Iterator[Gate]:
    """12 labelled versions, run by run."""
    with real.ingested(real.nightly_versions(captures / "nightly_gpt")) as store:
        found = real.followed(store)
    for version, labels in real.LABELS.items():
        missed = real.missed(found, version)
        yield Gate(f"nightly {version}: labels missed or misdated, of {len(labels)}", len(missed), 0)
    yield Gate("nightly v11: ops said to be worse", len(real.ops_blamed(found, "v11")), 0)
    quiet = real.regressions(found, *real.QUIET)
    yield Gate("nightly, unchanged versions: confirmed regressions", len(quiet), 0)


def speed() -> Iterator[Gate]:
    """How long one judgement of 5,000 series takes, in sorts of the same numbers."""
    values = made.operators(5000, 8)
    judging = seconds(lambda: judge(values[:, :5], values[:, 5:]))
    sorting = seconds(lambda: np.sort(values, axis=None))
    yield Gate("judge of 5,000 series, 5 against 3: median of 15, ms", 1e3 * judging)
    yield Gate("the same in sorts of the 40,000 numbers", judging / sorting)


def seconds(call: Callable[[], object]) -> float:
    """The median of 15 calls, after one that warms up."""
    call()
    taken = []
    for _ in range(15):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


if __name__ == "__main__":
    sys.exit(main())
