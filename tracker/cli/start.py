"""`tracker init`, `demo` and `doctor`: settings, bundled profiles, and what files hold before an ingest."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, Final, NamedTuple

import typer
from msgspec.structs import asdict, replace

from tracker import api, compare, config, intake, reports
from tracker.api.arguments import opened
from tracker.api.files import check_file, write_file
from tracker.cli import database
from tracker.cli.options import Database, JsonFormat
from tracker.cli.output import emit, next_lines, note, progress, screen
from tracker.cli.report_options import Color
from tracker.errors import SourceError, UsageError
from tracker.limits.files import same_file
from tracker.reports.json import without_commands
from tracker.results.options import OUTPUT, Option, Reading, check_path
from tracker.units import counted

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
    from tracker.config.entries import parse

    place = config.settings_file()
    path = place if file is None else file
    check_path(path)
    if path.exists() or path.is_symlink():
        raise SourceError(path, "", "exists already", remedy="edit it, or give another file: tracker init FILE")
    if not yes and (sys.stdin is None or not sys.stdin.isatty()):
        raise UsageError("tracker init asks questions, and stdin is not a terminal", remedy="add --yes")
    text = _TEMPLATE.format(**_answers(_usual_database(), ask=not yes))
    parse(text, path)
    if path == place:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SourceError(path, "", f"cannot be written ({error.strerror})", remedy="give another file") from error
    check_file(path)
    write_file(path, text)
    used = "" if path == place else f" It is used with TRACKER_CONFIG={path}."
    emit(f"{path} written.{used}{next_lines('tracker ingest PATH --version VERSION --workload WORKLOAD')}")


def _usual_database() -> str:
    """Return the database that the settings name; the default one under settings that are missing or wrong, which a
    new file is to replace.
    """
    try:
        return config.load().database
    except SourceError:
        return config.load(reads_file=False).database


def _answers(default: str, *, ask: bool) -> dict[str, str]:
    """The entries of the file, as comments where there is no answer."""
    from tracker.config.places import is_variable

    def answer(question: str, default: str = "") -> str:
        return str(typer.prompt(question, default=default, err=True)).strip() if ask else ""

    named = answer("Database: a SQLite file, or postgresql://USER@HOST/NAME", default)
    known = database.only_workload(named or default) if ask else None
    workload = known or answer("Workload, such as resnet50 (empty: name it in each command)")
    version = answer("Version of profiles that state none: git, or a label (empty: name it in each ingest)",
                     "git" if Path(".git").exists() else "")  # fmt: skip
    folder = answer("Folder to watch for profiles (empty: none)")
    channel = answer("Variable with the address for alerts, such as TRACKER_SLACK_URL (empty: no alerts)")
    if channel and not is_variable(channel):
        raise UsageError("the alert channel is not the name of a variable",
                         remedy="set a variable to the address, which is a secret, and give its name")  # fmt: skip
    return {
        "database": _entry("database", named, default),
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


class Samples(NamedTuple):
    """The bundled profiles: the folder and note of each version, in order."""

    folder: Path
    workload: str
    versions: tuple[tuple[str, str], ...]


def samples() -> Samples:
    """Return the content of `tracker/samples`, by its manifest."""
    import tomllib
    from importlib.resources import files

    folder = Path(str(files("tracker") / "samples"))
    manifest = tomllib.loads((folder / "manifest.toml").read_text(encoding="utf-8"))
    versions = tuple((version["label"], version["note"]) for version in manifest["version"])
    return Samples(folder, manifest["workload"], versions)


def demo(
    keep: Annotated[
        Path | None, Option("The SQLite file of the database. Default: demo.db in your data folder.", "FILE")
    ] = None,
    details: Annotated[bool, Option("All sections. Default: a first screen.")] = False,
    color: Color = "auto",
) -> None:
    """Compare two versions of a small GPT training on bundled profiles, in seconds; then look at them as pages.

    \b
    Example:
      tracker demo
      tracker demo --keep demo.db && tracker show latest --db demo.db
    """
    bundled = samples()
    (baseline, _), (candidate, _) = bundled.versions
    try:
        path = keep or config.make_default_folder() / "demo.db"
    except SourceError:  # a home that is read-only
        path = Path(mkdtemp(prefix="tracker-demo-")) / "demo.db"
    with opened(str(path), create=True) as store:
        for label, text in bundled.versions:
            note(f"$ tracker ingest samples/{label} --version {label} --workload {bundled.workload}   # {text}")
            options = intake.IngestOptions(note=text)
            intake.ingest(store, [bundled.folder / label], version=label, workload=bundled.workload, options=options)
        note(f"$ tracker diff {baseline} {candidate}")
        result = compare.diff(store, baseline, candidate)
    text = str(reports.render(result, details=details, tell=note, **screen(color)))
    # what the report proposes would take another database
    emit(text.rpartition("\nNext:\n")[0])
    note(f"Next, the same as pages: {_program()} page --open --db {shlex.quote(str(path))}")
    note("On your own profiles: tracker diff BASELINE.pt.trace.json.gz CANDIDATE.pt.trace.json.gz")


def _program() -> str:
    """How this program is called: it may lie in an environment that is not active."""
    called, found = Path(sys.argv[0]), shutil.which("tracker")
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m tracker"
    is_on_path = found is not None and same_file(found, called)
    return "tracker" if is_on_path or not called.exists() else shlex.quote(str(called))


def doctor(
    reading: Reading,
    paths: Annotated[
        list[Path] | None,
        Option(
            "Profiles, or folders with profiles at any depth. Default: what the database holds.",
            "PATH...",
            positional=True,
        ),
    ] = None,
    format: JsonFormat = "text",
    details: Annotated[bool, Option("All captures, runs and gaps. Default: a first screen.", group=OUTPUT)] = False,
    color: Color = "auto",
    db: Database = None,
) -> None:
    """Check what files or folders hold before an ingest: formats, runs, missing data, unreadable files.

    Profiles are read as in an ingest; nothing is written, and no database is needed. The last line is the next command,
    with VERSION and WORKLOAD to fill in. Exit code 2 where nothing can be read. Without PATH: the stored runs of one
    folder that may be of one job and count apart, such as a trace beside two logs.

    \b
    Example:
      tracker doctor ./profiles
      tracker doctor trace.json.gz logs/ --format json
      tracker doctor
    """
    if not paths:
        _tell_stored(db, format)
        return
    from tracker.readers import not_recognised_line

    with progress() as report:
        settings = config.load(None)
        how = replace(reading, max_bytes=settings.max_bytes, loaders=settings.loaders, on_progress=report)
        findings = api.examine(paths, **asdict(how))
    emit(str(reports.render(findings, format, details=details, **screen(color))), is_rendered=True)
    if findings.not_recognised:
        note(not_recognised_line(findings.not_recognised))
    if not findings.captures:
        raise SourceError(", ".join(findings.paths), "", "nothing here can be read", remedy="see the findings above")


def _tell_stored(db: str | None, format: str) -> None:
    """Print the stored runs that may be of one job and count apart."""
    from tracker.store import documents

    with opened(config.load(db), read_only=True) as store, store.connect() as connection:
        name, found = store.url, documents.find_apart(connection)
    if format == "json":
        document = json.dumps({"runs_apart": [asdict(one) for one in found]}, indent=2)
        emit(without_commands(document), as_it_is=True)
        return
    if not found:
        emit(f"{name}: no stored runs of one folder may be of one job and count apart")
        return
    lines = [f"{name}: {counted(len(found), 'folder')} with runs that may be of one job and count apart"]
    for one in found:
        runs = ", ".join(f"run:{run_id} ({way})" for run_id, way in zip(one.run_ids, one.ways, strict=True))
        lines.append(f"  {one.folder}: {runs}: {one.why}")
    lines.append("Where a log or summary is of the job of a trace, take it out: tracker runs exclude RUN --reason TEXT")
    emit("\n".join(lines))
