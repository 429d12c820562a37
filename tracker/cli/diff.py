"""`tracker diff`: candidate against baseline."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tracker.cli import _options as options
from tracker.errors import (
    EXIT_FINDINGS,
    EXIT_NOT_COMPARABLE,
    EXIT_OK,
    EXIT_TOO_LITTLE_DATA,
    SourceError,
    TooLittleDataError,
    UsageError,
)

if TYPE_CHECKING:
    from tracker.results import Diff, DiffOptions
    from tracker.store import Store

_WORST_FIRST: Final = (EXIT_FINDINGS, EXIT_TOO_LITTLE_DATA, EXIT_NOT_COMPARABLE, EXIT_OK)
_SIDE = "A version, VERSION@DEVICE, run:41, run:41,run:42, run:41:rank3, latest, latest~1, pinned, or a path on disk."


class Match(StrEnum):
    """When two ops are the same op."""

    SHAPE = "shape"
    NAME = "name"


class Tree(StrEnum):
    """What the rows of a tree are."""

    MODULE = "module"
    PHASE = "phase"
    OP = "op"
    KERNEL = "kernel"
    COMMUNICATION = "communication"


class Baseline(StrEnum):
    """What one side alone is compared with."""

    WINDOW = "window"
    PREVIOUS = "previous"
    PINNED = "pinned"


def diff(
    sides: Annotated[
        list[str],
        typer.Argument(
            metavar="BASELINE CANDIDATE...",
            help=f"What it was, and what it is now; with more sides a matrix of all of them, and one alone is compared "
            f"with what --baseline says. {_SIDE}",
            show_default=False,
        ),
    ],
    against: Annotated[
        Baseline | None,
        typer.Option(
            "--baseline",
            help="What one side alone is compared with: the runs that its version was judged against, at most 8 of the "
            "current level (window; of the version before where it was not judged), all of the version before "
            "(previous), or of the pinned version. Always of its workload, configuration and device. Default: window.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="Sections of the report, separated by commas: overall, operator, kernel, kernel_type, metric, "
            "communication, link, memory, memory_peak, memory_block, module, api, counter. metric: measurements of NPU "
            "kernels; counter: what "
            "profilers count in tables of their own. Default: those with times on screen, all in the other formats.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        Tree | None,
        typer.Option(
            help="A tree instead of the tables, the largest change first: modules in modules and their ops, phases of "
            "a step and their ops, ops with what they call, kernels with what launches them. With three or more sides "
            "the rows of the matrix: op, kernel, communication or module. Default: no tree; ops.",
            show_default=False,
        ),
    ] = None,
    depth: options.Depth = None,
    match: Annotated[
        Match,
        typer.Option(
            help="Ops are the same by name and input shapes, or by name alone. Choose name where shapes change "
            "between the sides, or every op of a new batch size is ADDED."
        ),
    ] = Match.SHAPE,
    max_kernels: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Compare the children of an op that launches more kernels than this per call, instead of the op. "
            "Default: never.",
            show_default=False,
        ),
    ] = None,
    op_map: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|JSON",
            help="Ops that are the same under another name: a JSON object of baseline name to candidate name, as a "
            "file or "
            'as text: \'{"Optimizer.step#SGD.step": "Optimizer.step#NpuFusedSGD.step"}\'. Default: none.',
            show_default=False,
        ),
    ] = None,
    baseline_step: options.BaselineStep = None,
    candidate_step: options.CandidateStep = None,
    top: options.Top = None,
    rank: options.Ranks = None,
    stage: options.Stage = None,
    module: options.Module = None,
    op: options.Op = None,
    kind: options.Kind = None,
    group: options.Group = None,
    min_us: options.MinimumUs = None,
    workload: options.Workload = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Only runs whose configuration has this value, such as batch=32; may be given again. Default: each "
            "configuration that both sides have is compared by itself.",
            show_default=False,
        ),
    ] = None,
    format: options.ReportFormat = None,
    output: options.Output = None,
    fail_on: Annotated[
        options.FailOn | None,
        typer.Option(
            "--fail-on",
            help="End with an exit code that says how the candidate did, whatever sections and filters show. 1: the "
            "step is REGRESSED, or peak memory rose by 10 %, or (the step has no finding) the operators found make it "
            "1 % slower on the whole (tracker thresholds: gate_peak, gate_net). new: what the candidate began; any: "
            "what began with older versions and is open, too. 3: the sides are never judged (another device, "
            "configuration or workload, the same runs, a part of the runs); 4: the step is a suspect that the next "
            "runs decide, or has no verdict (too few runs, other settings); 0: else. The last line on stderr says why. "
            "Default: 0 whatever is found.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Show the tables of sides that do different work, too: another workload, model or meaning of a step, "
            "or less than half of the operators in common, by name and by time. Default: only the reason.",
        ),
    ] = False,
    input_format: options.InputFormat = None,
    flow_category: options.FlowCategory = None,
    allow_partial: options.AllowPartial = False,
    skip_bad_rows: options.SkipBadRows = False,
    db: options.Database = None,
) -> None:
    """Compare two sides: what became slower, by how much, and why.

    Every number is per step: the median over the steps, then over the ranks, the geometric mean over the runs of a
    side. DIFF = candidate / baseline - 1. The explanation at the end adds up to the change, and the last line answers
    the question. Where runs repeat, rows have verdicts; where they do not, a line says what is missing. Paths need no
    database.

    \b
    Example:
      tracker diff v1 v2
      tracker diff a.pt.trace.json b.pt.trace.json.gz --only overall,operator
      tracker diff v1 v2 --by module --depth 3
      tracker diff v1 v2 v3 v4 --by kernel
      tracker diff v2 --baseline pinned
      tracker diff v1 v2 --format xlsx -o diff.xlsx
      tracker diff latest --fail-on new --format junit -o gate.xml
    """
    from msgspec.structs import replace

    from tracker import compare, reports
    from tracker import config as configuration
    from tracker.cli import _store
    from tracker.cli._output import finish, plan, screen, tell
    from tracker.cli._progress import progress
    from tracker.results import DiffOptions, check_matrix

    if against and len(sides) > 1:
        raise UsageError("--baseline with two sides", remedy="leave out --baseline, or name the candidate alone")
    several, rows = len(sides) > 2, by.value if by else ""
    stem = "_".join(["diff", *(Path(side).name for side in sides)])
    delivery = plan(format, output, stem, "matrix" if several else "diff")
    chosen = options.sections(only)
    if several and fail_on:
        raise UsageError("--fail-on with several candidates", remedy="name two sides: BASELINE CANDIDATE")
    if by is Tree.COMMUNICATION and not several:
        raise UsageError("--by communication is of three sides or more", remedy="of two sides: --only communication")
    settings = configuration.load(db)
    asked = DiffOptions(
        baseline_steps=options.steps(baseline_step, "--baseline-step"),
        candidate_steps=options.steps(candidate_step, "--candidate-step"),
        match=match.value,
        max_kernels=max_kernels,
        op_map=read_op_map(op_map) if op_map else {},
        only=chosen,
        by=(rows,) if rows and not several else (),
        depth=None if several else depth,
        force=force,
        config=options.pairs(config, "--config"),
        workload=workload,
        module=module,
        op=op,
        kind=kind,
        group=group,
        ranks=tuple(rank or ()),
        stage=stage,
        minimum_ns=options.minimum_ns(min_us),
        format=input_format,
        flow_category=flow_category,
        allow_partial=allow_partial,
        skip_bad_rows=skip_bad_rows,
        max_bytes=settings.max_bytes,
    )
    if several:
        check_matrix(asked, rows or "op", depth)
    with progress() as report, _store.opened_for(settings, sides) as store:
        asked = replace(asked, on_progress=report)
        if several:
            matrix = compare.matrix(store, sides, by=rows or "op", options=asked)
        else:
            found = _diffs(store, sides, asked, against.value if against else "window", gated=fail_on is not None)
    look = screen()
    look_of: dict[str, Any] = {"limit": top, "width": look.width, "color": look.color, "tell": tell}
    if several:
        delivery.deliver(lambda wanted: reports.render(matrix, wanted.value, **look_of))
        return
    gates = [compare.gate_of_diff(each, fail_on.value) if fail_on else None for each in found]

    def render(wanted: options.Format) -> str | bytes:
        pages = [
            reports.render(each, wanted.value, only=chosen, gate=gate, **look_of)
            for each, gate in zip(found, gates, strict=True)
        ]
        return pages[0] if len(pages) == 1 else reports.joined([str(page) for page in pages], wanted.value)

    delivery.deliver(render)
    ended = [(gate, _name(each)) for gate, each in zip(gates, found, strict=True) if gate is not None]
    if ended:
        gate, name = min(ended, key=lambda one: _WORST_FIRST.index(one[0].code))
        finish(gate, of=name if len(ended) > 1 else "")


def _diffs(store: Store | None, sides: list[str], asked: DiffOptions, against: str, *, gated: bool) -> list[Diff]:
    """As `compare.diffs`; that there is no baseline is too little data (exit code 4) only for a gate."""
    from tracker import compare

    try:
        return compare.diffs(store, sides, options=asked, against=against)
    except TooLittleDataError as error:
        if gated:
            raise
        raise UsageError(error.problem, remedy=error.remedy) from error


def _name(found: Diff) -> str:
    """What tells a comparison from others of the same versions."""
    return " ".join(filter(None, (found.candidate.label, found.candidate.configuration)))


def read_op_map(text: str) -> dict[str, str]:
    """The op map in `text`, which is JSON or the path of a file that holds it: baseline name to candidate name."""
    inline = text.lstrip().startswith(("{", "["))
    place = "--op-map" if inline else text
    remedy = """write a JSON object of names, such as {"aten::mul": "npu::mul"}"""
    try:
        content = text if inline else Path(text).read_text(encoding="utf-8")
        found = json.loads(content)
    except OSError as error:
        raise SourceError(place, "", f"the op map cannot be read ({error.strerror})", remedy=remedy) from error
    except UnicodeDecodeError as error:
        raise SourceError(place, f"byte {error.start}", "the op map is not text", remedy=remedy) from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise SourceError(place, where, f"the op map is not JSON ({error.msg})", remedy=remedy) from error
    if not isinstance(found, dict):
        raise SourceError(place, "", f"the op map is a JSON {type(found).__name__}, not an object", remedy=remedy)
    for name, other in found.items():
        if not isinstance(other, str):
            raise SourceError(place, f"key {name!r}", f"the op map has {other!r} instead of a name", remedy=remedy)
    return found
