"""The line of an installation without compiled code: reading takes longer, and gives the same rows."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from tracker import __version__, config
from tracker.cli.output import note

_SLOWER: Final = (
    "note: reading is slower here, for tracker was installed without its compiled code; install it again from its "
    "sources where there is a C compiler"
)


def is_compiled() -> bool:
    """Return whether all that tracker has in C is there."""
    # at the end of an ingest: before it, the timeline would bring the threads of NumPy, and no copy could read ahead
    from tracker.readers.torch_profiler.native import is_built as is_decoder_built
    from tracker.timeline.native import is_built as is_nesting_built

    return is_decoder_built() and is_nesting_built()


def note_slower_reading() -> None:
    """Write to stderr that reading is slower without compiled code: once a version, for each user of a machine."""
    if is_compiled():
        return
    mark = config.cache_folder() / f"uncompiled-{__version__}"
    # where no mark can be left or seen, the next command says it again
    with suppress(OSError):
        if mark.exists():
            return
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    note(_SLOWER)
