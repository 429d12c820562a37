"""What an ingest prints: a line per run, warnings with the captures that they concern, and what it means."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracker.units import counted, format_diff, format_ns, format_numbers, ranges

if TYPE_CHECKING:
    from tracker.intake import IngestResult, Pack, Read
    from tracker.regressions.tracks import TrackRuns
    from tracker.store import Store

_NAMED: Final = 3
"""So many are named; more are counted."""
_DIFFERENT: Final = 2.0
"""Ratio of step times from which runs are hardly of one model: repeats differ by a few percent."""


def run_lines(store: Store, results: Sequence[IngestResult]) -> list[str]:
    """A line per run: `run 4  small_gpt v08  cpu  rank 0  5 steps  123.90 ms   trace.json.gz`, in columns."""
    from tracker.store import queries

    if not results:
        return []
    step_ns = dict(queries.runs_by_id.columns(store, [one.run_id for one in results]).rows("run_id", "step_ns"))
    names = names_of(results)
    formats = {name for result in results for name in result.formats}
    rows = []
    for result in results:
        states = {"already stored": result.already, "ranks added": result.joined, "details restored": result.restored}
        files = list(dict.fromkeys(names[capture.path] for capture in result.captures))
        row = [
            f"run {result.run_id}",
            f"{result.workload} {result.version}",
            result.device,
            f"rank {result.ranks[0]}" if len(result.ranks) == 1 else f"ranks {ranges(result.ranks)}",
            counted(result.steps, "step"),
            format_ns(step_ns.get(result.run_id)),
            *([" and ".join(result.formats)] if len(formats) > 1 else []),
            ", ".join(files) if len(files) <= _NAMED else f"{files[0]} and {len(files) - 1} more",
        ]
        state = next((words for words, holds in states.items() if holds), "")
        rows.append([*row[:-1], f"{row[-1]}{f'  ({state})' if state else ''}"])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def names_of(results: Sequence[IngestResult]) -> dict[str, str]:
    """Path of each capture -> as much of its end as no other capture shares, and that is not the label of its version.

    Two folders `a/rank0` and `b/rank0` are named with their parents, `c/rank1` is just `rank1`.
    """
    versions = {capture.path: result.version for result in results for capture in result.captures}
    paths = list(versions)
    return {path: _ending(path, [other for other in paths if other != path], versions[path]) for path in paths}


def warnings_of(results: Sequence[IngestResult]) -> list[str]:
    """Each distinct warning once, with the captures that it concerns where several were read, those on runs first."""
    names = names_of(results)
    captures = [capture for result in results for capture in result.captures]
    of_captures = dict.fromkeys(warning for capture in captures for warning in capture.warnings)
    of_runs = dict.fromkeys(warning for result in results for warning in result.warnings if warning not in of_captures)
    folders = {result.run_id: os.path.commonpath([os.path.abspath(c.path) for c in result.captures] or [""])
               for result in results}  # fmt: skip

    def places(result: IngestResult, concerned: Sequence[Read]) -> str:
        """`rank 1, rank 3 of job7` in a run of several captures, else the name of the capture."""
        if len(result.captures) == 1:
            return names[concerned[0].path]
        folder = folders[result.run_id]
        others = [other for other in dict.fromkeys(folders.values()) if other != folder]
        ranks = ", ".join(f"rank {capture.rank}" for capture in concerned)
        return f"{ranks} of {_ending(folder, others, result.version)}"

    lines = list(of_runs)
    for warning in of_captures:
        concerned = [(each, [c for c in each.captures if warning in c.warnings]) for each in results]
        who = [places(result, own) for result, own in concerned if own]
        lines.append(_with_places(warning, who, sum(len(own) for _, own in concerned), len(captures), "capture"))
    return lines


def warnings_of_pack(made: Pack) -> list[str]:
    """Each distinct warning once, with the profiles that it concerns where several were packed."""
    names = {path: _ending(path, [other for other in made.profiles if other != path], "") for path in made.profiles}
    return [
        _with_places(warning, [names[path] for path in places], len(places), len(names), "profile")
        if places
        else warning
        for warning, places in made.warnings.items()
    ]


def _with_places(warning: str, who: Sequence[str], count: int, total: int, what: str) -> str:
    """`warning` about `who`, which are `count` of `total`: by their names, or how many they are."""
    if total == 1:
        return warning
    if count > _NAMED:
        return f"{warning} ({'all ' if count == total else ''}{counted(count, what)})"
    return f"{', '.join(who)}: {warning}"


def _ending(path: str, others: Sequence[str], version: str) -> str:
    parts = Path(path).parts
    ends = [Path(other).parts for other in others]
    for count in range(1, len(parts)):
        own = parts[-count:]
        if not any(end[-count:] == own for end in ends) and str(Path(*own)) != version:
            return str(Path(*own))
    return path


def order_hints(store: Store, results: Sequence[IngestResult]) -> list[str]:
    """A hint for each new version that came after one that seems newer, with the command that moves it."""
    from tracker.reports.commands import command
    from tracker.store import queries
    from tracker.store.order import seems_older_than

    hints = []
    for workload in dict.fromkeys(result.workload for result in results):
        created = Counter(result.version for result in results if result.created and result.workload == workload)
        known = queries.runs_of_versions(store, workload)
        labels = list(known)
        for place, (label, runs) in enumerate(known.items()):
            newer = seems_older_than(label, labels[:place]) if created[label] == runs > 0 else None
            if newer is not None:
                words = command("tracker", "versions", "order", label, "--before", newer, "--workload", workload)
                hints.append(f"{label} is ordered after {newer}, which came in earlier; if it is older: {words}")
    return hints


def mixture_hints(store: Store, results: Sequence[IngestResult]) -> list[str]:
    """A hint for runs that count as repeats of one version, but whose steps are too different for one model."""
    from tracker.store import queries

    if len(results) < 2:
        return []
    stored = queries.runs_by_id.columns(store, [one.run_id for one in results])
    repeats: dict[tuple[str, ...], dict[int, float]] = {}
    for run_id, step_ns, *labels in stored.rows(
        "run_id", "step_ns", "version", "workload", "vendor", "device", "configuration"
    ):
        if step_ns:
            repeats.setdefault(tuple(labels), {})[int(run_id)] = step_ns
    return [
        f"runs {format_numbers(sorted(steps))} count as repeats of {version}, but their steps take "
        f"{format_ns(min(steps.values()))} to {format_ns(max(steps.values()))}; if their models differ: "
        f"tracker runs edit {max(steps)} --workload NAME, or ingest each with --config KEY=VALUE"
        for (version, *_), steps in repeats.items()
        if max(steps.values()) >= _DIFFERENT * min(steps.values())
    ]


def recovered(store: Store) -> frozenset[int]:
    """The findings of regressions that have recovered."""
    from tracker.store import queries

    rows = queries.findings(store)
    return frozenset(row["finding_id"] for row in rows if row["base_state"] == "recovered")


def meaning(store: Store, results: Sequence[IngestResult], before: Collection[int] = ()) -> str:
    """The last line: how the step of each track changed, new and recovered findings, and the next command.

    `before`: the findings that had recovered before the ingest.
    """
    changed = [result for result in results if result.created or result.joined]
    parts = _counts(results) if len(changed) < len(results) else []
    changes = _step_changes(store, changed) if changed else []
    parts += ["\n".join(changes)] if changes else []
    found, proposed = _findings(store, changed, before)
    proposed = proposed or _next(store, results) or f"tracker show run:{results[-1].run_id}"
    return f"{' '.join([*parts, *found])}  Next: {proposed}"


def _counts(results: Sequence[IngestResult]) -> list[str]:
    counts = {"{} new.": sum(result.created for result in results),
              "Ranks added to {}.": sum(result.joined for result in results),
              "Details of {} restored.": sum(result.restored for result in results),
              "{} already stored, unchanged.": sum(result.already for result in results)}  # fmt: skip
    return [text.format(counted(count, "run")) for text, count in counts.items() if count]


def _step_changes(store: Store, results: Sequence[IngestResult]) -> list[str]:
    """`v08 (3 runs) is 30.5 % slower than v01.`, a sentence per track and newest version of these runs."""
    from tracker.regressions import judgement
    from tracker.regressions.tracks import Tracks
    from tracker.results.verdicts import GLOSSES

    tracks, added = Tracks(store), {result.run_id for result in results}
    sentences = []
    lines = judgement.lines_of(store, sorted(added))
    for line in lines:
        track = tracks.of(line)
        versions = [run.version_id for run in track.runs if run.run_id in added] if track else []
        if track is None or not versions:
            continue
        version = max(versions, key=track.order.index)
        runs = len(track.runs_of(version))
        where = track.names["configuration"] if len(lines) > 1 else ""
        words = ", ".join(filter(None, (counted(runs, "run"), where)))
        who, base = f"{track.labels[version]} ({words})", track.before(version)
        row = track.judged.get(version)
        level, count = _level(track, row.base_runs if row else "")
        verdict = (row and row.step_verdict) or "not judged"
        base, needed = level or base, track.thresholds.runs_needed(count, runs)
        first, last = (row.step_before_ns, row.step_after_ns) if row else (None, None)
        if base is None:
            who = who if len(lines) == 1 else track.labels[version]  # once for all configurations
            sentences.append(f"{who} is the first version of {track.names['workload']}.")
        elif not (first and last):
            sentences.append(f"{who} is not compared with {base} yet: too few runs{needed and ', '}{needed}.")
        elif verdict in ("REGRESSED", "IMPROVED"):
            change = last / first - 1
            sentences.append(f"{who} is {abs(change):.1%} {'slower' if change > 0 else 'faster'} than {base}."
                             .replace("%", " %"))  # fmt: skip
        else:
            why = f": {needed}" if needed else f" ({GLOSSES[verdict]})" if verdict in GLOSSES else ""
            sentences.append(f"{who}: step {format_diff(last / first - 1)} against {base}, {verdict}{why}.")
    sentences = list(dict.fromkeys(sentences))
    more = len(sentences) - _NAMED
    return sentences[:_NAMED] + ([f"{counted(more, 'more configuration')}."] if more > 0 else [])


def _level(track: TrackRuns, base_runs: str) -> tuple[str, int]:
    """The runs that a version was judged against, in words, and how many they are: `the level of v01 to v02`, 6."""
    runs = {int(number) for number in base_runs.split()}
    labels = list(dict.fromkeys(run.version for run in track.runs if run.run_id in runs))
    return f"the level of {labels[0]} to {labels[-1]}" if len(labels) > 1 else "".join(labels), len(runs)


def _findings(store: Store, changed: Sequence[IngestResult], before: Collection[int]) -> tuple[list[str], str | None]:
    """How many findings these runs decided, and how many have recovered since; and the command that lists as many: of
    new regressions, else of what recovered.
    """
    from tracker.reports.commands import command
    from tracker.store import queries

    added, rows = {str(result.run_id) for result in changed}, queries.findings(store)

    def is_decided(row: Mapping[str, Any]) -> bool:
        return not added.isdisjoint(str(row["candidate_runs"]).split())

    decided = [row for row in rows if row["direction"] == "regression" and is_decided(row)]
    over = {
        row["finding_id"]: row for row in rows if row["base_state"] == "recovered" and row["finding_id"] not in before
    }
    sentences, proposed = [], None
    if decided:
        where, listed = _listed(store, decided, only_new=True)
        new = [row for row in listed if row["is_new"] and is_decided(row)]
        if any(row["direction"] == "regression" for row in new):
            sentences.append(f"{counted(len(new), 'new finding')}.")
            versions = {row["version"] for row in new}
            here = len(versions) == 1 and where and versions <= {result.version for result in changed}
            proposed = command("tracker", "findings", *(("--version", *versions) if here else ("--new",)), *where)
    if over:
        where, listed = _listed(store, list(over.values()), states=("recovered",))
        own = [row for row in listed if row["finding_id"] in over]
        in_all = f" ({len(listed)} in all)" if len(listed) > len(own) else ""
        if own:
            sentences.append(f"{counted(len(own), 'finding')} recovered{in_all}.")
            proposed = proposed or command("tracker", "findings", "--state", "recovered", *where)
    return sentences, proposed


def _listed(store: Store, rows: Sequence[Mapping[str, Any]], **chosen: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """`--workload` of `rows`, where they are of one, and what `tracker findings` lists with that and `chosen`."""
    from tracker.regressions.inbox import findings
    from tracker.results import FindingsOptions

    workloads = {str(row["workload"]) for row in rows}
    workload = workloads.pop() if len(workloads) == 1 else None
    listed = findings(store, options=FindingsOptions(workload=workload, **chosen)).tables["findings"].records()
    return ["--workload", workload] if workload else [], listed


def _next(store: Store, results: Sequence[IngestResult]) -> str | None:
    """The log of training logs, else a diff of the newest version that came in; None where nothing can be compared."""
    from tracker.cli.versions import diff_of
    from tracker.reports.commands import command

    workloads = {result.workload for result in results}
    logs = all(result.formats == ("paddle_log",) for result in results)
    if logs and len({result.version for result in results}) > 1 and len(workloads) == 1:
        return command("tracker", "log", "--workload", workloads.pop())
    if not results or all(result.already for result in results):
        return None
    last = results[-1].workload
    return diff_of(store, last, among={result.version for result in results if result.workload == last})
