"""The compiled decoder of Kineto events, where it could be compiled when tracker was installed.

Light: it is imported to say whether it is there.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

try:
    from tracker.readers.torch_profiler.native import _compiled as module
except ImportError:  # not built
    module = None  # type: ignore[assignment]

RECORD_BYTES: Final = 128


def is_built() -> bool:
    """Whether the decoder is there, built from the sources beside it, and writes records as `records.RECORD` has it."""
    return module is not None and (sources_digest(), RECORD_BYTES) == (module.SOURCES, module.RECORD_BYTES)


def sources_digest(folder: Path = Path(__file__).parent) -> str:
    """What stands for the C sources in `folder`."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.glob("*.[ch]")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
