"""`history`, `log`, `findings`, `explain` and `calibrate`: one workload over its versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, overload

from tracker.api.arguments import EMPTY, chosen, reading

if TYPE_CHECKING:
    from tracker.results import Board, Calibration, ExplainedFinding, Findings, History, Log
    from tracker.store import Store


def history(
    key: str | int | None = None,
    *,
    store: Store | None = None,
    workload: str | None = None,
    kind: str | None = None,
    metric: str | None = None,
    shape: str | None = None,
    module: str | None = None,
    device: str | None = None,
    config: Mapping[str, str] = EMPTY,
    top: int | None = None,
    against: Literal["level", "pinned"] = "level",
) -> History:
    """Return series over versions, as `tracker history` shows them.

    `key`: a name, a pattern, or the number of a series; the step where nothing else is named. Without `store`, the
    database of the command line. The other arguments are the fields of `tracker.results.HistoryOptions`.
    """
    from tracker.regressions.history import history as history_of
    from tracker.results import HistoryOptions

    named = "step" if key is None and top is None and module is None else key
    options = chosen(HistoryOptions, {**locals(), "key": str(named) if isinstance(named, int) else named})
    with reading(store) as opened:
        return history_of(opened, options=options)


def log(
    workload: str | None = None,
    *,
    store: Store | None = None,
    baseline: str | None = None,
    metric: str = "best",
    config: Mapping[str, str] = EMPTY,
    device: str | None = None,
    by: str | Iterable[str] = (),
    last: int | None = None,
) -> Log:
    """Return the versions of a workload and what each of them brought, as `tracker log` does.

    Without `store`, the database of the command line. The other arguments are the fields of
    `tracker.results.LogOptions`.
    """
    from tracker.compare import log as log_of
    from tracker.results import LogOptions

    options = chosen(LogOptions, locals())
    with reading(store) as opened:
        return log_of(opened, options=options)


def findings(
    *,
    store: Store | None = None,
    workload: str | None = None,
    device: str | None = None,
    version: str | None = None,
    kind: str | None = None,
    direction: str | None = None,
    states: str | Iterable[str] | None = None,
    only_new: bool = False,
    every: bool = False,
) -> Findings:
    """Return confirmed regressions and improvements by version, as `tracker findings` does.

    Without `store`, the database of the command line. The other arguments are the fields of
    `tracker.results.FindingsOptions`.
    """
    from tracker.regressions.inbox import findings as findings_of
    from tracker.results import FindingsOptions

    options = chosen(FindingsOptions, locals())
    with reading(store) as opened, opened.reading():
        return findings_of(opened, options=options)


@overload
def explain(finding_id: int, *, store: Store | None = None) -> ExplainedFinding: ...


@overload
def explain(finding_id: str, *, store: Store | None = None) -> ExplainedFinding | list[ExplainedFinding]: ...


def explain(finding_id: int | str, *, store: Store | None = None) -> ExplainedFinding | list[ExplainedFinding]:
    """Return one finding with every test, its runs and its events, as `tracker explain` does.

    `finding_id`: a number, or as text what the command line takes: "12", or "I-3" for a list of all findings of
    an incident that no other one covers, the whole run first. Without `store`, the database of the command line.
    UsageError where there is no such finding or incident.
    """
    from tracker.regressions.actions import numbers_of
    from tracker.regressions.explain import explain as explain_one
    from tracker.regressions.explain import findings_of

    numbers, incidents = numbers_of([str(finding_id)])
    with reading(store) as opened, opened.reading():
        if numbers:
            return explain_one(opened, numbers[0])
        return [explain_one(opened, number) for number in findings_of(opened, incidents[0])]


def board(
    *, store: Store | None = None, workload: str | None = None, device: str | None = None, last: int = 30
) -> Board:
    """Where every track stands, as `tracker board` shows it. The arguments are the fields of
    `tracker.results.BoardOptions`.
    """
    from tracker.regressions.board import board as board_of
    from tracker.results import BoardOptions

    options = chosen(BoardOptions, locals())
    with reading(store) as opened:
        return board_of(opened, options=options)


def calibrate(
    references: str | Iterable[str],
    *,
    store: Store | None = None,
    workload: str | None = None,
    device: str | None = None,
    splits: int = 100,
    noisiest: int = 10,
) -> Calibration:
    """Estimate the smallest detectable change from repeated runs of one version, as `tracker calibrate` does.

    `references`: the label of a version, or its runs (`run:41`). Without `store`, the database of the command line. The
    other arguments are the fields of `tracker.results.CalibrateOptions`.
    """
    from tracker.regressions.calibrate import calibrate as calibrate_runs
    from tracker.results import CalibrateOptions

    options = chosen(CalibrateOptions, locals())
    named = [references] if isinstance(references, str) else list(references)
    with reading(store) as opened:
        return calibrate_runs(opened, named, options=options)
