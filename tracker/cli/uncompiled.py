"""The line of an installation without compiled code: reading takes longer, and gives the same rows."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from tracker import __version__, config
from tracker.cli.output import note
from tracker.readers.torch_profiler.native import is_built

_SLOWER: Final = (
    "note: reading is slower here, for tracker was installed without its compiled code; install it again from its "
    "sources where there is a C compiler"
)


def note_slower_reading() -> None:
    """Write to stderr that reading is slower without compiled code: once a version, for each user of a machine."""
    if is_built():
        return
    mark = config.cache_folder() / f"uncompiled-{__version__}"
    if mark.exists():
        return
    note(_SLOWER)
    # where no mark can be left, the next command says it again
    with suppress(OSError):
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
