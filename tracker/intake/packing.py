"""Captures that were read, as one small file or as bytes, to be taken into a database somewhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tracker import readers
from tracker.errors import SourceError, UsageError
from tracker.intake import sidecar
from tracker.intake.at_once import read_all
from tracker.intake.devices import parse_device, unnamed
from tracker.intake.documents import leave_out_documents
from tracker.intake.forming import formats_beside
from tracker.intake.loading import with_data_loading
from tracker.intake.pieces import IngestOptions, Piece
from tracker.intake.sidecar import NOTHING, Sidecar
from tracker.profile import Packed, Profile
from tracker.readers import NotRecognised
from tracker.readers import pack as pack_reader
from tracker.readers.pack.writing import packed_bytes

SUFFIX: Final = ".trk"


class Pack(Struct, frozen=True):
    """The content of a `.trk`. `profiles`: the files and folders that it holds, in order; `captures`: how many are in
    them; `ranks`: those that are known, in order.

    `read_bytes`: the size of the files that it was made from; `warnings`: what their readers warned of -> the profiles
    that it concerns; none: all of them. `unsaid`: what neither the user nor the files say of all of it, though an
    ingest needs it: `version`, `workload`. `not_recognised`: files that no reader takes.
    """

    content: bytes
    profiles: tuple[str, ...]
    captures: int
    ranks: tuple[int, ...]
    read_bytes: int
    warnings: Mapping[str, tuple[str, ...]]
    unsaid: tuple[str, ...] = ()
    not_recognised: tuple[NotRecognised, ...] = ()


def pack(
    paths: Sequence[Path], *, asked: Sidecar = NOTHING, options: IngestOptions | None = None, writer: str = ""
) -> Pack:
    """Read all profiles under `paths` into one pack, whose ingest has the result of an ingest of the profiles.

    `asked`: what an ingest of the profiles would be told by options; an ingest of the pack may say otherwise. Of
    `options` only how to read counts. `writer`: the version of tracker that writes it, for errors. Packs may be packed
    again. Which files form a run is decided by the ingest.
    """
    for key, problem in sidecar.problems(asked):
        raise UsageError(f"the {key} {problem}", remedy="write it on one line, as plain text")
    if asked.device is not None:
        parse_device(asked.device)
    options = options or IngestOptions()
    read = read_all(paths, options)
    # what lies beside the files here does not lie beside the pack
    pieces = with_data_loading(read.pieces, options)
    if not pieces:
        raise SourceError(paths[0], "", "holds no capture", remedy="give a profile")
    chosen = [replace(piece, asked=sidecar.over(asked, piece.asked)) for piece in pieces]
    sizes = {source.digest: source.bytes for piece in pieces for source in piece.capture.sources}
    return Pack(
        content=content_of(chosen, writer),
        profiles=tuple(dict.fromkeys(piece.place for piece in pieces)),
        captures=len(pieces),
        ranks=tuple(sorted({piece.capture.rank for piece in pieces if piece.capture.rank is not None})),
        read_bytes=sum(sizes.values()),
        warnings=_warnings(chosen, read.warnings),
        unsaid=tuple(name for name in ("version", "workload") if not all(_says(piece, name) for piece in chosen)),
        not_recognised=read.passed,
    )


def _says(piece: Piece, name: str) -> bool:
    """Whether the user, what lies beside the profile, or the profile itself says the `version` or the `workload`."""
    told = sidecar.over(piece.asked, piece.said or NOTHING)
    return bool(getattr(told, name) or piece.capture.labels.get(name))


def _warnings(pieces: Sequence[Piece], of_all: Sequence[str]) -> dict[str, tuple[str, ...]]:
    mixed = formats_beside(leave_out_documents([[piece] for piece in pieces]))
    found: dict[str, dict[str, None]] = {warning: {} for warning in (*of_all, mixed) if warning}
    for piece in pieces:
        open_device = "" if piece.asked.device else unnamed(piece.capture.device)
        for warning in (*piece.warnings, *filter(None, [open_device])):
            found.setdefault(warning, {})[piece.place] = None
    return {warning: tuple(places) for warning, places in found.items()}


def is_pack(path: Path) -> bool:
    """Whether the file at `path` is a pack, told by what it starts with."""
    return pack_reader.sniff(path, readers.read_head(path))


def content_of(pieces: Sequence[Piece], writer: str = "") -> bytes:
    """The bytes of a pack with these captures, those of one profile behind each other."""
    profiles: dict[str, list[Piece]] = {}
    for piece in pieces:
        profiles.setdefault(piece.place, []).append(piece)
    return packed_bytes([_packed(place, own) for place, own in profiles.items()], writer)


def _packed(place: str, pieces: Sequence[Piece]) -> Packed:
    first = pieces[0]
    warnings = tuple(warning for piece in pieces for warning in piece.warnings)
    profile = Profile(first.format, place, tuple(piece.capture for piece in pieces), warnings)
    return Packed(profile, _text(first.said), _text(first.asked), first.rules_version)


def _text(said: Sidecar | None) -> bytes:
    return b"" if said is None or said == NOTHING else msgspec.json.encode(said)
