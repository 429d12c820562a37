"""The verdicts of one version: all series of a track at once, as a pure function of numbers."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from tracker.columns import F64, I64, Flags
from tracker.detect.alike import judge_alike
from tracker.detect.hosts import choose_comparable, judge_other_hosts
from tracker.detect.nights import (
    ALPHA_ALONE,
    LEAST_SERIES,
    count_versions,
    night_effect,
    variance_of_nights,
    vary_alone,
)
from tracker.detect.rounding import within_rounding
from tracker.detect.series import KindCode, SeriesTraits
from tracker.detect.sides import (
    NEAR,
    Sides,
    Statistic,
    Window,
    choose_steadiest,
    jumping,
    lone_outliers,
    mostly_beyond,
    presence_of,
    sides_of,
    with_noise_of,
)
from tracker.detect.statistics import discovery_rates, median, moderated, t_above
from tracker.detect.thresholds import DEFAULTS, Thresholds
from tracker.detect.verdicts import CHANGES, JudgedSeries, Reason, Verdict
from tracker.profile.odd_runs import LEAST_RUNS, find_odd_runs

BEYOND_NEW = 1.5
"""Times the change that a base run must be away to be left out, where it lies in the direction of the change."""
LEAST_OF_VARIANCE = 0.6
"""Of the variance of the medians: out of sample, the statistic that varied least varies no less."""
LEAST_OF_ONE_RUN = 0.05
"""Change of the step from which one run decides, where operators that are certainly new or gone make up half of it."""
LEAST_JUMPS = 2
"""Base runs at the level of the new ones from which a series jumps between both."""


def judge_version(  # noqa: PLR0913 -- the runs, what is known of the series, and three choices
    window: Window, series: SeriesTraits, base: Flags, new: Flags, *, level: Flags | None = None,
    beside: Flags | None = None, opened: Flags | None = None, ratio: float | None = None, alpha: float | None = None,
    limits: Thresholds = DEFAULTS,
) -> JudgedSeries:  # fmt: skip
    """Judge the runs `new` (runs,) of every series against its `base` (series, runs), as docs/judging.md has it.

    `level` (series, runs): all runs of the level in the look-back, by which presence is exact; default: `base`.
    `beside` (series, runs): of series whose level has two runs, those of the level before it, whose noise counts too.
    `opened` (series,): which have an open finding; their q forms a group of its own. `ratio`, `alpha`: smallest change
    and false discovery rate of all series, in place of their own.
    """
    level = base if level is None else level
    beside = np.zeros(base.shape, dtype=bool) if beside is None else beside
    if ratio is not None:
        series = replace(series, ratio=np.full(len(base), np.log1p(ratio)))
    of_hosts = choose_comparable(window, series, base, level, beside, new, most=limits.window)
    base, beside = of_hosts.base, of_hosts.beside
    medians = window.centred(series.shares_shift)
    statistic, centred = judged_statistic(window, medians, series, base, new)
    by_calls = statistic != Statistic.PRINTED
    odd = odd_runs_of_versions(window)
    recorded_base, base = base, counted_base(window, centred, series, base & ~odd, new, limits)
    beside = beside & ~lone_outliers(centred, beside, series.ratio)
    # an odd run of the version hides no change of the others, and doubles none
    counted = of_hosts.new & ~find_odd_runs(np.where(new, window.logs, np.nan))
    printed, sides = sides_of(medians, base, counted), with_noise_of(sides_of(centred, base, counted), centred, beside)
    beyond = separated(centred, series, sides, recorded_base, base, counted)
    beyond = without_jumps(beyond, window, centred, series, sides, counted)
    if by_calls.any():
        # it was chosen because it varied little, which is partly luck
        sides = replace(sides, variance=np.fmax(sides.variance, LEAST_OF_VARIANCE * printed.variance))
        agrees = mostly_beyond(medians, base, counted) == np.sign(sides.change)
        beyond = np.where(by_calls & ~agrees, 0, beyond)
    before, after, whole = shares_of(window, series, printed, base, counted)
    alpha = limits.alpha if alpha is None else alpha
    sides, base_versions, alphas = with_nights(
        sides, window, centred, series, base=base, level=level & ~odd, new=counted, share=before / whole, alpha=alpha,
        limits=limits,
    )  # fmt: skip
    sides = replace(sides, nights=sides.nights + of_hosts.variance)
    tested = (sides.base_runs > 0) & (sides.new_runs > 0)
    tested &= series.of_step | (np.fmax(before, after) >= limits.tested * whole)
    se, freedom, p, q = tested_change(sides, series, tested, opened, limits)
    nothing = np.zeros(len(q), dtype=np.int64)
    measured = window.logs if window.measured is None else window.measured
    own = JudgedSeries(
        verdict=nothing, reason=nothing, change=sides.change, raw_change=sides_of(measured, base, counted).change,
        p=p, q=q, contribution=(after - before) / whole, se=se, freedom=freedom, base_mean=sides.base_mean,
        base_runs=sides.base_runs, new_runs=sides.new_runs, base=base, new=counted,
        beyond=beyond, logs=centred, statistic=statistic, suspect=nothing,
        nights=np.asarray(sides.nights), base_versions=base_versions, alpha=alphas,
    )  # fmt: skip
    enough_base = own.base_runs + beside.sum(axis=1) >= limits.least_base
    own = decided(own, series, enough_base, limits)
    added, removed, enough = presence_of(window, recorded_base, new, level, limits)
    for word, share, where in ((Verdict.ADDED, after, added), (Verdict.REMOVED, before, removed)):
        counts = where & ~series.of_step & (share / whole >= series.floor)
        own.verdict[counts] = np.where(enough[counts], word, Verdict.TOO_FEW_RUNS)
        own.reason[counts] = np.where(enough[counts], Reason.NONE, Reason.FEW_NEW)
        own.reason[where & ~counts] = Reason.CONTRIBUTION
    own = with_certain_causes(own, series, limits)
    own = as_measured(own, window, base, counted)
    own = without_drift(own, window, series, (base, beside), counted, limits)
    own = on_equal_machine(own, window, series, (base, beside), counted, limits)
    own = decided_by_operators(own, series, limits)
    own = judge_alike(own, series, before / whole, bool(window.shift.any()), limits)
    own = judge_other_hosts(own, series, of_hosts, limits)
    own = within_rounding(own, window, series)
    return with_likely_suspects(own, series, limits)


def with_likely_suspects(found: JudgedSeries, series: SeriesTraits, limits: Thresholds) -> JudgedSeries:
    """Call a suspect only what one run makes likely; what is less likely waits for further runs without being named.

    The step itself is always named: a gate waits for it.
    """
    is_suspect = found.verdict == Verdict.SUSPECT
    is_step = np.isin(series.kind, (KindCode.STEP, KindCode.WHOLE))
    with np.errstate(invalid="ignore"):
        is_unlikely = is_suspect & ~is_step & ~(found.q <= limits.alpha_named)
    return replace(
        found,
        suspect=np.where(is_suspect, np.sign(found.change), 0).astype(np.int64),
        verdict=np.where(is_unlikely, Verdict.INCONCLUSIVE, found.verdict),
        reason=np.where(is_unlikely, Reason.SIGNIFICANCE, found.reason),
    )


def with_nights(  # noqa: PLR0913 -- the runs, what is known of the series, and what counts
    sides: Sides, window: Window, logs: F64, series: SeriesTraits, *, base: Flags, level: Flags, new: Flags,
    share: F64, alpha: float, limits: Thresholds,
) -> tuple[Sides, I64, F64]:  # fmt: skip
    """Return the sides with what nights add to the variance; of how many versions the base is; and the largest q that
    counts for each series.

    Operators tell together how much nights differ. Where there are too few, each series tells by itself, and a small
    change must be surer where the nights vary more than the runs of one. `base`, `level`, `new` (series, runs): the
    runs that it is compared with, all of their level, and those of the version; `share` (series,): of the step,
    before: small operators vary by themselves; `alpha`: the largest q of all others.
    """
    alphas = np.full(len(logs), alpha)
    if window.versions is None:
        return replace(sides, nights=np.zeros(len(logs))), np.ones(len(logs), dtype=np.int64), alphas
    base_versions = np.maximum(count_versions(base & ~np.isnan(logs), window.versions), 1)
    with np.errstate(invalid="ignore"):
        operators = series.leaf & (share >= limits.floor)
    level = level & window.recorded
    effect = night_effect(logs[operators], level[operators], window.versions)
    sides = replace(sides, nights=variance_of_nights(sides.new_runs, base_versions, effect))
    if operators.sum() >= LEAST_SERIES:
        return sides, base_versions, alphas
    alone = vary_alone(logs, level, new, window.versions, series.ratio)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_runs = alone.within * (1.0 / sides.base_runs + 1.0 / sides.new_runs)
        of_nights = alone.between * (1.0 / base_versions + 1.0)
        # Satterthwaite (1946)
        freedom = (of_runs + of_nights) ** 2 / (of_runs**2 / alone.freedom + of_nights**2 / alone.worth)
    shows = ~np.isnan(of_nights) & (sides.new_runs >= limits.least_new)
    sides = replace(
        sides,
        variance=np.where(shows, alone.within, sides.variance),
        freedom=np.where(shows, freedom, sides.freedom),
        nights=np.where(shows, of_nights / alone.within, sides.nights),
    )
    return sides, base_versions, np.where(shows & (of_nights > of_runs), min(alpha, ALPHA_ALONE), alphas)


def judged_statistic(window: Window, medians: F64, series: SeriesTraits, base: Flags, new: Flags) -> tuple[I64, F64]:
    """Return for each series the `sides.Statistic` that is judged, and its logs: the one that varied least.

    `medians`: the logs that are printed, medians over the steps. They are judged in its place where some of the calls
    or steps got slower and most calls did not: the medians differ between the sides, and what varied least moved by
    less than half as much. And where the machine makes more than half of its change: each statistic has a common-mode
    shift of its own, and a series that does not share it would be found by that alone.
    """
    statistic, logs = choose_steadiest(window, medians, series.shares_shift, base, new)
    rows = np.flatnonzero(statistic != Statistic.PRINTED)
    if not len(rows) or window.by_calls is None:
        return statistic, medians
    base, ratio = base[rows], series.ratio[rows]
    printed_change = sides_of(medians[rows], base, new).change
    chosen_change = sides_of(logs[rows], base, new).change
    with_shift = np.choose(statistic[rows, None], [window.logs[rows], *window.by_calls[:, rows]])
    measured_change = sides_of(with_shift, base, new).change
    differs = mostly_beyond(medians[rows], base, new) != 0
    with np.errstate(invalid="ignore"):
        is_less_moved = chosen_change * np.sign(printed_change) < np.abs(printed_change) / 2
        is_of_some_calls = differs & (np.abs(printed_change) >= ratio) & is_less_moved
        is_less_measured = measured_change * np.sign(chosen_change) < np.abs(chosen_change) / 2
        is_of_machine = (np.abs(chosen_change) >= ratio) & is_less_measured
    statistic[rows[is_of_some_calls | is_of_machine]] = Statistic.PRINTED
    return statistic, np.where((statistic != Statistic.PRINTED)[:, None], logs, medians)


def odd_runs_of_versions(window: Window) -> Flags:
    """Return which runs (series, runs) stand alone in their version, far from all of its others."""
    odd = np.zeros(window.logs.shape, dtype=bool)
    if window.versions is None:
        return odd
    versions, counts = np.unique(window.versions, return_counts=True)
    for version in versions[counts >= LEAST_RUNS].tolist():
        is_own = window.versions == version
        odd[:, is_own] = find_odd_runs(window.logs[:, is_own])
    return odd


def counted_base(
    window: Window, centred: F64, series: SeriesTraits, base: Flags, new: Flags, limits: Thresholds
) -> Flags:
    """Return the base runs (series, runs) without those that alone lie far from all others of a series.

    Of the step and its parts, from which the common-mode shift is not taken, a run is left out by its shift too.
    A run that lies where the new ones are stays: the series was there before.
    """
    outliers = lone_outliers(centred, base, series.ratio)
    in_base = np.any(base, axis=0, keepdims=True)
    of_machine = lone_outliers(window.shift[None, :], in_base, np.array([np.log1p(limits.ratio)]))
    of_step = series.of_step & (base & ~of_machine[0]).any(axis=1)  # a level may have that run alone
    outliers[of_step] |= of_machine[0] & base[of_step]
    rows = np.flatnonzero(np.any(outliers, axis=1))
    if not len(rows):
        return base
    sides = sides_of(centred[rows], base[rows] & ~outliers[rows], new)
    # noisy operators have one such run by chance, and without this rule three times as many false findings
    towards = (centred[rows] - sides.base_mean[:, None]) * np.sign(sides.change)[:, None]
    with np.errstate(invalid="ignore"):
        outliers[rows] &= ~((towards > 0) & (towards < BEYOND_NEW * np.abs(sides.change)[:, None]))
    return np.asarray(base & ~outliers)


def separated(logs: F64, series: SeriesTraits, sides: Sides, recorded: Flags, base: Flags, new: Flags) -> I64:
    """Return 1 or -1 where the new runs lie above or below the base runs, 0 where they overlap.

    A series of which two of the `recorded` base runs lie within 1 % of the median of the new ones overlaps, too: it
    jumps between two levels.
    """
    beyond = sides.beyond.copy()
    with np.errstate(invalid="ignore"):
        rows = np.flatnonzero(np.abs(sides.change) >= series.ratio)
        own = logs[rows]
        beyond[rows] = mostly_beyond(own, base[rows], new[rows])
        middle = median(np.where(new[rows], own, np.nan), axis=1)
        near = recorded[rows] & (np.abs(own - middle[:, None]) <= NEAR)
    beyond[rows[near.sum(axis=1) >= LEAST_JUMPS]] = 0
    return beyond


def without_jumps(
    beyond: I64, window: Window, logs: F64, series: SeriesTraits, sides: Sides, new: Flags
) -> I64:  # fmt: skip
    """Return `beyond` with 0 where a series jumps between two levels, as the whole look-back shows: docs/judging.md.

    The step and its parts are known by their causes.
    """
    if window.past is None or not (window.past > 0).any():
        return beyond
    with np.errstate(invalid="ignore"):
        rows = np.flatnonzero((beyond != 0) & ~series.of_step & (np.abs(sides.change) >= series.ratio))
    jumps = rows[jumping(logs[rows], window.past, new[rows], sides.change[rows])] if len(rows) else rows
    beyond = beyond.copy()
    beyond[jumps] = 0
    return beyond


def decided(own: JudgedSeries, series: SeriesTraits, enough_base: Flags, limits: Thresholds) -> JudgedSeries:
    """Decide the verdict and the reason of what is on both sides: docs/judging.md, step 7."""
    change = np.abs(own.change)
    is_large, counts = change >= series.ratio, np.abs(own.contribution) >= series.floor
    is_significant, single = own.q <= own.alpha, own.new_runs < limits.least_new
    few = ~enough_base | (own.new_runs == 0)
    passes = ~few & is_large & counts & (own.beyond == np.sign(own.change)) & ~np.isnan(own.p)
    found = passes & is_significant & ~single
    cases: list[tuple[Flags, Verdict, Reason]] = [
        (own.base_runs + own.new_runs == 0, Verdict.ABSENT, Reason.NONE),
        (passes & single, Verdict.SUSPECT, Reason.FEW_NEW),
        (found & (own.change > 0), Verdict.REGRESSED, Reason.NONE),
        (found, Verdict.IMPROVED, Reason.NONE),
        (~enough_base, Verdict.TOO_FEW_RUNS, Reason.FEW_BASE),
        (own.new_runs == 0, Verdict.TOO_FEW_RUNS, Reason.FEW_NEW),
        (change + limits.unchanged_errors * own.se <= series.ratio, Verdict.UNCHANGED, Reason.RATIO),
        (is_significant & ~is_large & ~single, Verdict.BELOW_LIMIT, Reason.RATIO),
        (is_significant & ~counts & ~single, Verdict.BELOW_LIMIT, Reason.CONTRIBUTION),
        (~is_large, Verdict.INCONCLUSIVE, Reason.RATIO),
        (~counts | np.isnan(own.p), Verdict.INCONCLUSIVE, Reason.CONTRIBUTION),
        (~passes, Verdict.INCONCLUSIVE, Reason.OVERLAP),
    ]
    conditions, verdicts, reasons = zip(*cases, strict=True)
    verdict = np.select(conditions, verdicts, Verdict.INCONCLUSIVE)
    return replace(own, verdict=verdict, reason=np.select(conditions, reasons, Reason.SIGNIFICANCE))


def exact_share(found: JudgedSeries, series: SeriesTraits) -> float:
    """Return how much of the step new and removed operators make up, signed: what is certain without a test."""
    is_exact = np.isin(found.verdict, (Verdict.ADDED, Verdict.REMOVED))
    return float(found.contribution[series.leaf & is_exact].sum())


def is_certain(found: JudgedSeries, series: SeriesTraits, limits: Thresholds) -> Flags:
    """Return which series are the step of which new and removed operators make 1 % in the direction of the change."""
    is_whole = np.isin(series.kind, (KindCode.STEP, KindCode.WHOLE))
    with np.errstate(invalid="ignore"):
        return np.asarray(is_whole & (exact_share(found, series) * np.sign(found.change) >= limits.gate_net))


def with_certain_causes(found: JudgedSeries, series: SeriesTraits, limits: Thresholds) -> JudgedSeries:
    """Let the test alone decide a step with certain causes.

    What made it slower is known then, so that a single base run that was as slow is no doubt.
    """
    with np.errstate(invalid="ignore"):
        by_test = is_certain(found, series, limits) & (found.reason == Reason.OVERLAP) & (found.q <= found.alpha)
    single = found.new_runs < limits.least_new
    word = np.where(single, Verdict.SUSPECT, np.where(found.change > 0, Verdict.REGRESSED, Verdict.IMPROVED))
    reason = np.where(single, Reason.FEW_NEW, Reason.NONE)
    return replace(
        found,
        verdict=np.where(by_test, word, found.verdict),
        reason=np.where(by_test, reason, found.reason),
    )


def decided_by_operators(found: JudgedSeries, series: SeriesTraits, limits: Thresholds) -> JudgedSeries:
    """Let one run decide a slower step where new and gone operators make up half of it: docs/judging.md, step 9.

    Presence is exact: of operators whose presence never varied in the level it needs no second run. That the step is
    slower by 5 % at least, and by how much, rests on the run.
    """
    is_whole = np.isin(series.kind, (KindCode.STEP, KindCode.WHOLE))
    has_level = found.base_runs >= limits.least_base
    with np.errstate(invalid="ignore"):
        is_slower = (found.verdict == Verdict.SUSPECT) & (found.change >= np.log1p(LEAST_OF_ONE_RUN))
        is_half = exact_share(found, series) >= limits.explained * found.contribution
    by_operators = is_whole & has_level & is_slower & is_half
    return replace(
        found,
        verdict=np.where(by_operators, Verdict.REGRESSED, found.verdict),
        reason=np.where(by_operators, Reason.OPERATORS, found.reason),
    )


def shares_of(window: Window, series: SeriesTraits, sides: Sides, base: Flags, new: Flags) -> tuple[F64, F64, F64]:
    """Return the number of each series before and after (0 where absent), and the whole that it is a share of.

    The whole is the larger of the two steps, without the common-mode shift; of what is no time, and where no step is
    known, the larger sum of the family.
    """
    before, after = (np.nan_to_num(np.exp(mean)) for mean in (sides.base_mean, sides.new_mean))
    with np.errstate(divide="ignore"):
        step = np.broadcast_to(np.log(window.step) - window.shift, base.shape)
    steps = sides_of(step, base, new)
    larger = np.exp(np.fmax(steps.base_mean, steps.new_mean))
    of_family = [np.bincount(series.family, weights=side)[series.family] for side in (before, after)]
    whole = np.where(series.is_time & ~np.isnan(larger), larger, np.maximum(*of_family))
    return before, after, np.where(whole > 0, whole, np.nan)


def tested_change(
    sides: Sides, series: SeriesTraits, tested: Flags, opened: Flags | None, limits: Thresholds
) -> tuple[F64, F64, F64, F64]:
    """Return standard error, its degrees of freedom, p and q: a moderated t test, rates per family and direction.

    The variance that a family shares is that of its tested series: small ones, which are no findings, vary more.
    """
    shares = tested & ~series.of_step & (series.kind != KindCode.PEAK)
    variance, freedom = moderated(sides.variance, sides.freedom, series.family, shares, limits.least_leaves)
    with np.errstate(invalid="ignore", divide="ignore"):
        se = np.sqrt(variance * (1.0 / sides.base_runs + 1.0 / sides.new_runs + sides.nights))
        t = np.where(tested & (freedom > 0), sides.change / se, np.nan)
    one_sided = t_above(np.abs(t), np.maximum(freedom, 1e-9))
    rises = np.where(t > 0, one_sided, 1.0 - one_sided)
    group = series.family * 2 + (0 if opened is None else opened)
    q = np.where(t > 0, discovery_rates(rises, group), discovery_rates(1.0 - rises, group))
    return se, freedom, np.where(np.isnan(t), np.nan, one_sided), q


def as_measured(found: JudgedSeries, window: Window, base: Flags, new: Flags) -> JudgedSeries:
    """Turn changes that the measured numbers do not show into INCONCLUSIVE: docs/judging.md, step 3.

    A change stays where the number that is printed moved in its direction, and the number that was judged moved by half
    of it or more before the common-mode shift was taken out. A series without a number on a side has no change.
    """
    rows = np.flatnonzero(np.isin(found.verdict, (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.SUSPECT)))
    if not len(rows):
        return found
    change, sign = np.abs(found.change[rows]), np.sign(found.change[rows])
    measured = window.logs[rows]
    if window.by_calls is not None:
        measured = np.choose(found.statistic[rows, None], [measured, *window.by_calls[:, rows]])
    measured_change = sides_of(measured, base[rows], new[rows]).change
    is_shown = (sign * found.raw_change[rows] > 0) & (sign * measured_change >= change / 2)
    hidden = rows[~is_shown]
    verdict, reason = found.verdict.copy(), found.reason.copy()
    verdict[hidden], reason[hidden] = Verdict.INCONCLUSIVE, Reason.CORRECTION
    return replace(found, verdict=verdict, reason=reason)


def centred_parts(
    window: Window, series: SeriesTraits, rows: I64, sides_before: tuple[Flags, Flags], new: Flags, nights: F64,
    limits: Thresholds,
) -> tuple[Sides, tuple[F64, F64, F64, F64]]:  # fmt: skip
    """Compare and test the step and its parts (`rows`) without the common-mode shift.

    `sides_before`: the base runs, and those whose noise counts beside them; `nights` (series,): see `Sides`.
    """
    base, beside = sides_before
    logs = window.logs[rows] - window.shift
    sides = with_noise_of(sides_of(logs, base[rows], new[rows]), logs, beside[rows])
    sides = replace(sides, nights=nights[rows])
    is_tested = (sides.base_runs > 0) & (sides.new_runs > 0)
    return sides, tested_change(sides, series.take(rows), is_tested, None, limits)


def on_equal_machine(
    found: JudgedSeries, window: Window, series: SeriesTraits, sides_before: tuple[Flags, Flags], new: Flags,
    limits: Thresholds,
) -> JudgedSeries:  # fmt: skip
    """Let the step without the common-mode shift decide where that hid a part of the change: docs/judging.md, step 3.

    New and gone operators must make 1 % of the step in that direction, and the step must have moved in it as measured,
    too: a step that was measured faster is never called slower. `sides_before`: as in `without_drift`.
    """
    certain = exact_share(found, series)
    if abs(certain) < limits.gate_net or not window.shift.any():
        return found
    rows = np.flatnonzero(series.of_step)
    own = series.take(rows)
    sides, (se, freedom, p, q) = centred_parts(window, series, rows, sides_before, new, found.nights, limits)
    is_whole = np.isin(own.kind, (KindCode.STEP, KindCode.WHOLE))
    base_runs = found.base_runs[rows] + sides_before[1][rows].sum(axis=1)
    is_open = is_whole & (base_runs >= limits.least_base) & (sides.new_runs >= limits.least_new)
    sign = np.sign(certain)
    change, measured = sign * sides.change, sign * found.raw_change[rows]
    with np.errstate(invalid="ignore"):
        passes = (
            is_open
            & (found.sign[rows] == 0)
            & (change >= own.ratio)
            & (q <= found.alpha[rows])
            & (sides.beyond == sign)
        )
        passes &= (measured > 0) & (change > measured)
    if not passes.any():
        return found
    hidden = rows[passes]
    columns = {
        "verdict": np.full(len(rows), Verdict.REGRESSED if sign > 0 else Verdict.IMPROVED),
        "reason": np.full(len(rows), Reason.EQUAL_MACHINE),
        "change": sides.change, "se": se, "freedom": freedom, "p": p, "q": q, "beyond": sides.beyond,
    }  # fmt: skip
    decided_columns = {}
    for name, numbers in columns.items():
        decided_columns[name] = getattr(found, name).copy()
        decided_columns[name][hidden] = numbers[passes]
    return replace(found, **decided_columns)


def without_drift(
    found: JudgedSeries, window: Window, series: SeriesTraits, sides_before: tuple[Flags, Flags], new: Flags,
    limits: Thresholds,
) -> JudgedSeries:  # fmt: skip
    """Turn changes of the step and its parts that the machine explains into DRIFT: docs/judging.md, step 3.

    A change stays if it passes without the common-mode shift too; or, of the step as a whole, if changed operators and
    the largest wait that passes make up half of it; or if new and removed operators make up 1 % of the step. Causes do
    not count where the shift is as large as the change itself: nothing of it is left for them. A series of which more
    than the limit is left is no DRIFT, however much the runs differ. `sides_before`: the base runs, and those whose
    noise counts beside them.
    """
    part = series.of_step
    moved = part & np.isin(found.verdict, (Verdict.REGRESSED, Verdict.IMPROVED, Verdict.SUSPECT))
    if not moved.any() or not window.shift.any():
        return found
    rows = np.flatnonzero(part)
    own = series.take(rows)
    sides, (*_, q) = centred_parts(window, series, rows, sides_before, new, found.nights, limits)
    centred = (np.abs(sides.change) >= own.ratio) & (
        (q <= found.alpha[rows]) | (found.verdict[rows] == Verdict.SUSPECT)
    )
    same_way = np.sign(sides.change) == np.sign(found.change[rows])
    holds, is_left, is_large = np.zeros((3, len(part)), dtype=bool)
    holds[rows], is_left[rows] = centred & same_way, same_way
    is_large[rows] = same_way & (np.abs(sides.change) >= own.ratio)
    changed = np.isin(found.verdict, (*CHANGES, Verdict.SUSPECT))
    leaves = found.contribution[series.leaf & changed].sum()
    waits = np.flatnonzero((series.kind == KindCode.WAIT) & changed & holds)
    wait = found.contribution[waits[np.argmax(np.abs(found.contribution[waits]))]] if len(waits) else 0.0
    # a wait that changed by far more than a sum is not in it: data that come late are in the step, not in compute
    is_within = limits.explained * np.abs(wait) <= np.abs(found.contribution)
    leaves = leaves + np.where(is_within, wait, 0.0)
    sign = np.sign(found.change)
    is_whole = np.isin(series.kind, (KindCode.STEP, KindCode.WHOLE))
    with np.errstate(invalid="ignore"):
        by_causes = is_whole & (leaves * sign >= limits.explained * np.abs(found.contribution))
        by_causes |= exact_share(found, series) * sign >= limits.gate_net
    moved &= ~(holds | (by_causes & is_left))
    # what is left is above the limit, and not sure
    unsure = moved & is_large
    verdict = np.where(moved, Verdict.DRIFT, found.verdict)
    reason = np.where(moved, Reason.MACHINE, found.reason)
    return replace(
        found,
        verdict=np.where(unsure, Verdict.INCONCLUSIVE, verdict),
        reason=np.where(unsure, Reason.SIGNIFICANCE, reason),
    )
