"""Golden files: `pytest tests/reports --update-golden` rewrites them; review the change with `git diff`."""

from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def golden(request):
    """Compares a document with the golden file of that name, to the character."""

    def check(name, document):
        path = GOLDEN / name
        # the option exists only where pytest was started with this folder
        if request.config.getoption("--update-golden", default=False):
            path.write_text(document, encoding="utf-8", newline="")
        assert path.exists(), f"no golden file {name}: run pytest tests/reports --update-golden"
        assert document == path.read_bytes().decode("utf-8")

    return check
