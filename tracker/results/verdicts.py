"""How a diff was judged: the columns that rows of a Diff end with, and what stands above its tables."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

VERDICT_COLUMNS: Final = ("verdict", "calls_verdict", "judged_diff", "q", "detectable", "reason")
"""verdict: a word of DESIGN section 1 for the time (of overall rows: the number); calls_verdict: for the calls per
step; judged_diff: DIFF over all runs without what all operators share (of overall rows with it); q: the share of false
discoveries among all that are as sure; detectable: the smallest DIFF that these runs would have shown; reason: of the
verdict. All NA where nothing was judged."""

JUMPS: Final = "jumps between two levels in older runs"
"""What the reason of a verdict begins with where a change is one of the jumps that older runs show."""

BACK: Final = "back to the level of "
"""What the reason of a verdict says, before the version, where a series is at a level that it had before."""

BELOW_FLOOR: Final = "below the contribution floor"
"""The reason of a change that is sure and large enough, but of too small a part of the step."""

TOO_NOISY: Final = "varies too much to say"
"""The reason of a change of which the runs do not say whether it is large enough."""

INCOMPARABLE: Final = "incomparable"
TOO_FEW: Final = "too few runs"
"""Why two sides were not judged."""


class Judgement(Struct, frozen=True):
    """What the runs of both sides can tell. `judged`: whether rows have verdicts.

    `sentences`: how much the runs can tell, or why there are no verdicts; what was taken out; which tables have none.
    `shared`: how much slower all operators of the candidate are together, a quotient, which the verdicts leave out;
    None where nothing was taken out. `operators`: on how many that rests. `counts`: verdict -> operators. `refusal`: ""
    where it was judged; INCOMPARABLE where no number of runs would do, else TOO_FEW.
    """

    judged: bool
    sentences: tuple[str, ...]
    shared: float | None = None
    operators: int = 0
    counts: tuple[tuple[str, int], ...] = ()
    refusal: str = ""
