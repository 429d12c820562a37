"""Files that came in under an older digest keep it, so that they are known again; see `readers._older_digests`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tracker import readers

if TYPE_CHECKING:
    from tracker.intake.pieces import Piece
    from tracker.profile import Capture
    from tracker.store import Store


def with_stored_digests(store: Store, pieces: Sequence[Piece]) -> list[Piece]:
    """Return `pieces`, each file with the digest that the database knows it by, where that is an older one.

    Only files of which the database holds one of the same size, under another digest, are read again.
    """
    from tracker.store.answers import rows

    sources = [source for piece in pieces for source in piece.capture.sources]
    if not sources or not store.is_made:
        return list(pieces)
    sizes = sorted({source.bytes for source in sources})
    stored = {bytes(row.digest) for row in rows(store, "sources_of_size", sizes=sizes)}
    if not stored or stored >= {source.digest for source in sources}:
        return list(pieces)
    return [replace(piece, capture=_with_stored_digests(piece.capture, stored)) for piece in pieces]


def _with_stored_digests(capture: Capture, stored: set[bytes]) -> Capture:
    if all(source.digest in stored for source in capture.sources):
        return capture
    older = readers.older_digests(capture.sources)
    sources = []
    for source in capture.sources:
        known_as = next((digest for digest in older.get(source.digest, ()) if digest in stored), source.digest)
        sources.append(replace(source, digest=known_as))
    return replace(capture, sources=tuple(sources))
