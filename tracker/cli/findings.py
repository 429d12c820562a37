"""`tracker findings` and `tracker explain`: what got worse or better, since when, and why it is said."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from tracker.cli import _options as options
from tracker.cli.history import SeriesKind


class FindingState(StrEnum):
    """Where a finding stands."""

    OPEN = "open"
    ALL = "all"
    SUSPECT = "suspect"
    NEW = "new"
    PERSISTING = "persisting"
    ACKNOWLEDGED = "acknowledged"
    MUTED = "muted"
    RECOVERED = "recovered"
    TAKEN_BACK = "taken-back"
    ACCEPTED = "accepted"
    VANISHED = "vanished"
    EXPECTED = "expected"
    INVALID = "invalid"


class Direction(StrEnum):
    """Which way."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"


def findings(
    new: Annotated[
        bool,
        typer.Option(
            "--new",
            help="Only what the runs of the newest version decided, whichever version began it, and its suspects; not "
            "what somebody acknowledged. Default: all open ones.",
        ),
    ] = False,
    state: Annotated[
        list[FindingState] | None,
        typer.Option(
            help="Only findings in this state; may be given again. open: suspect to muted; all: every one that ever "
            "was. Default: open.",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            envvar="TRACKER_VERSION",
            show_envvar=False,
            help="Only what began with this version, also what is over: recovered, expected, vanished. "
            "Default: TRACKER_VERSION, else any.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        SeriesKind | None,
        typer.Option(help="Only this kind of series, as in tracker history. Default: all.", show_default=False),
    ] = None,
    direction: Annotated[
        Direction | None, typer.Option(help="Only what got worse, or better. Default: both.", show_default=False)
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Also the findings that others of their incident cover: the shapes of an op below its name. Default: "
            "the ones that cover.",
        ),
    ] = False,
    top: options.Top = None,
    workload: options.Workload = None,
    device: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Only runs on this hardware model. Default: any.")
    ] = None,
    format: options.ReportFormat = None,
    output: options.Output = None,
    fail_on: Annotated[
        options.FailOn | None,
        typer.Option(
            "--fail-on",
            help="End with an exit code that says how the newest version of each track came out. new: 1 where its step "
            "got slower, peak memory rose by 10 %, or (no finding of the step) its operators got slower by 1 % of the "
            "step, net; any: also for what began earlier and is open. What people expect or called invalid does not "
            "count. 4: the step has no verdict, or is a suspect; 0: else. The last line on stderr says why. "
            "Default: 0 whatever is found.",
            show_default=False,
        ),
    ] = None,
    db: options.Database = None,
) -> None:
    """What became slower or faster for good, told from noise: incidents by version, each explained by its findings.

    The runs of a version are judged together, against the newest runs of the level before it; where a version has one
    run, what changed is a suspect, which the next runs decide. A regression stays open until it recovers; what users
    mark it as (tracker ack, expect, mute, invalid) changes what is shown, alerted and gated.

    \b
    Example:
      tracker findings --new
      tracker findings --workload gpt --version v8 --all
      tracker findings --state all --format xlsx -o findings.xlsx
      tracker findings --new --fail-on new
      tracker findings --format prometheus -o /var/lib/node_exporter/tracker.prom
    """
    from msgspec.structs import replace

    from tracker import compare, config, reports
    from tracker.cli import _store
    from tracker.cli._output import finish, plan, screen, tell
    from tracker.regressions.gates import gate_of_findings
    from tracker.regressions.inbox import findings as findings_of
    from tracker.results import OPEN_STATES, STATES, FindingsOptions

    delivery = plan(format, output, f"findings_{workload or ''}".rstrip("_"), "findings")
    words = {FindingState.OPEN: OPEN_STATES, FindingState.ALL: STATES, FindingState.TAKEN_BACK: ("taken back",)}
    states = [word for one in state or () for word in words.get(one, (one.value,))]
    chosen = FindingsOptions(
        workload=workload,
        device=device,
        version=version,
        kind=None if kind is None else kind.value,
        direction=None if direction is None else direction.value,
        states=tuple(dict.fromkeys(states)) or None,
        only_new=new,
        every=every,
    )
    with _store.reading(config.load(db)) as store, store.reading():
        if version is not None:
            chosen = replace(chosen, version=compare.label_of(store, version, workload))
        found = findings_of(store, options=chosen)
        incidents = found.tables["incidents"].records()
        found = replace(found, notes=(*found.notes, *compare.notes_between(store, incidents)))
    gate = gate_of_findings(found, fail_on.value if fail_on else "new")
    look = screen()
    delivery.deliver(
        lambda wanted: reports.render(
            found, wanted.value, limit=top, width=look.width, color=look.color, tell=tell, gate=gate
        )
    )
    if fail_on:
        finish(gate)


def explain(
    finding: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The number of a finding, as tracker findings lists it; I-N for all of an incident.",
            show_default=False,
        ),
    ],
    format: options.ReportFormat = None,
    output: options.Output = None,
    db: options.Database = None,
) -> None:
    """Why something is a finding, or why it is none any more: every test with its value, its runs, its life.

    \b
    Example:
      tracker explain 12
      tracker explain I-3
      tracker explain 12 --format json
    """
    from msgspec.structs import replace

    from tracker import compare, config, reports
    from tracker.cli import _store
    from tracker.cli._output import plan, screen, tell
    from tracker.regressions.actions import numbers_of
    from tracker.regressions.explain import explain as explain_one
    from tracker.regressions.explain import findings_of

    numbers, incidents = numbers_of([finding])
    delivery = plan(format, output, f"finding_{finding}", "explained")
    if incidents:
        for one in (delivery.shown, delivery.written):
            _check_several(one)
    with _store.reading(config.load(db)) as store, store.reading():
        numbers += [number for incident in incidents for number in findings_of(store, incident)]
        found = [explain_one(store, number) for number in numbers]
        notes = compare.notes_between(store, [one.finding for one in found])
        found = [replace(one, notes=(*one.notes, *notes)) for one in found]
    look = screen()

    def render(wanted: options.Format) -> str | bytes:
        documents = [reports.render(one, wanted.value, width=look.width, color=look.color, tell=tell) for one in found]
        return documents[0] if not incidents else _together(wanted, documents, incidents[0])

    delivery.deliver(render)


def _check_several(format: options.Format | None) -> None:
    from tracker.errors import UsageError

    if format not in (None, options.Format.TEXT, options.Format.MARKDOWN, options.Format.JSON):
        raise UsageError(
            f"--format {format.value} holds one finding", remedy="name a finding, or choose text, markdown or json"
        )


def _together(format: options.Format, documents: Sequence[str | bytes], incident: int) -> str:
    """What explains the findings of an incident, one after the other; of JSON one object."""
    texts = [text if isinstance(text, str) else text.decode() for text in documents]
    if format is not options.Format.JSON:
        return "\n\n".join(text.rstrip("\n") for text in texts)
    import json

    explained = [json.loads(text) for text in texts]
    return json.dumps({"schema": explained[0]["schema"], "incident_id": incident, "explained": explained}, indent=2)
