"""Where the sidecar of a profile lies: what its job says of it, in a file of its own."""

from __future__ import annotations

import os

SIDECAR = "tracker.json"
"""What lies inside of a profile that is a folder, and, as `NAME.tracker.json`, beside one that is the file NAME."""


def sidecar_of(profile: str) -> str:
    """Where the sidecar of a profile lies, there or not."""
    return os.path.join(profile, SIDECAR) if os.path.isdir(profile) else profile + "." + SIDECAR
