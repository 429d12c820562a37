"""Stored runs that an earlier program, or other settings, read otherwise than a reading of today would."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tracker.limits.touch import touch
from tracker.profile import (
    CHECK_RULES,
    CHECK_SETTING,
    RANGE_RULES,
    RANGE_SETTING,
    READ_AS_NAMED,
    READ_AS_SETTING,
    STEP_SETTING,
)
from tracker.profile.loader_names import idle_rules_of
from tracker.profile.words import TRAINING_LOG
from tracker.results.recording import HOST_MARKERS, find_idle_rules, is_guess
from tracker.timeline import RULES_VERSION

if TYPE_CHECKING:
    from tracker.store import Store
    from tracker.store.recordings import Recorded


def find_outdated(
    store: Store, rules: Mapping[int, int | None], loaders: tuple[str, ...], named_format: str | None = None
) -> dict[int, str]:
    """Return the runs that were read by an earlier program, or with other names of loaders, in order: run -> why.

    rules: run -> version of its naming rules; loaders: the names of today; named_format: that the user names now.
    """
    from tracker.store import queries
    from tracker.store.recordings import recorded

    lack_call_times = set(queries.runs_without_call_times(store, sorted(rules)))
    of_earlier_npu_rules = queries.runs_of_earlier_npu_rules(store, sorted(rules))
    with store.connect() as connection:
        recordings = recorded(connection, rules)
    found = {}
    for run_id in sorted(rules):
        reasons = []
        if rules[run_id] != RULES_VERSION:
            own = "unknown rules" if rules[run_id] is None else f"rules {rules[run_id]}"
            reasons.append(f"names and categories are by {own}, those of today by rules {RULES_VERSION}")
        reasons += _reasons_of_settings(recordings[run_id], loaders)
        if named_format == TRAINING_LOG and any(is_guess(one) for one in recordings[run_id].settings):
            reasons.append("its times are a guess, and the format is named now")
        if run_id in lack_call_times:
            reasons.append("times by calls were not kept")
        if run_id in of_earlier_npu_rules:
            reasons.append("kernels of HCCL, or a host without its NPU, count as the work of a device")
        if reasons:
            found[run_id] = "; ".join(reasons)
    return found


def find_named_formats(store: Store, rules: Mapping[int, int | None]) -> dict[int, str]:
    """Return the runs of which the user named the format, which no look at their files would find: run -> format."""
    from tracker.store.recordings import recorded

    with store.connect() as connection:
        recordings = recorded(connection, rules)
    return {
        run_id: TRAINING_LOG
        for run_id, own in recordings.items()
        if any(one.get(READ_AS_SETTING) == READ_AS_NAMED for one in own.settings)
    }


def _reasons_of_settings(recorded: Recorded, loaders: tuple[str, ...]) -> Iterator[str]:
    """Yield what the settings of the captures of a run say of earlier rules."""
    recording, settings = recorded.recording, recorded.settings
    if recording.timeline == "device" and recording.steps == "marked" and recording.windows == HOST_MARKERS:
        yield "steps are what the host marked, not when the device works on them"
    if recording.reader == "nsys_sqlite" and any(one.get(RANGE_SETTING) != RANGE_RULES for one in settings):
        yield "steps and ranks were found by earlier rules on NVTX ranges"
    if any(STEP_SETTING in one and one.get(CHECK_SETTING) != CHECK_RULES for one in settings):
        yield "not checked for lost launches of graphs, nor for times that cannot be"
    idle_rules = {find_idle_rules(one) for one in settings} - {None}
    if idle_rules - {idle_rules_of(loaders)}:
        yield "idle time and data loading were explained by earlier rules, or with other [readers] loaders"


def find_missing_file(paths: Iterable[Path]) -> str:
    """Return why the files of a run cannot be read again; "" where all are there."""
    known = list(paths)
    for path in known:
        if not _is_file(path):
            return f"{path} is gone"
    return "" if known else "no file of it is known"


def _is_file(path: Path) -> bool:
    with touch(path):
        return path.is_file()
