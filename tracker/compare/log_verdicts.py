"""How the numbers of an optimisation log were judged: the verdicts that diff, history and findings give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from tracker.store import queries

if TYPE_CHECKING:
    from tracker.store import Store


class JudgedNumber(Struct, frozen=True):
    """A number of whole runs, and the version that it was judged of. `part`: how it was measured."""

    version: str
    configuration_id: int
    device_id: int
    metric: str
    part: str


class StoredVerdict(Struct, frozen=True):
    """The verdict, the change against the level before, as DIFF, and the code of its reason; None for neither."""

    verdict: str | None
    diff: float | None
    reason: str | None


NO_VERDICT = StoredVerdict(None, None, None)


def read_verdicts(store: Store, workload: str) -> dict[JudgedNumber, StoredVerdict]:
    """Return every whole-run number of every version of a workload that was judged, with its verdict."""
    names = (*JudgedNumber.__struct_fields__, "verdict", "raw_change", "reason")
    rows = queries.run_verdicts(store, workload).rows(*names)
    return {JudgedNumber(*number): StoredVerdict(verdict, change, why) for *number, verdict, change, why in rows}


def verdict_of_runs(
    verdicts: Mapping[JudgedNumber, StoredVerdict], numbers_of_runs: Iterable[JudgedNumber]
) -> StoredVerdict:
    """Return the verdict of the number that runs of one version reached together: `numbers_of_runs`, one per run.

    NO_VERDICT where the runs are of several tracks or measured in several ways, so that no one verdict is theirs, and
    for a log without a profiler, whose number stands under another part.
    """
    distinct = set(numbers_of_runs)
    if len(distinct) != 1:
        return NO_VERDICT
    return verdicts.get(distinct.pop(), NO_VERDICT)
