"""How an ingest names the captures that it read, and what their readers warned of."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tracker.units import counted

if TYPE_CHECKING:
    from tracker.intake import IngestResult, Pack, Read
    from tracker.store import Store

_NAMED: Final = 3
"""So many are named; more are counted."""


def names_of(results: Sequence[IngestResult]) -> dict[str, str]:
    """Path of each capture -> as much of its end as no other capture shares, and that is not the label of its version.

    Two folders `a/rank0` and `b/rank0` are named with their parents, `c/rank1` is just `rank1`.
    """
    versions = {capture.path: result.version for result in results for capture in result.captures}
    paths = list(versions)
    return {path: _ending(path, [other for other in paths if other != path], versions[path]) for path in paths}


def listed(result: IngestResult, names: Mapping[str, str]) -> str:
    """The captures of a run: up to three by name, else the first and how many more."""
    found = list(dict.fromkeys(names[capture.path] for capture in result.captures))
    return ", ".join(found) if len(found) <= _NAMED else f"{found[0]} and {len(found) - 1} more"


def warnings_of(results: Sequence[IngestResult], names: Mapping[str, str]) -> list[str]:
    """Each distinct warning once, with the captures that it concerns where several were read.

    First what concerns runs, then what the readers said, in their order.
    """
    captures = [capture for result in results for capture in result.captures]
    said = dict.fromkeys(warning for capture in captures for warning in capture.warnings)
    of_runs = dict.fromkeys(warning for result in results for warning in result.warnings if warning not in said)
    return [*of_runs, *(_with_captures(warning, results, names, len(captures)) for warning in said)]


def warnings_of_pack(made: Pack) -> list[str]:
    """Each distinct warning once, with the profiles that it concerns where several were packed."""
    names = {path: _ending(path, [other for other in made.profiles if other != path], "") for path in made.profiles}
    return [
        _with_places(warning, [names[path] for path in places], len(places), len(names), "profile")
        if places
        else warning
        for warning, places in made.warnings.items()
    ]


def order_hints(store: Store, results: Sequence[IngestResult]) -> list[str]:
    """What to say of new versions that came behind one that seems newer: with the command that moves them."""
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
                hints.append(f"{label} stands behind {newer}, which came in before; if it is older: {words}")
    return hints


def _with_captures(warning: str, results: Sequence[IngestResult], names: Mapping[str, str], total: int) -> str:
    concerned = [
        (result, [capture for capture in result.captures if warning in capture.warnings]) for result in results
    ]
    count = sum(len(captures) for _, captures in concerned)
    homes = list(dict.fromkeys(_home(result) for result in results))
    who = [_in_run(result, captures, names, homes) for result, captures in concerned if captures]
    return _with_places(warning, who, count, total, "capture")


def _with_places(warning: str, who: Sequence[str], count: int, total: int, what: str) -> str:
    """`warning` about `who`, which are `count` of `total`: by their names, or how many they are."""
    if total == 1:
        return warning
    if count > _NAMED:
        return f"{warning} ({'all ' if count == total else ''}{counted(count, what)})"
    return f"{', '.join(who)}: {warning}"


def _in_run(result: IngestResult, captures: Sequence[Read], names: Mapping[str, str], homes: Sequence[str]) -> str:
    """`rank 1, rank 3 of job7` in a run of several captures, else the name of the capture."""
    if len(result.captures) == 1:
        return names[captures[0].path]
    home = _home(result)
    ranks = ", ".join(f"rank {capture.rank}" for capture in captures)
    return f"{ranks} of {_ending(home, [other for other in homes if other != home], result.version)}"


def _home(result: IngestResult) -> str:
    """The folder around all captures of a run, or the one file or folder that holds them."""
    return os.path.commonpath([os.path.abspath(capture.path) for capture in result.captures])


def _ending(path: str, others: Sequence[str], version: str) -> str:
    parts = Path(path).parts
    ends = [Path(other).parts for other in others]
    for count in range(1, len(parts)):
        own = parts[-count:]
        if not any(end[-count:] == own for end in ends) and str(Path(*own)) != version:
            return str(Path(*own))
    return path


def recovered(store: Store) -> frozenset[int]:
    """The findings of regressions that have recovered."""
    from tracker.store import queries

    rows = queries.findings(store)
    return frozenset(row["finding_id"] for row in rows if row["base_state"] == "recovered")


def newly_recovered(store: Store, before: Collection[int]) -> list[str]:
    """The workload of each finding that has recovered since, and that no other one covers."""
    from tracker.regressions.inbox import found_rows

    new = recovered(store) - frozenset(before)
    rows = found_rows(store) if new else []
    return [str(row["workload"]) for row in rows if row["finding_id"] in new and row["under"] is None]


def new_regressions(store: Store, results: Sequence[IngestResult]) -> dict[str, int]:
    """Workload -> regressions that the runs of this ingest decided, whatever version began them."""
    from tracker.regressions.inbox import found_rows
    from tracker.store import queries

    added = {str(result.run_id) for result in results if result.created or result.joined}

    def is_new(row: dict[str, Any]) -> bool:
        return row["direction"] == "regression" and not added.isdisjoint(str(row["candidate_runs"]).split())

    touched = {row["workload"] for row in queries.findings(store) if is_new(row)}
    found: dict[str, int] = {}
    for row in found_rows(store) if touched else ():
        if is_new(row) and row["is_new"] and row["under"] is None and row["finding_id"] is not None:
            found[row["workload"]] = found.get(row["workload"], 0) + 1
    return found
