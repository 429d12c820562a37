"""The compiled decoder of Kineto events, where it could be compiled when tracker was installed.

Light: it is imported to say whether it is there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tracker.profile.compiled import sources_digest

try:
    from tracker.readers.torch_profiler.native import _compiled as module
except ImportError:  # not built
    module = None  # type: ignore[assignment]

RECORD_BYTES: Final = 128


def is_built() -> bool:
    """Whether the decoder is there, built from the sources beside it, and writes records as `records.RECORD` has it."""
    if module is None or module.RECORD_BYTES != RECORD_BYTES:
        return False
    return sources_digest(Path(__file__).parent) == module.SOURCES
