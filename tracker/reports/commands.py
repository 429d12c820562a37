"""Command lines that a reader can paste: the next ones of a report, and the same question once more."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tracker.results import Selection
from tracker.units import NS_PER_US, printable


def command(*words: str) -> str:
    """Write a command line that a shell takes as these words.

    >>> command("tracker", "diff", "v 1", "v2")
    "tracker diff 'v 1' v2"
    """
    return " ".join(printable(shlex.quote(word)) for word in words)


def command_of(program: Sequence[str], names: Sequence[str], options: Sequence[str] = ()) -> str:
    """Write a command line with its names, then its options; names that begin with - stand at the end, behind --.

    >>> command_of(("tracker", "diff"), ["v1", "v2"], ["--top", "3"]), command_of(("tracker", "show"), ["-a"])
    ('tracker diff v1 v2 --top 3', 'tracker show -- -a')
    """
    if any(name.startswith("-") for name in names):
        return command(*program, *options, "--", *names)
    return command(*program, *names, *options)


def exact_command(*words: str) -> str | None:
    r"""Write a command line that a shell takes as exactly these words; None where one cannot be written as it is.

    >>> exact_command("tracker", "diff", "v 1", "v2"), exact_command("tracker", "diff", "v1\u200b")
    ("tracker diff 'v 1' v2", None)
    """
    return command(*words) if all(printable(word) == word for word in words) else None


def options_of(chosen: Selection, *own: tuple[str, object]) -> list[str]:
    """Return the options of a question, as on the command line: `own` first, then what every selection has.

    What is as by default is left out.

    >>> from tracker.results import ShowOptions
    >>> options_of(ShowOptions(op="aten::mm", ranks=(0, 2), skip_bad_rows=True), ("--depth", 3), ("--by", None))
    ['--depth', '3', '--rank', '0', '--rank', '2', '--op', 'aten::mm', '--skip-bad-rows']
    """
    microseconds = None if chosen.minimum_ns is None else f"{chosen.minimum_ns / NS_PER_US:.12g}"
    words = words_of(
        *own, ("--rank", chosen.ranks), ("--stage", chosen.stage), ("--module", chosen.module), ("--op", chosen.op),
        ("--kind", chosen.kind), ("--group", chosen.group), ("--min-us", microseconds),
        ("--workload", chosen.workload), ("--input-format", chosen.format), ("--flow-category", chosen.flow_category),
    )  # fmt: skip
    switches = {"--allow-partial": chosen.allow_partial, "--skip-bad-rows": chosen.skip_bad_rows}
    return [*words, *(name for name, given in switches.items() if given)]


def words_of(*options: tuple[str, object]) -> list[str]:
    """Return options of a command line with their values: once per value of a tuple, once per key of a mapping, none
    for None and empty texts.

    >>> words_of(("--device", "H100"), ("--last", None), ("--rank", (0, 2)), ("--config", {"batch": "8"}))
    ['--device', 'H100', '--rank', '0', '--rank', '2', '--config', 'batch=8']
    """
    found: list[str] = []
    for name, value in options:
        values = value if isinstance(value, list | tuple) else [value]
        if isinstance(value, Mapping):
            values = [f"{key}={one}" for key, one in value.items()]
        for one in values:
            found += [] if one in (None, "") else [name, str(one)]
    return found


def option_words(options: Struct, *names: str) -> list[str]:
    """Return the options of a command line for the fields `names`."""
    return words_of(*((f"--{name}", getattr(options, name)) for name in names))
