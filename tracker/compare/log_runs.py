"""The runs of an optimisation log: what each reached, and what else is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from tracker.results.recording import Recording
from tracker.schema.column_names import KEY, KIND, RUN_ID, VALUE
from tracker.store import queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.store import Store

Track = tuple[int, int]
"""The numbers of a configuration and a device."""


class RunNumbers(Struct, frozen=True):
    """A row of `queries.run_numbers`: a run with its samples, None for what it does not state."""

    run_id: int
    configuration_id: int
    device_id: int
    version: str
    ordinal: int | None
    commit: str | None
    pinned: int | None
    version_note: str | None
    note: str | None
    vendor: str | None
    device: str
    ranks: int
    world_size: int | None
    settings: str
    run_step_ns: float | None
    step_way: str | None
    step_kind: str | None
    run_e2e_ns: float | None
    samples_per_second: float | None
    throughput_way: str | None
    throughput_unit: str | None
    run_peak_bytes: float | None

    @property
    def track(self) -> Track:
        """Its configuration and device."""
        return self.configuration_id, self.device_id

    @property
    def device_name(self) -> str:
        """The vendor and the model of its device."""
        return f"{self.vendor} {self.device}".strip()


class LoggedRun(Struct, frozen=True):
    """A run with what is known of it beside its numbers, and how it was recorded."""

    numbers: RunNumbers
    configuration: Mapping[str, str]
    tags: Mapping[str, str]
    facts: Mapping[str, str]
    settings: Mapping[str, str]
    recording: Recording

    @property
    def has_several_processes(self) -> bool:
        """Whether its job has several processes, so that a throughput could mean one of them or all."""
        stated = [self.configuration.get(key, "") for key in ("devices", "world_size")]
        counts = [int(text) for text in stated if text.isascii() and text.isdigit()]
        return max([self.numbers.ranks, self.numbers.world_size or 1, *counts]) > 1


def list_runs(store: Store, workload: str) -> list[LoggedRun]:
    """Return the active runs of a workload, in the order of its versions."""
    rows = list(queries.run_numbers(store, workload).structs(RunNumbers))
    run_ids = [row.run_id for row in rows]
    known = _find_facts(store, run_ids)
    with store.connect() as connection:
        recordings = queries.recorded(connection, run_ids)
    runs = []
    for row in rows:
        configuration, tags, facts = (known.get((row.run_id, kind), {}) for kind in ("configuration", "tag", "fact"))
        settings = queries.settings_of(row.settings)
        runs.append(LoggedRun(row, configuration, tags, facts, settings, recordings[row.run_id].recording))
    return runs


def _find_facts(store: Store, run_ids: Sequence[int]) -> dict[tuple[int, str], dict[str, str]]:
    """Return what is known of each run, by kind and key."""
    known: dict[tuple[int, str], dict[str, str]] = {}
    for run_id, kind, key, value in queries.facts(store, run_ids).rows(RUN_ID, KIND, KEY, VALUE):
        known.setdefault((run_id, kind), {})[key] = value
    return known
