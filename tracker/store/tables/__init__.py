"""The tables of the database, as SQLModel classes; `metadata` holds them all.

Nothing here runs on the way of a query or an ingest: those are SQL. The classes are what the migrations are checked
against, and what a database in memory is made from.
"""

from __future__ import annotations

from tracker.store.tables.base import metadata
from tracker.store.tables.details import (
    Api,
    CollectiveCall,
    Communication,
    CommunicationLink,
    CommunicationTask,
    Counter,
    Kernel,
    KernelMetric,
    Memory,
    MemoryAllocator,
    MemoryBlock,
    MemoryCurve,
    MemoryPeak,
    Op,
    OpTree,
    Step,
)
from tracker.store.tables.dimensions import CallStack, DetailText, KernelKey, OpKey, ProcessGroup
from tracker.store.tables.judgement import Sample, SampleArray, Series, StoredAdvice, Threshold
from tracker.store.tables.notifications import Notification, Silence
from tracker.store.tables.regressions import (
    ExactFact,
    FindingWord,
    FoundChange,
    SeriesVerdict,
    VersionIncident,
    VersionJudgement,
)
from tracker.store.tables.runs import (
    Capture,
    Configuration,
    ConfigurationValue,
    Device,
    Recording,
    Run,
    RunFact,
    RunGroup,
    Source,
    Version,
    Workload,
)
from tracker.store.tables.watch import Expectation, Inbox, Lease, WatchedFolder, Watcher

__all__ = [
    "Api",
    "CallStack",
    "Capture",
    "CollectiveCall",
    "Communication",
    "CommunicationLink",
    "CommunicationTask",
    "Configuration",
    "ConfigurationValue",
    "Counter",
    "DetailText",
    "Device",
    "ExactFact",
    "Expectation",
    "FindingWord",
    "FoundChange",
    "Inbox",
    "Kernel",
    "KernelKey",
    "KernelMetric",
    "Lease",
    "Memory",
    "MemoryAllocator",
    "MemoryBlock",
    "MemoryCurve",
    "MemoryPeak",
    "Notification",
    "Op",
    "OpKey",
    "OpTree",
    "ProcessGroup",
    "Recording",
    "Run",
    "RunFact",
    "RunGroup",
    "Sample",
    "SampleArray",
    "Series",
    "SeriesVerdict",
    "Silence",
    "Source",
    "Step",
    "StoredAdvice",
    "Threshold",
    "Version",
    "VersionIncident",
    "VersionJudgement",
    "WatchedFolder",
    "Watcher",
    "Workload",
    "metadata",
]
