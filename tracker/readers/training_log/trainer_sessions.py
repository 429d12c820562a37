"""How many steps a session of the Hugging Face Trainer did, which its summary does not say.

`train_runtime` is the time of one session; the rates beside it divide all steps that the run was planned with by that
time. Of a run that was resumed or stopped early they are several times too high. The steps of the session come from the
header, from the epochs of the lines with losses, or from the losses: `train_loss` is their sum over the session by all
steps of the run. Where none of them says it, nothing is known of a step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from tracker.readers.training_log.clocks import seconds_of
from tracker.readers.training_log.columns import PackedColumn
from tracker.readers.training_log.distribution import mean_of
from tracker.readers.training_log.grammar import NUMBER

F64 = NDArray[np.float64]

_FIELD: Final = re.compile(
    r"'(loss|learning_rate|epoch|step|global_step|train_loss|train_runtime|train_steps_per_second"
    r"|train_samples_per_second)': '?(" + NUMBER + r")",
    re.ASCII,
)
_PLAIN_NUMBER: Final = rb"\d+(?:\.\d+)?(?:e-?\d\d?)?"
_PLAIN_LINE: Final = re.compile(
    rb"^\{'loss': '?(NUMBER)'?, (?:'grad_norm': '?NUMBER'?, )?'learning_rate': '?(NUMBER)'?, "
    rb"'epoch': '?(NUMBER)'?\}\n".replace(b"NUMBER", _PLAIN_NUMBER),
    re.MULTILINE,
)
"""The lines of most sessions, which are read many at once."""
_TABLE_FIELD: Final = re.compile(
    rb"^\s*(epoch|train_loss|train_runtime|train_steps_per_second|train_samples_per_second) *= *([\d.:]+)\s*$"
)
_HEADER: Final = {
    "planned_steps": re.compile(rb"Total optimization steps *= *([\d,]{1,18})"),
    "first_step": re.compile(rb"Continuing training from global step *:? *(\d{1,12})"),
    "examples": re.compile(rb"Num examples *= *([\d,]{1,18})"),
    "epochs": re.compile(rb"Num Epochs *= *([\d,]{1,18})"),
    "batch": re.compile(rb"Total train batch size [^=\r\n]{0,80}= *([\d,]{1,18})"),
}
_MOST_WAITING: Final = 8192
_BEGINS: Final = b"Running training"
_LIKE_SUMMARY: Final = 0.9
"""`train_loss` by the mean of the logged losses: below it the run was resumed, and the loss is that of a part of it."""
_AS_LOGGED: Final = 0.98
"""From it on the loss is that of all steps, also where the lines begin later: those before them were cut off."""
_RATE_ROUNDING: Final = 0.0005
"""Half a unit of the last of the three digits that the Trainer prints of a rate."""
_EARLY: Final = 0.01
"""A run that ends short of its epochs by less was not stopped early: the last batch of an epoch may be left out."""
_SILENT: Final = 0.2
"""From this error on it is not known whether a number of steps is whole."""
_MOST_CANDIDATES: Final = 100_000
_FULL_PRECISION: Final = 6
"""Digits of an epoch from which it was not rounded."""
_WHOLE_EPOCH: Final = 0.02
"""So near to a whole number an epoch is one: batches that are left out make it less."""
FEWEST_LINES: Final = 3
_EXACT: Final = 0.002
"""A number of steps that is known better is given without the word about."""

_OF_SCHEDULE: Final = 0.03
"""A schedule that ends later than the run by more than this part says that it was stopped early."""
_FEWEST_OF_SCHEDULE: Final = 5
_STRAIGHT: Final = 0.005
"""By how much of its fall a learning rate may leave a straight line."""

UNKNOWN_STEPS: Final = (
    "its rates divide all steps of the run by the time of one session, and nothing says how many steps that did (the "
    "run may have been resumed, or stopped early)"
)
"""Why a summary alone gives no step time."""
WITH_SESSION_STEPS: Final = (
    "give the whole output of the Trainer, from Running training on, trainer_state.json with its log_history, or a log "
    "with the times of its steps"
)


class Between(NamedTuple):
    """A number that is known to lie between two others. `best`: the likeliest one, None: the middle."""

    low: float
    high: float
    best: float | None = None

    @property
    def middle(self) -> float:
        """The likeliest number, else the one in the middle."""
        return (self.low + self.high) / 2 if self.best is None else self.best

    @property
    def rounding(self) -> float:
        """How far the number may be from the likeliest one, as a part of that."""
        return max(self.high - self.middle, self.middle - self.low) / self.middle if self.middle > 0 else np.inf

    def scaled(self, other: Between) -> Between:
        """Return the product of two such numbers."""
        return Between(self.low * other.low, self.high * other.high, self.middle * other.middle)

    def less(self, number: float) -> Between:
        """Return the number less one that is known."""
        return Between(self.low - number, self.high - number, self.middle - number)


_WHOLE: Final = Between(1.0, 1.0)


class SessionSteps(Struct, frozen=True):
    """The steps of a session; those that its writer divided by its time; and the one by the other."""

    done: Between
    planned: Between
    part: Between


class Summary(Struct, frozen=True):
    """What the Trainer says at the end of a session; nan for what it does not say."""

    runtime_s: float = np.nan
    steps_per_second: float = np.nan
    samples_per_second: float = np.nan
    loss: float = np.nan
    epoch: float = np.nan

    @property
    def planned_steps(self) -> Between | None:
        """The steps that the writer divided by the time; None where the time or the rate is missing."""
        if not (self.runtime_s > 0 and self.steps_per_second > 0):
            return None
        low = max(self.steps_per_second - _RATE_ROUNDING, self.steps_per_second / 2) * self.runtime_s
        return Between(low, (self.steps_per_second + _RATE_ROUNDING) * self.runtime_s)


class LineRow(NamedTuple):
    """What a line with a loss says, nan for what it does not, and the number of the line in the log."""

    epoch: float
    loss: float
    learning_rate: float
    runtime: float
    step: float
    place: float


def _no_columns() -> dict[str, PackedColumn]:
    return {name: PackedColumn() for name in LineRow._fields}


class SessionCollector(Struct):
    """A collector of what a log says of one session. `header`: numbers of the text in front of its lines.

    `columns`: of each line with a loss what a `LineRow` has. `is_doubled`: whether each line stands there twice so far.
    `digits`: of the epochs, at most.
    """

    has_header: bool = False
    header: dict[str, int] = {}
    columns: dict[str, PackedColumn] = field(default_factory=_no_columns)
    waiting: list[LineRow] = []
    last_epoch: float = np.nan
    is_doubled: bool = True
    unpaired: bytes = b""
    digits: int = 2
    table: dict[str, float] = {}
    summary: Summary | None = None

    @property
    def is_begun(self) -> bool:
        """Whether the session has a line behind its header."""
        return self.has_lines or self.summary is not None

    @property
    def has_lines(self) -> bool:
        """Whether the session has a line with a loss."""
        return bool(self.waiting) or len(self.epochs) > 0

    @property
    def epochs(self) -> PackedColumn:
        """The epoch of each line with a loss."""
        return self.columns["epoch"]

    @property
    def losses(self) -> PackedColumn:
        """The loss of each line."""
        return self.columns["loss"]

    @property
    def epoch_rounding(self) -> float:
        """How far an epoch may be from what is printed."""
        return 0.0 if self.digits >= _FULL_PRECISION else 0.5 * 10.0**-self.digits

    @property
    def end_epoch(self) -> float:
        """The epoch at the end of the session; nan where no line says it."""
        said = np.nan if self.summary is None else self.summary.epoch
        return self.last_epoch if np.isnan(said) else said

    @property
    def has_steps_of_epochs(self) -> bool:
        """Whether the header says how many steps an epoch has, so that no schedule of the learning rate is needed."""
        return bool(self.header.get("examples") and self.header.get("batch"))

    def take_line(self, line: bytes, row: LineRow) -> None:
        """Take a line with a loss."""
        self.compare_lines([line])
        self.last_epoch = row.epoch
        self.waiting.append(row)
        if len(self.waiting) >= _MOST_WAITING:
            self.pack_waiting()

    def compare_lines(self, lines: list[bytes]) -> None:
        """See whether lines still stand there twice."""
        if self.unpaired:
            lines = [self.unpaired, *lines]
        self.is_doubled = self.is_doubled and lines[: len(lines) // 2 * 2 : 2] == lines[1::2]
        self.unpaired = lines[-1] if len(lines) % 2 else b""

    def pack_waiting(self) -> None:
        """Put the lines that were taken one by one into the columns."""
        for name, numbers in zip(LineRow._fields, zip(*self.waiting, strict=True), strict=False):
            self.columns[name].extend(np.array(numbers, dtype=np.float64))
        self.waiting = []

    def take_lines(self, epochs: F64, losses: F64, learning_rates: F64, first_place: int) -> None:
        """Take neighbouring lines with a loss that say nothing else."""
        self.pack_waiting()
        count = len(epochs)
        self.last_epoch = float(epochs[-1])
        self.columns["epoch"].extend(epochs)
        self.columns["loss"].extend(losses)
        if self.has_steps_of_epochs:
            self.columns["learning_rate"].fill(count, np.nan)
        else:
            self.columns["learning_rate"].extend(learning_rates)
        self.columns["runtime"].fill(count, np.nan)
        self.columns["step"].fill(count, np.nan)
        self.columns["place"].extend(np.arange(first_place, first_place + count))


class TrainerCollector:
    """A collector of the sessions of a log. `interrupts`: places of the lines that name an evaluation or a save."""

    def __init__(self, interrupts: Sequence[bytes]) -> None:
        self.sessions = [SessionCollector()]
        self.interrupts: list[int] = []
        self._interrupt_texts = interrupts
        self._place = 0

    def take(self, content: bytes) -> None:
        """Take a piece of text that ends with a line."""
        content = content.replace(b"\r", b"\n")
        end = 0
        neighbours: list[re.Match[bytes]] = []
        for match in _PLAIN_LINE.finditer(content):
            if match.start() > end:
                self._take_neighbours(neighbours)
                neighbours = []
                self._take_each(content[end : match.start()])
            neighbours.append(match)
            end = match.end()
        self._take_neighbours(neighbours)
        self._take_each(content[end:])

    def _take_neighbours(self, matches: list[re.Match[bytes]]) -> None:
        """Take lines that stand behind each other and say a loss, a learning rate and an epoch alone."""
        if not matches:
            return
        texts = [match.groups() for match in matches]
        losses, learning_rates, epochs = np.array([[*map(float, column)] for column in zip(*texts, strict=True)])
        begins = [0, *(np.flatnonzero(np.diff(epochs) < 0) + 1).tolist()]
        for begin, end in pairwise([*begins, len(matches)]):
            session = self._session_of_epoch(float(epochs[begin]))
            if session.is_doubled:
                session.compare_lines([match.group()[:-1] for match in matches[begin:end]])
            for text in {text for _, _, text in texts[begin:end]}:
                self._keep_digits(text.decode())
            session.take_lines(epochs[begin:end], losses[begin:end], learning_rates[begin:end], self._place + 1)
            self._place += end - begin

    def _take_each(self, content: bytes) -> None:
        """Take lines one by one."""
        if not content:
            return
        # most pieces have none of these texts
        interrupts = [text for text in self._interrupt_texts if text in content]
        for line in content.split(b"\n"):
            self._place += 1
            if interrupts and any(text in line for text in interrupts):
                self.interrupts.append(self._place)
            elif b"'epoch'" in line or b"'train_runtime'" in line:
                self._take_numbers(line)
            elif b" = " in line or b"global step" in line or _BEGINS in line:
                self._take_header(line)

    @property
    def _session(self) -> SessionCollector:
        return self.sessions[-1]

    def _take_header(self, line: bytes) -> None:
        if match := _TABLE_FIELD.match(line):
            self._take_table(match[1].decode(), match[2])
            return
        for name, pattern in _HEADER.items():
            if match := pattern.search(line):
                self._begin_if_begun()
                self._session.header.setdefault(name, int(match[1].replace(b",", b"") or 0))
                self._session.has_header |= name == "planned_steps"
        if _BEGINS in line and b"*****" in line:
            self._begin_if_begun()
            self._session.has_header = True

    def _take_table(self, name: str, text: bytes) -> None:
        """Take a line of the table that the example programs print behind the summary, or in place of it."""
        table = self._session.table
        is_number = text.count(b".") <= 1 and b":" not in text and text != b"."
        table[name] = float(text) if is_number else seconds_of(text)
        if name == "train_steps_per_second" and self._session.summary is None:
            self._session.summary = _summary_of(table)

    def _take_numbers(self, line: bytes) -> None:
        numbers: dict[str, str] = dict(reversed(_FIELD.findall(line.decode("latin-1"))))
        values = {name: _number_in(text) for name, text in numbers.items()}
        if "train_steps_per_second" in values or "train_loss" in values:
            # a summary behind a summary is of another session
            if self._session.summary is not None and self._session.has_lines:
                self._begin_if_begun()
            self._session.summary = _summary_of(values)
            self._keep_digits(numbers.get("epoch", ""))
            return
        if "loss" not in values or "epoch" not in values:
            return
        session = self._session_of_epoch(values["epoch"])
        self._keep_digits(numbers["epoch"])
        row = LineRow(
            epoch=values["epoch"],
            loss=values["loss"],
            learning_rate=values.get("learning_rate", np.nan),
            runtime=values.get("train_runtime", np.nan),
            step=values.get("global_step", values.get("step", np.nan)),
            place=self._place,
        )
        session.take_line(line, row)

    def _session_of_epoch(self, epoch: float) -> SessionCollector:
        """Return the session of a line with a loss: a new one behind a summary, and where the epoch goes back."""
        if self._session.summary is not None or epoch < self._session.last_epoch:
            self._begin_if_begun()
        return self._session

    def _keep_digits(self, epoch: str) -> None:
        digits = len(epoch.partition(".")[2])
        self._session.digits = max(self._session.digits, digits)

    def _begin_if_begun(self) -> None:
        if self._session.is_begun:
            self.sessions.append(SessionCollector())

    def finish(self) -> list[SessionCollector]:
        """Return the sessions that have a line, in their order."""
        for session in self.sessions:
            session.pack_waiting()
            _leave_out_doubled(session)
        return [session for session in self.sessions if session.is_begun]


def _number_in(text: str) -> float:
    number = float(text.replace(",", ""))
    return number if isfinite(number) else np.nan


def _summary_of(values: dict[str, float]) -> Summary:
    return Summary(
        values.get("train_runtime", np.nan),
        values.get("train_steps_per_second", np.nan),
        values.get("train_samples_per_second", np.nan),
        values.get("train_loss", np.nan),
        values.get("epoch", np.nan),
    )


def _leave_out_doubled(session: SessionCollector) -> None:
    """Leave out every second line where all stand there twice: each node of a job prints them."""
    if not session.is_doubled or session.unpaired:
        return
    for name, column in session.columns.items():
        session.columns[name] = column.at(range(0, len(column), 2))


def count_session_steps(session: SessionCollector) -> SessionSteps | None:
    """Return how many steps a session did that has a summary; None where nothing says it."""
    planned = _planned_steps(session)
    if planned is None:
        return None
    reached = _reached_steps(session, planned)
    if reached is None:
        return None
    if not session.has_header:
        part = _part_of_run(session)
        if part is None or part.low <= 0:
            return None
        if reached.middle < (1 - _EARLY) * planned.low:
            return count_part(reached.scaled(part), planned)
        # the number of steps that is behind the rates, better known than by them
        return SessionSteps(reached.scaled(part), reached, part)
    done = reached.less(session.header.get("first_step", 0))
    return count_part(done, planned) if done.low > 0 else None


def count_part(done: Between, planned: Between) -> SessionSteps:
    """Return the steps of a session that did a part of those that were planned, or all."""
    if done.low == planned.low and done.high == planned.high:
        return SessionSteps(done, planned, _WHOLE)
    return SessionSteps(
        done, planned, Between(done.low / planned.high, done.high / planned.low, done.middle / planned.middle)
    )


def _planned_steps(session: SessionCollector) -> Between | None:
    stated = session.header.get("planned_steps")
    if stated:
        return Between(stated, stated)
    return None if session.summary is None else session.summary.planned_steps


def _reached_steps(session: SessionCollector, planned: Between) -> Between | None:
    """Return the number of the last step of a session; None where it may have been stopped early."""
    end = session.end_epoch
    if np.isnan(end):
        # without a word on epochs only a header says that a whole run follows
        return planned if session.has_header else None
    header = session.header
    if session.has_steps_of_epochs:
        per_epoch = header["examples"] / header["batch"]
        error = session.epoch_rounding * per_epoch + end + 1
        done = end * per_epoch
        if done + error + _EARLY * planned.low >= planned.low:
            return planned
        return Between(max(done - error, 1), done + error)
    if header.get("epochs") and abs(end - header["epochs"]) <= session.epoch_rounding + _WHOLE_EPOCH:
        return planned
    return _planned_if_whole(session, planned)


def _planned_if_whole(session: SessionCollector, planned: Between) -> Between | None:
    """Return the planned steps if a session without a header ended with the last one; None where it may not have.

    Its lines are a whole number of steps apart, which shows which of the numbers of steps may be, and whether any. A
    run that ends within an epoch must be shown to be whole by that; of others it is enough that nothing is against it.
    """
    end, rounding = session.end_epoch, session.epoch_rounding
    planned_epochs = _epochs_of_schedule(session)
    if planned_epochs is not None and planned_epochs > (1 + _OF_SCHEDULE) * end:
        part = end / planned_epochs
        error = _OF_SCHEDULE / 2
        return planned.scaled(Between(part * (1 - error), part * (1 + error), part))
    is_whole_epoch = round(end) >= 1 and abs(end - round(end)) <= rounding + _WHOLE_EPOCH
    spacing = _spacing_of(session)
    if spacing is None or not planned.high - planned.low < _MOST_CANDIDATES:
        return planned if is_whole_epoch else None
    candidates = np.arange(max(np.ceil(planned.low - 1e-6), 1.0), np.floor(planned.high + 1e-6) + 1)
    if not len(candidates):
        return None
    # the last batches of an epoch may be left out, which moves the end by less than a step
    first_end = end - np.minimum(rounding, end / candidates)
    low, high = candidates * spacing.low / end - 1e-6, candidates * spacing.high / first_end + 1e-6
    if _begins_at_start(session, spacing):
        # all lines together are no more than all steps
        high = np.minimum(high, candidates / (len(session.epochs) - _has_first_line(session)) + 1e-6)
    is_silent = high - low > _SILENT
    fits = (np.floor(high) >= np.ceil(low)) & (high >= 1)
    is_sharp = not is_silent.any() and high[-1] - low[0] < 0.5
    if not is_whole_epoch and not is_sharp:
        return None
    chosen = candidates[is_silent | fits]
    if not len(chosen):
        return None
    best = _with_whole_batches(chosen, session.summary)
    return Between(float(chosen[0]), float(chosen[-1]), best)


def _epochs_of_schedule(session: SessionCollector) -> float | None:
    """Return the epoch at which the learning rate is 0, the end that was planned, where it falls on a straight line or
    on half a wave of a cosine; None where it falls otherwise, or not at all.
    """
    half = len(session.epochs) // 2
    epochs, rates = session.epochs.values()[half:], session.columns["learning_rate"].values()
    largest = float(rates.max(initial=0.0))
    if len(epochs) < _FEWEST_OF_SCHEDULE or not epochs[-1] > epochs[0]:
        return None
    if not largest > rates[-1] > 0 or not (rates >= 0).all():
        return None
    left = rates[half:] / largest
    centre = float(epochs.mean())
    for falling in (left, 1 - np.arccos(2 * left - 1) / np.pi):
        middle = float(falling.mean())
        with np.errstate(over="ignore", invalid="ignore"):
            slope = float(((epochs - centre) * (falling - middle)).sum() / ((epochs - centre) ** 2).sum())
            away = float(np.abs(middle + slope * (epochs - centre) - falling).max())
        # a cosine is nearly straight in its middle, too
        if slope < 0 and away <= _STRAIGHT * float(falling[0] - falling[-1]):
            return centre - middle / slope
    return None


def _with_whole_batches(candidates: F64, summary: Summary | None) -> float | None:
    """Return the number of steps with which the samples of a step are a whole number; None for none, or several."""
    if summary is None or not summary.samples_per_second > _RATE_ROUNDING:
        return None
    low, high = (
        (summary.samples_per_second + error) * summary.runtime_s / candidates
        for error in (-_RATE_ROUNDING, _RATE_ROUNDING)
    )
    whole = candidates[(np.floor(high) >= np.ceil(low)) & (high >= 1)]
    return float(whole[0]) if len(whole) == 1 else None


def _spacing_of(session: SessionCollector) -> Between | None:
    """Return how many epochs lie between two lines with losses; None of fewer than three, or where it changes."""
    skipped, rounding = int(_has_first_line(session)), session.epoch_rounding
    count = len(session.epochs) - skipped
    if count < FEWEST_LINES:
        return None
    first, last, gaps = float(session.epochs.first(2)[skipped]), session.last_epoch, count - 1
    apart = (last - first) / gaps
    if apart <= 0 or not _are_apart(session.epochs, skipped, apart, 2 * rounding + 0.1 * apart):
        return None
    if abs(first - apart) <= 2 * rounding + 0.1 * apart:
        # from the start of the run on: the first gap is that in front of the first line
        return Between((last - rounding) / count, min(last + rounding, session.end_epoch) / count)
    return Between(apart - 2 * rounding / gaps, apart + 2 * rounding / gaps)


def _are_apart(epochs: PackedColumn, skipped: int, apart: float, error: float) -> bool:
    """Whether all epochs behind those that are skipped lie as far apart, but for an error."""
    first = epochs.first(skipped + 1)[skipped]
    begin = -skipped
    for some in epochs.pieces():
        expected = first + apart * np.arange(begin, begin + len(some))
        if (np.abs(some - expected)[max(-begin, 0) :] > error).any():
            return False
        begin += len(some)
    return True


def _has_first_line(session: SessionCollector) -> bool:
    """Whether the first step has a line of its own, and the others count from the start all the same."""
    gaps = np.diff(session.epochs.first(3))
    return len(gaps) > 1 and bool(gaps[0] < 0.75 * gaps[1] - 2 * session.epoch_rounding)


def _begins_at_start(session: SessionCollector, spacing: Between) -> bool:
    """Whether the lines of a session begin with the first steps of the run."""
    return bool(session.epochs.first(1)[0] <= 1.5 * spacing.middle + session.epoch_rounding)


def _part_of_run(session: SessionCollector) -> Between | None:
    """Return which part of the steps of a run that has no header this session did; None where nothing says it."""
    end = session.end_epoch
    losses = session.losses
    train_loss = np.nan if session.summary is None else session.summary.loss
    has_losses = len(losses) > 0 and all((some > 0).all() for some in losses.pieces()) and train_loss > 0
    by_mean = train_loss / mean_of(losses.pieces, len(losses)) if has_losses else np.nan
    spacing = None if np.isnan(end) else _spacing_of(session)
    if spacing is None:
        return _WHOLE if by_mean >= _LIKE_SUMMARY else None
    apart = spacing.middle
    lines_of_run = end / apart
    lines_of_log = (end - float(session.epochs.first(1)[0])) / apart + 1
    begins_at_start = _begins_at_start(session, spacing)
    if not has_losses:
        return _WHOLE if begins_at_start else _part_of(lines_of_log, 0.5, lines_of_run)
    if by_mean >= (_LIKE_SUMMARY if begins_at_start else _AS_LOGGED):
        return _WHOLE
    lines = _lines_with_sum(losses.values(), (end - session.last_epoch) / apart, train_loss * lines_of_run)
    if lines is None:
        # more than the lines say, and less than all: the log lacks lines of the session
        return None
    if not begins_at_start and abs(lines - lines_of_log) <= 1:
        return _part_of(lines_of_log, min(0.5, abs(lines - lines_of_log) + 0.02), lines_of_run)
    return _part_of(lines, 0.5, lines_of_run)


def _part_of(lines: float, error: float, lines_of_run: float) -> Between:
    low, high = max(lines - error, 0.0), min(lines + error, lines_of_run)
    return Between(low / lines_of_run, high / lines_of_run, min(lines / lines_of_run, 1.0))


def _lines_with_sum(losses: F64, unlogged: float, wanted: float) -> float | None:
    """Return how many of the last lines have losses that add up to a sum, with the part of one; None where all together
    are less by more than a line. `unlogged`: lines' worth of steps behind the last line, which had its loss.
    """
    sums = np.cumsum(losses[::-1]) + max(unlogged, 0.0) * losses[-1]
    if wanted > sums[-1] + losses[0]:
        return None
    place = int(np.searchsorted(sums, wanted))
    if place >= len(sums):
        return len(sums) + max(unlogged, 0.0)
    before = float(sums[place - 1]) if place else max(unlogged, 0.0) * float(losses[-1])
    return max(unlogged, 0.0) + place + (wanted - before) / float(losses[::-1][place])


def steps_of_lines(session: SessionCollector) -> F64 | None:
    """Return the step of each line with a loss; None where neither the lines nor the header nor a summary say it."""
    stated = session.columns["step"].values()
    if len(stated) and not np.isnan(stated).any():
        return stated
    header = session.header
    epochs, end = session.epochs.values(), session.end_epoch
    if session.has_steps_of_epochs:
        return np.round(epochs * header["examples"] / header["batch"])
    planned = _planned_steps(session)
    reached = None if planned is None else _reached_steps(session, planned)
    return None if reached is None or not end > 0 else np.round(epochs / end * reached.middle)


def steps_of_history(
    steps: Sequence[float], losses: Sequence[float], train_loss: float, reached: float
) -> Between | None:
    """Return how many steps the last session of a run did, by the losses of all of its sessions; None where they do not
    say it.

    `steps`, `losses`: of each entry that was logged; `reached`: the last step; `train_loss`: of the session, by all
    steps.
    """
    strides = np.diff(np.array(steps), prepend=0.0)
    if not len(steps) or not (train_loss > 0 and reached > 0):
        return None
    if not (strides > 0).all() or not (np.array(losses) > 0).all():
        return None
    sums = np.cumsum((np.array(losses) * strides)[::-1])
    unlogged = max(reached - steps[-1], 0.0)
    sums = sums + unlogged * losses[-1]
    wanted = train_loss * reached
    if wanted >= _AS_LOGGED * sums[-1]:
        return Between(reached, reached)
    place = int(np.searchsorted(sums, wanted))
    stride = float(strides[::-1][place])
    before = float(sums[place - 1]) if place else unlogged * losses[-1]
    done = unlogged + float(strides[::-1][:place].sum()) + (wanted - before) / float(losses[::-1][place])
    nearest = round(done / stride) * stride
    if abs(done - nearest) <= 0.05 * stride and nearest > 0:
        # sessions go on behind a checkpoint, which mostly lies where a loss is logged
        done, error = nearest, 0.05 * stride
    else:
        error = 0.5 * stride
    high = reached if wanted >= _LIKE_SUMMARY * sums[-1] else done + error
    if not done >= 1:
        return None  # a session did a step, or the losses are of something else
    return Between(max(done - error, 1.0), high, done)


def scan_lines(sessions: Sequence[SessionCollector], interrupts: Sequence[int]) -> dict[str, Any] | None:
    """Return the lines with losses of the last session as fields of a `Scan`, where they state the time since its start
    and their steps are known; else None. `interrupts`: places of lines with an evaluation or a save.
    """
    for session in reversed(sessions):
        runtimes = session.columns["runtime"]
        if len(runtimes) < FEWEST_LINES or runtimes.is_missing().any():
            continue
        steps = steps_of_lines(session)
        if steps is None or (np.diff(steps, prepend=0.0) <= 0).any():
            return None
        return {
            "numbers": {"step": PackedColumn.of(steps), "elapsed_s": runtimes},
            "positions": PackedColumn.of(session.columns["place"].values().astype(np.int64)),
            "interrupts": np.array(interrupts, dtype=np.int64),
            "starts": np.zeros(0, dtype=np.int64),
            "beside_bar": np.zeros(0, dtype=np.int64),
            "ranks": PackedColumn(),
            "clocks": PackedColumn(),
        }
    return None


def scan_summaries(sessions: Sequence[SessionCollector]) -> tuple[dict[str, PackedColumn], str]:
    """Return the time and the steps of each session that has a summary and known steps, as numbers of a `Scan`, and a
    sentence on the last one whose rates are of other steps, "" for none.
    """
    times, counts, roundings, rates, rate_roundings = [], [], [], [], []
    note = ""
    for session in sessions:
        counted = None if session.summary is None else count_session_steps(session)
        if session.summary is None or counted is None or not counted.done.middle >= 1:
            continue
        runtime_s = session.summary.runtime_s
        if not runtime_s > 0:
            runtime_s = counted.planned.middle / session.summary.steps_per_second
        rate = session.summary.samples_per_second
        times.append(runtime_s)
        counts.append(counted.done.middle)
        roundings.append(counted.done.rounding)
        rates.append(rate * counted.part.middle)
        rate_roundings.append(rounding_of_rate(rate) + counted.part.rounding)
        note = sentence_on_steps(counted)
    numbers = {
        "run_s": times, "run_steps": counts, "step_rounding": roundings, "samples_s": rates,
        "rate_rounding": rate_roundings,
    }  # fmt: skip
    return {name: PackedColumn.of(np.array(values, dtype=np.float64)) for name, values in numbers.items()}, note


def rounding_of_rate(rate: float) -> float:
    """Return how far a rate may be from what the Trainer printed, as a part of it; nan where it printed none."""
    return _RATE_ROUNDING / rate if rate > 0 else np.nan


def sentence_on_steps(counted: SessionSteps) -> str:
    """Return whose steps the rates of a summary are, where they are not those of its session; else "".

    >>> sentence_on_steps(count_part(Between(200, 200), Between(1000, 1000)))
    'the time is that of 200 of 1,000 steps: the rates that the Trainer printed divide all 1,000 by it'
    """
    if counted.part.middle > 1 - _EARLY:
        return ""
    about = "" if counted.done.rounding < _EXACT else "about "
    done, planned = (round(number.middle) for number in (counted.done, counted.planned))
    return (
        f"the time is that of {about}{done:,} of {planned:,} steps: the rates that the Trainer printed divide all "
        f"{planned:,} by it"
    )
