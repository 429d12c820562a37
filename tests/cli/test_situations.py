"""What a team meets, and what each of its people is told first: the command, its exit code, its first two lines."""

from __future__ import annotations

import time

import pytest

from tests.factories import save
from tests.regressions.made import runs
from tracker.profile import Device
from tracker.regressions.actions import Word, act
from tracker.regressions.inbox import found_rows
from tracker.regressions.judgement import lines_of, update
from tracker.store import open_store
from tracker.store import runs as edits
from tracker.store.order import order_versions

SLOW = {"op07": 5.0}
"""op07 takes 5 ms instead of 1: a step of 44 ms instead of 40."""
FAST = {f"op{at}": 0.5 for at in range(10, 20)}
"""Ten of forty operators take half a millisecond: 35 ms."""


def versions(store, *changes, count=3, **more):
    """A version of `count` runs for each of `changes`, in their order."""
    for at, changed in enumerate(changes):
        runs(store, f"v{at + 1}", changed, start=count * at, count=count, **more)
    update(store, lines_of(store))


def mark(store, action, names=None):
    """Let ann say something of all open findings, or of those of some names."""
    rows = [row for row in found_rows(store) if row["base_state"] == "open"]
    ids = [row["finding_id"] for row in rows if names is None or row["name"] in names]
    act(store, Word(action, "ann", time.time_ns(), "float64", until_version="v99"), finding_ids=ids)


def first_version(store):
    versions(store, None)


def one_run_each(store):
    versions(store, None, SLOW, count=1)


def one_run_after_a_level(store):
    runs(store, "v1", count=4)
    runs(store, "v2", SLOW, start=4, count=1)
    update(store, lines_of(store))


def second_run_confirms(store):
    one_run_after_a_level(store)
    runs(store, "v2", SLOW, start=5, count=1)
    update(store, lines_of(store))


def not_confirmed(store):
    for at in range(8):
        runs(store, f"v{at + 1}", SLOW if at == 5 else None, start=at, count=1)
        update(store, lines_of(store))


def confirmed_over_versions(store):
    for at in range(8):
        runs(store, f"v{at + 1}", SLOW if at > 4 else None, start=at, count=1)
        update(store, lines_of(store))


def slower(store):
    versions(store, None, SLOW)


def reverted(store):
    versions(store, None, SLOW, None)


def goes_on(store):
    versions(store, None, SLOW, SLOW)


def half_back(store):
    versions(store, None, SLOW, {"op07": 3.0})


def improved(store):
    versions(store, None, FAST)


def improved_and_lost(store):
    versions(store, None, FAST, None)


def expected(store):
    slower(store)
    mark(store, "expect")


def operator_expected(store):
    slower(store)
    mark(store, "expect", {"op07"})


def muted(store):
    slower(store)
    mark(store, "mute")


def acknowledged(store):
    slower(store)
    mark(store, "ack")


def relabelled(store):
    runs(store, "v1")
    moved = runs(store, "v2", SLOW, start=3)
    update(store, lines_of(store))
    mark(store, "expect")
    edits.edit_all(store, moved, version="v2-fixed-name")
    update(store, lines_of(store))


def rebased(store):
    """v3 is put before v2: what v2 lost, v3 had not."""
    reverted(store)
    order_versions(store, ["v1", "v3", "v2"], workload="gpt")
    update(store, lines_of(store))


def excluded_later(store):
    runs(store, "v1")
    runs(store, "v2", start=3)
    bad = runs(store, "v2", {f"op{at:02}": 1.4 for at in range(40)}, start=6, count=1)
    update(store, lines_of(store))
    edits.exclude_all(store, bad, "a compile job on the node")
    update(store, lines_of(store))


def backfilled(store):
    """v1b comes in after v2, and belongs before it: it is as slow, so that v2 is no news."""
    slower(store)
    runs(store, "v1b", SLOW, start=9)
    order_versions(store, ["v1", "v1b", "v2"], workload="gpt")
    update(store, lines_of(store))


def other_settings(store):
    runs(store, "v1")
    runs(store, "v2", SLOW, start=3, settings={"with_stack": "on"})
    update(store, lines_of(store))


def other_device(store):
    runs(store, "v1")
    runs(store, "v2", SLOW, start=3, device=Device("Ascend", "910B"))
    update(store, lines_of(store))


def other_configuration(store):
    runs(store, "v1")
    runs(store, "v2", SLOW, start=3, of_run={"configuration": {"batch": "64"}})
    update(store, lines_of(store))


def other_workload(store):
    runs(store, "v1")
    runs(store, "v2", SLOW, start=3, workload="bert")
    update(store, lines_of(store))


def machine_drifts(store):
    runs(store, "v1", count=5)
    runs(store, "v2", start=5, shared=1.06)
    update(store, lines_of(store))


def waits_for_data(store):
    runs(store, "v1")
    runs(store, "v2", start=3, idle_ns=10_000_000)
    update(store, lines_of(store))


def new_operator(store):
    runs(store, "v1")
    runs(store, "v2", {"relu": 1_000_000}, start=3, without=("op07",))
    update(store, lines_of(store))


def more_memory(store):
    for at, size in enumerate((100, 130)):
        save(store, f"v{at + 1}", runs=3, steps=2, step_ns=10**7, peak_allocated_bytes=size << 20)


def two_workloads(store):
    """bert loses 10 % of 40 ms, gpt 20 ms of 40, of which gpt is the worse."""
    for workload, change in (("bert", SLOW), ("gpt", {"op07": 21.0})):
        runs(store, "v1", start=0, workload=workload)
        runs(store, "v2", change, start=3, workload=workload)
    update(store, lines_of(store))


SITUATIONS = {}
