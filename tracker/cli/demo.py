"""`tracker demo`: a diff of bundled profiles, without network or setup."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated, NamedTuple

from tracker.cli import database
from tracker.cli.options import Color
from tracker.cli.output import emit, note, screen
from tracker.errors import SourceError
from tracker.results.options import Option


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
    from tracker import compare, config, intake, reports

    bundled = samples()
    (baseline, _), (candidate, _) = bundled.versions
    try:
        path = keep or config.make_default_folder() / "demo.db"
    except SourceError:  # a home that is read-only
        path = Path(mkdtemp(prefix="tracker-demo-")) / "demo.db"
    with database.writing(str(path), create=True) as store:
        for label, text in bundled.versions:
            note(f"$ tracker ingest samples/{label} --version {label} --workload {bundled.workload}   # {text}")
            options = intake.IngestOptions(note=text)
            intake.ingest(store, [bundled.folder / label], version=label, workload=bundled.workload, options=options)
        note(f"$ tracker diff {baseline} {candidate}")
        result = compare.diff(store, baseline, candidate)
    text = str(reports.render(result, details=details, tell=note, **screen(color)))
    # what the report proposes would take another database
    emit(text.rpartition("\nNext: ")[0])
    note(f"Next, the same as pages: {_program()} page --open --db {shlex.quote(str(path))}")
    note("On your own profiles: tracker diff BASELINE.pt.trace.json.gz CANDIDATE.pt.trace.json.gz")


def _program() -> str:
    """How this program is called: it may lie in an environment that is not active."""
    called, found = Path(sys.argv[0]), shutil.which("tracker")
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m tracker"
    is_on_path = found is not None and called.exists() and Path(found).samefile(called)
    return "tracker" if is_on_path or not called.exists() else shlex.quote(str(called))
