"""Write what the code decides in README.md and docs/: whole pages, sections of pages, and the output of commands; and
the list of the names in tracker.results.

    .venv/bin/python scripts/write_docs.py            # rewrite
    .venv/bin/python scripts/write_docs.py --check    # exit 1 and show the difference where something is out of date

PAGES are written whole. SECTIONS stand between `<!-- begin NAME -->` and `<!-- end NAME -->` of any other page. In a
```console block, lines that start with `$ ` are commands, run in order in this process at the root of the repository;
what follows the first ` | ` is left to a shell. README.md starts with an empty database, every other page with a copy
of what README.md left. A page of docs/zh/ has the outputs of the page that it translates: nothing runs twice.
"""

from __future__ import annotations

import ast
import atexit
import difflib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache, partial
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tracker.advice.rule import Remedy

ROOT = Path(__file__).resolve().parent.parent
START = "README.md"
TRANSLATIONS = "docs/zh/"
sys.path.insert(0, str(ROOT))


# ---- whole pages ----


def commands() -> str:
    """Every command with its help."""
    parts = [
        "# Commands",
        "Results go to standard output, everything else to standard error. Exit code 0: it ran; 2: it could not.\n"
        "With `--fail-on`, `tracker diff` and `tracker findings` have more: [gates](ci.md#gate-a-pipeline).\n"
        "`tracker ab` has more, too: [A/B](ab.md).",
        command_list(),
    ]
    for path, command in command_tree():
        context = command.context_class(command, info_name=" ".join(path))
        usage = command.get_usage(context).removeprefix("Usage: ")
        usage = f"```text\n{' '.join(usage.split())}\n\n{cleandoc(command.help or '')}\n```".replace("\b\n", "")
        groups = {title: [row for row in rows if row[0] != "-h, --help"] for title, rows in groups_of(command, context)}
        lines = [
            f"{'' if title in ('Options', 'Arguments') else f'{title}:{chr(10)}{chr(10)}'}"
            + "\n".join(f"- `{name}`: {' '.join(text.split())}".removesuffix(": ") for name, text in rows)
            for title, rows in groups.items()
            if rows
        ]
        parts.append("\n\n".join([f"## {' '.join(path)}", usage, *lines]))
    return "\n\n".join(parts)


def groups_of(command: Any, context: Any) -> Any:
    """The options of a command with their help, by group."""
    from tracker.cli.typer_parts import option_groups

    return option_groups(command, context).items()


def command_list() -> str:
    """Every command on a line, in the groups of the help."""
    from tracker.cli.commands import COMMANDS

    tree = command_tree()
    lines = []
    for title, names in COMMANDS.items():
        own = [(path, command) for path, command in tree if path[1] in names]
        lines.append(f"{title}:\n")
        lines += [f"- [`{' '.join(path)}`](#{'-'.join(path)}): {summary(command, path)}" for path, command in own]
        lines.append("")
    return "\n".join(lines).rstrip()


def command_tree() -> list[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it, in the order of the help."""
    from tracker.cli import program

    def below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        for name in command.list_commands(None) if hasattr(command, "commands") else ():
            yield (*path, name), command.commands[name]
            yield from below(command.commands[name], (*path, name))

    return list(below(program(), ("tracker",)))


def summary(command: Any, path: tuple[str, ...]) -> str:
    """What a command is for, on one line: of a subcommand the first paragraph of its help."""
    return str(command.get_short_help_str(limit=200)) if len(path) == 2 else first_paragraph(command.help or "")


def first_paragraph(text: str) -> str:
    """The first paragraph of a text on one line."""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def format_page(name: str) -> str:
    """What a reader reads, in the words of its module."""
    from tracker import readers

    reader = readers.load(name)
    words = (reader.__doc__ or "").strip().replace("<!-- grammars -->", grammars_table())
    return (
        f"# {name}\n\n{words}\n\n"
        f"Files are recognised by their content; `--input-format {name}` names the format where that fails.\n"
        f"How to record: [record.md](../record.md). All formats: [README](../../README.md#what-it-reads)."
    )


def grammars_table() -> str:
    """What each grammar of the training logs reads."""
    from tracker.readers.training_log.grammars import table_of_grammars

    rows = [
        "| framework | time | throughput | left out beside the warm-up |", "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in table_of_grammars()),
        "| Hugging Face Trainer (trainer_state.json) | of the whole session | samples/s of the job | |",
        "| MindSpeed and Megatron-LM (results of their tests, JSON) | of a step | | |",
        "| TensorBoard events (torchtitan, Megatron-LM, NeMo, Detectron2, MMEngine, PaddleNLP, any scalar) | "
        "of a step, or the times at which a scalar was written | as the writer says it | |",
    ]  # fmt: skip
    return "\n".join(rows)


def conditions_of(remedy: Remedy) -> str:
    """What a remedy is for, in brackets; nothing where it is for all."""
    named = {
        "": (*remedy.on, *remedy.kinds), "formats: ": remedy.sources, "with: ": remedy.needs,
        "without: ": remedy.unless,
    }  # fmt: skip
    parts = [f"{word}{', '.join(words)}" for word, words in named.items() if words]
    parts += ["where nothing else fits"] if remedy.is_last else []
    return f" ({'; '.join(parts)})" if parts else ""


def rule_page(number: str) -> str:
    """When a rule of `tracker advise` fires, what it claims, and what it proposes, as its declaration says."""
    from tracker.advice.rule import BOUNDS

    rule = next(rule for _, rule in rules() if rule.id == number)
    remedies = [f"- {remedy.text}{conditions_of(remedy)}" for remedy in rule.remedies]
    return "\n\n".join(
        [
            f"# {rule.id}: {rule.title}",
            f"**Fires when** {rule.fires}.",
            f"**Bound**: {rule.bound}: {BOUNDS[rule.bound]}. **Confidence**: {rule.confidence}.",
            "What to do:\n\n" + "\n".join(remedies),
            f"Sources: {'; '.join(rule.sources)}.",
            "All rules: [rules](rules.md).",
        ]
    )


def rule_table() -> str:
    """Every rule with its page, by family."""
    lines = ["| rule | about | fires when |", "|---|---|---|"]
    return "\n".join(
        [
            *lines,
            *(f"| [{rule.id}]({rule.id}.md) {rule.title} | {family} | {rule.fires} |" for family, rule in rules()),
        ]
    )


def idle_table() -> str:
    """The causes of idle time."""
    from tracker.profile import IDLE_CAUSES, IDLE_REASONS

    lines = ["| cause | what it says |", "|---|---|"]
    lines += [f"| {cause} | {reason} |" for cause, reason in zip(IDLE_CAUSES, IDLE_REASONS, strict=True)]
    return "\n".join(lines)


def check_table() -> str:
    """Return the checks of a capture: what each counts, what it forbids, and what to record instead."""
    from tracker.timeline.defects import CHECKS

    lines = ["| check | counts | not judged | record |", "|---|---|---|---|"]
    for name, check in CHECKS.items():
        by_name = "what it names" if "{operators}" in check.sentence else "nothing: what is left is whole"
        forbids = ", ".join(check.forbids) or by_name
        lines.append(f"| {name} | {check.counts} ({check.sources}) | {forbids} | {check.remedy} |")
    return "\n".join(lines)


def device_table() -> str:
    """The devices whose peaks are known."""
    from tracker.advice.devices import devices

    lines = [
        "| model contains | 16 bit | tf32 | 32 bit | 8 bit | GB/s | GiB | source |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in devices():
        numbers = (one.half, one.tf32, one.fp32, one.byte, one.memory_gb_per_s, one.memory_gib)
        cells = " | ".join("-" if number is None else f"{number:g}" for number in numbers)
        lines.append(f"| {one.model} | {cells} | {one.source} |")
    return "\n".join(lines)


def rules() -> list[tuple[str, Any]]:
    """Every rule of `tracker advise` with the family that it is of."""
    from tracker.advice.rules import FAMILIES

    return [(family, rule) for family, own in FAMILIES.items() for rule in own]


def tables_of(module: Any) -> list[Any]:
    """Return the tables of a module of `store.tables`, in its order, with those that are made from levels."""
    found = [each for each in vars(module).values() if hasattr(each, "__table__")]
    return [*found, *getattr(module, "LEVEL_TABLES", {}).values()]


VIEWS_FOR_OTHERS = """## Views

For questions from outside tracker: `sqlite3 tracker.db`, psql, `pandas.read_sql`, a dashboard. Names and columns of
views stay; new columns may come. They hold names instead of numbers of rows, and each question below runs as it stands
on SQLite and Postgres, with your workload and versions in it. Open a SQLite file to read only, as in
`sqlite3 'file:tracker.db?mode=ro'`.

- A number that the profile does not hold is NULL, never 0; SUM and AVG leave NULL out, so a sum over runs of which some
  state nothing is of the others.
- Rows are per run, rank and step: divide by the sum of `steps` of v_step for a mean per step. `step IS NULL` is
  outside all steps.
- Runs that are excluded or deleted are in v_run alone. A run whose details were dropped by `tracker prune` has its rows
  in v_run and v_step, verdicts and findings, and none in v_op, v_kernel, v_communication, v_idle and v_memory.
- A verdict or finding whose judgement is out of date is left out, and `is_judged` is 0; `tracker versions judge`.
- Labels of versions do not sort: order by `version_ordinal`.

Views are made with the tables; `tracker db check` says where one is gone, and `tracker db upgrade` makes it again."""


def view_questions() -> dict[str, tuple[str, str]]:
    """View -> an example question, in words and in SQL, of scripts/view_questions.sql."""
    found = {}
    for part in (ROOT / "scripts/view_questions.sql").read_text(encoding="utf-8").split(";\n"):
        if part.strip():
            head, _, query = part.strip().partition("\n")
            view, _, words = head.removeprefix("-- ").partition(": ")
            found[view] = words, query
    return found


def view_docs() -> str:
    """The views with their columns, and a question to each."""
    from tracker.store.views import VIEWS

    parts = [VIEWS_FOR_OTHERS]
    questions = view_questions()
    for view in VIEWS:
        lines = [f"### {view.name}\n", f"{view.title}\n", "| column | type | meaning |", "|---|---|---|"]
        lines += [f"| `{column.name}` | {column.kind} | {column.meaning} |" for column in view.columns]
        words, query = questions[view.name]
        lines.append(f"\n{words}\n\n```sql\n{query};\n```")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def columns() -> str:
    """The data dictionary: views, and: all tables of the database and their columns."""
    from tracker.store.captures import DETAIL_TABLES
    from tracker.store.tables import captures, notifications, runs, tracks, watch
    from tracker.store.tables.meanings import meaning

    order = {name: place for place, name in enumerate(DETAIL_TABLES)}
    parts = [
        "# Tables and columns",
        view_docs(),
        "## Tables\n\nWhat the views are made of. They change with the program; `tracker db upgrade` changes them.\n"
        "One row per run, rank, step and distinct thing, with counts and sums. Times are integer nanoseconds\n"
        "(absolute ones since 1970 UTC), sizes bytes. What identifies a row is never NULL (empty text, or -1, for\n"
        "none); a number that the profile does not hold is NULL, never 0.",
    ]
    for found in (
        *tables_of(runs),
        *sorted(tables_of(captures), key=lambda found: order.get(found.__tablename__, len(order))),
        *(found for module in (tracks, notifications, watch) for found in tables_of(module)),
    ):
        table = found.__table__
        lines = [
            f"### {table.name}\n\n{first_paragraph(found.__doc__)}\n",
            "| column | type | meaning |",
            "|---|---|---|",
        ]
        for column in table.columns:
            kind = str(column.type).split("(")[0].split(" COLLATE")[0].lower()
            kind += "" if column.nullable else ", not null"
            lines.append(f"| `{column.name}` | {kind} | {meaning(table.name, column.name)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def json_documents() -> str:
    """The keys of the JSON documents and the columns of their rows: of real ones, where there are."""
    from tracker import reports

    parts = [JSON_INTRODUCTION]
    examples = example_results()
    shown = {type(result) for result in examples}
    for result in examples:
        document = json.loads(reports.render(result, "json"))
        parts.append(f"## {result.printed_by}\n\n{keys(document, result)}")
    for kind in result_classes():
        if kind not in shown and kind.printed_by:
            parts.append(f"## {kind.printed_by}\n\n{keys_of_class(kind)}")
    parts.append(f"{JSON_MESSAGES}\n\n{keys_of_messages()}")
    return "\n\n".join(parts)


def keys_of_messages() -> str:
    """A table of the keys of an alert for machines."""
    from tracker.results import Message, ToldFinding, ToldIncident
    from tracker.results.findings import ToldCommit

    rows = {"incidents": ToldIncident, "incidents[].shown": ToldFinding, "incidents[].beside": ToldFinding,
            "incidents[].named_commits": ToldCommit}  # fmt: skip
    lines = ["| key | holds |", "|---|---|"]
    lines.append(f"| (top) | {', '.join(Message.__struct_fields__)} |")
    lines += [f"| `{name}` | rows: {', '.join(kind.__struct_fields__)} |" for name, kind in rows.items()]
    return "\n".join(lines)


def example_results() -> list[Any]:
    """Results of the database that the README leaves, in the order of docs/json.md."""
    import tracker
    from tracker import doctor

    sample = ROOT / "tracker" / "samples" / "v01" / "run1.pt.trace.json.gz"
    with start_database() as database, tracker.open_store(str(database)) as store:
        return [
            tracker.show("run:6", store=store),
            tracker.calls("run:6", "aten::mm", store=store),
            tracker.diff("v01", "v08", store=store),
            tracker.cluster(ROOT / "tests" / "data" / "cluster", store=store),
            tracker.advise("v01", "v08", store=store),
            tracker.matrix("run:1", "run:2", "run:4", store=store),
            tracker.history("step", store=store),
            tracker.log(store=store),
            tracker.board(store=store),
            tracker.findings(store=store),
            tracker.explain(1, store=store),
            tracker.calibrate([f"run:{number}" for number in range(1, 7)], store=store, splits=1),
            doctor.examine([sample]),
            tracker.status(store=store),
        ]


def result_classes() -> list[Any]:
    """The classes of results, by the names of their modules."""
    from tracker.results.screens import Result

    for path in sorted((ROOT / "tracker/results").glob("*.py")):
        import_module(f"tracker.results.{path.stem}")
    return sorted(Result.__subclasses__(), key=lambda kind: (kind.__module__, kind.__name__))


def keys_of_class(kind: Any) -> str:
    """A table of the keys of a JSON document, of a result without an example: what its class says."""
    from tracker.results.screens import Frame

    tables = [name for name, value in vars(kind).items() if isinstance(value, Frame)]
    fields = [name for name in kind.__struct_fields__ if name != "tables"]
    lines = ["| key | holds |", "|---|---|"]
    lines += [f"| `{name}` | a field of the result |" for name in dict.fromkeys((*kind.json_fields, *fields))]
    lines += [f"| `{name}` | rows |" for name in tables]
    return "\n".join(lines)


def names_of_results() -> str:
    """The names of tracker.results and the modules that they come from: what each module lists in `__all__`."""
    lines = ["# Made by scripts/write_docs.py from the `__all__` of each module: change it there."]
    for path in sorted((ROOT / "tracker/results").glob("[a-z]*.py")):
        names = listed_names(path)
        # constants, then classes, then functions: the order that ruff wants
        for name in sorted(names, key=lambda name: (not name.isupper(), name.islower(), name.casefold())):
            lines.append(f"from .{path.stem} import {name} as {name}")
    return "\n".join(lines) + "\n"


def listed_names(path: Path) -> list[str]:
    """What a module lists in `__all__`."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


JSON_INTRODUCTION = """\
# JSON, schema 1

With `--format json`, a command prints one JSON object. Its key `schema` is 1. It changes when a key or column is
removed or changes its meaning; new keys may come without that.

- Times end in `_ns` (whole nanoseconds in `show`, means in `diff`), sizes in `_bytes`. What a profile does not hold is
  `null`, never 0.
- `overall` has a row per rank for the whole capture, `steps` a row per rank and step. Compute + exposed communication +
  exposed copies + idle (`idle_ns`) = `e2e_ns` in `overall`, = `duration_ns` in `steps`. In a capture without step
  markers both are `e2e_ns`: `run.measured_by` says which time the parts add up to.
- `ops`, `kernels`, `communication` and `memory` are sums over the steps and ranks of the run. `--by step` and
  `--by rank` keep these apart.
- `--by module`, `phase`, `op` or `kernel` gives `tree` in place of the tables: a row per node, parents first, with
  `node`, `parent`, `level`, `path`, calls, times and `share`. The rows of level 0 add up to the time of all operators.
- `bottleneck` has the `class` (`input`, `host`, `mixed`, `device`, or null with the reason in `missing`), the numbers
  behind it and the thresholds. In a diff it is an object per side, and `changed`.
- In a diff, `diff` is candidate / baseline - 1, and `status` is `both`, `ADDED` or `REMOVED`. `judged_diff` is the
  change over all runs, for operators, kernels and modules without the machine-wide drift (`judgement.shared`).
  `detectable` is the smallest change that these runs would have shown. `verdict`, `q` and `reason` are null where
  nothing was judged.
- In `explanation`, `causes` and `rollup` are the 20 largest operators and operator names. `explained_ns` is the sum
  over all operators, also those that filters leave out of the tables.
- In a matrix, each row has a cell per side: `diff` against the first side; `previous_diff`, `verdict` and `q` against
  the side before.

`tracker runs` and `tracker versions` print `{"schema": 1, "runs": [...]}` and `{"schema": 1, "versions": [...]}`."""


JSON_MESSAGES = """\
## Messages

[Alerts](every-morning.md#alerts) of the form `json`; a webhook (`json://`) has them under its key `tracker`. `key` is
the same for every delivery of a message.

- `url` of an incident is its page, `commits_url` the commits from `good_commit` to `commit`; "" where the settings name
  no address, or a version has no commit.
- `good_commit` is that of `good_commit_version`, the nearest good version with a commit: of the finding that makes most
  of the change, which may be nearer than the `good_version` of the step.
- `commits` is their number, null where it is not known; `named_commits` are up to five of them, the newest first;
  `author` and `subject` are those of a single commit."""


def keys(document: Mapping[str, Any], result: Any) -> str:
    """A table of the keys of a JSON document; `result` has the columns even of tables that are empty here."""
    tables = result.to_pandas()
    lines = ["| key | holds |", "|---|---|"]
    for key, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            holds = "rows: " + ", ".join(value[0])
        elif isinstance(value, list) and key in tables:
            holds = "rows: " + ", ".join(tables[key].columns)
        elif isinstance(value, list):
            holds = "sentences" if all(isinstance(each, str) and " " in each for each in value) else "a list"
        elif isinstance(value, Mapping):
            holds = ", ".join(value)
        elif isinstance(value, str):
            holds = "text"
        elif isinstance(value, int | float) and not isinstance(value, bool) and key != "schema":
            # such as the moment at which this is written
            holds = "a number"
        else:
            holds = json.dumps(value)
        lines.append(f"| `{key}` | {holds} |")
    return "\n".join(lines)


# ---- sections of pages ----


def readers() -> str:
    """The formats that can be read."""
    from tracker import readers as room

    lines = ["| format | what it reads |", "|---|---|"]
    return "\n".join(
        [*lines, *(f"| [`{name}`](docs/formats/{name}.md) | {room.load(name).TITLE} |" for name in room.NAMES)]
    )


def glossary() -> str:
    """Every word of the screens with what it means, and every verdict."""
    from tracker.results.glossary import WORDS
    from tracker.results.verdicts import VERDICTS

    parts = [
        "# Glossary",
        "Words of the screens. Pages and HTML files end with those that they use.",
        *(f"## {word}\n\n{sentence_of(meaning)}" for word, meaning in sorted(WORDS.items(), key=spelling_of)),
        "## Verdicts",
        "What each does not mean, and what helps: [compare](compare.md#verdicts).",
        "\n".join(["| verdict | meaning |", "|---|---|", *(f"| {word} | {text} |" for word, text in VERDICTS.items())]),
    ]
    return "\n\n".join(parts)


def spelling_of(entry: tuple[str, str]) -> str:
    """The word of an entry as a dictionary sorts it."""
    return entry[0].casefold()


def sentence_of(meaning: str) -> str:
    """A meaning as a sentence: `FLOPs by the peak` stays as it is."""
    return f"{meaning[0].upper()}{meaning[1:]}."


def reports() -> str:
    """The forms in which results are written."""
    from tracker import reports as room

    lines = ["| `--format` | file | what it is good for |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | `{room.suffix(name)}` | {room.title(name)} |" for name in room.NAMES)])


def settings() -> str:
    """The entries of the settings file, one a line."""
    from tracker.config.meanings import MEANINGS

    lines = ["| table | entry | meaning |", "|---|---|---|"]
    for table, entries in MEANINGS.items():
        place = f"`{table}`" if table else "(top)"
        lines += [f"| {place} | `{name}` | {meaning} |" for name, meaning in entries.items()]
    return "\n".join(lines)


MEASURED: Final = {
    "tracker 0.1.0: ingest": ("tracker 0.1.0, ingest", "history and verdicts in a database"),
    "HolisticTraceAnalysis 0.5.0: load, two breakdowns": (
        "HolisticTraceAnalysis 0.5.0, load and two breakdowns", "analysis of one job in a notebook",
    ),
    "torch-tb-profiler 0.4.3: load one run": ("torch-tb-profiler 0.4.3, load one run", "viewer of one run"),
    "msprof-analyze 26.2.0: compare two files": (
        "msprof-analyze 26.2.0, compare two files (beside two ingests and a diff, one round)",
        "comparison of two profiles",
    ),
}  # fmt: skip
"""Tool in the tables of docs/operate.md -> its words and its kind in README.md."""
UNMEASURED: Final = (
    "| TraceLens (AMD) | reports of one trace, as workbooks | not measured | not measured |",
    "| asv, Perfherder, Otava | history of numbers that you measure; they read no profiles | - | - |",
)


def measurements() -> list[list[dict[str, str]]]:
    """Return the tables of docs/operate.md with what `scripts/bench_ingest.py` measured, the newest first: rows by
    column.
    """
    text = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in block.splitlines()]
        if "times tracker" in lines[0]:
            found.append([dict(zip(lines[0], line, strict=True)) for line in lines[2:]])
    return found


def speed() -> str:
    """Return each tool on the same trace, by its newest row in docs/operate.md: tracker in seconds and megabytes, the
    others as multiples of what tracker took in the same table.
    """
    lines = ["| tool | kind | time | peak memory |", "|---|---|---|---|"]
    for tool, (words, kind) in MEASURED.items():
        table, row = next(
            (table, row) for table in measurements() for row in table if (row["trace"], row["tool"]) == ("501 MB", tool)
        )
        if tool.startswith("tracker"):
            cells = (f"{row['s']} s", f"{row['peak MB']} MB")
        else:
            # the row with the same work of tracker stands above
            before = [one for one in table[: table.index(row)] if one["times tracker"] == "1"]
            times = float(row["peak MB"]) / float(before[-1]["peak MB"])
            cells = (f"{row['times tracker']} x", f"{times:.1f} x")
        lines.append(f"| {words} | {kind} | {' | '.join(cells)} |")
    return "\n".join([*lines, *UNMEASURED])


def example(name: str, language: str) -> str:
    """A file of scripts/ci, whole."""
    return f"```{language}\n{(ROOT / 'scripts' / 'ci' / name).read_text(encoding='utf-8')}```"


def ab_table() -> str:
    """How often an A/B of two builds is wrong, and how many runs it takes."""
    sys.path.insert(0, str(ROOT / "scripts"))
    return str(import_module("score_ab").table())


SECTIONS: Mapping[str, Callable[[], str]] = {
    "readers": readers,
    "reports": reports,
    "settings": settings,
    "speed": speed,
    "ab": ab_table,
    "rules": rule_table,
    "devices": device_table,
    "slurm": partial(example, "slurm_epilog.sh", "sh"),
    "github": partial(example, "github.yml", "yaml"),
    "checks": check_table,
    "idle": idle_table,
    "gitlab": partial(example, "gitlab.yml", "yaml"),
}


def pages() -> Mapping[str, Callable[[], str]]:
    """The pages that are written whole, by their paths."""
    from tracker.readers import NAMES

    return {
        "docs/commands.md": commands,
        "docs/columns.md": columns,
        "docs/json.md": json_documents,
        "docs/glossary.md": glossary,
        "tracker/results/__init__.pyi": names_of_results,
        **{f"docs/formats/{name}.md": partial(format_page, name) for name in NAMES},
        **{f"docs/advice/{rule.id}.md": partial(rule_page, rule.id) for _, rule in rules()},
    }


# ---- commands, run in this process ----

_SECTION = re.compile(r"(<!-- begin (?P<name>\w+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)
_CONSOLE = re.compile(r"(?P<head>```console\n)(?P<body>.*?)(?P<tail>```)", re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)


def sections_updated(text: str) -> str:
    """`text` with its generated sections as they are now."""
    return _SECTION.sub(lambda m: f"{m[1]}{SECTIONS[m['name']]()}\n{m[3]}", text)


def consoles_updated(text: str, output_of: Callable[[str], str]) -> str:
    """`text` with what `output_of` gives for each of its command lines, in their order."""

    def played(block: re.Match[str]) -> str:
        lines = []
        for line in _COMMAND.findall(block["body"]):
            output = output_of(line)
            lines.append(f"$ {line}\n{output}" + ("" if not output or output.endswith("\n") else "\n"))
        return block["head"] + "".join(lines) + block["tail"]

    return _CONSOLE.sub(played, text)


def outputs_of(text: str) -> Mapping[str, str]:
    """The command lines in the console blocks of `text`, each with the output below it."""
    parts = (part for block in _CONSOLE.finditer(text) for part in re.split(r"^\$ ", block["body"], flags=re.M)[1:])
    return {line: output for line, _, output in (part.partition("\n") for part in parts)}


def copied(line: str, outputs: Mapping[str, str], page: str) -> str:
    """The output of a command line of a translation; SystemExit where the original does not have the command."""
    if line not in outputs:
        raise SystemExit(f"{page}: the page that it translates does not have this command:\n$ {line}")
    return outputs[line]


def shell(line: str, database: Path | str) -> str:
    """What a command line prints to standard output; what follows its first pipe is run by a shell."""
    command, _, rest = line.partition(" | ")
    # The demo script would install tracker into .venv; here it is at hand.
    output = run(shlex.split(command.replace("sh scripts/demo.sh", "tracker demo")), database)
    if not rest:
        return output
    done = subprocess.run(["sh", "-c", rest], input=output, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout:
        raise SystemExit(f"$ {line}\nnothing is left of this by {rest!r}:\n{output}")
    return done.stdout


def run(words: list[str], database: Path | str = "") -> str:
    """What `tracker WORDS` prints to standard output; another exit code than 0 ends this program."""
    from tracker.cli import main

    assert words[0] == "tracker", words
    out, err, code = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO(), None
    folder, arguments, environment = Path.cwd(), sys.argv, dict(os.environ)
    with tempfile.TemporaryDirectory() as home, redirect_stdout(out), redirect_stderr(err):
        sys.argv = words
        own = {name: value for name, value in environment.items() if not name.startswith(("TRACKER_", "XDG_"))}
        os.environ.clear()
        os.environ.update({**own, "HOME": home, "TRACKER_DB": str(database or Path(home) / "tracker.db")})
        os.environ.pop("COLUMNS", None)
        os.chdir(ROOT)
        try:
            main()
        except SystemExit as end:
            code = end.code
        finally:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            sys.argv = arguments
    out.flush()
    if code:
        raise SystemExit(f"{shlex.join(words)}: exit {code}\n{err.getvalue()}")
    return out.buffer.getvalue().decode()  # type: ignore[attr-defined]


@cache
def started() -> tuple[Path, str]:
    """The database that the commands of the README leave, and the README with what they print."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    database = Path(folder) / "tracker.db"
    return database, consoles_updated((ROOT / START).read_text(encoding="utf-8"), partial(shell, database=database))


@contextmanager
def start_database() -> Iterator[Path]:
    """A copy of the database that the commands of the README leave."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copy(started()[0], folder))


def written(page: str) -> str:
    """What a page should hold, by its path below the root."""
    if page.endswith(".pyi"):
        return pages()[page]()
    if page in pages():
        return f"<!-- Made by scripts/write_docs.py from the code: change it there. -->\n\n{pages()[page]()}\n"
    if page == START:
        return sections_updated(started()[1])
    if page.startswith(TRANSLATIONS):
        name = page.removeprefix(TRANSLATIONS)
        outputs = outputs_of(started()[1] if name == START else with_outputs(f"docs/{name}"))
        text = (ROOT / page).read_text(encoding="utf-8")
        return consoles_updated(text, partial(copied, outputs=outputs, page=page))
    return sections_updated(with_outputs(page))


@cache
def with_outputs(page: str) -> str:
    """A page of docs/ with what its commands print now, on a copy of the database that the README leaves."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if not _CONSOLE.search(text):
        return text
    with start_database() as database:
        return consoles_updated(text, partial(shell, database=database))


def all_pages() -> list[str]:
    """The README and every page of docs/, those that are still to be written included."""
    found = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    return ["README.md", *sorted(found | set(pages()))]


def main() -> None:
    """Rewrite all pages, or with --check only show what is out of date."""
    stale = False
    for page in all_pages():
        path, after = ROOT / page, written(page)
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if before == after:
            continue
        stale = True
        if "--check" in sys.argv[1:]:
            lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), page, "as it should be")
            sys.stdout.writelines(lines)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(after, encoding="utf-8")
    if stale and "--check" in sys.argv[1:]:
        sys.exit(1)


if __name__ == "__main__":
    main()
