"""What the tests of each folder, or of a file right in tests/, may cost in the default run."""

from __future__ import annotations

from typing import Final

CPU_SECONDS: Final = {
    "advice": 10, "cli": 204, "compare": 65, "detect": 4, "hooks": 22, "limits": 20, "load": 40, "notify": 26,
    "page": 62, "ranks": 8, "readers": 60, "real": 82, "regressions": 64, "reports": 52, "store": 75, "timeline": 18,
    "watch": 27,
    "test_api.py": 6, "test_branches_come_in.py": 3, "test_language.py": 3,
    "test_at_once.py": 8, "test_docs.py": 9, "test_docs_commands.py": 48, "test_intake.py": 3,
    "test_edits.py": 5, "test_house.py": 3, "test_house_edits.py": 32, "test_layers.py": 4, "test_packing.py": 3,
    "test_registries.py": 8,
    "test_rereading.py": 3, "test_sidecar.py": 3, "test_spooled.py": 3, "test_touching.py": 5, "test_who_is_who.py": 3,
}  # fmt: skip
"""Measured on two quiet cores; what is not here may take 2."""
