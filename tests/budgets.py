"""What the tests of each folder, or of a file right in tests/, may cost in the default run."""

from __future__ import annotations

from typing import Final

CPU_SECONDS: Final = {
    "advice": 12, "cli": 158, "compare": 48, "detect": 4, "experiment": 12, "hooks": 12, "limits": 6, "load": 28,
    "notify": 20, "page": 48, "ranks": 3, "readers": 42, "real": 59, "regressions": 50, "reports": 33, "session": 45,
    "store": 55, "timeline": 10, "watch": 18,
    "test_api.py": 4, "test_at_once.py": 7, "test_docs.py": 7, "test_docs_commands.py": 9, "test_documents.py": 4,
    "test_edits.py": 3, "test_house_edits.py": 5, "test_job_groups.py": 8,
    "test_language.py": 3, "test_layers.py": 3, "test_packing.py": 4, "test_rereading.py": 4, "test_step_kinds.py": 5,
}  # fmt: skip
"""Measured on two quiet cores; what is not here may take 3. `session`: what is waited for when all tests are over."""
