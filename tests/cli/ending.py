"""How the output of a command ends: its last result, and the commands that it proposes."""

from __future__ import annotations


def ending(text: str) -> str:
    """Return the last line of a result with the proposed commands behind it, where there are any."""
    result, _, commands = text.rstrip("\n").rpartition("\nNext:\n")
    lines = result.splitlines() or [""]
    return f"{lines[-1]}\nNext:\n{commands}" if result else text.splitlines()[-1]
