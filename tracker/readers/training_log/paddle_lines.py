"""What one line of a log says of the speed of training, in every dialect."""

from __future__ import annotations

import math
import re
from typing import Final

from msgspec import Struct

from tracker.readers import _paddle
from tracker.units import NS_PER_S

_NUMBER: Final = r"(\d{1,12}(?:\.\d{1,12})?)(?![.\d])"
# `batch_cost: 0.37`; `batch_cost=0.37`: PaddleSeg until 2021
_IS: Final = r"(?: ?: *|=)"
# reader_cost (Paddle's timer, PaddleClas, PaddleSeg), avg_reader_cost (PaddleNLP), data_cost (PaddleDetection)
_READER: Final = re.compile(rf"\b(?:avg_)?(?:reader|data)_cost{_IS}{_NUMBER} *(ms|us|s)?")
# elapse: PaddleClas before 2021
_BATCH: Final = re.compile(rf"\b(?:(?:avg_)?batch_cost|elapse){_IS}{_NUMBER} *(ms|us|s)?")
_SPEED: Final = re.compile(rf"\b(?:avg_|average_)?speed{_IS}{_NUMBER} *steps?/s")
_IPS: Final = re.compile(rf"\b(?:avg_)?ips{_IS}{_NUMBER} *(?:([A-Za-z]+)/s)?")
_STEP: Final = re.compile(r"\b(?:step_idx|step|iter)s?(?::? *|=)(\d{1,12})", re.IGNORECASE)
_EPOCH: Final = re.compile(r"\bepoch(?::? *|=)\[?(\d{1,9})", re.IGNORECASE)
_LARGEST: Final = 1e9
_SLOWEST: Final = 1e-6
"""Steps per second; whatever is printed as less is nothing."""

_END: Final = re.compile(r"\bEND epoch|\belapse_sum\b|\bbatch_cost_sum\b|\[EVAL\]|\beval step\b", re.IGNORECASE)
# What these programs print is the batch of the process that writes the log, divided by its time. Others print what
# their author counts, or the sum over all processes (ips_total of PaddleFleetX and PaddleNLP's GPT).
_OF_ONE_RANK: Final = re.compile(
    r"\bavg_samples: "  # PaddleNLP since 2021: beside the samples of one step
    r"|\bloss: [\d.]+, speed: [\d.]+ steps?/s, ips ?: ?[\d.]+ sequences/s"  # PaddleNLP 2020
    r"|\btrain step: ?\d+ .*\b(?:elapse|batch_cost): "  # PaddleClas until 2023, static graph
    r"|\[Train\]\[Epoch \d+/\d+\]\[Iter: \d+/\d+\].*\bips: [\d.]+ samples/s"  # PaddleClas since 2021
    r"|\[TRAIN\] epoch: \d+, iter: \d+/\d+, .*\bips: [\d.]+ samples/sec"  # PaddleSeg
)


class Speed(Struct, frozen=True):
    """One logged interval: the mean time of a step and of its wait for data in ns, and the throughput with its unit.

    None for what the line does not say; `unit` like `images/s`. `step`, `epoch`: the numbers that the line gives.
    """

    step: int | None
    step_ns: int | None
    loading_ns: int | None
    throughput: float | None
    unit: str
    epoch: int | None = None


class Spread(Struct, frozen=True):
    """A row of the Perf Summary: mean, largest and smallest as printed (NaN where that is no number), `unit` like `s`
    or `images/s`.
    """

    name: str
    unit: str
    mean: float
    largest: float
    smallest: float


def speed_of(line: str) -> Speed | None:
    """The interval that a line reports; None for any other line, and for the sums at the end of an epoch.

    >>> speed_of("iter 5:  reader_cost: 0.00038 s batch_cost: 0.02462 s ips: 649.757 images/s")
    Speed(step=5, step_ns=24620000, loading_ns=380000, throughput=649.757, unit='images/s', epoch=None)
    >>> speed_of("global step 20, epoch: 0, batch: 19, loss: 11.2, speed: 2.00 step/s, ips :63.96 sequences/s")
    Speed(step=20, step_ns=500000000, loading_ns=None, throughput=63.96, unit='sequences/s', epoch=0)
    """
    if _END.search(line):
        return None
    batch, speed, ips = _BATCH.search(line), _SPEED.search(line), _IPS.search(line)
    if batch:
        step_ns = _ns(batch)
    elif speed and float(speed[1]) > _SLOWEST:
        step_ns = round(NS_PER_S / float(speed[1]))
    else:
        step_ns = None
    says_throughput = ips is not None and (ips[2] is not None or step_ns is not None)
    if step_ns is None and not says_throughput:
        return None
    reader, step, epoch = _READER.search(line), _STEP.search(line), _EPOCH.search(line)
    return Speed(
        int(step[1]) if step else None,
        step_ns,
        _ns(reader) if reader else None,
        float(ips[1]) if ips is not None and says_throughput else None,
        f"{ips[2]}/s" if ips is not None and ips[2] else "",
        int(epoch[1]) if epoch else None,
    )


def counts_one_rank(line: str) -> bool:
    """Whether the throughput in `line` is surely that of one process; False where it may be that of the whole job.

    >>> counts_one_rank("global step 20, epoch: 0, batch: 19, loss: 11.2, speed: 2.00 step/s, ips: 63.96 sequences/s")
    True
    >>> counts_one_rank("iter 5:  reader_cost: 0.00038 s batch_cost: 0.02462 s ips: 649.757 images/s")
    False
    """
    return _OF_ONE_RANK.search(line) is not None


def spread_of(line: str, units: tuple[str, str]) -> Spread | None:
    """A row of the Perf Summary; `units`: of the times and of ips, as its head says them.

    >>> spread_of("|   reader_cost   |     0.00012     |     0.00013     |     0.00009     |", ("s", "images/s"))
    Spread(name='reader_cost', unit='s', mean=0.00012, largest=0.00013, smallest=9e-05)
    """
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if len(cells) != 4 or cells[0] not in ("reader_cost", "batch_cost", "ips"):
        return None
    try:
        mean, largest, smallest = (float(cell) for cell in cells[1:])
    except ValueError:
        return None  # `-`: the timer has not run
    if not _is_number(mean):
        return None
    # a timer that saw no first interval prints `inf` as its smallest one, and its mean holds all the same
    largest, smallest = (number if _is_number(number) else math.nan for number in (largest, smallest))
    return Spread(cells[0], units[cells[0] == "ips"], mean, largest, smallest)


def _is_number(value: float) -> bool:
    """Return whether it is neither NaN nor infinite, and no time that 64 bits do not hold in ns."""
    return abs(value) < _LARGEST


def _ns(match: re.Match[str]) -> int | None:
    """The time, None for one that cannot be."""
    try:
        return _paddle.to_ns(match[1], match[2] or "s")
    except ValueError:
        return None
