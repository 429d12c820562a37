"""The sentence that answers "did it become slower?", and what limits it: it claims nothing that the runs cannot say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.compare.comparable import are_same_runs, other_track
from tracker.compare.kernel_causes import NOT_OPERATORS
from tracker.compare.notes import (
    lacks_device_data,
    sentence_on_level,
    sentences_on_findings,
    sentences_on_history,
    words_of_deciding_runs,
)
from tracker.compare.references import FILES, short_names
from tracker.compare.renames import list_changes
from tracker.detect import DEFAULTS
from tracker.detect.verdicts import LEVEL_CHANGES
from tracker.profile.branches import branch_of
from tracker.regressions.replacements import main_names
from tracker.regressions.rounding import find_rounding
from tracker.regressions.sides import MAIN_LINE
from tracker.results import ADDED, REMOVED, REPLACED_BY
from tracker.results.leading_cause import VERDICTS_WITH_CAUSE
from tracker.results.machine_state import sentence_on_machines
from tracker.results.recording import remedies
from tracker.results.slow_steps import describe_slowest
from tracker.results.verdicts import (
    ALIKE_REASON,
    CHANGED,
    HOST_REASON,
    INCOMPARABLE,
    NOT_CONFIRMED,
    ROUNDING_REASON,
    THROTTLED_REASON,
    SeriesVerdict,
    remark_on_few,
    sentence_on_alike,
    sentence_on_equal_hosts,
    sentence_on_machine,
    sentence_on_one_run,
    sentence_on_other_hosts,
    sentence_on_throttled,
    words_of_rounding,
)
from tracker.schema.column_names import BASELINE_VALUE, CANDIDATE_VALUE, METRIC, NAME, STATUS, WORKLOAD
from tracker.schema.series import STEP_KEY, UNPROFILED_STEP, key_of_run
from tracker.store import queries, recordings
from tracker.units import (
    counted,
    format_bytes,
    format_diff,
    format_ns,
    size_unit,
    some_of,
    step_word,
    steps_words,
    time_unit,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tracker.columns import Columns
    from tracker.compare.comparable import Recorded
    from tracker.compare.operators import Operators
    from tracker.compare.side import LoadedSide
    from tracker.compare.verdicts import Judged
    from tracker.results import Cause, Contribution, Part, Rename, SlowStep
    from tracker.results.leading_cause import LeadingCause

_SMALL_CHANGE: Final = 0.005
_LEAST_MOVE_OF_PART: Final = 0.02
"""Part of the whole that shows, with the whole unmoved, that captures were cut and do not hold the same work."""
_LEAST_MOVE_OF_PEAK: Final = 0.01
"""Part of the peak below which a change of it is no fact: allocators of devices round."""
_MOST_REGRESSED: Final = 2
"""Operators with a verdict that a headline names."""
_STEP_COLUMN: Final = "step_ns"

CUT_OUTS: Final = "Captures without steps that are equally long"
"""How the remark begins on sides that no number of runs would make comparable."""
FACTS: Final = "; "
"""What stands in a headline before what differs for certain beside the time."""

# what stands in a headline between the two sides
_AS_FAST: Final = "is as fast as"
_ABOUT_AS_FAST: Final = "is about as fast as"
_NO_DIFFERENCE: Final = "no difference"
_IS: Final = "is"
_MAY_BE: Final = "may be"
_RAN: Final = "ran"


class Regressed(Struct, frozen=True):
    """An operator or kernel, or what replaced some, that became slower: ns per step before and after."""

    name: str
    before_ns: float
    after_ns: float
    what: str = "operator"


def list_regressed(
    findings: Sequence[Cause],
    renames: Sequence[Rename],
    excused: Collection[str],
    causes: Sequence[Contribution] = (),
) -> tuple[Regressed, ...]:
    """Return the operators that regressed, the largest contribution first; what was replaced counts as one, by its net.
    Behind them stand the kernels among `causes`, for which no operator stands.

    `findings`: operators with a verdict; `excused`: names that users expect, or marked as false positives.
    """
    rename_of_name = {name: rename for rename in renames for name in rename.names}
    regressed: dict[str, Regressed] = {}
    for finding in findings:
        rename = rename_of_name.get(finding.name)
        is_worse = finding.verdict in ("REGRESSED", ADDED)
        if finding.name in excused or finding.name in NOT_OPERATORS or not is_worse:
            continue
        if rename is not None and rename.is_worse:
            sides = [main_names(side.split(" + ")) for side in (rename.removed, rename.added)]
            name = REPLACED_BY.join(some_of(names, most=1) for names in sides)
            regressed[name] = Regressed(name, rename.removed_ns, rename.added_ns)
        elif rename is None and finding.verdict == "REGRESSED":
            regressed[finding.name] = Regressed(finding.name, finding.baseline_ns or 0.0, finding.candidate_ns or 0.0)
    kernels = []
    for cause in causes:
        if cause.kind == "kernel" and cause.verdict == "REGRESSED" and cause.name not in excused:
            kernels.append(Regressed(cause.name, cause.baseline_ns or 0.0, cause.candidate_ns or 0.0, "kernel"))
    return (*regressed.values(), *kernels)


class Headline(Struct, frozen=True):
    """The answer in one sentence.

    `text`: the sentence, without a full stop.
    `verdict`: of the total, None where it was not judged.
    `remarks`: sentences that limit it.
    `is_other_work`: the total is of inputs of another size.
    """

    text: str
    verdict: str | None = None
    remarks: tuple[str, ...] = ()
    is_other_work: bool = False


Range = tuple[float, float]
"""The smallest and the largest value of several runs."""


class Total(Struct, frozen=True):
    """A time of both sides, in ns. `metric`: `step_ns` or `e2e_ns`, or UNPROFILED_STEP; `ranges`: over the runs of each
    side; `is_incomplete`: a capture of a side lost records. `under_profiler`: beside UNPROFILED_STEP that of the trace.
    `slow_steps`: of both sides, the slowest first. `leading`: what makes most of the change, None for nothing.
    """

    metric: str
    before: float | None
    after: float | None
    ranges: tuple[Range | None, Range | None]
    is_incomplete: bool = False
    under_profiler: Total | None = None
    slow_steps: tuple[Sequence[SlowStep], Sequence[SlowStep]] = ((), ())
    leading: LeadingCause | None = None

    @property
    def is_step(self) -> bool:
        """Whether it is the time of a step, and not of a whole capture."""
        return self.metric in (_STEP_COLUMN, UNPROFILED_STEP)


class Facts(Struct, frozen=True):
    """What one run of each side is enough for: two runs of one program agree in it to the byte, whatever the machine
    does. How long they take is another matter.

    `added`, `removed`: names of operators of one side only.
    `reshaped`: names that have other shapes on each side.
    `called`: names of both sides with more or fewer calls.
    `peak`: bytes before and after, where they differ.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    reshaped: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    peak: tuple[float, float] | None = None

    @property
    def is_other_work(self) -> bool:
        """Whether the sides do not run the same operators."""
        return bool(self.added or self.removed or self.reshaped)

    def describe(self, *, with_calls: bool) -> str:
        """Return all of it in a phrase, "" for nothing.

        >>> Facts(added=("pow", "tanh"), removed=("gelu",), called=("mul",)).describe(with_calls=True)
        '2 operators new, 1 gone, 1 called more or less often'
        >>> Facts(removed=("gelu",), peak=(100.0, 150.0)).describe(with_calls=False)
        '1 operator gone, peak memory 100 -> 150 B (+50.0 %)'
        """
        phrases: list[str] = []
        groups = [("new", self.added), ("gone", self.removed), ("with other shapes", self.reshaped)]
        if with_calls:
            groups.append(("called more or less often", self.called))
        for word, names in groups:
            if names:
                # the first count says of what
                count = f"{len(names):,}" if phrases else counted(len(names), "operator")
                phrases.append(f"{count} {word}")
        if self.peak is not None:
            before, after = self.peak
            unit = size_unit(before, after)
            number = format_bytes(before, unit).split(" ")[0]
            change = format_diff(after / before - 1.0)
            phrases.append(f"peak memory {number} -> {format_bytes(after, unit)} ({change})")
        return ", ".join(phrases)


def find_facts(operators: Operators, overall: Columns) -> Facts:
    """Return what differs for certain between two sides.

    `operators`: of their Diff; `overall`: its overall rows.
    """
    one_sided = {name for name, status in operators.everything.rows(NAME, STATUS) if status in (ADDED, REMOVED)}
    added, removed, reshaped, called = [], [], [], []
    for change in list_changes(operators.names):
        if change.name in NOT_OPERATORS:
            continue
        if change.status == ADDED:
            added.append(change.name)
        elif change.status == REMOVED:
            removed.append(change.name)
        elif change.name in one_sided:
            # some shapes are on one side only
            reshaped.append(change.name)
        elif change.has_other_calls:
            called.append(change.name)
    return Facts(tuple(added), tuple(removed), tuple(reshaped), tuple(called), _find_peak(overall))


def _find_peak(overall: Columns) -> tuple[float, float] | None:
    for metric, before, after in overall.rows(METRIC, BASELINE_VALUE, CANDIDATE_VALUE):
        is_peak = metric == key_of_run("peak memory").metric
        if is_peak and before and after and abs(after / before - 1.0) >= _LEAST_MOVE_OF_PEAK:
            return float(before), float(after)
    return None


def make_headline(
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
    """Return how much slower or faster the candidate is.

    `parts`: of the total; `facts`: what else differs for certain; `forced`: in numbers of what cannot be compared, too.
    """
    a, b = _label_sides(baseline, candidate)
    incomparable = judged.judgement.refusal == INCOMPARABLE
    refusal = judged.judgement.sentences[0].rstrip(".") if incomparable else ""
    if incomparable and not forced:
        return Headline(f"{b} against {a}: {refusal[:1].lower()}{refusal[1:]}")
    before, after = total.before, total.after
    if not before or after is None:
        what = "step" if total.is_step else "E2E"
        return Headline(f"{b} against {a}: the captures state no {what} time")

    change = after / before - 1.0
    size, delta = _format_both(before, after, total), _format_delta(before, after)
    in_numbers = f"{b} against {a}: {size} ({format_diff(change)}, {delta})"
    if incomparable:
        return Headline(in_numbers, remarks=(f"{refusal}; shown all the same, not judged.",))
    other = other_track(baseline, candidate)
    if recorded.other_work is not None:
        work = recorded.other_work
        text = f"{b} against {a}: other work: {work.inputs.words}; {size} ({format_diff(change)}, {delta})"
        remarks = (*([other] if other else []), *work.remarks)
        return Headline(text, remarks=(*remarks, *sentences_on_findings(judged.verdicts)), is_other_work=True)
    if other:
        return Headline(in_numbers, remarks=(other, *_remarks_on_noise(baseline, candidate, change, total.ranges)))
    # whatever the headline says, no exit code comes unannounced
    gate_remarks = _remarks_on_gate(judged, None, facts)
    unlike = recorded.of(STEP_KEY.kind, STEP_KEY.metric)
    if unlike:
        why = f"Not judged: {'; '.join(one.sentence for one in unlike)}. {remedies(unlike)}".rstrip()
        return Headline(in_numbers, remarks=(why, *gate_remarks))
    if not total.is_step and _are_cut_outs(change, before, parts):
        return Headline(in_numbers, remarks=(_remark_on_cut_outs(before, parts), *gate_remarks))
    row = judged.find_total(total.metric)
    if row is None and total.is_incomplete:
        return Headline(in_numbers, remarks=gate_remarks)

    runs = (len(judged.base_runs) or baseline.side.runs, candidate.side.runs)
    if row is None:
        verdict, phrase = None, _phrase_of_unjudged(change)
        remarks = _remarks_on_noise(baseline, candidate, change, total.ranges)
    else:
        verdict = str(row.verdict)
        phrase, remarks = _phrase_of_verdict(verdict, change, row.change, judged, runs)
        why_changed = sentence_on_machine(row) or sentence_on_one_run(row)
        if why_changed:
            remarks = (why_changed, *remarks)
        if row.reason == ROUNDING_REASON:
            # in place of the noise, which is not known
            remarks = (_remark_on_rounding(baseline, candidate), *remarks[1:])
        remarks = (*_remarks_on_alike(row, judged), *_remarks_on_hosts(row, judged), *remarks)
    remarks = (
        *remarks,
        *_remarks_on_gate(judged, verdict, facts),
        *sentences_on_findings(judged.verdicts),
        *sentences_on_history(judged.history, is_stored=bool(judged.base_runs)),
    )
    clause = _clause_of(total.leading, verdict, phrase, change, judged)
    if clause and facts.is_other_work:
        # how many operators differ says less than what it cost
        facts = Facts(peak=facts.peak)
    certain = _describe_facts(facts, verdict, runs)
    is_no_difference = phrase in (_AS_FAST, _ABOUT_AS_FAST, _NO_DIFFERENCE)
    if certain and is_no_difference and (facts.is_other_work or verdict is None):
        # other work is a difference, however long it takes
        phrase = _RAN
    more = "" if total.under_profiler is None else _describe_under_profiler(total.under_profiler)
    if verdict not in LEVEL_CHANGES and total.metric == _STEP_COLUMN:
        runs_of_sides = (len(baseline.run_ids), len(candidate.run_ids))
        more = _describe_mean_step(judged, verdict, total.slow_steps, runs_of_sides, a)
    for words in (clause, certain):
        if words:
            more += f"{FACTS}{words}"
    if judged.awaited is not None and verdict in (*LEVEL_CHANGES, "SUSPECT"):
        more = f", {judged.awaited.words}{more}"
    elif judged.awaited is not None and any(word in CHANGED for word, _ in judged.judgement.counts):
        remarks = (f"{judged.awaited.words.capitalize()}.", *remarks)
    text = _say(a, b, phrase, change, size, delta)
    return Headline(f"{text}{more}", verdict, remarks)


def _clause_of(leading: LeadingCause | None, verdict: str | None, phrase: str, change: float, judged: Judged) -> str:
    """Return what made a step slower or faster, in a clause; "" where that it is so is not known either: a change that
    may be noise or drift, or below the limit of a finding, has no cause.
    """
    limit = judged.least_step_change or DEFAULTS.ratio_step_device
    if leading is None or verdict not in VERDICTS_WITH_CAUSE or phrase not in (_IS, _MAY_BE, _RAN):
        return ""
    return leading.clause if abs(change) >= limit else ""


def _remarks_on_hosts(row: SeriesVerdict, judged: Judged) -> tuple[str, ...]:
    """Return what other hosts make of a change of the step, whose verdict is `row`."""
    hosts = ("", "") if judged.verdicts is None else judged.verdicts.hosts
    sentence = sentence_on_equal_hosts(row, hosts)
    if row.reason == HOST_REASON:
        sentence = sentence_on_other_hosts(hosts)
    elif row.reason == THROTTLED_REASON and judged.verdicts is not None:
        sentence = sentence_on_throttled(judged.verdicts.throttled)
    return (sentence,) if sentence else ()


def _remark_on_rounding(baseline: LoadedSide, candidate: LoadedSide) -> str:
    """Return how well the step is known where its change is no larger than what the sources rounded."""
    sides: list[list[recordings.Recorded]] = []
    for side in (baseline, candidate):
        said = side.query_with(queries.recordings)
        sides.append([*queries.recorded_of(said.rows(*said.arrays), side.run_ids).values()])
    return f"The step is {words_of_rounding(find_rounding(STEP_KEY, *sides))}: its source rounds it."


def _remarks_on_alike(row: SeriesVerdict, judged: Judged) -> tuple[str, ...]:
    """Return that all operators moved by one factor, where they did; `row`: the verdict of the step.

    Of many operators that is DRIFT: the factor is what their median moved by, and none of them is known to differ.
    """
    alike = judged.find_alike(row)
    if alike is None:
        return ()
    few = [remark_on_few(is_worse=row.change > 0)] if row.reason == ALIKE_REASON else []
    return sentence_on_alike(alike), *few


def _say(a: str, b: str, phrase: str, change: float, size: str, delta: str) -> str:
    """Return a sentence on sides `a` and `b` whose times are known.

    >>> _say("v1", "v2", "is", 0.25, "4.00 -> 5.00 ms per step", "+1.00 ms")
    'v2 is 25.0 % slower than v1: 4.00 -> 5.00 ms per step (+1.00 ms)'
    >>> _say("v1", "v2", "is as fast as", 0.0, "4.00 -> 4.00 ms per step", "0.00 ns")
    'v2 is as fast as v1: 4.00 -> 4.00 ms per step (0.0 %, 0.00 ns)'
    """
    numbers = f"{size} ({format_diff(change)}, {delta})"
    if phrase == _NO_DIFFERENCE:
        return f"{phrase} between {a} and {b} was found: {numbers}"
    if phrase in (_AS_FAST, _ABOUT_AS_FAST):
        return f"{b} {phrase} {a}: {numbers}"
    if change == 0:
        return f"{b} took as long as {a}: {numbers}"
    word = "slower" if change > 0 else "faster"
    return f"{b} {phrase} {_format_size_of_change(change)} {word} than {a}: {size} ({delta})"


def _describe_facts(facts: Facts, verdict: str | None, runs: tuple[int, int]) -> str:
    """Return what differs for certain, where the step does not say it all: it is no finding, or was not judged."""
    if verdict in (*LEVEL_CHANGES, "SUSPECT"):
        return ""
    # calls vary from run to run where inputs do, and several runs are judged
    return facts.describe(with_calls=min(runs) == 1)


def add_regressed(headline: Headline, regressed: Sequence[Regressed]) -> Headline:
    """Return a headline that also names the operators that regressed, where the step did not, or did other work."""
    is_judged = headline.verdict is not None or headline.is_other_work
    if not regressed or not is_judged or headline.verdict == "REGRESSED":
        return headline
    return replace(headline, text=f"{headline.text}{FACTS}{_describe_regressed(regressed)}")


def add_missing_devices(headline: Headline, sides: Sequence[LoadedSide]) -> Headline:
    """Return a headline that also names the sides of whose devices some capture has no event."""
    labels = short_names([side.side for side in sides])
    without: dict[str, None] = {}
    for label, side in zip(labels, sides, strict=True):
        if lacks_device_data(side):
            without[label] = None
    if not without:
        return headline
    return replace(headline, text=f"{headline.text}; no device data of {' and '.join(without)}")


def add_machines(headline: Headline, sides: Sequence[LoadedSide]) -> Headline:
    """Return a headline that also says which runs their machine slowed down, as far as it is recorded."""
    labels = short_names([side.side for side in sides])
    sentences = []
    for label, side in zip(labels, sides, strict=True):
        is_of_files = FILES in side.runs.listed(WORKLOAD)
        runs = [(label if is_of_files else f"run {run_id}", facts) for run_id, facts in side.machines().items()]
        sentences.append(sentence_on_machines(label, runs))
    return replace(headline, remarks=(*headline.remarks, *dict.fromkeys(filter(None, sentences))))


def _describe_regressed(regressed: Sequence[Regressed]) -> str:
    """Return how many operators regressed, and the largest of them, for a step that does not say it.

    >>> _describe_regressed([Regressed("aten::mm", 100.0, 159.0), Regressed("aten::add", 10.0, 12.0)])
    '2 operators REGRESSED: aten::mm +59.0 %, aten::add +20.0 %'
    """
    words_of_kind: dict[str, list[str]] = {}
    for one in regressed:
        is_measured = 0 < one.before_ns < one.after_ns
        change = f" {format_diff(one.after_ns / one.before_ns - 1.0)}" if is_measured else ""
        words_of_kind.setdefault(one.what, []).append(f"{one.name}{change}")
    phrases = []
    for what, words in words_of_kind.items():
        phrases.append(f"{counted(len(words), what)} REGRESSED: {some_of(words, most=_MOST_REGRESSED)}")
    return "; ".join(phrases)


def _remarks_on_gate(judged: Judged, verdict: str | None, facts: Facts) -> tuple[str, ...]:
    """Return what fails a gate beside the step."""
    result = judged.gates.get("new")
    if result is None or (verdict == "REGRESSED" and result.cause not in ("alike", "host", "throttled")):
        return ()
    if result.cause == "peak memory":
        before, after = facts.peak or (1.0, 1.0 + result.peak)
        # of two named sides the gate is that of the level, which may be another one
        is_other_level = abs(after / before - 1.0 - result.peak) > _SMALL_CHANGE
        against = " against its own level" if is_other_level else ""
        rise = format_diff(result.peak).lstrip("+")
        return (f"Peak memory rose by {rise}{against}: that fails a gate (--fail-on).",)
    if result.cause == "net of the operators":
        if verdict is None:
            # of what it is a share where no step is judged is another question
            return ("The operators that changed fail a gate (--fail-on).",)
        net = format_diff(result.net).lstrip("+")
        return (f"The operators that changed cost {net} of the step: that fails a gate (--fail-on).",)
    if result.cause == "alike":
        return ("Measure the version before it again. A gate (--fail-on) ends with 4.",)
    if result.cause in ("host", "throttled"):
        return ("A gate (--fail-on) ends with 4.",)
    if result.cause == "machine":
        return ("The drift stays: measure the version before it again. A gate (--fail-on) ends with 4.",)
    return ()


def _describe_mean_step(
    judged: Judged,
    verdict: str | None,
    slow_steps: tuple[Sequence[SlowStep], Sequence[SlowStep]],
    runs: tuple[int, int],
    a: str,
) -> str:
    """Return what some slow steps cost, where the step, their median, does not show it, and the slowest of them.
    `runs`: of each side; `a`: the name of the baseline.

    "" where the mean did not change, or is no more than the suspect that the step is.
    """
    row = judged.find_total("mean_step_ns")
    if row is None or row.verdict == verdict or row.verdict not in (*LEVEL_CHANGES, "SUSPECT"):
        return ""
    is_slower = row.change > 0
    verb = _MAY_BE if row.verdict == "SUSPECT" else _IS
    word = "slower" if is_slower else "faster"
    mean = f", but its mean step {verb} {_format_size_of_change(row.change)} {word}"
    # the side with the longer mean step has the slow steps; the sentence is about the candidate
    own, own_runs, side = (slow_steps[1], runs[1], "") if is_slower else (slow_steps[0], runs[0], a)
    if not own:
        return f"{mean}: some steps are"
    return f"{mean}: {describe_slowest(own, own_runs, side)}"


def _format_size_of_change(change: float) -> str:
    return format_diff(abs(change)).lstrip("+")


def _format_both(before: float, after: float, total: Total) -> str:
    times = _format_times(before, after)
    if total.metric == UNPROFILED_STEP:
        return f"{times} per step by the timer log, without a profiler"
    return f"{times} per step" if total.is_step else f"E2E {times}"


def _format_times(before: float, after: float) -> str:
    unit = time_unit(before, after)
    number = format_ns(before, unit).removesuffix(f" {unit[1]}")
    return f"{number} -> {format_ns(after, unit)}"


def _describe_under_profiler(total: Total) -> str:
    """Return what the trace says of the step of which the log of a timer says how long it takes."""
    before, after = total.before, total.after
    if not before or after is None:
        return ""
    what = "" if total.is_step else "E2E "
    return f", under the profiler {what}{format_diff(after / before - 1.0)} ({_format_times(before, after)})"


def _format_delta(before: float, after: float) -> str:
    """Return the change in the unit of the two times, in a smaller one where that would show nothing."""
    unit = time_unit(before, after)
    text = format_ns(after - before, unit)
    if not any(digit in text for digit in "123456789"):
        return _format_signed(after - before)
    return text if after < before else f"+{text}"


def _format_signed(delta_ns: float) -> str:
    text = format_ns(delta_ns)
    return text if delta_ns < 0 else f"+{text}"


def _phrase_of_unjudged(change: float) -> str:
    if change == 0:
        return _AS_FAST
    return _ABOUT_AS_FAST if abs(change) < _SMALL_CHANGE else _RAN


def _phrase_of_verdict(
    verdict: str, change: float, judged_change: float, judged: Judged, runs: tuple[int, int]
) -> tuple[str, tuple[str, ...]]:
    """Return what stands between the sides, and why it says no more.

    `judged_change`: against the runs that the verdict rests on, which may be others than those of the baseline.
    """
    limit = judged.least_step_change or 0.0
    against: tuple[str, ...] = ()
    if judged.base_runs and abs(judged_change - change) >= limit:
        against = (sentence_on_level(judged.base_runs, judged_change),)
    if verdict in LEVEL_CHANGES or verdict == "SUSPECT":
        return _phrase_of_change(verdict, change, judged_change, judged, runs[1], against)
    if verdict == "UNCHANGED":
        # it is, against its level; the numbers of the two sides may show a change all the same
        return (_RAN, against) if against and abs(change) >= limit else (_AS_FAST, ())
    if verdict == NOT_CONFIRMED:
        decided_by = (judged.history.decided_by if judged.history else "") or "later runs"
        return _RAN, (f"A suspect that {decided_by} did not confirm.", *against)
    if verdict == "DRIFT":
        phrase = _phrase_of_unjudged(change) if against else _RAN
        return phrase, (*against, _remark_on_drift(judged_change, judged))
    if verdict == "INCONCLUSIVE":
        phrase = _MAY_BE
        if max(abs(judged_change), abs(change)) < limit:
            phrase = _NO_DIFFERENCE
        elif against:
            phrase = _RAN
        return phrase, ("The runs differ too much to be sure.", *against)
    if verdict == "TOO_FEW_RUNS":
        needed = judged.verdicts.limits.runs_needed(*runs) if judged.verdicts is not None else ""
        if runs == (1, 1):
            return _RAN, (f"One run each: no verdict on the time; {needed}.",)
        return _RAN, (f"Too few runs to judge the step: {needed}." if needed else "Too few runs to judge the step.",)
    least = f" of {limit * 100:g} %" if limit else ""
    return _RAN, (f"Less than the limit{least} that makes a finding.", *against)


def _phrase_of_change(
    verdict: str, change: float, judged_change: float, judged: Judged, new_runs: int, against: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """Return the phrase and the remarks of a step that changed, or may have."""
    remarks = []
    phrase = _IS
    if verdict == "SUSPECT":
        phrase = _MAY_BE
        limits = DEFAULTS if judged.verdicts is None else judged.verdicts.limits
        decide = words_of_deciding_runs(max(1, limits.least_new - new_runs), "it")
        if any(gate.cause == MAIN_LINE for gate in judged.gates.values()):
            decide = "the main line may be as slow itself where the branch left it, and 1 more run of it decides"
        remarks.append(f"A suspect: {decide}.")
    if change * judged_change <= 0:
        # what the two sides show goes the other way than the verdict, which rests on other runs
        phrase = _RAN
    since = judged.history.since if judged.history and judged.base_runs else ""
    if since:
        remarks.append(f"It began with {since}.")
    return phrase, (*remarks, *against)


def _remark_on_drift(change: float, judged: Judged) -> str:
    """Return why a total that changed by more than its limit is no finding: the machine-wide drift in it, and the rest.

    `change`: against the runs that it was judged against; those of the baseline may be others.
    """
    shared, limit = judged.judgement.shared, judged.least_step_change
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


def _are_cut_outs(change: float, total: float, parts: tuple[Part, ...]) -> bool:
    """Return whether captures without steps look like cut-outs of the same length: what is in them moved, and they did
    not.
    """
    return abs(change) < _SMALL_CHANGE and bool(_list_moved_parts(total, parts))


def _list_moved_parts(total: float, parts: tuple[Part, ...]) -> list[Part]:
    return [part for part in parts if abs(part.delta_ns) >= _LEAST_MOVE_OF_PART * total]


def _remark_on_cut_outs(total: float, parts: tuple[Part, ...]) -> str:
    moved = []
    for part in _list_moved_parts(total, parts):
        moved.append(f"{part.title[:1].lower()}{part.title[1:]} {_format_signed(part.delta_ns)}")
    instead = "Mark steps (NVTX), or compare operators per call."
    return f"{CUT_OUTS}, as cut-outs of a run are, say nothing of its speed; inside them {', '.join(moved)}. {instead}"


def _remarks_on_noise(
    baseline: LoadedSide, candidate: LoadedSide, change: float, ranges: tuple[Range | None, Range | None]
) -> tuple[str, ...]:
    """Return why a change that was not judged may be none."""
    before, after = ranges
    if before is None or after is None or are_same_runs(baseline, candidate):
        return ()
    if not do_overlap(before, after):
        is_timed_on_host = "host" in (baseline.side.timeline, candidate.side.timeline)
        if is_timed_on_host and abs(change) < DEFAULTS.ratio_step_host:
            return ("Steps timed on the host drift this much by themselves.",)
        return ()
    unit = time_unit(*before, *after)
    texts = [f"{format_ns(low, unit)} to {format_ns(high, unit)}" for low, high in (before, after)]
    return (f"The runs of the two sides overlap ({' and '.join(texts)}): this may be noise.",)


def do_overlap(one: Range, other: Range) -> bool:
    """Return whether two ranges have a value in common.

    >>> do_overlap((1.0, 3.0), (3.0, 5.0)), do_overlap((1.0, 2.0), (3.0, 5.0))
    (True, False)
    """
    return one[0] <= other[1] and other[0] <= one[1]


def _label_sides(baseline: LoadedSide, candidate: LoadedSide) -> tuple[str, str]:
    a, b = short_names([baseline.side, candidate.side])
    if baseline.side.chosen_steps or candidate.side.chosen_steps:
        a = f"{a} ({steps_words(baseline.side.chosen_steps)})"
        b = f"{b} ({steps_words(candidate.side.chosen_steps)})"
    if candidate.step_kind:
        a = f"{a} in {step_word(candidate.step_kind)}s"
    is_beside_main_line = branch_of(candidate.side.workload) and not branch_of(baseline.side.workload)
    if is_beside_main_line and not baseline.side.names_branch:
        a += " of the main line"
    return a, b
