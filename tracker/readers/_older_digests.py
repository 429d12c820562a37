"""Digests of files as they were made before BLAKE3: databases and packs that are older hold them, by BLAKE2."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracker.errors import SourceError
from tracker.profile import Source
from tracker.readers._digest import DIGEST_BYTES
from tracker.readers._source import content_blocks, open_source


def older_digest_of(path: Path) -> bytes | None:
    """Return the digest of the content of a file as it was made before; None where it cannot be read."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    try:
        with open_source(path) as file:
            for block in content_blocks(path, file):
                digest.update(block)
    except SourceError:
        return None
    except EOFError:
        pass  # a gzip stream that was cut has the digest of what is there
    return digest.digest()


def older_digests(sources: Sequence[Source]) -> Mapping[bytes, Sequence[bytes]]:
    """Return the digests that each file of one capture may be known by, from before; by its digest of today.

    The first is that of the file alone, the others cover another file of the capture as well: which of them was its
    main file, only the reader of the format knows. A file that cannot be read any more has none.
    """
    alone: dict[bytes, bytes] = {}
    for source in sources:
        digest = older_digest_of(Path(source.path))
        if digest is not None:
            alone[source.digest] = digest
    found: dict[bytes, Sequence[bytes]] = {}
    for known_as, own in alone.items():
        tied = [
            hashlib.blake2b(own + main, digest_size=DIGEST_BYTES).digest() for main in alone.values() if main != own
        ]
        found[known_as] = [own, *tied]
    return found
