"""The tests that decide a finding, in words: what each compares, and the sentence with its number and limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tracker.units import counted


class WordsOfTest(Struct, frozen=True):
    """A test in words.

    - meaning: what it compares
    - sentence: with `{value}` and `{limit}`, where it has them; within 70 characters, one line of a terminal
    - fails: the sentence where it does not pass; "" for the same
    - missing: the sentence where there is no number; "" for one that always has it
    - note: what the sentence has no room for
    """

    meaning: str
    sentence: str
    fails: str = ""
    missing: str = ""
    note: str = ""


RUNS_BEFORE: Final = WordsOfTest(
    "newest runs of the level before", "{value} of the level before; at least {limit} needed"
)
RUNS_BEFORE_WITH_OLDER_NOISE: Final = WordsOfTest(
    "newest runs of the level before, with the noise of the level before that",
    RUNS_BEFORE.sentence,
    note="the level before has few runs: the noise of the level before that counts, too",
)
RUNS_AFTER: Final = WordsOfTest(
    "runs that show the change together", "{value} with the change; at least {limit} needed"
)
CHANGE: Final = WordsOfTest("change", "changed by {value}; the limit is {limit}")
CHANGE_WITHOUT_DRIFT: Final = WordsOfTest(
    "change, machine-wide drift removed", "changed by {value}, machine-wide drift removed; the limit is {limit}"
)
CHANGE_OF_QUARTILE: Final = WordsOfTest(
    "change, by the lower quartile of the calls of a step, which varied less than their sum",
    "changed by {value} at the lower quartile of calls; the limit is {limit}",
    note="the lower quartile of the calls of a step varied less than their sum",
)
CHANGE_OF_MEDIAN: Final = WordsOfTest(
    "change, by the median of the calls of a step, which varied less than their sum",
    "changed by {value} at the median of calls; the limit is {limit}",
    note="the median of the calls of a step varied less than their sum",
)
CHANGE_OF_QUARTILE_WITHOUT_DRIFT: Final = WordsOfTest(
    "change, machine-wide drift removed, by the lower quartile of the calls of a step, which varied less than their "
    "sum",
    CHANGE_OF_QUARTILE.sentence,
    note=f"{CHANGE_OF_QUARTILE.note}; machine-wide drift is removed from the change",
)
CHANGE_OF_MEDIAN_WITHOUT_DRIFT: Final = WordsOfTest(
    "change, machine-wide drift removed, by the median of the calls of a step, which varied less than their sum",
    CHANGE_OF_MEDIAN.sentence,
    note=f"{CHANGE_OF_MEDIAN.note}; machine-wide drift is removed from the change",
)
MACHINE: Final = WordsOfTest(
    "machine-wide drift, at least half of the change: no operator alone is the cause",
    "operators together changed by {value}; half of the change is {limit}",
    note="where machine-wide drift is at least half of the change, no operator alone is the cause",
)
_NOT_BEYOND: Final = "too many pairs of a new run and one before are the wrong way round"
BEYOND: Final = WordsOfTest(
    "runs after are beyond the runs before: two runs in all pairs; each run more allows one pair the other way round",
    "new runs lie beyond those before, but a pair for each after the second",
    _NOT_BEYOND,
)
BEYOND_FOR_LATE: Final = WordsOfTest(
    "runs after are beyond the runs before, but for one pair in eight",
    "new runs lie beyond those before, in at least 7 of 8 pairs of runs",
    _NOT_BEYOND,
)
CERTAIN: Final = WordsOfTest(
    "new and removed operators, of the step", "new and removed operators are {value} of the step; the limit is {limit}"
)
CERTAIN_FOR_ONE_RUN: Final = WordsOfTest(
    "new and removed operators, of the step: at least half of its change, for one run to decide",
    "new and removed operators are {value} of the step; the limit is {limit}",
    note="one run decides where operators that are new or gone make up half of the change of the step",
)
CONTRIBUTION: Final = WordsOfTest(
    "change as a part of the step", "the change is {value} of the step; the limit is {limit}"
)
CONTRIBUTION_TO_KIND: Final = WordsOfTest(
    "change as a part of all series of its kind",
    "the change is {value} of all series of its kind; the limit is {limit}",
)
FALSE_DISCOVERY_RATE: Final = WordsOfTest(
    "false discovery rate (q)",
    "false discovery rate (q) of {value}; the limit is {limit}",
    missing="false discovery rate (q) was not computed",
)
FALSE_DISCOVERY_RATE_OF_ONE_RUN: Final = WordsOfTest(
    "false discovery rate (q), by which one run does not decide",
    "false discovery rate (q) of {value}, by which one run does not decide",
    missing=FALSE_DISCOVERY_RATE.missing,
)
CHANCE_WITH_NIGHTS: Final = WordsOfTest(
    "chance (p); nights of this series vary more than its runs",
    "chance (p) of {value}; the limit is {limit}",
    missing="chance (p) was not computed",
    note="nights of this series vary more than its runs, so that the limit is stricter",
)
CHANCE_OF_SPLIT: Final = WordsOfTest(
    "chance (p), times the places of the split",
    "chance (p) of {value} at any place of the split; the limit is {limit}",
    missing=CHANCE_WITH_NIGHTS.missing,
)
SMALLEST_CHANGE: Final = WordsOfTest(
    "smallest change that such runs show in 4 of 5 cases",
    "smallest change that such runs show in 4 of 5 cases: {value}",
)


def describe_nights(nights: int) -> str:
    """Return what the test of the night effect means, which has no limit. `nights`: of the level before."""
    return f"night effect ({counted(nights, 'night')} before, one after), part of the noise"


WORDS_OF_TESTS: Final[Mapping[str, WordsOfTest]] = {
    words.meaning: words
    for words in (
        RUNS_BEFORE, RUNS_BEFORE_WITH_OLDER_NOISE, RUNS_AFTER, CHANGE, CHANGE_WITHOUT_DRIFT, CHANGE_OF_QUARTILE,
        CHANGE_OF_MEDIAN, CHANGE_OF_QUARTILE_WITHOUT_DRIFT, CHANGE_OF_MEDIAN_WITHOUT_DRIFT, MACHINE, BEYOND,
        BEYOND_FOR_LATE, CERTAIN, CERTAIN_FOR_ONE_RUN, CONTRIBUTION, CONTRIBUTION_TO_KIND, FALSE_DISCOVERY_RATE,
        FALSE_DISCOVERY_RATE_OF_ONE_RUN, CHANCE_WITH_NIGHTS, CHANCE_OF_SPLIT, SMALLEST_CHANGE,
    )
}  # fmt: skip
"""The words of a test by its meaning."""
