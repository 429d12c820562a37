"""The command line of a function: its parameters, and the fields of its option structs, as options of typer.

A command is a function with parameters that are declared by `Annotated[type, Option(...)]`, option structs (each field
with an `Option` is an option), or `Given[struct]` where the command adds fields of its own.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    Optional,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import typer
from msgspec import NODEFAULT, Struct, field, structs

from tracker.errors import SourceError, UsageError
from tracker.results.options import DEVICE, LABELS, MAPPING, OUTPUT, WORKLOAD, Option, Spelled, declared, split

Kind = TypeVar("Kind")
FORMATS: Final = ("text", "json", "markdown", "html", "csv", "xlsx", "junit", "github", "prometheus", "speedscope")

Database = Annotated[
    str | None,
    Option(
        "The database: a SQLite file, or postgresql://USER@HOST/NAME. Default: TRACKER_DB, else the settings file, "
        "else a file in your data folder (tracker db info).",
        "URL|PATH",
    ),
]
Color = Annotated[
    Literal["auto", "always", "never"],
    Option("Colours: auto is on a terminal only, and never where NO_COLOR is set.", group=OUTPUT),
]
Top = Annotated[
    int | None,
    Option("Rows per table (of findings in text and Markdown alone), largest first; 0 for all. Default: 10 in text and "
           "Markdown, else all.", "N", group=OUTPUT, least=0),
]  # fmt: skip
FailOn = Annotated[
    Literal["new", "any"] | None,
    Option(
        "Exit code 1: the step REGRESSED, peak memory rose by 10 %, or the operators found make the step 1 % slower "
        "(new: by this version; any: or an earlier one); 3: cannot be judged; 4: a suspect, or too few runs; 0: "
        "nothing of this. Default: 0, whatever is found.",
        group=OUTPUT,
    ),
]
Version = Annotated[
    str | None,
    Option(
        "Only this version, by label or commit. Default: TRACKER_VERSION, else any.",
        "LABEL",
        variable="TRACKER_VERSION",
    ),
]
Workload = Annotated[str | None, WORKLOAD._replace(group="")]
Device = Annotated[str | None, DEVICE._replace(group="")]
ListFormat = Annotated[
    Literal["text", "json", "csv"], Option("text for people, json for scripts, csv for a spreadsheet.")
]
JsonFormat = Annotated[Literal["text", "json"], Option("text for people, json for scripts (schema 1: docs/json.md).")]
Runs = Annotated[list[str], Option("Run numbers: 41 or run:41. tracker runs lists them.", "RUN...", positional=True)]
By = Annotated[str | None, Option("Your name. Default: the name of your account.", "NAME")]
Reason = Annotated[str, Option("Why; stored and shown.", "TEXT")]


class Page(Struct, frozen=True, kw_only=True):
    """How a report is written, and where."""

    format: Annotated[
        str | None,
        Option(
            "text, json (schema 1: docs/json.md), markdown, html, csv, xlsx (needs -o); of diff and findings also "
            "junit, github, prometheus; of diff and show also speedscope, the tree of --by. Default: text.",
            group=OUTPUT,
            words=FORMATS,
            metavar="FORMAT",
        ),
    ] = None
    output: Annotated[
        str | None,
        Option(
            "Also write the report there; the file's ending chooses the format. Default: no file.",
            "FILE|FOLDER",
            short="-o",
            group=OUTPUT,
        ),
    ] = None
    details: Annotated[bool, Option("All sections, in text and Markdown. Default: a first screen.", group=OUTPUT)] = (
        False
    )
    color: Color = "auto"


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
            "Ranks until the run is complete; more may come later. Default: those given now.",
            "N",
            group=LABELS,
            least=1,
        ),
    ] = None


class Given(Generic[Kind]):
    """The fields of a struct that a command line names. Call it to make the struct, with further fields."""

    def __init__(self, kind: Callable[..., Kind], values: Mapping[str, Any]) -> None:
        self._kind = kind
        self._values = values

    def __call__(self, **fields: Any) -> Kind:
        """The struct; `fields` replace what the command line says."""
        return self._kind(**{**self._values, **fields})

    def __getitem__(self, name: str) -> Any:
        """What the command line says of a field, None where it says nothing."""
        return self._values.get(name)


class Parameter(NamedTuple):
    """An option or argument of a command: `owner` is the parameter of the function that takes it, `field` that of the
    struct, "" without one; `kind` its type without `| None`, `default` Parameter.empty where it must be given.
    """

    owner: str
    field: str
    option: Option
    kind: Any
    default: Any

    @property
    def spelled(self) -> str:
        """How it is written on the command line, also in errors."""
        if self.option.positional:
            return self.option.metavar
        return self.option.name or f"--{(self.field or self.owner).replace('_', '-')}"

    @property
    def words(self) -> Sequence[str]:
        """The values to choose from."""
        return self.option.words or (get_args(self.kind) if get_origin(self.kind) is Literal else ())

    @property
    def repeats(self) -> bool:
        """Whether it may be given more than once."""
        return get_origin(self.kind) in (list, tuple, MAPPING)

    def value(self, given: Any, path: str) -> Any:
        """The value of what the command line gives; UsageError for what is none. `path`: the command."""
        return Spelled(self.spelled, self.option, self.kind, f"{path} --help").value(given)

    def typer_parameter(self) -> inspect.Parameter:
        """The parameter that typer reads: always a text, texts or a flag."""
        option, words = self.option, self.words
        empty = self.default is inspect.Parameter.empty
        kind: Any = bool if self.kind is bool else list[str] if self.repeats else str
        help = option.help
        if not (empty or option.positional or "efault: " in help or self.kind is bool) and self.default:
            help += f" Default: {self.default}."
        default: Any = False if self.kind is bool else ... if empty else None
        more: dict[str, Any] = {
            "help": help,
            "metavar": option.metavar or ("|".join(words) if words else None),
            "show_default": False,
            "rich_help_panel": option.group or None,
            "autocompletion": _completion(words) if words else None,
        }
        info = (
            typer.Argument(default, **more)
            if option.positional
            else typer.Option(default, self.spelled, *filter(None, [option.short]), **more)
        )
        annotation = kind if empty or kind is bool else Optional[kind]  # noqa: UP045 typer takes this form in all versions
        return inspect.Parameter(self.key, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=annotation)

    @property
    def key(self) -> str:
        """Its name among the parameters of the command."""
        return f"{self.owner}_{self.field}" if self.field else self.owner


def parameters_of(function: Callable[..., None]) -> list[Parameter]:
    """Return all options and arguments of a command, in their order."""
    found: list[Parameter] = []
    hints = get_type_hints(function, include_extras=True)
    for owner, parameter in inspect.signature(function).parameters.items():
        struct = _struct_of(hints[owner])
        if struct is not None:
            types = declared(struct)
            for each in structs.fields(struct):
                kind, _, option = types[each.name]
                if option is not None:
                    default = each.default if each.default is not NODEFAULT else None
                    found.append(Parameter(owner, each.name, option, kind, default))
        elif hints[owner] is not typer.Context:
            kind, _, option = split(hints[owner])
            assert option is not None, f"{function.__name__}: {owner} is not declared"
            found.append(Parameter(owner, "", option, kind, parameter.default))
    return found


def command(function: Callable[..., None], path: str) -> Callable[..., None]:
    """Return `function` as typer takes it: each option as text, of which the values and structs are made here.

    `path`: the words of the command, as in `tracker runs tag`.
    """
    parameters = parameters_of(function)
    signature, hints = inspect.signature(function), get_type_hints(function, include_extras=True)

    def call(**given: Any) -> None:
        from tracker.cli.database import remember

        remember(given.get("db"))
        passed: dict[str, Any] = {}
        fields: dict[str, dict[str, Any]] = {}
        for parameter in parameters:
            value = given[parameter.key]
            if not value and value != "" and parameter.option.variable:
                value = default_of(parameter.option.variable, given.get("db"))
            if value or value == "":
                made = parameter.value(value, path)
                target = fields.setdefault(parameter.owner, {}) if parameter.field else passed
                target[parameter.field or parameter.owner] = made
        for owner in signature.parameters:
            struct = _struct_of(hints[owner])
            if struct is not None:
                chosen = Given(struct, fields.get(owner, {}))
                passed[owner] = chosen if get_origin(hints[owner]) is Given else chosen()
            elif owner == "context":
                passed[owner] = given[owner]
        function(**passed)

    own = [parameter.typer_parameter() for parameter in parameters]
    if "context" in signature.parameters:
        own.insert(0, inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))
    call.__doc__, call.__name__ = function.__doc__, function.__name__
    call.help_of = {parameter.key: parameter.option.help for parameter in parameters}  # type: ignore[attr-defined]
    call.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in own}
    return call


def default_of(variable: str, db: str | None = None) -> str | None:
    """The value of TRACKER_WORKLOAD or TRACKER_VERSION; a workload may stand in the settings file."""
    if found := os.environ.get(variable):
        return found
    if variable != "TRACKER_WORKLOAD":
        return None
    from tracker import config

    return config.load(db).workload


def _struct_of(hint: Any) -> Any:
    """The option struct of a parameter, None where it is an option itself."""
    kind = get_args(hint)[0] if get_origin(hint) is Given else hint
    return kind if isinstance(kind, type) and issubclass(kind, Struct) else None


def _completion(words: Sequence[str]) -> Callable[[str], list[str]]:
    """What a shell offers for an option with words to choose from, of which commas may separate several."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{word}" for word in words if word.startswith(last)]

    return complete


def check_path(path: Path) -> None:
    """Raise SourceError for a name that the system cannot look up, such as one that is too long."""
    try:
        path.exists()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceError(path, "", f"cannot be read ({reason})", remedy="check the path") from error


def is_list(context: typer.Context) -> bool:
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
