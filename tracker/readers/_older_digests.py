"""Digests of files as they were made before BLAKE3: databases and packs that are older hold them, by BLAKE2."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracker.errors import SourceError
from tracker.profile import Source
from tracker.readers._digest import DIGEST_BYTES, ContentDigest, tie_digests
from tracker.readers._source import content_blocks, open_source


def older_digest_of(path: Path) -> bytes | None:
    """Return the digest of the content of a file as it was made before; None where it cannot be read."""
    both = _digests_of(path)
    return None if both is None else both[0]


def older_digests(sources: Sequence[Source]) -> Mapping[bytes, Sequence[bytes]]:
    """Return the digests that each file of one capture may be known by, from before; by its digest of today.

    The first is that of the file alone, the others cover another file of the capture as well: which of them was its
    main file, only the reader of the format knows. A file that cannot be read any more has none, nor has one that
    holds something else by now than what was read, such as the overwritten file of a pack.
    """
    alone: dict[bytes, bytes] = {}
    of_today: dict[bytes, bytes] = {}
    for source in sources:
        both = _digests_of(Path(source.path))
        if both is not None:
            alone[source.digest], of_today[source.digest] = both
    found: dict[bytes, Sequence[bytes]] = {}
    for known_as, own in alone.items():
        today = of_today[known_as]
        ties = {tie_digests(today, main) for main in of_today.values()}
        if known_as != today and known_as not in ties:
            continue
        tied = [
            hashlib.blake2b(own + main, digest_size=DIGEST_BYTES).digest() for main in alone.values() if main != own
        ]
        found[known_as] = [own, *tied]
    return found


def _digests_of(path: Path) -> tuple[bytes, bytes] | None:
    """Return the digests of the content of a file as they were made before and as they are made today; None where it
    cannot be read.
    """
    older, today = hashlib.blake2b(digest_size=DIGEST_BYTES), ContentDigest()
    try:
        with open_source(path) as file:
            for block in content_blocks(path, file):
                older.update(block)
                today.add(block)
    except SourceError:
        return None
    except EOFError:
        pass  # a gzip stream that was cut has the digest of what is there
    return older.digest(), today.value()
