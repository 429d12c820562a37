"""The compiled nesting of spans, where it could be compiled when tracker was installed.

Elsewhere Python finds the same parents, in more time.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from tracker.profile.compiled import sources_digest

try:
    from tracker.timeline.native import _compiled as module
except ImportError:  # not built
    module = None  # type: ignore[assignment]

_FOLDER: Final = Path(__file__).parent


def is_built() -> bool:
    """Return whether the module is there, built from the sources beside it."""
    return module is not None and _digest() == module.SOURCES


@cache
def _digest() -> str:
    """Return the digest of the sources, which is asked for with each tree."""
    return sources_digest(_FOLDER)
