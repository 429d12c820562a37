"""The program `tracker`, as `python -m tracker` too: the command line, and an end without ceremony."""

from __future__ import annotations

import atexit
import io
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

from tracker.cli import main


def run() -> NoReturn:
    """Run the command line, and end the process with its exit code.

    Python would take apart hundreds of modules object by object before it ends, a fifth of the time of a small ingest.
    What has to be done at the end is done; memory goes back to the system as a whole.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character shows a question mark for it
    try:
        main()
    except SystemExit as end:
        if not isinstance(end.code, int | None) or threading.active_count() > 1:
            raise
        code = end.code or 0
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: it was closed from the start
        with suppress(OSError, ValueError):  # closed by whoever read it: the code says what there is to say
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
