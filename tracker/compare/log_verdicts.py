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


class Said(Struct, frozen=True):
    """The verdict, and the change against the level before, as DIFF; None for neither."""

    verdict: str | None
    diff: float | None


NOTHING = Said(None, None)


def said_of_runs(store: Store, workload: str) -> dict[JudgedNumber, Said]:
    """Every whole-run number of every version of a workload that was judged."""
    names = (*JudgedNumber.__struct_fields__, "verdict", "raw_change")
    rows = queries.run_verdicts(store, workload).rows(*names)
    return {JudgedNumber(*series): Said(verdict, change) for *series, verdict, change in rows}


def said_of(found: Mapping[JudgedNumber, Said], runs: Iterable[JudgedNumber]) -> Said:
    """Return what is said of the number that these runs of one version reached; nothing where they are of several
    lines, or a log without a profiler says it under another part.
    """
    series = set(runs)
    return found.get(series.pop(), NOTHING) if len(series) == 1 else NOTHING
