"""A run that has fewer ranks than it should have: how many came, and that it is not judged."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tracker.units import format_ns

__all__ = ["WAITING_COLUMNS", "WaitingRun"]


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


WAITING_COLUMNS: Final = WaitingRun.__struct_fields__
