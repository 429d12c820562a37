"""The command that builds a side, once, before its runs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tracker.errors import UsageError
from tracker.experiment.sides import PreparedSide, environment_of, working_folder


def run_setup(
    prepared: PreparedSide, command: str, log: Path, timeout_s: float, *, environ: Mapping[str, str] | None = None
) -> None:
    """Run a command of the shell in the working folder of a side, with its output in `log`.

    environ: the variables of the caller, by default those of this process; the command has `environment_of` them

    UsageError where it fails, or has not ended after `timeout_s`: it is killed then, with the processes it started.
    """
    variables = environment_of(prepared, os.environ if environ is None else environ)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        running = subprocess.Popen(
            command,
            shell=True,
            cwd=working_folder(prepared),
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = running.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            problem = f"--setup of {prepared.side.name} has not ended after {timeout_s:g} s"
            raise UsageError(problem, remedy=f"its output is in {log}") from error
        finally:
            # an interrupt ends this process alone: the command has a session of its own
            if running.returncode != 0:
                _kill_group(running)
    if code:
        how = f"exit code {code}" if code > 0 else f"signal {-code}, {signal.strsignal(-code)}"
        raise UsageError(f"--setup of {prepared.side.name} ended with {how}", remedy=f"its output is in {log}")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
