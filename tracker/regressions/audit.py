"""The judge audits itself: how much it found of the newest versions, and how much of that in one night."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from tracker.regressions.found import FoundFinding
from tracker.regressions.track import TrackRuns
from tracker.results.audit import JudgeAudit
from tracker.store.tracks import TrackKey

LAST: Final = 30
"""Versions of a track that are looked at."""


def audit_judge(tracks: Sequence[TrackRuns], rows: Sequence[FoundFinding]) -> JudgeAudit:
    """Return what was found in the last 30 versions of each track. `rows`: of `inbox.found_rows`, of these tracks.

    A finding is of the version that it is dated to. Suspects are none yet, and a series that moved twice counts twice.
    """
    versions: set[tuple[TrackKey, int]] = set()
    for track in tracks:
        versions |= {(track.key, version) for version in track.order[-LAST:]}
    moved: Counter[tuple[str, str]] = Counter()
    directions: Counter[str] = Counter()
    invalid = 0
    for row in rows:
        if row.finding_id is None or (row.track_key, row.version_id) not in versions:
            continue
        moved[row.workload, row.version] += 1
        directions[row.direction] += 1
        invalid += row.state == "invalid"
    (workload, version), most = next(iter(moved.most_common(1)), (("", ""), 0))
    return JudgeAudit(
        versions=len(versions),
        slower=directions["regression"],
        faster=directions["improvement"],
        workload=workload,
        version=version,
        in_one_version=most,
        invalid=invalid,
    )
