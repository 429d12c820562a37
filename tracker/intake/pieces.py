"""The captures of the files that an ingest was given, and what its user said of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracker import config, readers, timeline
from tracker.intake import sidecar
from tracker.intake.devices import parse_device
from tracker.intake.sidecar import NOTHING, Sidecar
from tracker.profile import UNKNOWN_DEVICE, Capture

if TYPE_CHECKING:
    from tracker.readers import Found, ReadOptions


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """What the user says about a profile that the files do not say, and how to read them.

    `device`: overrides the device read from the source. `expect_ranks`: ranks until the run counts as complete
    (default: those that came). `as_run`: all files are one run, whatever they say. `otherwise`: what holds where
    neither these options nor the sidecar of a profile say something. `on_progress(label, done, total)`: bytes read of
    the file `label`. `judge`: False where the caller judges the runs of many ingests at once.
    """

    commit: str | None = None
    note: str | None = None
    configuration: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    expect_ranks: int | None = None
    as_run: bool = False
    otherwise: Sidecar = NOTHING
    format: str | None = None
    flow_category: str | None = None
    allow_partial: bool = False
    skip_bad_rows: bool = False
    max_bytes: int = config.MAX_BYTES
    on_progress: Callable[[str, int, int], None] | None = None
    judge: bool = True


@dataclass(frozen=True, slots=True)
class Piece:
    """One capture on its way to a run, with the format that its file had and what its reader warned of.

    `path`: the file or folder that was claimed for it, '' where only its sources are known. `said`: by its sidecar,
    None where it has none; what that adds to the capture is in there already.
    """

    capture: Capture
    format: str
    warnings: tuple[str, ...]
    path: str = ""
    said: Sidecar | None = None

    @property
    def place(self) -> str:
        """Where the capture lies: its folder, or its file."""
        return self.path or self.paths[0]

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the capture was read from."""
        return tuple(source.path for source in self.capture.sources)


def read_all(paths: Sequence[Path], options: IngestOptions) -> list[Piece]:
    """The captures of all profiles under `paths`, each file once."""
    found: dict[Path, Found] = {}
    for path in paths:
        for item in readers.find(path, options.format):
            found.setdefault(item.path.resolve(), item)
    return [piece for item in found.values() for piece in read_pieces(item, options)]


def read_pieces(found: Found, options: IngestOptions) -> list[Piece]:
    """The captures of one claimed file or folder, with rows and what its sidecar adds; a SourceError where it cannot be
    read.
    """
    path = sidecar.sidecar_of(found.path)
    said, warnings = (None, ()) if path is None else sidecar.read(path)
    return [
        replace(
            piece,
            said=said,
            capture=_with(piece.capture, said or NOTHING, options.otherwise, is_first=number == 0),
            warnings=(*piece.warnings, *(warnings if number == 0 else ())),
        )
        for number, piece in enumerate(_read(found, _read_options(found, options)))
    ]


def _with(capture: Capture, said: Sidecar, otherwise: Sidecar, *, is_first: bool) -> Capture:
    """`capture`, and where it leaves something out what the sidecar says, then what holds otherwise.

    A rank is that of the process, so of the first capture of its file.
    """
    device = said.device or otherwise.device
    rank = said.rank if said.rank is not None else otherwise.rank
    return replace(
        capture,
        rank=rank if capture.rank is None and is_first else capture.rank,
        world_size=capture.world_size or said.world_size or otherwise.world_size,
        host=capture.host or said.host or otherwise.host or "",
        device=parse_device(device) if device and capture.device == UNKNOWN_DEVICE else capture.device,
        facts={**otherwise.facts, **said.facts, **capture.facts},
    )


def _read_options(found: Found, options: IngestOptions) -> ReadOptions:
    report = options.on_progress
    return readers.ReadOptions(
        flow_category=options.flow_category,
        allow_partial=options.allow_partial,
        skip_bad_rows=options.skip_bad_rows,
        max_bytes=options.max_bytes,
        progress=None if report is None else lambda done, total: report(found.path.name, done, total),
    )


def _read(found: Found, options: ReadOptions) -> list[Piece]:
    profile = readers.read(found, options)
    return [
        Piece(timeline.build(capture), profile.format, profile.warnings if number == 0 else (), str(found.path))
        for number, capture in enumerate(profile.captures)
    ]
