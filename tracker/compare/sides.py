"""What a user names as a side of a diff, and the runs behind it.

A side is `v2.3`, `v2.3@H100`, `run:41`, `run:41,run:42`, `run:41:rank3`, `latest`, `latest~1`, `pinned`, or a path on
disk. A path is read into a database in memory, so that files and stored runs go the same way through SQL.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pandas as pd

from tracker.errors import UsageError
from tracker.intake import IngestOptions, ingest
from tracker.results import Selection, Side
from tracker.store import Store, open_store, queries

_RUN: Final = re.compile(r"run:(?P<id>\d+)(?::rank(?P<rank>\d+))?")
_LATEST: Final = re.compile(r"latest(?:~(?P<offset>\d+))?")
_RUNS: Final = re.compile(r"run:\d+(,run:\d+)+")
_SIDES: Final = "a version, VERSION@DEVICE, run:ID, run:ID,run:ID, run:ID:rankN, latest, latest~N, pinned, or a path"
_NO_STAGE: Final = -1
FILES: Final = "files"
"""What stands for the workload of a side that is a path."""


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A side with its database: `runs` and `captures` as `store.queries` gives them, `captures.stage` filled with -1
    for none.

    `weights`: (run_id, stage) -> number of rank-steps, the denominator of a mean per step and rank of a stage.
    """

    side: Side
    store: Store
    runs: pd.DataFrame
    captures: pd.DataFrame
    steps: pd.DataFrame
    ranks: tuple[int, ...] | None
    weights: pd.Series

    @property
    def run_ids(self) -> tuple[int, ...]:
        """The runs of this side."""
        return self.side.run_ids

    @property
    def has_markers(self) -> bool:
        """Whether the captures hold step markers; a capture without any is one step, 0, as long as the capture."""
        if len(self.steps) != len(self.captures) or (self.steps["step"] != 0).any():
            return True
        whole = self.steps[["run_id", "rank", "duration_ns"]].merge(self.captures, on=["run_id", "rank"])
        return bool((whole["duration_ns_x"] != whole["duration_ns_y"]).any())


def load(store: Store | None, reference: str, options: Selection, stack: ExitStack) -> Loaded:
    """The side that `reference` names. Databases opened on the way are closed by `stack`.

    Raises UsageError when nothing or too much is named; the message lists what there is.
    """
    if not reference.strip():
        raise UsageError("a side is empty", remedy=f"a side is {_SIDES}")
    if _is_path(reference):
        memory = stack.enter_context(open_store("sqlite://"))
        ingest(
            memory,
            [Path(reference).expanduser()],
            version=reference,
            workload=FILES,
            options=_ingest_options(options),
        )
        runs = queries.runs(memory)
        return _loaded(memory, reference, tuple(int(i) for i in sorted(runs["run_id"])), None, options)
    if store is None:
        raise UsageError(f"{reference!r} is not a path on disk", remedy="check the path, or name a database with --db")
    run_ids, rank = resolve(store, reference, options.workload)
    return _loaded(store, reference, run_ids, rank, options)


def needs_store(reference: str) -> bool:
    """Whether `reference` names something in the database (and not a path on disk)."""
    return not _is_path(reference)


def resolve(store: Store, reference: str, workload: str | None = None) -> tuple[tuple[int, ...], int | None]:
    """The ids of the runs that `reference` names in `store`, oldest first, and the one rank it names, if any."""
    if _RUN.fullmatch(reference) or _RUNS.fullmatch(reference):
        return _by_number(store, reference)
    if match := _LATEST.fullmatch(reference):
        return (queries.latest(store, int(match["offset"] or 0), workload=workload),), None
    if reference == "pinned":
        label, workload = queries.pinned(store, workload=workload)
        return queries.run_ids_of_version(store, label, workload=workload), None
    labels = set(queries.versions(store, workload)["version"])
    if reference.isdecimal() and reference not in labels:  # the bare number that `tracker runs` commands take
        return resolve(store, f"run:{reference}", workload)
    if "@" in reference and reference not in labels:
        label, _, device = reference.rpartition("@")
        return queries.run_ids_of_version(store, label, workload=workload, device=device), None
    return queries.run_ids_of_version(store, reference, workload=workload), None


def _by_number(store: Store, reference: str) -> tuple[tuple[int, ...], int | None]:
    """`resolve` for `run:ID`, `run:ID:rankN` and `run:ID,run:ID`."""
    named = [match for part in reference.split(",") if (match := _RUN.fullmatch(part))]
    run_ids = sorted({int(match["id"]) for match in named})
    for run_id in run_ids:
        queries.require_run(store, run_id)
    rank = named[0]["rank"]
    return tuple(run_ids), int(rank) if rank else None


def _is_path(reference: str) -> bool:
    """Whether `reference` is a path: it looks like one, or is a file, or a folder named with a slash.

    A bare folder name is a label; `./name` is the folder. `feature/x` is a label unless it is there.
    """
    try:
        path = Path(reference).expanduser()
        is_there, is_file = path.exists(), path.is_file()
    except (OSError, RuntimeError):  # too long for a file name, or the home of nobody
        is_there = is_file = False
    if not is_there and (reference.startswith((".", "/", "~")) or reference.endswith((".json", ".json.gz"))):
        raise UsageError(f"{reference}: no such file or folder", remedy=f"a side is {_SIDES}")
    return is_file or (is_there and ("/" in reference or reference.startswith((".", "~"))))


def _ingest_options(options: Selection) -> IngestOptions:
    chosen = IngestOptions(
        format=options.format,
        flow_category=options.flow_category,
        allow_partial=options.allow_partial,
        on_progress=options.on_progress,
    )
    if options.max_bytes is None:
        return chosen
    return replace(chosen, max_bytes=options.max_bytes)


def _loaded(store: Store, label: str, run_ids: tuple[int, ...], rank: int | None, options: Selection) -> Loaded:
    ranks = (rank,) if rank is not None else options.ranks or None
    captures = queries.captures(store, run_ids)
    captures["stage"] = captures["stage"].fillna(_NO_STAGE)
    steps = queries.steps(store, run_ids)
    if ranks is not None:
        captures = captures[captures["rank"].isin(ranks)]
    if options.stage is not None:
        captures = captures[captures["stage"] == options.stage]
        ranks = tuple(int(r) for r in captures["rank"].unique())
    if captures.empty:
        raise UsageError(f"{label}: no rank is left after the filters", remedy="tracker show lists the ranks of a run")
    steps = steps.merge(captures[["run_id", "rank"]], on=["run_id", "rank"])
    captures = captures.reset_index(drop=True)
    run_ids = tuple(run_id for run_id in run_ids if (captures["run_id"] == run_id).any())
    runs = queries.runs_by_id(store, run_ids)
    weights = captures.assign(weight=captures["steps"].clip(lower=1)).groupby(["run_id", "stage"])["weight"].sum()
    return Loaded(_side(label, run_ids, runs, captures), store, runs, captures, steps, ranks, weights.astype("float64"))


def _side(label: str, run_ids: tuple[int, ...], runs: pd.DataFrame, captures: pd.DataFrame) -> Side:
    def words(column: str) -> str:
        return ", ".join(dict.fromkeys(str(value) for value in runs[column] if not pd.isna(value)))

    devices = dict.fromkeys(f"{row.vendor} {row.device}".strip() for row in runs.itertuples())
    timelines = set(captures["timeline"])
    return Side(
        label=label,
        run_ids=run_ids,
        workload=words("workload"),
        version=words("version"),
        device=", ".join(devices),
        configuration=words("configuration"),
        runs=len(run_ids),
        ranks=int(captures.groupby("run_id")["rank"].nunique().max()),
        steps=int(captures.groupby("run_id")["steps"].max().max()),
        timeline="device" if timelines == {"device"} else "host",
    )
