"""Compare what two checkouts of tracker say of the same profiles: JSON values, texts and exit codes.

    .venv/bin/python scripts/compare_results.py --data FOLDER OLD NEW
    .venv/bin/python scripts/compare_results.py --data FOLDER OLD NEW --only diff --pair 'a100/*' 'h100/*'

OLD and NEW are folders that hold a checkout. Every capture under FOLDER that OLD shows as one run goes through show,
cluster and advise, and every pair of captures through diff and advise, each as JSON and as text. A pair is a capture
with the next one, and with the one at the same place of the next folder; --pair adds the pair of the first paths below
FOLDER that match two patterns.

JSON is compared value by value, row by row: whole numbers, words and names exactly, other numbers to --rounding. What
both refuse, with the same message and exit code 2, is counted and listed, and never counts as equal. Where both end in
another way, by a traceback or a signal, nothing is proved: that counts as a difference.

Ends with 0 where all is equal, 1 where something differs, 2 where nothing could be compared.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, Final

ROUNDING: Final = 1e-12
LISTED_DIFFERENCES: Final = 8
CAPTURE_COMMANDS: Final = ("show", "cluster", "advise")
PAIR_COMMANDS: Final = ("diff", "advise")
FORMATS: Final = ("json", "text")
DONE: Final = 0
REFUSED: Final = 2

# Runs in the process of a checkout. Its modules are imported once, which saves half a second a command: a room that is
# not listed here is imported by each command that needs it. Each command gets a fork of its own, so that no command
# finds anything that an earlier one left in memory.
WORKER: Final = """
import importlib, json, os, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import tracker
assert os.path.dirname(tracker.__path__[0]) == sys.argv[1], tracker.__path__
for room in ("readers", "timeline", "store", "compare", "reports", "results", "advice", "ranks", "intake", "cli"):
    if importlib.util.find_spec(f"tracker.{room}") is None:
        continue
    package = importlib.import_module(f"tracker.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"tracker.{room}."):
        importlib.import_module(module.name)
from tracker.__main__ import run
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, path in ((1, request["out"]), (2, request["err"])):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.argv = ["tracker", *request["words"]]
        run()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass(frozen=True)
class Answer:
    """The exit code, output and errors of one command."""

    exit_code: int
    output: str
    errors: str


class Checkout:
    """A checkout whose commands run in forks of one process."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        scratch.mkdir()
        self.scratch = scratch
        # no database and no settings of the person who compares
        environment = {**os.environ, "TRACKER_DB": f"sqlite:///{scratch / 'none.db'}", "HOME": str(scratch)}
        environment["XDG_CONFIG_HOME"] = str(scratch)
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(folder.resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=scratch,
            env=environment,
        )

    def begin(self, words: Sequence[str]) -> None:
        """Start a command; `finish` gives its answer."""
        request = {"words": list(words), "out": str(self.scratch / "out"), "err": str(self.scratch / "err")}
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            sys.exit(2)  # its traceback stands above

    def finish(self) -> Answer:
        """Return the answer of the command that was started."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(2)  # the process ended; its traceback stands above
        output = (self.scratch / "out").read_text(encoding="utf-8", errors="replace")
        errors = (self.scratch / "err").read_text(encoding="utf-8", errors="replace")
        return Answer(int(line), output, errors)

    def run(self, words: Sequence[str]) -> Answer:
        """Run a command to its end."""
        self.begin(words)
        return self.finish()

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def list_captures(checkout: Checkout, folder: Path) -> Iterator[Path]:
    """Yield every file or folder that `show` takes as one run, in order; a folder that it refuses is looked into.

    Files that `show` refuses are yielded too, for a refusal is compared as well.
    """
    for path in sorted(folder.iterdir()):
        if path.is_dir() and checkout.run(["show", str(path), "--format", "json"]).exit_code != 0:
            yield from list_captures(checkout, path)
        else:
            yield path


def list_pairs(captures: Sequence[Path]) -> list[tuple[Path, Path]]:
    """Return each capture with the next one, and with the one at the same place of the next folder.

    >>> paths = [Path(name) for name in ("a/1", "a/2", "b/1", "b/2")]
    >>> [(str(old), str(new)) for old, new in list_pairs(paths)]
    [('a/1', 'a/2'), ('a/2', 'b/1'), ('b/1', 'b/2'), ('a/1', 'b/1'), ('a/2', 'b/2')]
    """
    folders: dict[Path, list[Path]] = {}
    for capture in captures:
        folders.setdefault(capture.parent, []).append(capture)
    pairs = list(pairwise(captures))
    for before, after in pairwise(folders.values()):
        pairs.extend(zip(before, after, strict=False))
    return list(dict.fromkeys(pairs))


def list_differences(old: Any, new: Any, rounding: float = ROUNDING, place: str = "") -> Iterator[str]:
    """Yield a line for each place where two JSON values differ.

    Numbers that are not whole may differ by the share `rounding` of the larger one. A whole number and one that is not
    differ by their kind.

    >>> list(list_differences({"rows": [{"name": "mm", "ns": 3}]}, {"rows": [{"name": "mm", "ns": 4}]}))
    ['.rows[0].ns: 3 -> 4']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in new:
                yield f"{place}.{key}: gone"
            elif key not in old:
                yield f"{place}.{key}: new"
            else:
                yield from list_differences(old[key], new[key], rounding, f"{place}.{key}")
        if list(old) != list(new) and set(old) == set(new):
            yield f"{place}: keys in another order"
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{place}: {len(old)} rows -> {len(new)} rows"
        for index, (old_row, new_row) in enumerate(zip(old, new, strict=False)):
            yield from list_differences(old_row, new_row, rounding, f"{place}[{index}]")
    elif isinstance(old, float) and isinstance(new, float):
        # what is no number is written as null, so that nan cannot come here
        if not math.isclose(old, new, rel_tol=rounding):
            yield f"{place}: {old} -> {new}"
    elif type(old) is not type(new) or old != new:
        yield f"{place}: {json.dumps(old)[:60]} -> {json.dumps(new)[:60]}"


def list_text_differences(old: str, new: str, where: str) -> Iterator[str]:
    """Yield a line for each line of two texts that differs."""
    lines = zip_longest(old.splitlines(), new.splitlines())
    for number, (old_line, new_line) in enumerate(lines, 1):
        if old_line != new_line:
            yield f"{where}, line {number}: {old_line!r} -> {new_line!r}"


def compare_answers(old: Answer, new: Answer, output_format: str, rounding: float) -> list[str]:
    """Return a line for each difference between two answers of one command."""
    differences = []
    if old.exit_code != new.exit_code:
        differences.append(f"exit code {old.exit_code} -> {new.exit_code}")
    documents = None
    if output_format == "json":
        # what broke off has printed no JSON, or a part of it
        with suppress(ValueError):
            documents = json.loads(old.output), json.loads(new.output)
    if documents is not None:
        differences.extend(list_differences(*documents, rounding))
    else:
        differences.extend(list_text_differences(old.output, new.output, "output"))
    differences.extend(list_text_differences(old.errors, new.errors, "errors"))
    if not differences and old.exit_code not in (DONE, REFUSED):
        differences.append(f"both end with {old.exit_code}: {old.errors.strip()[-200:]}")
    return differences


def list_commands(data: Path, captures: Sequence[Path], patterns: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield the words of every command, without its format."""
    for capture in captures:
        for command in CAPTURE_COMMANDS:
            yield [command, str(capture)]
    pairs = list_pairs(captures)
    for old_pattern, new_pattern in patterns:
        old_paths, new_paths = sorted(data.glob(old_pattern)), sorted(data.glob(new_pattern))
        if not old_paths or not new_paths:
            sys.exit(f"compare_results: no path below {data} matches {old_pattern} and {new_pattern}")
        pairs.append((old_paths[0], new_paths[0]))
    for old, new in pairs:
        for command in PAIR_COMMANDS:
            yield [command, str(old), str(new)]


def compare_checkouts(old: Checkout, new: Checkout, arguments: argparse.Namespace) -> Counter[str]:
    """Print what differs, and return how many commands were equal, refused by both, and different."""
    counts: Counter[str] = Counter(equal=0, refused=0, different=0)
    captures = list(list_captures(old, arguments.data))
    for words in list_commands(arguments.data, captures, arguments.pair):
        for output_format in FORMATS:
            title = " ".join([*words, "--format", output_format]).replace(f"{arguments.data}/", "")
            if arguments.only not in title:
                continue
            # both at once, on two cores
            for checkout in (old, new):
                checkout.begin([*words, "--format", output_format])
            old_answer, new_answer = old.finish(), new.finish()
            differences = compare_answers(old_answer, new_answer, output_format, arguments.rounding)
            if differences:
                counts["different"] += 1
                print(f"{title}: {len(differences)} differences", flush=True)
                for line in differences[:LISTED_DIFFERENCES]:
                    print(f"    {line}", flush=True)
            elif old_answer.exit_code == DONE:
                counts["equal"] += 1
            else:
                counts["refused"] += 1
                print(f"{title}: refused by both: {old_answer.errors.strip()}", flush=True)
    return counts


def main() -> None:
    """Compare the two checkouts that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder with captures")
    parser.add_argument("--only", default="", help="only commands that contain this text")
    parser.add_argument("--pair", nargs=2, action="append", default=[], metavar="PATTERN")
    parser.add_argument("--rounding", type=float, default=ROUNDING)
    arguments = parser.parse_args()
    arguments.data = arguments.data.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        old, new = Checkout(arguments.old, Path(scratch, "old")), Checkout(arguments.new, Path(scratch, "new"))
        counts = compare_checkouts(old, new, arguments)
        old.close()
        new.close()
    equal, refused, different = counts["equal"], counts["refused"], counts["different"]
    print(f"{equal} equal, {refused} refused by both, {different} different")
    if different:
        sys.exit(1)
    if not equal:
        sys.exit(2)


if __name__ == "__main__":
    main()
