"""Every command that an output proposes runs where it was proposed, with exit code 0."""

from __future__ import annotations

import gzip
import os
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.ending import ending
from tests.cli.proposals import FILLED, proposed
from tests.cli.states import STATES, make
from tests.cli.test_doctor import rank
from tests.conftest import RUN, slow
from tests.factories import EPOCH_NS, save
from tests.notify.test_commands import told_of
from tracker.cli.start import samples
from tracker.hooks import places, spool
from tracker.store import open_store

ASKED = (
    "runs", "runs --state all", "runs --limit 1", "versions", "show latest", "show run:1 --by rank",
    "show run:1 --by op", "show latest~99", "show run:999", "show nothing", "show run:x", "diff v1 v2",
    "diff v1 v2 --workload gpt", "diff run:1 run:2", "diff run:1", "diff v2 --baseline pinned",
    "diff v2 --baseline previous", "diff v1 v9", "diff pinned latest", "diff v1 v2 v3 --workload gpt",
    "diff v1 v2 --by op --workload gpt", "diff run:1 run:1", "diff v1 v2 --baseline window",
    "diff v1 v2 --by communication", "diff v1 v2 v3 --fail-on new", "diff v1 v2 --format github --workload gpt",
    "diff v1 v2 --format junit --workload gpt", "diff run:1 run:2 --format markdown", "history", "history step",
    "history e2e", "history op07 --workload gpt", "history nothing", "history 99999", "history --top 5",
    "history '*' --workload gpt", "log", "log --workload gpt", "log --baseline v9 --workload gpt", "findings",
    "findings --new", "findings --state all", "findings --version v2 --workload gpt", "findings --format github",
    "findings --format junit", "explain 1", "explain 999", "explain I-1", "ack 1 --reason r",
    "ack 999 --reason r", "expect I-1 --reason r", "invalid I-99 --reason r", "note 999 --reason r",
    "unmute 1 --reason r", "undo 1 --reason r", "undo I-99 --reason r",
    "mute 1 --until 2w --reason r", "mute 1 --until version:v77 --reason r",
    "calibrate v1 --workload gpt", "calibrate run:1 run:2 run:3",
    "thresholds", "thresholds set min_ratio=10% --reason r --workload gpt",
    "thresholds unset min_ratio", "versions pin v1 --workload gpt", "versions pin v2",
    "versions unpin v1 --workload gpt", "versions order v2 --before v1 --workload gpt", "versions judge", "status",
    "notify --list", "watch --retry all", "prune", "prune --dry-run", "prune --older-than 1d --keep-versions 0",
    "runs exclude 1 --reason r", "runs restore 1", "runs tag 1 --tag a=b", "runs untag 1 --tag zz",
    "runs delete 1 --reason r", "db info", "db check", "ingest --spooled",
)  # fmt: skip
"""What is asked in every state."""

NAMED = (
    "diff 'v 1' 17 --workload 'my job'", "diff -- -v2 17", "diff 'v 1' -- -v2", "versions pin 'v 1'", "show -- -v2",
    "log --workload 'my job'", "versions pin -- -v2", "versions pin \"it's\"", "diff 'v 1' 'v@3' 17",
    "diff \"it's\" --baseline previous", "versions order 'v 1' --after 17",
)  # fmt: skip
"""In the state of strange names."""


OTHERWISE = {"WORKLOAD": "my job", "LABEL": "17"}
"""What a user puts in there."""


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    """Each state, made once; a test gets a copy for each command."""
    folder, made = tmp_path_factory.mktemp("states"), {}

    def of(state):
        if state not in made:
            made[state] = make(folder, state)
        return made[state]

    return of


@pytest.fixture
def call(tracker, tmp_path, monkeypatch):
    """Runs a line in a folder of its own on a copy of a database: call(database, "diff v1 v2")."""
    monkeypatch.chdir(tmp_path)
    profile = Path(
        shutil.copy(samples().folder / "v01" / "run1.pt.trace.json.gz", tmp_path / "profile.pt.trace.json.gz")
    )
    assert profile.name == FILLED["PATH"]
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "own.db"))
    monkeypatch.setenv("TRACKER_SPOOL", str(tmp_path / "spool"))
    for name in ("TRACKER_WORKLOAD", "TRACKER_VERSION"):
        monkeypatch.delenv(name, raising=False)

    def on(database, words):
        own = tmp_path / "own.db"
        for left in tmp_path.glob("own.db*"):
            left.unlink()
        shutil.copy(database, own)
        return tracker(*words)

    return on


def problems(call, database, line, ran, words_of=shlex.split):
    """The proposed commands that do not run, each with the line that proposed it and what they say."""
    asked = call(database, words_of(line))
    found = []
    filled = {**FILLED, **(OTHERWISE if "strange" in database.name else {})}
    for words in proposed(asked.out + "\n" + asked.err, filled):
        if (database, tuple(words)) in ran and not changes(line):
            continue
        ran.add((database, tuple(words)))
        again = call(database, words_of(line)) if changes(line) else None
        done = rerun(call, database, words, again)
        # the runs of a state were made without files
        is_of_files = words[:1] == ["ingest"] and "--again" in words and "is gone" in done.err
        if done.code and not is_of_files:
            found.append(f"`{line}` (exit {asked.code}) proposed `tracker {shlex.join(words)}`: {done.err.strip()}")
    return found


def changes(line):
    marks = ("ack", "expect", "mute", "unmute", "invalid", "note", "undo")
    return line.split()[0] in (*marks, "prune") or line.split()[1:2] in (
        ["pin"], ["unpin"], ["order"], ["exclude"], ["restore"], ["delete"], ["tag"], ["set"],
    )  # fmt: skip


def rerun(call, database, words, again):
    """Runs a proposed command in the state that the line left; `again`: the line was run just now."""
    return call.keeping(words) if again is not None else call(database, words)


def lines_of(state):
    """What is asked in a state: at night everything, else a sixth in each of the three that are tried."""
    asked = ASKED if RUN == "all" else ASKED[[*STATES].index(state) % 6 :: 6]
    return asked + (NAMED if state == "strange names" else ())


@pytest.mark.parametrize("state", STATES)
def test_what_is_proposed_runs(call, databases, tracker, state):
    call_keeping(call, tracker)
    lines = lines_of(state)
    ran: set[object] = set()
    wrong = [problem for line in lines for problem in problems(call, databases(state), line, ran)]
    assert not wrong, "\n" + "\n".join(dict.fromkeys(wrong))


NAMED_DATABASE = ["empty", "two configurations", "two devices", *map(slow, ("found", "strange names"))]
PUBLISHED = ("--format github", "--format junit")
"""Documents for others, whose database may have another name."""


def with_database(line):
    """The words of a line with --db, in front of the names that begin with -."""
    words = shlex.split(line)
    end = words.index("--") if "--" in words else len(words)
    return [*words[:end], "--db", "own.db", *words[end:]]


@pytest.mark.slow
@pytest.mark.parametrize("state", NAMED_DATABASE)
def test_what_is_proposed_runs_on_the_database_that_was_named(call, databases, tracker, monkeypatch, tmp_path, state):
    """No variable names it, and the usual one is not there: a command without --db fails, or makes that one."""
    monkeypatch.delenv("TRACKER_DB")
    call_keeping(call, tracker)
    ran: set[object] = set()
    lines = [line for line in lines_of(state) if not any(words in line for words in PUBLISHED)]
    wrong = [text for line in lines for text in problems(call, databases(state), line, ran, with_database)]
    assert not wrong, "\n" + "\n".join(dict.fromkeys(wrong))
    assert not list(tmp_path.glob("xdg_data_home/**/*.db"))


def test_a_proposed_command_with_its_database_runs(call, databases, tracker, monkeypatch):
    monkeypatch.delenv("TRACKER_DB")
    last = ending(call(databases("found"), ["findings", "--db", "own.db"]).out)
    words, *_ = proposed(last)
    assert words[:3] == ["explain", "--db", "own.db"] and tracker(*words).code == 0
    listed = ending(call(databases("two versions"), ["versions", "--db", "own.db"]).out)
    assert listed == "2 versions.\nNext:\n  tracker diff --db own.db v1 v2 --workload gpt"
    assert tracker(*proposed(listed)[0]).code == 0
    monkeypatch.setenv("TRACKER_DB", "own.db")
    assert call(databases("two versions"), ["versions"]).out.endswith("\nNext:\n  tracker diff v1 v2 --workload gpt\n")


def test_a_proposed_command_shows_no_password(tracker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = tracker("runs", "edit", "x", "--note", "n", "--db", "postgresql://me:s3cr3t@127.0.0.1:1/db")
    assert done.code == 2 and "s3cr3t" not in done.err
    assert "tracker runs --db 'postgresql://me:***@127.0.0.1:1/db' lists them" in done.err


def test_documents_for_programs_name_no_database(call, databases, monkeypatch):
    monkeypatch.delenv("TRACKER_DB")
    for line in ("findings --format json", "findings --format github", "runs --format json"):
        assert "--db" not in call(databases("found"), [*shlex.split(line), "--db", "own.db"]).out


def call_keeping(call, tracker):
    """`call.keeping` runs on what the last call left."""
    call.keeping = lambda words: tracker(*words)


def ingested(tracker, name, folder, label):
    """Ingests a bundled profile, and returns the last line."""
    profile = samples().folder / folder / name
    return ending(tracker("ingest", profile, "--version", label, "--workload", "gpt").out)


def test_a_second_version_proposes_the_diff_of_both(call, tracker, databases):
    call(databases("empty"), ["runs"])
    assert ingested(tracker, "run1.pt.trace.json.gz", "v01", "v1").endswith("\nNext:\n  tracker show run:1")
    line = ingested(tracker, "run1.pt.trace.json.gz", "v08", "v2")
    assert line.endswith("\nNext:\n  tracker diff v1 v2 --workload gpt")
    assert ingested(tracker, "run1.pt.trace.json.gz", "v08", "v2").endswith("\nNext:\n  tracker show run:2"), (
        "in already"
    )


def test_a_diff_is_proposed_of_runs_that_can_be_compared(call, databases):
    """v2 is in the configurations of 8 and 16, v1 in that of 8 alone; v3 in one of its own."""
    listed = ending(call(databases("two configurations"), ["versions"]).out)
    assert listed == "3 versions.\nNext:\n  tracker diff v1 run:2 --workload gpt"
    assert "tracker diff" not in call(databases("nothing shared"), ["versions"]).out
    assert call(databases("pinned"), shlex.split("versions pin v1 --workload gpt")).out == (
        "v1 pinned.\nNext:\n  tracker diff v1 v2 --workload gpt\n"
    ), "and not the latest run, which is of bert"
    ordered = call(databases("two workloads"), shlex.split("versions order v2 --before v1 --workload gpt"))
    assert ending(ordered.out) == "2 versions in order.\nNext:\n  tracker diff v2 v1 --workload gpt"


@pytest.fixture
def folders(tmp_path):
    """a/ and b/, each with a profile of a version."""
    for name, label in (("a", "v01"), ("b b", "v08")):
        (tmp_path / "all" / name).mkdir(parents=True)
        shutil.copy(samples().folder / label / "run1.pt.trace.json.gz", tmp_path / "all" / name)
    return tmp_path / "all"


@pytest.mark.parametrize("named", [("all",), ("all/a", "all/b b")])
def test_doctor_proposes_a_version_for_each_folder(call, tracker, databases, folders, named):
    call(databases("empty"), ["runs"])
    last = ending(tracker("doctor", *named).out)
    assert last.endswith(
        "\nNext:\n  tracker ingest all/a --version a --workload WORKLOAD\n"
        "  tracker ingest 'all/b b' --version 'b b' --workload WORKLOAD"
    )
    for words in proposed(last):
        assert tracker(*words).code == 0
    assert tracker("diff", "a", "b b").code == 0


def test_doctor_proposes_one_version_for_the_ranks_of_a_run(tracker, tmp_path):
    for number in (0, 1):
        rank(tmp_path / "job" / f"node{number}", number, world_size=2)
    assert ending(tracker("doctor", tmp_path / "job").out).count("tracker ingest") == 1


def test_what_a_watched_folder_proposes_runs(call, tracker, databases, folders, tmp_path, monkeypatch):
    (tmp_path / "tracker.toml").write_text(
        f'[watch]\nsettled = "0s"\n[[watch.folders]]\npath = "{folders}"\nlayout = "{{version}}/*"\nworkload = "gpt"\n'
    )
    monkeypatch.setenv("TRACKER_CONFIG", str(tmp_path / "tracker.toml"))
    call(databases("empty"), ["runs"])
    (folders / "a" / "broken.pt.trace.json").write_text('{"schemaVersion": 1, "traceEvents": [{"ph"')
    for asked in ("status", "watch --once", "watch --once", "status", "watch --retry all"):
        done = tracker(*asked.split())
        for words in proposed(done.out + done.err):
            once = [*words, "--once"] if words == ["watch"] else words  # it would watch until a signal
            again = tracker(*once)
            assert again.code == 0, f"`{asked}` proposed `{shlex.join(words)}`: {again.err}"


@pytest.mark.parametrize("version", ["v2", "v`2'", "--db=x", "v2@everyone"])
def test_the_commands_of_a_message_run(tracker, tmp_path, monkeypatch, version):
    """Each on what the one before it left: a mute takes what was acknowledged."""
    with open_store(str(tmp_path / "own.db")) as store:
        commands = told_of(store, version)
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "own.db"))
    assert {"reproduce", "look", "explain", "acknowledge", "mute"} >= commands.keys() >= {"reproduce", "explain"}
    for line in commands.values():
        done = tracker(*(FILLED.get(word, word) for word in shlex.split(line)[1:]))
        assert done.code == 0, f"{line}: {done.err}"


def test_what_waits_in_a_spool_proposes_runs(call, tracker, databases, tmp_path):
    for name in ("good", "bad"):
        profile = tmp_path / f"{name}.pt.trace.json.gz"
        content = gzip.decompress((tmp_path / FILLED["PATH"]).read_bytes())
        if name == "bad":  # of another start: a copy would be the same capture
            content = content.replace(b'"baseTimeNanoseconds": 1790857', b'"baseTimeNanoseconds": 1790858')
        profile.write_bytes(gzip.compress(content))
        said = {"version": "v1", "workload": "gpt"} if name == "good" else {}
        spool.add(places.folder(os.environ), {"profile": str(profile), "said": said}, now_ns=1)
    call(databases("empty"), ["runs"])
    for asked in ("status", "ingest --spooled", "ingest --spooled --again", "status"):
        done = tracker(*asked.split())
        for words in proposed(done.out + done.err):
            assert tracker(*words).code == 0, f"`{asked}` proposed `{shlex.join(words)}`"
    assert tracker("ingest", "--spooled", "--version", "v1", "--workload", "gpt").out.startswith("run 2  gpt v1")


def test_the_runs_that_came_last_are_compared_with_the_last_of_their_configuration(call, tmp_path):
    """v1 and v3 have a batch of 8, v2 one of 4 and v3 last of all one of 4 as well."""
    db = tmp_path / "made.db"
    with open_store(str(db)) as store:
        for number, (version, batch) in enumerate((("v1", "8"), ("v2", "4"), ("v3", "8"), ("v3", "4"))):
            started = EPOCH_NS + number * 10**12
            save(store, version, started_at_ns=started, of_run={"configuration": {"batch": batch}})
    assert call(db, ["versions"]).out.endswith("\nNext:\n  tracker diff v2 run:4 --workload gpt\n")
