"""Who ran what, where: labels of runs, runs, their facts, files and captures."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Boolean, CheckConstraint, Index, UniqueConstraint, text
from sqlmodel import Field

from tracker.schema.breakdown import breakdown_columns
from tracker.store.tables.base import (
    Base,
    Binary,
    digest,
    key,
    known_digest,
    make_columns,
    make_table,
    row_id,
    text_key,
    text_value,
    value,
)


class Workload(Base, table=True):
    """A training job that is followed over versions, or a branch of one: `main_id` is the workload of its main line,
    and `name` holds both (see `profile.branches`).
    """

    __tablename__ = "workload"
    __table_args__ = (UniqueConstraint("name"),)
    id: int | None = row_id()
    name: str = text_key()
    main_id: int | None = value()


class Configuration(Base, table=True):
    """What must be equal for two runs of a workload, and of its branches, to be compared. `title`: its values as text,
    `batch=32 tp=2`.
    """

    __tablename__ = "configuration"
    __table_args__ = (UniqueConstraint("workload_id", "fingerprint"),)
    id: int | None = row_id()
    workload_id: int = key(references="workload.id", primary=False)
    fingerprint: Binary = digest()
    title: str = text_key()


class ConfigurationValue(Base, table=True):
    """One value of a configuration."""

    __tablename__ = "configuration_value"
    configuration_id: int = key(references="configuration.id")
    key: str = text_key(primary=True)
    value: str = text_key()


class Version(Base, table=True):
    """A version of a workload. `ordinal`: its place in the order of versions, first ingest first unless reordered;
    `main_commits`: of a branch, the commits of the main line from the merge base back, the newest first, by blanks.
    """

    __tablename__ = "version"
    __table_args__ = (UniqueConstraint("workload_id", "label"),)
    id: int | None = row_id()
    workload_id: int = key(references="workload.id", primary=False)
    label: str = text_key()
    ordinal: int = key(primary=False)
    commit_id: str | None = text_value()
    parent: str | None = text_value()
    note: str | None = text_value()
    pinned: bool = Field(sa_type=Boolean, nullable=False, sa_column_kwargs={"server_default": text("false")})
    main_commits: str | None = text_value()


class Device(Base, table=True):
    """A hardware model, and only that: a new driver is what we want to judge, not a reason not to."""

    __tablename__ = "device"
    __table_args__ = (UniqueConstraint("vendor", "model"),)
    id: int | None = row_id()
    vendor: str = text_key()
    model: str = text_key()


class Recording(Base, table=True):
    """How runs were recorded, as their captures say it: one row for all runs that say the same, JSON."""

    __tablename__ = "recording"
    __table_args__ = (UniqueConstraint("digest"),)
    id: int | None = row_id()
    digest: Binary = digest()
    content: str = text_key()


class Run(Base, table=True):
    """A training job that was profiled. `started_at_ns` to `ended_at_ns`: the window of its captures, UTC.

    `document_of`: the run of which this is another source, as a timer log beside a trace: it is excluded, and its step
    counts as a series of that run. `experiment_id`: the experiment that it is a run of, whose side and pair follow: it
    is excluded from all that follows versions.
    """

    __tablename__ = "run"
    # A number that once meant a run must never mean another one.
    __table_args__: Any = (
        CheckConstraint("state IN ('active', 'excluded', 'deleted')", name="state"),
        Index(None, "version_id"),
        Index(None, "workload_id", "state"),
        Index(None, "document_of"),
        Index(None, "experiment_id"),
        {"sqlite_autoincrement": True},
    )
    id: int | None = row_id()
    workload_id: int = key(references="workload.id", primary=False)
    configuration_id: int = key(references="configuration.id", primary=False)
    version_id: int = key(references="version.id", primary=False)
    device_id: int = key(references="device.id", primary=False)
    state: str = text_key()
    state_reason: str = text_key()
    ranks_expected: int | None = value()
    world_size: int | None = value()
    started_at_ns: int | None = value()
    ended_at_ns: int | None = value()
    rules_version: int | None = value()
    note: str | None = text_value()
    sample_rules: int | None = value()
    recording_id: int | None = value()
    ranks_handed_over: int | None = value()
    last_rank_at_ns: int | None = value()
    ranks_awaited: int | None = value()
    document_of: int | None = value()
    experiment_id: int | None = value()
    experiment_side: str | None = text_value()
    experiment_pair: int | None = value()


class RunFact(Base, table=True):
    """One thing known of a run. `kind`: `fact` (its environment) or `tag` (the user's own)."""

    __tablename__ = "run_fact"
    __table_args__ = (Index(None, "kind", "key"),)
    run_id: int = key(references="run.id")
    kind: str = text_key(primary=True)
    key: str = text_key(primary=True)
    value: str = text_key()


class RunGroup(Base, table=True):
    """A process group of a run, -1 for calls that name none; one group has equal role and members in all captures."""

    __tablename__ = "run_group"
    run_id: int = key(references="run.id")
    number: int = key()
    process_group_id: int = key(primary=False)
    ranks: str = text_key()
    members: int | None = value()
    captured: int | None = value()
    clock_offset_ns: int | None = value()


class Source(Base, table=True):
    """A file that was read. `digest`: of its decompressed content; `rank`: the lowest one that it holds."""

    __tablename__ = "source"
    __table_args__ = (UniqueConstraint("digest"), Index(None, "run_id", "rank"))
    id: int | None = row_id()
    run_id: int = key(references="run.id", primary=False)
    rank: int = key(primary=False)
    format: str = text_key()
    path: str = text_key()
    bytes: int | None = value()
    digest: Binary = digest()


class CaptureKey(Base):
    """What identifies a capture, and what is known of it beside its times; `stage` to `cp_index` place its rank."""

    run_id: int = key(references="run.id")
    rank: int = key()
    host: str = text_key()
    device_ordinal: int | None = value()
    stage: int | None = value()
    dp_index: int | None = value()
    tp_index: int | None = value()
    pp_index: int | None = value()
    ep_index: int | None = value()
    cp_index: int | None = value()
    settings: str = text_key()
    quality: str = text_key()
    quality_reason: str = text_key()
    started_at_ns: int | None = value()
    ended_at_ns: int | None = value()


Capture: Final = make_table(
    "Capture",
    "capture",
    "One rank of a run: its place, the profiler's settings (JSON), and the breakdown of the whole capture.",
    {
        # in the order of the table, at whose end migrations add columns
        **make_columns(breakdown_columns(up_to="samples_per_second")),
        "pruned_at_ns": (value(), int | None),
        **make_columns(breakdown_columns("samples_per_second", "host_idle_ns")),
        "identity": (known_digest(), bytes | None),
        **make_columns(breakdown_columns("host_idle_ns")),
    },
    parents=(CaptureKey,),
    arguments=(Index(None, "identity"),),
)
