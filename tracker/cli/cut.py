"""`tracker cut`: one step of a run as a trace of its own."""

from __future__ import annotations

from typing import Annotated

from tracker import api, config
from tracker.api.arguments import opened
from tracker.cli.options import Database
from tracker.cli.output import emit, progress
from tracker.results.options import WORKLOAD, Option
from tracker.units import counted, format_bytes


def cut(
    run: Annotated[
        str,
        Option(
            "41, run:41, run:41:rank3, latest, latest~1, or a version with one run.",
            "RUN",
            positional=True,
            offers="side",
        ),
    ],
    output: Annotated[str, Option("The file to write, such as step3.json.gz or step3.json.", "FILE", short="-o")],
    step: Annotated[int | None, Option("The step, by number. Default: the slowest one.", "N", least=0)] = None,
    rank: Annotated[int | None, Option("The rank. Default: the one whose step is the slowest.", "R", least=0)] = None,
    workload: Annotated[str | None, WORKLOAD] = None,
    force: Annotated[bool, Option("Replace a file that exists. Default: an error.")] = False,
    db: Database = None,
) -> None:
    """Cut one step out of the trace of a run, to look at in Perfetto or to attach to a ticket.

    The file has the events that lie in the step or overlap it, the work that the step left on the device, and the names
    of processes and threads. All other metadata of the trace stays out: it can hold access tokens. The trace is the
    file that the run was read from; it must still be there, unchanged.

    \b
    Example:
      tracker cut latest -o slowest.json.gz
      tracker cut run:41 --step 3 --rank 0 -o step3.json
    """
    settings = config.load(db)
    with progress() as report, opened(settings, read_only=True) as store:
        made = api.cut(
            run, output, step=step, rank=rank, workload=workload, force=force, store=store,
            max_bytes=settings.max_bytes, on_progress=report,
        )  # fmt: skip
    what = f"step {made.step} of run:{made.run_id}, rank {made.rank}"
    emit(f"{output}: {what}, {counted(made.events, 'event')}, {format_bytes(made.bytes)}. Open it in Perfetto.")
