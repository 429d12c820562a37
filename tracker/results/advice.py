"""What could make a run faster, with evidence and an upper bound: the content of `tracker advise`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from msgspec import Struct, field

from tracker.results.options import OUTPUT, ROWS, STEP_KIND, WORKLOAD, Microbatches, Option, Reading, words
from tracker.results.partial import Partial
from tracker.results.screens import Frame, Result
from tracker.results.slow_steps import SlowStep
from tracker.units import counted, format_bytes, format_ns

if TYPE_CHECKING:
    from tracker.columns import Columns

__all__ = ["Accounts", "Advice", "AdviseOptions", "Advised", "Claimed", "Loss", "Number"]

FAMILIES: Final = ("input", "host", "kernels", "communication", "pipeline", "memory", "environment")
"""Words of `tracker advise --only`: what rules are about."""
NEW: Final = "new"
GROWN: Final = "grown"
GONE: Final = "gone"

_SMALL_RATE: Final = 0.1
"""Below it a rate has two digits, whatever they stand for: 0.0 TFLOP/s would be none."""
_RATES: Final = {"gb_per_s": "GB/s", "tflops_per_s": "TFLOP/s"}


class Number(Struct, frozen=True):
    """What a piece of advice rests on. `unit`: ns, bytes, share, count, ratio, gb_per_s, tflops_per_s or text."""

    label: str
    value: float | str
    unit: str = "ns"

    @property
    def words(self) -> str:
        """The number with its label and unit: `their time 7.38 ms`."""
        value = self.value
        if isinstance(value, str):
            return f"{self.label}: {value}"
        if self.unit == "ns":
            return f"{self.label} {format_ns(value)}"
        if self.unit == "bytes":
            return f"{self.label} {format_bytes(value)}"
        if self.unit == "share":
            return f"{self.label} {value * 100:.1f} %"
        if self.unit == "count":
            return f"{self.label} {value:,.0f}" if value >= 10 or value == int(value) else f"{self.label} {value:,.1f}"
        if self.unit in _RATES:
            rate = f"{value:,.1f}" if value >= _SMALL_RATE else f"{value:.2g}"
            return f"{self.label} {rate} {_RATES[self.unit]}"
        return f"{self.label} x{value:.2f}"


class Loss(Struct, frozen=True, kw_only=True):
    """Time of a step that is known to be lost. `kind`: to what; `ns`: of a step; `share`: of that step; `words`: a
    sentence without an end.
    """

    kind: str
    ns: float
    share: float
    words: str


class Accounts(Struct, frozen=True, kw_only=True):
    """Where a step goes, seen from its advice: the three add up to `step_ns`. `won_ns`: what all advice together can
    win at most; `work_ns`: what the device (or the host, without one) works else; `unexplained_ns`: what is lost, and
    no advice is about.
    """

    step_ns: float
    won_ns: float
    work_ns: float
    unexplained_ns: float


class Claimed(Struct, frozen=True):
    """What a piece of advice is about: an operator or kernel with its shapes, and how much of its time it wins."""

    op: str
    input_shapes: str
    ns: float


class AdviceRow(Struct, frozen=True, kw_only=True):
    """A piece of advice as a row of a table: the fields of `Advice`, with lists as text.

    - evidence: the numbers that it rests on
    - remedies, code, sources: as in `Advice`, separated by semicolons
    """

    rule: str
    family: str
    severity: str
    confidence: str
    status: str | None
    title: str
    gain_ns: float | None
    gain_share: float | None
    baseline_gain_ns: float | None
    local_ns: float | None
    bound: str
    runs: int
    rank: int | None
    stage: int | None
    op: str | None
    module: str | None
    kernel: str | None
    role: str | None
    variable: str | None
    evidence: str
    remedies: str
    code: str
    sources: str


class EfficiencyRow(Struct, frozen=True, kw_only=True):
    """How near the calls of an operator of one shape come to what the device can do, per step.

    - rank, name, input_shapes: which calls
    - number_kind: half, byte, fp32, tf32 or fp64; None where it is not known
    - flops, tflops_per_s: None of what only moves bytes
    - bytes, gb_per_s: of inputs and result; None where the shapes say too little
    - floor_ns: the time that the device needs at least; None where no ceiling is known
    - bound: compute or memory, by which floor is longer
    - efficiency: floor by time; None where no ceiling is known, or the row is beyond it, so that the ceiling or the
      shapes must be wrong
    - ceiling: spec of the table of devices, measured of the fastest row of the run
    """

    rank: int
    name: str
    input_shapes: str
    number_kind: str | None
    calls: float
    total_ns: float
    flops: float | None
    bytes: float | None
    tflops_per_s: float | None
    gb_per_s: float | None
    floor_ns: float | None
    bound: str | None
    efficiency: float | None
    ceiling: str | None


class Advice(Struct, frozen=True, kw_only=True):
    """One piece of advice. Times are ns per step; None where it is about no time.

    `gain_ns`: what the step wins at most, `local_ns`: what the rank does; `place`: what tells it from other advice of
    its `rule`; `severity`: high from 5 % of the step, medium from 1 %, else low; `status`: new, grown or gone since the
    baseline, None without one; `code`: the frames of the program that call the work; `sources`: where the rule is from;
    `runs`: in how many of the runs of the side it is; `is_shown`: without `--all`;
    `marks`: what holds of it, for the conditions of its remedies.
    """

    rule: str
    family: str
    title: str
    place: str
    severity: str
    confidence: str
    bound: str
    is_shown: bool
    rank: int | None = None
    stage: int | None = None
    op: str | None = None
    module: str | None = None
    kernel: str | None = None
    role: str | None = None
    variable: str | None = None
    local_ns: float | None = None
    gain_ns: float | None = None
    gain_share: float | None = None
    baseline_gain_ns: float | None = None
    numbers: tuple[Number, ...] = ()
    claims: tuple[Claimed, ...] = ()
    remedies: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    status: str | None = None
    runs: int = 1
    marks: tuple[str, ...] = ()

    @property
    def row(self) -> AdviceRow:
        """The same as a row of a table."""
        return AdviceRow(
            rule=self.rule,
            family=self.family,
            severity=self.severity,
            confidence=self.confidence,
            status=self.status,
            title=self.title,
            gain_ns=self.gain_ns,
            gain_share=self.gain_share,
            baseline_gain_ns=self.baseline_gain_ns,
            local_ns=self.local_ns,
            bound=self.bound,
            runs=self.runs,
            rank=self.rank,
            stage=self.stage,
            op=self.op,
            module=self.module,
            kernel=self.kernel,
            role=self.role,
            variable=self.variable,
            evidence="; ".join(number.words for number in self.numbers),
            remedies="; ".join(self.remedies),
            code="; ".join(self.code),
            sources="; ".join(self.sources),
        )

    @property
    def sentence(self) -> str:
        """What to do, and what that wins at most."""
        gain = f" (at most {format_ns(self.gain_ns)} a step)" if self.gain_ns else ""
        return f"{self.title[:1].upper()}{self.title[1:]}{gain}: {'; '.join(self.remedies[:2])}. ({self.rule})"


class AdviseOptions(Reading, frozen=True, kw_only=True):
    """Which advice is given, and how profiles on disk are read."""

    workload: Annotated[str | None, WORKLOAD] = None
    step_kind: Annotated[str | None, STEP_KIND] = None
    everything: Annotated[
        bool,
        Option("Also advice below 1 % of the step or 0.1 ms, and hints without a time.", name="--all", group=ROWS),
    ] = False  # fmt: skip
    rules: Annotated[
        tuple[str, ...],
        Option("Only this rule, such as K7; repeatable. Default: all.", "RULE", name="--rule", group=ROWS),
    ] = ()
    only: Annotated[
        tuple[str, ...],
        Option(f"Only advice on these, separated by commas: {', '.join(FAMILIES)}. Default: all.", "FAMILY,...",
               group=OUTPUT, words=FAMILIES, what="family", read=words),
    ] = ()  # fmt: skip
    microbatches: Microbatches = None
    fail_on: Annotated[
        Literal["high", "medium"] | None,
        Option("Exit with 1 where advice is at least so severe: high, 5 % of the step, or medium, 1 %. With a "
            "baseline, "
               "new advice alone counts. Default: exit with 0.", "SEVERITY", group=OUTPUT),
    ] = None  # fmt: skip


class Advised(Result, frozen=True, eq=False):
    """What could make a run faster, for `tracker advise`: upper bounds, never promises.

    `run`: reference, run_ids, workload, version, device and configuration of the side; `baseline`: alike, of the side
    that it is compared with, or None; `one_run`: how `tracker show` is asked for a run of the side, "" where it cannot
    be. `step_ns`: the step of the side; `together_ns`: what all advice can win at most,
    where no nanosecond is counted twice. `items`: the largest gain first. `use`: flops per step, tflops_per_s, peak,
    hfu and mfu, None for what is not known. `loss`: the largest that is known, None where none is 5 % of the step;
    `accounts`: how the step adds up; both None where the work is not whole. `missing`: what cannot be judged, and what
    would record it. `partial`: what the checks of the captures found: on work that is not whole no rule says anything.
    `slow_steps`: steps of more than 1.2 times the median of their rank, which no advice counts, the slowest first.

    - advice: a row per item, with evidence, remedies, lines of code and sources as text
    - efficiency: each operator with FLOPs by shapes and kind of number: its rate, the floor of its time on the device
      and efficiency, floor by time; NA where no ceiling is known
    """

    word: ClassVar[str] = "advice"
    printed_by: ClassVar[str] = "tracker advise SIDE"

    run: Mapping[str, Any]
    step_ns: float
    together_ns: float
    items: tuple[Advice, ...]
    tables: Mapping[str, Columns]
    use: Mapping[str, Any]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    bottleneck: str | None = None
    loss: Loss | None = None
    accounts: Accounts | None = None
    partial: Partial = Partial()
    slow_steps: tuple[SlowStep, ...] = ()
    baseline: Mapping[str, Any] | None = None
    one_run: str = ""
    options: AdviseOptions = field(default_factory=AdviseOptions)

    advice = Frame()
    efficiency = Frame()

    @property
    def fails(self) -> bool:
        """Whether advice is as severe as `options.fail_on` says; with a baseline new advice alone."""
        words = {"high": ("high",), "medium": ("high", "medium")}.get(self.options.fail_on or "", ())
        wanted = (None,) if self.baseline is None else (NEW,)
        return any(item.severity in words and item.gain_ns and item.status in wanted for item in self.items)

    @property
    def headline(self) -> str:
        """The largest loss that is known, with a baseline what the new advice can win together; else the largest piece
        of advice.
        """
        with_time = [item for item in self.items if item.gain_ns and item.status != GONE]
        if not self.step_ns and not with_time:
            return "nothing can be judged: the time of a step is not known"
        if not self.items and not self.partial.has_whole_steps:
            return "nothing is advised, since records of the run are lost or cannot be"
        is_chosen = bool(self.options.rules or self.options.only)
        if self.baseline is None and self.loss is not None and not is_chosen:
            return self.loss.words
        is_little = self.baseline is None and not is_chosen and not any(item.is_shown for item in self.items)
        if not self.items or is_little:
            one = "no single change" if len(self.items) > 1 else "nothing"
            return f"no advice: {one} that is known could win 1 % of the step of {format_ns(self.step_ns)}"
        gone = [item for item in self.items if item.status == GONE]
        if len(gone) == len(self.items):
            return f"{counted(len(gone), 'piece')} of advice of the baseline {'is' if len(gone) == 1 else 'are'} gone"
        if not with_time:
            return f"{counted(len(self.items), 'piece')} of advice, none with a time to win"
        if self.baseline is None and not is_chosen:
            return _say_largest(next((item for item in with_time if item.is_shown), with_time[0]))
        return self._say_together(with_time)

    def _say_together(self, with_time: Sequence[Advice]) -> str:
        if len(with_time) == 1:
            gain, of_step = with_time[0].gain_ns or 0.0, with_time[0].gain_share
            # what a timer beside the profile measured is a part of its own step
            whole = gain / of_step if of_step else self.step_ns
            return f"one change can win at most {format_ns(gain)} of {format_ns(whole)} a step"
        share = self.together_ns / self.step_ns
        together = f"{format_ns(self.together_ns)} ({share * 100:.1f} %)"
        return f"{len(with_time)} changes together can win at most {together} of a step of {format_ns(self.step_ns)}"

    @property
    def how_the_step_adds_up(self) -> str:
        """What advice can win of the step, what else works in it, and what is not explained; "" where that is not
        known.
        """
        own = self.accounts
        if own is None or not own.step_ns:
            return ""

        def say(ns: float) -> str:
            return f"{format_ns(ns)} ({100 * ns / own.step_ns:.1f} %)"

        return (
            f"Of the step of {format_ns(own.step_ns)}, all advice together can win at most {say(own.won_ns)}; "
            f"{say(own.work_ns)} is work without advice; not explained: {say(own.unexplained_ns)}."
        )


def _say_largest(item: Advice) -> str:
    return f"{item.title}: at most {format_ns(item.gain_ns)} ({100 * (item.gain_share or 0.0):.1f} %) of the step"
