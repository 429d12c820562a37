"""`tracker demo`: a diff of bundled profiles, without network or setup."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NamedTuple

from tracker.cli import database
from tracker.cli.options import Color
from tracker.cli.output import emit, note, screen
from tracker.results.option import Option


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
        Path | None, Option("Keep the database in this SQLite file. Default: a temporary one.", "FILE")
    ] = None,
    details: Annotated[bool, Option("All sections. Default: a first screen.")] = False,
    color: Color = "auto",
) -> None:
    """Compare two versions of a small GPT training on bundled profiles, in seconds.

    \b
    Example:
      tracker demo
      tracker demo --keep demo.db && tracker show latest --db demo.db
    """
    from tempfile import TemporaryDirectory

    from tracker import compare, intake, reports

    bundled = samples()
    (baseline, _), (candidate, _) = bundled.versions
    with ExitStack() as stack:
        path = keep or Path(stack.enter_context(TemporaryDirectory(prefix="tracker-demo-"))) / "demo.db"
        store = stack.enter_context(database.opened(str(path), create=True))
        for label, text in bundled.versions:
            note(f"$ tracker ingest samples/{label} --version {label} --workload {bundled.workload}   # {text}")
            options = intake.IngestOptions(note=text)
            intake.ingest(store, [bundled.folder / label], version=label, workload=bundled.workload, options=options)
        note(f"$ tracker diff {baseline} {candidate}")
        result = compare.diff(store, baseline, candidate)
    text = str(reports.render(result, details=details, tell=note, **screen(color)))
    # what the report proposes needs the database, which a temporary one takes with it
    emit(text.rpartition("\nNext: ")[0])
    if keep:
        note(f"Next: tracker show latest --db {keep}")
    else:
        note("Next, on your own profiles: tracker diff BASELINE.pt.trace.json.gz CANDIDATE.pt.trace.json.gz")
        note("To keep this database: tracker demo --keep demo.db")
