"""The program `tracker`, as `python -m tracker` too: the command line, and an end without ceremony."""

from __future__ import annotations

import os
import sys

# All else is imported within `run`: outside of it, Ctrl-C is a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_NEW_OBJECTS = 500_000
"""New objects after which Python looks for garbage. A command is short and reads many rows: by itself it would look
through all of them and all modules dozens of times.
"""

_TOUCHES_FILES = ("advise", "cluster", "cut", "diff", "doctor", "ingest", "pack", "show", "status")
"""Commands that may touch profiles: a file that never answers must not be waited for."""
_SHOW_CURSOR = "\x1b[?25h"


def run() -> NoReturn:
    """Run the command line, and end the process with its exit code.

    Python would take apart hundreds of modules object by object before it ends, a fifth of the time of a small ingest.
    What has to be done at the end is done; memory goes back to the system as a whole. An error that nobody foresaw ends
    it with code 2: 1, as Python has it, is what a gate finds.
    """
    try:
        _prepare()
        code = _run()
        _finish()
    except KeyboardInterrupt:  # so early, or so late, that no handler was set
        from tracker.errors import EXIT_INTERRUPTED

        code = EXIT_INTERRUPTED
    os._exit(code)


def _prepare() -> None:
    """Set up this process for a command that is short and reads many rows."""
    from tracker.limits import interrupt

    interrupt.end_at_once()
    import gc
    import io

    from tracker.lazy import import_numpy_without_threads

    import_numpy_without_threads()
    _supervise()
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character shows a question mark for it


def _supervise() -> None:
    """Go on in a copy of this process, where the command may touch profiles."""
    if sys.argv[1:2] and sys.argv[1] in _TOUCHES_FILES:
        from tracker.limits.supervision import continue_in_copy

        continue_in_copy(_say_late)


def _run() -> int:
    """Return the exit code of the command."""
    import threading

    from tracker.errors import EXIT_INTERRUPTED

    try:
        _call_main()
    except SystemExit as end:
        # threads that still work are waited for, unless the user wants an end
        is_last = threading.active_count() == 1 or end.code == EXIT_INTERRUPTED
        if not isinstance(end.code, int | None) or not is_last:
            raise
        return end.code or 0


def _finish() -> None:
    """Do what Python does at the end of a process, but for its objects."""
    import atexit
    from contextlib import suppress

    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: it was closed from the start
        with suppress(OSError, ValueError):  # closed by whoever read it: the code says what there is to say
            stream.flush()


def _say_late(error: Exception) -> None:
    """Say which file did not answer, before the process ends without ceremony: a bar had hidden the cursor."""
    from contextlib import suppress

    from tracker.units import printable

    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{_SHOW_CURSOR if sys.stderr.isatty() else ''}tracker: {printable(str(error))}\n")
            sys.stderr.flush()


def _call_main() -> NoReturn:
    from contextlib import suppress

    from tracker.errors import EXIT_COULD_NOT_RUN
    from tracker.units import printable

    try:
        from tracker.cli import main

        main()
    except Exception as error:  # noqa: BLE001 here is nobody else to catch it
        with suppress(Exception):  # nobody hears errors
            for line in _report_of(error):
                sys.stderr.write(f"{printable(line)}\n")
            sys.stderr.flush()
        sys.exit(EXIT_COULD_NOT_RUN)


def _report_of(error: Exception) -> list[str]:
    """The lines about an unexpected error, the last one with what to do."""
    if isinstance(error, MemoryError):
        return ["tracker: out of memory; see how much this machine has left"]
    import traceback

    from tracker.errors import our_fault

    lines = "".join(traceback.format_exception(error)).splitlines()
    return [*lines, f"tracker: {our_fault(error)}, with the lines above, the command and what tracker --version says"]


if __name__ == "__main__":
    run()
