"""`tracker demo`: a real diff of bundled profiles, without network and without set-up."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NamedTuple

import typer


class Samples(NamedTuple):
    """The bundled profiles: the folder and note of each version, in order."""

    folder: Path
    workload: str
    versions: tuple[tuple[str, str], ...]


def samples() -> Samples:
    """What `tracker/samples` holds, as its manifest says."""
    import tomllib
    from importlib.resources import files

    folder = Path(str(files("tracker") / "samples"))
    manifest = tomllib.loads((folder / "manifest.toml").read_text(encoding="utf-8"))
    versions = tuple((version["label"], version["note"]) for version in manifest["version"])
    return Samples(folder, manifest["workload"], versions)


def demo(
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the demo's database in this SQLite file, to try show, runs and diff on it. Default: a "
            "temporary one.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Compare two versions of a small GPT training on bundled profiles: a real diff in seconds.

    \b
    Example:
      tracker demo
      tracker demo --keep demo.db && tracker show latest --db demo.db
    """
    from tempfile import TemporaryDirectory

    from tracker import compare, intake, reports
    from tracker.cli import _store
    from tracker.cli._output import emit, screen, tell
    from tracker.results import DiffOptions

    bundled = samples()
    (baseline, _), (candidate, _) = bundled.versions
    with ExitStack() as stack:
        database = keep or Path(stack.enter_context(TemporaryDirectory(prefix="tracker-demo-"))) / "demo.db"
        store = stack.enter_context(_store.opened(str(database), create=True))
        for label, note in bundled.versions:
            tell(f"$ tracker ingest samples/{label} --version {label} --workload {bundled.workload}   # {note}")
            options = intake.IngestOptions(note=note)
            intake.ingest(store, [bundled.folder / label], version=label, workload=bundled.workload, options=options)
        tell(f"$ tracker diff {baseline} {candidate}")
        result = compare.diff(store, baseline, candidate, options=DiffOptions())
    look = screen()
    emit(str(reports.render(result, width=look.width, color=look.color, tell=tell)))
    if keep:
        tell(f"Next: tracker show latest --db {keep}")
    else:
        tell("Next, on your own profiles: tracker diff BASELINE.pt.trace.json.gz CANDIDATE.pt.trace.json.gz")
        tell("To go on with this database: tracker demo --keep demo.db")
