"""`diff`, `matrix` and `show`: sides beside each other, and one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from tracker.api.arguments import EMPTY, Place, chosen, path_texts, reading_for

if TYPE_CHECKING:
    from tracker.results import Advised, Cluster, Diff, Matrix, Shown
    from tracker.store import Store


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
    on_progress: Callable[[str, int, int], None] | None = None,
    baseline_steps: int | Iterable[int] = (),
    candidate_steps: int | Iterable[int] = (),
    match: Literal["shape", "name"] = "shape",
    max_kernels: int | None = None,
    op_map: Mapping[str, str] = EMPTY,
    only: str | Iterable[str] = (),
    by: str | Iterable[str] = (),
    depth: int | None = None,
    force: bool = False,
    config: Mapping[str, str] = EMPTY,
) -> Diff:
    """Compare candidate against baseline, as `tracker diff` does.

    The sides are what `tracker diff` takes: labels of versions, `run:41`, paths. Without `store`, paths need no
    database and labels mean the one of the command line. The other arguments are the fields of
    `tracker.results.DiffOptions`.
    """
    from tracker.compare import diff as compare
    from tracker.results import DiffOptions

    options = chosen(DiffOptions, locals())
    sides = path_texts([baseline, candidate])
    with reading_for(store, sides) as opened:
        return compare(opened, *sides, options=options)


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
    on_progress: Callable[[str, int, int], None] | None = None,
    match: Literal["shape", "name"] = "shape",
    config: Mapping[str, str] = EMPTY,
) -> Matrix:
    """Compare three or more sides, as `tracker diff` does when it gets that many.

    `by`: a word of `tracker.results.MATRIX_ROWS`. `store` as for `diff`; the other arguments are those fields of
    `tracker.results.DiffOptions` that make sense for more than two sides.
    """
    from tracker.compare import matrix as compare
    from tracker.results import DiffOptions

    options = chosen(DiffOptions, {name: value for name, value in locals().items() if name != "by"})
    names = path_texts(sides)
    with reading_for(store, names) as opened:
        return compare(opened, names, by=by, options=options)


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
    on_progress: Callable[[str, int, int], None] | None = None,
    steps: int | Iterable[int] = (),
    by: str | Iterable[str] = (),
    depth: int | None = None,
    with_advice: bool = False,
) -> Shown:
    """Show one run, as `tracker show` does: where its time went.

    `store` as for `diff`; the other arguments are the fields of `tracker.results.ShowOptions`.
    """
    from tracker.compare import show as show_run
    from tracker.results import ShowOptions

    options = chosen(ShowOptions, locals())
    (name,) = path_texts([reference])
    with reading_for(store, [name]) as opened:
        return show_run(opened, name, options=options)


def cluster(
    *sides: Place,
    store: Store | None = None,
    workload: str | None = None,
    ranks: int | Iterable[int] = (),
    stage: int | None = None,
    steps: int | Iterable[int] = (),
    microbatches: int | None = None,
    only: str | Iterable[str] = (),
    format: str | None = None,
    flow_category: str | None = None,
    allow_partial: bool = False,
    skip_bad_rows: bool = False,
    max_bytes: int | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Cluster:
    """Compare the ranks of a run, or of two runs rank by rank, as `tracker cluster` does.

    `store` as for `diff`; the other arguments are the fields of `tracker.results.ClusterOptions`.
    """
    from tracker.ranks import cluster as compare
    from tracker.results import ClusterOptions

    options = chosen(ClusterOptions, locals())
    names = path_texts(sides)
    with reading_for(store, names) as opened:
        return compare(opened, *names, options=options)


def advise(
    side: Place,
    baseline: Place | None = None,
    *,
    store: Store | None = None,
    workload: str | None = None,
    everything: bool = False,
    rules: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
    microbatches: int | None = None,
    fail_on: Literal["high", "medium"] | None = None,
    format: str | None = None,
    flow_category: str | None = None,
    allow_partial: bool = False,
    skip_bad_rows: bool = False,
    max_bytes: int | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Advised:
    """Advise what could make a side faster, as `tracker advise` does; with a `baseline` what is new, grown or gone.

    `store` as for `diff`; the other arguments are the fields of `tracker.results.AdviseOptions`.
    """
    from tracker.compare.advised import advise as find
    from tracker.results import AdviseOptions

    options = chosen(
        AdviseOptions, {name: value for name, value in locals().items() if name not in ("side", "baseline")}
    )
    names = path_texts([side] if baseline is None else [baseline, side])
    with reading_for(store, names) as opened:
        return find(opened, names[-1], *names[:-1], options=options)
