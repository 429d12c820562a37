"""Nanoseconds and bytes: every conversion into them and every human form of them; text that harms no terminal.

Times are integer nanoseconds from the door of a reader to the door of a report; nothing between rounds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Final

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
NS_PER_MINUTE = 60 * NS_PER_S
NS_PER_HOUR = 60 * NS_PER_MINUTE
NS_PER_DAY = 24 * NS_PER_HOUR
BYTES_PER_KIB = 1_024
SAMPLES: Final = "samples/s"
"""What a throughput counts where a profile does not say it."""
MISSING_TEXT = "-"
MAX_BYTES: Final = 64 * 1024**3
"""Default of the setting `limits.max_bytes`: above every trace we have met, below what fills a disk by accident."""

# Seconds start at ten: parts of a step of 1.2 s would lose their digits.
_TIME_UNITS = ((10 * NS_PER_S, NS_PER_S, "s"), (NS_PER_MS, NS_PER_MS, "ms"), (NS_PER_US, NS_PER_US, "us"), (1, 1, "ns"))
_TOO_LARGE_US: Final = (1 << 63) // NS_PER_US
_DIGITS: Final = re.compile(r"(\d+)")
_VENDORS: Final = ("huawei", "ascend", "nvidia", "amd", "intel")
_SIZE_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def us_to_ns(text: str | bytes | int | float) -> int:
    """Microseconds as the profiler wrote them, in ns, exact to the last digit.

    Text is parsed as a decimal, since a double cannot hold `1736413971558972.912`; pass floats only below 2**52 ns.
    Half a nanosecond rounds to even. Raises ValueError for anything that is not a number, or beyond 64 bits.

    >>> us_to_ns("1736413971558972.912")
    1736413971558972912
    >>> us_to_ns(7)
    7000
    """
    if isinstance(text, int) and abs(text) < _TOO_LARGE_US:
        return text * NS_PER_US
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    try:
        value = Decimal(text.strip() if isinstance(text, str) else repr(text))
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is not a number of microseconds") from error
    if not value.is_finite() or not -_TOO_LARGE_US < value < _TOO_LARGE_US:
        raise ValueError(f"{text!r} is not a finite number of microseconds that 64-bit nanoseconds hold")
    return int((value * NS_PER_US).to_integral_value())


def time_unit(*values_ns: float | None) -> tuple[int, str]:
    """The one unit in which all `values_ns` read well: (ns per unit, its name). None values are left out.

    Values that will be compared share a unit, chosen for the largest.

    >>> time_unit(1_500_000, 900, None), time_unit(9_000_000_000), time_unit(20_000_000_000)
    ((1000000, 'ms'), (1000000, 'ms'), (1000000000, 's'))
    """
    largest = max((abs(value) for value in values_ns if value is not None), default=0)
    for smallest, size, name in _TIME_UNITS:
        if largest >= smallest:
            return size, name
    return 1, "ns"


def format_ns(value_ns: float | None, unit: tuple[int, str] | None = None) -> str:
    """A duration for people: `24.40 us`. None gives `-`; `unit` from `time_unit` makes neighbours comparable.

    >>> format_ns(24_400), format_ns(0), format_ns(None)
    ('24.40 us', '0 ns', '-')
    """
    if value_ns is None:
        return MISSING_TEXT
    size, name = unit or time_unit(value_ns)
    if size == 1:
        return f"{value_ns:.0f} {name}"
    return f"{value_ns / size:,.2f} {name}"


def size_unit(*values_bytes: float | None) -> tuple[int, str]:
    """The one unit in which all `values_bytes` read well: (bytes per unit, its name). None values are left out.

    >>> size_unit(3 << 20, 900, None)
    (1048576, 'MiB')
    """
    largest = max((abs(value) for value in values_bytes if value is not None), default=0)
    for size, name in _SIZE_UNITS:
        if largest >= size:
            return size, name
    return 1, "B"


def format_bytes(value_bytes: float | None, unit: tuple[int, str] | None = None) -> str:
    """A size for people, in powers of 1024. None gives `-`; `unit` from `size_unit` makes neighbours comparable.

    >>> format_bytes(1536), format_bytes(7), format_bytes(None)
    ('1.50 KiB', '7 B', '-')
    """
    if value_bytes is None:
        return MISSING_TEXT
    size, name = unit or size_unit(value_bytes)
    if size == 1:
        return f"{value_bytes:.0f} {name}"
    return f"{value_bytes / size:,.2f} {name}"


def format_numbers(numbers: Sequence[int]) -> str:
    """Sorted whole numbers in short, as options take them: runs of three and more as a range.

    >>> format_numbers([3]), format_numbers([3, 4]), format_numbers([1, 2, 3, 7])
    ('3', '3,4', '1-3,7')
    """
    spans = _consecutive(numbers)
    return ",".join(f"{span[0]}-{span[-1]}" if len(span) > 2 else ",".join(map(str, span)) for span in spans)


def ranges(numbers: Sequence[int], most: int | None = None) -> str:
    """Sorted whole numbers in a sentence: consecutive ones as a range, and the first `most` of the ranges.

    >>> ranges([0, 1, 2, 5]), ranges([0, 2, 4], most=2)
    ('0-2, 5', '0, 2, ...')
    """
    spans = _consecutive(numbers)
    words = [f"{span[0]}-{span[-1]}" if len(span) > 1 else str(span[0]) for span in spans[:most]]
    return ", ".join([*words, "..."] if len(words) < len(spans) else words)


def _consecutive(numbers: Sequence[int]) -> list[list[int]]:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    return spans


def step_word(step_kind: str) -> str:
    """Return what a step is called: of a kind by its name.

    >>> step_word(""), step_word("DECODE")
    ('step', 'DECODE step')
    """
    return f"{step_kind} step" if step_kind else "step"


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "run"), counted(2, "rank"), counted(1200, "file")
    ('1 run', '2 ranks', '1,200 files')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def name_throughput(unit: str, scope: str) -> str:
    """Return what a throughput counts, and of whom: `scope` is `per rank` or `total` (of the job). Either is "" where
    the source does not say it.

    >>> name_throughput("tokens/s", "per rank"), name_throughput("tokens/s", "total"), name_throughput("", "")
    ('tokens/s per rank', 'tokens/s of the job', 'samples/s')
    """
    words = {"per rank": " per rank", "total": " of the job"}
    return (unit or SAMPLES) + words.get(scope, "")


def some_of(names: Sequence[str], separator: str = ", ", most: int = 3) -> str:
    """The first names, and how many more there are.

    >>> some_of(["mul", "pow"]), some_of(["mul", "pow", "tanh", "add"], " + ")
    ('mul, pow', 'mul + pow + tanh and 1 more')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def level_words(versions: Sequence[str]) -> str:
    """A level, by the versions of its runs, of which those in between may have another one.

    >>> level_words(["v06", "v07", "v09"]), level_words(["v09"]), level_words([])
    ('the level of v06, v07, v09', 'v09', '')
    """
    labels = list(dict.fromkeys(versions))
    return f"the level of {some_of(labels)}" if len(labels) > 1 else "".join(labels)


def steps_words(steps: Sequence[int] | None) -> str:
    """A choice of steps in words; None or none is all of them.

    >>> steps_words((12,)), steps_words((12, 13, 14, 20)), steps_words(())
    ('step 12', 'steps 12-14,20', 'all steps')
    """
    if not steps:
        return "all steps"
    return f"step{'' if len(steps) == 1 else 's'} {format_numbers(sorted(steps))}"


def format_diff(diff: float | None) -> str:
    """DIFF = candidate / baseline - 1 as signed per cent; None (no baseline, or nothing to compare) gives `-`.

    >>> format_diff(0.164), format_diff(-0.5), format_diff(0.0), format_diff(None)
    ('+16.4 %', '-50.0 %', '0.0 %', '-')
    """
    if diff is None:
        return MISSING_TEXT
    percent = round(diff * 100, 1)
    return f"{percent:+,.1f} %" if percent else "0.0 %"


AGE: Final = re.compile(r"([0-9]{1,9})(s|m|h|d|w)")
_AGE_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def age_ns(text: str) -> int:
    """How long `30s`, `5m`, `12h`, `3d` or `2w` is, in ns. ValueError for anything else.

    >>> age_ns("5m"), age_ns("2w")
    (300000000000, 1209600000000000)
    """
    found = AGE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no time such as 30s, 5m, 12h, 3d or 2w")
    return int(found[1]) * _AGE_S[found[2]] * NS_PER_S


def is_plain(text: str) -> bool:
    r"""Whether `text` holds no control characters, such as a line end, which would act on the terminals that show it.

    >>> is_plain("v1"), is_plain("v1\n")
    (True, False)
    """
    return not any(unicodedata.category(char) == "Cc" for char in text)


def printable(text: str) -> str:
    r"""`text` on one line, without what a terminal, a file format or a runner of CI acts on: that shows as escapes.

    >>> printable("a\nb\x1b[31mc"), printable("aten::mm"), printable(" ::error::x"), printable("a ##[error]x")
    ('a\\nb\\x1b[31mc', 'aten::mm', ' \\x3a:error::x', 'a \\x23#[error]x')
    """
    shown = on_one_line(text)
    is_likely = shown.startswith("::") or " ::" in shown or "##[" in shown or not shown.isascii()
    return _COMMAND.sub(_escape_command, shown) if is_likely else shown


def on_one_line(text: str) -> str:
    r"""`text` without characters that a terminal acts on: those show as escapes.

    >>> on_one_line("::a\nb")
    '::a\\nb'
    """
    if text.isprintable():
        return text
    return "".join(char if _harmless(char) else char.encode("unicode_escape").decode("ascii") for char in text)


_COMMAND: Final = re.compile(r"(?<!\S)::|##\[")
"""A command to a runner of GitHub: `::` at the start of a line, which a name may come to, or `##[` anywhere."""


def _escape_command(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0][0]):02x}{found[0][1:]}"


def _harmless(char: str) -> bool:
    # Cc control, Cf direction marks and zero-width, Cs lone surrogates, Co and Cn unassigned, Zl and Zp line ends
    return unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def format_age(ns: int) -> str:
    """How long something is, or ago, for people, in the largest unit of which there are two.

    >>> format_age(119 * 10**9), format_age(7200 * 10**9), format_age(86400 * 10**9), format_age(10**8)
    ('119 s', '2 h', '24 h', '0 s')
    """
    seconds = max(0, ns) // NS_PER_S
    for letter, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {letter}"
    return f"{seconds} s"


def format_moment(ns: int) -> str:
    """A moment in ns since 1970 for people, to the minute, in UTC.

    >>> format_moment(90 * 10**9)
    '1970-01-01 00:01'
    """
    return datetime.fromtimestamp(ns // NS_PER_S, UTC).strftime("%Y-%m-%d %H:%M")


def device_part(text: str) -> str:
    """A device or a part of its name as it is compared: in small letters, without blanks, `-` and `_`.

    >>> device_part("Ascend 910B"), device_part("ascend-910b") in device_part("Huawei Ascend910B")
    ('ascend910b', True)
    """
    return re.sub(r"[\s_-]+", "", text.lower())


def device_key(name: str) -> str:
    """What two spellings of one hardware model have in common: `device_part` without the vendor in front.

    A bare H100 is not the H100 80GB HBM3: which of several models it is cannot be told.

    >>> device_key("Huawei Ascend910B"), device_key("Ascend 910B"), device_key("NVIDIA H100") == device_key("h100")
    ('910b', '910b', True)
    """
    part = device_part(name)
    for vendor in _VENDORS:
        part = part.removeprefix(vendor) or part
    return part


def unit_of_metric(metric: str) -> str:
    """The unit of a metric of a series: ns, bytes, ratio or per_second.

    >>> unit_of_metric("device_self_ns"), unit_of_metric("peak_allocated_bytes"), unit_of_metric("samples_per_second")
    ('ns', 'bytes', 'per_second')
    """
    ends = {"_per_second": "per_second", "bytes": "bytes", "_ratio": "ratio"}
    return next((unit for end, unit in ends.items() if metric.endswith(end)), "ns")


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key in which 96 comes before 128.

    >>> sorted(["batch=128", "batch=96"], key=natural)
    ['batch=96', 'batch=128']
    """
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(text))
