"""`tracker init`: a settings file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from tracker.errors import SourceError, UsageError
from tracker.results.options import Option

_TEMPLATE: Final = """\
# Settings of tracker; all are optional. docs/operate.md lists every entry.
# Options and the variables TRACKER_DB, TRACKER_WORKLOAD, TRACKER_VERSION override them.

# A SQLite file, or postgresql://USER@HOST/NAME. tracker db info shows which database is used.
{database}

# The workload of every command and ingest that names none.
{workload}

# The version of profiles that state none; "git" is git describe --always --dirty in the current folder.
{version}

# tracker watch ingests the profiles that appear in these folders, and judges them.
# layout: the meaning of the folders below path.
{folder}

# Where alerts go: url_env names the variable that holds the address (apprise: mail, Slack, Teams, ...).
{channel}

# Delete the details of old runs each night; history stays.
# [prune]
# older_than = "90d"
# keep_versions = 5
"""


def init(
    file: Annotated[
        Path | None,
        Option(
            "The file to write. Default: TRACKER_CONFIG, else tracker.toml in your configuration folder, where tracker "
            "looks for it.",
            "FILE",
            positional=True,
        ),
    ] = None,
    yes: Annotated[bool, Option("Ask nothing: all entries as comments. Default: ask.", short="-y")] = False,
) -> None:
    """Write a settings file: the database, the workload, versions, a folder to watch, an alert channel.

    There are at most five questions, each with a default. An existing file is never changed.

    \b
    Example:
      tracker init
      tracker init --yes
      tracker init ./tracker.toml
    """
    from tracker import config
    from tracker.api.files import check_file, write_file
    from tracker.cli.options import check_path
    from tracker.cli.output import emit
    from tracker.config.entries import parse

    place = config.settings_file()
    path = place if file is None else file
    check_path(path)
    if path.exists() or path.is_symlink():
        raise SourceError(path, "", "exists already", remedy="edit it, or give another file: tracker init FILE")
    if not yes and (sys.stdin is None or not sys.stdin.isatty()):
        raise UsageError("tracker init asks questions, and stdin is not a terminal", remedy="add --yes")
    text = _TEMPLATE.format(**_answers(config.load(None).database, ask=not yes))
    parse(text, path)
    if path == place:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SourceError(path, "", f"cannot be written ({error.strerror})", remedy="give another file") from error
    check_file(path)
    write_file(path, text)
    used = "" if path == place else f" It is used with TRACKER_CONFIG={path}."
    emit(f"{path} written.{used}  Next: tracker ingest PATH --version VERSION --workload WORKLOAD")


def _answers(database: str, *, ask: bool) -> dict[str, str]:
    """The entries of the file, as comments where there is no answer."""
    from tracker.cli.database import only_workload
    from tracker.config.places import is_variable

    def answer(question: str, default: str = "") -> str:
        return str(typer.prompt(question, default=default, err=True)).strip() if ask else ""

    named = answer("Database: a SQLite file, or postgresql://USER@HOST/NAME", database)
    known = only_workload(named or database) if ask else None
    workload = known or answer("Workload, such as resnet50 (empty: name it in each command)")
    version = answer("Version of profiles that state none: git, or a label (empty: name it in each ingest)",
                     "git" if Path(".git").exists() else "")  # fmt: skip
    folder = answer("Folder to watch for profiles (empty: none)")
    channel = answer("Variable with the address for alerts, such as TRACKER_SLACK_URL (empty: no alerts)")
    if channel and not is_variable(channel):
        raise UsageError("the alert channel is not the name of a variable",
                         remedy="set a variable to the address, which is a secret, and give its name")  # fmt: skip
    return {
        "database": _entry("database", named, database),
        "workload": _entry("workload", workload, "resnet50"),
        "version": _entry("version", version, "git"),
        "folder": _table("watch.folders", bool(folder), path=folder or "/profiles", layout="{workload}/{version}/*"),
        "channel": _table("alerts.channels", bool(channel), name="team", url_env=channel or "TRACKER_SLACK_URL")
        + "\n"
        + _table("alerts.rules", bool(channel), channels=["team"]),
    }


def _entry(name: str, value: object, example: str = "") -> str:
    """A line of the file; an example as a comment where there is no value."""
    return f"{'' if value else '# '}{name} = {json.dumps(value or example, ensure_ascii=False)}"


def _table(title: str, is_set: bool, **entries: object) -> str:
    lines = [f"[[{title}]]", *(_entry(name, value) for name, value in entries.items())]
    return "\n".join(line if is_set else f"# {line}" for line in lines)
