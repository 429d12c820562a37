"""All rules over one run: what can be won, at most, and where."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.advice import gains
from tracker.advice.evidence import Evidence
from tracker.advice.losses import account_for_step, find_largest_loss
from tracker.advice.platform import Platform
from tracker.advice.rule import LEAST_SHARE
from tracker.advice.rules import FAMILIES as RULES_OF
from tracker.advice.rules import RULES
from tracker.profile import IdleCause, remedies
from tracker.results import Accounts, Advice, Claimed, Loss, Number
from tracker.results.advice import EfficiencyRow
from tracker.results.partial import find_partial
from tracker.store.queries import settings_of

if TYPE_CHECKING:
    from tracker.advice.rule import AdviceRule, Claim
    from tracker.store import Store

    _Found = tuple[str, AdviceRule, Claim]

LEAST_NS: Final = 100_000
"""Advice below 0.1 ms, or below the share of the step that its rule names, is not shown unless asked for."""
_HIGH: Final = 0.05
_CAPTURED: Final = 0.01
_HOST_BOUND: Final = 0.1
"""Of the step: idle time of a late host from which on shorter kernels may win nothing."""
_LATE_HOST: Final = (
    IdleCause.GARBAGE_COLLECTION, IdleCause.COMPILE, IdleCause.ALLOCATION, IdleCause.OPERATOR, IdleCause.NO_OPERATOR,
    IdleCause.LAUNCH_LATENCY,
)  # fmt: skip
_CLAIMS: Final = 20
_OF_HOST: Final = ("memory", "environment")
"""Families whose rules say what holds of a capture that lost records of the device, too."""
_ORDER: Final = {rule.id: place for place, rule in enumerate(RULES)}


class RunAdvice(Struct, frozen=True, kw_only=True):
    """What the rules say of one run: `items`, the largest gain first; `together_ns`: what all of them can give at most;
    `missing`: what cannot be judged, and why; `efficiency`, `use`: see `results.Advised`. `vendor`, `framework`,
    `framework_version`, `source`, `traits`: whom the remedies are for, see `Platform`. `loss`: the largest that is
    known; `accounts`: how the step adds up. `notes`: what holds for several pieces.
    """

    step_ns: float
    together_ns: float = 0.0
    items: tuple[Advice, ...] = ()
    missing: tuple[str, ...] = ()
    use: dict[str, float | str | bool | None] = {}
    vendor: str = ""
    framework: str = ""
    framework_version: tuple[int, ...] = ()
    source: str = ""
    traits: tuple[str, ...] = ()
    loss: Loss | None = None
    accounts: Accounts | None = None
    notes: tuple[str, ...] = ()
    efficiency: tuple[EfficiencyRow, ...] = ()


def of_run(store: Store, run_id: int, microbatches: int | None = None, step_kind: str | None = None) -> RunAdvice:
    """What the rules say of a stored run; nothing of one whose capture missed the work, which `missing` says.

    `step_kind`: as of `Evidence`.
    """
    evidence = Evidence(store, run_id, microbatches, step_kind)
    missing = _missing(evidence)
    if not evidence.step_ns or (_is_empty(evidence) and not evidence.says_why_idle):
        return RunAdvice(step_ns=evidence.step_ns, missing=missing)
    partial = find_partial((row.run_id, row.rank, row.quality_reason, row.settings) for row in evidence.captures)
    families = RULES_OF if partial.has_whole_steps else {family: RULES_OF[family] for family in _OF_HOST}
    found = list(_found(evidence, families))
    parted = list(_parted(evidence, found))
    items = [item for item, _ in parted]
    items.sort(key=order_of_items)
    together_ns = gains.together_ns(evidence, [claim for _, _, claim in found])
    is_whole = partial.has_whole_steps
    return RunAdvice(
        step_ns=evidence.step_ns,
        together_ns=together_ns,
        items=tuple(items),
        missing=(*missing, *_missing_code(evidence, items)),
        use=evidence.roofline.use if is_whole else {},
        vendor=evidence.vendor,
        framework=evidence.framework,
        framework_version=evidence.platform.version,
        source=evidence.platform.source,
        traits=evidence.platform.traits,
        loss=find_largest_loss(evidence) if is_whole else None,
        accounts=account_for_step(evidence, together_ns, [rest for _, rest in parted]) if is_whole else None,
        notes=tuple(_notes(evidence, items)),
        efficiency=tuple(evidence.roofline.rows) if is_whole else (),
    )


def _found(evidence: Evidence, families: Mapping[str, Sequence[AdviceRule]]) -> Iterator[_Found]:
    """The claims for which there is a remedy, with their rules and families, in the order of the rules."""
    taken: set[int] = set()
    for family, rules in families.items():
        for rule in rules:
            if rule.on_devices and not evidence.is_device:
                continue
            for claim in _claims(rule, evidence, taken):
                if not rule.remedies_on(evidence.platform, claim.place, claim.marks):
                    continue
                gain = gains.gain_ns(evidence, claim)
                if claim.resource == "none" or is_worth(gain, evidence.step_ns, rule.shown_from):
                    evidence.fired.add(rule.id)
                yield family, rule, claim
                if rule.takes:
                    taken.update(claim.cells)


def _parted(evidence: Evidence, found: Sequence[_Found]) -> Iterator[tuple[Advice, Claim]]:
    """The pieces of advice, each with what of its claim no other one has: of pieces of work the largest claim goes
    first, of other time that of the first rule. A claim without any rest is left out.
    """
    claimed = gains.TakenTime(evidence)

    def order_of_work(one: _Found) -> tuple[bool, float]:
        _, rule, claim = one
        return rule.is_general, -gains.local_ns(evidence, claim)

    # who waits for whom says more than what the rank that is waited for does meanwhile
    order = [one for one in found if one[2].resource == "waiting"]
    order += [one for one in found if one[2].resource not in ("work", "waiting")]
    order += sorted((one for one in found if one[2].resource == "work"), key=order_of_work)
    for family, rule, claim in order:
        rest, others = claimed.take_rest(rule.id, claim)
        if claim.resource == "none" or gains.local_ns(evidence, rest) > 0:
            yield _advice(evidence, family, rule, claim, rest, others), rest


def _claims(rule: AdviceRule, evidence: Evidence, taken: Collection[int]) -> Iterator[Claim]:
    if rule.in_run:
        yield from rule.in_run(evidence)
    for rank in evidence.studied if rule.in_rank else ():
        pieces = [piece for piece in evidence.work[rank] if piece.at not in taken]
        for claim in rule.in_rank(evidence, rank, pieces):  # type: ignore[misc]
            yield replace(claim, rank=rank)


def _advice(
    evidence: Evidence, family: str, rule: AdviceRule, claim: Claim, rest: Claim, others: Mapping[str, float]
) -> Advice:
    """The piece of advice of a claim. rest: what of it is left to win; others: what which rule has claimed of it."""
    has_time, confidence = claim.resource != "none", claim.confidence or rule.confidence
    local, gain = gains.local_ns(evidence, rest), gains.gain_ns(evidence, rest)
    whole_ns = claim.whole_ns or evidence.step_ns
    share = gain / whole_ns
    pieces = [evidence.pieces[at] for at in claim.cells]
    sums: dict[tuple[str, str], float] = {}
    for piece in pieces:
        key = (piece.op if piece.is_named else piece.name, piece.op_text or piece.text)
        sums[key] = sums.get(key, 0.0) + min(max(rest.cells[piece.at], 0.0), piece.ns)
    claims = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))[:_CLAIMS]
    longest = max(pieces, key=lambda piece: piece.ns, default=None)
    numbers = (
        Number("calls", sum(piece.calls for piece in pieces), "count"),
        Number("their time", sum(piece.ns for piece in pieces)),
    ) if pieces else ()  # fmt: skip
    code = evidence.code.find_lines(pieces, in_common=rule.is_computation) if pieces else ()
    without_code = _say_without_code(evidence) if rule.is_computation and not code else ()
    return Advice(
        rule=rule.id, family=family, title=claim.title or rule.title, place=claim.place,
        severity=severity(share) if has_time else "low", confidence=confidence, bound=rule.bound,
        is_shown=is_worth(gain, whole_ns, rule.shown_from) if has_time else confidence != "hint",
        rank=claim.rank if len(evidence.ranks) > 1 else None,
        stage=None if claim.rank is None else evidence.ranks[claim.rank].stage,
        op=longest.op if longest and longest.is_named else None, module=longest.module or None if longest else None,
        kernel=longest.name if longest else None, role=claim.role or None, variable=claim.variable or None,
        local_ns=local if has_time else None, gain_ns=gain if has_time else None,
        gain_share=share if has_time else None, numbers=(*numbers, *claim.numbers, *_shared(others), *without_code),
        claims=tuple(Claimed(op, shapes, ns) for (op, shapes), ns in claims), code=code, marks=claim.marks,
    )  # fmt: skip


def _say_without_code(evidence: Evidence) -> tuple[Number, ...]:
    """Return why the place of a computation in the code is not known."""
    why = "no call stack leads to it" if evidence.code.has_stacks else "no call stacks were recorded"
    return (Number("code", f"not known, {why}", "text"),)


def _missing_code(evidence: Evidence, items: Sequence[Advice]) -> Iterator[str]:
    """Yield how to record call stacks, where advice that is shown is about a computation whose place is not known."""
    how = remedies.STACKS.get(remedies.family_of(evidence.source))
    computations = {rule.id for rule in RULES if rule.is_computation}
    lacking = sorted({item.rule for item in items if item.rule in computations and item.is_shown and not item.code})
    if how and lacking and not evidence.code.has_stacks:
        yield f"The lines of code of {', '.join(lacking)}: the run has no call stacks; {how}."


def _notes(evidence: Evidence, items: Sequence[Advice]) -> Iterator[str]:
    """Add a note on kernels where the device waits for the host: the step does not wait for their time."""
    of_kernels = sorted({item.rule for item in items if item.family == "kernels" and item.is_shown and item.gain_ns})
    waits = max((sum(evidence.idle_of(rank, *_LATE_HOST).values()) for rank in evidence.studied), default=0.0)
    if of_kernels and waits >= _HOST_BOUND * evidence.step_ns > 0:
        share = 100 * waits / evidence.step_ns
        yield (
            f"the device waits for the host in {share:.1f} % of the step: there, kernels that take less time "
            f"({', '.join(of_kernels)}) only let it idle longer"
        )


def _shared(others: Mapping[str, float]) -> list[Number]:
    """What other rules have claimed of a claim."""
    return [Number(f"already claimed by {rule}", ns) for rule, ns in others.items() if ns >= LEAST_NS]


def order_of_items(item: Advice) -> tuple[float, bool, int, str]:
    """The largest gain first, of equal ones that of the rule that claims first."""
    return -(item.gain_ns or 0.0), not item.is_shown, _ORDER.get(item.rule, len(_ORDER)), item.place


def is_worth(gain_ns: float, step_ns: float, least_share: float = LEAST_SHARE) -> bool:
    """Whether so much time of a step is worth advice that nobody asked for."""
    return gain_ns >= max(LEAST_NS, least_share * step_ns)


def with_remedies(found: RunAdvice) -> RunAdvice:
    """Return the advice with its remedies, those of its vendor and framework first, and with the sources of its rules.
    Rules hold them, stored rows do not.
    """
    rules = {rule.id: rule for rule in RULES}
    platform = Platform(found.vendor, found.framework, found.framework_version, found.source, found.traits)
    items = [
        replace(
            item,
            remedies=rules[item.rule].remedies_on(platform, item.place, item.marks),
            sources=rules[item.rule].sources,
        )
        for item in found.items
        if item.rule in rules
    ]  # fmt: skip
    return replace(found, items=tuple(items))


def severity(share: float) -> str:
    """The severity of a gain by its share of the step."""
    return "high" if share >= _HIGH else "medium" if share >= LEAST_SHARE else "low"


def _is_empty(evidence: Evidence) -> bool:
    """Whether the capture missed the work: its device computes nothing, and data loading does not explain that."""
    rows = evidence.ranks.values()
    if not evidence.is_device or any(row.compute_ns is None for row in rows):
        return False
    for row in rows:
        known_ns = (row.compute_ns or 0.0) + (row.exposed_communication_ns or 0.0) + (row.data_loading_ns or 0.0)
        if known_ns >= _CAPTURED * (row.step_ns or 0.0):
            return False
    return True


def _missing(evidence: Evidence) -> tuple[str, ...]:
    """What cannot be judged of this run, and what would record it."""
    found: list[str] = []
    family = remedies.family_of(evidence.source)
    if not evidence.step_ns:
        return ("Everything: the run states no time of a step.",)
    if _is_empty(evidence) and not evidence.says_why_idle:
        return ("Everything: the device computes less than 1 % of the time, so the capture missed the work.",)
    if _is_empty(evidence):
        found.append(
            "What a usual step takes: the device computes less than 1 % of the time; profile steps in which it works."
        )
    if not evidence.pieces:
        has_no_profile = all(settings_of(row.settings).get("profiler") == "off" for row in evidence.captures)
        why = "no profiler ran" if has_no_profile else "the run has totals alone"
        return (*found, f"Operators and kernels: {why}. A profiler's trace has them.")
    if not evidence.is_device:
        how = remedies.ACTIVITIES.get(family)
        found.append(f"Rules for devices: the run is a timeline of the host{f'; {how}' if how else ''}.")
    elif evidence.device is None:
        found.append(
            f"Peak rates: {evidence.run.device or 'the device'} is not in the table of devices; the fastest of the "
            "run stands for them. Name the device with --device at ingest."
        )
    if not any(piece.shapes for piece in evidence.pieces):
        how = remedies.SHAPES.get(family)
        found.append(f"FLOPs and written-out operators: the run has no shapes{f'; {how}' if how else ''}.")
    if evidence.is_device and not len(evidence.api):
        found.append("What the host does while the device idles: the run has no calls of the device's runtime.")
    if len([stage for stage in evidence.stages if stage.steps]) > 1 and not evidence.microbatches:
        found.append("The pipeline: the number of microbatches is not known. Give --microbatches M.")
    return tuple(found)
