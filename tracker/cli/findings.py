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
    RECOVERING = "recovering"
    MUTED = "muted"
    REOPENED = "reopened"
    RECOVERED = "recovered"
    EXPECTED = "expected"
    VANISHED = "vanished"
    INVALID = "invalid"
    NORMAL = "normal"


class Direction(StrEnum):
    """Which way."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"


def findings(
    new: Annotated[
        bool,
        typer.Option(
            "--new",
            help="Only what the runs of the newest version confirmed, whichever version began it, and what they made "
            "suspicious; not what somebody acknowledged or muted. Default: all open ones.",
        ),
    ] = False,
    state: Annotated[
        list[FindingState] | None,
        typer.Option(
            help="Only findings in this state; may be given again. open: suspect to reopened; all: every one that ever "
            "was, with suspicions that were cleared (normal). Default: open.",
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
            help="End with an exit code that says what is open, among the findings asked for. any: 1 for every "
            "confirmed regression that is new, persisting, acknowledged or reopened (not for muted ones, nor for those "
            "that recover); new: 1 for those that the newest version of their line began; suspect: 1 also for "
            "suspicions. 0: nothing of it; 4: too little data to say (suspicions that the next runs decide, or no line "
            "has the 4 runs from which on one can be judged). The last line on stderr says why. Default: 0 whatever is "
            "found.",
            show_default=False,
        ),
    ] = None,
    net_loss: options.NetLoss = None,
    db: options.Database = None,
) -> None:
    """What became slower or faster for good, told from noise: incidents by version, each explained by its findings.

    The runs of a version are judged together, against the accepted ones before it; where
    a version has one run, that is a suspicion, which the next runs decide (tracker
    thresholds can say how many). A confirmed finding stays open until it recovers
    or somebody says what it is (tracker ack, expect, mute, invalid). What got better becomes the new baseline by
    itself, what got worse never does.

    \b
    Example:
      tracker findings --new
      tracker findings --workload gpt --version v8 --all
      tracker findings --state all --format xlsx -o findings.xlsx
      tracker findings --new --fail-on new
      tracker findings --format prometheus -o /var/lib/node_exporter/tracker.prom
    """
    from msgspec.structs import replace

    from tracker import compare, config, judgement, reports
    from tracker.cli import _store
    from tracker.cli._output import finish, plan, screen, tell
    from tracker.results import OPEN_STATES, STATES, FindingsOptions

    limit = options.net_loss(net_loss, fail_on)
    delivery = plan(format, output, f"findings_{workload or ''}".rstrip("_"), "findings")
    words = {FindingState.OPEN: OPEN_STATES, FindingState.ALL: STATES}
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
        found = judgement.findings(store, options=chosen)
        incidents = found.incidents.to_dict("records")
        found = replace(found, notes=(*found.notes, *compare.notes_between(store, incidents)))
    gate = judgement.gate_of_findings(found, fail_on.value if fail_on else "any", net_loss=limit)
    look = screen()
    delivery.deliver(
        lambda wanted: reports.render_findings(
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
            help="The number of a finding, as tracker findings lists it; incident:N for all of an incident.",
            show_default=False,
        ),
    ],
    format: options.ReportFormat = None,
    output: options.Output = None,
    db: options.Database = None,
) -> None:
    """Why something is a finding, or why it is none any more: every gate with its value, its runs, its life.

    \b
    Example:
      tracker explain 12
      tracker explain incident:3
      tracker explain 12 --format json
    """
    from msgspec.structs import replace

    from tracker import compare, config, judgement, reports
    from tracker.cli import _store
    from tracker.cli._output import plan, screen, tell

    numbers, incidents = judgement.numbers_of([finding])
    delivery = plan(format, output, f"finding_{finding}", "explained")
    if incidents:
        for one in (delivery.shown, delivery.written):
            _check_several(one)
    with _store.reading(config.load(db)) as store, store.reading():
        numbers += [number for incident in incidents for number in judgement.findings_of(store, incident)]
        found = [judgement.explain(store, number) for number in numbers]
        notes = compare.notes_between(store, [one.finding for one in found])
        found = [replace(one, notes=(*one.notes, *notes)) for one in found]
    look = screen()

    def render(wanted: options.Format) -> str | bytes:
        documents = [
            reports.render_explained(one, wanted.value, width=look.width, color=look.color, tell=tell) for one in found
        ]
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
