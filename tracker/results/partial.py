"""What the checks of captures found, and what may therefore not be judged: the one answer that every screen asks.

Show, diff, cluster, advise, findings, page and workbook print its sentences first, and diagnose nothing on records that
it says are lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from tracker.results.recording import incomplete_of, is_guess
from tracker.schema.series import LOST_DEVICE, LOST_HOST, LOST_PARTS, LOST_STEPS, NO_DEVICE_DATA
from tracker.units import counted, format_numbers

_MOST: Final = 3
"""Sentences on captures before the others are counted."""
_NUMBER: Final = re.compile(r"\d[\d.,]*")
_OF_STEPS: Final = frozenset({LOST_DEVICE, LOST_HOST, LOST_PARTS, LOST_STEPS, NO_DEVICE_DATA})

CaptureKey = tuple[int, int]
"""The run and the rank of a capture."""


class Partial(Struct, frozen=True):
    """What the checks of some captures found. `sentences`: each behind the run and the rank where others are whole;
    `forbids`: capture -> what of it is not judged, words of `schema.series` such as LOST_DEVICE; `guesses`: what was
    read of lines of one form, without their numbers -> the one of the sentences that is on the captures of such logs.
    """

    sentences: tuple[str, ...] = ()
    forbids: Mapping[CaptureKey, frozenset[str]] = {}
    guesses: Mapping[str, str] = {}

    @property
    def has_whole_device(self) -> bool:
        """Whether all work of the device is there: else no kernel, idle time or utilisation says anything."""
        return not self.captures_without(LOST_DEVICE)

    @property
    def has_whole_steps(self) -> bool:
        """Whether steps and their parts are whole: else they have no bottleneck, and nothing can be won of them."""
        return not self.captures_of_partial_steps

    @property
    def captures_of_partial_steps(self) -> set[CaptureKey]:
        """Return the captures of which steps or their parts are not judged."""
        return self.captures_without(*_OF_STEPS)

    def captures_without(self, *words: str) -> set[CaptureKey]:
        """Return the captures of which one of these is not judged."""
        return {capture for capture, own in self.forbids.items() if own & set(words)}


def keep_whole(run_ids: Collection[int], partial: Partial) -> list[int]:
    """Return the runs of which steps are judged; all of them where none is: a number of several runs rests on those
    that its verdict rests on. A run of which parts of a step alone are not judged has a step that is.
    """
    without = {run_id for run_id, _ in partial.captures_without(LOST_DEVICE, LOST_HOST, LOST_STEPS)}
    return [run_id for run_id in run_ids if run_id not in without] or [*run_ids]


def find_partial(captures: Iterable[tuple[int, int, str, str | None]]) -> Partial:
    """Return what the checks of `captures` (run, rank, quality_reason, settings as JSON) found."""
    every: list[CaptureKey] = []
    captures_of_sentence: dict[str, list[CaptureKey]] = {}
    forbids: dict[CaptureKey, frozenset[str]] = {}
    guesses: dict[str, str] = {}
    for run_id, rank, reason, settings in captures:
        every.append((run_id, rank))
        settings_of_capture = json.loads(settings or "{}")
        incomplete = incomplete_of(settings_of_capture)
        if incomplete is None:
            continue
        forbids[run_id, rank] = frozenset(incomplete.forbids)
        not_judged = [*incomplete.forbids]
        if incomplete.names:
            not_judged.append("these operators and kernels")
        sentence = f"{reason}; not judged: {', '.join(not_judged)}" if not_judged else reason
        sentence += "; the step is, by the markers of the host." if incomplete.has_markers else "."
        if is_guess(settings_of_capture):
            # each names a line of its own log: the first one is an example of those that differ in its numbers alone
            sentence = guesses.setdefault(_NUMBER.sub("0", sentence), sentence)
        captures_of_sentence.setdefault(sentence, []).append((run_id, rank))
    sentences = [f"{_name_captures(own, every)}{sentence}" for sentence, own in captures_of_sentence.items()]
    others = [capture for own in [*captures_of_sentence.values()][_MOST:] for capture in own]
    if others:
        verb = "is" if len(others) == 1 else "are"
        more = f"{counted(len(others), 'other capture')} {verb} incomplete, too: tracker show RUN of each says why."
        sentences[_MOST:] = [more]
    of_all = {form: sentence for form, sentence in guesses.items() if sentence in sentences}
    return Partial(tuple(sentences), forbids, of_all)


def _name_captures(captures: list[CaptureKey], every: list[CaptureKey]) -> str:
    """Return which captures are meant, by run and rank, where there are others: `run 3, rank 1: `."""
    if len(captures) == len(every):
        return ""
    runs, ranks = (sorted({capture[place] for capture in captures}) for place in range(2))
    has_runs, has_ranks = (len({capture[place] for capture in every}) > 1 for place in range(2))
    if has_runs and has_ranks and len(runs) > 1:
        of_runs = [
            f"run {run_id}, rank {format_numbers([r for run, r in captures if run == run_id])}" for run_id in runs
        ]
        return f"{'; '.join(of_runs)}: "
    words = [f"run {format_numbers(runs)}"] if has_runs else []
    words += [f"rank {format_numbers(ranks)}"] if has_ranks else []
    return f"{', '.join(words)}: " if words else ""
