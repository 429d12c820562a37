"""The functions that answer: sides beside each other, one run, a workload over its versions, what a database or a
folder holds. Without `store`, labels and numbers mean the database of the command line. What is no argument of its own
is a field of the option struct in `tracker.results`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from tracker import compare, results
from tracker.api.arguments import EMPTY, Place, chosen, path_texts, reading, reading_for, show_screens
from tracker.units import MAX_BYTES

if TYPE_CHECKING:
    import pandas as pd

    from tracker.doctor import Findings as Examined
    from tracker.store import Store

__all__ = [
    "advise", "board", "calibrate", "calls", "cluster", "diff", "examine", "experiments", "explain", "findings",
    "history", "log", "matrix", "runs", "show", "status", "thresholds", "versions",
]  # fmt: skip


def diff(
    baseline: Place,
    candidate: Place,
    *,
    store: Store | None = None,
    workload: str | None = None,
    module: str | None = None,
    op: str | None = None,
    kind: str | None = None,
    group: str | None = None,
    ranks: int | Iterable[int] = (),
    stage: int | None = None,
    minimum_ns: int | None = None,
    format: str | None = None,
    flow_category: str | None = None,
    allow_partial: bool = False,
    skip_bad_rows: bool = False,
    max_bytes: int | None = None,
    loaders: str | Iterable[str] = (),
    on_progress: Callable[[str, int, int], None] | None = None,
    baseline_steps: int | Iterable[int] = (),
    candidate_steps: int | Iterable[int] = (),
    step_kind: str | None = None,
    match: Literal["shape", "name"] = "shape",
    max_kernels: int | None = None,
    single_kernels: bool = False,
    op_map: Mapping[str, str] = EMPTY,
    only: str | Iterable[str] = (),
    by: str | Iterable[str] = (),
    depth: int | None = None,
    force: bool = False,
    config: Mapping[str, str] = EMPTY,
    with_flame: bool = False,
) -> results.Diff:
    """Compare candidate against baseline, as `tracker diff` does.

    The sides are what `tracker diff` takes: labels of versions, branches, `run:41`, paths. Without `store`, paths need
    no database and labels mean the one of the command line. `with_flame`: what is saved as .html also draws the tree of
    both sides. The other arguments are the fields of `tracker.results.DiffOptions`.
    """
    options = chosen(results.DiffOptions, locals())
    sides = path_texts([baseline, candidate])
    with reading_for(store, sides) as opened:
        return compare.diff(opened, *sides, options=options)


def matrix(
    *sides: Place,
    store: Store | None = None,
    by: str = "op",
    workload: str | None = None,
    module: str | None = None,
    op: str | None = None,
    kind: str | None = None,
    group: str | None = None,
    ranks: int | Iterable[int] = (),
    stage: int | None = None,
    minimum_ns: int | None = None,
    format: str | None = None,
    flow_category: str | None = None,
    allow_partial: bool = False,
    skip_bad_rows: bool = False,
    max_bytes: int | None = None,
    loaders: str | Iterable[str] = (),
    on_progress: Callable[[str, int, int], None] | None = None,
    step_kind: str | None = None,
    match: Literal["shape", "name"] = "shape",
    config: Mapping[str, str] = EMPTY,
) -> results.Matrix:
    """Compare three or more sides, as `tracker diff` does when it gets that many.

    `by`: a word of `tracker.results.MATRIX_ROWS`. `store` as for `diff`; the other arguments are those fields of
    `tracker.results.DiffOptions` that make sense for more than two sides.
    """
    options = chosen(results.DiffOptions, {**locals(), "by": ()})
    names = path_texts(sides)
    with reading_for(store, names) as opened:
        return compare.matrix(opened, names, by=by, options=options)


def show(
    reference: Place,
    *,
    store: Store | None = None,
    workload: str | None = None,
    module: str | None = None,
    op: str | None = None,
    kind: str | None = None,
    group: str | None = None,
    ranks: int | Iterable[int] = (),
    stage: int | None = None,
    minimum_ns: int | None = None,
    format: str | None = None,
    flow_category: str | None = None,
    allow_partial: bool = False,
    skip_bad_rows: bool = False,
    max_bytes: int | None = None,
    loaders: str | Iterable[str] = (),
    on_progress: Callable[[str, int, int], None] | None = None,
    steps: int | Iterable[int] = (),
    by: str | Iterable[str] = (),
    step_kind: str | None = None,
    depth: int | None = None,
    with_advice: bool = False,
) -> results.Shown:
    """Show one run, as `tracker show` does: where its time went.

    `store` as for `diff`; the other arguments are the fields of `tracker.results.ShowOptions`.
    """
    options = chosen(results.ShowOptions, locals())
    (name,) = path_texts([reference])
    with reading_for(store, [name]) as opened:
        return compare.show(opened, name, options=options)


def calls(
    reference: Place,
    calls: str | None = None,
    *,
    store: Store | None = None,
    calls_of: Literal["operator", "kernel", "collective", "idle"] | None = None,
    shapes: str | None = None,
    workload: str | None = None,
    module: str | None = None,
    op: str | None = None,
    kind: str | None = None,
    group: str | None = None,
    ranks: int | Iterable[int] = (),
    stage: int | None = None,
    minimum_ns: int | None = None,
    format: str | None = None,
    flow_category: str | None = None,
    allow_partial: bool = False,
    skip_bad_rows: bool = False,
    max_bytes: int | None = None,
    loaders: str | Iterable[str] = (),
    on_progress: Callable[[str, int, int], None] | None = None,
    steps: int | Iterable[int] = (),
    step_kind: str | None = None,
) -> results.CallList:
    """List the single calls of the name `calls` in one run, as `tracker show RUN --calls NAME` does.

    `store` as for `diff`; the other arguments are the fields of `tracker.results.CallsOptions`.
    """
    options = chosen(results.CallsOptions, locals())
    (name,) = path_texts([reference])
    with reading_for(store, [name]) as opened:
        return compare.list_calls(opened, name, options=options)


def cluster(
    *sides: Place,
    store: Store | None = None,
    workload: str | None = None,
    ranks: int | Iterable[int] = (),
    stage: int | None = None,
    steps: int | Iterable[int] = (),
    microbatches: int | None = None,
    step_kind: str | None = None,
    only: str | Iterable[str] = (),
    format: str | None = None,
    flow_category: str | None = None,
    allow_partial: bool = False,
    skip_bad_rows: bool = False,
    max_bytes: int | None = None,
    loaders: str | Iterable[str] = (),
    on_progress: Callable[[str, int, int], None] | None = None,
) -> results.Cluster:
    """Compare the ranks of a run, or of two runs rank by rank, as `tracker cluster` does.

    `store` as for `diff`; the other arguments are the fields of `tracker.results.ClusterOptions`.
    """
    from tracker.ranks import cluster as compare_ranks

    options = chosen(results.ClusterOptions, locals())
    names = path_texts(sides)
    with reading_for(store, names) as opened:
        return compare_ranks(opened, *names, options=options)


def advise(
    side: Place,
    baseline: Place | None = None,
    *,
    store: Store | None = None,
    workload: str | None = None,
    everything: bool = False,
    rules: str | Iterable[str] = (),
    step_kind: str | None = None,
    only: str | Iterable[str] = (),
    microbatches: int | None = None,
    fail_on: Literal["high", "medium"] | None = None,
    format: str | None = None,
    flow_category: str | None = None,
    allow_partial: bool = False,
    skip_bad_rows: bool = False,
    max_bytes: int | None = None,
    loaders: str | Iterable[str] = (),
    on_progress: Callable[[str, int, int], None] | None = None,
) -> results.Advised:
    """Advise what could make a side faster, as `tracker advise` does; with a `baseline` what is new, grown or gone.

    `store` as for `diff`; the other arguments are the fields of `tracker.results.AdviseOptions`.
    """
    from tracker.compare.advised import advise as find

    options = chosen(results.AdviseOptions, locals())
    names = path_texts([side] if baseline is None else [baseline, side])
    with reading_for(store, names) as opened:
        return find(opened, names[-1], *names[:-1], options=options)


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
    last: int | None = None,
    from_version: str | None = None,
    to_version: str | None = None,
    x_axis: Literal["version", "date"] = "version",
    y_axis: Literal["fit", "zero", "change"] = "fit",
) -> results.History:
    """Return series over versions, as `tracker history` shows them.

    `key`: a name, a pattern, or the number of a series; the step where nothing else is named. Without `store`, the
    database of the command line. The other arguments are the fields of `tracker.results.HistoryOptions`.
    """
    from tracker.regressions.history import history as history_of

    named = "step" if key is None and top is None and module is None else key
    options = chosen(results.HistoryOptions, {**locals(), "key": str(named) if isinstance(named, int) else named})
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
) -> results.Log:
    """Return the versions of a workload and what each of them brought, as `tracker log` does.

    Without `store`, the database of the command line. The other arguments are the fields of
    `tracker.results.LogOptions`.
    """
    options = chosen(results.LogOptions, locals())
    with reading(store) as opened:
        return compare.log(opened, options=options)


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
) -> results.Findings:
    """Return confirmed regressions and improvements by version, as `tracker findings` does.

    Without `store`, the database of the command line. The other arguments are the fields of
    `tracker.results.FindingsOptions`.
    """
    from tracker.regressions.inbox import findings as findings_of

    options = chosen(results.FindingsOptions, locals())
    with reading(store) as opened, opened.reading():
        return findings_of(opened, options=options)


@overload
def explain(finding_id: int, *, store: Store | None = None) -> results.ExplainedFinding: ...


@overload
def explain(
    finding_id: str, *, store: Store | None = None
) -> results.ExplainedFinding | list[results.ExplainedFinding]: ...


def explain(
    finding_id: int | str, *, store: Store | None = None
) -> results.ExplainedFinding | list[results.ExplainedFinding]:
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
        found = [explain_one(opened, number) for number in numbers or findings_of(opened, incidents[0])]
    return found if incidents else found[0]


def board(
    *,
    store: Store | None = None,
    workload: str | None = None,
    device: str | None = None,
    owner: str | None = None,
    last: int = 30,
) -> results.Board:
    """Where every track stands, as `tracker board` shows it. The arguments are the fields of
    `tracker.results.BoardOptions`.
    """
    from tracker import config
    from tracker.regressions.board import board as board_of

    options = chosen(results.BoardOptions, locals())
    owners = config.load().alerts.owners if owner is not None else ()
    with reading(store) as opened:
        return board_of(opened, options=options, owners=owners)


def calibrate(
    references: str | Iterable[str],
    *,
    store: Store | None = None,
    workload: str | None = None,
    device: str | None = None,
    splits: int = 100,
    noisiest: int = 10,
) -> results.Calibration:
    """Estimate the smallest detectable change from repeated runs of one version, as `tracker calibrate` does.

    `references`: the label of a version, or its runs (`run:41`). Without `store`, the database of the command line. The
    other arguments are the fields of `tracker.results.CalibrateOptions`.
    """
    from tracker.regressions.calibrate import calibrate as calibrate_runs

    options = chosen(results.CalibrateOptions, locals())
    named = [references] if isinstance(references, str) else list(references)
    with reading(store) as opened:
        return calibrate_runs(opened, named, options=options)


def runs(
    *,
    store: Store | None = None,
    version: str | None = None,
    workload: str | None = None,
    device: str | None = None,
    tag: str | None = None,
    search: str | None = None,
    state: Literal["active", "excluded", "deleted", "all"] = "active",
    outdated: bool = False,
    limit: int | None = None,
) -> pd.DataFrame:
    """Return the runs of a database, the newest first, one row each; the columns of `tracker runs --format json`.

    `device`: part of vendor and model. `tag`: `key` or `key=value`. `search`: words that the run has in its labels,
    tags or files. `outdated`: only those that `tracker ingest --again` would read again, and `why`. `limit`: at most so
    many, None for all. Without `store`, the database of the command line. UsageError for a version, workload or device
    without runs.
    """
    from tracker.results.options import check_words
    from tracker.store import queries

    check_words("state", (state,), ("active", "excluded", "deleted", "all"))
    with reading(store) as opened:
        queries.check_filters(opened, workload=workload, device=device, version=version)
        found = queries.runs(
            opened, version=version, workload=workload, device=device, tag=tag, search=search, state=state,
            limit=None if outdated else limit,
        )  # fmt: skip
        if outdated:
            from tracker import config, intake

            found = intake.outdated_runs(opened, found, config.load().loaders).taken(slice(0, limit))
        return found.frame


def experiments(*, store: Store | None = None) -> pd.DataFrame:
    """Return all experiments of `tracker ab`, the newest first, one row each; the columns of `tracker experiments
    --format json`. Without `store`, the database of the command line.
    """
    from tracker.columns import Columns
    from tracker.experiment.results import list_experiments
    from tracker.results.experiments import ListedExperiment

    with reading(store) as opened:
        return Columns.of_structs(ListedExperiment, list_experiments(opened)).frame


def versions(workload: str | None = None, *, store: Store | None = None) -> pd.DataFrame:
    """Return the versions in their order, one row each; the columns of `tracker versions --format json`.

    Without `store`, the database of the command line. UsageError for a workload without runs.
    """
    from tracker.store import queries

    with reading(store) as opened:
        queries.check_filters(opened, workload=workload)
        return queries.versions_with_branches(opened, workload).frame


def thresholds(workload: str | None = None, *, store: Store | None = None) -> pd.DataFrame:
    """Return the detection thresholds that users set, one row each; without a row, the defaults hold.

    Columns: those of `tracker thresholds --format json`. Without `store`, the database of the command line.
    """
    from tracker.store import queries

    with reading(store) as opened:
        return queries.thresholds(opened, workload).frame


def status(*, store: Store | None = None) -> results.Status:
    """Return what watches, what waits and what is stuck, as `tracker status` does. Nothing is changed.

    Without `store`, the database of the command line.
    """
    from tracker import config, watch
    from tracker.config import spools

    with reading(store) as opened:
        settings = config.load(opened.engine.url.render_as_string(hide_password=False) if store else None)
        return watch.status(
            opened,
            now_ns=time.time_ns(),
            spools=spools.spools_of(settings),
            shut=spools.shut_spools_of(settings),
            alerts=settings.alerts,
        )


def examine(
    paths: Place | Iterable[Place],
    *,
    format: str | None = None,
    flow_category: str | None = None,
    allow_partial: bool = False,
    skip_bad_rows: bool = False,
    max_bytes: int = MAX_BYTES,
    loaders: str | Iterable[str] = (),
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Examined:
    """Return what files and folders hold, before they are ingested, as `tracker doctor` does; nothing is written.

    A file that cannot be read is one of the `failures`, not an error. The other arguments are those fields of
    `tracker.intake.IngestOptions` that say how to read.
    """
    from tracker.doctor import examine as examine_paths
    from tracker.intake import IngestOptions

    options = chosen(IngestOptions, locals())
    show_screens()
    return examine_paths([Path(path) for path in path_texts(paths)], options)
