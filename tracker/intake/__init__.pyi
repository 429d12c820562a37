from .at_once import ahead
from .cutting import Cut, cut, find_trace
from .devices import parse_device
from .documents import find_documents, leave_out_documents
from .forming import form_runs, formats_beside, why_apart
from .ingesting import IngestResult, Read, ingest, ingest_of_job
from .packing import SUFFIX, Pack, is_pack, pack
from .pieces import IngestOptions, Piece, read_pieces
from .rereading import Reread, ingest_again, outdated_runs
from .sidecar import Sidecar
from .spooled import Spooled, Waiting, take_spooled, waiting
from .touching import Toucher

__all__ = [
    "SUFFIX", "Cut", "IngestOptions", "IngestResult", "Pack", "Piece", "Read", "Reread", "Sidecar", "Spooled",
    "Toucher", "Waiting", "ahead", "cut", "find_documents", "find_trace", "form_runs", "formats_beside", "ingest",
    "ingest_again", "ingest_of_job", "is_pack", "leave_out_documents", "outdated_runs", "pack", "parse_device",
    "read_pieces", "take_spooled", "waiting", "why_apart",
]  # fmt: skip
