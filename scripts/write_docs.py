"""Brings README.md up to date with the code: generated sections, and the output of every command it shows.

    .venv/bin/python scripts/write_docs.py            # rewrite README.md
    .venv/bin/python scripts/write_docs.py --check    # exit 1 and show the difference where it is out of date

A generated section stands between `<!-- begin NAME -->` and `<!-- end NAME -->`; SECTIONS below says what writes it. In
a ```console block, lines that start with `$ ` are run in order in a shell, at the root of the repository, with an empty
database; what they print to stdout stands below them.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
sys.path.insert(0, str(ROOT))


def commands() -> str:
    """The commands and what they are for, in the order of the work."""
    import typer

    from tracker.cli import app

    lines = ["| command | what it does |", "|---|---|"]
    for path, command in walk(typer.main.get_command(app)):
        if len(path) > 1:
            what = command.get_short_help_str(limit=200) if len(path) == 2 else first_sentence(command.help or "")
            lines.append(f"| `{' '.join(path)}` | {what} |")
    return "\n".join(lines)


def walk(command: Any, path: tuple[str, ...] = ("tracker",)) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command below `command` with the words that call it, in the order of the help."""
    yield path, command
    if hasattr(command, "commands"):
        for name in command.list_commands(None):
            yield from walk(command.commands[name], (*path, name))


def first_sentence(text: str) -> str:
    """The first paragraph of a help text on one line."""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def readers() -> str:
    """The formats that can be read."""
    from tracker import readers as room

    lines = ["| format | what it reads |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {room.load(name).TITLE} |" for name in room.NAMES)])


def reports() -> str:
    """The forms in which results are written."""
    from tracker import reports as room

    lines = ["| `--format` | file | what it is good for |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | `{room.suffix(name)}` | {room.title(name)} |" for name in room.NAMES)])


def dictionary() -> str:
    """All tables of the database and their columns: runs, their rows, the dimensions, what is judged of them."""
    from tracker.store.tables import details, dimensions, findings, judgement, notifications, runs, watch
    from tracker.store.tables.meanings import meaning

    blocks = []
    for found in (
        each
        for module in (runs, details, dimensions, judgement, findings, notifications, watch)
        for each in vars(module).values()
    ):
        table = getattr(found, "__table__", None)
        if table is None:
            continue
        lines = [
            f"**`{table.name}`** {first_sentence(found.__doc__)}",
            "",
            "| column | type | meaning |",
            "|---|---|---|",
        ]
        for column in table.columns:
            kind = str(column.type).split("(")[0].split(" COLLATE")[0].lower() + (
                "" if column.nullable else ", not null"
            )
            lines.append(f"| `{column.name}` | {kind} | {meaning(table.name, column.name)} |")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def json_contract() -> str:
    """The keys of the JSON documents and the columns of their rows, taken from real ones."""
    import tracker
    from tracker import doctor, reports

    samples = [str(ROOT / "tracker" / "samples" / label / "run1.pt.trace.json.gz") for label in ("v01", "v08")]
    shown, compared = tracker.show(samples[0]), tracker.diff(*samples)
    found = doctor.examine([Path(samples[0])])
    beside = tracker.matrix(*samples, samples[0])
    with tracker.open_store("sqlite://") as store:
        tracker.ingest(samples[0], version="v01", workload="small_gpt", store=store)
        kept = tracker.log(store=store)
        followed = tracker.history("step", store=store)
    with tracker.open_store("sqlite://") as store:
        for label in ("v01", "v08"):
            tracker.ingest(ROOT / "tracker" / "samples" / label, version=label, workload="small_gpt", store=store)
        repeats = tracker.calibrate([f"run:{number}" for number in range(1, 7)], store=store, splits=1)
    return "\n\n".join(
        [
            keys("tracker show RUN --format json", json.loads(reports.render_show(shown, "json")), shown),
            keys(
                "tracker diff BASELINE CANDIDATE --format json",
                json.loads(reports.render_diff(compared, "json")),
                compared,
            ),
            keys(
                "tracker diff SIDE SIDE SIDE... --format json",
                json.loads(reports.render_matrix(beside, "json")),
                beside,
            ),
            keys("tracker log --format json", json.loads(reports.render_log(kept, "json")), kept),
            keys("tracker history KEY --format json", json.loads(reports.render_history(followed, "json")), followed),
            keys("tracker doctor PATH --format json", json.loads(reports.render_doctor(found, "json")), found),
            keys(
                "tracker calibrate VERSION --format json",
                json.loads(reports.render_calibration(repeats, "json")),
                repeats,
            ),
        ]
    )


def keys(command: str, document: Mapping[str, Any], result: object) -> str:
    """The keys of a JSON document; `result` has the columns even of tables that are empty here."""
    from tracker.doctor import CaptureFound, Failure, Findings, RunFormed, Unclaimed

    of_doctor = {"captures": CaptureFound, "runs": RunFormed, "failures": Failure, "unclaimed": Unclaimed}
    row_types = of_doctor if isinstance(result, Findings) else {}
    told = {"passed_over": "number of other files", "command": "the next command, null where nothing can be ingested"}
    lines = [f"`{command}`:", "", "| key | holds |", "|---|---|"]
    for key, value in document.items():
        of_rows = row_types.get(key) if isinstance(value, list) else None
        if row_types and key in told:
            holds = told[key]
        elif of_rows is not None:
            holds = "rows: " + ", ".join(of_rows.__struct_fields__)
        elif key == "not_recognised":
            holds = "rows: path, why"
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            holds = "rows: " + ", ".join(value[0])
        elif isinstance(value, list) and not hasattr(getattr(result, key), "columns"):
            is_command = bool(value) and all(str(each).startswith("tracker ") for each in value)
            is_text = all(isinstance(each, str) and " " in each for each in value)
            holds = "commands" if is_command else "sentences" if is_text else "a list"
        elif isinstance(value, list):
            holds = "rows: " + ", ".join(getattr(result, key).columns)
        else:
            holds = ", ".join(value) if isinstance(value, Mapping) else json.dumps(value)
        lines.append(f"| `{key}` | {holds} |")
    return "\n".join(lines)


def example(name: str, language: str) -> str:
    """A file of scripts/ci, whole."""
    path = Path("scripts") / "ci" / name
    return f"`{path}`:\n\n```{language}\n{(ROOT / path).read_text(encoding='utf-8')}```"


def settings() -> str:
    """The entries of the settings file, one a line."""
    from tracker.config.meanings import MEANINGS

    lines = ["| Table | Entry | Meaning |", "|---|---|---|"]
    for table, entries in MEANINGS.items():
        place = f"`{table}`" if table else "(top)"
        lines += [f"| {place} | `{name}` | {meaning} |" for name, meaning in entries.items()]
    return "\n".join(lines)


SECTIONS: Mapping[str, Callable[[], str]] = {
    "commands": commands,
    "readers": readers,
    "reports": reports,
    "json": json_contract,
    "dictionary": dictionary,
    "settings": settings,
    "slurm": lambda: example("slurm_epilog.sh", "sh"),
    "github": lambda: example("github.yml", "yaml"),
    "gitlab": lambda: example("gitlab.yml", "yaml"),
}

_SECTION = re.compile(r"(<!-- begin (?P<name>\w+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)
_CONSOLE = re.compile(r"(?P<head>```console\n)(?P<body>.*?)(?P<tail>```)", re.DOTALL)


def updated(text: str) -> str:
    """`text` with its generated sections and the output of its commands as they are now."""
    text = _SECTION.sub(lambda m: f"{m[1]}{SECTIONS[m['name']]()}\n{m[3]}", text)
    with tempfile.TemporaryDirectory() as folder:
        return _CONSOLE.sub(lambda m: m["head"] + played(m["body"], Path(folder)) + m["tail"], text)


def played(body: str, folder: Path) -> str:
    """The commands of a console block with what they print now."""
    lines = []
    for command in re.findall(r"^\$ (.*)$", body, re.MULTILINE):
        output = shell(command, folder)
        lines.append(f"$ {command}\n{output}" if output.endswith("\n") or not output else f"$ {command}\n{output}\n")
    return "".join(lines)


def shell(command: str, folder: Path | None = None) -> str:
    """What `command` prints to stdout at the root of the repository; `folder` keeps the database between commands."""
    with tempfile.TemporaryDirectory() as scratch:
        tracker = Path(scratch) / "tracker"
        tracker.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tracker "$@"\n')
        tracker.chmod(0o755)
        environment = {
            "PATH": f"{scratch}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "TRACKER_DB": str((folder or Path(scratch)) / "tracker.db"),
            "HOME": scratch,
            "LC_ALL": "C.UTF-8",
        }
        # The demo script would install tracker; here it is at hand.
        command = command.replace("sh scripts/demo.sh", "tracker demo")
        done = subprocess.run(  # noqa: PLW1510
            ["sh", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
        )
    if done.returncode:
        raise SystemExit(f"$ {command}\nexit {done.returncode}\n{done.stderr}")
    return done.stdout


def main() -> None:
    """Rewrite README.md, or with --check only say whether it is up to date."""
    before = README.read_text(encoding="utf-8")
    after = updated(before)
    if "--check" not in sys.argv[1:]:
        README.write_text(after, encoding="utf-8")
    elif before != after:
        sys.stdout.writelines(
            difflib.unified_diff(before.splitlines(True), after.splitlines(True), "README.md", "as it should be")
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
