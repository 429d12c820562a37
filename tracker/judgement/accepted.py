"""Which runs of a line may be a baseline: none in which a regression that matters was open, none of a level before.

The follower knows it per series; a diff needs one list of runs, so here a run counts by what carries its step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tracker.detectors import rule
from tracker.detectors.contribution import MATTERS
from tracker.results import DIRECTIONS, shown_name
from tracker.store import Store, queries
from tracker.store.judged import Line, LineRun
from tracker.units import format_diff

Row = Mapping[str, Any]

_REGRESSION: Final = DIRECTIONS[0]
_BY_ITSELF: Final = ("step", "e2e", "throughput", "peak memory")
"""Run-level series that matter by themselves, what is named first; of the parts of a step those do that move it."""
_LEAVES: Final = ("op_name", "op", "kernel", "communication")
"""Kinds whose findings carry the step; those of one kind add up, and two kinds see the same time twice."""
_OVER: Final = frozenset({"recovering", "recovered", "normal", "invalid", "suspect", "vanished"})
"""States of an improvement that is none (any more)."""


class Span(Struct, frozen=True):
    """The runs (places in the line, `end` excluded, None: to the newest) in which a finding was open and bad.

    `confirmed`: else it is a suspicion that the next runs decide.
    """

    finding: Row
    start: int
    end: int | None
    confirmed: bool

    def holds(self, place: int) -> bool:
        """Whether the run was in it."""
        return self.start <= place and (self.end is None or place < self.end)

    def of(self, runs: Sequence[LineRun]) -> Sequence[LineRun]:
        """Those of all `runs` of the line that were in it."""
        return runs[self.start : None if self.end is None else max(self.end, 0)]


class Acceptance(Struct, frozen=True):
    """What is known of the runs of a line, oldest first. `level`: the place from which on the accepted level holds;
    `steps`: the findings that were accepted there. `open`: per run the findings for which it is no baseline. `small`:
    per run that may be one the confirmed findings that matter too little.
    """

    runs: tuple[LineRun, ...]
    level: int
    steps: tuple[Row, ...]
    open: tuple[tuple[Span, ...], ...]
    small: tuple[tuple[Span, ...], ...]

    def is_accepted(self, place: int) -> bool:
        """Whether a run may be a baseline."""
        return place >= self.level and not self.open[place]


def acceptance_of(store: Store, line: Line, runs: Sequence[LineRun], before: int) -> Acceptance:
    """What the findings of a line say of its runs. `runs`: of the line, in order; `before`: only the first so many are
    asked about, so that accepted steps behind them do not count.

    A run is none to measure by while a regression was bad in it that nobody accepted: of the step, of throughput or
    peak memory, or of operators that make 1 % of the step together; nor is it before such a regression that somebody
    expected, or before a step that became better by what counts as a change of steps.
    """
    spans: list[Span] = []
    steps: list[tuple[int, Row]] = []
    for row, found, accepted in _lives(store, line, runs):
        spans += found
        if accepted is not None and accepted < before:
            steps.append((accepted, row))
    device_timed = all(run.timeline == "device" for run in runs)
    level, causes = _level(steps, rule.DEVICE_TIMED_STEP_RATIO if device_timed else rule.HOST_TIMED_STEP_RATIO)
    there = [[span for span in spans if span.holds(place)] for place in range(before)]
    open_in = [_that_matter(own) for own in there]
    small = [
        () if mattering else tuple(span for span in own if span.confirmed)
        for own, mattering in zip(there, open_in, strict=True)
    ]
    return Acceptance(tuple(runs[:before]), level, causes, tuple(open_in), tuple(small))


def known_at(store: Store, line: Line, runs: Sequence[LineRun], place: int) -> list[Row]:
    """The confirmed regressions of a line that were open when the run at `place` of `runs` came, or that somebody had
    accepted.
    """
    found = []
    for row, spans, accepted in _lives(store, line, runs):
        was_open = any(
            span.confirmed and span.start < place and (span.end is None or place <= span.end) for span in spans
        )
        was_expected = row["direction"] == _REGRESSION and accepted is not None and accepted < place
        if was_open or was_expected:
            found.append(row)
    return found


def bad_runs(store: Store, line: Line, runs: Sequence[LineRun]) -> dict[tuple[str, str, str, str, str], frozenset[int]]:
    """Per series of a line (kind, metric, name, input_shapes, part) the runs in which a regression of its level or of
    its calls was open, confirmed or not: no baseline for it.
    """
    found: dict[tuple[str, str, str, str, str], frozenset[int]] = {}
    for row, spans, _ in _lives(store, line, runs):
        if row["change"] not in ("level", "calls"):
            continue
        key = (row["kind"], row["metric"], row["name"], row["input_shapes"], row["part"])
        bad = (run.run_id for span in spans for run in span.of(runs))
        found[key] = found.get(key, frozenset()) | frozenset(bad)
    return found


def _lives(store: Store, line: Line, runs: Sequence[LineRun]) -> Iterator[tuple[Row, list[Span], int | None]]:
    """Every finding of a line with what `_life` says of it."""
    places = {run.run_id: place for place, run in enumerate(runs)}
    begins: dict[int, int] = {}
    for place, run in enumerate(runs):
        begins.setdefault(run.version_id, place)
    first_of = {run.run_id: begins[run.version_id] for run in runs}
    for row, events in queries.lives(store, line):
        yield row, *_life(row, events, places, first_of)


def _life(
    row: Row, events: Iterable[Row], places: Mapping[int, int], first_of: Mapping[int, int]
) -> tuple[list[Span], int | None]:
    """When a finding was bad, and the place from which on what it found is the accepted level, if it is.

    What came or went has no level that begins anew. `places`, `first_of`: of each run, and of the first of its version.
    """
    worse = row["direction"] == _REGRESSION
    spans: list[Span] = []
    since = places.get(row["first_run_id"])
    confirmed, was_bad, accepted = False, False, None
    for event in events:
        place = places.get(event["run_id"])
        kind = event["kind"]
        if kind == "confirmed":
            confirmed, accepted = True, accepted if worse else since
        elif kind == "expected":
            accepted, since = accepted if since is None else since, None
        elif kind == "invalid":
            return [], None
        elif kind == "cleared":
            since = None
        elif kind in ("recovering", "recovered", "vanished") and since is not None and place is not None:
            # the runs by which a recovery is seen are good ones; what is gone is in no run of its version
            begin = first_of[event["run_id"]]
            end = begin if kind == "vanished" else min(begin, place - rule.RECOVERING + 1)
            spans.append(Span(row, since, end, confirmed))
            since, was_bad = None, kind == "vanished"
        elif kind == "returned" and was_bad:
            since, was_bad = first_of[event["run_id"]], False
        elif kind in ("reopened", "relapsed") and place is not None:
            since, confirmed = _again(row, kind, place, places), True
    if since is not None:
        spans.append(Span(row, since, None, confirmed))
    if row["change"] == "presence" or (not worse and row["state"] in _OVER):
        accepted = None
    return spans if worse else [], accepted


def _again(row: Row, kind: str, place: int, places: Mapping[int, int]) -> int:
    """The run with which a finding that came back began again: of one that was reopened, the first that decided it."""
    decided = (row["candidate_runs"] or "").split(" ")[0]
    return min(place, places.get(int(decided), place)) if kind == "reopened" and decided else place


def _that_matter(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Those of the spans of one run for which it is no baseline: of the whole run, the step first; then the largest."""
    confirmed = [span for span in spans if span.confirmed]
    carrying = {id(row) for row in _carrying([span.finding for span in confirmed], MATTERS)}
    found = [span for span in spans if _is_whole(span.finding) or (span.confirmed and id(span.finding) in carrying)]
    return tuple(sorted(found, key=lambda span: (_place(span.finding), -size_of(span.finding))))


def _is_whole(row: Row) -> bool:
    return row["kind"] == "run" and row["name"] in _BY_ITSELF


def _place(row: Row) -> int:
    return _BY_ITSELF.index(row["name"]) if _is_whole(row) else len(_BY_ITSELF)


def _carrying(rows: Sequence[Row], least: float) -> list[Row]:
    """The findings of the first kind of which all together make so much of the step."""
    for kind in _LEAVES:
        own = [row for row in rows if row["kind"] == kind]
        if sum(map(size_of, own)) >= least - rule.ROUNDING:
            return own
    return []


def size_of(row: Row) -> float:
    """The part of the step that a finding makes, without its sign; 0.0 where it is not known."""
    return abs(float(row["contribution"] or 0.0))


def _level(steps: Sequence[tuple[int, Row]], step_ratio: float) -> tuple[int, tuple[Row, ...]]:
    """The newest place at which a step that matters was accepted, and what it was; 0 without one."""
    groups: dict[tuple[int, str], list[tuple[int, Row]]] = {}
    for place, row in steps:
        groups.setdefault((int(row["version_id"]), str(row["direction"])), []).append((place, row))
    level = 0
    causes: tuple[Row, ...] = ()
    for (_, direction), own in groups.items():
        rows = [row for _, row in own]
        # nobody was asked about what got better, and a restart costs all older runs
        least = MATTERS if direction == _REGRESSION else step_ratio
        mattering = [row for row in rows if _is_whole(row)] or _carrying(rows, least)
        place = min(place for place, _ in own)
        if mattering and place > level:
            level, causes = place, tuple(mattering)
    return level, causes


def words_of(rows: Sequence[Row]) -> str:
    """What findings are, in words: `finding 12 (step +30.4 %) and 3 more`."""
    row = rows[0]
    came = {("presence", True): "ADDED", ("presence", False): "REMOVED"}
    what = came.get((row["change"], row["direction"] == _REGRESSION)) or format_diff(row["ratio"])
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    return f"finding {row['finding_id']} ({shown_name(row['kind'], row['name'])} {what}){more}"
