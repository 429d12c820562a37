"""What a user names as a side of a diff: `v2.3`, `v2.3@H100`, `run:41`, `run:41,run:42`, `run:41:rank3`, `latest`,
`latest~1`, `pinned`, `E-3:baseline`, a branch, a git revision, or a path on disk.

A version wins over a branch of its name, and that over a git revision. A commit that a stored version has is that
version, however it is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from tracker.compare.branch_sides import (
    Branch,
    KnownNames,
    NewestVersion,
    find_branch,
    find_newest,
    note_on_newest,
    notes_on_same_names,
)
from tracker.compare.commits import HASH, TIMEOUT_S
from tracker.config.places import user_path
from tracker.errors import UsageError
from tracker.hooks.environment import ask_git
from tracker.limits.touch import touch
from tracker.profile.branches import main_of
from tracker.results import Side
from tracker.schema.column_names import KEY, RUN_ID, VALUE
from tracker.store import Store, experiments, queries
from tracker.units import format_numbers

_SHORTEST: Final = 7
"""Characters of a stored commit, or of a label that is one, that may stand for a longer one."""

_RUN: Final = re.compile(r"run:(?P<id>\d+)(?::rank(?P<rank>\d+))?")
_LATEST: Final = re.compile(r"latest(?:~(?P<offset>\d+))?")
_RUNS: Final = re.compile(r"run:\d+(,run:\d+)+")
_OF_EXPERIMENT: Final = re.compile(r"E-(?P<id>\d{1,18}):(?P<side>baseline|candidate)")
"""A side of an experiment: its runs in pairs that count."""
SIDES: Final = (
    "a version or branch, VERSION@DEVICE, run:ID, run:ID,run:ID, run:ID:rankN, latest, latest~N, pinned, E-N:baseline, "
    "a path, or PATH,PATH"
)
EMPTY: Final[Mapping[str, str]] = MappingProxyType({})
NamedRuns = tuple[tuple[int, ...], int | None]
"""The runs that a reference names, and the one rank."""
Configuration = tuple[tuple[str, str], ...]
"""Keys and their values, by key."""
FILES: Final = "files"
"""What stands for the workload of a side that is a path."""


def version_of(store: Store, revision: str, workload: str | None = None) -> str | None:
    """Return the version whose commit `revision` names: a hash, however short or long, or what git makes of it (a tag,
    a branch, HEAD~1); None where there is none.

    UsageError where several versions have such commits.
    """
    groups = [list(own.structs(_Labelled)) for own in queries.version_groups(store, workload)]
    wanted = revision.lower()
    found = _first_matching(groups, wanted) if HASH.fullmatch(wanted) else []
    if not found and not revision.startswith("-"):
        words = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
        commit = ask_git(".", words, TIMEOUT_S, as_it_is=True)
        found = _first_matching(groups, commit) if commit else []
    if len(found) > 1:
        raise UsageError(f"{revision!r} means several versions: {', '.join(found)}", remedy="name one of them")
    return found[0] if found else None


class _Labelled(Struct, frozen=True):
    """A version with its commit, None where that is not known."""

    version: str
    commit: str | None


def _first_matching(groups: Sequence[Sequence[_Labelled]], wanted: str) -> list[str]:
    """Return what `_matching` finds in the first group where it finds any."""
    return next(filter(None, (_matching(own, wanted) for own in groups)), [])


def _matching(versions: Sequence[_Labelled], wanted: str) -> list[str]:
    """Return the versions whose commit, or label where that is one, begins as `wanted` does or the other way round."""
    found: dict[str, None] = {}
    for one in versions:
        # a label may be a commit
        text = (one.version if one.commit is None else one.commit).lower()
        is_commit = bool(HASH.fullmatch(text)) and len(text) >= _SHORTEST
        if is_commit and (text.startswith(wanted) or wanted.startswith(text)):
            found[one.version] = None
    return list(found)


def label_of(store: Store, wanted: str, workload: str | None = None) -> str:
    """Return `wanted` where it is a version, else the version whose commit it names, else `wanted` for the error about
    it.
    """
    if KnownNames(store).is_version(wanted, workload):
        return wanted
    return version_of(store, wanted, workload) or wanted


def needs_store(reference: str) -> bool:
    """Return whether `reference` names something in the database (and not a path on disk)."""
    return not is_path(reference)


def resolve(store: Store, reference: str, workload: str | None = None) -> NamedRuns:
    """Return the ids of the runs that `reference` names in `store`, oldest first, and the one rank it names, if any."""
    if _RUN.fullmatch(reference) or _RUNS.fullmatch(reference):
        return _by_number(store, reference, workload)
    if reference.startswith("run:"):
        raise UsageError(f"{reference!r} is no run", remedy="write run:41, run:41,run:42 or run:41:rank3")
    if match := _OF_EXPERIMENT.fullmatch(reference):
        return _runs_of_experiment(store, int(match.group("id")), match.group("side")), None
    if match := _LATEST.fullmatch(reference):
        return (queries.latest(store, int(match.group("offset") or 0), workload=workload),), None
    if reference == "pinned":
        label, workload = queries.pinned(store, workload=workload)
        return queries.run_ids_of_version(store, label, workload=workload), None
    label, at, device = reference.rpartition("@")
    known = KnownNames(store)
    is_version = known.is_version(reference, workload)
    if reference.isdecimal() and not is_version:  # the bare number that `tracker runs` commands take
        return resolve(store, f"run:{reference}", workload)
    if branch := find_branch(known, reference, workload):
        return find_newest(store, branch).run_ids, None
    if at and not device and not is_version:
        raise UsageError(f"{reference!r} names no device behind @", remedy=f"write {reference}DEVICE, or {label}")
    if at and not is_version:
        return queries.run_ids_of_version(store, label, workload=workload, device=device), None
    return queries.run_ids_of_version(store, reference, workload=workload), None


class NamedSides(Struct, frozen=True):
    """Sides as the user named them. `references`: settled; `runs`: what those in the database name; `newest`: the
    version that those are that name a branch or the main line; `same_names`: notes on versions that are called like a
    branch.
    """

    references: list[str]
    runs: dict[str, NamedRuns]
    newest: dict[str, NewestVersion]
    same_names: tuple[str, ...] = ()

    def renamed(self, names: Mapping[str, str]) -> NamedSides:
        """Return the same with other references, such as those of one device."""
        return NamedSides(
            [names[one] for one in self.references],
            {names[one]: own for one, own in self.runs.items()},
            {names[one]: own for one, own in self.newest.items()},
            self.same_names,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the names mean where that is not plain: which version a branch is, and what else is called so."""
        return (*note_on_newest(self.newest, {one: self.runs[one][0] for one in self.newest}), *self.same_names)


def find_named(
    store: Store | None, references: Sequence[str], workload: str | None = None, config: Mapping[str, str] = EMPTY
) -> NamedSides:
    """Return the sides that `references` name, those in the database with only their runs with the values of `config`.

    Where several workloads have such a branch, or a main line, it is of the workload that the other sides are of.
    """
    known = None if store is None else KnownNames(store)
    references = _settle_all(known, references, workload)
    if config and (path := next((one for one in references if one.strip() and not needs_store(one)), None)):
        raise UsageError(f"--config chooses runs of a database, and {path} is a path", remedy="leave out --config")
    stored = [reference for reference in references if reference.strip() and needs_store(reference)]
    if store is None or known is None:
        return NamedSides(references, {}, {})
    branches = {one: found for one in stored if (found := _find_branch(known, one, workload))}
    runs = {one: resolve(store, one, workload) for one in stored if one not in branches}
    mains = {one: branch.mains for one, branch in branches.items()}
    for one in runs if branches else ():
        labels = queries.labels_of(store, runs[one][0])
        mains[one] = frozenset(main_of(own) for own, _ in labels.values())
    newest = {}
    for one, branch in branches.items():
        of_others = [own for other, own in mains.items() if other != one]
        newest[one] = find_newest(store, branch, frozenset.intersection(*of_others) if of_others else ())
        runs[one] = newest[one].run_ids, None
    chosen = {one: _choose_runs(store, one, runs[one], config) for one in stored}
    names = [one for one in runs if one not in branches and not _is_reserved(one)]
    return NamedSides(references, chosen, newest, notes_on_same_names(known, names, workload) if names else ())


def _settle_all(known: KnownNames | None, references: Sequence[str], workload: str | None) -> list[str]:
    """Return sides settled, see `settled`. A folder that is called like the main line is that where all other sides are
    paths.
    """
    found = [settled(known, reference, workload) for reference in references]
    names = [one for one in found if one.strip() and not is_path(one)]
    if known is None or any(_is_reserved(one) or not exists(one) for one in names):
        return found
    branches = [_find_branch(known, one, workload) for one in names]
    if not all(branch is not None and branch.is_main_line for branch in branches):
        return found
    return [f"./{one}" if one in names else one for one in found]


def _find_branch(known: KnownNames, reference: str, workload: str | None) -> Branch | None:
    """Return the branch that a side names; None for what is a number of runs or another word of `resolve`."""
    if _is_reserved(reference) or reference.startswith("run:") or reference.isdecimal():
        return None
    return find_branch(known, reference, workload)


def _choose_runs(store: Store, reference: str, named_runs: NamedRuns, config: Mapping[str, str]) -> NamedRuns:
    """Return those of the runs of a side that have the values of `config`."""
    run_ids, rank = named_runs
    if not config:
        return run_ids, rank
    known = configurations(store, run_ids)
    left = tuple(run_id for run_id in run_ids if config.items() <= dict(known[run_id]).items())
    if not left:
        others = [words_of(own) for own in known.values()]
        raise queries.unknown("configuration", words_of(config.items()), others, f" of {reference}")
    return left, rank


def configurations(store: Store, run_ids: Sequence[int]) -> dict[int, Configuration]:
    """Of each run what must be equal for runs to be compared, by key."""
    found: dict[int, Configuration] = dict.fromkeys(run_ids, ())
    facts = queries.facts(store, run_ids, kind="configuration")
    for run_id, key, value in sorted(facts.rows(RUN_ID, KEY, VALUE)):
        found[run_id] = (*found[run_id], (key, value))
    return found


def words_of(configuration: Iterable[tuple[str, str]]) -> str:
    """Return a configuration as people write it: `batch=16 precision=bf16`."""
    return " ".join(f"{key}={value}" for key, value in configuration)


def settled(known: KnownNames | None, reference: str, workload: str | None = None) -> str:
    """Return `reference` as `resolve` and `is_path` take it: `./name` for a path that is no version or branch, the
    version that a git revision means, else `reference` itself.
    """
    if not reference.strip() or is_path(reference) or _is_reserved(reference):
        return reference
    label, at, device = reference.rpartition("@")
    if known is not None and (known.is_version(reference, workload) or (at and known.is_version(label, workload))):
        return reference
    if known is not None and _find_branch(known, reference, workload):
        return reference
    if exists(reference):
        return f"./{reference}"
    if known is None or (reference.isdecimal() and len(reference) < _SHORTEST):
        return reference
    if version := version_of(known.store, reference, workload):
        return version
    version = version_of(known.store, label, workload) if at else None
    return reference if version is None else f"{version}@{device}"


def _is_reserved(reference: str) -> bool:
    return reference == "pinned" or any(word.fullmatch(reference) for word in (_RUN, _RUNS, _LATEST, _OF_EXPERIMENT))


def means(store: Store, reference: str, run_ids: Sequence[int], workload: str | None = None) -> bool:
    """Return whether `reference`, as a side of a diff, is exactly these runs, whole."""
    try:
        found = resolve(store, reference, workload) if needs_store(reference) else None
    except UsageError:  # several workloads have it
        return False
    return found is not None and found[1] is None and sorted(found[0]) == sorted(run_ids)


def _by_number(store: Store, reference: str, workload: str | None) -> tuple[tuple[int, ...], int | None]:
    """Resolve `run:ID`, `run:ID:rankN` and `run:ID,run:ID`."""
    named = [match for part in reference.split(",") if (match := _RUN.fullmatch(part))]
    run_ids = sorted({int(match.group("id")) for match in named})
    for run_id in run_ids:
        queries.require_run(store, run_id)
    for run_id, (of, _) in (queries.labels_of(store, run_ids) if workload is not None else {}).items():
        if main_of(of) != main_of(workload or ""):
            raise UsageError(f"run:{run_id} is of workload {of!r}, not {workload!r}", remedy="leave out --workload")
    rank = named[0].group("rank")
    return tuple(run_ids), int(rank) if rank else None


def _runs_of_experiment(store: Store, experiment_id: int, side: str) -> tuple[int, ...]:
    """Return the runs of a side of an experiment that are in pairs that count."""
    experiment = experiments.read_experiment(store, experiment_id)
    run_ids = tuple(run.run_id for run in experiments.list_runs(store, experiment_id) if run.pair and run.side == side)
    if not run_ids:
        raise UsageError(f"{experiment.name} has no pair of runs", remedy="tracker experiments lists those that have")
    return run_ids


def is_path(reference: str) -> bool:
    """Return whether `reference` is a path: it looks like one, or is a file, or a folder named with a slash.

    A bare folder name is a label first, see `settled`; `./name` is the folder. `feature/x` is a label unless it is
    there. Several paths with a comma between them are a path too, see `paths_of`.
    """
    is_there = exists(reference)
    if not is_there and len(paths_of(reference)) > 1:
        return True
    is_file = is_there and user_path(reference).is_file()
    if not is_there and (reference.startswith((".", "/", "~")) or reference.endswith((".json", ".json.gz"))):
        raise UsageError(f"{reference}: no such file or folder", remedy=f"a side is {SIDES}")
    return is_file or (is_there and ("/" in reference or reference.startswith((".", "~"))))


def paths_of(reference: str) -> tuple[str, ...]:
    """Return the paths that `reference` names: itself where it is one, commas and all, else each part between commas.

    Parts are paths where the first one exists. Raises UsageError where a later one does not.
    """
    parts = tuple(part.strip() for part in reference.split(","))
    if len(parts) < 2 or exists(reference) or not all(parts) or not is_path(parts[0]):
        return (reference,)
    for part in parts[1:]:
        if not exists(part):
            raise UsageError(f"{part}: no such file or folder", remedy=f"each of {reference} must be one")
    return parts


def names_path(reference: str) -> bool:
    """Return whether `reference` is a path where it is no version."""
    return is_path(reference) or (not _is_reserved(reference) and exists(reference))


def may_be_path(reference: str) -> bool:
    """Return whether `reference` may be meant as a path: it has no form that names runs of a database."""
    return not _is_reserved(reference) and not reference.isdecimal()


def exists(reference: str) -> bool:
    """Return whether a file or folder has this name."""
    try:
        with touch(reference):
            return user_path(reference).exists()
    except OSError:  # too long for a file name
        return False


def short_names(sides: Iterable[Side]) -> list[str]:
    """Return the labels of sides in short: those of paths as `short_labels` has them, others but for lists of runs as
    they are, for the name of a branch or version may have a slash.
    """
    listed = list(sides)
    shorts = short_labels([side.label for side in listed])
    names = [short_name(side.label, side.workload, short) for side, short in zip(listed, shorts, strict=True)]
    # the baselines of two experiments
    are_distinct = len(set(names)) == len({side.label for side in listed})
    return names if are_distinct else [side.label for side in listed]


def short_name(label: str, workload: str, short: str = "") -> str:
    """Return one label in short; `workload`: of its runs; `short`: the label of a path beside others."""
    if main_of(workload) != FILES:
        return _shorten_list(label)
    return short or short_labels([label])[0]


def short_labels(labels: list[str]) -> list[str]:
    """Return labels as they are, lists of runs as ranges, and paths by as few of their last parts as differ.

    Where there is one path, or all are equal, that is the last part.

    >>> short_labels(["v1", "v2"]), short_labels(["runs/old/t.json", "runs/new/t.json"])
    (['v1', 'v2'], ['old/t.json', 'new/t.json'])
    >>> short_labels(["run:1,run:2,run:3,run:7", "v4"]), short_labels(["E-3:baseline", "E-3:candidate"])
    (['runs 1-3,7', 'v4'], ['baseline', 'candidate'])
    """
    paths = [_shorten_list(label).rstrip("/").split("/") for label in labels]
    return [_last_parts_that_differ(path, paths) for path in paths]


def _last_parts_that_differ(path: list[str], paths: list[list[str]]) -> str:
    """Return the last parts of `path`, as few as no other of `paths` has; all of it where another one ends with it."""
    others = [other for other in paths if other != path]
    for count in range(1, len(path)):
        last_parts = path[-count:]
        if all(other[-count:] != last_parts for other in others):
            return "/".join(last_parts)
    return "/".join(path)


def _shorten_list(label: str) -> str:
    """Return several runs as ranges, a side of an experiment by its name, several paths as the first one and how many
    more there are.
    """
    if match := _OF_EXPERIMENT.fullmatch(label):
        return match.group("side")
    numbers = label.replace("run:", "").split(",")
    if len(numbers) > 1 and label == ",".join(f"run:{number}" for number in numbers):
        return f"runs {format_numbers(sorted(map(int, numbers)))}"
    paths = paths_of(label)
    if len(paths) > 1:
        return f"{paths[0].rstrip('/')} and {len(paths) - 1} more"
    return label
