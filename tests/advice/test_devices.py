"""The table of devices: each entry with its source, found by whole words of a device's name."""

from __future__ import annotations

import pytest

from tracker.advice.devices import device_of, devices


@pytest.mark.parametrize(("name", "model", "half"), [
    ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB", 312), ("NVIDIA A10", "A10", 125), ("NVIDIA H200", "H200", 989),
    ("NVIDIA H20", "H20", 148), ("NVIDIA GH200 480GB", "GH200", 989), ("Tesla V100-SXM2-16GB", "V100-SXM2-16GB", 125),
    ("NVIDIA GeForce RTX 4090", "RTX 4090", 165.2), ("Ascend910B3", "Ascend910B3", 294.9),
    ("Ascend910_9392", "Ascend910_93*", 353.9), ("AMD Instinct MI355X", "MI355X", 2516),
])  # fmt: skip
def test_a_device_is_found_by_words_of_its_name(name, model, half):
    found = device_of(name, {})
    assert (found.model, found.half) == (model, half)


@pytest.mark.parametrize("name", [
    "NVIDIA A10G", "NVIDIA T400", "NVIDIA GeForce RTX 4090 Laptop GPU", "Ascend910B", "unknown", "",
    "NVIDIA GeForce RTX 3080 Ti", "NVIDIA GeForce RTX 4070 SUPER", "NVIDIA A100-SXM-64GB",
])  # fmt: skip
def test_a_device_that_is_not_in_the_table_is_none_of_its_neighbours(name):
    assert device_of(name, {}) is None


def test_each_entry_is_found_by_its_own_name_and_has_a_source():
    for entry in devices():
        assert device_of(entry.model.replace("*", "1"), {}) == entry
        assert entry.source
        assert entry.half is not None


def test_an_npu_that_states_its_cores_needs_no_entry():
    found = device_of("Ascend999", {"ai_core_num": "20", "aic_frequency": "1800"})
    assert round(found.half, 1) == 294.9  # 20 x 1,800 MHz x 8192
