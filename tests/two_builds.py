"""A made job in a git repository, of which the branch fix has a slower layer norm than main; docs/ab.md shows what
`tracker ab` says of both.

    python -m tests.two_builds      # commits both in the current folder, which is a repository
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

JOB = """\
import json, os, random

TIMES_US = {{"aten::mm": 60_000, "aten::gelu": 14_000, "aten::add_": 8_000, "aten::native_layer_norm": {layer_norm_us}}}
os.makedirs("prof", exist_ok=True)
run = 1 + len(os.listdir("prof"))
chance = random.Random(f"{layer_norm_us} {{run}}")
factor = chance.gauss(1, 0.01)
events, at_us = [], 0


def add(cat, name, duration_us):
    events.append({{"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": at_us, "dur": duration_us}})


for step in range(5, 15):
    began_us = at_us
    for name, time_us in TIMES_US.items():
        duration_us = round(time_us * factor * chance.gauss(1, 0.003))
        add("cpu_op", name, duration_us)
        at_us += duration_us + 50
    ended_us, at_us = at_us, began_us
    add("user_annotation", f"ProfilerStep#{{step}}", ended_us - began_us)
    at_us = ended_us
start = 1_760_000_000_000_000_000 + run * 60_000_000_000 + {layer_norm_us}
with open(f"prof/run{{run}}.json", "w") as file:
    json.dump({{"schemaVersion": 1, "baseTimeNanoseconds": start, "traceEvents": events}}, file)
"""
"""Writes one PyTorch trace a run: ten steps of four operators, whose times differ by 1 % from run to run."""
_LAYER_NORM_US = {"main": 6_000, "fix": 12_000}
_WHEN = "1760000000 +0000"


def commit_two_builds(folder: Path) -> None:
    """Commit both builds, that of fix on top of that of main, and check fix out; their hashes are always the same."""
    author = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_AUTHOR_DATE": _WHEN}
    committer = {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_COMMITTER_DATE": _WHEN}

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(folder), *words], env={**os.environ, **author, **committer}, check=True)

    git("checkout", "-q", "--orphan", "both")
    for branch, layer_norm_us in _LAYER_NORM_US.items():
        (folder / "train.py").write_text(JOB.format(layer_norm_us=layer_norm_us))
        git("add", "train.py")
        git("commit", "-q", "-m", branch)
        git("branch", "-q", "--force", branch)
    git("checkout", "-q", "fix")


if __name__ == "__main__":
    commit_two_builds(Path.cwd())
