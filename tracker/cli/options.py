"""The command line of a function: its parameters, and the fields of its option structs, as options of typer.

A command is a function with parameters that are declared by `Annotated[type, Option(...)]`, and option structs, of
which each field with an `Option` is an option, unless the function has a parameter that is spelled like it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Optional, get_type_hints

import typer
from msgspec import NODEFAULT, Struct, field
from msgspec.structs import fields

from tracker.cli.completing import names_of
from tracker.errors import StoreError, UsageError
from tracker.results.options import (
    BRANCH,
    DEVICE,
    LABELS,
    NO_OPTION,
    OUTPUT,
    WORKLOAD,
    Declared,
    Option,
    declared,
    split,
)

if TYPE_CHECKING:
    from tracker.columns import Columns

Database = Annotated[
    str | None,
    Option(
        "The database: a SQLite file, or postgresql://USER@HOST/NAME. Default: TRACKER_DB, else the settings file, "
        "else a file in your data folder (tracker db info).",
        "URL|PATH",
    ),
]
Top = Annotated[
    int | None,
    Option("Rows per table (of findings in text and Markdown alone), largest first; 0 for all. Default: 10 in text and "
           "Markdown, else all.", "N", group=OUTPUT, least=0),
]  # fmt: skip
FailOn = Annotated[
    Literal["new", "any", "coverage", "budget"] | None,
    Option(
        "Exit code 1: the step REGRESSED, peak memory rose by 10 %, or operators make it 1 % slower (new: by this "
        "version; any: or an earlier one), or a budget fails; 3: never judged; 4: too few runs, or series.",
        group=OUTPUT,
    ),
]
Version = Annotated[
    str | None,
    Option(
        "Only this version, by label or commit. Default: TRACKER_VERSION, else any.",
        "LABEL",
        variable="TRACKER_VERSION",
        offers="version",
    ),
]
Workload = Annotated[str | None, WORKLOAD._replace(group="")]
Branch = Annotated[
    str | None, Option("Only this branch; main for the main line. Default: the main line and all branches.", "NAME")
]
Device = Annotated[str | None, DEVICE._replace(group="")]
ListFormat = Annotated[
    Literal["text", "json", "csv"], Option("text for people, json for scripts, csv for a spreadsheet.")
]
JsonFormat = Annotated[Literal["text", "json"], Option("text for people, json for scripts (schema 1: docs/json.md).")]
By = Annotated[str | None, Option("Your name. Default: the name of your account.", "NAME")]
Reason = Annotated[str, Option("Why; stored and shown.", "TEXT")]


def _named_branch(text: str, option: str) -> str:
    """Return the name of a branch; UsageError for an empty one, as of a variable of a shell that is not set."""
    if not text.strip():
        raise UsageError("the branch is empty", remedy=f"name one, or leave out {option} for the main line")
    return text.strip()


class Labels(Struct, frozen=True, kw_only=True):
    """What is known of a profile: `ingest`, `run` and `pack` take the same options."""

    version: Annotated[
        str | None,
        Option(
            "What was profiled: a release, a commit, a date. Runs of one version are repeats. Default: the profile's "
            "tracker.json, else TRACKER_VERSION, else the settings file, else the profile's name, such as "
            "20230808_69edec3bb7.",
            "LABEL",
            group=LABELS,
        ),
    ] = None
    workload: Annotated[
        str | None,
        Option(
            "The training job, such as resnet50. Only runs of one workload form a history. Default: the profile's "
            "tracker.json, else TRACKER_WORKLOAD, else the settings file, else the model that a training log states, "
            "else the only one in the database.",
            "NAME",
            group=LABELS,
        ),
    ] = None
    branch: Annotated[
        str | None,
        Option(
            "The branch that was trained, as of a pull request: judged against the main line, and never a part of it. "
            "Default: the profile's tracker.json, else TRACKER_BRANCH, else the main line.",
            "NAME",
            group=LABELS,
            read=_named_branch,
        ),
    ] = None
    commit: Annotated[str | None, Option("The version's commit. Default: from tracker.json.", "HASH", group=LABELS)] = (
        None
    )
    note: Annotated[str | None, Option("A remark on the run. Default: none.", "TEXT", group=LABELS)] = None
    configuration: Annotated[
        Mapping[str, str],
        Option(
            "What must be equal for runs to be compared, such as batch=32; repeatable. Default: tracker.json, then "
            "what the profile states, then file and folder names such as bs32_fp16_N1C8.",
            "KEY=VALUE",
            name="--config",
            group=LABELS,
        ),
    ] = field(default_factory=dict)
    tags: Annotated[
        Mapping[str, str], Option("A mark to find the run by, such as image=2024-06; repeatable. Default: none.",
                                  "KEY=VALUE", name="--tag", group=LABELS)
    ] = field(default_factory=dict)  # fmt: skip
    device: Annotated[
        str | None,
        Option(
            "The hardware model, such as 'NVIDIA H100'. Default: from the profile; cpu without a device.",
            "MODEL",
            group=LABELS,
        ),
    ] = None
    expect_ranks: Annotated[
        int | None,
        Option(
            "Ranks that the run should have before it is judged; some may come later. Default: as many as its job "
            "queued, or as the last whole run before it has.",
            "N",
            group=LABELS,
            least=1,
        ),
    ] = None


def _typer_parameter(key: str, how: Declared, default: Any) -> inspect.Parameter:
    """The parameter `key` that typer reads: always a text, texts or a flag. `default`: Parameter.empty where it must be
    given.
    """
    option, words, is_flag, empty = how.option, how.words, how.kind is bool, default is inspect.Parameter.empty
    kind: Any = bool if is_flag else list[str] if how.repeats else str
    has_default = default and not (empty or option.positional or "efault: " in option.help or is_flag)
    more: dict[str, Any] = {
        "help": f"{option.help} Default: {default}." if has_default else option.help,
        "metavar": option.metavar or ("|".join(words) if words else None),
        "show_default": False,
        "rich_help_panel": option.group or None,
        "autocompletion": _completion(words) if words else names_of(option.offers) if option.offers else None,
    }
    given: Any = False if is_flag else ... if empty else None
    names = filter(None, [how.name, option.short])
    info = typer.Argument(given, **more) if option.positional else typer.Option(given, *names, **more)
    annotation = kind if empty or is_flag else Optional[kind]  # noqa: UP045 typer takes this form in all versions
    return inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=annotation)


def command(function: Callable[..., None], path: str, *, lists: bool = False) -> Callable[..., None]:
    """Return `function` as typer takes it: each option as text, of which the values and structs are made here.

    `path`: the words of the command, as in `tracker runs tag`. `lists`: it is a group, and this its list.
    """
    signature, hints = inspect.signature(function), get_type_hints(function, include_extras=True)
    own = {name: split(name, hint) for name, hint in hints.items()}
    spelled = {how.name for how in own.values() if how.option is not NO_OPTION}
    kinds = {name: how.kind for name, how in own.items() if isinstance(how.kind, type) and issubclass(how.kind, Struct)}
    parameters: dict[str, tuple[str, Declared, Any]] = {}  # parameter of typer -> that with the struct or "", option
    for name, parameter in signature.parameters.items():
        if name in kinds:
            defaults = {each.name: None if each.default is NODEFAULT else each.default for each in fields(kinds[name])}
            parameters |= {
                f"{name}_{field}": (name, how, defaults[field])
                for field, how in declared(kinds[name]).items()
                if how.option is not NO_OPTION and how.name not in spelled
            }
        else:
            assert own[name].option is not NO_OPTION, f"{function.__name__}: {name} is not declared"
            parameters[name] = ("", own[name], parameter.default)

    takes_branch = "branch" not in parameters and not path.startswith(_OF_MAIN_LINES)
    workloads = [
        key for key, (_, how, _) in parameters.items() if takes_branch and how.option.variable == WORKLOAD.variable
    ]

    waits = split("wait", Annotated[int | None, WAIT])

    def call(**given: Any) -> None:
        from tracker import config
        from tracker.cli.database import be_patient
        from tracker.cli.proposed import remember

        remember(given.get("db"))
        if lists and not _is_list(given["context"]):
            return
        values: dict[str, dict[str, Any]] = {name: {} for name in ("", *kinds)}
        for key, (owner, how, _) in parameters.items():
            value, variable = given[key], how.option.variable
            if not value and value != "" and variable:
                value = os.environ.get(variable) or None
                if value is None and variable == "TRACKER_WORKLOAD":
                    value = config.load(given.get("db")).workload
            if key in workloads:
                value = _with_branch(value, given.get("branch"), given.get("db"))
            if value or value == "":
                values[owner][how.field] = how.value(value, f"{path} --help")
        waited = given.get("wait")
        be_patient(None if waited is None else waits.value(waited, f"{path} --help"))
        function(**values[""], **{name: kind(**values[name]) for name, kind in kinds.items()})

    made = [_typer_parameter(key, how, default) for key, (_, how, default) in parameters.items()]
    if workloads:
        of_branch = BRANCH._replace(group=parameters[workloads[0]][1].option.group)
        made.append(_typer_parameter("branch", split("branch", Annotated[str | None, of_branch]), None))
    if path.removeprefix("tracker ") in _WRITES:
        made.append(_typer_parameter("wait", waits, None))
    if lists:
        made.insert(0, inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))
    call.__doc__, call.__name__ = function.__doc__, function.__name__
    call.help_of = {key: how.option.help for key, (_, how, _) in parameters.items()}  # type: ignore[attr-defined]
    call.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in made}
    return call


WAIT: Final = Option(
    "How long to wait for other programs that write the same database: for a turn, and as long again for its lock. "
    "After 2 seconds a line says who has it. Default: 600.",
    "SECONDS",
    least=0,
    most=86_400,
)
_WRITES: Final = (
    "ab", "ack", "calibrate", "db check", "db copy", "db upgrade", "expect", "experiments delete", "ingest", "invalid",
    "mute", "note", "notify", "page", "prune", "run", "runs delete", "runs edit", "runs exclude", "runs restore",
    "runs tag", "runs untag", "thresholds set", "thresholds unset", "undo", "unmute", "versions forget-branch",
    "versions judge", "versions order", "versions pin", "versions unpin", "watch",
)  # fmt: skip
"""Commands that write into a database, and so wait for others that do."""

_OF_MAIN_LINES: Final = (
    "tracker thresholds", "tracker prune", "tracker versions pin", "tracker versions unpin", "tracker versions order",
    "tracker versions judge",
)  # fmt: skip
"""Commands that no branch is named to: it has no limits, baseline or order of its own, and no age but its own."""


def _with_branch(workload: str | None, branch: str | None, db: str | None) -> str | None:
    """Return the workload of a branch of `workload`, or of the only workload that has it; the main line for its name.

    A branch that TRACKER_BRANCH names, and that has no runs, is passed over.
    """
    if branch is not None and not branch.strip():
        raise UsageError("the branch is empty", remedy="name one, or leave out --branch")
    asked = branch or os.environ.get(BRANCH.variable)
    if not asked:
        return workload
    from tracker import config
    from tracker.api.arguments import opened
    from tracker.hooks.branch import main_names
    from tracker.profile.branches import branch_of, main_of
    from tracker.store.queries.resolve import workload_of_branch

    settings = config.load(db)
    main = None if workload is None else main_of(workload)
    if branch and workload and branch_of(workload) not in ("", asked):
        raise UsageError(f"{workload!r} names another branch than {branch!r}", remedy="leave out --branch")
    if asked in main_names(settings.main_branch or ""):
        return main
    try:
        with opened(settings, read_only=True) as store:
            return workload_of_branch(store, asked, main)
    except (StoreError, UsageError):
        if branch:
            raise
        return workload


def rows_of_branch(found: Columns, branch: str | None, db: str | None) -> Columns:
    """The rows of a table with a column `branch` that are of this one, None: all; UsageError where there are none."""
    if branch is None:
        return found
    from tracker import config
    from tracker.hooks.branch import main_names
    from tracker.schema import column_names

    is_main = branch in main_names(config.load(db).main_branch or "")
    own = found[column_names.BRANCH] == ("" if is_main else branch)
    if not own.any():
        known = ", ".join(dict.fromkeys(filter(None, found.listed(column_names.BRANCH))))
        raise UsageError(f"no run is of branch {branch!r}", remedy=f"there are {known}" if known else "leave it out")
    return found.taken(own)


def _completion(words: Sequence[str]) -> Callable[[str], list[str]]:
    """What a shell offers for an option with words to choose from, of which commas may separate several."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{word}" for word in words if word.startswith(last)]

    return complete


def _is_list(context: typer.Context) -> bool:
    """Whether a group such as `tracker runs` is called by itself, for its list, and not for one of its commands.

    UsageError for options in front of a command, which it would not see.
    """
    below = context.invoked_subcommand
    if below is None:
        return True
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError(
                f"{parameter.opts[0]} has no effect before {below}",
                remedy=f"write it behind: tracker {context.info_name} {below} ... {parameter.opts[0]} ...",
            )
    return False
