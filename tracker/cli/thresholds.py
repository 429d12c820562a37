"""`tracker thresholds` and `tracker calibrate`: the limits of change detection."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker import compare
from tracker.api.arguments import opened
from tracker.api.edits import account
from tracker.cli.options import By, Database, ListFormat, Reason, Workload
from tracker.cli.output import Column, device_of, emit, emit_list, next_lines, note, plan
from tracker.cli.report_options import Page
from tracker.errors import UsageError
from tracker.results import SERIES_KINDS, THRESHOLDS, CalibrateOptions
from tracker.results.listed import ListedThreshold
from tracker.results.options import Option, pairs
from tracker.results.thresholds import MovedFinding
from tracker.units import counted, format_diff, format_moment

if TYPE_CHECKING:
    from tracker.regressions.thresholds import Where
    from tracker.results.thresholds import Threshold


_NAMES: Final = ", ".join(THRESHOLDS)
_NO_CONFIGURATION: Final[dict[object, str]] = {None: "all", "": "none stated"}
_COUNTS: Final = ("alpha", "confirm", "least_base", "window", "look_back")
_HOW: Final = {how: f" ({how})" for how in ("gradual", "late", "machine")}
"""How a finding came about -> what is said of it beside its verdict."""
_MEANINGS: Final = "\n".join(
    textwrap.fill(bounds.meaning, 80, initial_indent=f"  {name:<18}", subsequent_indent=" " * 20)
    for name, bounds in THRESHOLDS.items()
)
HELP = f"""Show and change detection thresholds. Without a command: list those that were set.

\b
{_MEANINGS}

min_ratio and min_contribution can be set for a kind of series or for names; the others hold for a track.

\b
Example:
  tracker thresholds
  tracker thresholds try min_ratio=10% --kind op --series 'aten::copy_*'
  tracker thresholds set min_ratio=10% --kind op --series 'aten::copy_*' --reason 'bimodal on this machine'
  tracker thresholds set confirm=3 --workload gpt --device H100 --reason 'noisy cluster'
  tracker thresholds unset confirm --workload gpt --device H100"""


class Place(Struct, frozen=True, kw_only=True):
    """The series and runs that a threshold holds for."""

    kind: Annotated[str | None, Option("For this kind of series. Default: all.", words=SERIES_KINDS)] = None
    series: Annotated[
        str | None, Option("For series of this name, before what is set for all of a kind. Default: all.", "PATTERN")
    ] = None
    workload: Annotated[
        str | None,
        Option(
            "For this workload. Default: TRACKER_WORKLOAD, else the settings file, else the only one.",
            "NAME",
            variable="TRACKER_WORKLOAD",
        ),
    ] = None
    device: Annotated[str | None, Option("For runs on this hardware model. Default: any.", "MODEL")] = None
    config: Annotated[
        tuple[str, ...] | None,
        Option(
            "For runs with exactly this configuration, else the only one that includes it; repeatable; '' for runs "
            "that state none. Default: any.",
            "KEY=VALUE",
        ),
    ] = None

    def where(self) -> Where:
        """The runs, as the thresholds of the store name them."""
        from tracker.regressions.thresholds import Where

        stated = None if self.config is None else pairs([text for text in self.config if text], "--config")
        return Where(self.workload, self.device, stated)

    def words(self) -> list[str]:
        """Return the options that name the place on a command line."""
        named = [("--kind", self.kind), ("--series", self.series), ("--workload", self.workload)]
        named += [("--device", self.device), *(("--config", text) for text in self.config or ())]
        return [word for option, value in named if value is not None for word in (option, value)]

    def limits(self, values: Sequence[tuple[str, float]]) -> list[Threshold]:
        """Thresholds of these values for the series."""
        from tracker.results.thresholds import Threshold

        return [Threshold(name, value, self.kind or "", self.series or "") for name, value in values]


def _limit(text: str, option: str) -> list[tuple[str, float]]:
    """Name and value; `10%` is 0.1."""
    name, _, value = text.partition("=")
    number = value.strip().removesuffix("%")
    try:
        return [(name.strip(), float(number) / (100 if value.strip().endswith("%") else 1))]
    except ValueError:
        raise UsageError(f"{text!r} is not a threshold", remedy="write NAME=VALUE, as in min_ratio=5%") from None


Limits = Annotated[
    list[tuple[str, float]],
    Option(
        f"{_NAMES}. A fraction (0.1) or per cent (10%); confirm, least_base, window, look_back: runs.",
        "NAME=VALUE...",
        read=_limit,
        positional=True,
    ),
]


def find(workload: Workload = None, format: ListFormat = "text", db: Database = None) -> None:
    """List the thresholds that were set; all others have their defaults."""
    from tracker.store import queries

    with opened(db, read_only=True) as store:
        found = queries.thresholds(store, workload)
    last = f"{counted(len(found), 'threshold')} set; all others have their defaults: tracker thresholds --help"
    if "" in found.listed("configuration"):
        last = f"{counted(len(found), 'threshold')} set; without a stated configuration: --config ''"
    elif not len(found):
        last = "no thresholds are set, all have their defaults: tracker thresholds --help, tracker calibrate --help"
    emit_list(found, _COLUMNS, format, name="thresholds", last_line=last, kind=ListedThreshold)


def set_(limits: Limits, place: Place, reason: Reason, by: By = None, db: Database = None) -> None:
    """Set thresholds for a track or series, and judge again.

    Versions that they can change are judged again at once. Marks on findings stay.

    \b
    Example:
      tracker thresholds set min_ratio=10% --kind op --series 'aten::copy_*' --reason 'bimodal on this machine'
      tracker thresholds set confirm=3 --workload gpt --device H100 --reason 'noisy cluster'
      tracker thresholds set min_ratio=0.05 min_contribution=0.2% --kind kernel --reason 'calibrated in March'
    """
    from tracker.detect import words_of_limits
    from tracker.regressions.thresholds import overruled, set_thresholds

    who, now = account(by), time.time_ns()
    wanted = [replace(each, who=who, when_ns=now, reason=reason) for each in place.limits(limits)]
    with opened(db) as store:
        where = place.where()
        count = set_thresholds(store, wanted, where)
        if overruled(store, wanted, where):
            note("note: a threshold of a single configuration overrides it; tracker thresholds lists them")
    emit(f"{words_of_limits(wanted)} set; {counted(count, 'version')} judged again.{next_lines('tracker findings')}")


def try_(limits: Limits, place: Place, format: ListFormat = "text", db: Database = None) -> None:
    """Show which findings other thresholds would add and remove, without a change.

    All stored runs are judged again in memory, which takes as long as tracker thresholds set.

    \b
    Example:
      tracker thresholds try min_ratio=10% --kind op --series 'aten::copy_*'
      tracker thresholds try alpha=0.01 confirm=3 --workload gpt
    """
    from tracker.detect import words_of_limits
    from tracker.regressions.thresholds import try_thresholds

    wanted = place.limits(limits)
    with opened(db, read_only=True) as store:
        found = try_thresholds(store, wanted, place.where())
    for text in found.notes:
        note(text)
    moved = [*found.moved.structs(MovedFinding)]
    movements = [one.movement for one in moved]
    if any(one.how == "gradual" for one in moved):
        note("gradual: no single version changes by as much as the threshold, several together do")
    last = (
        f"with {words_of_limits(wanted)}: {counted(movements.count('comes'), 'finding')} added, "
        f"{movements.count('goes')} removed, {found.stay} unchanged; nothing is set."
        f"{next_lines(_command_to_set(limits, place))}"
    )
    emit_list(found.moved, _TRIED, format, name="findings", last_line=last, kind=MovedFinding)


def _command_to_set(limits: Sequence[tuple[str, float]], place: Place) -> str:
    """Return the command that sets what was tried; its reason is left to the user."""
    from tracker.reports.commands import command

    values = [f"{name}={value:g}" for name, value in limits]
    return command("tracker", "thresholds", "set", *values, *place.words()) + ' --reason "..."'


def unset(
    names: Annotated[list[str], Option(f"{_NAMES}.", "NAME...", positional=True)], place: Place, db: Database = None
) -> None:
    """Reset thresholds to their defaults, and judge again.

    The options must name the series and runs that the thresholds were set for.

    \b
    Example:
      tracker thresholds unset min_ratio --kind op --series 'aten::copy_*'
    """
    from tracker.regressions.thresholds import unset_thresholds

    with opened(db) as store:
        count = unset_thresholds(store, place.limits([(name, 0.0) for name in names]), place.where())
    done = f"{', '.join(names)} reset to default; {counted(count, 'version')} judged again."
    emit(f"{done}{next_lines('tracker thresholds')}")


def _value(row: ListedThreshold) -> str:
    return f"{row.threshold:g}" if row.name in _COUNTS else f"{row.threshold * 100:g} %"


def _series(row: MovedFinding) -> str:
    """Return the series in the words of findings."""
    from tracker.reports.cells import part_of
    from tracker.reports.views.findings import series_words

    memory = " (memory)" if row.kind == "memory" and row.input_shapes else ""
    part = part_of(row.kind, row.part or "", row.step_kind or "")
    return f"{series_words(row.name, row.kind, row.input_shapes, part)}{memory}"


def _kind(row: ListedThreshold) -> str:
    return row.kind or "all"


def _pattern(row: ListedThreshold) -> str:
    return row.pattern or "all"


def _configuration(row: ListedThreshold) -> str:
    return _NO_CONFIGURATION.get(row.configuration, str(row.configuration))


_COLUMNS = (
    Column("threshold", "name"), Column("value", _value, right=True), Column("kind", _kind),
    Column("series", _pattern, is_elastic=True), Column("workload", is_elastic=True),
    Column("device", device_of, is_elastic=True), Column("configuration", _configuration, is_elastic=True),
    Column("by", "who", drop=1), Column("when (UTC)", "when_ns", format_moment, drop=2),
    Column("reason", is_elastic=True),
)  # fmt: skip


def _verdict(row: MovedFinding) -> str:
    from tracker.results.verdicts import VERDICT_OF_DIRECTION, word_of_step

    return word_of_step(VERDICT_OF_DIRECTION[row.direction], row.how) + _HOW.get(row.how, "")


def _of_step(row: MovedFinding) -> str:
    return f"{row.contribution * 100:+.2f} %"


_TRIED = (
    Column("", "movement", lambda text: {"comes": "added", "goes": "removed"}.get(text, text)),
    Column("version"), Column("verdict", _verdict),
    Column("finding", _series, is_elastic=True), Column("change %", "ratio", format_diff, right=True),
    Column("of step", _of_step, right=True), Column("state"),
)  # fmt: skip


def calibrate(
    repeats: Annotated[
        list[str],
        Option(
            "A version, or its runs: run:41 run:42 ... 6 or more, of one workload, configuration and device.",
            "VERSION|RUN...",
            positional=True,
            offers="side",
        ),
    ],
    chosen: CalibrateOptions,
    page: Page,
    apply: Annotated[
        bool, Option("Set the proposed limits as thresholds of this track, and judge again; needs --reason.")
    ] = False,
    reason: Annotated[str | None, Option("Why they are set; stored with them. Default: none.", "TEXT")] = None,
    by: By = None,
    db: Database = None,
) -> None:
    """Estimate the smallest detectable change from repeated runs of one version.

    Compares the repeats with each other, many times: nothing changed between them, so each change found is a false
    verdict. Prints which slowdown 2, 3, 5 and 8 runs detect, and the limits that give at most one false verdict.

    \b
    Example:
      tracker calibrate nightly-base
      tracker calibrate v7 --workload gpt --device H100
      tracker calibrate nightly-base --apply --reason "calibrated on node 7"
      tracker calibrate run:41 run:42 run:43 run:44 run:45 run:46 --format json
    """
    from tracker.regressions.calibrate import calibrate as calibrate_runs
    from tracker.regressions.thresholds import apply_calibration

    if apply and not (reason or "").strip():
        raise UsageError("--apply needs a reason", remedy="add --reason TEXT")
    delivery = plan(page, f"calibration_{repeats[0]}", "calibration")
    with opened(db, read_only=not apply) as store:
        named = [one if one.startswith("run:") else compare.label_of(store, one, chosen.workload) for one in repeats]
        found = calibrate_runs(store, named, options=chosen)
        if apply:
            done = apply_calibration(store, found, who=account(by), when_ns=time.time_ns(), reason=reason or "")
            note(f"thresholds set: min_ratio of {', '.join(done) or 'nothing'}; tracker thresholds lists them")
    delivery.deliver(found)
