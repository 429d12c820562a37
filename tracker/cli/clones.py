"""A branch in a clone that does not hold where it left the main line: what it is judged from is a guess there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tracker.errors import EXIT_TOO_LITTLE_DATA

if TYPE_CHECKING:
    from tracker.results.verdicts import Gate
    from tracker.store import Store

_GIT_S: Final = 10.0
SHALLOW: Final = (
    "this clone is shallow (fetch-depth: 0), so that git cannot say where the branch left the main line: clone with "
    "fetch-depth: 0 (GitHub) or GIT_DEPTH: 0 (GitLab), or git fetch --unshallow, and run the job again"
)


def is_merge_base_lost(store: Store | None, run_ids: Sequence[int]) -> bool:
    """Return whether no merge base is known of a version of a branch among these runs, and this clone is shallow.

    store: None where files are compared without a database.
    """
    if store is None:
        return False
    from tracker.hooks.branch import is_shallow
    from tracker.regressions.judgement import tracks_of
    from tracker.regressions.track import NO_NAMES, read_tracks

    chosen = set(run_ids)
    for track in read_tracks(store, dict.fromkeys(tracks_of(store, run_ids), NO_NAMES)):
        for version, base in track.bases.items():
            is_asked = any(run.run_id in chosen for run in track.runs_of(version))
            if is_asked and base is not None and not base.is_known:
                return is_shallow(os.getcwd(), _GIT_S)
    return False


def gate_of_lost_merge_base(gate: Gate) -> Gate:
    """Return a gate that cannot be judged, since what a branch is compared with is not known."""
    return replace(gate, code=EXIT_TOO_LITTLE_DATA, because=SHALLOW)
