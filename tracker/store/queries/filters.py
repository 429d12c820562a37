"""Filters that name nothing are errors that name the culprit and say what there is, the same for every command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

import numpy as np

from tracker.columns import Columns
from tracker.errors import UsageError
from tracker.profile.branches import main_of
from tracker.store.connect import Store
from tracker.store.queries import answers
from tracker.store.queries.history import lines
from tracker.store.queries.runs import versions_with_branches
from tracker.units import device_part

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
    if not len(everything):
        return
    names = everything.listed("workload")
    known = list(dict.fromkeys([*names, *map(main_of, names)]))
    if workload is not None and workload not in known:
        raise unknown("workload", workload, known)
    config = config or {}
    # first each alone: a name that is nowhere is wrong, whatever the others leave
    _check_values(store, everything, "", config)
    _check_device(everything, "", device)
    left = everything
    if workload is not None:
        left = _those(everything, (workload in (name, main_of(name)) for name in names))
    left, of = _check_device(left, _of(workload), device)
    _check_values(store, left, of, config)
    if version is not None:
        labels = list(dict.fromkeys(versions_with_branches(store, workload).listed("version")))
        if version not in labels:
            raise unknown("version", version, labels, _of(workload))


def on_device(rows: Columns, device: str) -> Columns:
    """Those of the rows, with vendor and device, whose device has this part in its name."""
    return _those(rows, (device_part(device) in device_part(name) for name in _devices(rows)))


def with_values(store: Store, rows: Columns, config: Mapping[str, str]) -> Columns:
    """Those of the rows, with a configuration_id, whose configuration has all these values."""
    if not config:
        return rows
    pairs, known = set(config.items()), _values(store)
    return _those(rows, (pairs <= known.get(number, set()) for number in rows.listed("configuration_id")))


def _those(rows: Columns, wanted: Iterable[bool]) -> Columns:
    return rows.taken(np.array(list(wanted), dtype=bool))


def _values(store: Store) -> dict[int, set[tuple[str, str]]]:
    """Number of a configuration -> its keys with their values."""
    found: dict[int, set[tuple[str, str]]] = {}
    for row in answers.rows(store, "configuration_values"):
        found.setdefault(row.configuration_id, set()).add((row.key, row.value))
    return found


def _check_device(rows: Columns, of: str, device: str | None) -> tuple[Columns, str]:
    """The rows on the device, and which they are in words, as `of` says it of all."""
    if device is None:
        return rows, of
    found = on_device(rows, device)
    if not len(found):
        raise unknown("device", device, _devices(rows), of)
    return found, f"{of} on {device!r}"


def _check_values(store: Store, rows: Columns, of: str, config: Mapping[str, str]) -> None:
    known = _values(store) if config else {}
    pairs = sorted({pair for number in rows.listed("configuration_id") for pair in known.get(number, ())})
    for key, value in config.items():
        if (key, value) not in pairs:
            same = [pair for pair in pairs if pair[0] == key]
            raise unknown("configuration", f"{key}={value}", ["=".join(pair) for pair in same or pairs], of)


def _devices(rows: Columns) -> list[str]:
    return [f"{vendor} {model}".strip() for vendor, model in rows.rows("vendor", "device")]


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
