"""Whether a version is slower for the sake of its hosts alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

import numpy as np
from sqlalchemy import Connection

from tracker.advice.step_order import numbers_by_order
from tracker.detect import Thresholds
from tracker.detect.stages import TIMES, judge_hosts, stages_of
from tracker.errors import EXIT_TOO_LITTLE_DATA
from tracker.results import SLOW
from tracker.results.findings import ListedFinding
from tracker.results.machine_state import Facts, throttled_by
from tracker.results.verdicts import GateResult
from tracker.store.findings import StoredFinding
from tracker.store.sql import statement
from tracker.store.tracks import read_hosts, read_machines
from tracker.units import counted, some_of

OfRuns = tuple[Connection, Sequence[int]]
"""A database, and some of its runs."""
_BY_TIME: Final = ("step", "mean step", "net of the operators")
"""Causes of a failing gate that a slow host explains."""


def slow_host(candidate: OfRuns, baseline: OfRuns) -> str:
    """Name the host that was slow in every run of the candidate and in none of the baseline, in words; "" where none
    was.

    What became slower then is no version.
    """
    after = [_slow_hosts(candidate[0], run_id) for run_id in candidate[1]]
    names = set.intersection(*map(set, after)) if after else set()
    if not names:
        return ""
    before = [_slow_hosts(baseline[0], run_id) for run_id in baseline[1]]
    names -= set().union(*before)
    if not names:
        return ""
    name = max(names, key=lambda one: (min(of_run[one] for of_run in after), one))
    ratio = float(np.median([of_run[name] for of_run in after]))
    runs = f"{len(after)} of {counted(len(after), 'run')}, 0 of {len(before)} before"
    return f"host {name} was slow (own time x{ratio:.2f} that of the others) in {runs}"


def other_hosts(candidate: OfRuns, baseline: OfRuns) -> tuple[str, str]:
    """Return the hosts of the baseline and of the candidate, in words, where no host ran both; else "" twice, and where
    none is known.
    """
    sides = [[*read_hosts(connection, run_ids).values()] for connection, run_ids in (baseline, candidate)]
    return words_of_other_hosts(*sides)


def words_of_other_hosts(baseline: Sequence[frozenset[str]], candidate: Sequence[frozenset[str]]) -> tuple[str, str]:
    """Return the same as `other_hosts`, by the hosts of each run of both sides; empty where one is not known."""
    if not all((*baseline, *candidate)):
        # of a run whose host is not known, it may be any
        return "", ""
    before, after = (frozenset[str]().union(*side) for side in (baseline, candidate))
    if not after or not before or after & before:
        return "", ""
    return some_of(sorted(before)), some_of(sorted(after))


def throttled_sides(candidate: OfRuns, baseline: OfRuns) -> tuple[str, str]:
    """Return by what runs were held down, and how many of the candidate; and how many of the baseline, in words."""
    sides = []
    for connection, run_ids in (baseline, candidate):
        machines = read_machines(connection, run_ids)
        sides.append([machines.get(run_id, {}) for run_id in run_ids])
    return words_of_throttled(*sides)


def words_of_throttled(baseline: Sequence[Facts], candidate: Sequence[Facts]) -> tuple[str, str]:
    """Return the same of what is known of the machine of each run of both sides."""
    before, after = ([*filter(None, map(throttled_by, side))] for side in (baseline, candidate))
    reasons = ", ".join(dict.fromkeys([*after, *before]))
    return f"{reasons} in {len(after)} of {counted(len(candidate), 'run')}", f"{len(before)} of {len(baseline)}"


def share_hosts(
    connection: Connection, run_ids: Sequence[int], findings: Sequence[ListedFinding | StoredFinding]
) -> list[bool]:
    """Return of each finding whether its runs share a host with these, or no host is known of one side: of what was
    found on another host their numbers say nothing.
    """
    candidates = [[*map(int, finding.candidate_runs.split())] for finding in findings]
    hosts_of = read_hosts(connection, sorted({*run_ids, *chain.from_iterable(candidates)}))

    def hosts(runs: Sequence[int]) -> set[str]:
        return set[str]().union(*(hosts_of[run_id] for run_id in runs))

    newest = hosts(run_ids)
    shared = []
    for runs in candidates:
        own = hosts(runs)
        shared.append(not newest or not own or bool(newest & own))
    return shared


def note_of(host: str) -> str:
    """Say what a slow host means for a version, a sentence; "" without one."""
    return f"{host[:1].upper()}{host[1:]}: no fault of the version, runs without it decide." if host else ""


def gates_with_host(
    gates: dict[str, GateResult], limits: Thresholds, candidate: OfRuns, baseline: OfRuns
) -> tuple[dict[str, GateResult], str]:
    """Return the gates, and the slow host that explains a slower candidate, looked for where one fails by its time:
    that fails nothing until there are runs without it.
    """
    if not any(own.cause in _BY_TIME for own in gates.values()):
        return gates, ""
    host = slow_host(candidate, baseline)
    for word, own in gates.items():
        if host and own.cause in _BY_TIME and own.peak < limits.gate_peak:
            gates[word] = GateResult(EXIT_TOO_LITTLE_DATA, "slow host", own.net, own.peak, host)
    return gates, host


def _slow_hosts(connection: Connection, run_id: int) -> dict[str, float]:
    """Return the slow hosts of a run, each with its own time by that of the others."""
    which = {"run_ids": [run_id]}
    captures = connection.execute(statement("captures"), which).all()
    hosts = {row.rank: row.host for row in captures if row.host}
    if len({*hosts.values()}) < 2:
        return {}
    steps = connection.execute(statement("steps"), which).all()
    times = (tuple(getattr(row, name) for name in TIMES) for row in steps)
    placed = [(row.rank, row.step, row.start_ns, row.duration_ns) for row in steps]
    numbers = numbers_by_order(connection, run_id, placed)
    rows = judge_hosts(hosts, stages_of(((row.rank, row.stage) for row in captures), times, numbers))
    return {row.host: row.own_ratio for row in rows if row.verdict == SLOW and row.own_ratio is not None}
