"""One device has one name, however it is spelled: on the command line, in files, in filters."""

from __future__ import annotations

import pytest

from tests.factories import save
from tracker.errors import UsageError
from tracker.intake import parse_device
from tracker.profile import Device
from tracker.store import queries

FILES = Device("Huawei", "Ascend910B")
SPELLINGS = ("Ascend910B", "Ascend 910B", "ascend910b", "ascend_910b", "ASCEND-910B", "Huawei Ascend 910B")


@pytest.mark.parametrize("said", SPELLINGS)
def test_a_chip_of_ascend_is_spelled_as_in_files(said: str):
    assert parse_device(said) == FILES


@pytest.mark.parametrize("said", SPELLINGS)
def test_filters_find_a_device_in_every_spelling(store, said: str):
    save(store, device=FILES)
    save(store, "v2", device=Device("NVIDIA", "H100 80GB HBM3"))
    assert queries.run_ids_of_version(store, "v1", device=said) == (1,)
    assert queries.runs(store, device=said).frame["run_id"].tolist() == [1]


def test_runs_of_one_device_in_two_spellings_are_of_one_device(store):
    spelled = [FILES, Device("Huawei", "Ascend 910B"), Device("Huawei", "910B"), Device("", "ascend910b")]
    for device in spelled:
        save(store, device=device)
    assert set(queries.runs(store).frame["device"]) == {"Ascend910B"}


def test_what_cannot_be_told_stays_two_devices(store):
    models = [Device("NVIDIA", "H100"), Device("NVIDIA", "H100 80GB HBM3"), Device("AMD", "H100")]
    unknown = [Device("", "unknown"), Device("Huawei", "unknown")]
    for device in (*models, *unknown):
        save(store, device=device)
    found = queries.runs(store).frame
    assert len(set(zip(found["vendor"], found["device"], strict=True))) == 5


def test_a_device_in_full_beats_longer_names_without_its_vendor(store):
    save(store, device=Device("NVIDIA", "H100"))
    save(store, device=Device("NVIDIA", "H100 80GB HBM3"))
    assert queries.run_ids_of_version(store, "v1", device="h100") == (1,)
    with pytest.raises(UsageError, match="means several devices"):
        queries.run_ids_of_version(store, "v1", device="nvidia")
