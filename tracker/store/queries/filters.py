"""Filters that name nothing are errors that name the culprit and say what there is, the same for every command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

import numpy as np

from tracker.errors import UsageError
from tracker.lazy import pd
from tracker.store.connect import Store
from tracker.store.queries import answers
from tracker.store.queries.history import lines
from tracker.store.queries.runs import versions

_LISTED = 8
"""Names that an error lists."""

_LIKE = 3
"""Names that look like the one that is not there, at most."""


def check_filters(
    store: Store,
    *,
    workload: str | None = None,
    device: str | None = None,
    config: Mapping[str, str] | None = None,
    version: str | None = None,
) -> None:
    """UsageError for the first of these filters that names nothing in the database, or nothing among what the ones
    before it leave; with what there is. Whether other filters leave anything is for the caller to say.

    `device`: part of vendor and model, in any case. Without any run, there is nothing to check.
    """
    if workload is None and device is None and not config and version is None:
        return
    everything = lines(store)
    if everything.empty:
        return
    known = list(dict.fromkeys(everything["workload"]))
    if workload is not None and workload not in known:
        raise unknown("workload", workload, known)
    config = config or {}
    # first each alone: a name that is nowhere is wrong, whatever the others leave
    _check_values(store, everything, "", config)
    _check_device(everything, "", device)
    left = everything if workload is None else everything[everything["workload"] == workload]
    left, of = _check_device(left, _of(workload), device)
    _check_values(store, left, of, config)
    if version is not None:
        labels = list(dict.fromkeys(str(label) for label in versions(store, workload)["version"]))
        if version not in labels:
            raise unknown("version", version, labels, _of(workload))


def on_device(rows: pd.DataFrame, device: str) -> pd.DataFrame:
    """Those of the rows, with vendor and device, whose device has this part in its name."""
    return _those(rows, (device.lower() in name.lower() for name in _devices(rows)))


def with_values(store: Store, rows: pd.DataFrame, config: Mapping[str, str]) -> pd.DataFrame:
    """Those of the rows, with a configuration_id, whose configuration has all these values."""
    if not config:
        return rows
    pairs, known = set(config.items()), _values(store)
    return _those(rows, (pairs <= known.get(int(number), set()) for number in rows["configuration_id"]))


def _those(rows: pd.DataFrame, wanted: Iterable[bool]) -> pd.DataFrame:
    # an empty list would choose columns
    return rows[np.array(list(wanted), dtype=bool)]


def _values(store: Store) -> dict[int, set[tuple[str, str]]]:
    """Number of a configuration -> its keys with their values."""
    found: dict[int, set[tuple[str, str]]] = {}
    for row in answers.rows(store, "configuration_values"):
        found.setdefault(row.configuration_id, set()).add((row.key, row.value))
    return found


def _check_device(rows: pd.DataFrame, of: str, device: str | None) -> tuple[pd.DataFrame, str]:
    """The rows on the device, and which they are in words, as `of` says it of all."""
    if device is None:
        return rows, of
    found = on_device(rows, device)
    if found.empty:
        raise unknown("device", device, _devices(rows), of)
    return found, f"{of} on {device!r}"


def _check_values(store: Store, rows: pd.DataFrame, of: str, config: Mapping[str, str]) -> None:
    known = _values(store) if config else {}
    pairs = sorted({pair for number in rows["configuration_id"] for pair in known.get(int(number), ())})
    for key, value in config.items():
        if (key, value) not in pairs:
            same = [pair for pair in pairs if pair[0] == key]
            raise unknown("configuration", f"{key}={value}", ["=".join(pair) for pair in same or pairs], of)


def _devices(rows: pd.DataFrame) -> list[str]:
    return [f"{vendor} {model}".strip() for vendor, model in zip(rows["vendor"], rows["device"], strict=True)]


def _of(workload: str | None) -> str:
    return f" of workload {workload!r}" if workload else ""


def unknown(what: str, name: str, known: Sequence[str], of: str = "", *, where: str = "tracker runs") -> UsageError:
    """The error for a name that is none of the `known` ones: all of these, or where they are many those like it and
    the command that lists them, `where`.

    >>> print(unknown("device", "nope", ["cpu", "NVIDIA H200"]))
    there is no device 'nope'; there are NVIDIA H200, cpu
    >>> print(unknown("version", "v1.10", [f"v1.{number}" for number in range(10)] + ["v10"]))
    there is no version 'v1.10'; did you mean v1.1, v1.0 or v10? tracker versions lists them
    """
    names = sorted(set(known))
    problem = f"there is no {what} {name!r}{of}"
    if len(names) > _LISTED:
        like = [known for known in names if name.lower().strip("*?") in known.lower()][:_LIKE]
        same = [known for known in names if known.rpartition("::")[2] == name][:_LIKE]
        *others, last = same or get_close_matches(name, names, n=_LIKE) or like or [""]
        meant = f"did you mean {', '.join(others)} or {last}? " if others else f"did you mean {last}? " if last else ""
        lists = "tracker versions" if what == "version" else where
        return UsageError(problem, remedy=f"{meant}{lists} lists them")
    there = f"there {'is' if len(names) == 1 else 'are'} {', '.join(names)}"
    return UsageError(problem, remedy=there if names else "no run has any")
