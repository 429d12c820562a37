"""Print how often the judge is wrong and how much it finds, on real runs: the labelled nightly series and repeats.

    .venv/bin/python scripts/score_detectors.py FOLDER    # FOLDER/torch_cpu has nightly_gpt and repeats_gpt

The captures are ingested once, into the file `--store` if it is given. `--without` leaves out one point of the
judgement, to see what it is worth. Injected changes multiply the times of operators in the matrix of a track, and
lengthen its step by as much.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tracker  # noqa: E402
from tracker.detect import (  # noqa: E402
    DEFAULTS,
    KindCode,
    Verdict,
    judge,
    series,
    series_of,
    sides,
)
from tracker.detect import track as detect_track  # noqa: E402
from tracker.detect.known_hosts import code_hosts  # noqa: E402
from tracker.detect.power import detectable_with  # noqa: E402
from tracker.detect.repeats import Repeats  # noqa: E402
from tracker.detect.track import Track  # noqa: E402
from tracker.profile import NO_OP  # noqa: E402
from tracker.regressions import lifecycle  # noqa: E402
from tracker.regressions.judged_rows import judged_row  # noqa: E402
from tracker.regressions.lifecycle import MACHINE, Finding, TrackState, VersionResult, judge_next, walk  # noqa: E402
from tracker.regressions.sides import gate_of  # noqa: E402
from tracker.store import tracks as stored_tracks  # noqa: E402

SAME_CODE = ("v01", "v02", "v03", "v04", "v07", "v09", "v12")
UNCHANGED = ("v02", "v03", "v04", "v06")
QUIET = (*UNCHANGED, "v07", "v09", "v12")
LABELS = {
    "v05": ("native_layer_norm", "native_layer_norm_backward", "copy_"),
    "v08": ("mul", "pow", "tanh", "add", "-gelu", "-gelu_backward", "step"),
    "v10": ("copy_", "peak memory"),
    "v11": ("step",),
}
"""MANIFEST.md of the captures; a minus is faster or gone."""
FAILING = ("v05", "v08", "v10", "v11")
NEVER = 10**9
"""More runs than there are: a rule that needs as many never holds."""


def take_prior_from_all_series() -> None:
    """Take the variance that a family shares from all of its series, not from the tested ones."""
    by_tested = judge.moderated
    judge.moderated = lambda variance, freedom, family, _, least: by_tested(
        variance, freedom, family, ~np.isnan(variance), least
    )


def name_all_suspects() -> None:
    """Name every suspect, also those that chance explains."""
    with_likely = judge.with_likely_suspects
    judge.with_likely_suspects = lambda judged, traits, limits: with_likely(
        judged, traits, replace(limits, alpha_named=1.0)
    )


def leave_kernels_in_place() -> None:
    """Take no common-mode shift from kernels where there are no operators."""
    find_family = series._find_leaf_family

    def find_operators(keys: list) -> tuple[str, str] | None:
        family = find_family(keys)
        return None if family and family[0] == "kernel" else family

    series._find_leaf_family = find_operators


def forget_nights() -> None:
    """Take all runs for those of one night."""
    with_nights = judge.with_nights
    judge.with_nights = lambda sides, window, *args, **more: with_nights(
        sides, replace(window, versions=None), *args, **more
    )


POINTS = {
    "statistic": lambda: setattr(sides, "LEAST_TO_CHOOSE", NEVER),
    "prior": take_prior_from_all_series,
    "certain": lambda: setattr(judge, "with_certain_causes", lambda found, *_: found),
    "outlier": lambda: setattr(sides, "LEAST_OTHERS", NEVER),
    "pairs": lambda: setattr(sides, "LEAST_DECIDING", NEVER),
    "kernels": leave_kernels_in_place,
    "two runs": lambda: setattr(detect_track, "LEAST_BESIDE", NEVER),
    "late": lambda: setattr(lifecycle, "late_changes", lambda *_: ()),
    "gradual": lambda: setattr(lifecycle, "gradual_slowdowns", lambda *_: ()),
    "drift": lambda: setattr(lifecycle, "DRIFTS", 0),
    "nights": forget_nights,
    "neighbours": lambda: setattr(lifecycle, "neighbour_correlation", lambda values: np.zeros(len(values))),
    "hosts": lambda: setattr(lifecycle, "on_equal_hosts", lambda window, *_: window),
    "alone": lambda: setattr(series.SeriesTraits, "is_alone", property(lambda _: False)),
    "suspects": name_all_suspects,
}
"""Point of the judgement -> what leaves it out. In order: the choice of the statistic, the prior of the tested series,
a step with certain causes, one bad run, pairs that may cross, drift of kernels, levels of two runs, the late test,
gradual slowdowns, drift that stays, the night effect, neighbouring runs that resemble each other, hosts that differ,
series alone, and suspects that chance explains.
"""
OPERATOR_KINDS = ("op", "op_name")
"""Kinds of the series of operators: by shapes, and of all shapes together."""
CREEPING = ("gradual", "late")
"""The `how` of findings that are dated by a course of many runs."""
LENGTHENED = ("step", "e2e", "compute")
"""Names of the series of the whole run that get longer with its operators."""
LARGE = 0.0012
"""Least part of the step by which an injected change must lengthen it."""


class Runs(Struct):
    """Numbers and calls (series, runs) and times by calls (2, series, runs) of runs, the keys of the series, and the
    version of each run; `hosts`: the number of the host of each, None: not known.
    """

    keys: list
    values: np.ndarray
    calls: np.ndarray
    by_calls: np.ndarray
    versions: np.ndarray
    hosts: np.ndarray | None = None

    def track(self, versions: np.ndarray) -> Track:
        """Return the runs as versions of a track, numbered from 1."""
        traits = series_of(self.keys, device_timed=False)
        hosts = None if self.hosts is None else code_hosts([frozenset({str(host)}) for host in self.hosts])
        return Track(
            self.values, versions, traits, calls=self.calls, by_calls=self.by_calls, keys=self.keys, hosts=hosts
        )

    def part(self, columns: slice | np.ndarray) -> Runs:
        """Return some of the runs."""
        tables = (table[..., columns] for table in (self.values, self.calls, self.by_calls))
        return Runs(self.keys, *tables, self.versions[columns])

    def named(self, name: str, *kinds: str) -> np.ndarray:
        """Return which series have this name and one of these kinds."""
        return np.array([key[0] in kinds and key[2] == name for key in self.keys])


def make_runs(keys: list, values: np.ndarray, hosts: np.ndarray | None = None) -> Runs:
    """Return runs of made numbers (series, runs), without calls, all of one day."""
    calls, *by_calls = np.full((3, *values.shape), np.nan)
    return Runs(keys, values, calls, np.array(by_calls), np.zeros(values.shape[1]), hosts)


def read(folder: Path, file: Path) -> dict[str, Runs]:
    """Return the runs of both series, ingested if the database is not there yet."""
    fresh = not file.exists()
    with tracker.open_store(f"sqlite:///{file}") as store:
        if fresh:
            for number in range(1, 13):
                paths = sorted((folder / "torch_cpu" / "nightly_gpt").glob(f"v{number:02}_*.gz"))
                tracker.ingest(paths, version=f"v{number:02}", workload="nightly", store=store)
            for number, path in enumerate(sorted((folder / "torch_cpu" / "repeats_gpt").glob("*.gz")), 1):
                tracker.ingest([path], version=f"r{number:02}", workload="repeats", store=store)
        found = {}
        with store.connect() as connection:
            for name in ("nightly", "repeats"):
                (key,) = stored_tracks.list_tracks(connection, workload=name)
                runs = stored_tracks.list_track_runs(connection, key)
                table = stored_tracks.read_series(connection, key)
                numbers = stored_tracks.read_values(connection, [run.run_id for run in runs], table)
                versions = np.array([run.version for run in runs])
                found[name] = Runs(list(map(tuple, table.keys)), *numbers, versions)
    return found


def same_code(data: dict[str, Runs]) -> Runs:
    """Return the 21 nightly runs of the first code and the 20 repeats as one track; `versions` has the day."""
    nightly = data["nightly"]
    days = [nightly.part(np.isin(nightly.versions, SAME_CODE)), data["repeats"]]
    keys = list(dict.fromkeys(days[0].keys + days[1].keys))
    place = {key: number for number, key in enumerate(keys)}
    tables = []
    for runs in days:
        # a day lacks the series that only the other one has
        table = np.full((4, len(keys), len(runs.versions)), np.nan)
        table[:, [place[key] for key in runs.keys]] = np.stack([runs.values, runs.calls, *runs.by_calls])
        tables.append(table)
    values, calls, *by_calls = np.concatenate(tables, axis=2)
    return Runs(keys, values, calls, np.array(by_calls), np.repeat([0, 1], [len(runs.versions) for runs in days]))


def drawn(runs: Runs, seed: int | None) -> Runs:
    """Return the runs of each day in another order; None: as they are."""
    order = np.arange(len(runs.versions))
    if seed is not None:
        draw = np.random.default_rng(seed)
        order = np.concatenate([draw.permutation(order[runs.versions == day]) for day in (0, 1)])
    return runs.part(order)


def gate_code(track: Track, state: TrackState, result: VersionResult) -> int:
    """Return the exit code of `--fail-on new` for a version, as long as it is the newest."""
    row = judged_row(track, state, result, 0, b"")
    steps = np.flatnonzero(track.series.kind == KindCode.STEP)
    means = [place for place, key in enumerate(track.keys) if key[2] == "mean step"]
    found = [one for one in result.found if one.state == "open"]
    signs, mean_signs = (
        [one.sign for one in found if one.series in rows and one.how != MACHINE] for rows in (steps, means)
    )
    is_suspect = bool((result.judged.suspect[[*steps, *means]] > 0).any())
    is_machine = any(one.sign > 0 and one.how == MACHINE for one in found)
    is_decided = row.step_verdict not in (None, "TOO_FEW_RUNS")
    return gate_of(
        DEFAULTS, signs=signs, mean_signs=mean_signs, net=row.net, peak=row.peak, is_suspect=is_suspect,
        is_machine=is_machine, is_decided=is_decided,
    ).code  # fmt: skip


def nights(runs: Runs) -> None:
    """Print of the labelled series what is missed, what is false, and which gates are wrong."""
    names = sorted(set(runs.versions))
    found, gates = {}, {}
    state = TrackState(len(runs.keys))
    track = runs.track(np.searchsorted(names, runs.versions) + 1)
    for result in walk(track, state):
        name = names[result.now.version - 1]
        found[name] = [(one.sign, *runs.keys[one.series][:3:2], one.how) for one in result.found]
        gates[name] = gate_code(track, state, result)
    missed = {"op": [], "step": []}
    for version, labels in LABELS.items():
        words = {f"{'-' * (sign < 0)}{name.removeprefix('aten::')}" for sign, _, name, _ in found[version]}
        for label in labels:
            if label not in words:
                missed["step" if label == "step" else "op"].append(f"{version} {label}")
    false = [(version, one) for version in QUIET for one in found[version] if one[0] > 0 or version in UNCHANGED]
    false += [("v11", one) for one in found["v11"] if one[0] > 0 and one[1] in OPERATOR_KINDS]
    wrong = [f"{name} {code}" for name, code in gates.items() if name != "v01" and code != int(name in FAILING)]
    # a night that made operators slower made no other one faster
    faster = {
        (version, name)
        for version in FAILING
        for sign, kind, name, how in found[version]
        if sign < 0 and kind in OPERATOR_KINDS and how == "level"
    }
    print(
        f"nights: missed ops {missed['op']} of 11, steps {missed['step']} of 2; false {false}; wrong gates {wrong}; "
        f"faster beside the labels {sorted(faster)}"
    )


def false_alarms(runs: Runs, layouts: list[tuple[int, int]], seeds: list[int | None]) -> None:
    """Print the findings where nothing changed. `layouts`: how many versions of how many runs."""
    count = Counter()
    for seed in seeds:
        order = drawn(runs, seed)
        for version_count, size in layouts:
            newest = order.part(slice(len(order.versions) - version_count * size, None))
            track = newest.track(np.repeat(np.arange(1, version_count + 1), size))
            state = TrackState(len(newest.keys))
            for result in walk(track, state):
                count["suspects"] += int((result.judged.verdict == Verdict.SUSPECT).sum())
                count["gates"] += gate_code(track, state, result) == 1
                operators = set()
                for one in result.found:
                    kind, _, name, *_ = newest.keys[one.series]
                    if one.how == MACHINE:
                        count["machine"] += 1
                    elif kind in OPERATOR_KINDS:
                        # an operator and its shapes are one
                        operators.add((one.first_version, name))
                    else:
                        count["parts"] += 1
                        count["steps"] += name == "step"
                count["operators"] += len(operators)
            count["versions"] += version_count
    print(
        f"A/A {layouts}: {count['operators']} false ops, {count['parts']} parts, {count['steps']} steps, "
        f"{count['gates']} gates, {count['machine']} of the machine in {count['versions']} versions; "
        f"{count['suspects'] / count['versions']:.1f} suspects a version",
        flush=True,
    )


def large_operators(runs: Runs, ratio: float) -> list[str]:
    """Return the names of the operators whose change by `ratio` is large enough to count in the step."""
    step = runs.values[runs.named("step", "run"), 0][0]
    pairs = zip(runs.keys, runs.values[:, 0], strict=True)
    return sorted(key[2] for key, value in pairs if key[0] == "op_name" and value * ratio >= LARGE * step)


def slowed(runs: Runs, factors: dict[str, np.ndarray]) -> Runs:
    """Return the runs with operators that take `factors` (runs,) of their time, and a step longer by as much."""
    values, by_calls = runs.values.copy(), runs.by_calls.copy()
    for name, factor in factors.items():
        by_calls[:, runs.named(name, *OPERATOR_KINDS)] *= factor
        more = (factor - 1.0) * values[runs.named(name, "op_name")].sum(axis=0)
        values[runs.named(name, *OPERATOR_KINDS)] *= factor
        for whole in LENGTHENED:
            values[runs.named(whole, "run")] += more
    return Runs(runs.keys, values, runs.calls, by_calls, runs.versions, runs.hosts)


def found_in(runs: Runs, versions: np.ndarray) -> list[Finding]:
    """Return the findings of these runs as versions of a track."""
    state = TrackState(len(runs.keys))
    list(walk(runs.track(versions), state))
    return [one for one in state.findings if one.state != "withdrawn"]


def lasting(runs: Runs, size: int, seeds: range, ratio: float = 0.1, bad: float = 1.0) -> None:
    """Print what is found where four operators are slower from the middle on. `bad`: factor of the last run before."""
    injected, right, wrong = 0, 0, set()
    for seed in seeds:
        chosen = np.random.default_rng(seed).permutation(large_operators(runs, ratio))[:4].tolist()
        order = drawn(runs, seed)
        versions = np.arange(len(order.versions)) // size + 1
        first = int(versions[-1]) // 2 + 1
        factor = np.where(versions >= first, 1.0 + ratio, 1.0)
        factor[np.flatnonzero(versions < first)[-1]] = bad
        in_time = set()
        for one in found_in(slowed(order, dict.fromkeys(chosen, factor)), versions):
            if one.sign < 0:
                continue
            kind, _, name, *_ = order.keys[one.series]
            if abs(one.first_version - first) <= 1:
                in_time.add(name)
            if kind in OPERATOR_KINDS and name not in chosen:
                wrong.add((seed, name))
        injected, right = injected + len(chosen), right + len(in_time & set(chosen))
    words = f", one bad run x{bad:g} before" if bad != 1.0 else ""
    print(
        f"lasting +{ratio:.0%}{words}, {size} runs a version: {right} of {injected} found, {len(wrong)} false",
        flush=True,
    )


def creeping_in(runs: Runs, versions: np.ndarray) -> set[str]:
    """Return the names of the series that got slower over many of these runs."""
    found = found_in(runs, versions)
    return {runs.keys[one.series][2] for one in found if one.sign > 0 and one.how in CREEPING}


def creep(runs: Runs, seeds: range) -> None:
    """Print what is found where four operators, or none, get slower by 2 % a version from the fourth of 13 on."""
    injected = right = 0
    wrong, quiet = set(), set()
    for seed in seeds:
        chosen = np.random.default_rng(seed).permutation(large_operators(runs, 0.1))[:4].tolist()
        order = drawn(runs, seed)
        versions = np.arange(len(order.versions)) // 3 + 1
        factor = 1.02 ** np.maximum(versions - 3, 0)
        names = creeping_in(slowed(order, dict.fromkeys(chosen, factor)), versions)
        injected, right = injected + len(chosen), right + len(names & set(chosen))
        # the step gets slower with its operators
        wrong |= {(seed, name) for name in names - {*chosen, *LENGTHENED}}
        quiet |= {(seed, name) for name in creeping_in(order, versions)}
    print(f"creep: {right} of {injected} found, {len(wrong)} false beside them, {len(quiet)} without", flush=True)


def jumping(seeds: range) -> None:
    """Print what is found where one of 30 operators jumps by chance between two levels that are 30 % apart."""
    keys = [("op", "host_self_ns", f"op{number:02}", "", "", "") for number in range(30)]
    keys.append(("run", "duration_ns", "step", "", "", ""))
    count = versions_judged = 0
    for size in (1, 2, 3):
        for seed in seeds:
            draw = np.random.default_rng(seed)
            values = 100 * np.exp(draw.normal(0, 0.003, (30, 20 * size)))
            values[0] *= np.where(draw.random(20 * size) < 0.3, 1.3, 1.0)
            values = np.vstack([values, values.sum(axis=0)])
            runs = make_runs(keys, values)
            count += sum(one.series == 0 for one in found_in(runs, np.arange(20 * size) // size + 1))
            versions_judged += 20
    print(f"jumping operator: {count} findings in {versions_judged} versions", flush=True)


def new_operators(seeds: range) -> None:
    """Print how often a step is found that a new operator lengthens by 12 %, where one run before was as slow."""
    keys = [("op", "host_self_ns", f"op{number:02}", "", "", "") for number in range(31)]
    keys.append(("run", "duration_ns", "step", "", "", ""))
    right = 0
    for seed in seeds:
        draw = np.random.default_rng(seed)
        values = 100 * np.exp(draw.normal(0, 0.03, (31, 11)))
        values[30] *= np.where(np.arange(11) < 8, np.nan, 4.0)
        step = np.nansum(values, axis=0)
        # one run before was as slow by another cause
        step[draw.integers(8)] *= 1.15
        runs = make_runs(keys, np.vstack([values, step]))
        found = found_in(runs, np.array([1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5]))
        right += any((one.series, one.sign, one.first_version) == (31, 1, 5) for one in found)
    print(f"step with a new operator after a slow run: {right} of {len(seeds)} found", flush=True)


def made_like(
    runs: Runs,
    draw: np.random.Generator,
    versions: np.ndarray,
    *,
    correlation: float = 0.0,
    effect: float = 0.0,
    noise: float = 1.0,
    factors: np.ndarray | None = None,
    hosts: np.ndarray | None = None,
) -> Runs:
    """Return made runs of the operators of `runs`, with the mean and `noise` times the deviation of each.

    `versions` (runs,): from 0; `correlation`: of neighbouring runs; `effect`: of nights, by the variance of runs.
    `factors` (operators, runs): of the times, None for 1. `hosts` (runs,): on which each ran, from 0, None: not known.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(runs.values)
    is_leaf = np.isfinite(logs).all(axis=1) & np.array([key[0] == "op" for key in runs.keys])
    logs, keys = logs[is_leaf], [key for key, own in zip(runs.keys, is_leaf, strict=True) if own]
    drawn_noise = draw.normal(size=(len(keys), len(versions)))
    for run in range(1, len(versions)):
        kept = correlation * drawn_noise[:, run - 1]
        drawn_noise[:, run] = kept + np.sqrt(1 - correlation**2) * drawn_noise[:, run]
    nights = np.sqrt(effect) * draw.normal(size=(len(keys), versions.max() + 1))
    deviation = noise * logs.std(axis=1, ddof=1)[:, None]
    values = np.exp(logs.mean(axis=1)[:, None] + deviation * (drawn_noise + nights[:, versions]))
    values *= 1.0 if factors is None else factors[: len(keys)]
    names = sorted({key[2] for key in keys})
    sums = [values[[key[2] == name for key in keys]].sum(axis=0) for name in names]
    every = [*keys, *(("op_name", keys[0][1], name, "", "", "") for name in names)]
    every.append(("run", "duration_ns", "step", "", "", ""))
    return make_runs(every, np.vstack([values, *sums, 1.05 * values.sum(axis=0)]), hosts)


def made_nights(runs: Runs, seeds: range) -> None:
    """Print the false operators of made runs of one code, of which neighbours or those of one night are alike."""
    stories = {
        "independent runs": {}, "neighbours alike by .6": {"correlation": 0.6}, "night effect .25": {"effect": 0.25},
        "night effect 1": {"effect": 1.0}, "twice the noise, night effect .25": {"effect": 0.25, "noise": 2.0},
    }  # fmt: skip
    for words, story in stories.items():
        counts = []
        for size, version_count in ((1, 56), (2, 28), (3, 19), (4, 14)):
            false = 0
            for seed in seeds:
                versions = np.arange(version_count * size) // size
                made = made_like(runs, np.random.default_rng(seed), versions, **story)
                found = found_in(made, versions + 1)
                false += len({(one.first_version, made.keys[one.series][2]) for one in found
                              if made.keys[one.series][0] in OPERATOR_KINDS})  # fmt: skip
            counts.append(f"{size} a version {false} in {version_count * len(seeds)}")
        print(f"made, {words}: false operators {', '.join(counts)}", flush=True)


def made_hosts(runs: Runs, seeds: range) -> None:
    """Print the false findings of one code on two hosts by turns, and on one that was replaced for good, beside those
    of the same noise on one host: each operator differs between the hosts by a factor of its own.
    """
    stories = {"two hosts by version (+10 %, operators 6 %)": (1.1, 0.06), "a host replaced (-15 %, 5 %)": (0.85, 0.05)}
    for words, (usual, spread) in stories.items():
        counts = []
        for size, version_count in ((1, 56), (2, 28), (3, 19), (4, 14)):
            false = {True: 0, False: 0}
            for seed in seeds:
                versions = np.arange(version_count * size) // size
                by_turns, replaced = versions % 2, (versions >= version_count // 2).astype(np.int64)
                hosts = by_turns if usual > 1 else replaced
                draw = np.random.default_rng([seed, 7])
                factor = usual * np.exp(spread * draw.normal(size=len(runs.keys)))
                for is_moved in (True, False):
                    factors = np.where(hosts == 1, factor[:, None], 1.0) if is_moved else None
                    own_hosts = hosts if is_moved else None
                    made = made_like(runs, np.random.default_rng(seed), versions, factors=factors, hosts=own_hosts)
                    found = found_in(made, versions + 1)
                    false[is_moved] += len({(one.first_version, made.keys[one.series][2]) for one in found})
            counts.append(
                f"{size} a version {false[True]} ({false[False]} on one host) in {version_count * len(seeds)}"
            )
        print(f"made, {words}: false findings {', '.join(counts)}", flush=True)
    for ratio in (0.1, 0.2, 0.5):
        injected = right = 0
        for seed in seeds:
            chosen = np.random.default_rng(seed).permutation(large_operators(runs, ratio))[:4].tolist()
            versions = np.arange(36) // 3
            hosts = versions % 2
            factor = 1.1 * np.exp(0.06 * np.random.default_rng([seed, 7]).normal(size=len(runs.keys)))
            factors = np.where(hosts == 1, factor[:, None], 1.0)
            made = made_like(
                runs, np.random.default_rng(seed), versions, effect=0.25, factors=factors, hosts=hosts
            )  # fmt: skip
            slow = np.where(versions >= 8, 1.0 + ratio, 1.0)
            found = found_in(slowed(made, dict.fromkeys(chosen, slow)), versions + 1)
            names = {made.keys[one.series][2] for one in found if one.sign > 0 and one.first_version in (9, 10)}
            injected, right = injected + len(chosen), right + len(names & set(chosen))
        print(f"made, two hosts by version, +{ratio:.0%}: {right} of {injected} found", flush=True)


def make_series(draw: np.random.Generator, *, is_rough: bool) -> tuple[np.ndarray, list[int]]:
    """Return the runs of a step with lasting changes and ones that are taken back, and the places of all changes.

    Neighbours resemble each other by up to .5, and some runs are outliers; `is_rough`: three quarters of the series
    have heavy tails, or jump between two levels, or wander as well.
    """
    count, deviation = int(draw.integers(40, 120)), draw.choice([0.005, 0.01, 0.02, 0.04])
    correlation, kind = draw.choice([0, 0.3, 0.5]), draw.integers(4) if is_rough else 0
    noise = draw.standard_t(3, size=count) / 1.7 if kind == 1 else draw.normal(size=count)
    if kind == 2:
        is_high = draw.random(count) < draw.uniform(0.1, 0.5)
        noise = 0.4 * noise + np.where(is_high, draw.uniform(1.5, 3), 0.0)
    for run in range(1, count):
        noise[run] = correlation * noise[run - 1] + np.sqrt(1 - correlation**2) * noise[run]
    if kind == 3:
        walk_of_level = 0.25 * np.cumsum(draw.normal(size=count))
        noise += walk_of_level - walk_of_level.mean()
    level, places, at = np.zeros(count), [], int(draw.integers(10, 20))
    while at < count - 8:
        story, size = draw.random(), draw.uniform(max(0.05, 3 * deviation), max(0.2, 8 * deviation))
        if story < 0.6:
            level[at:] += draw.choice([-1, 1]) * size
            places.append(at)
        elif story < 0.75:
            end = at + int(draw.integers(8, 15))
            level[at:end] += size
            places += [at, end]
            at = end
        at += int(draw.integers(12, 30))
    is_outlier = draw.random(count) < 0.02
    level += np.where(is_outlier, draw.choice([-1, 1], count) * draw.uniform(4, 10, count) * deviation, 0.0)
    return 1e8 * np.exp(level + deviation * noise), [place for place in places if place < count - 5]


def made_series(seeds: range) -> None:
    """Print how many changes of series alone are told, a run a version; to within three runs, and their ends, too."""
    keys = [("run", "duration_ns", "step", "", "", "")]
    for words, is_rough in (("even noise", False), ("heavy tails, jumps and drifts", True)):
        right = wrong = missed = 0
        for seed in seeds:
            values, places = make_series(np.random.default_rng(seed), is_rough=is_rough)
            told = set()
            for one in found_in(make_runs(keys, values[None, :]), np.arange(len(values)) + 1):
                told.add(one.first_version - 1)
                if one.state in ("recovered", "taken back"):
                    told.add(one.ended_version - 1)
            left = set(places)
            for run in sorted(told):
                near = min(left, key=lambda place: abs(place - run), default=NEVER)
                if abs(near - run) <= 3:
                    left.discard(near)
                    right += 1
                else:
                    wrong += 1
            missed += len(left)
        score = 2 * right / (2 * right + wrong + missed)
        print(f"made series alone, {words}: F1 {score:.3f}, {right} right, {wrong} false, {missed} missed", flush=True)
    false = 0
    for seed in seeds:
        draw, count = np.random.default_rng([seed, 1]), 80
        noise = draw.normal(size=count)
        for run in range(1, count):
            noise[run] = 0.4 * noise[run - 1] + np.sqrt(1 - 0.4**2) * noise[run]
        runs = make_runs(keys, 1e8 * np.exp(0.02 * noise)[None, :])
        false += len(found_in(runs, np.arange(count) + 1))
    print(f"made series alone that do not change: {false} false in {80 * len(seeds)} versions", flush=True)


def made_changes(runs: Runs, seeds: range) -> None:
    """Print what is found of operators that get slower in the last third, three runs a version, beside nights."""
    for noise in (1.0, 2.0):
        for ratio in (0.1, 0.2, 0.5):
            injected = right = 0
            for seed in seeds:
                chosen = np.random.default_rng(seed).permutation(large_operators(runs, ratio))[:4].tolist()
                versions = np.arange(36) // 3
                made = made_like(runs, np.random.default_rng(seed), versions, effect=0.25, noise=noise)
                factor = np.where(versions >= 8, 1.0 + ratio, 1.0)
                found = found_in(slowed(made, dict.fromkeys(chosen, factor)), versions + 1)
                names = {made.keys[one.series][2] for one in found if one.sign > 0 and one.first_version == 9}
                injected, right = injected + len(chosen), right + len(names & set(chosen))
            print(f"made, night effect .25, noise x{noise:g}, +{ratio:.0%}: {right} of {injected} found", flush=True)


def kernels_only() -> None:
    """Print how many findings 24 kernels without operators are, all 10 % slower in the second version."""
    keys = [("kernel", "total_ns", f"kernel{number:02}", "", "", "") for number in range(24)]
    keys += [("op", "device_self_ns", NO_OP, "", "", ""), ("run", "duration_ns", "step", "", "", "")]
    draw = np.random.default_rng(1)
    values = 100 * np.exp(draw.normal(0, 0.005, (24, 7))) * np.where(np.arange(7) < 4, 1.0, 1.1)
    values = np.vstack([values, values.sum(axis=0), values.sum(axis=0)])
    runs = make_runs(keys, values)
    print(f"24 kernels alone, all +10 %: {len(found_in(runs, np.array([1, 1, 1, 1, 2, 2, 2])))} findings", flush=True)


def by_runs(runs: Runs) -> None:
    """Print the smallest change that versions of so many runs show, as `calibrate` does: median of large operators."""
    track = runs.track(np.repeat([1, 2], [len(runs.versions) - 8, 8]))
    now = Repeats(track, DEFAULTS, np.full(len(runs.keys), np.nan))
    found = now.judge((tuple(range(8)), tuple(range(8, 16))))
    large = [row for row, key in enumerate(runs.keys) if key[0] == "op_name" and key[2] in large_operators(runs, 0.1)]
    least = [
        float(np.nanmedian(np.expm1(detectable_with(found, track.series.family, track.series.ratio, count)[large])))
        for count in (2, 3, 4, 5, 8)
    ]
    print("calibrate, 2, 3, 4, 5, 8 runs: " + ", ".join(f"+{one:.1%}" for one in least), flush=True)


def slow_downs(runs: Runs, ratios: tuple[float, ...], size: int, seeds: range) -> None:
    """Print what is found where twice four operators get slower, stay so for two versions or four runs, and recover."""
    injected = found = right = wrong = ended = recovered = 0
    quiet, held = -(-9 // size), max(2, -(-4 // size))
    for ratio in ratios:
        for seed in seeds:
            chosen = np.random.default_rng(seed).permutation(large_operators(runs, ratio))[:8].tolist()
            parts = [(quiet, ()), (held, chosen[:4]), (quiet, ()), (held, chosen[4:]), (held, ())]
            story = [slow for count, slow in parts for _ in range(count)]
            order = drawn(runs, seed)
            versions = np.repeat(np.arange(1, len(story) + 1), size)[: len(order.versions)]
            order = order.part(slice(len(versions)))
            factors = {
                name: np.array([1 + ratio if name in story[version - 1] else 1.0 for version in versions])
                for name in chosen
            }
            called = {}
            for one in found_in(slowed(order, factors), versions):
                kind, _, name, *_ = runs.keys[one.series]
                if kind in OPERATOR_KINDS and one.how not in CREEPING:
                    called.setdefault((one.first_version, name, one.sign), []).append(one)
            for begins, ends, slow in (
                (quiet + 1, quiet + held + 1, chosen[:4]), (2 * quiet + held + 1, 2 * quiet + 2 * held + 1, chosen[4:])
            ):  # fmt: skip
                for name in slow:
                    at = [version for version in range(begins, ends) if called.get((version, name, 1))]
                    injected, found = injected + 1, found + bool(at)
                    right += begins in at
                    if begins in at:
                        lives = called[begins, name, 1]
                        ended += 1
                        recovered += any(one.state == "recovered" and one.ended_version == ends for one in lives)
                    for version in at:
                        del called[version, name, 1]
                    right += called.pop((ends, name, -1), None) is not None
            wrong += len(called)
    rate = wrong / max(1, right + wrong)
    print(
        f"injected {ratios}, {size} runs a version: recall {found / injected:.3f} of {injected} at {rate:.2f} ({wrong} "
        f"false); recovered {recovered} of {ended}",
        flush=True,
    )


def speed(series: int = 1100, older: int = 100) -> Iterator[str]:
    """Time the judgement of one more version of a track, with two findings of its operators open."""
    draw = np.random.default_rng(1)
    keys = [("op", "device_self_ns", f"op{number}", "", "", "") for number in range(series - 1)]
    keys.append(("run", "duration_ns", "step", "", "", ""))
    levels = np.exp(draw.normal(9, 1.5, series - 1))
    values = levels[:, None] * np.exp(draw.normal(0, 0.02, (series - 1, older + 4)))
    values = np.vstack([values, values.sum(axis=0)])
    largest = np.argsort(-levels)[:2]
    values[largest, older - 8 :] *= 1.2
    track = Track(values, np.arange(older + 4) // 4 + 1, series_of(keys, device_timed=True))
    state = TrackState(series)
    *_, last = np.unique(track.versions)
    list(walk(Track(values[:, :older], track.versions[:older], track.series), state))
    taken = []
    for _ in range(9):
        again = state.before(int(last))
        start = time.perf_counter()
        judge_next(track, again, int(last))
        taken.append(time.perf_counter() - start)
    yield f"one more version of 4 runs, {series} series, {older} older runs: {1e3 * float(np.median(taken)):.1f} ms"


def main() -> None:
    """Print all figures in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the shared captures")
    parser.add_argument("--store", type=Path, help="SQLite file for the ingested captures")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", default="night aa inject one lasting creep made new calibrate speed")
    parser.add_argument("--without", choices=POINTS, help="a point that is left out")
    args = parser.parse_args()
    if args.without:
        POINTS[args.without]()
    with tempfile.TemporaryDirectory() as folder:
        data = read(args.folder, args.store or Path(folder) / "runs.db")
    runs = same_code(data)
    if "night" in args.only:
        nights(data["nightly"])
    if "aa" in args.only:
        seeds = [None, *range(5)]
        false_alarms(runs, [(41, 1)], seeds)
        false_alarms(runs, [(20, 2), (13, 3), (10, 4), (8, 5)], seeds)
    if "inject" in args.only:
        for ratio in (0.1, 0.2, 0.5):
            slow_downs(runs, (ratio,), 3, range(args.seeds))
    if "one" in args.only:
        slow_downs(runs, (0.2, 0.5), 1, range(args.seeds // 2))
    if "lasting" in args.only:
        lasting(runs, 1, range(30))
        lasting(runs, 3, range(36))
        lasting(runs, 3, range(36), 0.2, bad=1.5)
    if "creep" in args.only:
        creep(runs, range(36))
    if "made" in args.only:
        jumping(range(30))
        new_operators(range(36))
        kernels_only()
    if "new" in args.only:
        # seeds that no limit was chosen on
        made_nights(runs.part(runs.versions == 1), range(100, 104))
        made_hosts(runs.part(runs.versions == 1), range(100, 106))
        made_series(range(7000, 7120))
        made_changes(runs.part(runs.versions == 1), range(100, 108))
    if "calibrate" in args.only:
        by_runs(runs)
    if "speed" in args.only:
        for line in [*speed(), *speed(5000)]:
            print(line)


if __name__ == "__main__":
    main()
