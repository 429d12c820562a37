"""Which runs and versions there are, and what is known of them as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from tracker.columns import Column, Columns, objects
from tracker.profile import NO_OP, RULE_SETTINGS, UNLINKED_OP, is_hccl_kernel
from tracker.profile.branches import branch_of, main_of
from tracker.results.machine_state import marks_of_machine
from tracker.schema.column_names import (
    FORMAT,
    HAS_TOTALS,
    KEY,
    KIND,
    NAME,
    NOTE,
    PATH,
    RANK,
    RUN_ID,
    VALUE,
    VERSION,
    VERSION_ID,
    WORKLOAD,
)
from tracker.store.answers import answer, answer_of_runs, rows, whole
from tracker.store.bulk import LARGEST, as_keys
from tracker.store.connect import Store, read_one_state
from tracker.store.levels import list_filled_levels
from tracker.store.names import like_pattern
from tracker.store.tracks import read_machines
from tracker.units import device_part

State = Literal["active", "excluded", "deleted", "all"]


def runs(
    store: Store,
    *,
    version: str | None = None,
    workload: str | None = None,
    device: str | None = None,
    tag: str | None = None,
    search: str | None = None,
    state: State = "active",
    limit: int | None = None,
) -> Columns:
    """Return runs, the newest first, one row each; None lets all through.

    `device`: part of vendor and model, in any case. `tag`: `key` or `key=value`. `search`: words, in any case, each of
    which is in the number, version, workload, device, configuration, commit, note, a tag or a file of the run; `*` and
    `?` stand for any characters. Columns: run_id, workload, version,
    device, vendor, configuration, state, state_reason, started_at_ns, ranks, ranks_expected, ranks_awaited (NA: it is
    judged with its track, else the ranks that it should have), world_size, steps, format,
    e2e_ns (mean of the ranks), step_ns (per step), tags (`key=value, key`), machine (what may have slowed it down),
    paths (separated by `, `),
    commit (of the version), note, rules_version (of the rules that made names and categories).
    """
    key, _, value = (tag or "").partition("=")
    return _with_texts(
        store,
        {
            "all_runs": 1,
            "run_ids": [-1],
            "version": version,
            "workload": workload,
            "device": device_pattern(device),
            "tag_key": key or None,
            "tag_value": value or None,
            "words": _word_patterns(search or ""),
            "state": None if state == "all" else state,
            "row_limit": -1 if limit is None else min(limit, LARGEST),
        },
    )


def _word_patterns(search: str) -> str:
    """Return the words of a search as the keys of a JSON object, each a LIKE pattern of a text that has it.

    >>> _word_patterns("H100 batch_8"), _word_patterns("")
    ('{"%h100%": 0, "%batch!_8%": 0}', '{}')
    """
    return json.dumps({f"%{like_pattern(word)}%": 0 for word in search.split()}, ensure_ascii=False)


def device_pattern(device: str | None) -> str | None:
    """Return the LIKE pattern (escape `!`) for any part of vendor and model, in any case, without blanks, `-`
    and `_`.
    """
    if device is None:
        return None
    escaped = device_part(device).replace("!", "!!").replace("%", "!%")
    return f"%{escaped}%"


def runs_by_id(store: Store, run_ids: Sequence[int], *, known: Columns | None = None) -> Columns:
    """Return these runs, in whatever state, the newest first; columns as in `runs`. `known`: the `facts` of
    these runs.
    """
    nothing = dict.fromkeys(("version", "workload", "device", "tag_key", "tag_value", "state"))
    parameters = {"all_runs": 0, "run_ids": whole(run_ids), **nothing, "words": "{}", "row_limit": -1}
    return _with_texts(store, parameters, known)


def labels_of(store: Store, run_ids: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Return run -> its workload and version, of these runs, in whatever state."""
    return {row.run_id: (row.workload, row.version) for row in rows(store, "run_labels", run_ids=whole(run_ids))}


def pruned(store: Store, run_ids: Sequence[int]) -> dict[int, int]:
    """Return those of these runs that lost details of any rank -> when, UTC ns."""
    return {row.run_id: row.pruned_at_ns for row in rows(store, "pruned_runs", run_ids=list(run_ids) or [-1])}


def versions(store: Store, workload: str | None = None) -> Columns:
    """Return versions in their order.

    Columns: workload, version, ordinal, commit, pinned, note, runs (active), first_started_at_ns.
    """
    return answer(store, "versions", {"workload": workload}).renamed({"commit_id": "commit"})


def versions_with_branches(store: Store, workload: str | None = None) -> Columns:
    """Return as `versions`, of `workload` and its branches, and `branch` behind the workload: "" for the main line."""
    found = versions(store)
    names = found.listed(WORKLOAD)
    kept = np.array([workload in (None, name, main_of(name)) for name in names], dtype=bool)
    return with_branch(found.taken(kept))


def with_branch(found: Columns) -> Columns:
    """Return a table with a `workload`, and `branch` behind it: "" for the main line."""
    names = list(found.arrays)
    names.insert(names.index("workload") + 1, "branch")
    branches = objects([branch_of(name) for name in found.listed(WORKLOAD)])
    return found.having(branch=branches).only(names)


def version_groups(store: Store, workload: str | None = None) -> list[Columns]:
    """Return the versions that a label or a commit may mean, in the order in which it is looked up: of the branch that
    `workload` names, of main lines, of all branches. Each as `versions` gives them.
    """
    found = versions(store)
    names = found[WORKLOAD].tolist()
    groups = [
        [name == workload for name in names],
        [workload in (None, name) or main_of(workload or "") == name for name in names],
        [workload in (None, main_of(name)) for name in names],
    ]
    is_branch = np.array([bool(branch_of(name)) for name in names], dtype=bool)
    kept = [np.array(own, dtype=bool) for own in groups]
    return [found.taken(kept[0]), found.taken(kept[1] & ~is_branch), found.taken(kept[2] & is_branch)]


def may_have_version(name: str, workload: str | None) -> bool:
    """Return whether the workload `name` is in one of the `version_groups` of `workload`.

    >>> may_have_version("gpt", "gpt @ pr12"), may_have_version("gpt @ pr12", "gpt")
    (True, True)
    >>> may_have_version("gpt @ pr13", "gpt @ pr12"), may_have_version("bert", None)
    (False, True)
    """
    return workload in (None, name, main_of(name)) or (workload is not None and main_of(workload) == name)


def version_notes(store: Store, workload_id: int) -> Columns:
    """Return what was said of the versions of a workload and of their active runs, in the order of versions.

    Columns: version_id, version, commit, note (several ones with `; ` between).
    """
    found = answer(store, "version_notes", {"workload_id": workload_id}).renamed({"commit_id": "commit"})
    notes: dict[int, list[str]] = {}
    for version, note in answer(store, "run_notes", {"workload_id": workload_id}).rows(VERSION_ID, NOTE):
        notes.setdefault(version, []).append(note)
    joined = []
    for version, note in found.rows(VERSION_ID, NOTE):
        own = filter(None, (note, *notes.get(version, ())))
        joined.append("; ".join(dict.fromkeys(own)) or None)
    return found.having(note=objects(joined))


def order_of_versions(store: Store, workload: str) -> dict[str, int]:
    """Version of `workload` -> its place among them, from 0."""
    return {label: at for at, label in enumerate(versions(store, workload)[VERSION])}


def runs_of_versions(store: Store, workload: str) -> dict[str, int]:
    """Label -> active runs, of the versions of `workload` in their order."""
    return {row.version: row.runs for row in rows(store, "versions", workload=workload)}


def run_numbers(store: Store, workload: str) -> Columns:
    """Return the active runs of `workload` in the order of versions, with what each reached.

    Columns: see sql/run_numbers.sql.

    `settings`: of the profiler, a JSON text that `settings_of` reads.
    """
    return answer(store, "run_numbers", {"workload": workload}).renamed({"commit_id": "commit"})


def captures(store: Store, run_ids: Sequence[int]) -> Columns:
    """Return the ranks of `run_ids` with the breakdown of the whole capture. Columns: see sql/captures.sql."""
    return answer_of_runs(store, "captures", run_ids)


def steps(store: Store, run_ids: Sequence[int]) -> Columns:
    """Return the steps of the ranks of `run_ids` with their breakdown. Columns: see sql/steps.sql."""
    return answer_of_runs(store, "steps", run_ids)


def filled_tables(store: Store, run_ids: Sequence[int]) -> Columns:
    """Return which ranks of `run_ids` have what, 1 or 0. Columns: see `levels.list_filled_levels`, and has_ops,
    has_kernels: whether they say more than their collectives, or it is known that there was nothing to say.
    """
    found = answer_of_runs(store, list_filled_levels(), run_ids)
    totals = found[HAS_TOTALS]
    has = {"has_ops": totals.values.copy(), "has_kernels": totals.values.copy()}
    lacking = np.flatnonzero(totals.values == 0)
    if len(lacking):
        ranks = found.taken(lacking)
        parts = answer_of_runs(store, "told_parts", ranks.listed(RUN_ID), unlinked=UNLINKED_OP, no_op=NO_OP)
        place = {rank: at for at, rank in enumerate(parts.rows(RUN_ID, RANK))}
        at = [place[rank] for rank in ranks.rows(RUN_ID, RANK)]
        for name, own in has.items():
            own[lacking] = parts.integers(name)[at]
    return found.having(**{name: Column(own, totals.missing) for name, own in has.items()})


def facts(store: Store, run_ids: Sequence[int], kind: str | None = None) -> Columns:
    """Return what is known beside the times: run_id, kind (fact, configuration, tag; of one kind or all), key,
    value.
    """
    # a history asks about all runs of a track
    return answer(store, "facts", {"ids": as_keys(whole(run_ids)), "kind": kind})


def sources(store: Store, run_ids: Sequence[int]) -> Columns:
    """Return the files that were read: run_id, rank, format, path, bytes (on disk), digest (hexadecimal)."""
    return answer_of_runs(store, "sources", run_ids)


def runs_without_call_times(store: Store, run_ids: Sequence[int]) -> list[int]:
    """Return those of the runs whose operators lack times by calls (schema.series.BY_CALLS), though each call was known
    when they were read: an earlier program did not keep them.
    """
    return answer_of_runs(store, "runs_without_call_times", run_ids).listed(RUN_ID)


def runs_of_earlier_npu_rules(store: Store, run_ids: Sequence[int]) -> set[int]:
    """Return those of the runs in which an earlier program counted kernels of HCCL as compute, or made idle time where
    there are no data of an NPU.
    """
    found = set(answer_of_runs(store, "runs_with_host_for_device", run_ids).listed(RUN_ID))
    for run_id, name in answer_of_runs(store, "kernels_of_hccl", run_ids).rows(RUN_ID, NAME):
        if is_hccl_kernel(name):
            found.add(run_id)
    return found


def settings_of(text: str) -> dict[str, str]:
    """Return the profiler's settings that `captures` gives as JSON, without what tracker adds on its own rules.

    >>> settings_of('{"record_shapes": "1", "step_rules": "2"}')
    {'record_shapes': '1'}
    """
    found: dict[str, str] = json.loads(text)
    return {key: value for key, value in found.items() if key not in RULE_SETTINGS}


@read_one_state
def _with_texts(store: Store, parameters: dict[str, Any], known: Columns | None = None) -> Columns:
    """Return the answer to `runs.sql`, with the tags, formats, state of the machine and paths of each run as text."""
    found = answer(store, "runs", parameters)
    run_ids = found.listed(RUN_ID)
    tags = facts(store, run_ids, kind="tag") if known is None else known.taken(known[KIND] == "tag")
    with store.connect() as connection:
        machines = read_machines(connection, run_ids)
    files = sources(store, run_ids)
    texts = {
        "format": _joined(files.rows(RUN_ID, FORMAT)),
        "tags": _joined((run_id, _tag(key, value)) for run_id, key, value in tags.rows(RUN_ID, KEY, VALUE)),
        "machine": {run_id: ", ".join(marks_of_machine(own)) for run_id, own in machines.items()},
        "paths": _joined(files.rows(RUN_ID, PATH)),
    }
    columns = {name: objects([of_run.get(run_id, "") for run_id in run_ids]) for name, of_run in texts.items()}
    last = ("commit_id", "note", "rules_version")
    names = [name for name in found.arrays if name not in last]
    names.insert(names.index("steps") + 1, "format")
    found = found.having(**columns).only([*names, "tags", "machine", "paths", *last])
    return with_branch(found).renamed({"commit_id": "commit"})


def _tag(key: str, value: str) -> str:
    return f"{key}={value}" if value else key


def _joined(texts: Iterable[tuple[int, str]]) -> dict[int, str]:
    """Run -> its distinct texts."""
    distinct: dict[int, dict[str, None]] = {}
    for run_id, text in texts:
        distinct.setdefault(run_id, {})[text] = None
    return {run_id: ", ".join(found) for run_id, found in distinct.items()}
