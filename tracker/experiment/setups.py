"""The command that builds a side, once, before its runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracker.errors import UsageError
from tracker.experiment.jobs import Logs, run_job
from tracker.experiment.sides import PreparedSide, environment_of, working_folder

_SIGNALLED = 128


def run_setup(
    prepared: PreparedSide,
    command: str,
    log: Path,
    timeout_s: float,
    *,
    environ: Mapping[str, str] | None = None,
    keep_open: Sequence[int] = (),
) -> None:
    """Run a command of the shell in the working folder of a side. What it prints goes to `log`, and what it says of
    errors to a file beside that, `log` with the ending `.err`.

    `environ`: the variables of the caller, by default those of this process; the command has `environment_of` them.
    `keep_open`: as of `run_job`. UsageError where it fails, or has not ended after `timeout_s`: it is ended then, with
    the processes it started.
    """
    variables = environment_of(prepared, os.environ if environ is None else environ)
    logs = Logs(log, log.with_suffix(".err"))
    ended = run_job(
        ["/bin/sh", "-c", command],
        folder=working_folder(prepared),
        environ=variables,
        logs=logs,
        limit_s=timeout_s,
        keep_open=keep_open,
    )
    where = f"its output is in {logs.errors} and {logs.output}"
    if ended.code is None:
        raise UsageError(f"--setup of {prepared.side.name} has not ended after {timeout_s:g} s", remedy=where)
    if ended.code:
        number = ended.code - _SIGNALLED
        is_signal = 0 < number < signal.NSIG
        how = f"signal {number}, {signal.strsignal(number)}" if is_signal else f"exit code {ended.code}"
        raise UsageError(f"--setup of {prepared.side.name} ended with {how}", remedy=where)
