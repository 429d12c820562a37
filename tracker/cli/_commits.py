"""Git revisions on the command line: in place of versions, and the commits between two versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracker.store import Store


def meant(store: Store, label: str, workload: str | None = None) -> str:
    """`label` where it is a version, else the version whose commit it names, else `label` for the error about it."""
    from tracker import compare
    from tracker.store import queries

    if label in queries.versions.columns(store, workload).listed("version"):
        return label
    return compare.version_of(store, label, workload) or label


def notes_between(store: Store, rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """A sentence for each pair of good and bad version of findings or incidents: the commits between them, where both
    are known.
    """
    from tracker import compare
    from tracker.store import queries

    versions = queries.versions.columns(store)
    commits = {(row[0], row[1]): row[2] for row in versions.rows("workload", "version", "commit")}
    pairs = dict.fromkeys((str(row["workload"]), str(row["good_version"]), str(row["version"])) for row in rows)
    found = []
    for workload, good, bad in pairs:
        words = compare.between(commits.get((workload, good)), commits.get((workload, bad)))
        if words:
            found.append(f"Between {good} and {bad}: {words}")
    return tuple(dict.fromkeys(found))
