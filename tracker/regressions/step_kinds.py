"""Judges a version whose steps are of several kinds, each kind by itself: a mix of steps that changed is no change.

All series of a kind are one track: its step, the parts of it, and the operators in it. The series over all steps are
compared only with runs whose steps have no kinds, as those that were read before kinds were known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import I64, Flags
from tracker.detect import DEFAULTS, Thresholds, Verdict
from tracker.detect.track import Track
from tracker.regressions.lifecycle import UNDECIDED, Finding, TrackState, VersionResult, judge_next
from tracker.results.verdicts import WORST_FIRST
from tracker.schema.series import OF_WHOLE_CAPTURE

_SEVERAL: Final = 2
_WORST_FIRST: Final = tuple(Verdict[name] for name in WORST_FIRST)


class JudgedKind(Struct, frozen=True):
    """What judging the steps of one kind gives, "" for all steps: its series, the state after the version, the result.

    `rows`: row numbers of its series in the whole track. `of_whole`: they are those of OF_WHOLE_CAPTURE, beside kinds.
    """

    step_kind: str
    rows: I64
    track: Track
    state: TrackState
    result: VersionResult
    of_whole: bool = False


class JudgedVersion(Struct, frozen=True):
    """A judged version: of each kind of its steps, or of all steps together where they have no kinds.

    `found`: the findings that it decided, by the series of the whole track.
    """

    kinds: Sequence[JudgedKind]
    found: Sequence[Finding]

    def choose_main(self, time_of_kind: Mapping[str, float]) -> JudgedKind:
        """Return the kind that stands for the version: that whose step has the worst verdict, then the largest change;
        without a verdict that of which the steps took most time. `time_of_kind`: ns.
        """

        def order(one: JudgedKind) -> tuple[int, float, float]:
            row, judged = step_row(one), one.result.judged
            verdict = Verdict(int(judged.verdict[row])) if row is not None else Verdict.ABSENT
            if verdict in _WORST_FIRST and row is not None:
                return _WORST_FIRST.index(verdict), -abs(float(judged.change[row])), 0.0
            return len(_WORST_FIRST), -time_of_kind.get(one.step_kind, 0.0), 0.0

        of_kinds = [one for one in self.kinds if one.step_kind]
        of_all = [one for one in self.kinds if not one.step_kind and not one.of_whole]
        compared = [one for one in of_kinds if has_base(one)]
        # the runs before may have been read before kinds were known
        own = compared or [one for one in of_all if has_base(one)] or of_kinds or of_all
        return min(own, key=order)


def step_row(one: JudgedKind) -> int | None:
    """Return the series that is the step of a kind, None where it has none."""
    judged = one.result.judged
    return one.track.series.choose_step(judged.new_runs, judged.base_runs)


def has_base(one: JudgedKind) -> bool:
    """Return whether there are runs that the step of a kind is compared with."""
    row = step_row(one)
    return row is not None and bool(one.result.judged.base_runs[row] > 0)


def judge_kinds(track: Track, state: TrackState, version: int, limits: Thresholds = DEFAULTS) -> JudgedVersion:
    """Judge one version, each kind of its steps by itself, and take it into the state."""
    names = track.series.step_kind
    if not (names != "").any():
        result = judge_next(track, state, version, limits)
        return JudgedVersion([JudgedKind("", np.arange(state.series), track, state, result)], result.found)
    has_kind = {kind: ~np.isnan(track.values[names == kind]).all(axis=0) for kind in sorted({*names.tolist()} - {""})}
    kinds = _choose_kinds(track, has_kind, version)

    def judge(kind: str, rows: I64, counting: Flags | None = None, *, of_whole: bool = False) -> JudgedKind:
        part, own = track.take(rows, counting), _take_state(state, rows)
        return JudgedKind(kind, rows, part, own, judge_next(part, own, version, limits), of_whole)

    is_whole = np.array([key.name in OF_WHOLE_CAPTURE for key in track.keys], dtype=bool)
    if not kinds:
        judged = [judge("", np.flatnonzero(names == ""))]
    else:
        # beside kinds, all steps are compared with runs that have none
        is_without = ~np.any([*has_kind.values()], axis=0) | (track.versions == version)
        judged = [
            judge("", np.flatnonzero((names == "") & ~is_whole), is_without),
            judge("", np.flatnonzero((names == "") & is_whole), of_whole=True),
            *(judge(kind, np.flatnonzero(names == kind)) for kind in kinds),
        ]
    _keep_levels(state, version)
    found: list[Finding] = []
    for one in judged:
        found += _put_back(state, one, version)
    return JudgedVersion(judged, found)


def _choose_kinds(track: Track, has_kind: Mapping[str, Flags], version: int) -> list[str]:
    """Return the kinds of steps by which a version is judged: those of its own runs, where these, or runs before them,
    have several. Where all runs have the same one kind, all steps are of it.
    """
    there = [kind for kind, has in has_kind.items() if has.any()]
    if len(there) < _SEVERAL:
        return []
    is_own = track.versions == version
    return [kind for kind, has in has_kind.items() if has[is_own].any()]


def _take_state(state: TrackState, rows: I64) -> TrackState:
    """Return the state of these series alone."""
    place = {row: at for at, row in enumerate(rows.tolist())}
    findings = [replace(one, series=place[one.series]) for one in state.findings if one.series in place]
    return TrackState(
        len(rows),
        levels={version: levels[rows] for version, levels in state.levels.items()},
        settled={version: settled[rows] for version, settled in state.settled.items()},
        waits={version: waits[rows] for version, waits in state.waits.items()},
        findings=findings,
    )


def _keep_levels(state: TrackState, version: int) -> None:
    """Give a version the levels before it in all series; `_put_back` overwrites those that are judged."""
    state.levels[version] = state.current
    state.settled[version] = np.full(state.series, version)
    state.waits[version] = np.zeros(state.series, dtype=np.int64)


def _put_back(state: TrackState, one: JudgedKind, version: int) -> list[Finding]:
    """Take what judging a kind made of its state into that of the whole track; return the findings that it decided."""
    own, rows = one.state, one.rows
    for at in own.levels:
        for whole, part in ((state.levels, own.levels), (state.settled, own.settled), (state.waits, own.waits)):
            if at not in whole:
                whole[at] = np.full(state.series, UNDECIDED if whole is state.levels else 0)
            whole[at][rows] = part[at]
    is_own = set(rows.tolist())
    found_here = {id(finding) for finding in one.result.found}
    findings = [finding for finding in state.findings if finding.series not in is_own]
    decided = []
    for finding in own.findings:
        moved = replace(finding, series=int(rows[finding.series]))
        findings.append(moved)
        if id(finding) in found_here:
            decided.append(moved)
    state.replace_findings(findings)
    return decided
