"""The capture of torch_npu: a copy to be edited, and its events."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.readers.ascend_text.captures import PT, capture


@pytest.fixture
def copy(tmp_path):
    """The folder of a copy of the capture, to be edited."""
    return Path(shutil.copytree(PT, tmp_path / PT.name))


@pytest.fixture(scope="module")
def events():
    return capture().events
