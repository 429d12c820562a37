"""The compiled decoder of Kineto events, where there was a C compiler when tracker was installed.

Light: it is imported to say whether it is there.
"""

from __future__ import annotations

from typing import Final

try:
    from tracker.readers.torch_profiler.native import _compiled as module
except ImportError:  # not built
    module = None  # type: ignore[assignment]

FORMAT: Final = 1
"""Of the records; a module that was built from other sources does not count."""

RECORD_BYTES: Final = 104


def is_built() -> bool:
    """Whether the decoder is there, and writes records as `records.RECORD` describes them."""
    return module is not None and (module.FORMAT, module.RECORD_BYTES) == (FORMAT, RECORD_BYTES)
