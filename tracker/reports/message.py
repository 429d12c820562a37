"""One message for people or machines: what happened in its first line, then what explains it and what to do about it.

Pure: the same message gives the same text. Every text that comes from outside passes `said`, which makes it harmless,
and lines are made to fit without cutting a number.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tracker.compare.commits import SHORT_COMMIT, describe_commit
from tracker.reports.cells import KINDS, calls, form, readable, share, signed
from tracker.reports.views.findings import diff_text, explanation
from tracker.results import REPLACED_BY, Message, ToldFinding, ToldIncident
from tracker.units import (
    MISSING_TEXT,
    counted,
    format_diff,
    format_ns,
    level_words,
    printable,
    ranges,
    step_word,
    time_unit,
)

_EVENTS: Final = {"added": "more is found: ", "reminder": "still open: "}
_COMMANDS: Final = {
    "reproduce": ("Reproduce", 8.0), "acknowledge": ("Seen", 7.5), "mute": ("Not now", 5.0),
    "look": ("Look closer", 6.0), "explain": ("Why", 3.0),
}  # fmt: skip
"""What a command is for, and how important it is."""

_SHORTER: Final = (60, 25, 10)
"""Characters of a name, where a title is too long."""

_LINK_KEEP: Final = 8.9
"""How important the first link is: a message leads somewhere before it explains."""

_LONGEST_LINE: Final = 600
"""Characters of a line from outside, such as an error: one that fits nowhere would be left out."""

_LONGEST_ADVICE: Final = 300
"""Characters of what to do about a change."""

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
    """Write `message` in one of the forms long, short, json."""
    limits = limits or Limits()
    if form == "json":
        return Written(cut(title_of(message), limits.title), json_of(message).decode())
    lines = [*_lines(message, short=form == "short", markdown=markdown)]
    if markdown:
        for place, line in enumerate(lines):
            text = line.text.lstrip()
            indent = line.text[: len(line.text) - len(text)]
            if text and not text.startswith("- ") and line.keep != 9.0:
                # an item of a list: Markdown would join it with the line before
                lines[place] = replace(line, text=f"{indent}- {text}")
    if not limits.title:
        lines = [Line(title_of(message, markdown=markdown), 9.0), *lines]
        return Written("", fitted(lines, limits.body, limits.size))
    marked = markdown and not limits.plain_title
    title = title_of(message, markdown=marked)
    for longest in _SHORTER if marked else ():
        # names go shorter before a piece of code is cut
        if len(title) > limits.title:
            title = title_of(message, markdown=True, longest=longest)
    return Written(cut(title, limits.title), fitted(lines, limits.body, limits.size))


def json_of(message: Message) -> bytes:
    """Return the message for machines; `results.Message` says what its fields mean."""
    return msgspec.json.encode(message)


def of_json(content: str) -> Message:
    """Return the message that `json_of` wrote; ValueError where it is none."""
    try:
        return msgspec.json.decode(content, type=Message)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"its text cannot be read: {error}") from error


def title_of(message: Message, *, markdown: bool = False, longest: int = LONGEST_NAME) -> str:
    """Return the first line: what, how much, since when, where; names of at most `longest` characters."""

    def named(text: str) -> str:
        return said(text, markdown=markdown, longest=longest)

    word = "recovered" if message.event == "budget_met" else message.severity
    start = f"[{word}]" + (f" {named(message.workload)}:" if message.workload else "")
    if not message.incidents:
        title = said(message.title, markdown=markdown, longest=None if longest == LONGEST_NAME else 10 * longest)
        return f"{start} {title}"
    first = message.incidents[0]
    # the device, or how many there are
    where, count = named(first.device), len(message.incidents)
    if count > 1:
        where = counted(count, "device" if len({one.device for one in message.incidents}) == count else "line")
    level = level_words([named(version) for version in first.level]).removeprefix("the ")
    base = level or named(first.good_version or "")
    versions = " -> ".join(filter(None, (base, named(first.version))))
    if message.event == "recovered":
        now = f" {named(first.recovered_in)}" if first.recovered_in else ""
        brought = f"what {named(first.version)} brought is over"
        what = _what(first, named)
        return f"[recovered] {named(message.workload)}{now}: {brought}: {what}, {where}"
    kind = "held back: " if message.held_back else _EVENTS.get(message.event, "")
    # what a message hides, or is of operators that others answer for, it does not name
    is_shown = first.by_step and not (message.held_back or message.narrowed_to or first.silenced)
    why = f"; {named(first.leading_cause)}" if first.leading_cause and is_shown else ""
    return f"{start} {kind}{_what(first, named)}, {versions}, {where}{why}"


def _what(incident: ToldIncident, named: Callable[[str], str]) -> str:
    """Name the step where it is what got worse, else the largest finding and the step beside it."""
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
    return f"{named(readable(finding.name)[:60])} {diff_text(finding)}{others}{beside}"


def _step(incident: ToldIncident) -> str:
    before, after, delta = incident.baseline_step_ns, incident.candidate_step_ns, incident.step_delta_ns
    if not before or after is None or delta is None:
        return ""
    unit = time_unit(before, after)
    word = step_word(incident.step_kind)
    return f"{word} {format_diff(delta / before)}, {format_ns(before, unit)} -> {format_ns(after, unit)}"


def _lines(message: Message, *, short: bool, markdown: bool) -> Iterator[Line]:
    """Yield what happened or why it was held back, what to do about it (in the short form the first of these), and by
    what a message that comes twice is recognised.
    """
    if message.incidents and not message.held_back:
        yield from _of_incidents(message, short=short, markdown=markdown)
    else:
        yield from _links(message, markdown=markdown)
    whole = partial(said, markdown=markdown, longest=_LONGEST_LINE)
    for place, line in enumerate(() if message.incidents else message.lines):
        yield Line(whole(line), 8.0 - place / 100)
    if message.incidents and message.held_back:
        yield from (Line(f"Held back: {whole(message.held_back)}.", 8.5), Line("", 1.0))
    for purpose, command in list(message.commands.items())[: 1 if short else None]:
        what, keep = _COMMANDS[purpose]
        if is_pasteable(command):
            space = " " if short else "\n    "
            yield Line(f"{what}: {as_code(command)}" if markdown else f"{what}:{space}{command}", keep)
    if not short:
        yield Line("", 1.0)
    of = "".join(f" I-{one.incident_id}" for one in message.incidents[:8])
    yield Line(f"tracker {message.event}{of} [{harmless(message.key)}]", 9.0)


def _links(message: Message, *, markdown: bool) -> Iterator[Line]:
    """Yield where the message leads: to its incidents, or to its page. The first link goes last of all."""
    links = [(f"Incident I-{one.incident_id}", one.url) for one in message.incidents if one.url]
    if message.url:
        links.append(("Page", message.url))
    for place, (name, url) in enumerate(links):
        yield Line(_link(name, url) if markdown else f"{name}: {url}", 7.2 if place else _LINK_KEEP)


def _link(name: str, url: str) -> str:
    """Write a link of our own in Markdown. Both are made from the settings and numbers: they pass no `said`."""
    return f"[{name}]({url})"


def _devices(message: Message, *, markdown: bool) -> Iterator[Line]:
    """Yield a line for each of several incidents: where it is, how much slower the step is there, and its link."""
    named = partial(said, markdown=markdown)
    for at, one in enumerate(message.incidents):
        place, step = ", ".join(map(named, filter(None, (one.device, one.configuration)))), _step(one)
        name = f"I-{one.incident_id}"
        linked = _link(name, one.url) if markdown and one.url else name
        url = f" {one.url}" if one.url and not markdown else ""
        keep = 7.2 if at or not one.url else _LINK_KEEP
        yield Line(f"- {place}: {step + ' ' if step else ''}({linked}){url}", keep)


def _of_incidents(message: Message, *, short: bool, markdown: bool) -> Iterator[Line]:
    named = partial(said, markdown=markdown)
    whole = partial(said, markdown=markdown, longest=_LONGEST_LINE)
    first, is_over = message.incidents[0], message.event == "recovered"
    several = len(message.incidents) > 1
    head = [*(_devices if several else _links)(message, markdown=markdown)]
    if not is_over:
        head += _commits(message.incidents, short=short, markdown=markdown)
    if head:
        yield from (*head, Line("", 1.0))
    if message.narrowed_to:
        yield Line(f"Shown are the findings of {', '.join(map(named, message.narrowed_to))}.", 7.0)
    shown = first.shown[: _SHORT if short else None]
    for at, finding in enumerate(shown):
        yield Line(f"- {_finding(finding, short=short, named=named)}", 7.0 - at / 10)
    if more := first.more + len(first.shown) - len(shown):
        yield Line(f"- and {counted(more, 'more finding')}", 6.0)
    if first.silenced:
        yield Line(f"- {counted(first.silenced, 'finding')} muted, not shown", 4.0)
    if first.beside and not is_over:
        # what the version gained, or lost where it is faster on the whole
        gained = []
        for other in first.beside:
            delta = f" {signed(format_ns(other.delta), other.delta)}" if other.delta is not None else ""
            gained.append(f"{named(readable(other.name), longest=40)}{delta} ({diff_text(other)})")
        yield Line(f"{'Gained' if first.direction == 'regression' else 'Lost'}: {', '.join(gained)}.", 6.9)
    if not short:
        yield Line("", 1.0)
    if not is_over:
        if text := explanation(first):
            yield Line(text, 6.8)
        if first.so_far:
            yield Line(f"{named(first.so_far[:1].upper() + first.so_far[1:])}.", 6.7)
        if first.coverage and not short:
            yield Line(f"{first.coverage.capitalize()}.", 5.0)
        if first.causes and not short:
            yield Line(f"Causes: {', '.join(map(named, first.causes))}.", 6.6)
        for sentence in () if short else first.advice:
            yield Line(f"What to do: {whole(shorten_advice(sentence))}", 6.5)
        if first.environment:
            yield Line(f"Changed with it: {changes(first, named)}.", 4.0)
    elif first.left:
        yield Line(f"Still open: {', '.join(map(named, first.left))}.", 6.8)
    if message.owners:
        yield Line(f"Owners: {', '.join(map(named, message.owners))}.", 6.5)
    if not short:
        sides = [
            f"{counted(len(runs), 'run')} ({ranges(sorted(runs), most=8)})" if runs else "none"
            for runs in (first.baseline_runs, first.candidate_runs)
        ]
        yield Line(f"Runs: baseline {sides[0]}, {named(first.version)} {sides[1]}.", 3.5)
        yield Line("", 1.0)


def _commits(incidents: Sequence[ToldIncident], *, short: bool, markdown: bool) -> Iterator[Line]:
    """Yield the commits between the versions: how many, a few with their authors, and where they are seen."""
    named = partial(said, markdown=markdown)
    pairs = {(one.good_commit, one.commit): one for one in incidents if one.good_commit and one.commit}
    for one in pairs.values():
        url = one.commits_url
        noun = "Commits" if one.commits is None else counted(one.commits, "commit")
        linked = _link(noun, url) if markdown and url else noun
        both = f"{one.good_commit[:SHORT_COMMIT]}..{one.commit[:SHORT_COMMIT]}"
        since = one.good_commit_version or one.good_version or ""
        between = f" between {named(since)} and {named(one.version)}: {both}"
        described = []
        for commit in one.named_commits:
            author, subject = named(commit.author), named(commit.subject)
            described.append(describe_commit(replace(commit, author=author, subject=subject)))
        if len(described) == 1:
            yield Line(f"{linked}: {described[0]}", 6.95)
        else:
            yield Line(f"{linked}{between}", 6.95)
            for place, line in enumerate(() if short else described):
                yield Line(f"    {line}", 6.94 - place / 100)
        if url and not markdown:
            # on a line of its own, which goes first where there is no room: the incident leads there, too
            yield Line(url if short else f"    {url}", 6.55)


def _finding(finding: ToldFinding, *, short: bool, named: Callable[..., str]) -> str:
    """Say of one finding: what, from where to where, its part in the change, and why."""
    shown = form(finding.unit, [finding.baseline_value, finding.candidate_value, finding.delta])
    longest = _SHORT_NAME * (1 + (REPLACED_BY in finding.name)) if short else LONGEST_NAME
    name = named(readable(finding.name), longest=longest)
    before, after = shown(finding.baseline_value), shown(finding.candidate_value)
    # the change is history where it is over: how it is now comes first
    is_over = finding.state in {"recovered", "vanished"}
    now = f", now {'gone' if finding.state == 'vanished' else 'as before'}" if is_over else ""
    outside = map(named, filter(None, (finding.input_shapes, finding.part, finding.step_kind)))
    kind = "" if short else f" ({', '.join((KINDS[finding.kind], *outside))})"
    parts = [f"{name}{kind}: {before} -> {after} ({diff_text(finding)}){now}"]
    if finding.delta is not None and not short:
        parts.append(signed(shown(finding.delta), finding.delta))
    if finding.share_of_change is not None:
        parts.append(f"{share(finding.share_of_change)} of the change")
    if not short and (finding.baseline_calls is not None or finding.candidate_calls is not None):
        parts.append(f"calls {calls(finding.baseline_calls, finding.candidate_calls)}")
    if finding.cause and not short:
        parts.append(named(finding.cause))
    if finding.owner:
        parts.append(f"owner {named(finding.owner)}")
    return ", ".join(parts)


def changes(incident: ToldIncident, named: Callable[[str], str] | None = None) -> str:
    """Say what else changed with the version."""
    named = named or partial(said, markdown=False)
    return "; ".join(
        f"{named(key)} {named(before or MISSING_TEXT)} -> {named(after or MISSING_TEXT)}"
        for key, before, after in incident.environment
    )


def harmless(text: str) -> str:
    r"""Return `text` from outside, on one line, such that no messenger takes a part of it for a mention, a tag or a
    link.

    >>> harmless("@here\nsee http://x <at user_id='all'> f<int>")
    "\uff20here\\nsee http\uff1a//x \u2039at user_id='all'> f<int>"
    """
    text = _TAG.sub("\u2039", printable(text))
    text = _LINK.sub("\uff1a//", _MENTION.sub("\uff20", text))
    return _WEB.sub("\\1\uff0e", text)


def said(text: str, *, markdown: bool, longest: int | None = LONGEST_NAME) -> str:
    """Return `text` from outside as a message can hold it: harmless, not too long.

    In Markdown it is code, unless it is plain.

    >>> said("aten::mul_", markdown=True), said("a`b*", markdown=True), said("cpu", markdown=True)
    ('`aten::mul_`', '``a`b*``', 'cpu')
    """
    if longest is not None:
        text = text[: longest + _AHEAD]  # a name may have millions of characters
    text = harmless(text)
    if longest is not None and len(text) > longest:
        text = text[: longest - len(ELLIPSIS)] + ELLIPSIS
    return as_code(text) if markdown and not _PLAIN.fullmatch(text) else text


def shorten_advice(text: str, longest: int = _LONGEST_ADVICE) -> str:
    """Return as many whole sentences of `text` as fit; where the first one does not, as many whole words of it.

    >>> shorten_advice("Raise num_workers. Each worker needs memory.", 30)
    'Raise num_workers.'
    >>> shorten_advice("Raise num_workers until the loader keeps up.", 30)
    'Raise num_workers until ...'
    """
    if len(text) <= longest:
        return text
    end = text.rfind(". ", 0, longest)
    return text[: end + 1] if end > 0 else cut(text[: 2 * longest], longest)


def as_code(text: str) -> str:
    """Write `text` in Markdown, taken as it stands: between more backticks than stand anywhere in it, as CommonMark has
    it.

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
    r"""Return whether a command can be shown letter by letter: what a shell would get from what people see is the
    command.

    Not so with what no messenger shows as it is (control characters, several spaces), nor with what calls people even
    there where nothing is marked up. A command is never shown changed: it would do something else.

    >>> [is_pasteable(text) for text in ("tracker diff 'v`1'", "tracker diff 'a\nb'", "tracker diff '<!channel>'")]
    [True, False, False]
    """
    return printable(command) == command and "  " not in command and not _CALLS.search(command)


def fitted(lines: Sequence[Line], limit: int, size: Callable[[str], int] = len) -> str:
    """Join the lines to one text that is not larger than `limit`: the least important ones go, whole, the last ones
    first.

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
    """Return `text` if it is not larger than `limit`, else as many whole words of it as fit.

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
