"""One message for people or machines: what happened in its first line, then what explains it and what to do about it.

Pure: the same message gives the same text. Every text that comes from outside passes `said`, which makes it harmless,
and lines are made to fit without cutting a number.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from tracker.reports.cells import calls, form, readable, share, signed
from tracker.reports.views.findings import KINDS, diff_text, explanation
from tracker.results import REPLACED_BY, Message, ToldFinding, ToldIncident
from tracker.units import MISSING_TEXT, counted, format_diff, format_ns, printable, ranges, time_unit

_EVENTS: Final = {
    "added": "more is found: ", "reminder": "still open: ",
}  # fmt: skip
_COMMANDS: Final = {
    "reproduce": ("Reproduce", 8.0), "acknowledge": ("Seen", 7.5), "mute": ("Not now", 5.0),
    "look": ("Look closer", 6.0), "explain": ("Why", 3.0),
}  # fmt: skip
"""What a command is for, and how important it is."""

_SHORTER: Final = (60, 25, 10)
"""Characters of a name, where a title is too long."""

_LONGEST_LINE: Final = 600
"""Characters of a line from outside, such as an error: one that fits nowhere would be left out."""

_SHORT_NAME: Final = 40
"""Characters of the name of an op in the short form; what was replaced has two of them."""

_SHORT: Final = 3
"""Findings in the short form."""


LONGEST_NAME: Final = 120
"""Characters of a name in a message; kernels of templates have thousands."""

_TAG: Final = re.compile(r"<(?=[!@#/\uff20]|at\b|users/)", re.IGNORECASE)
_MENTION: Final = re.compile(r"@(?=\w)")
_LINK: Final = re.compile(r"://")
_WEB: Final = re.compile(r"\b(www)\.", re.IGNORECASE)
_CALLS: Final = re.compile(r"<(?=[!@#/]|at\b|users/)|@(?=(?:all|channel|everyone|here|room)\b)", re.IGNORECASE)
_PLAIN: Final = re.compile(r"[A-Za-z0-9 ,.:;%+/-]*")
_AHEAD: Final = 8
"""Characters behind a place that decide what becomes of it; what is made harmless never gets shorter."""

ELLIPSIS: Final = "..."


class Limits(Struct, frozen=True):
    """Room of a channel. `title` 0: it has none, so that the first line of the body is the title. `size`: how long a
    text is there, in characters unless told otherwise. `plain_title`: a title is no Markdown there, whatever the body.
    """

    body: int = 32768
    title: int = 250
    size: Callable[[str], int] = len
    plain_title: bool = False


class Written(Struct, frozen=True):
    """A message as it is sent. `title`: empty where the channel has none."""

    title: str
    body: str


class Line(Struct, frozen=True):
    """A line of a message. `keep`: the lower, the earlier it goes where there is no room; 9 never goes."""

    text: str
    keep: float = 5.0


def write(message: Message, form: str = "long", *, markdown: bool = False, limits: Limits | None = None) -> Written:
    """`message` in one of the forms long, short, json."""
    limits = limits or Limits()
    if form == "json":
        return Written(cut(title_of(message), limits.title), json_of(message).decode())
    lines = _lines(message, short=form == "short", markdown=markdown)
    if markdown:
        lines = [_bulleted(line) for line in lines]
    if not limits.title:
        lines = [Line(title_of(message, markdown=markdown), 9.0), *lines]
    title = _title(message, limits, markdown=markdown and not limits.plain_title) if limits.title else ""
    return Written(title, fitted(lines, limits.body, limits.size))


def _title(message: Message, limits: Limits, *, markdown: bool) -> str:
    """The title; in Markdown the names go shorter before a piece of code is cut."""
    whole = title_of(message, markdown=markdown)
    for longest in _SHORTER if markdown else ():
        if len(whole) > limits.title:
            whole = title_of(message, markdown=True, longest=longest)
    return cut(whole, limits.title)


def _bulleted(line: Line) -> Line:
    """The line as an item of a list: Markdown would join it with the one before."""
    text = line.text.lstrip()
    indent = line.text[: len(line.text) - len(text)]
    return line if not text or text.startswith("- ") or line.keep == 9.0 else replace(line, text=f"{indent}- {text}")


def json_of(message: Message) -> bytes:
    """The message for machines; `results.Message` says what its fields mean."""
    return msgspec.json.encode(message)


def of_json(content: str) -> Message:
    """The message that `json_of` wrote; ValueError where it is none."""
    try:
        return msgspec.json.decode(content, type=Message)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"its text cannot be read: {error}") from error


def title_of(message: Message, *, markdown: bool = False, longest: int = LONGEST_NAME) -> str:
    """The first line: what, how much, since when, where; names of at most `longest` characters."""

    def named(text: str) -> str:
        return said(text, markdown=markdown, longest=longest)

    start = f"[{message.severity}]" + (f" {named(message.workload)}:" if message.workload else "")
    if not message.incidents:
        title = said(message.title, markdown=markdown, longest=None if longest == LONGEST_NAME else 10 * longest)
        return f"{start} {title}"
    first = message.incidents[0]
    where = _places(message.incidents, named)
    versions = " -> ".join(named(version) for version in (first.good_version, first.version) if version)
    if message.event == "recovered":
        now = f" {named(first.recovered_in)}" if first.recovered_in else ""
        brought = f"what {named(first.version)} brought is over"
        what = _what(first, named)
        return f"[recovered] {named(message.workload)}{now}: {brought}: {what}, {where}"
    kind = "held back: " if message.held_back else _EVENTS.get(message.event, "")
    return f"{start} {kind}{_what(first, named)}, {versions}, {where}"


def _places(incidents: Sequence[ToldIncident], named: Callable[[str], str]) -> str:
    """The device, or how many there are."""
    if len(incidents) == 1:
        return named(incidents[0].device)
    devices = {one.device for one in incidents}
    return counted(len(incidents), "device" if len(devices) == len(incidents) else "line")


def _what(incident: ToldIncident, named: Callable[[str], str]) -> str:
    """The step where it is what got worse, else the largest finding and the step beside it."""
    step = _step(incident)
    largest = incident.shown[:1]
    if (incident.by_step and step) or not largest:
        return step or counted(incident.more, "finding")
    more = len(incident.shown) + incident.more - 1
    others = f" and {more:,} more" if more else ""
    # what got better while the step got slower is no part of that
    agrees = ((incident.step_delta_ns or 0.0) > 0) == (incident.direction == "regression")
    beside = f", {step}" if step and agrees else ""
    (finding,) = largest
    return f"{named(readable(finding.name)[:60])} {diff_text(asdict(finding))}{others}{beside}"


def _step(incident: ToldIncident) -> str:
    before, after, delta = incident.baseline_step_ns, incident.candidate_step_ns, incident.step_delta_ns
    if not before or after is None or delta is None:
        return ""
    unit = time_unit(before, after)
    return f"step {format_diff(delta / before)}, {format_ns(before, unit)} -> {format_ns(after, unit)}"


def _lines(message: Message, *, short: bool, markdown: bool) -> list[Line]:
    if not message.incidents:
        lines = [Line(said(line, markdown=markdown, longest=_LONGEST_LINE), 8.0 - place / 100)
                 for place, line in enumerate(message.lines)]  # fmt: skip
    elif message.held_back:
        lines = [
            Line(f"Held back: {said(message.held_back, markdown=markdown, longest=_LONGEST_LINE)}.", 8.5),
            Line("", 1.0),
        ]
    else:
        lines = _of_incidents(message, short=short, markdown=markdown)
    blank = [] if short else [Line("", 1.0)]
    return [*lines, *_commands(message, markdown=markdown, short=short), *blank, Line(_signature(message), 9.0)]


def _of_incidents(message: Message, *, short: bool, markdown: bool) -> list[Line]:
    first = message.incidents[0]
    lines: list[Line] = []
    if len(message.incidents) > 1:
        lines += [Line(f"- {_where(one, markdown=markdown)}", 7.2) for one in message.incidents]
        lines.append(Line("", 1.0))
    if message.narrowed_to:
        yours = ", ".join(said(pattern, markdown=markdown) for pattern in message.narrowed_to)
        lines.append(Line(f"Shown are the findings of {yours}.", 7.0))
    shown = first.shown[: _SHORT if short else None]
    lines += [Line(f"- {_finding(one, short=short, markdown=markdown)}", 7.0 - place / 10)
              for place, one in enumerate(shown)]  # fmt: skip
    lines += [Line(text, keep) for text, keep in _rest(first, len(first.shown) - len(shown))]
    if first.beside and message.event != "recovered":
        lines.append(Line(_beside(first, markdown=markdown), 6.9))
    if not short:
        lines.append(Line("", 1.0))
    if message.event != "recovered":
        lines += _explained(first, markdown=markdown, short=short)
    elif first.left:
        left = ", ".join(said(name, markdown=markdown) for name in first.left)
        lines.append(Line(f"Still open: {left}.", 6.8))
    if message.owners:
        names = ", ".join(said(owner, markdown=markdown) for owner in message.owners)
        lines.append(Line(f"Owners: {names}.", 6.5))
    return lines if short else [*lines, _runs(first, markdown=markdown), Line("", 1.0)]


def _rest(incident: ToldIncident, left_out: int) -> list[tuple[str, float]]:
    more = incident.more + left_out
    found = [(f"- and {counted(more, 'more finding')}", 6.0)] if more else []
    if incident.silenced:
        found.append((f"- {counted(incident.silenced, 'finding')} muted, not shown", 4.0))
    return found


def _beside(incident: ToldIncident, *, markdown: bool) -> str:
    """What the version gained, or lost where it is faster on the whole."""
    word = "Gained" if incident.direction == "regression" else "Lost"

    def change(finding: ToldFinding) -> str:
        name = said(readable(finding.name), markdown=markdown, longest=40)
        delta = f" {signed(format_ns(finding.delta), finding.delta)}" if finding.delta is not None else ""
        return f"{name}{delta} ({diff_text(asdict(finding))})"

    return f"{word}: {', '.join(map(change, incident.beside))}."


def _where(incident: ToldIncident, *, markdown: bool) -> str:
    place = ", ".join(said(part, markdown=markdown) for part in (incident.device, incident.configuration) if part)
    step = _step(incident)
    return f"{place}: {step + ' ' if step else ''}(I-{incident.incident_id})"


def _finding(finding: ToldFinding, *, short: bool, markdown: bool) -> str:
    """One finding: what, from where to where, its part in the change, and why."""
    shown = form(finding.unit, [finding.baseline_value, finding.candidate_value, finding.delta])
    longest = _SHORT_NAME * (1 + (REPLACED_BY in finding.name)) if short else LONGEST_NAME
    name = said(readable(finding.name), markdown=markdown, longest=longest)
    before, after = shown(finding.baseline_value), shown(finding.candidate_value)
    # the change is history where it is over: how it is now comes first
    is_over = finding.state in {"recovered", "vanished"}
    now = f", now {'gone' if finding.state == 'vanished' else 'as before'}" if is_over else ""
    parts = [f"{name}: {before} -> {after} ({diff_text(asdict(finding))}){now}"]
    if finding.share_of_change is not None:
        parts.append(f"{share(finding.share_of_change)} of the change")
    if not short:
        parts[0] = f"{name} ({_kind(finding, markdown=markdown)})" + parts[0].removeprefix(name)
        if finding.delta is not None:
            parts.insert(1, signed(shown(finding.delta), finding.delta))
        if finding.baseline_calls is not None or finding.candidate_calls is not None:
            parts.append(f"calls {calls(finding.baseline_calls, finding.candidate_calls)}")
        if finding.cause:
            parts.append(said(finding.cause, markdown=markdown))
    if finding.owner:
        parts.append(f"owner {said(finding.owner, markdown=markdown)}")
    return ", ".join(parts)


def _kind(finding: ToldFinding, *, markdown: bool) -> str:
    outside = (said(text, markdown=markdown) for text in (finding.input_shapes, finding.part) if text)
    return ", ".join((KINDS[finding.kind], *outside))


def _explained(incident: ToldIncident, *, markdown: bool, short: bool) -> list[Line]:
    row: dict[str, Any] = asdict(incident)
    lines = []
    text = explanation(row, {})
    if text:
        lines.append(Line(text, 6.8))
    if incident.causes and not short:
        lines.append(Line(f"Causes: {', '.join(said(cause, markdown=markdown) for cause in incident.causes)}.", 6.6))
    if not short:
        lines += [Line(f"What to do: {said(sentence, markdown=markdown)}", 6.5) for sentence in incident.advice]
    if incident.environment:
        lines.append(Line(f"Changed with it: {changes(incident, markdown=markdown)}.", 4.0))
    return lines


def changes(incident: ToldIncident, *, markdown: bool = False) -> str:
    """What else changed with the version."""
    return "; ".join(
        f"{said(key, markdown=markdown)} {said(before or MISSING_TEXT, markdown=markdown)} -> "
        f"{said(after or MISSING_TEXT, markdown=markdown)}"
        for key, before, after in incident.environment
    )


def _runs(incident: ToldIncident, *, markdown: bool) -> Line:
    sides = [
        f"{counted(len(runs), 'run')} ({ranges(sorted(runs), most=8)})" if runs else "none"
        for runs in (incident.baseline_runs, incident.candidate_runs)
    ]
    version = said(incident.version, markdown=markdown)
    return Line(f"Runs: baseline {sides[0]}, {version} {sides[1]}.", 3.5)


def _commands(message: Message, *, markdown: bool, short: bool) -> list[Line]:
    """What to do about it; in the short form the first of these."""
    found = []
    for purpose, command in list(message.commands.items())[: 1 if short else None]:
        what, keep = _COMMANDS[purpose]
        if is_pasteable(command):
            space = " " if short else "\n    "
            found.append(Line(f"{what}: {as_code(command)}" if markdown else f"{what}:{space}{command}", keep))
    return found


def _signature(message: Message) -> str:
    """By which a message that comes twice is recognised."""
    incidents: Sequence[ToldIncident] = message.incidents
    of = "".join(f" I-{one.incident_id}" for one in incidents[:8])
    return f"tracker {message.event}{of} [{harmless(message.key)}]"


def harmless(text: str) -> str:
    r"""`text` from outside, on one line, such that no messenger takes a part of it for a mention, a tag or a link.

    >>> harmless("@here\nsee http://x <at user_id='all'> f<int>")
    "\uff20here\\nsee http\uff1a//x \u2039at user_id='all'> f<int>"
    """
    text = _TAG.sub("\u2039", printable(text))
    text = _LINK.sub("\uff1a//", _MENTION.sub("\uff20", text))
    return _WEB.sub("\\1\uff0e", text)


def said(text: str, *, markdown: bool, longest: int | None = LONGEST_NAME) -> str:
    """`text` from outside as a message can hold it: harmless, not too long; in Markdown as code, unless it is plain.

    >>> said("aten::mul_", markdown=True), said("a`b*", markdown=True), said("cpu", markdown=True)
    ('`aten::mul_`', '``a`b*``', 'cpu')
    """
    if longest is not None:
        text = text[: longest + _AHEAD]  # a name may have millions of characters
    text = harmless(text)
    if longest is not None and len(text) > longest:
        text = text[: longest - len(ELLIPSIS)] + ELLIPSIS
    return as_code(text) if markdown and not _PLAIN.fullmatch(text) else text


def as_code(text: str) -> str:
    """`text` in Markdown, taken as it stands: between more backticks than stand anywhere in it, as CommonMark has it.

    >>> as_code("cpu"), as_code("a`b"), as_code("`a``")
    ('`cpu`', '``a`b``', '``` `a`` ```')
    """
    if not text:
        return ""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    # a space at each end is taken off again
    pad = " " if "`" in (text[0], text[-1]) or text[0] == text[-1] == " " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def is_pasteable(command: str) -> bool:
    r"""Whether a command can be shown letter by letter: what a shell would get from what people see is the command.

    Not so with what no messenger shows as it is (control characters, several spaces), nor with what calls people even
    there where nothing is marked up. A command is never shown changed: it would do something else.

    >>> [is_pasteable(text) for text in ("tracker diff 'v`1'", "tracker diff 'a\nb'", "tracker diff '<!channel>'")]
    [True, False, False]
    """
    return printable(command) == command and "  " not in command and not _CALLS.search(command)


def fitted(lines: Sequence[Line], limit: int, size: Callable[[str], int] = len) -> str:
    """The lines as one text that is not larger than `limit`: the least important ones go, whole, the last ones first.

    Lines that must stay and are too long all together end at a word.

    >>> fitted([Line("head", 9), Line("+7.31 % slower", 1), Line("more", 2)], 10)
    'head\\nmore'
    """
    leaving = sorted((place for place, line in enumerate(lines) if line.keep < 9),
                     key=lambda place: (lines[place].keep, -place))  # fmt: skip

    def without(count: int) -> str:
        gone = set(leaving[:count])
        text = "\n".join(line.text for place, line in enumerate(lines) if place not in gone)
        return re.sub(r"\n{3,}", "\n\n", text).strip("\n")

    fewest = bisect_left(range(len(leaving)), True, key=lambda count: size(without(count)) <= limit)
    return cut(without(fewest), limit, size)


def cut(text: str, limit: int, size: Callable[[str], int] = len) -> str:
    """`text` if it is not larger than `limit`, else as many whole words of it as fit.

    >>> cut("412.00 ms -> 442.10 ms", 16), cut("412.00", 6), cut("412.00 ms", 5)
    ('412.00 ms ...', '412.00', '...')
    """
    if size(text) <= limit:
        return text
    words = re.split(r"(?<=\s)", text)
    while words and size("".join(words).rstrip() + f" {ELLIPSIS}") > limit:
        words.pop()
    start = "".join(words).rstrip()
    # an arrow leads nowhere without what comes behind it
    start = re.sub(r"\s*(->|[=+-])$", "", start)
    return f"{start} {ELLIPSIS}".strip()[: max(limit, 0)]
