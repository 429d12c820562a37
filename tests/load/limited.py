"""Runs commands of `tracker` in processes that may take so much memory and time and no more.

Run as a script: a line of stdin is a JSON list of the words of a command; the answer is [exit code, stdout, stderr], a
negative code being the signal that ended it. All is imported before the first command, so that one costs little.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from pathlib import Path

MEMORY_BYTES = 400 << 20
"""Above what the program takes once it has imported everything."""

SECONDS = 20


def run(words: list[str], out: int, err: int) -> None:
    """The command, in this process, which ends with it."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY_BYTES, taken + MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    from tracker.cli import main

    sys.argv = ["tracker", *words]
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    """Runs what comes by stdin."""
    from tracker import intake, readers, timeline  # noqa: F401
    from tracker.cli import ingest  # noqa: F401
    from tracker.regressions import judgement  # noqa: F401
    from tracker.store import save  # noqa: F401

    for name in readers.NAMES:
        readers.load(name)
    for line in sys.stdin:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                try:
                    run(json.loads(line), out.fileno(), err.fileno())
                except BaseException:  # noqa: BLE001 its traceback is what the test sees
                    import traceback

                    traceback.print_exc()
                    sys.stderr.flush()
                os._exit(70)
            _, status = os.waitpid(child, 0)
            said = [file.seek(0) or file.read().decode() for file in (out, err)]
        sys.stdout.write(json.dumps([os.waitstatus_to_exitcode(status), *said]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
