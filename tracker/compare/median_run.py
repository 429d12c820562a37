"""The run that stands for a version of several runs, where a command shows one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.compare.overall import measure_steps_of_runs, step_numbers
from tracker.compare.references import needs_store
from tracker.config.places import user_path
from tracker.errors import UsageError
from tracker.units import format_ns

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide

_NAMED: Final = 10


def find_median_run(side: LoadedSide) -> int | None:
    """Return the number of the run whose step is the median one, of an even number the faster one of the middle; None
    where no run states a step.
    """
    steps_ns = dict(zip(side.run_ids, measure_steps_of_runs(side).step_ns.tolist(), strict=True))
    known = sorted((step_ns, run_id) for run_id, step_ns in steps_ns.items() if not np.isnan(step_ns))
    return known[(len(known) - 1) // 2][1] if known else None


def choose_median_run(side: LoadedSide) -> tuple[int, str]:
    """Return the number of the run of a side of several whose step is the median one, of an even number the faster one
    of the middle; and a sentence that says so, with the step of all of them.

    Raises UsageError where nothing makes them repeats of one job: a path of several, other devices or configurations.
    """
    reference, number = side.side.label, len(side.run_ids)
    listed = [f"run:{run_id}" for run_id in side.run_ids[:_NAMED]]
    more = f" or {number - _NAMED} others" if number > _NAMED else ""
    if not needs_store(reference):
        formats = "; one in several formats: --input-format chooses one" if user_path(reference).is_dir() else ""
        remedy = f"name one of its files, or ingest it first{formats}"
        raise UsageError(f"{reference} is {number} runs", remedy=remedy)
    for column, words in (("device", "devices"), ("configuration", "configurations")):
        if len(set(side.runs.listed(column))) > 1:
            remedy = f"name one of {', '.join(listed)}{more}"
            raise UsageError(f"{reference} is {number} runs of several {words}", remedy=remedy)
    run_id = find_median_run(side)
    known = run_id is not None
    which = "the run of the median step" if known else "the newest run"
    run_id = side.run_ids[-1] if run_id is None else run_id
    of_all = step_numbers(side).get("step_ns")
    mean = f" The step of all {number} is {format_ns(of_all)}, their geometric mean." if of_all and known else ""
    return run_id, f"{reference} is {number} runs ({', '.join(listed)}{more}); this is run:{run_id}, {which}.{mean}"
