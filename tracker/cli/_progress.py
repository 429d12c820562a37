"""A progress bar on stderr while long work runs at a terminal; nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[str, int, int], None]


@contextmanager
def progress(*, of_bytes: bool = True) -> Iterator[Report | None]:
    """A function to call with (what, done, in all) as work goes on, in bytes or things; None where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    amount = DownloadColumn() if of_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)

    def report(what: str, done: int, total: int) -> None:
        if not bar.task_ids:  # the bar appears with the first bytes: a question to the database reads none
            bar.add_task(what, total=total)
            bar.start()
        bar.update(bar.task_ids[0], description=what, completed=done, total=total)

    try:
        yield report
    finally:
        bar.stop()
