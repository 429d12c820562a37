"""What the judge says of itself."""

from __future__ import annotations

from msgspec import Struct

from tracker.units import counted


class JudgeAudit(Struct, frozen=True):
    """What was found in the last 30 versions of each workload, configuration and device.

    `versions`: how many these are; `slower`, `faster`: findings of series that moved up and down; `workload`,
    `version`: of the version with most of them, `in_one_version` of all; `invalid`: those that users marked so.
    """

    versions: int = 0
    slower: int = 0
    faster: int = 0
    workload: str = ""
    version: str = ""
    in_one_version: int = 0
    invalid: int = 0

    @property
    def sentence(self) -> str:
        """All of it; "" where nothing was judged.

        >>> JudgeAudit(60, 14, 9, "gpt", "v08", 14, 2).sentence
        '60 versions: 14 series became slower and 9 faster, 61 % of them in v08 of gpt; users marked 2 as invalid.'
        >>> JudgeAudit(60).sentence
        '60 versions: no series moved.'
        """
        if not self.versions:
            return ""
        found = self.slower + self.faster
        whole = counted(self.versions, "version")
        if not found:
            return f"{whole}: no series moved."
        share = round(100 * self.in_one_version / found)
        moved = f"{self.slower:,} series became slower and {self.faster:,} faster"
        marked = f"users marked {self.invalid:,} as invalid" if self.invalid else "users marked none as invalid"
        return f"{whole}: {moved}, {share} % of them in {self.version} of {self.workload}; {marked}."
