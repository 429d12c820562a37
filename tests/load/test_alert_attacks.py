"""scripts/attack_alerts.py: services that redirect, never end, or answer with what harms get one request each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "attack_alerts.py"


@pytest.mark.slow
def test_no_service_takes_more_than_was_promised():
    words = [sys.executable, str(SCRIPT), "--seconds", "15"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 1 + 11, "the head, and a line a service"
