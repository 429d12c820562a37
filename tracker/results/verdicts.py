"""How a diff was judged: the columns that rows of a Diff end with, what stands above its tables, and whether a build
should fail by it: what of it is news, and the exit code that says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from statistics import median
from typing import Final, Literal, Protocol

from msgspec import Struct

from tracker.results.coverage import Coverage
from tracker.schema.series import SeriesKey
from tracker.units import format_bytes, format_diff, format_ns

__all__ = ["VERDICT_COLUMNS", "Judgement"]


class RowVerdict(Struct, frozen=True):
    """What rows end with that are judged. All None where nothing was judged.

    - verdict: of the time (of overall rows: the number)
    - judged_diff: the change that it rests on, a ratio without the common-mode shift (of overall rows with it, unless
      it hid the change), against the runs that it was judged against
    - q: the false discovery rate of all that are as significant
    - detectable: the smallest change that these runs would have shown
    - reason: of the verdict, in words
    """

    verdict: str | None = None
    judged_diff: float | None = None
    q: float | None = None
    detectable: float | None = None
    reason: str | None = None


VERDICT_COLUMNS: Final = RowVerdict.__struct_fields__
"""The columns that rows end with that are judged; `RowVerdict` says what they mean."""


class JudgedRow(Protocol):
    """A row that says how what it is about was judged."""

    @property
    def verdict(self) -> str | None:
        """The verdict, None where nothing was judged."""

    @property
    def reason(self) -> str | None:
        """The reason of the verdict."""


REASONS: Final[Mapping[str, str]] = {
    "RATIO": "the change is smaller than the limit",
    "CONTRIBUTION": "too small a part of the step",
    "OVERLAP": "some of its runs are within the range of the baseline runs",
    "SIGNIFICANCE": "not significant: the runs differ too much",
    "FEW_BASE": "too few runs of the baseline",
    "FEW_NEW": "too few runs to decide",
    "MACHINE": "it moved with the machine",
    "PRESENCE": "only in some runs of a side",
    "SETTINGS": "the baseline runs were recorded with other settings",
    "CORRECTION": "more than half of it is the correction for machine-wide drift, and was not measured",
    "EQUAL_MACHINE": "on an equally fast machine: that of these runs hid a part of it",
    "OPERATORS": "of one run: operators that are certainly new or gone make up half of it",
    "INCOMPLETE": "incomplete: it rests on records that were lost or cannot be",
    "OTHER_WORK": "other work: the inputs have another size",
    "ALIKE": "all operators moved by one factor",
    "HOST": "too few of the runs before are of the same host, which alone may make the difference",
    "ROUNDING": "known no better than the source rounds it",
    "THROTTLED": "a clock was held down in its runs and not in those before, which alone may make the difference",
}
"""Code of a reason -> why a verdict is no change, in words; of EQUAL_MACHINE and OPERATORS why it is one, of ALIKE,
HOST and THROTTLED of the step as well.
"""

VERDICTS: Final[Mapping[str, str]] = {
    "REGRESSED": "slower or larger by more than limit and noise, and beyond the runs before but for few pairs",
    "ADDED": "in all new runs, in none before; what it replaces, if anything, is another row",
    "IMPROVED": "faster or smaller by more than limit and noise", "REMOVED": "in all runs before, in no new one",
    "SUSPECT": "would count, but one run, or so few steps, do not decide it",
    "SLOW": "behind its peers in so many steps, or by so much, that chance hardly explains it",
    "UNEVEN": "the slowest rank is another one from step to step", "TOO_FEW_RUNS": "not tested, more runs are needed",
    "BELOW_LIMIT": "significant, but too small a change or too small a part of the step",
    "INCONCLUSIVE": "neither changed nor unchanged is sure: the runs differ too much, or hosts, clocks, the "
    "machine-wide drift or rounding may be all of it",
    "NOT_CONFIRMED": "was a suspect, and later runs are as those before it",
    "UNCHANGED": "any change is smaller than the limit",
    "DRIFT": "moved as all operators did: with the machine, or by one factor",
}  # fmt: skip
"""Verdict -> what it means, for the legend of a page and docs/glossary.md; docs/compare.md has more."""

ALIKE_REASON: Final = "ALIKE"
"""The code in REASONS of a step that stands for all operators, and of these."""
ALIKE_CAUSE: Final = "all operators alike"
"""What is called the cause of such a step."""
EQUAL_MACHINE_REASON: Final = "EQUAL_MACHINE"
"""The code in REASONS of a step that changed on an equally fast machine."""
HOST_REASON: Final = "HOST"
"""The code in REASONS of what changed where no host ran both sides."""
OTHER_HOST_CAUSE: Final = "another host"
"""What may be the cause of such a step."""
THROTTLED_REASON: Final = "THROTTLED"
"""The code in REASONS of what changed where the new runs were throttled, and those before were not."""
THROTTLED_CAUSE: Final = "a throttled machine"
"""What may be the cause of such a step."""
MAYBE_CAUSES: Final[Mapping[str, str]] = {"host": OTHER_HOST_CAUSE, "throttled": THROTTLED_CAUSE}
"""How a finding came about that may be of its hosts -> what may be its cause."""
_MAYBE: Final[Mapping[str, str]] = {
    **MAYBE_CAUSES, HOST_REASON: OTHER_HOST_CAUSE, THROTTLED_REASON: THROTTLED_CAUSE,
    REASONS[HOST_REASON]: OTHER_HOST_CAUSE, REASONS[THROTTLED_REASON]: THROTTLED_CAUSE,
}  # fmt: skip
"""The same, and by the code of the reason of a verdict and by that reason in words."""
CORRECTION_REASON: Final = "CORRECTION"
"""The code in REASONS of what the correction for machine-wide drift makes more than half of."""
LEAST_FOR_DRIFT: Final = 20
"""Operators from which the median of all is the machine's: the limit `least_leaves` of the judge."""

NOT_CONFIRMED: Final = "NOT_CONFIRMED"
"""The verdict of a suspect that later runs did not confirm: one run of another speed is no change of the version."""

OTHER_WORK: Final = "other work"
"""What a change is called that comes from inputs of another size."""
OTHER_WORK_REASON: Final = "OTHER_WORK"
"""Its code in REASONS: such a row has no verdict."""

VERDICT_OF_DIRECTION: Final[Mapping[str, str]] = {"regression": "REGRESSED", "improvement": "IMPROVED"}
"""Direction of a finding -> its verdict, where it neither came nor went."""

CHANGED: Final = ("REGRESSED", "ADDED", "SUSPECT", "IMPROVED", "REMOVED")
"""Verdicts that are a finding or a suspect, in the order in which they are counted."""

WORST_FIRST: Final = ("REGRESSED", "SUSPECT", "IMPROVED")
"""Verdicts of a step by which it stands for others: of several kinds of steps that with the first of these."""

SO_FAR: Final = "so far"
"""What stands beside a finding of fewer runs than the version usually has."""
NIGHT_EFFECT: Final = "night effect"
PHI: Final = "phi"
TERMS: Final = (SO_FAR, NIGHT_EFFECT, PHI)
"""Words that stand beside verdicts, and need an explanation as they do."""

GLOSSES: Final[Mapping[str, str]] = {
    "INCONCLUSIVE": "too noisy", "TOO_FEW_RUNS": "too few runs", "BELOW_LIMIT": "too small to matter",
    "DRIFT": "moved as all operators did", "NOT_CONFIRMED": "later runs are as before",
    "UNCHANGED": "as the level before",
    SO_FAR: "further runs of the version may come and change it",
    NIGHT_EFFECT: "runs of one night resemble each other more than those of several nights",
    PHI: "how much neighbouring runs resemble each other",
}  # fmt: skip
"""What verdicts mean that are no change, and terms that stand beside verdicts; docs/compare.md has more."""

_OF_HOSTS: Final = 0.005
"""Change of a step that hosts must make to be named."""
_NEARLY: Final = "the change is smaller than the limit, but the runs differ too much to call it unchanged"

EXCUSED: Final = "expected, or a false positive, as users marked it"
"""The reason of a verdict that no gate counts."""

STILL: Final = "still "
"""What the reason of a verdict begins with where a finding of the series began with an older version and is open."""

INCOMPARABLE: Final = "incomparable"
NEVER_JUDGED: Final = "never judged"
TOO_FEW: Final = "too few runs"
SETTINGS: Final = "settings"
RANKS: Final = "ranks"
GUESS: Final = "guess"
"""Why two sides were not judged."""


ROUNDING_REASON: Final = "ROUNDING"
"""The code in REASONS of a change that is no larger than what the sources of both sides rounded."""
_KNOWN_TO: Final = "known to"


def words_of_rounding(rounding: float) -> str:
    """Return how well a number is known that its source rounds by this part of it.

    >>> words_of_rounding(0.05), words_of_rounding(0.0952)
    ('known to 5 % only', 'known to 9.5 % only')
    """
    return f"{_KNOWN_TO} {100 * rounding:.2g} % only"


def reason_words(verdict: str | None, reason: str | None) -> str:
    """Why a verdict is no change, in words; "" for a change, but for one that the machine hid, or that
    one run decides.

    >>> reason_words("DRIFT", "MACHINE"), reason_words("REGRESSED", "NONE")
    ('it moved with the machine', '')
    """
    if (verdict, reason) == ("INCONCLUSIVE", "RATIO"):
        return _NEARLY
    return REASONS.get(reason or "", "")


class SeriesVerdict(Struct, frozen=True):
    """How a series was judged; nan for a number that is not known.

    - verdict: None where it has none
    - reason: a code in REASONS, or NONE
    - change, judged_change: ratios, with and without the common-mode shift
    - q: the false discovery rate
    - contribution: to the step, a signed fraction of it
    - detectable: the smallest change that the runs would have shown
    """

    verdict: str | None = None
    reason: str | None = None
    change: float = nan
    judged_change: float = nan
    q: float = nan
    contribution: float = nan
    detectable: float = nan


def sentence_on_machine(verdict: SeriesVerdict | None) -> str:
    """Return what a step is on an equally fast machine, where it is by that that it changed; "" where it is not.

    `verdict`: of the step, with its reason, its change as measured, and the judged one.

    >>> sentence_on_machine(SeriesVerdict("REGRESSED", "EQUAL_MACHINE", change=0.066, judged_change=0.235))
    '23.5 % slower on an equally fast machine (measured +6.6 %, the machine was 13.7 % faster).'
    """
    if verdict is None or verdict.reason != EQUAL_MACHINE_REASON:
        return ""
    judged, measured = verdict.judged_change, verdict.change
    of_machine = (1.0 + measured) / (1.0 + judged) - 1.0
    size, size_of_machine = (format_diff(abs(one)).lstrip("+") for one in (judged, of_machine))
    word, word_of_machine = ("slower" if one > 0 else "faster" for one in (judged, of_machine))
    return (
        f"{size} {word} on an equally fast machine (measured {format_diff(measured)}, the machine was "
        f"{size_of_machine} {word_of_machine})."
    )


class AlikeChanges(Struct, frozen=True):
    """How all operators moved by one factor. `what`: operators, or kernels where there are none; `changes`: of those
    that did, ratios; `compared`: how many were compared, of which none is known to have moved by another factor.
    """

    what: str
    changes: Sequence[float]
    compared: int


def sentence_on_alike(alike: AlikeChanges) -> str:
    """Return what operators that moved by one factor say of the step.

    >>> sentence_on_alike(AlikeChanges("operators", [0.091, 0.089, 0.09], 3))
    'All 3 operators are 9.0 % slower alike (8.9 to 9.1 %): clock or power before code.'
    >>> sentence_on_alike(AlikeChanges("operators", [-0.05, -0.05, -0.05], 4))
    '3 of 4 operators are 5.0 % faster alike: clock or power before code.'
    """
    changes = alike.changes
    sizes = sorted(abs(change) for change in changes)
    middle, least, most = (format_diff(size).lstrip("+") for size in (median(sizes), sizes[0], sizes[-1]))
    word = "slower" if changes[0] > 0 else "faster"
    spread = f" ({least.removesuffix(' %')} to {most})" if least != most else ""
    count = f"All {len(sizes)}" if len(sizes) == alike.compared else f"{len(sizes)} of {alike.compared}"
    return f"{count} {alike.what} are {middle} {word} alike{spread}: clock or power before code."


def remark_on_few(*, is_worse: bool) -> str:
    """Return why a step that stands for all of a few operators may be the machine's."""
    what = "REGRESSED or a slower machine" if is_worse else "IMPROVED or a faster machine"
    return f"{what}: fewer than {LEAST_FOR_DRIFT} operators cannot tell."


def word_of_step(verdict: str | None, why: str | None) -> str:
    """Return the verdict of a step, and what else it may be: another host, or one that was throttled.

    `why`: the code of its reason, that reason in words, or how the finding came about. Every screen asks this.

    >>> word_of_step("REGRESSED", "HOST"), word_of_step("REGRESSED", "throttled"), word_of_step("SUSPECT", "HOST")
    ('REGRESSED or another host', 'REGRESSED or a throttled machine', 'SUSPECT')
    >>> word_of_step("REGRESSED", "NONE"), word_of_step(None, None)
    ('REGRESSED', '')
    """
    cause = _MAYBE.get(why or "")
    return f"{verdict} or {cause}" if cause and verdict in ("REGRESSED", "IMPROVED") else verdict or ""


def gloss_of(verdict: str, why: str | None) -> str:
    """Return what a verdict that is no change means, in two words or three; "" for a change. `why`: the code of its
    reason, or that reason in words.

    >>> gloss_of("INCONCLUSIVE", "OVERLAP"), gloss_of("INCONCLUSIVE", "HOST"), gloss_of("INCONCLUSIVE", "ROUNDING")
    ('too noisy', 'maybe another host', 'rounded too much')
    """
    if verdict == "INCONCLUSIVE" and why:
        if why in _MAYBE:
            return f"maybe {_MAYBE[why]}"
        if why in (ROUNDING_REASON, REASONS[ROUNDING_REASON]) or why.startswith(_KNOWN_TO):
            return "rounded too much"
        if why in (CORRECTION_REASON, REASONS[CORRECTION_REASON]):
            return "mostly the correction for machine-wide drift"
    return GLOSSES.get(verdict, "")


def sentence_on_other_hosts(hosts: tuple[str, str]) -> str:
    """Return what to do where nothing tells a change from another host. `hosts`: before and after, where no host ran
    both sides; else "" twice.

    >>> sentence_on_other_hosts(("node-a", "node-b"))
    'The host changed with it (node-a to node-b in all runs): two runs of one side on the host of the other decide.'
    """
    before, after = hosts
    if not before:
        return "Fewer than two runs before are of the same host: two runs of one side on the host of the other decide."
    changed = f"The host changed with it ({before} to {after} in all runs)"
    return f"{changed}: two runs of one side on the host of the other decide."


def sentence_on_throttled(throttled: tuple[str, str]) -> str:
    """Return what to do where the runs of one side were throttled, and those of the other were not.

    `throttled`: by what, and in how many runs; and in how many before.

    >>> sentence_on_throttled(("power in 3 of 3 runs", "0 of 8"))
    'The clock was held down by power in 3 of 3 runs, before in 0 of 8: a run that is not throttled decides.'
    """
    after, before = throttled
    return f"The clock was held down by {after}, before in {before}: a run that is not throttled decides."


def sentence_on_equal_hosts(verdict: SeriesVerdict, hosts: tuple[str, str]) -> str:
    """Return how a step changed on equal hosts, where what they differ by was taken out; "" where it was not.

    `verdict`: of the step, with its change as measured, and the judged one; `hosts`: before and after, where no host
    ran both.

    >>> verdict = SeriesVerdict("UNCHANGED", "RATIO", change=0.139, judged_change=0.001)
    >>> sentence_on_equal_hosts(verdict, ("node-a", "node-b"))
    'On equal hosts it is +0.1 % (measured +13.9 %): by other runs, node-b is 13.8 % slower than node-a.'
    """
    judged, measured = verdict.judged_change, verdict.change
    is_of_hosts = verdict.reason not in (HOST_REASON, THROTTLED_REASON, EQUAL_MACHINE_REASON)
    if not is_of_hosts or not abs(measured - judged) >= _OF_HOSTS:
        return ""
    sentence = f"On equal hosts it is {format_diff(judged)} (measured {format_diff(measured)})"
    before, after = hosts
    if not before:
        return f"{sentence}: the runs before are of several hosts, or of hosts in several states, which differ."
    of_hosts = (1.0 + measured) / (1.0 + judged) - 1.0
    size, word = format_diff(abs(of_hosts)).lstrip("+"), "slower" if of_hosts > 0 else "faster"
    return f"{sentence}: by other runs, {after} is {size} {word} than {before}."


def sentence_on_one_run(verdict: SeriesVerdict | None) -> str:
    """Return why one run decides a step, "" where it does not. `verdict`: of the step, with its reason.

    >>> sentence_on_one_run(SeriesVerdict("REGRESSED", "OPERATORS"))
    'One run decides: operators that are certainly new or gone make up at least half of it.'
    """
    if verdict is None or verdict.reason != "OPERATORS":
        return ""
    return "One run decides: operators that are certainly new or gone make up at least half of it."


class Judgement(Struct, frozen=True):
    """What the runs of both sides can tell. `judged`: whether rows have verdicts.

    `sentences`: what was judged against what, or why there are no verdicts; what was removed; which tables have none.
    `shared`: the machine-wide drift that the verdicts leave out, a ratio: how much slower all operators together are;
    None where too few operators are in all runs. `counts`: verdict -> operators. `refusal`: "" where it was judged;
    INCOMPARABLE where the sides do different work, NEVER_JUDGED where no number of runs would do, SETTINGS where other
    settings of the profiler forbid it, RANKS where a run waits for ranks, GUESS where the times of a side are a guess,
    else TOO_FEW. `stored`: whether the verdicts
    are those that history and findings show, and not of this comparison alone. `coverage`: how many series were judged.
    """

    judged: bool
    sentences: tuple[str, ...]
    shared: float | None = None
    counts: tuple[tuple[str, int], ...] = ()
    refusal: str = ""
    stored: bool = False
    coverage: Coverage | None = None


FAIL_ON: Final = ("new", "any")
"""The words of `--fail-on` that ask whether something regressed."""
COVERAGE: Final = "coverage"
"""The word that asks whether enough was judged."""
BUDGET: Final = "budget"
"""The word that asks whether budgets are met."""

Outcome = Literal["failed", "suspect", "known", "unsure", "passed"]
"""What becomes of something that was judged: it fails the gate, more runs decide, it is no news, the runs cannot tell,
or it is as it should be."""


class GateResult(Struct, frozen=True):
    """An exit code, and what gave it: step, mean step, peak memory, net of the operators, suspect, machine, alike,
    host, throttled, runs, incomplete, or slow host; "" for 0. `net`: change of the step by the operators that the
    version changed, as a share of it; `peak`: change of peak memory, 0.1 for 10 % more; `host`: the slow host that took
    part, in words.
    """

    code: int
    cause: str
    net: float
    peak: float
    host: str = ""


class GatedRow(Struct, frozen=True):
    """One thing that was judged. `section`: a word of SECTIONS, or `finding`; `detail`: what else tells it from others
    of its name; `baseline`, `candidate` in `unit` (ns, bytes, count, ratio, per_second); `diff`: the judged one;
    `remark`: the reason of its verdict, or of its outcome. `key`: of its series; of a whole run it has a metric alone.
    """

    section: str
    name: str
    detail: str
    verdict: str
    outcome: Outcome
    unit: str
    baseline: float | None
    candidate: float | None
    diff: float | None
    q: float | None
    remark: str
    key: SeriesKey

    @property
    def delta(self) -> float:
        """Candidate - baseline; a side without it counts as 0."""
        return (self.candidate or 0.0) - (self.baseline or 0.0)

    @property
    def rank(self) -> int:
        """What a reader must see first: 0 the step, 1 what its time consists of, 2 the rest."""
        kind, metric = self.key[:2]
        if kind == "run":
            return 0 if metric in ("duration_ns", "e2e_ns") else 2
        return 1 if kind in ("op", "op_name", "kernel", "communication") else 2

    @property
    def words(self) -> str:
        """Its name and change: `aten::mul +14.67 ms`."""
        shown = {"ns": format_ns, "bytes": format_bytes}.get(self.unit)
        change = format_diff(self.diff) if shown is None else shown(self.delta)
        what = {"memory": "memory of ", "module": "module ", "api": "host API "}.get(self.section, "")
        name = self.name
        return f"{what}{name} {change if change.startswith(('-', '+')) else f'+{change}'}"


class Gate(Struct, frozen=True):
    """How a result passes. `word`: of FAIL_ON; `code`: the exit code; `because`: why, in words; `rows`: all that was
    judged, in the order of the result.
    """

    word: str
    code: int
    because: str
    rows: tuple[GatedRow, ...] = ()

    def of(self, *outcomes: Outcome) -> list[GatedRow]:
        """The rows with these outcomes: the step first, then operators, kernels and collectives, then all others, the
        largest first; a name once, all of it where it is there with all its shapes.
        """
        ranked = sorted(
            (row for row in self.rows if row.outcome in outcomes),
            key=lambda row: (row.rank, -abs(row.delta), row.detail != "", row.name),
        )
        found: dict[tuple[str, str], GatedRow] = {}
        for row in ranked:
            found.setdefault((row.section, row.name), row)
        return list(found.values())
