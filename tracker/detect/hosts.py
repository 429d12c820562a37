"""Runs of several hosts: each is compared with runs of its own host.

Two machines of one kind differ by a steady factor, the operators by factors of their own. Where several hosts ran in
one level, what they differ by is known, and is taken out. Where no host ran both sides of a change, nothing tells the
version from its host: docs/judging.md, step 3. A host whose clock was held down by heat or power is another one than
the same host without.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import F64, I64, Flags
from tracker.detect.known_hosts import MANY_HOSTS, HostLevels, Hosts
from tracker.detect.series import KindCode, SeriesTraits
from tracker.detect.sides import Window, newest
from tracker.detect.statistics import LEAST_VARIANCE, median, t_above
from tracker.detect.thresholds import Thresholds
from tracker.detect.verdicts import JudgedSeries, Reason, Verdict
from tracker.table import sort_distinct

LEAST_RUNS: Final = 3
"""Runs of a host in a level that make one of its own."""
LEAST_OWN: Final = 2
"""Runs of a host in a level with which alone its new runs are compared while nobody knows how the hosts differ."""
EQUAL: Final = 0.2
"""The p from which on two hosts count as equal: to take out a difference that is none costs little."""
LEAST_FREEDOM: Final = 3
"""Degrees of freedom from which two hosts can be shown to be equal."""
_MAY_DIFFER: Final = (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.SUSPECT, Verdict.DRIFT)
_NO_TIME: Final = (KindCode.PEAK, KindCode.MEMORY)
"""Kinds of series that are the same on every host."""


class Comparable(Struct, frozen=True, eq=False):
    """The runs that new runs are compared with. `base`, `beside` (series, runs): as `judge_version` has them; `new`
    (series, runs): the new runs that count; `variance` (series,): what it adds that the difference of the hosts is
    measured, as a share of the variance between runs; `is_other` (series,): whether no host ran both sides
    in one state; `throttled`: 1 where the new runs were throttled on hosts that ran both, -1 where those before were,
    0 where the hosts are others.
    """

    base: Flags
    beside: Flags
    new: Flags
    variance: F64
    is_other: Flags
    throttled: int = 0


def on_equal_hosts(window: Window, series: SeriesTraits, hosts: Hosts | None, levels: I64, new: Flags) -> Window:
    """Return the window without what its hosts differ by, as far as that is known.

    `hosts`: of its runs; `levels` (series, runs): the level of each run, below 0 where it has none, as the runs `new`
    (runs,). Each number is moved to one host that the new runs have. Nothing changes where there is one host.
    """
    if hosts is None or hosts.count < 2 or not (hosts.codes[new] >= 0).any():
        return window
    if not len(levels):
        # steps of several kinds without a number of the whole capture
        return window
    levels = np.where(new, -1, levels)
    reference = _choose_reference(hosts, np.asarray((levels >= 0).any(axis=0)), new)
    versions = np.arange(len(new)) if window.versions is None else window.versions
    centred = window.centred(series.shares_shift)
    offset, weight = _differences(centred, levels, hosts, versions, reference)
    # the machine is a level of its own, which no version changes
    of_shift, _ = _differences(window.shift[None, :], levels.max(axis=0, keepdims=True), hosts, versions, reference)
    # the offset is of numbers without the shift: of those that it moves, what hosts share is in the shift
    in_shift = np.where(series.shares_shift[:, None], of_shift, 0.0)
    found = HostLevels(hosts, reference, offset, weight)
    shift_of_runs = np.nan_to_num(found.of_runs(of_shift))
    changed = replace(
        window,
        logs=window.logs - np.nan_to_num(found.of_runs(offset + in_shift)),
        shift=window.shift - shift_of_runs[0],
        measured=window.logs,
        hosts=found,
    )
    if window.by_calls is None or window.by_calls_shift is None:
        return changed
    by_calls, shifts = [], []
    for logs, shift in zip(window.by_calls, window.by_calls_shift, strict=True):
        own, _ = _differences(logs - shift, levels, hosts, versions, reference)
        by_calls.append(logs - np.nan_to_num(found.of_runs(own + of_shift)))
        shifts.append(shift - shift_of_runs[0])
    return replace(changed, by_calls=np.array(by_calls), by_calls_shift=np.array(shifts))


def _choose_reference(hosts: Hosts, has_level: Flags, new: Flags) -> int:
    """Return the host of new runs that has most runs in a level, of equal ones that with most new runs."""
    of_level, of_new = (
        np.bincount(hosts.codes[runs & (hosts.codes >= 0)], minlength=hosts.count) for runs in (has_level, new)
    )
    return int(np.lexsort((of_new, of_level, of_new > 0))[-1])


def _differences(logs: F64, levels: I64, hosts: Hosts, versions: I64, reference: int) -> tuple[F64, F64]:
    """Return offset and weight of each series and host, as `HostLevels` has them.

    Within each level that both have run, by the means of versions: what runs of one night share is no sign of a host.
    """
    offset, weight = np.zeros((2, len(logs), hosts.count))
    weight[:, reference] = np.inf
    of_reference = _cells(logs, levels, hosts.codes == reference, versions)
    if of_reference is None:
        return offset, weight
    for host in sort_distinct(hosts.codes[hosts.codes >= 0]).tolist():
        other = None if host == reference else _cells(logs, levels, hosts.codes == host, versions)
        if other is not None:
            offset[:, host], weight[:, host] = _difference(of_reference, other)
    return offset, weight


class _Cells(Struct, frozen=True, eq=False):
    """The runs of one host by versions (series, versions): `mean`, of how many `runs`, in which `level`."""

    mean: F64
    runs: I64
    level: I64


def _cells(logs: F64, levels: I64, is_own: Flags, versions: I64) -> _Cells | None:
    """Return the runs of a host by versions, None where it has none in a level."""
    counts = is_own & (levels >= 0).any(axis=0)
    means, runs, own_levels = [], [], []
    for version in sort_distinct(versions[counts]).tolist():
        columns = counts & (versions == version)
        own = logs[:, columns]
        level = levels[:, columns].max(axis=1)
        is_known = ~np.isnan(own) & (levels[:, columns] >= 0)
        means.append(median(np.where(is_known, own, np.nan), axis=1))
        runs.append(is_known.sum(axis=1))
        own_levels.append(level)
    if not means:
        return None
    return _Cells(np.stack(means, axis=1), np.stack(runs, axis=1), np.stack(own_levels, axis=1))


def _difference(of_reference: _Cells, other: _Cells) -> tuple[F64, F64]:
    """Return by how much another host is slower, a log, 0 where it is not; and of how many pairs of runs that is known.

    Least squares of an additive model of level and host, of two hosts: the differences within the levels, each by the
    number of pairs.
    """
    count = len(other.mean)
    sums, pairs, pairs_of_runs, squares, freedom, runs, own_runs = np.zeros((7, count))
    differences = []
    for level in sort_distinct(np.concatenate([of_reference.level.ravel(), other.level.ravel()])).tolist():
        if level < 0:
            continue
        sides = []
        for cells in (other, of_reference):
            inside = (cells.level == level) & (cells.runs > 0)
            cell_count = inside.sum(axis=1)
            mean = np.where(inside, cells.mean, 0.0).sum(axis=1) / np.maximum(cell_count, 1)
            squares += np.where(inside, (cells.mean - mean[:, None]) ** 2, 0.0).sum(axis=1)
            freedom += np.maximum(cell_count - 1, 0)
            sides.append((mean, cell_count, np.where(inside, cells.runs, 0).sum(axis=1)))
        (mean, cell_count, run_count), (own_mean, own_cells, own_count) = sides
        has_both = (cell_count > 0) & (own_cells > 0)
        weight = np.where(has_both, cell_count * own_cells / np.maximum(cell_count + own_cells, 1), 0.0)
        sums += weight * (mean - own_mean)
        pairs += weight
        pairs_of_runs += np.where(has_both, run_count * own_count / np.maximum(run_count + own_count, 1), 0.0)
        runs += np.where(has_both, run_count, 0)
        own_runs += np.where(has_both, own_count, 0)
        differences.append((weight, mean - own_mean))
    is_known = (runs >= LEAST_RUNS) & (own_runs >= LEAST_RUNS)
    offset = sums / np.maximum(pairs, 1e-9)
    for weight, difference in differences:
        squares += weight * (difference - offset) ** 2
        freedom += weight > 0
    freedom = np.maximum(freedom - 1, 0)
    variance = np.maximum(squares / np.maximum(freedom, 1), LEAST_VARIANCE)
    p = 2 * t_above(np.abs(offset) / np.sqrt(variance / np.maximum(pairs, 1e-9)), np.maximum(freedom, 1))
    is_equal = (freedom >= LEAST_FREEDOM) & (p >= EQUAL)
    return np.where(is_known & ~is_equal, offset, 0.0), np.where(is_known, pairs_of_runs, 0.0)


def choose_comparable(
    window: Window, series: SeriesTraits, base: Flags, level: Flags, beside: Flags, new: Flags, *, most: int
) -> Comparable:
    """Choose what new runs are compared with, by their hosts: docs/judging.md, step 3.

    `base`, `level` (series, runs): the newest runs of the level, and all of it; `new` (runs,); `most`: runs of a base.
    """
    count = len(base)
    counted = np.broadcast_to(new, base.shape)
    unchanged = Comparable(base, beside, counted, np.zeros(count), np.zeros(count, dtype=bool))
    known = window.hosts
    if known is None:
        return unchanged
    codes, hosts = known.hosts.codes, known.hosts
    is_measured = level & ~np.isnan(window.logs)
    new_hosts = sort_distinct(codes[new])
    if (new_hosts < 0).any() or not len(new_hosts):
        return unchanged
    runs_of = np.stack([(is_measured & (codes == host)).sum(axis=1) for host in range(hosts.count)], axis=1)
    names_all = ~(is_measured & (codes < 0)).any(axis=1)
    is_few = hosts.count_machines(runs_of) < MANY_HOSTS
    is_difference_known = ((known.weight > 0) | (runs_of == 0)).all(axis=1)
    differs = _differ_together(((known.offset != 0) & (runs_of > 0)).any(axis=1), series)
    of_new = runs_of[:, new_hosts].max(axis=1)
    shares_host = (runs_of > 0) @ hosts.overlap[:, new_hosts].any(axis=1)
    may_differ = is_few & names_all & ~is_difference_known
    # its own runs are the base beside hosts that differ, or may
    is_own = (differs & (of_new >= LEAST_RUNS)) | (may_differ & (of_new >= LEAST_OWN))
    is_other = may_differ & (of_new < LEAST_OWN) & is_measured.any(axis=1)
    # jobs of several hosts that share some of them are no others, but for a set that ran once before
    is_other &= ~shares_host | (of_new > 0)
    throttled = _throttled_side(hosts, new_hosts, runs_of)
    if throttled > 0:
        # however many hosts there are, what holds all of the new runs down is no noise between hosts
        is_other |= ~is_few & (runs_of[:, hosts.is_throttled].sum(axis=1) < LEAST_OWN) & is_measured.any(axis=1)
    # new runs of hosts of which nothing is known do not count beside others
    is_comparable = known.of_runs(known.weight) > 0
    counted = np.where(is_own[:, None], new & is_comparable, counted)
    on_own = np.isin(codes, new_hosts) & is_comparable
    chosen = np.where(is_own[:, None], newest(level & on_own & window.recorded, most), base)
    # few runs of its own host tell little of their noise
    is_short = is_own & ((chosen & ~np.isnan(window.logs)).sum(axis=1) < LEAST_RUNS)
    others = newest(level & ~on_own & window.recorded, most)
    beside = np.where(is_short[:, None], beside | others, beside)
    return Comparable(chosen, beside, counted, _variance_of_offsets(known, chosen, counted), is_other, throttled)


def _throttled_side(hosts: Hosts, new_hosts: I64, runs_of: I64) -> int:
    """Return which side was throttled, as `Comparable` has it; `runs_of` (series, hosts): the runs before."""
    before = np.flatnonzero(runs_of.any(axis=0))
    is_same = bool(np.isin(hosts.machines[new_hosts], hosts.machines[before]).all())
    if hosts.is_throttled[new_hosts].all():
        # of many hosts each new one is as good as another
        return int(is_same or len(sort_distinct(hosts.machines[before])) >= MANY_HOSTS)
    is_freed = is_same and bool(hosts.is_throttled[before].any() and not hosts.is_throttled[new_hosts].any())
    return -1 if is_freed else 0


def _differ_together(differs: Flags, series: SeriesTraits) -> Flags:
    """Return which series differ between the hosts: all, where the step or most operators do.

    Then all rows of a comparison are of the same runs.
    """
    is_whole = np.isin(series.kind, (KindCode.STEP, KindCode.WHOLE))
    leaves = differs[series.leaf]
    is_all = differs[is_whole].any() or leaves.sum() > len(leaves) / 2
    return np.ones_like(differs) if is_all else differs


def _variance_of_offsets(own: HostLevels, base: Flags, new: Flags) -> F64:
    """Return what the measured difference of the hosts adds to the variance of a change: nothing where both sides have
    the same hosts.
    """
    found = np.zeros(len(base))
    counts = [np.maximum(side.sum(axis=1), 1) for side in (base, new)]
    for host in range(own.hosts.count):
        is_host = own.hosts.codes == host
        shares = [(side & is_host).sum(axis=1) / count for side, count in zip((base, new), counts, strict=True)]
        is_moved = (own.offset[:, host] != 0) & (own.weight[:, host] > 0)
        weight = np.where(is_moved, own.weight[:, host], np.inf)
        found += (shares[1] - shares[0]) ** 2 / weight
    return found


def judge_other_hosts(
    judged: JudgedSeries, series: SeriesTraits, of_hosts: Comparable, limits: Thresholds
) -> JudgedSeries:
    """Let the step alone stand for what changed where too few runs before are of the same host in the same state.

    It keeps its verdict, or that of its sign in place of DRIFT, with the reason HOST, or THROTTLED, unless operators
    that are certainly new or gone make up half of it. Its parts and operators are INCONCLUSIVE: another host, or the
    clock that was held down, may be all of it.
    """
    why = Reason.THROTTLED if of_hosts.throttled else Reason.HOST
    may_be_host = of_hosts.is_other & np.isin(judged.verdict, _MAY_DIFFER) & ~np.isin(series.kind, _NO_TIME)
    if of_hosts.throttled:
        # a clock that is held down makes nothing faster
        may_be_host &= np.sign(judged.change) == of_hosts.throttled
    if not may_be_host.any():
        return judged
    step = series.choose_step(judged.new_runs, judged.base_runs)
    verdict, reason, suspect = judged.verdict.copy(), judged.reason.copy(), judged.suspect.copy()
    if step is not None and may_be_host[step] and _is_by_operators(judged, series, step, limits):
        may_be_host[step] = False
    # without a step each series stands for itself
    stands = np.arange(len(verdict)) == step if step is not None else may_be_host
    keeps = may_be_host & stands
    reason[keeps] = np.where(verdict[keeps] == Verdict.SUSPECT, reason[keeps], why)
    # one run that moved with its machine waits for others, as everywhere
    drifts = keeps & (verdict == Verdict.DRIFT) & (judged.new_runs >= limits.least_new)
    verdict[drifts] = np.where(judged.change[drifts] > 0, Verdict.REGRESSED, Verdict.IMPROVED)
    others = may_be_host & ~stands
    verdict[others], reason[others], suspect[others] = Verdict.INCONCLUSIVE, why, 0
    return replace(judged, verdict=verdict, reason=reason, suspect=suspect)


def _is_by_operators(judged: JudgedSeries, series: SeriesTraits, step: int, limits: Thresholds) -> bool:
    """Return whether operators that are certainly new or gone make up half of the change of the step."""
    is_exact = np.isin(judged.verdict, (Verdict.ADDED, Verdict.REMOVED)) & series.leaf
    share, change = float(judged.contribution[is_exact].sum()), float(judged.contribution[step])
    return bool(share * np.sign(change) >= limits.explained * abs(change) > 0)
