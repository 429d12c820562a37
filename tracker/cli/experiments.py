"""`tracker experiments`: list, show and delete what `tracker ab` ran."""

from __future__ import annotations

from typing import Annotated

from tracker import config
from tracker.api.arguments import opened
from tracker.cli.ab import read_experiment_number
from tracker.cli.options import Database, ListFormat, Top
from tracker.cli.output import Column, emit, emit_list, next_lines, plan
from tracker.cli.report_options import Page
from tracker.columns import Columns
from tracker.results.experiments import ExperimentChange, ListedExperiment
from tracker.results.options import Option
from tracker.units import counted, format_moment

HELP = (
    "List, show and delete experiments: two builds that tracker ab ran by turns. Without a command: list them.\n\n"
    "\b\nExample:\n"
    "  tracker experiments\n"
    "  tracker experiments show E-3\n"
    "  tracker experiments delete E-3"
)
_Named = Annotated[str, Option("An experiment, such as E-3.", "E-N", positional=True)]


def find(format: ListFormat = "text", db: Database = None) -> None:
    """List experiments, the newest first."""
    from tracker.experiment.results import list_experiments

    with opened(config.load(db), read_only=True) as store, store.reading():
        found = list_experiments(store)
    rows = Columns.of_structs(ListedExperiment, found)
    last = "there are no experiments yet: tracker ab BASELINE CANDIDATE -- COMMAND makes one"
    if found:
        last = f"{counted(len(found), 'experiment')}.{next_lines(f'tracker experiments show {found[0].name}')}"
    columns = [
        Column("experiment", _name),
        Column("workload"),
        Column("baseline", is_elastic=True),
        Column("candidate", is_elastic=True),
        Column("state"),
        Column("answer", _describe_change),
        Column("runs", "counted_runs", right=True),
        Column("started", "started_at_ns", lambda value: f"{format_moment(value)} UTC", drop=1),
        Column("host", drop=2),
    ]
    emit_list(rows, columns, format, name="experiments", last_line=last, kind=ListedExperiment)


def _name(row: ListedExperiment) -> str:
    return f"E-{row.experiment_id}"


def _describe_change(row: ListedExperiment) -> str:
    """Return the change with its interval, and what it was decided to be."""
    names = ExperimentChange.__struct_fields__
    change = ExperimentChange(*(getattr(row, name) for name in names))
    if change.outcome == "no difference":
        return f"no difference ({change.words})"
    return change.words if change.outcome or not change.words else f"so far {change.words}"


def show(experiment: _Named, *, top: Top = None, page: Page, db: Database = None) -> None:
    """Show what an experiment decided, and the diff of its runs.

    \b
    Example:
      tracker experiments show E-3
      tracker experiments show E-3 -o ab.html
    """
    from tracker.experiment import conducting

    delivery = plan(page, f"experiment_{experiment}", "experiment")
    number = read_experiment_number(experiment)
    with opened(config.load(db), read_only=True) as store, store.reading():
        found = conducting.show(store, number)
    delivery.deliver(found, limit=top)


def delete(experiment: _Named, db: Database = None) -> None:
    """Remove an experiment with its runs, clones and logs, for good.

    \b
    Example:
      tracker experiments delete E-3
    """
    from tracker.experiment import conducting

    number = read_experiment_number(experiment)
    with opened(config.load(db)) as store:
        count = conducting.delete(store, number)
    emit(f"experiment E-{number} deleted, with {counted(count, 'run')}.")
