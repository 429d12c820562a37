"""Find the runs that a user names; a name or filter that fits nothing is an error that says what there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from sqlalchemy import Connection

from tracker.columns import Columns
from tracker.errors import FIRST_INGEST, UsageError
from tracker.profile.branches import branch_of, main_of
from tracker.schema.column_names import CONFIGURATION_ID, CONFIGURATION_VALUES, DEVICE, RUNS, VENDOR, VERSION, WORKLOAD
from tracker.store import answers
from tracker.store.answers import rows
from tracker.store.bulk import LARGEST
from tracker.store.connect import Store
from tracker.store.queries.judgement import tracks
from tracker.store.queries.runs import device_pattern, versions, versions_with_branches
from tracker.store.sql import statement
from tracker.units import counted, device_key, device_part, natural

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
    """Raise UsageError for the first of these filters that names nothing.

    Nothing in the database, or nothing among what the filters before it leave; the error lists what there is. Whether
    other filters leave anything is for the caller to say.

    `device`: part of vendor and model, in any case. Without any run, there is nothing to check.
    """
    if workload is None and device is None and not config and version is None:
        return
    everything = tracks(store)
    if not len(everything):
        return
    names = everything.listed(WORKLOAD)
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
        labels = list(dict.fromkeys(versions_with_branches(store, workload).listed(VERSION)))
        if version not in labels:
            raise unknown("version", version, labels, _of(workload))


def on_device(rows: Columns, device: str) -> Columns:
    """Return those of the rows, with vendor and device, whose device has this part in its name."""
    return _those(rows, (device_part(device) in device_part(name) for name in _devices(rows)))


def with_values(store: Store, rows: Columns, config: Mapping[str, str]) -> Columns:
    """Return those of the rows, with a configuration_id, whose configuration has all these values."""
    if not config:
        return rows
    pairs, known = set(config.items()), _values(store)
    return _those(rows, (pairs <= known.get(number, set()) for number in rows.listed(CONFIGURATION_ID)))


def _those(rows: Columns, wanted: Iterable[bool]) -> Columns:
    return rows.taken(np.array(list(wanted), dtype=bool))


def _values(store: Store) -> dict[int, set[tuple[str, str]]]:
    """Number of a configuration -> its keys with their values."""
    found: dict[int, set[tuple[str, str]]] = {}
    for row in answers.rows(store, CONFIGURATION_VALUES):
        found.setdefault(row.configuration_id, set()).add((row.key, row.value))
    return found


def _check_device(rows: Columns, of: str, device: str | None) -> tuple[Columns, str]:
    """Return the rows on the device, and which they are in words, as `of` says it of all."""
    if device is None:
        return rows, of
    found = on_device(rows, device)
    if not len(found):
        raise unknown("device", device, _devices(rows), of)
    return found, f"{of} on {device!r}"


def _check_values(store: Store, rows: Columns, of: str, config: Mapping[str, str]) -> None:
    known = _values(store) if config else {}
    pairs = sorted({pair for number in rows.listed(CONFIGURATION_ID) for pair in known.get(number, ())})
    for key, value in config.items():
        if (key, value) not in pairs:
            same = [pair for pair in pairs if pair[0] == key]
            raise unknown("configuration", f"{key}={value}", ["=".join(pair) for pair in same or pairs], of)


def _devices(rows: Columns) -> list[str]:
    return [f"{vendor} {model}".strip() for vendor, model in rows.rows(VENDOR, DEVICE)]


def _of(workload: str | None) -> str:
    return f" of workload {workload!r}" if workload else ""


def unknown(what: str, name: str, known: Sequence[str], of: str = "", *, where: str = "tracker runs") -> UsageError:
    """Return the error for a name that is none of the `known` ones: all of these, or where they are many those like it
    and the command that lists them, `where`.

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


def run_ids_of_version(
    store: Store, label: str, workload: str | None = None, device: str | None = None
) -> tuple[int, ...]:
    """Return the active runs of version `label`, oldest first: of the main line, where it has them, else of a branch;
    where `workload` names a branch, of that, where it has them, else of its main line.

    Runs that wait for ranks only where the version has no others: a side of a diff is what is judged. `device`: part of
    vendor and model; a model that is named in full beats longer ones. UsageError where the label is
    unknown, has no active run, or means several workloads.
    """
    of_main = None if workload is None else main_of(workload)
    found = rows(store, "run_ids", version=label, workload=of_main, device=device_pattern(device))
    found = _of_branch(found, "" if workload is None else branch_of(workload))
    workloads = sorted({row.workload for row in found})
    if len(workloads) > 1:
        raise UsageError(
            f"version {label!r} is used by several workloads: {', '.join(workloads)}",
            remedy="choose one with --branch"
            if len(set(map(main_of, workloads))) == 1
            else "choose one with --workload",
        )
    if not found:
        raise _nothing_named(store, label, workload, device)
    return _whole_runs(found, device)


def newest_version(store: Store, workload: str, device: str | None = None) -> tuple[str, tuple[int, ...]]:
    """Return the newest version of one line, a main line or a branch, that has active runs, and these, oldest first.

    `workload`: exactly this one. `device`: as in `run_ids_of_version`. A version of which all runs wait for ranks
    counts where there is no other. UsageError where no version has active runs.
    """
    labels = list(versions(store, workload).rows(VERSION, RUNS))[::-1]
    for label in [*(label for label, count in labels if count), *(label for label, count in labels if not count)]:
        found = rows(store, "run_ids", version=label, workload=workload, device=device_pattern(device))
        # a main line is asked with its branches
        if own := [row for row in found if row.workload == workload]:
            return label, _whole_runs(own, device)
    on = f" on a device like {device!r}" if device else ""
    raise UsageError(f"{workload} has no active run{on}", remedy="tracker runs --state all lists them")


def _whole_runs(found: Sequence[Any], device: str | None) -> tuple[int, ...]:
    """Return the runs of these rows on one device that wait for no ranks, all where each of them does."""
    if device is not None:
        full = [row for row in found if _is_full_name(device, row.device)]
        found = full or found
        devices = sorted({row.device.strip() for row in found})
        if len(devices) > 1:
            raise UsageError(
                f"{device!r} means several devices: {', '.join(devices)}", remedy="name one of them in full"
            )
    whole = [row for row in found if row.ranks_awaited is None]
    return tuple(row.run_id for row in whole or found)


def _of_branch(found: Sequence[Any], branch: str) -> list[Any]:
    """Return the rows of a branch, where there are any, else those of main lines, else all."""
    of_branch = [row for row in found if branch_of(row.workload) == branch]
    of_main = [row for row in found if not branch_of(row.workload)]
    if of_branch or of_main:
        return of_branch or of_main
    # a branch that was named is no other one
    return [] if branch else list(found)


def workload_of_branch(store: Store, branch: str, workload: str | None = None) -> str:
    """Return the workload of a branch, of `workload` or of the only one that has it; UsageError where none or several
    have.
    """
    known = [str(row.workload) for row in rows(store, "branches")]
    found = [name for name in known if branch_of(name) == branch and workload in (None, main_of(name))]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"several workloads have a branch {branch!r}", remedy="choose one with --workload")
    own = [branch_of(name) for name in known if workload in (None, main_of(name))]
    close = get_close_matches(branch, own, n=3) or own[-3:]
    meant = f"there are {', '.join(close)}; " if close else ""
    raise UsageError(f"no run is of branch {branch!r}", remedy=f"{meant}tracker versions shows the branches")


def latest(store: Store, offset: int = 0, *, workload: str | None = None) -> int:
    """Return the active run that came in last, or `offset` runs before it; UsageError where there are fewer."""
    found = rows(store, "latest", run_offset=min(offset, LARGEST), workload=workload)
    if found:
        return int(found[0].run_id)
    name = f"latest~{offset}" if offset else "latest"
    of = f" of workload {workload!r}" if workload else ""
    raise UsageError(f"{name}: there are not that many active runs{of}", remedy="tracker runs lists them")


def pinned(store: Store, *, workload: str | None = None) -> tuple[str, str]:
    """Return the pinned version and its workload; UsageError where there is none, or one in several workloads."""
    found = rows(store, "pinned", workload=workload)
    if not found:
        remedy = (
            "pin one: tracker versions pin LABEL --workload WORKLOAD"
            if rows(store, "versions", workload=None)
            else (f"there is none yet: {FIRST_INGEST}")
        )
        raise UsageError("no version is pinned", remedy=remedy)
    if len(found) > 1:
        names = ", ".join(row.workload for row in found)
        raise UsageError(f"several workloads have a pinned version: {names}", remedy="choose one with --workload")
    return found[0].version, found[0].workload


def find_run(connection: Connection, run_id: int, *, or_deleted: bool = False) -> Any:
    """Return the row of `run_state` for a run; UsageError for an unknown one, and for a deleted one unless that will
    do.
    """
    known = -LARGEST <= run_id <= LARGEST
    run = connection.execute(statement("run_state"), {"run_id": run_id}).one_or_none() if known else None
    if run is None:
        raise UsageError(f"there is no run {run_id}", remedy="tracker runs lists them")
    if run.state == "deleted" and not or_deleted:
        raise UsageError(f"run {run_id} was deleted", remedy=f"to take it back: tracker runs restore {run_id}")
    return run


def require_run(store: Store, run_id: int) -> None:
    """Raise UsageError unless `run_id` is a run that may be read: active or excluded."""
    with store.connect() as connection:
        find_run(connection, run_id)


def _nothing_named(store: Store, label: str, workload: str | None, device: str | None) -> UsageError:
    """Return why `label` names no run: it is unknown, its runs do not count, or they ran elsewhere."""
    known = [(row.workload, row.version) for row in rows(store, "versions", workload=workload)]
    if label in [version for _, version in known]:
        of = f" of workload {workload!r}" if workload else ""
        on = f" on a device like {device!r}" if device else ""
        return UsageError(f"version {label!r}{of} has no active run{on}", remedy="tracker runs --state all lists them")
    main = None if workload is None else main_of(workload)
    lines = [str(row.workload) for row in rows(store, "branches")]
    branches = list(dict.fromkeys(branch_of(name) for name in lines if main in (None, main_of(name))))
    return unknown_version(label, known, branches)


def similar_labels(label: str, known: Sequence[str]) -> list[str]:
    """Return at most three of the `known` labels that `label` may mean: those with the same numbers first.

    >>> similar_labels("v1", ["v01", "v10", "v11", "v12"]), similar_labels("V2", ["v02", "main"])
    (['v01', 'v12', 'v11'], ['v02'])
    """
    same = [one for one in known if natural(one.lower()) == natural(label.lower())]
    return list(dict.fromkeys([*same, *get_close_matches(label, known, n=3)]))[:3]


def unknown_version(label: str, known: Sequence[tuple[str, str]], branches: Sequence[str] = ()) -> UsageError:
    """Return the error for a version that is not among the `known` ones, each with its workload, in their order; it
    names the newest version of main lines, and the `branches`.

    >>> print(unknown_version("v9", [("gpt", "v01"), ("gpt", "v08")]))
    there is no version 'v9' of gpt; newest: v08; tracker versions lists them
    >>> print(unknown_version("fix-2", [("gpt", "v08"), ("gpt @ fix-1", "b1")], ["fix-1"]))
    there is no version or branch 'fix-2' of gpt; did you mean fix-1? newest: v08; branches: fix-1 (--branch NAME for a version of one); tracker versions lists them
    """  # noqa: E501
    newest = {workload: version for workload, version in known if not branch_of(workload)} or dict(known)
    of = f" of {next(iter(newest))}" if len(newest) == 1 else ""
    close = similar_labels(label, list(dict.fromkeys([*(version for _, version in known), *branches])))
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    latest = [version if of else f"{version} of {workload}" for workload, version in newest.items()]
    last = f"newest: {', '.join(latest[:3])}; " if latest else ""
    what = "version or branch" if branches else "version"
    return UsageError(
        f"there is no {what} {label!r}{of}",
        remedy=f"{meant}{last}{_words_of_branches(branches)}tracker versions lists them",
    )


def _words_of_branches(branches: Sequence[str]) -> str:
    """Return the branches there are, at most the newest 8, and the option that names one; "" where there are none."""
    older = len(branches) - _LISTED
    more = f" and {counted(older, 'older one')}" if older > 0 else ""
    names = ", ".join(branches[-_LISTED:])
    return f"branches: {names}{more} (--branch NAME for a version of one); " if branches else ""


def _is_full_name(device: str, name: str) -> bool:
    """Return whether `device` is the model, or vendor and model."""
    return device_key(name) == device_key(device)
