"""From the text of a log to its capture."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct, field

from tracker.errors import SourceError
from tracker.profile import NO_STEP, Breakdown, Capture, Rows, StepRow
from tracker.readers import _rows
from tracker.readers._source import SourceText
from tracker.readers._text import ranked_lines_of
from tracker.readers.paddle_log.context import Said, configuration_of, device_of, facts_of, labels_of, rank_of
from tracker.readers.paddle_log.lines import Speed, Spread, clock_of, counts_one_rank, speed_of, spread_of
from tracker.units import NS_PER_S

_UNITS: Final = re.compile(r"Time Unit: *(?P<time>\w+), *IPS Unit: *(?P<ips>[\w/]+)")
_RATIO: Final = re.compile(r"Reader Ratio: *(\d{1,9}(?:\.\d{1,9})?) ?%")
_STEPS_PER_SECOND: Final = ("steps/s", "step/s")
_PAUSE_NS: Final = 600 * NS_PER_S
"""Where lines do not number their epoch, only a pause this long tells a new training from a new epoch."""
TIME_ZONE: Final = "not stated; times are taken as UTC"


_Reported = tuple[Speed, int | None, bool]
"""A speed, the last clock before it, and whether its throughput is surely that of one process."""


class _Log(Struct):
    """What the lines of a log say. `started_ns`: of the first interval, or the last clock before it.

    `of_one_rank`: whether each throughput is surely that of one process. `ranks`: whose lines report a speed, where
    prefixes name the ranks; the speeds are those of the first one, since each rank reports the same steps.
    `trainings`: how many begin in it, of which the last one counts. `said_since`: what lines say behind the last speed.
    """

    said: Said = field(default_factory=Said)
    said_since: Said = field(default_factory=Said)
    trainings: int = 1
    speeds: list[Speed] = field(default_factory=list)
    of_one_rank: bool = True
    spreads: list[Spread] = field(default_factory=list)
    reader_ratio: float | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    ranks: tuple[int, ...] = ()

    def take(self, lines: Iterator[tuple[int | None, str]]) -> None:
        """Reads all lines, each with the rank that its prefix names."""
        units = ("s", "")
        clock = None
        reported: dict[int | None, list[_Reported]] = {}
        for rank, line in lines:
            now = clock_of(line)
            clock = clock if now is None else now
            speed = speed_of(line)
            if speed is not None:
                if rank in reported and _begins_anew(reported[rank][-1], speed, clock):
                    self._forget_training(reported)
                self.said_since = Said()
                is_of_one = speed.throughput is None or counts_one_rank(line)
                reported.setdefault(rank, []).append((speed, clock, is_of_one))
            elif spread := spread_of(line, units):
                self.spreads.append(spread)
            elif match := _UNITS.search(line):
                units = (match["time"], match["ips"])
            elif match := _RATIO.search(line):
                self.reader_ratio = float(match[1])
            else:
                self.said.take(line)
                self.said_since.take(line)
        self._take_speeds(reported)

    def _forget_training(self, reported: dict[int | None, list[_Reported]]) -> None:
        """Begin again with another training in the same file: launchers open a log to append to it."""
        reported.clear()
        self.trainings += 1
        self.spreads, self.reader_ratio = [], None
        if self.said_since.values or self.said_since.stated.values:
            self.said = self.said_since

    def _take_speeds(self, reported: Mapping[int | None, Sequence[_Reported]]) -> None:
        """The speeds of the first rank, with their clocks; those of lines without a prefix where no line has one."""
        self.ranks = tuple(sorted(rank for rank in reported if rank is not None))
        chosen = reported.get(self.ranks[0] if self.ranks else None, ())
        self.speeds = [speed for speed, _, _ in chosen]
        self.of_one_rank = all(is_of_one for _, _, is_of_one in chosen)
        if chosen:
            self.started_ns, self.ended_ns = chosen[0][1], chosen[-1][1]


def _begins_anew(last: _Reported, speed: Speed, clock: int | None) -> bool:
    """Whether a line is of another training than the line before of the same rank.

    Steps and epochs of one training only rise, but for steps that are counted from 0 in each epoch.
    """
    before, clock_before, _ = last
    if before.epoch is not None and speed.epoch is not None:
        if speed.epoch != before.epoch:
            return speed.epoch < before.epoch
        return None not in (before.step, speed.step) and (speed.step or 0) < (before.step or 0)
    if before.step is None or speed.step is None or speed.step >= before.step:
        return False
    return clock is not None and clock_before is not None and clock - clock_before > _PAUSE_NS


def capture_of(text: SourceText) -> tuple[Capture, tuple[str, ...]]:
    """The capture, and what the reader of its numbers should know."""
    log = _Log()
    log.take(ranked_lines_of(text))
    if not log.speeds and not log.spreads:
        raise SourceError(
            text.path, "", "no line says how fast the training was; looked for batch_cost, reader_cost, ips, elapse "
            "and speed with a number, and for a Perf Summary",
            remedy="give a log that prints one of them, for example of paddle.profiler.Profiler(timer_only=True)",
        )  # fmt: skip
    steps = _step_rows(log.speeds) or [StepRow(0, 0, _of_summary(log.spreads))]
    clocked = log.started_ns is not None
    configuration, contradictions = configuration_of(text.path, log.said)
    capture = Capture(
        rank=rank_of(text.path),
        world_size=None,
        host="",
        device=device_of(text.path, log.said),
        device_ordinal=None,
        started_at_ns=log.started_ns,
        # where no line after the first has a clock, the end is not known
        ended_at_ns=log.ended_ns if log.ended_ns != log.started_ns else None,
        sources=(text.source(),),
        settings=_settings(log),
        facts=facts_of(log.said) | ({"time_zone": TIME_ZONE} if clocked else {}),
        rows=Rows(
            _overall([row.breakdown for row in steps], is_whole=_says_each_step(log.speeds)), tuple(steps), _tables(log)
        ),
        labels=labels_of(text.path, log.said),
        configuration=configuration,
    )
    return capture, (*_warnings(log), *contradictions)


def _step_rows(speeds: Sequence[Speed]) -> list[StepRow]:
    """One row per logged line, in their order: its numbers are means over the steps since the line before.

    A row has the number that the line gives, as long as these rise; a log that counts anew in each epoch is numbered
    from 0. The start is the time of the rows before, as far as lines say it: a log has no time of single steps.
    """
    numbers = [speed.step for speed in speeds]
    said = [number for number in numbers if number is not None]
    rises = len(said) == len(numbers) and all(one < next_one for one, next_one in pairwise(said))
    rows = []
    start_ns = 0
    for index, speed in enumerate(speeds):
        rows.append(StepRow(said[index] if rises else index, start_ns, _breakdown(speed)))
        start_ns += speed.step_ns or 0
    return rows


def _breakdown(speed: Speed) -> Breakdown:
    return _rows.breakdown(
        "host",
        duration_ns=speed.step_ns,
        data_loading_ns=speed.loading_ns,
        samples_per_second=None if speed.unit in _STEPS_PER_SECOND else speed.throughput,
    )


def _of_summary(spreads: Sequence[Spread]) -> Breakdown:
    """The means of a Perf Summary, for a text without any other line."""
    means = {spread.name: spread for spread in spreads}
    times = {
        name: round(means[name].mean * NS_PER_S) if name in means and means[name].unit == "s" else None
        for name in ("batch_cost", "reader_cost")
    }
    ips = means.get("ips")
    return _rows.breakdown(
        "host",
        duration_ns=times["batch_cost"],
        data_loading_ns=times["reader_cost"],
        samples_per_second=ips.mean if ips and ips.unit not in _STEPS_PER_SECOND else None,
    )


def _says_each_step(speeds: Sequence[Speed]) -> bool:
    """Whether no step is without a line: most programs print each tenth or hundredth, some do not number them.

    A number may be that of the first step of the next epoch. A Perf Summary alone is one step.
    """
    numbers = [speed.step for speed in speeds]
    if None in numbers or (numbers and numbers[0] not in (0, 1)):
        return False
    return all(next_one == (one or 0) + 1 or next_one in (0, 1) for one, next_one in pairwise(numbers))


def _overall(steps: Sequence[Breakdown], *, is_whole: bool) -> Breakdown:
    """Sums over the rows, where there is one of each step (`is_whole`): else how long all steps took is not known.

    The throughput is the samples of all rows by their time, each as if it were one step.
    That is the mean weighted by time: 10 samples/s for 3 s and 50 samples/s for 1 s are 20 samples/s, start-up
    included. Where no row says its time, the plain mean.
    """
    loads = [step.data_loading_ns for step in steps if step.data_loading_ns is not None]
    times = [step.duration_ns for step in steps if step.duration_ns is not None]
    rates = [(step.samples_per_second, step.duration_ns) for step in steps if step.samples_per_second is not None]
    weights = [float(time or 0) for _, time in rates]
    if not sum(weights):
        weights = [1.0] * len(rates)
    weighted = sum(rate * weight for (rate, _), weight in zip(rates, weights, strict=True))
    return _rows.breakdown(
        "host",
        duration_ns=sum(times) if times and is_whole else None,
        data_loading_ns=sum(loads) if loads and is_whole else None,
        samples_per_second=weighted / sum(weights) if rates else None,
    )


def _unit(log: _Log) -> str:
    """The unit of the throughput; '' where lines differ or do not say it."""
    units = {speed.unit for speed in log.speeds if speed.throughput is not None}
    units = units or {spread.unit for spread in log.spreads if spread.name == "ips"}
    return units.pop() if len(units) == 1 else ""


def _settings(log: _Log) -> dict[str, str]:
    """How the numbers came about. `throughput_scope`: `per rank`, left out where the log may mean the whole job."""
    says = [speed for speed in log.speeds if speed.throughput is not None]
    scope = "per rank" if says and log.of_one_rank else ""
    settings = {"profiler": "off", "throughput_unit": _unit(log), "throughput_scope": scope}
    return {name: value for name, value in settings.items() if value}


def _tables(log: _Log) -> dict[str, Any]:
    rows: list[_rows.Row] = [
        {"step": NO_STEP, "source": "perf_summary", "name": spread.name, "attribute": spread.unit, "calls": 1,
         "mean": spread.mean, "min": spread.smallest, "max": spread.largest}
        for spread in log.spreads
    ]  # fmt: skip
    if log.reader_ratio is not None:
        ratio = log.reader_ratio
        rows.append({"step": NO_STEP, "source": "perf_summary", "name": "reader ratio", "attribute": "%", "calls": 1,
                     "mean": ratio, "min": ratio, "max": ratio})  # fmt: skip
    return _rows.tables([], {"counter": rows})


def _warnings(log: _Log) -> Iterator[str]:
    if not log.speeds:
        yield "only the Perf Summary: its means stand for one step, their number is not stated"
    if log.trainings > 1:
        yield f"the log holds {log.trainings} trainings, one appended to the other; the last one counts"
    if len(log.ranks) > 1:
        yield f"{len(log.ranks)} ranks report the speed; the steps are those of rank {log.ranks[0]}"
    if len({speed.unit for speed in log.speeds if speed.throughput is not None}) > 1:
        yield "the lines give their throughput in different units"
