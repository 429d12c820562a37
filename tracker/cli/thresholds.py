"""`tracker thresholds`: how large a change must be to count, and how many runs decide; listed, set, taken back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracker.cli import _options as options
from tracker.cli import _tables as tables
from tracker.cli.actions import By
from tracker.cli.history import SeriesKind
from tracker.units import counted

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.judgement import Where

_NAMES = "min_ratio, min_contribution, alpha, creep_ratio, confirm"

app = typer.Typer(
    help="What counts as a change: list the thresholds, set your own, take them back. Without a command: list them.\n\n"
    "\b\n"
    "  min_ratio         smallest change of a series that counts; usual: 3 %, of collectives\n"
    "                    10 %, of whole runs 2 %, 5 % where they are timed on the host\n"
    "  min_contribution  smallest change that counts, as a part of the step; usual: 0.1 %\n"
    "  alpha             share of false findings that is borne; usual: 0.05\n"
    "  creep_ratio       smallest slow creep that counts; usual: 8 %, or min_ratio where\n"
    "                    that is more\n"
    "  confirm           runs of a version that decide, or runs after a suspicion; usual: 2\n\n"
    "\b\nExample:\n"
    "  tracker thresholds\n"
    "  tracker thresholds set min_ratio=10% --kind op --series 'aten::copy_*' --reason 'bistable on this machine'\n"
    "  tracker thresholds set confirm=3 --workload gpt --device H100 --reason 'noisy cluster'\n"
    "  tracker thresholds unset confirm --workload gpt --device H100",
    rich_markup_mode=None,
)

Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept with the limit.")]
Kind = Annotated[
    SeriesKind | None,
    typer.Option(help="For this kind of series, as in tracker history. Default: for all.", show_default=False),
]
Series = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERN",
        help="For the series of these names; * stands for any characters, ? for one. Goes before what is set for all "
        "of a kind. Default: for all.",
        show_default=False,
    ),
]
Workload = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        envvar="TRACKER_WORKLOAD",
        show_envvar=False,
        help="For this workload. Default: TRACKER_WORKLOAD, else the only one there is.",
        show_default=False,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="For runs on this hardware model, or the only one with this in its name. Default: on any.",
        show_default=False,
    ),
]
Config = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        metavar="KEY=VALUE",
        help="For runs in the configuration of just these values, else in the only one that has them beside others; "
        "may be given again; '' for runs that state none. Default: in any.",
        show_default=False,
    ),
]


@app.callback(invoke_without_command=True)
def find(
    context: typer.Context,
    workload: options.Workload = None,
    format: tables.ListFormatOption = tables.ListFormat.TEXT,
    db: options.Database = None,
) -> None:
    """List the thresholds that were set; all others are as usual."""
    if not options.is_list(context):
        return
    from tracker.store import queries

    tables.emit_list(
        lambda store: queries.thresholds.columns(store, workload),
        _COLUMNS,
        format,
        name="thresholds",
        last_line=_next,
        db=db,
    )


def _next(found: Columns) -> str:
    if (found["configuration"] == "").any():
        return f"{counted(len(found), 'threshold')} set; all else as usual. Configuration none stated: --config ''"
    if len(found):
        return f"{counted(len(found), 'threshold')} set; all else as usual: tracker thresholds --help"
    return "no thresholds are set; all is as usual: tracker thresholds --help, tracker calibrate --help"


@app.command("set", short_help="Set limits of your own.")
def set_(
    limits: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE...",
            help=f"The limits: {_NAMES}. A fraction (0.1) or per cent (10%); of confirm a number of runs.",
            show_default=False,
        ),
    ],
    reason: Reason,
    kind: Kind = None,
    series: Series = None,
    workload: Workload = None,
    device: Device = None,
    config: Config = None,
    by: By = None,
    db: options.Database = None,
) -> None:
    """Set limits of your own in place of the usual ones, or of those that were set for the same place and series.

    What they change is judged anew at once: verdicts, history, findings. What users said of findings stays.

    \b
    Example:
      tracker thresholds set min_ratio=10% --kind op --series 'aten::copy_*' --reason 'bistable on this machine'
      tracker thresholds set confirm=3 --workload gpt --device H100 --reason 'noisy cluster'
      tracker thresholds set min_ratio=0.05 min_contribution=0.2% --kind kernel --reason 'calibrated in March'
    """
    import getpass
    import time

    from tracker import config as configuration
    from tracker import judgement
    from tracker.cli import _store
    from tracker.cli._output import emit, tell
    from tracker.store.thresholds import Threshold

    who, now = by or getpass.getuser(), time.time_ns()
    wanted = [
        Threshold(
            name, value, "" if kind is None else kind.value, series or "", who=who, when_ns=now, reason=reason
        )
        for name, value in _pairs(limits)
    ]  # fmt: skip
    with _store.writing(configuration.load(db)) as store:
        where = _where(workload, device, config)
        count = judgement.set_thresholds(store, wanted, where)
        if judgement.overruled(store, wanted, where):
            tell("a threshold that is set for a configuration goes before it; tracker thresholds lists them")
    told = judgement.Thresholds(tuple(wanted)).told()
    emit(f"{told} set; {counted(count, 'version')} judged anew.  Next: tracker findings")


@app.command(short_help="Take back limits, so that the usual ones hold.")
def unset(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help=f"The limits: {_NAMES}.", show_default=False),
    ],
    kind: Kind = None,
    series: Series = None,
    workload: Workload = None,
    device: Device = None,
    config: Config = None,
    db: options.Database = None,
) -> None:
    """Take back limits that were set for just these series and this place; what they changed is judged anew.

    \b
    Example:
      tracker thresholds unset min_ratio --kind op --series 'aten::copy_*'
    """
    from tracker import config as configuration
    from tracker import judgement
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.store.thresholds import Threshold

    wanted = [Threshold(name, 0.0, "" if kind is None else kind.value, series or "") for name in names]
    with _store.writing(configuration.load(db)) as store:
        count = judgement.unset_thresholds(store, wanted, _where(workload, device, config))
    emit(f"{', '.join(names)} as usual; {counted(count, 'version')} judged anew.  Next: tracker thresholds")


def _where(workload: str | None, device: str | None, config: Sequence[str] | None) -> Where:
    from tracker import judgement

    stated = None if config is None else options.pairs([] if config == [""] else config, "--config")
    return judgement.Where(workload, device, stated)


def _pairs(texts: Sequence[str]) -> list[tuple[str, float]]:
    """Names and values; `10%` is 0.1."""
    from tracker.errors import UsageError

    found = []
    for text in texts:
        name, _, value = text.partition("=")
        number = value.strip().removesuffix("%")
        try:
            found.append((name.strip(), float(number) / (100 if value.strip().endswith("%") else 1)))
        except ValueError:
            raise UsageError(f"{text!r} is no threshold", remedy="write NAME=VALUE, as in min_ratio=5%") from None
    return found


def _value(row: Mapping[str, Any]) -> str:
    value = float(row["threshold"])
    return f"{value:g}" if row["name"] in ("alpha", "confirm") else f"{value * 100:g} %"


def _device(row: Mapping[str, Any]) -> str:
    return "all" if row["device"] is None else f"{row['vendor']} {row['device']}".strip()


def _configuration(row: Mapping[str, Any]) -> str:
    return "all" if row["configuration"] is None else str(row["configuration"]) or "none stated"


def _all_of(key: str) -> Any:
    return lambda row: "all" if row[key] in (None, "") else str(row[key])


_COLUMNS = (
    tables.Column("threshold", tables.text_of("name")),
    tables.Column("value", _value, right=True),
    tables.Column("kind", _all_of("kind")),
    tables.Column("series", _all_of("pattern")),
    tables.Column("workload", tables.text_of("workload")),
    tables.Column("device", _device),
    tables.Column("configuration", _configuration),
    tables.Column("by", tables.text_of("who")),
    tables.Column("when (UTC)", tables.moment_of("when_ns")),
    tables.Column("reason", tables.text_of("reason")),
)
