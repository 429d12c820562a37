"""What the checks of a capture found (`timeline.checks`), under the headline of what rests on it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from tracker.compare.references import short_labels
from tracker.results.recording import incomplete_of
from tracker.units import counted, format_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.compare.side import LoadedSide

_MOST: Final = 3


def remarks_on_incomplete_captures(sides: Sequence[LoadedSide]) -> tuple[str, ...]:
    """Return what the checks found on each side, behind the name of the side."""
    labels = short_labels([side.side.label for side in sides])
    found: dict[str, None] = {}
    for label, side in zip(labels, sides, strict=True):
        for sentence in _sentences(side):
            found[f"{label}: {sentence}"] = None
    return tuple(found)


def _sentences(side: LoadedSide) -> tuple[str, ...]:
    """Return sentences about records that were lost and times that cannot be: which runs and ranks, and what of them is
    not judged.
    """
    places: dict[tuple[str, str], list[tuple[int, int]]] = {}
    columns = ("run_id", "rank", "quality_reason", "settings")
    for run_id, rank, reason, settings in side.captures.rows(*columns):
        incomplete = incomplete_of(json.loads(settings or "{}"))
        if incomplete is None:
            continue
        words = [*incomplete.forbids, *(["these operators and kernels"] if incomplete.names else [])]
        not_judged = f"; not judged: {', '.join(words)}" if words else ""
        places.setdefault((reason, not_judged), []).append((run_id, rank))
    sentences = [f"{_place(side, own)}{reason}{not_judged}." for (reason, not_judged), own in places.items()]
    if len(sentences) > _MOST:
        more = counted(len(sentences) - _MOST, "other capture")
        return (*sentences[:_MOST], f"{more} are incomplete, too: tracker show --details lists them.")
    return tuple(sentences)


def _place(side: LoadedSide, captures: list[tuple[int, int]]) -> str:
    """Return which captures are meant, where the side has others."""
    runs, ranks = sorted({run_id for run_id, _ in captures}), sorted({rank for _, rank in captures})
    if len(captures) == len(side.captures):
        return ""
    words = [f"run {format_numbers(runs)}"] if len(side.run_ids) > 1 else []
    words += [f"rank {format_numbers(ranks)}"] if len(set(side.captures.listed("rank"))) > 1 else []
    return f"{', '.join(words)}: " if words else ""
