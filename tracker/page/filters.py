"""What a reader may narrow a page to: values to choose from as links, and fields for names and patterns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tracker.compare.branch_sides import KnownNames, find_branch
from tracker.config.owners import list_owners
from tracker.page import links
from tracker.page.answers import Inquiry
from tracker.page.links import PAGES, Texts
from tracker.page.wording import wording_of
from tracker.profile.branches import branch_of, main_of
from tracker.reports.html import Choice, Form
from tracker.results.options import BRANCH, Declared
from tracker.store import Store, queries
from tracker.store.names import workloads_of_series

if TYPE_CHECKING:
    from tracker.config import Owner

MOST_CHOICES: Final = 40
"""Links of a filter: a value of more is written into a field."""
_MOST_VERSIONS: Final = 200
"""Versions that a field proposes."""
_LISTS: Final = ("board", "findings", "runs")
"""Pages that say which filters are on, and lead to all that there is."""

Filter = tuple[str, str, tuple[Choice, ...]]
"""Name, help and choices of an option."""


def narrowing(asked: Inquiry) -> tuple[str, str]:
    """Return the filters that are on in words, and the address of the page without them; empty where none is."""
    if asked.page not in _LISTS:
        return "", ""
    texts = links.query_of((), _texts_of(asked))
    words = ", ".join(f"{name} {value}" for name, value in texts if name not in ("limit", "last"))
    return (words, PAGES[asked.page].path) if words else ("", "")


def _texts_of(asked: Inquiry) -> Texts:
    """Return the options of a page, without the part of a list that is shown: of another list it is another one."""
    return [pair for pair in links.texts_of(asked.options) if pair[0] != links.PAGE]


def values_of_choices(store: Store, asked: Inquiry, owners: Sequence[Owner]) -> dict[str, list[str]]:
    """Return the values of each option of a page that is a choice: words, and what database and settings have."""
    fields = [field for field in PAGES[asked.page].choices if field != "branch"]
    return {field: _values_of(store, asked, field, owners) for field in fields}


def list_filters(store: Store, asked: Inquiry, values: Mapping[str, Sequence[str]]) -> Iterator[Filter]:
    """Yield the options whose values are links; `values`: those of `values_of_choices`."""
    page, texts = PAGES[asked.page], _texts_of(asked)
    spelled = links.spelled(type(asked.options))
    for field in page.choices:
        if field == "branch":
            yield from _filter_of_branches(store, asked)
            continue
        if field == "force" and len(asked.sides) > 2:
            continue  # a matrix compares what it is given
        if field == "against" and not any(queries.versions(store).listed("pinned")):
            continue  # there is no pinned version to judge against
        words, how = values[field], spelled[field]
        if words and len(words) <= MOST_CHOICES and (len(words) > 1 or how.kind is bool or field == "owner"):
            yield _filter_of_words(asked, how, words, texts)


def _values_of(store: Store, asked: Inquiry, field: str, owners: Sequence[Owner]) -> list[str]:
    """Return the values that a field of the options of a page may have; of a switch the empty one."""
    how = links.spelled(type(asked.options))[field]
    workload = getattr(asked.options, "workload", None)
    if how.kind is bool:
        return [""]
    if field == "metric":
        return _measured(store, how.words, workload)
    if how.words:
        return list(how.words)
    if field == "owner":
        return list_owners(owners)
    if field == "workload":
        known = workloads_that_fit(store, asked)
        return list(dict.fromkeys(map(main_of, known))) if "branch" in PAGES[asked.page].choices else known
    tracks = queries.tracks(store, workload)
    return sorted({str(device) for device in tracks.listed("device") if device})


def _filter_of_words(asked: Inquiry, how: Declared, words: Sequence[str], texts: Texts) -> Filter:
    """Return the choices of an option: its usual value, then the others."""
    page, field = PAGES[asked.page], how.field
    others = [pair for pair in texts if pair[0] != how.name]
    chosen = [value for name, value in texts if name == how.name]
    if field == "workload" and "branch" in page.choices:
        chosen = [*map(main_of, chosen)]
    kind: type[Struct] = type(asked.options)
    usual = str(links.defaults_of(kind)[field])
    # of two sides there is no such tree: their collectives are a table
    is_none = "communication" if page is PAGES["diff"] and field == "by" and len(asked.sides) < 3 else usual
    none = "default" if field == "states" else "none" if how.repeats else "any"
    first = "no" if how.kind is bool else usual if usual in how.words else none
    wording = wording_of(field, how.name)
    choices = [Choice(wording.values.get(first, first), _address(asked, others), not chosen)]
    for word in words:
        if word not in (usual, is_none):
            value = "yes" if how.kind is bool else word
            shown = wording.values.get(value, value)
            if shown == choices[0].words:
                continue  # the usual value under its own name
            choices.append(Choice(shown, _address(asked, [*others, (how.name, word)]), word in chosen))
    return wording.label, how.option.help, tuple(choices)


def _filter_of_branches(store: Store, asked: Inquiry) -> Iterator[Filter]:
    """Yield the main line and the branches of the chosen workload, or of all; nothing where there are none."""
    workload = asked.options.workload
    main = None if workload is None else main_of(workload)
    known = [name for name in workloads_that_fit(store, asked) if branch_of(name) and main in (None, main_of(name))]
    if not 0 < len(known) <= MOST_CHOICES:
        return
    others = [pair for pair in _texts_of(asked) if pair[0] != "--workload"]
    of_main = others if main is None else [*others, ("--workload", main)]
    choices = [Choice("main line", _address(asked, of_main), not branch_of(workload or ""))]
    for name in known:
        words = branch_of(name) if main else f"{branch_of(name)} of {main_of(name)}"
        choices.append(Choice(words, _address(asked, [*others, ("--workload", name)]), name == workload))
    yield "branch", BRANCH.help, tuple(choices)


def workloads_that_fit(store: Store, asked: Inquiry) -> list[str]:
    """Return the workloads that have what else a page is narrowed to, so that no choice leads to an error."""
    version, device, key = (getattr(asked.options, name, None) for name in ("version", "device", "key"))
    known = workloads_with(store, [*asked.sides, *([version] if version else [])])
    if device:
        on_device = {*queries.on_device(queries.tracks(store), device).listed("workload")}
        known = [name for name in known if name in on_device]
    if key and key != "step" and not key.isdigit():
        with_key = workloads_of_series(store, key)
        known = [name for name in known if name in with_key]
    return known


def workloads_with(store: Store, sides: Sequence[str]) -> list[str]:
    """Return the workloads that have all versions and branches of `sides`; `latest` and `pinned` are of each."""
    if not sides:
        return list(dict.fromkeys(queries.tracks(store).listed("workload")))
    known = KnownNames(store)

    def has(name: str, side: str) -> bool:
        if side in ("latest", "pinned") or side in known.labels_by_workload[name]:
            return True
        return not branch_of(name) and find_branch(known, side, name) is not None

    return [name for name in known.labels_by_workload if all(has(name, side) for side in sides)]


def _measured(store: Store, metrics: Sequence[str], workload: str | None) -> list[str]:
    """Return the metrics that the log of `workload`, or of the only one, can have: throughput where a run states it."""
    workloads = {workload} if workload else {*queries.versions(store).listed("workload")}
    if len(workloads) != 1:
        return list(metrics)  # one of them is chosen first
    known = queries.series_names(store, workloads.pop(), "run").listed("name")
    return [metric for metric in metrics if metric != "throughput" or metric in known]


def _address(asked: Inquiry, texts: Texts) -> str:
    return links.address(PAGES[asked.page], asked.about, asked.sides, texts)


def list_questions(store: Store, asked: Inquiry, values: Mapping[str, Sequence[str]]) -> Iterator[Form]:
    """Yield the form for what is no choice: names, patterns, and options of more values than links; of runs also that
    which compares the checked ones. `values`: those of `values_of_choices`.
    """
    page, texts = PAGES[asked.page], _texts_of(asked)
    if asked.page == "runs":
        yield Form("", links.CHECKED, (("", "Compare the checked runs"),), (), asks=True, name="runs", takes="side")
    crowded = [field for field, known in values.items() if len(known) > MOST_CHOICES]
    fields_with_text = [*page.texts, *crowded]
    if not fields_with_text and not page.sides:
        return
    spelled = links.spelled(page.options)
    own = {spelled[field].name: wording_of(field, spelled[field].name).whole for field in fields_with_text}
    hidden = links.query_of((), [pair for pair in texts if pair[0] not in own])
    fields = [(name, "", value, "hidden") for name, value in hidden]
    shown = min(page.sides, max(3, len(asked.sides) + 1)) if page.sides > 1 else page.sides
    sides = [*asked.sides, *[""] * (shown - len(asked.sides))]
    fields += [("side", "side" if page.sides > 1 else "against", value, "text") for value in sides]
    for name, label in own.items():
        value = next((value for known, value in texts if known == name), "")
        ((bare, _),) = links.query_of((), [(name, value)])
        fields.append((bare, label, value, "text"))
    offers = _versions(store, getattr(asked.options, "workload", None)) if page.sides > 1 else ()
    yield Form("", links.address(page, asked.about, (), []), (("", "Show"),), tuple(fields), asks=True, offers=offers)


def _versions(store: Store, workload: str | None) -> tuple[str, ...]:
    """Return what a side may be: branches and versions of a workload, or of all, the newest first."""
    of_all = list(queries.versions(store).rows("workload", "version"))[::-1]
    versions = dict.fromkeys(label for name, label in of_all if workload in (None, name))
    branches = dict.fromkeys(branch_of(name) for name, _ in of_all if workload in (None, main_of(name)))
    newest = [name for name in branches if name][:_MOST_VERSIONS]
    return ("latest", "pinned", *newest, *list(versions)[:_MOST_VERSIONS])
