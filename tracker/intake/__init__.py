"""From files to a run in the database: reader -> timeline -> store, the only place where the three meet."""

from __future__ import annotations

from tracker.intake.at_once import ahead
from tracker.intake.devices import parse_device
from tracker.intake.forming import form_runs, formats_beside, why_apart
from tracker.intake.ingesting import IngestResult, Read, ingest, ingest_of_job
from tracker.intake.packing import SUFFIX, Pack, is_pack, pack
from tracker.intake.pieces import IngestOptions, Piece, read_pieces
from tracker.intake.sidecar import Sidecar
from tracker.intake.spooled import Spooled, Waiting, take_spooled, waiting

__all__ = [
    "SUFFIX",
    "IngestOptions",
    "IngestResult",
    "Pack",
    "Piece",
    "Read",
    "Sidecar",
    "Spooled",
    "Waiting",
    "ahead",
    "form_runs",
    "formats_beside",
    "ingest",
    "ingest_of_job",
    "is_pack",
    "pack",
    "parse_device",
    "read_pieces",
    "take_spooled",
    "waiting",
    "why_apart",
]
