"""Prints a constraints file for pip: each dependency of a pyproject.toml at the lowest version that it declares.

python scripts/lowest_versions.py pyproject.toml > constraints.txt

What tracker itself needs, and its extras that users install (dask, plot); the tools of the tests are as new as may be.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

OF_USERS = ("plot",)
_LOWEST = re.compile(r"([A-Za-z0-9_.-]+)(?:\[([a-z,]+)\])?\s*>=\s*([0-9][0-9a-z.]*)(?:,\s*<\s*[0-9.]+)?")


def lowest(requirements: list[str]) -> list[str]:
    """`name==version` for each requirement; an extra that is a package of its own (`psycopg[binary]`) beside it.

    >>> lowest(["numpy>=1.26", "psycopg[binary]>=3.1", "apscheduler>=3.10,<4"])
    ['numpy==1.26', 'psycopg==3.1', 'psycopg-binary==3.1', 'apscheduler==3.10']
    """
    found = []
    for requirement in requirements:
        match = _LOWEST.fullmatch(requirement)
        if match is None:
            raise SystemExit(f"{requirement!r} declares no lowest version: write NAME>=VERSION")
        name, extra, version = match.groups()
        found.append(f"{name}=={version}")
        found += [f"{name}-{each}=={version}" for each in (extra or "").split(",") if each]
    return found


def main() -> None:
    """Print the constraints of the file that is named."""
    project = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["project"]
    requirements = [*project["dependencies"]]
    for extra in OF_USERS:
        requirements += project["optional-dependencies"][extra]
    print("\n".join(lowest(requirements)))


if __name__ == "__main__":
    main()
