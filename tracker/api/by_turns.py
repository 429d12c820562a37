"""`ab`: two builds by turns on this machine, until their pairs decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracker.api.arguments import EMPTY, Place, show_screens, writing
from tracker.errors import UsageError
from tracker.profile.experiments import BASELINE, CANDIDATE, LIMIT_S, MOST_RUNS

if TYPE_CHECKING:
    from tracker.results.experiments import Experiment
    from tracker.store import Store

__all__ = ["ab"]


def ab(
    baseline: str,
    candidate: str,
    command: Sequence[str],
    *,
    store: Store | None = None,
    folder: Place = ".",
    profiles: str | None = None,
    setup: str | None = None,
    links: str | Iterable[str] = (),
    env_baseline: Mapping[str, str] = EMPTY,
    env_candidate: Mapping[str, str] = EMPTY,
    dirty: bool = False,
    within: float | None = None,
    most_runs: int = MOST_RUNS,
    limit_s: float = LIMIT_S,
    run_limit_s: float | None = None,
    seed: int | None = None,
    workload: str | None = None,
    format: str | None = None,
    device: str | None = None,
    tell: Callable[[str], None] | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Experiment:
    """Run two builds by turns until their pairs decide, as `tracker ab` does.

    `command`: its words; `folder`: where it runs, in the repository; `within`: the smallest change that matters, 0.05
    for 5 %; `tell` gets a sentence after each pair. The other arguments are the options of the command. UsageError
    where a side cannot be made, or its command fails, hangs or leaves nothing to measure.
    """
    from tracker import config
    from tracker.experiment import conducting, sources

    if isinstance(command, str) or not command:
        raise UsageError("the command of an experiment is a list of words", remedy='write ["python", "train.py"]')
    settings = config.load()
    request = conducting.Request(
        command=tuple(command),
        baseline=baseline,
        candidate=candidate,
        started_in=Path(folder).resolve(),
        profiles=profiles,
        setup=setup,
        links=(links,) if isinstance(links, str) else tuple(links),
        variables={BASELINE: env_baseline, CANDIDATE: env_candidate},
        is_dirty=dirty,
        within=within,
        most_runs=most_runs,
        limit_s=limit_s,
        run_limit_s=run_limit_s,
        seed=seed,
        workload=workload or settings.workload,
        format=format,
        device=device,
    )
    show_screens()
    with writing(store, create=True) as opened:
        named = sources.with_commits(opened, request)
        return conducting.conduct(opened, named, settings, tell=tell or _say_nothing, on_progress=on_progress)


def _say_nothing(sentence: str) -> None:
    """Stand in where nobody asks what each pair says."""
