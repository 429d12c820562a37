"""What several tests of the shared captures read: the nightly training as a database, the repeats run by run."""

from __future__ import annotations

import pytest

from tests.real import data, gates
from tests.real.per_run import run_of


@pytest.fixture(scope="session")
def nightly():
    """A database with the 12 versions of the nightly training, 3 runs each; read-only by agreement."""
    with gates.ingested(gates.nightly_versions(data.path("torch_cpu/nightly_gpt"))) as store:
        yield store


@pytest.fixture(scope="session")
def repeats():
    """The 20 runs of one version, run by run."""
    return [run_of(path) for path in sorted(data.path("torch_cpu/repeats_gpt").glob("*.gz"))]
