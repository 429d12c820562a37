"""Compare what two checkouts of tracker say of the same profiles: values, texts, cells of workbooks and exit codes.

    .venv/bin/python scripts/compare_results.py --data FOLDER OLD NEW
    .venv/bin/python scripts/compare_results.py --data FOLDER OLD NEW --only diff --pair 'a100/*' 'h100/*'
    .venv/bin/python scripts/compare_results.py --data FOLDER OLD NEW --store 'nightly/*' --store 'two_ranks/*'
    .venv/bin/python scripts/compare_results.py --data FOLDER OLD NEW --formats json,text,markdown,html,csv,xlsx

OLD and NEW are folders that hold a checkout. Every capture under FOLDER that OLD shows as one run goes through show,
cluster and advise, and every pair of captures through diff, advise and cluster, each as JSON and as text; --formats
names others. A pair is a capture with the next one, and with the one at the same place of the next folder; --pair adds
the pair of the first paths below FOLDER that match two patterns.

With --store each checkout makes a database of its own of what the pattern matches below FOLDER, in the order of the
names: a run each, whose version is its name before "_run". Both clocks are the same. What is compared is every command
that reads a database, of each finding and of each pair of neighbouring versions, and each page that the first page of
`tracker page` leads to.

JSON is compared value by value, row by row: whole numbers, words and names exactly, other numbers to --rounding.
Workbooks are compared cell by cell: what stands there, how it is written, where it leads. What both refuse, with the
same message and exit code 2, is counted and listed, and never counts as equal. Where both end in another way, by a
traceback or a signal, nothing is proved: that counts as a difference.

Ends with 0 where all is equal, 1 where something differs, 2 where nothing could be compared.
"""

from __future__ import annotations

import argparse
import html
import http.client
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, Final

from openpyxl import load_workbook

ROUNDING: Final = 1e-12
LISTED_DIFFERENCES: Final = 8
CAPTURE_COMMANDS: Final = ("show", "cluster", "advise")
PAIR_COMMANDS: Final = ("diff", "advise", "cluster")
FORMATS: Final = ("json", "text", "markdown", "html", "csv", "xlsx")
USUAL_FORMATS: Final = "json,text"
DONE: Final = 0
REFUSED: Final = 2
FIRST_MOMENT_NS: Final = 1_800_000_000_000_000_000
MINUTE_NS: Final = 60_000_000_000
"""When the first command of a checkout runs, and how much later each next one does: ages are those of a database that
was filled slowly, and the same in both checkouts.
"""
STORED_RESULTS: Final = (
    "board", "findings", "findings --new", "findings --all --state all", "log", "history", "history --top 20",
    "history --against pinned", "advise latest", "cluster latest",
)  # fmt: skip
STORED_LISTS: Final = ("runs", "versions", "status")
"""Commands that ask a database without naming anything in it: results in all formats, and lists in two of them."""
MOST_PAGES: Final = 400
"""Pages that are compared of one database."""
FIRST_LOAD_S: Final = 60
ALERTS: Final = """
[[alerts.channels]]
name = "team"
url = "https://alerts.example/hook"
[[alerts.rules]]
workload = "*"
severity = "info"
channels = ["team"]
"""

# Runs in the process of a checkout. Its modules are imported once, which saves half a second a command: a room that is
# not listed here is imported by each command that needs it. Each command gets a fork of its own, so that no command
# finds anything that an earlier one left in memory.
WORKER: Final = """
import importlib, json, os, pkgutil, sys, time
moment_ns = 0
time.time_ns = lambda: moment_ns
time.time = lambda: moment_ns / 1e9
sys.path.insert(0, sys.argv[1])
import tracker
assert os.path.dirname(tracker.__path__[0]) == sys.argv[1], tracker.__path__
for room in ("readers", "timeline", "store", "compare", "reports", "results", "advice", "ranks", "regressions",
             "notify", "intake", "cli"):
    if importlib.util.find_spec(f"tracker.{room}") is None:
        continue
    package = importlib.import_module(f"tracker.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"tracker.{room}."):
        importlib.import_module(module.name)
from tracker.__main__ import run
for line in sys.stdin:
    request = json.loads(line)
    moment_ns = request["moment_ns"]
    child = os.fork()
    if child == 0:
        os.environ.update(request["environment"])
        for number, path in ((1, request["out"]), (2, request["err"])):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.argv = ["tracker", *request["words"]]
        run()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass(frozen=True)
class Answer:
    """The exit code, output and errors of one command, and the cells of the workbook that it wrote, by place."""

    exit_code: int
    output: str
    errors: str
    cells: dict[str, str]


class Checkout:
    """A checkout whose commands run in forks of one process."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        scratch.mkdir()
        self.scratch = scratch
        self.folder = folder.resolve()
        self.book = scratch / "book.xlsx"
        self.moment_ns = FIRST_MOMENT_NS
        # no database and no settings of the person who compares
        environment = {**os.environ, "TRACKER_DB": f"sqlite:///{scratch / 'none.db'}", "HOME": str(scratch)}
        environment["XDG_CONFIG_HOME"] = str(scratch)
        self.environment = environment
        self.variables: dict[str, str] = {}
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=scratch,
            env=environment,
        )

    def begin(self, words: Sequence[str], output_format: str = "") -> None:
        """Start a command; `finish` gives its answer. Without `output_format` it is one that has none."""
        words = [*words, "--format", output_format] if output_format else [*words]
        self.book.unlink(missing_ok=True)
        if output_format == "xlsx":
            words += ["--output", str(self.book)]
        request = {
            "words": words, "out": str(self.scratch / "out"), "err": str(self.scratch / "err"),
            "environment": self.variables, "moment_ns": self.moment_ns,
        }  # fmt: skip
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
        output, errors = (self._read_printed(name) for name in ("out", "err"))
        cells = list_cells(self.book) if self.book.exists() else {}
        return Answer(int(line), output, errors, cells)

    def _read_printed(self, name: str) -> str:
        printed = (self.scratch / name).read_text(encoding="utf-8", errors="replace")
        # each checkout has a folder of its own
        return printed.replace(str(self.scratch), "SCRATCH")

    def run(self, words: Sequence[str], output_format: str = "") -> Answer:
        """Run a command to its end."""
        self.begin(words, output_format)
        return self.finish()

    def use_database(self, name: str) -> None:
        """Let all commands from now on work in the database of this name, with a channel for alerts."""
        settings = self.scratch / "tracker.toml"
        settings.write_text(ALERTS, encoding="utf-8")
        # an address is a secret: what others may read is refused
        settings.chmod(0o600)
        self.variables = {
            "TRACKER_DB": f"sqlite:///{self.scratch / name}.db",
            "TRACKER_CONFIG": str(settings),
        }

    @contextmanager
    def serve_pages(self) -> Iterator[Path]:
        """Run `tracker page` on the database, and give the socket that it listens on."""
        address = self.scratch / "page.sock"
        command = [sys.executable, "-m", "tracker", "page", "--no-token", "--socket", str(address)]
        environment = {**self.environment, **self.variables, "PYTHONPATH": str(self.folder)}
        with subprocess.Popen(
            command, cwd=self.scratch, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as server:
            deadline = time.monotonic() + FIRST_LOAD_S
            while not address.exists() and server.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            try:
                yield address
            finally:
                server.send_signal(signal.SIGTERM)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def list_cells(path: Path) -> dict[str, str]:
    """Return what stands in each cell of a workbook, how it is written and where it leads, by sheet and place; and of
    each sheet what belongs to none of its cells.
    """
    cells = {}
    for sheet in load_workbook(path):
        around = (sheet.freeze_panes, sorted(map(str, sheet.merged_cells.ranges)), len(sheet._charts))
        cells[sheet.title] = repr(around)
        for row in sheet.iter_rows():
            for cell in row:
                if cell.value is None and not cell.has_style:
                    continue
                link = cell.hyperlink.target or cell.hyperlink.location if cell.hyperlink else None
                look = (cell.number_format, cell.font.b, cell.font.color and cell.font.color.rgb, cell.fill.fgColor.rgb)
                cells[f"{sheet.title}!{cell.coordinate}"] = repr((cell.value, look, link))
    return cells


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
    differences.extend(list_differences(old.cells, new.cells, rounding, "workbook"))
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


class Comparison:
    """What the commands of two checkouts answer: how many were equal, refused by both, and different."""

    def __init__(self, old: Checkout, new: Checkout, arguments: argparse.Namespace) -> None:
        self.old, self.new = old, new
        self.arguments = arguments
        self.counts: Counter[str] = Counter(equal=0, refused=0, different=0)

    def compare(self, words: Sequence[str], output_format: str = "") -> None:
        """Run a command in both checkouts, count how it ends, and print what differs."""
        asked = [*words, "--format", output_format] if output_format else words
        title = " ".join(asked).replace(f"{self.arguments.data}/", "")
        if self.arguments.only not in title:
            return
        # both at once, on two cores
        for checkout in (self.old, self.new):
            checkout.moment_ns += MINUTE_NS
            checkout.begin(words, output_format)
        old_answer, new_answer = self.old.finish(), self.new.finish()
        differences = compare_answers(old_answer, new_answer, output_format, self.arguments.rounding)
        if not differences and old_answer.exit_code != DONE:
            self.counts["refused"] += 1
            print(f"{title}: refused by both: {old_answer.errors.strip()}", flush=True)
        else:
            self.count(title, differences)

    def count(self, title: str, differences: Sequence[str]) -> None:
        """Count one answer as equal or different, and print the first differences."""
        if not differences:
            self.counts["equal"] += 1
            return
        self.counts["different"] += 1
        print(f"{title}: {len(differences)} differences", flush=True)
        for line in differences[:LISTED_DIFFERENCES]:
            print(f"    {line}", flush=True)


def compare_captures(comparison: Comparison) -> None:
    """Compare what is said of every capture, and of pairs of them, without a database."""
    arguments = comparison.arguments
    captures = list(list_captures(comparison.old, arguments.data))
    for words in list_commands(arguments.data, captures, arguments.pair):
        for output_format in arguments.formats.split(","):
            comparison.compare(words, output_format)


def compare_stores(comparison: Comparison, pattern: str, name: str) -> None:
    """Fill a database with each checkout, and compare all that is said of it."""
    both = (comparison.old, comparison.new)
    formats = comparison.arguments.formats.split(",")
    paths = sorted(comparison.arguments.data.glob(pattern))
    if not paths:
        sys.exit(f"compare_results: no path below {comparison.arguments.data} matches {pattern}")
    for checkout in both:
        checkout.use_database(name)
    versions = []
    for path in paths:
        version = path.name.partition("_run")[0]
        versions.append(version)
        comparison.compare(["ingest", str(path), "--version", version, "--workload", "series"])
    comparison.compare(["versions", "pin", versions[0]])
    comparison.compare(["notify", "--dry-run"])
    comparison.compare(["notify", "--list"])
    for words in list_stored_results(comparison.old, list(dict.fromkeys(versions))):
        for output_format in formats:
            comparison.compare(words, output_format)
    for command in STORED_LISTS:
        for output_format in ("json", "text"):
            comparison.compare([command], output_format)
    if comparison.arguments.only in "page":
        compare_pages(comparison)


def list_stored_results(checkout: Checkout, versions: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words of the commands whose results come from a database: of each finding, and of each pair of
    neighbouring versions.
    """
    for command in STORED_RESULTS:
        yield command.split()
    found = checkout.run(["findings", "--all", "--state", "all"], "json")
    if found.exit_code != DONE:
        sys.exit(f"compare_results: findings: {found.errors.strip()}")
    findings = json.loads(found.output)
    for finding in findings["findings"]:
        yield ["explain", str(finding["finding_id"])]
        yield ["history", finding["name"] or finding["kind"], "--kind", finding["kind"]]
    for old_version, new_version in pairwise(versions):
        yield ["diff", old_version, new_version]
    yield ["show", versions[-1]]


def compare_pages(comparison: Comparison) -> None:
    """Compare each page that the first one leads to, with the files of the same content."""
    seen = {"/"}
    addresses = ["/"]
    with comparison.old.serve_pages() as old_socket, comparison.new.serve_pages() as new_socket:
        # grows while it is walked through
        for address in addresses:
            old_page, new_page = load_page(old_socket, address), load_page(new_socket, address)
            differences = list(list_text_differences(old_page, new_page, "page"))
            comparison.count(f"page {address}", differences)
            for target in re.findall(r'href="(/[^"#]*)', old_page):
                linked = html.unescape(target)
                # the commands above compare workbooks and the status, which states its moment
                is_left_out = ".xlsx" in linked or linked.startswith("/status.")
                if not is_left_out and linked not in seen and len(seen) < MOST_PAGES:
                    seen.add(linked)
                    addresses.append(linked)


def load_page(address: Path, target: str) -> str:
    """Return the status and the text of a page, without what is of this moment alone."""
    connection = http.client.HTTPConnection("localhost", timeout=FIRST_LOAD_S)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(FIRST_LOAD_S)
    connection.sock.connect(str(address))
    connection.request("GET", target)
    response = connection.getresponse()
    text = response.read().decode(errors="replace")
    connection.close()
    return f"{response.status}\n{hide_moments(text, address)}"


def hide_moments(text: str, address: Path) -> str:
    """Return a page without its clock, the ages it shows, the names of its script and style, and this folder.

    >>> hide_moments("updated 10:02 UTC, 3 min ago", Path("/scratch/page.sock"))
    'updated TIME, AGE ago'
    """
    text = text.replace(str(address.parent), "SCRATCH")
    text = re.sub(r"(page\.(?:css|js))\?\w+", r"\1", text)
    text = re.sub(r"\b\d\d:\d\d(?::\d\d)?(?: UTC)?", "TIME", text)
    return re.sub(r"\b\d+ (?:s|min|h|d|days?|hours?) ago", "AGE ago", text)


def main() -> None:
    """Compare the two checkouts that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder with captures")
    parser.add_argument("--only", default="", help="only commands that contain this text")
    parser.add_argument("--pair", nargs=2, action="append", default=[], metavar="PATTERN")
    parser.add_argument("--store", action="append", default=[], metavar="PATTERN", help="compare databases instead")
    parser.add_argument("--formats", default=USUAL_FORMATS, help=f"some of {','.join(FORMATS)}")
    parser.add_argument("--rounding", type=float, default=ROUNDING)
    arguments = parser.parse_args()
    arguments.data = arguments.data.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        old, new = Checkout(arguments.old, Path(scratch, "old")), Checkout(arguments.new, Path(scratch, "new"))
        comparison = Comparison(old, new, arguments)
        for number, pattern in enumerate(arguments.store, 1):
            compare_stores(comparison, pattern, f"store{number}")
        if not arguments.store:
            compare_captures(comparison)
        old.close()
        new.close()
    equal, refused, different = (comparison.counts[name] for name in ("equal", "refused", "different"))
    print(f"{equal} equal, {refused} refused by both, {different} different")
    if different:
        sys.exit(1)
    if not equal:
        sys.exit(2)


if __name__ == "__main__":
    main()
