"""What one side alone is compared with: runs of its line before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from tracker.compare.references import means, needs_store, resolve, settled
from tracker.detectors.baseline import ENOUGH, WINDOW
from tracker.errors import TooLittleDataError, UsageError
from tracker.judgement import Acceptance, acceptance_of, kept_version, size_of, words_of
from tracker.results import BASELINES
from tracker.results.options import check_words
from tracker.results.recording import differences
from tracker.store import Store, judged, queries
from tracker.store.judged import LineRun
from tracker.units import counted, format_numbers

_REASONS: Final = 4
"""Reasons for leaving runs out that are named, the newest ones."""


def baseline_of(
    store: Store | None, candidate: str, against: str = "window", *, workload: str | None = None
) -> tuple[str, str]:
    """The side that `candidate` is compared with, as `diff` takes it, and sentences that say which runs it is, and why
    others are not in it.

    `against`: `window`, the last 8 accepted runs of earlier versions (see `judgement.acceptance_of`), at least 3 where
    there are 3 active ones; `previous`, all runs of the version before; `pinned`, those of the pinned version. All of
    the workload, configuration and device of the candidate. UsageError where there are none; for earlier ones it is
    a TooLittleDataError.
    """
    check_words("baseline", (against,), BASELINES)
    if store is None or not needs_store(candidate):
        raise UsageError(f"{candidate} has no earlier versions", remedy="name the baseline as well: BASELINE CANDIDATE")
    candidate = settled(store, candidate, workload)
    if not needs_store(candidate):
        raise UsageError(f"{candidate} has no earlier versions", remedy="name the baseline as well: BASELINE CANDIDATE")
    run_ids, _ = resolve(store, candidate, workload)
    with store.connect() as connection:
        lines = judged.lines(connection, run_ids)
        if len(lines) > 1:
            raise UsageError(
                f"{candidate} has runs of several workloads, devices or configurations",
                remedy="name some of them: VERSION@DEVICE or run:ID,run:ID",
            )
        runs = judged.runs_of(connection, lines[0])
        recordings = queries.recorded(connection, [*run_ids, *(run.run_id for run in runs)])
    named = queries.runs_by_id(store, run_ids)
    of = str(named["workload"].iloc[0])
    order = queries.order_of_versions(store, of)
    first = min(order[label] for label in named["version"])
    earlier = [run for run in runs if order[run.version] < first]
    chosen = _chosen(earlier, [run for run in runs if run.pinned and run.run_id not in run_ids], against)
    if not chosen:
        what = "pinned" if against == "pinned" else "earlier"
        kind = UsageError if against == "pinned" else TooLittleDataError  # the first version has none, and no fault
        raise kind(
            f"{candidate} has no {what} runs on its device and configuration",
            remedy="name the baseline as well: BASELINE CANDIDATE",
        )
    if against == "window":
        acceptance = acceptance_of(store, lines[0], runs, len(earlier))
        unlike = _recorded_differently(recordings, run_ids, earlier)
        with store.connect() as connection:
            kept = kept_version(connection, lines[0], run_ids)
        judged_by = kept.baseline if kept is not None else frozenset()
        own = [place for place, run in enumerate(earlier) if run.run_id in judged_by]
        own = own if len(own) >= ENOUGH else []
        places, because = window(acceptance, unlike, own)
        chosen = [earlier[place] for place in places]
    else:
        because = ""
    words = {
        "window": f"the last {counted(len(chosen), 'accepted run')} of earlier versions",
        "previous": "the version before",
        "pinned": "the pinned version",
    }[against]
    numbers = sorted(run.run_id for run in chosen)
    side = ",".join(f"run:{number}" for number in numbers)
    if against != "window":
        device = f"{named['vendor'].iloc[0]} {named['device'].iloc[0]}".strip()
        names = (chosen[0].version, f"{chosen[0].version}@{device}")
        # where a name means the same runs, people know them by it
        side = next((name for name in names if means(store, name, numbers, workload)), side)
    return side, f"The baseline is {words}: {_by_version(chosen)}.{because}"


def _chosen(earlier: Sequence[LineRun], pinned: Sequence[LineRun], against: str) -> Sequence[LineRun]:
    if against == "pinned":
        return pinned
    if against == "previous":
        return [run for run in earlier if run.version_id == earlier[-1].version_id]
    return earlier


def _recorded_differently(
    recordings: Mapping[int, queries.Recorded], run_ids: Sequence[int], earlier: Sequence[LineRun]
) -> dict[int, str]:
    """The places of the `earlier` runs that were not recorded as any of `run_ids`, and in what they differ; none where
    that would leave no run.
    """
    own = [recordings[run_id].recording for run_id in run_ids]
    found = {}
    for place, run in enumerate(earlier):
        recording = recordings[run.run_id].recording
        if recording not in own:
            found[place] = ", ".join(one.aspect.words for one in differences([recording], own)) or "their settings"
    return found if len(found) < len(earlier) else {}


def window(
    acceptance: Acceptance, unlike: Mapping[int, str] = MappingProxyType({}), judged_by: Sequence[int] = ()
) -> tuple[list[int], str]:
    """The places of the runs of a window, in order, and sentences on why others are not in it, "" without any.

    `unlike`: places of runs that were recorded differently, which are in no window, and in what they differ.
    `judged_by`: the places of the runs that the version was judged by; none where it was not, or by too few.

    Where fewer than 3 runs are accepted, others stand in, the newest first: before the accepted step, then those with a
    suspicion, then those with an open regression.
    """
    runs = acceptance.runs
    alike = [place for place in range(len(runs)) if place not in unlike]
    accepted = list(judged_by) or [place for place in alike if acceptance.is_accepted(place)][-WINDOW:]
    others = sorted(set(alike) - set(accepted), key=lambda place: (_doubt(acceptance, place), -place))
    standing_in = [] if judged_by else others[: max(0, ENOUGH - len(accepted))]
    places = sorted([*accepted, *standing_in])
    # with a full window only the runs between its own were passed over; what is older was not its turn
    since = places[0] if len(accepted) == WINDOW else 0
    passed_over = [
        place for place in alike if place >= since and place not in places and not acceptance.is_accepted(place)
    ]
    sentences = [
        _other_recordings(acceptance, {place: words for place, words in unlike.items() if place >= since}),
        _left_out(acceptance, [place for place in passed_over if place not in standing_in]),
        _standing_in(acceptance, standing_in),
        _inside(acceptance, places),
    ]
    return places, "".join(f" {sentence}" for sentence in sentences if sentence)


def _doubt(acceptance: Acceptance, place: int) -> int:
    spans = acceptance.open[place]
    return 2 if any(span.confirmed for span in spans) else 1 if spans else 0


def _other_recordings(acceptance: Acceptance, unlike: Mapping[int, str]) -> str:
    by_words: dict[str, list[int]] = {}
    for place, words in unlike.items():
        by_words.setdefault(words, []).append(acceptance.runs[place].run_id)
    texts = [f"run {format_numbers(sorted(numbers))} ({words})" for words, numbers in by_words.items()]
    return f"Recorded differently, so not in it: {'; '.join(texts)}." if texts else ""


def _left_out(acceptance: Acceptance, places: Sequence[int]) -> str:
    reasons = _reasons(acceptance, places)
    return f"Left out: {'; '.join(reasons)}." if reasons else ""


def _standing_in(acceptance: Acceptance, places: Sequence[int]) -> str:
    reasons = _reasons(acceptance, sorted(places))
    return f"Fewer than {ENOUGH} are accepted, so that others stand in: {'; '.join(reasons)}." if reasons else ""


def _inside(acceptance: Acceptance, places: Sequence[int]) -> str:
    """What was open in the runs of a window, though too small to leave them out."""
    newest = len(acceptance.runs) - 1
    spans = [span for place in places for span in acceptance.small[place] if span.holds(newest)]
    found = {span.finding["finding_id"]: span.finding for span in spans if span.finding["kind"] != "op"}
    rows = sorted(found.values(), key=lambda row: (-size_of(row), row["finding_id"]))
    return f"Open in these runs already, and too small to leave them out: {words_of(rows)}." if rows else ""


def _reasons(acceptance: Acceptance, places: Sequence[int]) -> list[str]:
    """Per reason the runs that it holds for, in order, and the reason."""
    found: dict[str, list[int]] = {}
    for place in places:
        found.setdefault(_reason(acceptance, place), []).append(acceptance.runs[place].run_id)
    reasons = [f"run {format_numbers(sorted(numbers))} ({reason})" for reason, numbers in found.items()]
    more = len(reasons) - _REASONS
    return [*([f"{counted(more, 'more reason')} before"] if more > 0 else []), *reasons[-_REASONS:]]


def _reason(acceptance: Acceptance, place: int) -> str:
    spans = acceptance.open[place]
    if not spans:
        return f"before what was accepted: {words_of(acceptance.steps)}"
    rows: list[Mapping[str, Any]] = [span.finding for span in spans]
    word = "open" if any(span.confirmed for span in spans) else "suspected"
    return f"{word}: {words_of(rows)}"


def _by_version(runs: Sequence[LineRun]) -> str:
    """Which runs of which versions, in order."""
    found: dict[str, list[int]] = {}
    for run in runs:
        found.setdefault(run.version, []).append(run.run_id)
    return ", ".join(f"{version} (run {format_numbers(sorted(numbers))})" for version, numbers in found.items())
