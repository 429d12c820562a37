"""The program as a process: what it imports, and how it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import tracker
from tests.test_intake import write_trace
from tracker.limits.processes import processors

SAMPLES = Path(tracker.__file__).with_name("samples")
SLOW = {
    "pandas",
    "alembic",
    "sqlmodel",
    "openpyxl",
    "apprise",
    "apscheduler",
    "distributed",
    "pydantic",
    "rich",
    "jinja2",
    "starlette",
    "uvicorn",
}
"""What takes a tenth of a second and more to import."""


def run(code: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """`code` in a new Python, with the words of a command line, writing into a pipe of any width.

    readline, which pytest loads, sets COLUMNS behind the back of os.environ, and a new process would inherit it.
    """
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


IMPORTED = """
import json, sys
from tracker.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["tracker", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def imported(db: Path, *commands: Sequence[str | Path]) -> set[str]:
    """What one process imports that runs these commands."""
    done = run(IMPORTED, json.dumps([[*map(str, words), "--db", str(db)] for words in commands]))
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def ingests(folder: Path, *labels: tuple[str, str]) -> list[tuple[str | Path, ...]]:
    """The command that ingests a trace of its own for each version and workload."""
    traces = [write_trace(folder / f"{n}.pt.trace.json", start_us=n * 10_000_000) for n in range(len(labels))]
    return [("ingest", trace, "--version", v, "--workload", w) for trace, (v, w) in zip(traces, labels, strict=True)]


@pytest.mark.newest  # before 0.26 typer imports rich
def test_the_first_ingests_of_a_database_import_nothing_that_is_slow(tmp_path):
    assert imported(tmp_path / "t.db", *ingests(tmp_path, ("v1", "w1"), ("v1", "w2"))) & SLOW == set()


@pytest.mark.newest  # before 0.26 typer imports rich
def test_lists_and_show_import_nothing_that_is_slow(tmp_path):
    lists = [("runs",), ("runs", "--workload", "w", "--format", "json"), ("versions",), ("thresholds",)]
    assert imported(tmp_path / "t.db", *ingests(tmp_path, ("v1", "w")), *lists) & SLOW == set()
    assert imported(tmp_path / "t.db", ("show", "v1")) & SLOW - {"rich"} == set()


def test_a_diff_imports_nothing_that_is_slow(tmp_path):
    everything = "overall,operator,kernel,communication,memory,module,api,counter"
    options = ((), ("--only", everything), ("--by", "module"), ("--format", "json"), ("--workload", "w"))
    diffs = [("diff", "v1", "v2", *words) for words in options]
    imported(tmp_path / "t.db", *ingests(tmp_path, ("v1", "w"), ("v2", "w")))
    assert imported(tmp_path / "t.db", *diffs) & SLOW - {"rich"} == set()


READS = ("versions", "runs", "findings", "board", "history", "log", "show v1", "diff v1 v2", "thresholds")
NOT_OF_READS = SLOW - {"rich"} | {"sqlalchemy.orm", "numpy.ma", "rich.console", "rich.progress", "html"}
IMPORTED_BY = """
import json, sys
from tracker.cli import main
before, imported = set(), {}
_, commands, db = sys.argv
for command in json.loads(commands):
    sys.argv = ["tracker", *command.split(), "--db", db]
    try:
        main()
    except SystemExit as end:
        assert not end.code
    imported[command] = sorted(set(sys.modules) - before)
    before = set(sys.modules)
print(json.dumps(imported), file=sys.stderr)
"""


@pytest.mark.newest  # before 0.26 typer imports rich
def test_commands_that_read_import_what_they_need(tmp_path):
    """SQLAlchemy's models, masked arrays and progress bars take 10 to 100 ms, and belong to other commands."""
    db = tmp_path / "t.db"
    imported(db, *ingests(tmp_path, ("v1", "w"), ("v2", "w")))
    done = run(IMPORTED_BY, json.dumps(READS), db)
    assert done.returncode == 0, done.stderr
    found = {command: NOT_OF_READS & set(names) for command, names in json.loads(done.stderr).items()}
    assert found == {command: set() for command in READS}


@pytest.mark.newest  # before 0.26 typer imports rich
def test_ingest_of_many_operators_imports_what_it_needs(tmp_path):
    """What all operators of a run share is a median of medians: those of NumPy import masked arrays, 35 ms."""
    command = f"ingest {SAMPLES / 'v01' / 'run1.pt.trace.json.gz'} --version v1 --workload gpt"
    done = run(IMPORTED_BY, json.dumps([command]), tmp_path / "t.db")
    assert done.returncode == 0, done.stderr
    (names,) = json.loads(done.stderr.splitlines()[-1]).values()
    assert NOT_OF_READS & set(names) == set()


OF_HELP = """
import atexit, sys
atexit.register(lambda: print(*{"numpy", "sqlalchemy", "html", "rich"} & set(sys.modules), file=sys.stderr))
from tracker.__main__ import run
run()
"""


@pytest.mark.newest  # before 0.26 typer imports rich
def test_help_imports_neither_numpy_nor_a_database():
    assert run(OF_HELP, "--help").stderr == "\n"


AFTER_READING = """
import sys
from tracker.cli import main
from tracker.intake import ingesting
loaded = {}
def read_all(*given):
    pieces = really(*given)
    loaded["when all is read"] = set(sys.modules)
    return pieces
really, ingesting.read_all = ingesting.read_all, read_all
try:
    main()
finally:
    print(*set(sys.modules) - loaded["when all is read"], file=sys.stderr)
"""


def test_what_saves_judges_and_tells_is_there_when_all_is_read(tmp_path):
    """While other processes read there is time to import it; afterwards everybody waits."""
    trace = write_trace(tmp_path / "a.pt.trace.json")
    done = run(AFTER_READING, "ingest", trace, "--version", "v1", "--workload", "w", "--db", tmp_path / "t.db")
    assert done.returncode == 0, done.stderr
    assert done.stderr.split() == []


OF_READING = """
import sys
from tracker.cli import main
try:
    main()
finally:
    print(*(name for name in sys.modules if name.startswith("tracker.readers.torch_profiler.")), file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux" or processors() < 2, reason="a copy reads where it can run beside this one")
def test_a_file_is_read_once_by_the_copy_alone(tmp_path):
    """What the process of the command would import if it read the file a second time, it does not have."""
    trace = write_trace(tmp_path / "a.pt.trace.json")
    labels = ("--version", "v1", "--workload", "w", "--input-format", "torch_profiler")
    done = run(OF_READING, "ingest", trace, *labels, "--db", tmp_path / "t.db")
    assert done.returncode == 0, done.stderr
    assert "run 1 " in done.stdout
    assert "tracker.readers.torch_profiler.assemble" not in done.stderr.split()


BEFORE_READING = """
import sys
from tracker import intake
intake.ahead, intake.IngestOptions
print(*sys.modules)
"""


def test_readers_are_begun_before_what_saves_is_imported():
    loaded = run(BEFORE_READING).stdout.split()
    assert "tracker.intake.at_once" in loaded
    assert not {
        "tracker.store",
        "tracker.regressions.judgement",
        "tracker.intake.ingesting",
        "tracker.intake.spooled",
    } & {*loaded}


ENDING = """
import atexit, sys
import tracker.cli
from tracker.__main__ import run
def main():
    sys.stdout.write("x" * 100_000)
    atexit.register(lambda: sys.stderr.write("asked at exit"))
    {end}
tracker.cli.main = main
run()
"""


@pytest.mark.parametrize(("end", "code"), [("sys.exit(0)", 0), ("sys.exit()", 0), ("sys.exit(3)", 3)])
def test_the_end_gives_its_code_writes_all_and_does_what_was_asked_for(end, code):
    done = run(ENDING.format(end=end))
    assert (done.returncode, len(done.stdout), done.stderr) == (code, 100_000, "asked at exit")


def test_a_defect_is_told_whole_and_is_no_finding():
    """A gate takes 1 for a regression."""
    done = run(ENDING.format(end="raise RuntimeError('a defect \\x1b[31m')"))
    first, *_, last = done.stderr.removesuffix("asked at exit").splitlines()
    assert (done.returncode, len(done.stdout), first) == (2, 100_000, "Traceback (most recent call last):")
    assert ", line 8, in main\n" in done.stderr
    assert last == (
        "tracker: tracker itself failed on this: RuntimeError: a defect \\x1b[31m; please report it, with the lines "
        "above, the command and what tracker --version says"
    )
    assert "\x1b" not in done.stderr


def test_memory_that_does_not_suffice_is_no_defect():
    done = run(ENDING.format(end="raise MemoryError"))
    said = "tracker: out of memory; see how much this machine has left\n"
    assert (done.returncode, done.stderr) == (2, f"{said}asked at exit")


def test_a_program_that_cannot_even_be_loaded_is_no_finding_either():
    done = run("import sys; sys.modules['typer'] = None; from tracker.__main__ import run; run()", "runs")
    assert done.returncode == 2
    assert "ModuleNotFoundError" in done.stderr.splitlines()[-1]


def test_an_error_that_nobody_hears_has_its_code():
    for closed in ("2>&-", *(["2>/dev/full"] if Path("/dev/full").exists() else [])):
        command = f"{sys.executable} -m tracker runs --db /no/such/folder/t.db {closed}"
        assert subprocess.run(["sh", "-c", command], check=False).returncode == 2


def test_a_thread_that_still_works_is_waited_for():
    thread = "import threading, time; threading.Thread(target=lambda: (time.sleep(0.2), print('done'))).start()"
    done = run(ENDING.format(end=f"{thread}; sys.exit(4)"))
    assert (done.returncode, done.stdout[-5:]) == (4, "done\n")


def test_where_nobody_hears_errors_success_is_success():
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m tracker --version 2>&-"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout[:8]) == (0, "tracker ")


TIDIED_UP = """
import logging, sys
from tracker.api.arguments import opened
with opened(sys.argv[1], create=True):
    logging.getLogger("sqlalchemy.pool").error("Error closing cursor")
"""


def test_what_the_driver_tidies_up_after_an_interrupt_is_not_told(tmp_path):
    assert run(TIDIED_UP, tmp_path / "new.db").stderr == ""


INTERRUPTED = """
import os, signal, sys
sys.argv = ["tracker", *sys.argv[2:]]
class Interrupt:
    remaining = 0
    def find_spec(self, *_):
        self.remaining -= 1
        if self.remaining == 0:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from tracker.__main__ import run
signal.signal(signal.SIGINT, signal.default_int_handler)
for place in range(1, 1000, {every}):
    if (copy := os.fork()) == 0:
        sys.meta_path[0].remaining = place
        run()
    code = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
    if code != 130:
        print("ended with", code, "at import", place)
        break
"""
"""Runs a command over and over, and interrupts it at the first import of a module, at the next, and so on."""


@pytest.mark.skipif(sys.platform != "linux", reason="a copy of a process is made")
@pytest.mark.parametrize(("words", "every", "fewest"), [(["--help"], 12, 100), (["versions"], 150, 400)])
def test_interrupt_at_any_import_leaves_no_traceback(tmp_path, words, every, fewest):
    """Up to the last import, where the command ends by itself."""
    db = [] if words == ["--help"] else ["--db", tmp_path / "t.db"]
    done = run(INTERRUPTED.replace("{every}", str(every)), "-", *words, *db)
    last = re.search(r"ended with [02] at import (\d+)\n\Z", done.stdout)
    assert last is not None, done.stdout[-300:]
    assert int(last[1]) > fewest
    assert "Traceback" not in done.stderr
    assert "KeyboardInterrupt" not in done.stderr


OF_ENTRY = "import sys; before = set(sys.modules); import tracker.__main__; print(*set(sys.modules) - before)"


def test_entry_imports_nothing_that_takes_time():
    """Until it runs, Ctrl-C is a traceback of Python."""
    loaded = set(run(OF_ENTRY).stdout.split())
    assert {name for name in loaded if not name.startswith(("importlib", "_"))} <= {
        "tracker",
        "tracker.__main__",
        "tracker.version",
        "warnings",
    }


THREADS = """
import atexit, os, sys
def say():
    threads = len(os.listdir("/proc/self/task"))
    print(threads, "numpy" in sys.modules, os.environ.get("OPENBLAS_NUM_THREADS"), file=sys.stderr)
atexit.register(say)
{code}
"""
COMMAND = "from tracker.__main__ import run; run()"


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_commands_import_numpy_without_threads(tmp_path):
    labels = ("--version", "v1", "--workload", "w", "--db", tmp_path / "t.db")
    done = run(THREADS.format(code=COMMAND), "ingest", write_trace(tmp_path / "a.pt.trace.json"), *labels)
    assert done.returncode == 0, done.stderr
    done = run(THREADS.format(code=COMMAND), "show", "v1", "--db", tmp_path / "t.db")
    assert done.stderr.splitlines()[-1] == "1 True None"


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_package_leaves_threads_of_numpy_alone():
    """A program that uses the package, as one that trains, has those that NumPy starts by itself."""
    alone = run(THREADS.format(code="import numpy")).stderr
    assert run(THREADS.format(code="import tracker; tracker.diff; import numpy")).stderr == alone


def test_commands_of_a_user_keep_their_threads(tmp_path):
    code = "import os; from tracker.__main__ import run; run()"
    shown = "import os; print('threads:', os.environ.get('OPENBLAS_NUM_THREADS'))"
    words = ("--profiles", tmp_path, "--version", "v1", "--db", tmp_path / "t.db", "--", sys.executable, "-c", shown)
    assert "threads: None" in run(code, "run", *words).stdout.splitlines()
