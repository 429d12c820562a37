"""The sentence that answers "did it become slower?", and what limits it: it claims nothing that the runs cannot say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tracker.compare.comparable import are_same_runs, other_track
from tracker.compare.references import short_labels
from tracker.compare.spread import overlap
from tracker.detect import DEFAULTS
from tracker.profile.branches import branch_of
from tracker.regressions.sides import MAIN_LINE
from tracker.results.recording import remedies
from tracker.results.verdicts import INCOMPARABLE, NOT_CONFIRMED
from tracker.units import counted, format_diff, format_ns, steps_words, time_unit

if TYPE_CHECKING:
    from tracker.compare.certain import Facts
    from tracker.compare.comparable import Recorded
    from tracker.compare.side import LoadedSide
    from tracker.compare.verdicts import Judged
    from tracker.results import Part

_SMALL_CHANGE: Final = 0.005
_MOVED: Final = 0.02
"""Part of the whole that shows, with the whole unmoved, that captures were cut and do not hold the same work."""
_CHANGED: Final = ("REGRESSED", "IMPROVED")
_NO_DIFFERENCE: Final = "no difference"
CUT_OUTS: Final = "Captures without steps that are equally long"
"""How the remark begins on sides that no number of runs would make comparable."""
FACTS: Final = "; "
"""What stands in a headline before what differs for certain beside the time."""
_AS_FAST: Final = ("is as fast as", "is about as fast as")


class Headline(Struct, frozen=True):
    """`text`: the sentence, without a full stop; `verdict`: of the total, None where it was not judged; `remarks`:
    sentences that limit it.
    """

    text: str
    verdict: str | None = None
    remarks: tuple[str, ...] = ()


Range = tuple[float, float]


class Total(Struct, frozen=True):
    """A time of both sides, in ns. `metric`: `step_ns` or `e2e_ns`; `ranges`: smallest and largest over its runs;
    `is_incomplete`: a capture of a side lost records.
    """

    metric: str
    before: float | None
    after: float | None
    ranges: tuple[Range | None, Range | None]
    is_incomplete: bool = False


def headline(
    baseline: LoadedSide,
    candidate: LoadedSide,
    total: Total,
    parts: tuple[Part, ...],
    judged: Judged,
    recorded: Recorded,
    *,
    facts: Facts,
    forced: bool,
) -> Headline:
    """Return how much slower or faster the candidate is; `facts`: what else differs for certain; `forced`: in numbers
    of what cannot be compared, too.
    """
    metric = total.metric
    a, b = _labels(baseline, candidate)
    incomparable = judged.judgement.refusal == INCOMPARABLE
    refusal = judged.judgement.sentences[0].rstrip(".") if incomparable else ""
    if incomparable and not forced:
        return Headline(f"{b} against {a}: {refusal[:1].lower()}{refusal[1:]}")
    before, after = total.before, total.after
    if not before or after is None:
        what = "step" if metric == "step_ns" else "E2E"
        return Headline(f"{b} against {a}: the captures state no {what} time")
    change = after / before - 1.0
    size = _size(before, after, metric)
    delta = _change(before, after)
    whole = f"{size} ({format_diff(change)}, {delta})"
    if incomparable:
        return Headline(f"{b} against {a}: {whole}", remarks=(f"{refusal}; shown all the same, not judged.",))
    if other := other_track(baseline, candidate):
        noise = _noise(baseline, candidate, change, total.ranges)
        return Headline(f"{b} against {a}: {whole}", remarks=(other, *noise))
    if unlike := recorded.of("run", "duration_ns"):
        why = f"Not judged: {'; '.join(one.sentence for one in unlike)}. {remedies(unlike)}".rstrip()
        return Headline(f"{b} against {a}: {whole}", remarks=(why, *_failing(judged, None, facts)))
    if metric == "e2e_ns" and _are_windows(change, before, parts):
        remarks = (_of_windows(before, parts), *_failing(judged, None, facts))
        return Headline(f"{b} against {a}: {whole}", remarks=remarks)
    row = judged.of_total(metric)
    if row is None and total.is_incomplete:
        return Headline(f"{b} against {a}: {whole}", remarks=_failing(judged, None, facts))
    runs = (len(judged.base_runs) or baseline.side.runs, candidate.side.runs)
    if row is None:
        verdict, phrase, remarks = None, _unjudged(change), _noise(baseline, candidate, change, total.ranges)
    else:
        verdict = str(row["verdict"])
        phrase, remarks = _judged(verdict, change, row["change"], judged, runs)
    remarks = (*remarks, *_failing(judged, verdict, facts), *judged.remarks, *judged.history_words)
    certain = _certain(facts, verdict, runs)
    if certain and (facts.is_other_work or verdict is None) and phrase in (*_AS_FAST, _NO_DIFFERENCE):
        # other work is a difference, however long it takes
        phrase = "ran"
    mean = "" if verdict in _CHANGED or metric != "step_ns" else _mean_step(judged, verdict)
    more = f"{mean}{FACTS}{certain}" if certain else mean
    if phrase == _NO_DIFFERENCE:
        return Headline(f"{phrase} between {a} and {b} was found: {whole}{more}", verdict, remarks)
    if phrase in _AS_FAST:
        return Headline(f"{b} {phrase} {a}: {whole}{more}", verdict, remarks)
    if change == 0:
        return Headline(f"{b} took as long as {a}: {whole}{more}", verdict, remarks)
    word = "slower" if change > 0 else "faster"
    percent = format_diff(abs(change)).lstrip("+")
    return Headline(f"{b} {phrase} {percent} {word} than {a}: {size} ({delta}){more}", verdict, remarks)


def _certain(facts: Facts, verdict: str | None, runs: tuple[int, int]) -> str:
    """Return what differs for certain, where the step does not say it all: it is no finding, or was not judged."""
    if verdict in (*_CHANGED, "SUSPECT"):
        return ""
    # calls vary from run to run where inputs do, and several runs are judged
    return facts.words(with_calls=min(runs) == 1)


def _failing(judged: Judged, verdict: str | None, facts: Facts) -> tuple[str, ...]:
    """Return what fails a gate beside the step, so that no exit code comes unannounced."""
    result = judged.gates.get("new")
    if result is None or verdict == "REGRESSED":
        return ()
    if result.cause == "peak memory":
        before, after = facts.peak or (1.0, 1.0 + result.peak)
        # a stored verdict of it may rest on other runs than those of the baseline
        is_other = abs(after / before - 1.0 - result.peak) > _SMALL_CHANGE
        against = " against its own level" if is_other else ""
        rise = format_diff(result.peak).lstrip("+")
        return (f"Peak memory rose by {rise}{against}: that fails a gate (--fail-on).",)
    if result.cause == "net of the operators":
        net = format_diff(result.net)
        return (f"The operators that changed cost {net.lstrip('+')} of the step: that fails a gate (--fail-on).",)
    if result.cause == "machine":
        return ("The drift stays: measure the version before it again. A gate (--fail-on) ends with 4.",)
    return ()


def _mean_step(judged: Judged, verdict: str | None) -> str:
    """Return what some slow steps cost, where the step, their median, does not show it; "" where the mean did not
    change, or is no more than the suspect that the step is.
    """
    row = judged.of_total("mean_step_ns")
    if row is None or row["verdict"] not in (*_CHANGED, "SUSPECT"):
        return ""
    if row["verdict"] == verdict:
        return ""
    word = "slower" if row["change"] > 0 else "faster"
    verb = "may be" if row["verdict"] == "SUSPECT" else "is"
    return f", but its mean step {verb} {format_diff(abs(row['change'])).lstrip('+')} {word}: some steps are"


def _size(before: float, after: float, metric: str) -> str:
    unit = time_unit(before, after)
    number = format_ns(before, unit).removesuffix(f" {unit[1]}")
    sizes = f"{number} -> {format_ns(after, unit)}"
    return f"{sizes} per step" if metric == "step_ns" else f"E2E {sizes}"


def _change(before: float, after: float) -> str:
    """Return the change in the unit of the two times, in a smaller one where that would show nothing."""
    unit = time_unit(before, after)
    text = format_ns(after - before, unit)
    if not any(digit in text for digit in "123456789"):
        return _signed(after - before)
    return text if after < before else f"+{text}"


def _unjudged(change: float) -> str:
    if change == 0:
        return _AS_FAST[0]
    return _AS_FAST[1] if abs(change) < _SMALL_CHANGE else "ran"


def _judged(
    verdict: str, change: float, judged_change: float, judged: Judged, runs: tuple[int, int]
) -> tuple[str, tuple[str, ...]]:
    """Return what stands between the sides, and why it says no more.

    `judged_change`: against the runs that the verdict rests on, which may be others than those of the baseline.
    """
    found, limit = judged.found, judged.step_ratio or 0.0
    against = judged.level_words(judged_change) if abs(judged_change - change) >= limit else ()
    if verdict == "UNCHANGED":
        return ("ran", against) if abs(change) >= limit and against else (_AS_FAST[0], ())
    if verdict in _CHANGED or verdict == "SUSPECT":
        since = judged.history.since if judged.history and judged.base_runs else ""
        lacks = max(1, (found.limits if found is not None else DEFAULTS).least_new - runs[1])
        decide = f"{counted(lacks, 'more run')} of it decide{'s' if lacks == 1 else ''}"
        if MAIN_LINE in (gate.cause for gate in judged.gates.values()):
            decide = "the main line may be as slow itself where the branch left it, and 1 more run of it decides"
        suspect = (f"A suspect: {decide}.",) if verdict == "SUSPECT" else ()
        phrase = "ran" if change * judged_change <= 0 else "may be" if suspect else "is"
        began = (f"It began with {since}.",) if since else ()
        return phrase, (*suspect, *began, *against)
    if verdict == NOT_CONFIRMED:
        by = judged.history.decided_by if judged.history else ""
        return "ran", (f"A suspect that {by or 'later runs'} did not confirm.", *against)
    if verdict == "DRIFT":
        return (_unjudged(change) if against else "ran"), (*against, _drift(judged_change, judged))
    if verdict == "INCONCLUSIVE":
        phrase = _NO_DIFFERENCE if max(abs(judged_change), abs(change)) < limit else "ran" if against else "may be"
        return phrase, ("The runs differ too much to be sure.", *against)
    if verdict == "TOO_FEW_RUNS":
        needed = found.limits.runs_needed(*runs) if found is not None else ""
        if runs == (1, 1):
            return "ran", (f"One run each: no verdict on the time; {needed}.",)
        return "ran", (f"Too few runs to judge the step{needed and ': '}{needed}.",)
    least = f" of {limit * 100:g} %" if limit else ""
    return "ran", (f"Less than the limit{least} that makes a finding.", *against)


def _drift(change: float, judged: Judged) -> str:
    """Return why a total that changed by more than its limit is no finding: the machine-wide drift in it, and the rest.

    `change`: against the runs that it was judged against; those of the baseline may be others.
    """
    shared, limit = judged.judgement.shared, judged.step_ratio
    if shared is None or limit is None:
        return "Machine-wide drift, not this version."
    rest = (1.0 + change) / (1.0 + shared) - 1.0
    together = f"Of {format_diff(change)}, {format_diff(shared)} is machine-wide drift"
    if rest * change <= 0:
        return f"{together}: no less than the whole change."
    least = f"the {limit * 100:g} % that make a finding"
    if abs(rest) < limit:
        return f"{together}; the rest, {format_diff(rest)}, is below {least}."
    return f"{together}; the rest, {format_diff(rest)}, is above {least}, but the runs differ too much to be sure."


def _are_windows(change: float, total: float, parts: tuple[Part, ...]) -> bool:
    """Return whether captures without steps look like cut-outs of the same length: what is in them moved, and they did
    not.
    """
    return abs(change) < _SMALL_CHANGE and any(abs(part.delta_ns) >= _MOVED * total for part in parts)


def _of_windows(total: float, parts: tuple[Part, ...]) -> str:
    moved = [part for part in parts if abs(part.delta_ns) >= _MOVED * total]
    named = ", ".join(f"{part.title[:1].lower()}{part.title[1:]} {_signed(part.delta_ns)}" for part in moved)
    instead = "Mark steps (NVTX), or compare operators per call."
    return f"{CUT_OUTS}, as cut-outs of a run are, say nothing of its speed; inside them {named}. {instead}"


def _signed(delta_ns: float) -> str:
    text = format_ns(delta_ns)
    return text if delta_ns < 0 else f"+{text}"


def _noise(
    baseline: LoadedSide, candidate: LoadedSide, change: float, ranges: tuple[Range | None, Range | None]
) -> tuple[str, ...]:
    if are_same_runs(baseline, candidate):
        return ()
    before, after = ranges
    if before is None or after is None:
        return ()
    if not overlap(before, after):
        drifts = "host" in (baseline.side.timeline, candidate.side.timeline) and abs(change) < DEFAULTS.ratio_step_host
        return ("Steps timed on the host drift this much by themselves.",) if drifts else ()
    unit = time_unit(*before, *after)
    texts = [f"{format_ns(low, unit)} to {format_ns(high, unit)}" for low, high in (before, after)]
    return (f"The runs of the two sides overlap ({' and '.join(texts)}): this may be noise.",)


def _labels(baseline: LoadedSide, candidate: LoadedSide) -> tuple[str, str]:
    a, b = short_labels([baseline.side.label, candidate.side.label])
    if baseline.side.chosen_steps or candidate.side.chosen_steps:
        a, b = (f"{name} ({steps_words(side.side.chosen_steps)})" for name, side in ((a, baseline), (b, candidate)))
    if branch_of(candidate.side.workload) and not branch_of(baseline.side.workload):
        a += " of the main line"
    return a, b
