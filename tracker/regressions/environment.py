"""What else changed from version to version: the environment of the runs of a track."""

from __future__ import annotations

from collections.abc import Mapping

from tracker.lazy import pd
from tracker.profile import OF_A_RUN, OF_THE_CODE
from tracker.regressions.places import Place
from tracker.results import HISTORY_COLUMNS
from tracker.store import Store, queries


def changes(store: Store, place: Place) -> pd.DataFrame:
    """The facts that no run of a version shares with any run of the version before; columns as in HISTORY_COLUMNS.

    Several values of a version join with ` | `; what differs from run to run is no change of the version.
    """
    version_of = {run.run_id: run.version for run in place.runs}
    known: dict[str, dict[str, set[str]]] = {run.version: {} for run in place.runs}
    for fact in facts_of(store, list(version_of)).itertuples():
        known[version_of[int(fact.run_id)]].setdefault(fact.key, set()).add(fact.value)
    rows = []
    before: dict[str, set[str]] | None = None
    for version, after in known.items():
        changed = [] if before is None else differing(before, after)
        rows += [(place.workload, place.configuration, place.device, version, *change) for change in changed]
        before = after
    return pd.DataFrame(rows, columns=list(HISTORY_COLUMNS["environment"]), dtype=object)


def facts_of(store: Store, run_ids: list[int]) -> pd.DataFrame:
    """The environment of runs: run_id, key, value; without what names the run and its code."""
    facts = queries.facts(store, run_ids, kind="fact")
    return facts[~facts["key"].isin(OF_A_RUN | OF_THE_CODE)]


def differing(
    before: Mapping[str, set[str]], after: Mapping[str, set[str]]
) -> list[tuple[str, str | None, str | None]]:
    """Keys of which the two sides share no value, with what each states; None for nothing.

    What only one side states is no change where the other one cannot state it: it counts for settings of the profiler,
    and for a variable of a job whose variables were read.

    >>> differing({"driver": {"535"}}, {"driver": {"550"}, "python_version": {"3.11"}, "NCCL_ALGO": {"Ring"}})
    [('driver', '535', '550')]
    >>> differing({"python_version": {"3.11"}}, {"python_version": {"3.11"}, "NCCL_ALGO": {"Ring"}})
    [('NCCL_ALGO', None, 'Ring')]
    """
    found = []
    for key in sorted(before.keys() | after.keys()):
        one, other = before.get(key, set()), after.get(key, set())
        both = bool(one and other) or key.startswith("profiler ")
        if not one & other and (both or (_is_variable(key) and _has_variables(after if one else before))):
            found.append((key, _text(one), _text(other)))
    return found


def _is_variable(key: str) -> bool:
    return key[:1].isupper()


def _has_variables(side: Mapping[str, set[str]]) -> bool:
    """Whether the environment was read inside of the jobs, so that a variable that is missing was not set."""
    return "python_version" in side or any(map(_is_variable, side))


def _text(values: set[str]) -> str | None:
    return " | ".join(sorted(values)) or None
