"""Options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tracker.cli._proposals import remember
from tracker.errors import SourceError, UsageError
from tracker.units import NS_PER_US, is_plain, us_to_ns

_DIGITS = 18  # what fits into 8 bytes, in which the database holds numbers
_STEPS = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)
_MOST_STEPS = 10_000  # each is a parameter of a question to the database
_LARGEST_US = 2**63 / NS_PER_US
Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL|PATH",
        help="The database: a SQLite file, or postgresql://USER@HOST/NAME. Default: TRACKER_DB, else the settings "
        "file, else a SQLite file in your data folder (tracker db info names it).",
        show_default=False,
        callback=remember,
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE|FOLDER",
        help="Also write the report there; the text stays on screen. A folder gets a file named after what was asked. "
        "Without --format the file's ending chooses the format. Default: no file.",
        show_default=False,
    ),
]
Workload = Annotated[
    str | None,
    typer.Option(
        "--workload",
        metavar="NAME",
        envvar="TRACKER_WORKLOAD",
        show_envvar=False,
        help="Only this workload. Needed where a version label is used by several workloads. Default: "
        "TRACKER_WORKLOAD, else any.",
        show_default=False,
    ),
]
Version = Annotated[
    str | None,
    typer.Option(
        "--version",
        metavar="LABEL",
        envvar="TRACKER_VERSION",
        show_envvar=False,
        help="Only this version, by its label or its commit. Default: TRACKER_VERSION, else any.",
        show_default=False,
    ),
]
Top = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="Rows per table, and below each row of a tree, largest first; 0 for all. Default: 10 on screen and in "
        "Markdown, in a tree without rows below 1 %; all in the other formats.",
        show_default=False,
    ),
]
Depth = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Levels of the tree that --by asks for: 1 for the modules or ops at its top alone. Default: all.",
        show_default=False,
    ),
]
Ranks = Annotated[
    list[int] | None,
    typer.Option(
        "--rank",
        metavar="N",
        min=0,
        help="Only this rank; may be given again. Tells a slow rank from a slow version. Default: all ranks.",
        show_default=False,
    ),
]
Stage = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Only this pipeline stage. Default: all stages.", show_default=False),
]
BaselineStep = Annotated[
    str | None,
    typer.Option(
        metavar="STEPS",
        help="Only these steps of the baseline, by the numbers of its markers: 12, or 12-15, or 12,14-16. Leaves out "
        "warm-up, and compares two steps of one run. Default: all steps.",
        show_default=False,
    ),
]
CandidateStep = Annotated[
    str | None,
    typer.Option(
        metavar="STEPS",
        help="Only these steps of the candidate; written in the same way. Default: all steps.",
        show_default=False,
    ),
]
Step = Annotated[
    str | None,
    typer.Option(
        "--step",
        metavar="STEPS",
        help="Only these steps, by the numbers of their markers: 12, or 12-15, or 12,14-16. Default: all steps, and "
        "what lies outside them.",
        show_default=False,
    ),
]
ShowOnly = Annotated[
    str | None,
    typer.Option(
        "--only",
        metavar="WORDS",
        help="Sections of the report, separated by commas: overall, operator, kernel, kernel_type, metric, "
        "communication, link, memory, memory_peak, memory_block, module, api, counter. metric: measurements of NPU "
        "kernels; counter: what the "
        "profiler counts in tables of its own. Default: all but module and api on screen, in short; all in the other "
        "formats.",
        show_default=False,
    ),
]
Module = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERN",
        help="Only ops in modules whose path matches, such as '*/Attention_0*'; * is any text. Default: all modules.",
        show_default=False,
    ),
]
Op = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERN",
        help="Only ops whose name matches, such as 'aten::*norm*', and what they launched; * is any text. Default: "
        "all.",
        show_default=False,
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERN",
        help="Only communication of a kind that matches, such as all_reduce; * is any text. Default: all kinds.",
        show_default=False,
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERN",
        help="Only communication in groups whose role matches, such as dp or 'tp*'; * is any text. Tells data from "
        "tensor parallelism. Default: all groups.",
        show_default=False,
    ),
]
MinimumUs = Annotated[
    float | None,
    typer.Option(
        "--min-us",
        metavar="US",
        help="Leave out rows below this many microseconds per step, on both sides: they seldom decide. Default: 0.",
        show_default=False,
    ),
]
InputFormat = Annotated[
    str | None,
    typer.Option(
        "--input-format",
        metavar="NAME",
        help="How to read paths, when their format is not recognised or two formats claim them. Default: recognise it.",
        show_default=False,
    ),
]
FlowCategory = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Category of the flow arrows that link ops to kernels, for traces without correlation ids, such as "
        "async_gpu. A wrong one leaves kernels without an op. Default: recognise it.",
        show_default=False,
    ),
]
AllowPartial = Annotated[
    bool,
    typer.Option(
        "--allow-partial",
        help="Accept a truncated trace up to where it ends; its run is marked partial, and its totals are too low. "
        "Steps that are not wholly in a PyTorch trace are left out: with a device, all of them. Default: refuse it.",
    ),
]
SkipBadRows = Annotated[
    bool,
    typer.Option(
        "--skip-bad-rows", help="Leave out unreadable rows and say how many. Default: one bad row is an error."
    ),
]
Runs = Annotated[
    list[str], typer.Argument(metavar="RUN...", help="Run numbers: 41 or run:41. tracker runs lists them.")
]


class Format(StrEnum):
    """How a report is written."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    CSV = "csv"
    XLSX = "xlsx"
    JUNIT = "junit"
    GITHUB = "github"
    PROMETHEUS = "prometheus"


ReportFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="How to write it: text for people, json for scripts (schema 1: docs/json.md), markdown for a pull "
        "request, csv for a spreadsheet, xlsx for the whole workbook (needs -o); of diff and findings also junit (test "
        "results for GitLab and Jenkins), github (annotations of a workflow), prometheus (a textfile for "
        "node_exporter). Default: text.",
        show_default=False,
    ),
]


class FailOn(StrEnum):
    """What a build fails by."""

    NEW = "new"
    ANY = "any"


def one_line(what: str, text: str | None) -> str | None:
    """`text` as it is; UsageError for control characters, which would act on the terminals that show it."""
    if text is not None and not is_plain(text):
        raise UsageError(f"{what} {text!r} holds control characters", remedy="write it on one line, as plain text")
    return text


def check_path(path: Path) -> None:
    """A SourceError where the name of a file or folder is none that the system can look up."""
    try:
        path.exists()
    except OSError as error:
        raise SourceError(path, "", f"cannot be read ({error.strerror})", remedy="check the path") from error


def pairs(values: Sequence[str] | None, option: str) -> dict[str, str]:
    """`KEY=VALUE` arguments of `option` as a mapping.

    >>> pairs(["batch=32", "precision=bf16"], "--config")
    {'batch': '32', 'precision': 'bf16'}
    """
    found: dict[str, str] = {}
    for text in values or ():
        one_line(option, text)
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise UsageError(f"{option} {text!r} is not KEY=VALUE", remedy=f"write it like {option} batch=32")
        if key.strip() in found:
            raise UsageError(f"{option} names {key.strip()!r} twice", remedy="give each key once")
        found[key.strip()] = value.strip()
    return found


def run_ids(values: Sequence[str]) -> list[int]:
    """Run numbers as `tracker runs` prints them, each once; `run:` in front may be left out.

    >>> run_ids(["41", "run:7", "41"])
    [41, 7]
    """
    texts = [text.removeprefix("run:") for text in values]
    for text in texts:
        if not (text.isascii() and text.isdigit()):
            raise UsageError(f"{text!r} is not a run number", remedy="tracker runs lists them: 41 or run:41")
        if len(text) > _DIGITS:
            raise UsageError(f"there is no run {text}", remedy="tracker runs lists them")
    return list(dict.fromkeys(int(text) for text in texts))


def sections(only: str | None) -> tuple[str, ...]:
    """The words of `--only`, checked; none where it is not given.

    >>> sections("overall, operator")
    ('overall', 'operator')
    """
    from tracker.results import check_sections

    words = dict.fromkeys(word.strip() for word in (only or "").split(",") if word.strip())
    if only is not None and not words:
        raise UsageError("--only names no section", remedy="name one, as in --only overall, or leave it out")
    check_sections(words)
    return tuple(words)


def steps(text: str | None, option: str) -> tuple[int, ...]:
    """The step numbers in `text`, in order; empty for None. UsageError for anything but numbers and ranges.

    >>> steps("12,14-16", "--step"), steps(None, "--step")
    ((12, 14, 15, 16), ())
    """
    if text is None:
        return ()
    found: set[int] = set()
    for part in text.split(","):
        match = _STEPS.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not 0 <= last - first < _MOST_STEPS or len(found) > _MOST_STEPS:
            raise UsageError(
                f"{option} {text!r} names no steps", remedy=f"write a number, a range or several: {option} 12,14-16"
            )
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def minimum_ns(microseconds: float | None) -> int | None:
    """`--min-us` in nanoseconds; UsageError for what is no time, or more than the database can hold.

    >>> minimum_ns(2.5), minimum_ns(None)
    (2500, None)
    """
    if microseconds is None:
        return None
    if not 0 <= microseconds < _LARGEST_US:
        raise UsageError(
            f"--min-us is {microseconds}, which is no number of microseconds", remedy="give 0 or more: --min-us 10"
        )
    return us_to_ns(microseconds)


def is_list(context: typer.Context) -> bool:
    """Whether `tracker runs` or the like is called by itself, for its list, and not for one of its commands.

    Options in front of a command would be lost, and with them the database it should work on: a UsageError.
    """
    command = context.invoked_subcommand
    if command is None:
        return True
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError(
                f"{parameter.opts[0]} stands before {command}, where it would do nothing",
                remedy=f"write it behind: tracker {context.info_name} {command} ... {parameter.opts[0]} ...",
            )
    return False
