"""A finding as the judgement knows it: its row, with what it is sorted, covered and explained by."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tracker.results.findings import ListedFinding
from tracker.results.waiting import AwaitedRuns
from tracker.schema.series import KIND, SeriesKey
from tracker.store.tracks import TrackKey

RowKind = TypeVar("RowKind", bound=Struct)
_PLACE_OF_KIND: Final = {kind: place for place, kind in enumerate(KIND)}
"""Kind -> its place among the findings of an incident."""


class IncidentStep(Struct, frozen=True, kw_only=True):
    """How the step changed with an incident, as `ListedIncident` means its parts; None where that is not known.

    `kind`: of which steps; `shift_log`: what all operators share, a log.
    """

    kind: str = ""
    before_ns: float | None = None
    after_ns: float | None = None
    operators_ns: float | None = None
    new_ns: float | None = None
    gone_ns: float | None = None
    machine_ns: float | None = None
    other_operators_ns: float | None = None
    earlier_ns: float | None = None
    beside_ns: float | None = None
    shift_log: float | None = None


class Replaced(Struct, frozen=True, kw_only=True):
    """What replaced what, of which a finding is a part: all of it as one change.

    `head`: the number of the finding that stands for it; the others are as in `ListedFinding`.
    """

    head: int | None
    name: str
    ratio: float | None
    baseline_value: float
    candidate_value: float
    contribution: float
    delta: float
    verdict: str
    cause: str


class FoundFinding(ListedFinding, frozen=True, kw_only=True):
    """A finding, or a suspect, with what is known of it beside its columns.

    - track_key: of its workload, configuration and device; vendor: of the device, "" for a suspect
    - version_id: of the version that it is dated to, the `ordinal`-th of its track, 0 for a suspect
    - base_state: as the judgement says, without the words of users
    - decided_version_id: whose runs decided it; ended_by_version_id: whose runs decided that it was over
    - is_newest: its version is the newest one of its track
    - is_leaf: an operator, whose time adds up to that of the step
    - step: of its incident
    - found_again: the last version of a branch that has it, None on a main line
    - level_runs, level_versions: what its version was compared with
    - awaited, end_awaited: the runs that the version may still get that decided it, or that it was over
    - coverage: how many series of the version that decided it were judged, in words
    - step_verdict: of the step in the version that decided it, "" where it has none
    - replaced: what replaced what, None for a change of its own
    - is_of_no_operator: it is of a kernel that no operator launched
    """

    track_key: TrackKey
    vendor: str
    version_id: int
    ordinal: int
    base_state: str
    decided_version_id: int | None = None
    ended_by_version_id: int | None = None
    is_newest: bool
    is_leaf: bool = False
    step: IncidentStep = IncidentStep()
    found_again: str | None = None
    level_runs: str = ""
    level_versions: tuple[str, ...] = ()
    awaited: AwaitedRuns | None = None
    end_awaited: AwaitedRuns | None = None
    coverage: str = ""
    step_verdict: str = ""
    replaced: Replaced | None = None
    is_of_no_operator: bool = False

    @property
    def key(self) -> SeriesKey:
        """What names its series in its track."""
        return SeriesKey(self.kind, self.metric, self.name, self.input_shapes, self.part, self.step_kind)

    @property
    def is_worse(self) -> bool:
        """Whether it is a regression."""
        return self.direction == "regression"

    @property
    def stands_for_replacement(self) -> bool:
        """Whether all of a replacement is shown in its place."""
        return self.replaced is not None and self.replaced.head == self.finding_id


def as_one(found: FoundFinding) -> FoundFinding:
    """Return a finding as it is shown: one that stands for a replacement as the whole of it, net."""
    whole = found.replaced
    if whole is None or not found.stands_for_replacement:
        return found
    return replace(
        found,
        name=whole.name,
        input_shapes="",
        change="level",
        ratio=whole.ratio,
        baseline_value=whole.baseline_value,
        candidate_value=whole.candidate_value,
        contribution=whole.contribution,
        delta=whole.delta,
        verdict=whole.verdict,
        cause=whole.cause,
        baseline_calls=None,
        candidate_calls=None,
        by_calls=None,
        by_time_per_call=None,
    )


def net_contribution(found: FoundFinding) -> float:
    """Return the part of the step that a finding changed; of one that stands for a replacement, net."""
    if found.replaced is None:
        return found.contribution or 0.0
    return found.replaced.contribution if found.stands_for_replacement else 0.0


def order_in_incident(found: ListedFinding) -> tuple[Any, ...]:
    """Return a sort key: whole runs first, the step before all, then what is in them, the largest part of the step
    first.
    """
    is_step = found.kind == "run" and found.name == "step"
    return (
        not is_step, _PLACE_OF_KIND[found.kind], -abs(found.contribution or 0.0), -abs(found.delta),
        found.finding_id or found.series_id,
    )  # fmt: skip


def keep_columns(kind: type[RowKind], row: RowKind) -> RowKind:
    """Return the fields of `kind` of a row, which is of a class below it."""
    return kind(**{name: getattr(row, name) for name in kind.__struct_fields__})
