"""Databases in many states, and folders with profiles, each made once: where commands are proposed and run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.factories import save
from tests.regressions import made
from tracker.profile import Device
from tracker.regressions import actions
from tracker.regressions.judgement import tracks_of, update
from tracker.store import Store, open_store
from tracker.store import runs as edits
from tracker.store.versions import pin_version


def _judged(store: Store) -> None:
    update(store, tracks_of(store))


def one_run(store: Store) -> None:
    made.runs(store, "v1", count=1)


def two_versions(store: Store) -> None:
    made.runs(store, "v1", count=1)
    made.runs(store, "v2", count=1, start=1)


def two_workloads(store: Store) -> None:
    """One has versions of the names that the other one has, too."""
    two_versions(store)
    save(store, "v1", workload="bert", ops=[("aten::mm", 100)])
    save(store, "v2", workload="bert", ops=[("aten::mm", 120)])


def two_configurations(store: Store) -> None:
    """v2 is in both configurations, v1 in one, and v3 alone in a third one."""
    made.runs(store, "v1", count=1, of_run={"configuration": {"batch": "8"}})
    made.runs(store, "v2", count=1, start=1, of_run={"configuration": {"batch": "8"}})
    made.runs(store, "v2", count=1, start=2, of_run={"configuration": {"batch": "16"}})
    made.runs(store, "v3", count=1, start=3, of_run={"configuration": {"batch": "32"}})


def two_devices(store: Store) -> None:
    """v1 and v2 on both, v3 on the NPU alone; v2 is slower on the GPU."""
    npu = Device("Huawei", "Ascend910B")
    made.runs(store, "v1", count=5)
    made.runs(store, "v1", count=5, start=20, device=npu)
    made.runs(store, "v2", {"op07": 1.5}, start=5)
    made.runs(store, "v2", start=25, device=npu)
    made.runs(store, "v3", count=1, start=40, device=npu)


def nothing_shared(store: Store) -> None:
    made.runs(store, "v1", count=1, of_run={"configuration": {"batch": "8"}})
    made.runs(store, "v2", count=1, start=1, of_run={"configuration": {"batch": "16"}})


def pinned(store: Store) -> None:
    two_workloads(store)
    pin_version(store, "v1", workload="gpt")


def excluded(store: Store) -> None:
    two_versions(store)
    edits.exclude_all(store, [1, 2], "another job on the node")


def strange_names(store: Store) -> None:
    """Blanks, quotes, a dash in front, numbers and what looks like a device."""
    for number, version in enumerate(("v 1", "-v2", "17", "v@3", "it's")):
        made.runs(store, version, count=1, start=number, workload="my job")


def found(store: Store) -> None:
    """op07 takes half as long again since v2, and op11 since v4."""
    made.runs(store, "v1", count=5)
    made.runs(store, "v2", {"op07": 1.5}, start=5)
    made.runs(store, "v3", {"op07": 1.5}, start=8)
    made.runs(store, "v4", {"op07": 1.5, "op11": 1.4}, start=11)


def suspect(store: Store) -> None:
    made.runs(store, "v1", count=5)
    made.runs(store, "v2", {"op07": 1.5}, count=1, start=5)


def recovered(store: Store) -> None:
    made.runs(store, "v1", count=5)
    made.runs(store, "v2", {"op07": 1.5}, start=5)
    made.runs(store, "v3", start=8, count=5)


def _acted(action: str, **more: object) -> Callable[[Store], None]:
    def build(store: Store) -> None:
        found(store)
        _judged(store)
        wish = actions.Word(action, "ann", 1_900_000_000 * 10**9, "so it is", **more)
        actions.act(store, wish, incident_ids=[1])

    return build


STATES: dict[str, Callable[[Store], None]] = {
    "empty": lambda store: None,
    "one run": one_run,
    "two versions": two_versions,
    "two workloads": two_workloads,
    "two configurations": two_configurations,
    "two devices": two_devices,
    "nothing shared": nothing_shared,
    "pinned": pinned,
    "excluded": excluded,
    "strange names": strange_names,
    "found": found,
    "suspect": suspect,
    "recovered": recovered,
    "acknowledged": _acted("ack"),
    "expected": _acted("expect"),
    "muted": _acted("mute", until_version="v99"),
    "invalid": _acted("invalid"),
    "noted": _acted("note"),
}


def make(folder: Path, state: str) -> Path:
    """The database of a state, judged."""
    path = folder / f"{state.replace(' ', '_')}.db"
    with open_store(str(path)) as store:
        STATES[state](store)
        _judged(store)
    return path
