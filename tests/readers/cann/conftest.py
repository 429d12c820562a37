"""Copies of the captures of CANN, to be edited."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.readers.cann.captures import NEW, OLD, OUTPUT, TIME


@pytest.fixture
def new(tmp_path):
    return Path(shutil.copytree(NEW, tmp_path / NEW.name))


@pytest.fixture
def old(tmp_path):
    return Path(shutil.copytree(OLD, tmp_path / OLD.name))


@pytest.fixture
def two(new):
    """Two devices: Add1 and all events of the hardware happen on the second one too; the frequencies differ."""
    file = new / OUTPUT / f"op_summary_{TIME}.csv"
    rows = file.read_text().splitlines()
    file.write_text("\n".join([*rows, "1" + rows[2][1:]]) + "\n")
    trace = new / OUTPUT / f"msprof_{TIME}.json"
    events = json.loads(trace.read_text())
    # pid << 10 | layer << 5 | device
    hardware = 77 << 10 | 13 << 5
    others = [{**event, "pid": event["pid"] + 1} for event in events if event["pid"] == hardware]
    counted = [
        {"ph": "C", "name": "MHz", "pid": pid, "tid": 0, "ts": "1700000000000011.000", "args": {"MHz": value}}
        for pid, value in ((hardware, 800), (hardware + 1, 1650), (77 << 10 | 31, 2600))
    ]
    trace.write_text(json.dumps([*events, *others, *counted]))
    shutil.copytree(new / "device_0", new / "device_1")
    return new
