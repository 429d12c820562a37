"""The advice of runs in the database: made after an ingest, so that versions compare, and pruned runs keep it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from tracker.advice.judging import RunAdvice, of_run, with_remedies
from tracker.advice.rules import RULE_VERSION
from tracker.errors import StoreError
from tracker.store import advice
from tracker.store.failures import REMEDY

if TYPE_CHECKING:
    from tracker.store import Store


def keep(store: Store, run_ids: Sequence[int], *, again: Iterable[int] = ()) -> None:
    """Store the advice of all runs of the tracks of these runs that have none by the rules of today, and of `again`,
    whose rows changed. What was stored of a pruned run stays: its rows are gone.
    """
    with store.connect() as connection:
        lacking = advice.runs_without(connection, run_ids, RULE_VERSION)
    for run_id in sorted({*lacking, *again}):
        # one state of the database: ranks may come between two questions, and the run may be purged
        with store.reading():
            with store.connect() as connection:
                files = advice.files_of(connection, run_id)
            if files is None:
                continue
            content = msgspec.json.encode(replace(of_run(store, run_id), efficiency=())).decode()
        write = partial(advice.keep, run_id=run_id, rule_version=RULE_VERSION, content=content, files=files)
        store.transact(write)


def of_runs(store: Store, run_ids: Sequence[int]) -> dict[int, RunAdvice]:
    """The stored advice of these runs, with remedies; runs without any are left out, see `keep`."""
    with store.connect() as connection:
        found = advice.texts(connection, run_ids)
    decoded = {}
    for run_id, text in found.items():
        try:
            decoded[run_id] = with_remedies(msgspec.json.decode(text, type=RunAdvice))
        except msgspec.MsgspecError as error:
            raise StoreError(f"{store.url}: the stored advice of run {run_id} is damaged", remedy=REMEDY) from error
    return decoded


def of_run_today(store: Store, run_id: int) -> RunAdvice:
    """Return the advice of a run by the rules of today, with remedies, without the efficiency of operators: as it is
    stored, made where it is not. Of a pruned or excluded run what was stored, by whatever rules; else nothing.
    """
    with store.connect() as connection:
        lacking = advice.runs_without(connection, [run_id], RULE_VERSION)
    if run_id in lacking:
        return with_remedies(of_run(store, run_id))
    return of_runs(store, [run_id]).get(run_id, RunAdvice(step_ns=0.0))
