"""What the words of the screens mean: for docs/glossary.md, and below a page or an HTML file that uses them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from tracker.results.verdicts import GLOSSES, NIGHT_EFFECT, PHI, SO_FAR, VERDICTS

WORDS: Final[Mapping[str, str]] = {
    "budget": "a number that each version must keep, set by users",
    "bubble": "exposed waiting of a stage for other stages of its pipeline",
    "detectable": "the smallest change that these runs would have shown four times in five",
    "E2E": "from the first to the last work of the device; of a capture without steps it stands for the step",
    "exposed": "communication or copies that no compute hides, so that they cost step time",
    "finding": "a confirmed change of one series since one version",
    "floor": "the least time of a kernel: FLOPs by the peak of the device, or bytes by its bandwidth",
    "idle": "time of the step in which nothing runs on the device; without a device, in which no operator runs",
    "incident": "the findings of one version, I-1 and so on",
    "judged": "the change that a verdict rests on: against the runs of the level, without machine-wide drift",
    "level": "the runs since the last lasting change of a series; new runs are compared with the newest 8 of them",
    "machine-wide drift": "how much slower all operators of a run are together, as with a lower clock; removed from "
    "verdicts, not from measured numbers",
    "mean step": "the mean over the steps, which shows the few slow ones that the step, a median, hides",
    NIGHT_EFFECT: GLOSSES[NIGHT_EFFECT],
    "of change": "the part of the change of the step that a row makes",
    "own time": "a step of a rank less its exposed communication: what it would take alone",
    "part": "compute, exposed communication, exposed copies or idle time of a step; they add up to it",
    "partial": "a capture that lost records; what rests on them is not judged",
    "peers": "the captured ranks of the same pipeline stage; without stages, all ranks",
    PHI: GLOSSES[PHI],
    "q": "the false discovery rate: of all rows that count at 0.05, one in 20 may be wrong; not how likely this one is",
    "rest": "what other rows leave of a sum, for medians of parts do not add up to the median of the whole",
    "rows of other runs": "by how much more rows changed that are compared with other runs than the step is",
    "series": "one number of each run, followed over the versions: the step, an operator, memory",
    "since good": "the change of the step since the level before its oldest open regression",
    SO_FAR: GLOSSES[SO_FAR],
    "step": "one iteration; on a device the window in which the device works on it",
    "suspect": VERDICTS["SUSPECT"],
    "throttled": "the clock was held down by heat or power",
    "track": "the runs of one workload, configuration and device",
    "transit": "the shortest time of a collective over all members of its group; the rest of a call is waiting",
    "vs level": "the change against the level, which the verdict rests on",
    "waits": "time in collectives that a rank spends for others",
    "window": "the newest 8 runs of a level, with which a version is compared; of a step, its time on the device",
}
"""Word of a screen -> what it means, without a full stop."""

_ANY_WORD: Final = re.compile(
    rf"(?<![\w:.-])(?:{'|'.join(sorted(map(re.escape, WORDS), key=len, reverse=True))})(?![\w:.-])", re.IGNORECASE
)
_SPELLED: Final[Mapping[str, str]] = {word.lower(): word for word in WORDS}
_REMARK: Final = re.compile(r" \(.*\)$")


def word_of(label: str) -> str:
    """Return the word of the glossary that a label of a column or row is; "" for none.

    >>> word_of("  Mean step"), word_of("rest (medians do not add up)"), word_of("idle time"), word_of("aten::mm")
    ('mean step', 'rest', 'idle', '')
    """
    spelled = _REMARK.sub("", label.strip().lower())
    return _SPELLED.get(spelled) or _SPELLED.get(spelled.removesuffix(" time"), "")


def words_in(texts: Iterable[str]) -> list[str]:
    """Return the words of the glossary that occur in texts, each once, in the order of the glossary.

    >>> words_in(["Own time of peers", "mean step 4.1 ms"])
    ['mean step', 'own time', 'peers']
    """
    found = {_SPELLED[word.lower()] for text in texts for word in _ANY_WORD.findall(text)}
    return [word for word in WORDS if word in found]
