"""What is not whole yet: a run with fewer ranks than it should have, which is not judged, and a version with fewer runs
than usual, whose verdicts may still change and whose alerts wait.
"""

from __future__ import annotations

from msgspec import Struct

from tracker.results.verdicts import SO_FAR
from tracker.units import counted, format_moment, format_ns

__all__ = ["AwaitedRuns", "WaitingAlert", "WaitingRun"]


class WaitingRun(Struct, frozen=True):
    """A run that is not whole: not judged, and in no level.

    `ranks`: that came, of `ranks_awaited`. `is_over`: the last of them came so long ago that no other is waited for.
    `step_ns`: of the ranks that came, None: not known.
    """

    run_id: int
    workload: str
    version: str
    device: str
    ranks: int
    ranks_awaited: int
    is_over: bool
    step_ns: int | None

    @property
    def ranks_words(self) -> str:
        """How many ranks came: `1 of 2 ranks`, and once no other is waited for, `1 of 2 ranks came`."""
        return f"{self.ranks} of {self.ranks_awaited} ranks{' came' if self.is_over else ''}"

    @property
    def sentence(self) -> str:
        """What to know of it.

        >>> WaitingRun(7, "gpt", "v02", "cpu", 1, 2, False, 12_300_000).sentence
        'Run 7 (gpt v02, cpu): 1 of 2 ranks, 12.30 ms per step; not judged before the others come.'

        Once no other is waited for it says less: the next ingest may find that the job records so many from now on.
        """
        step = "" if self.step_ns is None else f", {format_ns(self.step_ns)} per step"
        until = "so far" if self.is_over else "before the others come"
        name = f"{self.workload} {self.version}, {self.device}"
        return f"Run {self.run_id} ({name}): {self.ranks_words}{step}; not judged {until}."


class AwaitedRuns(Struct, frozen=True):
    """What a version lacks that has fewer runs than usual, of which more may still come.

    `runs`: that came, of the `usual` number of the versions before it. `until_ns`: no more are waited for then.
    """

    version: str
    runs: int
    usual: int
    until_ns: int

    @property
    def words(self) -> str:
        """How many runs came."""
        return f"{SO_FAR}: {self.runs} of the usual {self.usual} runs"

    def describe(self, version: str) -> str:
        """Return how many runs came, and of which version where that is another one than `version`.

        >>> awaited = AwaitedRuns("v05", 2, 3, 0)
        >>> awaited.describe("v05"), awaited.describe("v04")
        ('so far: 2 of the usual 3 runs', 'so far: 2 of the usual 3 runs of v05')
        """
        return self.words if version == self.version else f"{self.words} of {self.version}"


class WaitingAlert(Struct, frozen=True):
    """An incident, or a budget, of which channels will be told once a version has its usual number of runs.

    `incident_id`: None for a budget; `budget`: its series and its limit, empty for an incident; `event`: opened or
    recovered; `awaited_version`: the one that has `runs` of the `usual` number; `until_ns`: how long the alert waits at
    most.
    """

    incident_id: int | None
    workload: str
    version: str
    device: str
    event: str
    awaited_version: str
    runs: int
    usual: int
    until_ns: int
    budget: str = ""

    @property
    def sentence(self) -> str:
        """What it waits for.

        >>> WaitingAlert(3, "gpt", "v05", "cpu", "opened", "v05", 2, 3, 50_700 * 10**9).sentence
        'I-3 (gpt v05, cpu) waits for 1 more run of v05, at most until 1970-01-01 14:05 UTC.'
        """
        what = f"I-{self.incident_id}" if self.incident_id is not None else f"the budget of {self.budget}"
        if self.event == "recovered":
            what = f"The recovery of {what}"
        what = f"{what[:1].upper()}{what[1:]}"
        runs = f"{counted(self.usual - self.runs, 'more run')} of {self.awaited_version}"
        where = f"{self.workload} {self.version}, {self.device}"
        return f"{what} ({where}) waits for {runs}, at most until {format_moment(self.until_ns)} UTC."
