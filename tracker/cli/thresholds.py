"""`tracker thresholds`: the limits of the judgement, listed, set, tried out, taken back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracker.cli import _options as options
from tracker.cli import _tables as tables
from tracker.cli.actions import By
from tracker.cli.history import SeriesKind
from tracker.units import counted, format_diff

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.regressions.thresholds import Where
    from tracker.store.thresholds import Threshold

_NAMES = (
    "min_ratio, min_contribution, alpha, gradual_ratio, confirm, least_base, window, look_back, gate_net, gate_peak"
)

app = typer.Typer(
    help="Show and change detection thresholds. Without a command: list those that were set.\n\n"
    "\b\n"
    "  min_ratio         smallest change of a series; default: 3 %, of collectives 10 %,\n"
    "                    of the step and its parts 2 %, 5 % where they are timed on the host\n"
    "  min_contribution  smallest change as a share of the step; default: 0.1 %, of idle\n"
    "                    time, phases and other parts of the step 1 %, 2 % where they are\n"
    "                    timed on the host\n"
    "  alpha             false discovery rate; default: 0.05\n"
    "  gradual_ratio     smallest gradual slowdown; default: 8 %\n"
    "  confirm           runs that confirm a suspect, or that decide as one version;\n"
    "                    default: 2\n"
    "  least_base        runs of a level without which nothing is tested; default: 3\n"
    "  window            newest runs of a level that a version is compared with;\n"
    "                    default: 8\n"
    "  look_back         runs before a version among which its level is looked for;\n"
    "                    default: 32\n"
    "  gate_net          net slowdown of the operators, of the step, that fails a gate;\n"
    "                    default: 1 %\n"
    "  gate_peak         rise of peak memory that fails a gate; default: 10 %\n\n"
    "min_ratio and min_contribution can be set for a kind of series or for names; the others hold for a whole "
    "track.\n\n"
    "\b\nExample:\n"
    "  tracker thresholds\n"
    "  tracker thresholds try min_ratio=10% --kind op --series 'aten::copy_*'\n"
    "  tracker thresholds set min_ratio=10% --kind op --series 'aten::copy_*' --reason 'bimodal on this machine'\n"
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
    """List the thresholds that were set; all others have their defaults."""
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
        return f"{counted(len(found), 'threshold')} set; of the configuration none stated: --config ''"
    if len(found):
        return f"{counted(len(found), 'threshold')} set; all others have their defaults: tracker thresholds --help"
    return "no thresholds are set, all have their defaults: tracker thresholds --help, tracker calibrate --help"


@app.command("set", short_help="Set thresholds, and judge again.")
def set_(
    limits: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE...",
            help=f"The limits: {_NAMES}. A fraction (0.1) or per cent (10%); of confirm, least_base, window and "
            "look_back a number of runs.",
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
    """Set thresholds in place of the defaults, or of those that were set for the same place and series.

    All versions that they can change are judged again at once. Marks that users gave to findings stay.

    \b
    Example:
      tracker thresholds set min_ratio=10% --kind op --series 'aten::copy_*' --reason 'bimodal on this machine'
      tracker thresholds set confirm=3 --workload gpt --device H100 --reason 'noisy cluster'
      tracker thresholds set min_ratio=0.05 min_contribution=0.2% --kind kernel --reason 'calibrated in March'
    """
    import getpass
    import time

    from msgspec.structs import replace

    from tracker import config as configuration
    from tracker.cli import _store
    from tracker.cli._output import emit, tell
    from tracker.regressions.limits import words_of_limits
    from tracker.regressions.thresholds import overruled, set_thresholds

    who, now = by or getpass.getuser(), time.time_ns()
    wanted = [replace(limit, who=who, when_ns=now, reason=reason) for limit in _limits(_pairs(limits), kind, series)]
    with _store.writing(configuration.load(db)) as store:
        where = _where(workload, device, config)
        count = set_thresholds(store, wanted, where)
        if overruled(store, wanted, where):
            tell("a threshold that is set for a configuration goes before it; tracker thresholds lists them")
    emit(f"{words_of_limits(wanted)} set; {counted(count, 'version')} judged again.  Next: tracker findings")


@app.command("try", short_help="Show which findings would come and go, without setting anything.")
def try_(
    limits: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE...", help=f"The limits, as in tracker thresholds set: {_NAMES}.", show_default=False
        ),
    ],
    kind: Kind = None,
    series: Series = None,
    workload: Workload = None,
    device: Device = None,
    config: Config = None,
    format: tables.ListFormatOption = tables.ListFormat.TEXT,
    db: options.Database = None,
) -> None:
    """Show which findings would come and go with other thresholds. Nothing is written.

    Judges all stored runs again in memory, which takes as long as tracker thresholds set.

    \b
    Example:
      tracker thresholds try min_ratio=10% --kind op --series 'aten::copy_*'
      tracker thresholds try alpha=0.01 confirm=3 --workload gpt
    """
    from tracker import config as configuration
    from tracker.cli import _store
    from tracker.cli._output import emit, tell
    from tracker.regressions.limits import words_of_limits
    from tracker.regressions.thresholds import try_thresholds

    wanted = _limits(_pairs(limits), kind, series)
    with _store.reading(configuration.load(db)) as store:
        found = try_thresholds(store, wanted, _where(workload, device, config))
    for note in found.notes:
        tell(note)
    movements = found.moved["movement"].tolist()
    last = (
        f"with {words_of_limits(wanted)}: {counted(movements.count('comes'), 'finding')} would come, "
        f"{movements.count('goes')} would go, {found.stay} would stay; nothing is set.  Next: tracker thresholds set"
    )
    text = tables.render(found.moved, _TRIED, format, name="findings", last_line=last)
    emit(text, as_it_is=format is not tables.ListFormat.TEXT)


@app.command(short_help="Take back thresholds, and judge again.")
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
    """Take back thresholds that were set for just these series and this place; what they changed is judged again.

    \b
    Example:
      tracker thresholds unset min_ratio --kind op --series 'aten::copy_*'
    """
    from tracker import config as configuration
    from tracker.cli import _store
    from tracker.cli._output import emit
    from tracker.regressions.thresholds import unset_thresholds

    wanted = _limits([(name, 0.0) for name in names], kind, series)
    with _store.writing(configuration.load(db)) as store:
        count = unset_thresholds(store, wanted, _where(workload, device, config))
    emit(
        f"{', '.join(names)}: the default holds again; {counted(count, 'version')} judged again.  "
        "Next: tracker thresholds"
    )


def _where(workload: str | None, device: str | None, config: Sequence[str] | None) -> Where:
    from tracker.regressions.thresholds import Where

    stated = None if config is None else options.pairs([] if config == [""] else config, "--config")
    return Where(workload, device, stated)


def _limits(pairs: Sequence[tuple[str, float]], kind: SeriesKind | None, series: str | None) -> list[Threshold]:
    from tracker.store.thresholds import Threshold

    return [Threshold(name, value, "" if kind is None else kind.value, series or "") for name, value in pairs]


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
    is_number = row["name"] in ("alpha", "confirm", "least_base", "window", "look_back")
    return f"{value:g}" if is_number else f"{value * 100:g} %"


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


def _series(row: Mapping[str, Any]) -> str:
    return " ".join(filter(None, (row["kind"], row["name"], row["input_shapes"], row["part"])))


_TRIED = (
    tables.Column("", tables.text_of("movement")),
    tables.Column("since", tables.text_of("version")),
    tables.Column("finding", lambda row: row["direction"] + (" (gradual)" if row["how"] == "gradual" else "")),
    tables.Column("series", _series),
    tables.Column("change", lambda row: format_diff(row["ratio"]), right=True),
    tables.Column("of the step", lambda row: f"{row['contribution'] * 100:+.2f} %", right=True),
    tables.Column("state", tables.text_of("state")),
)
