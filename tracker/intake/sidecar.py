"""The sidecar: a small JSON file that says of a profile what its trace does not.

`NAME.tracker.json` beside the profile file NAME, `tracker.json` inside of a profile that is a folder. The hooks write
it in the job; people may, too. Everything is optional:

    {
      "schema": 1,
      "version": "v1.4-12-g3fd0a41", "workload": "gpt", "commit": "3fd0a41...", "note": "after the rebase",
      "branch": "fix-attention", "main_branch": "main", "main_commits": ["9b1c22e07d4f"],
      "configuration": {"batch": "32"}, "tags": {"image": "2024-06"}, "expect_ranks": 8,
      "device": "NVIDIA H100", "host": "node7", "rank": 3, "world_size": 8,
      "facts": {"torch_version": "2.6.0", "job_id": "41"}
    }

`main_branch`: what its repository calls the main line; `main_commits`: the commits of that from the merge base of the
branch back, the newest first. What the trace states of device, host, rank, world size and environment stands; the
sidecar says what it leaves out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from tracker.config.refusals import explained as told_of_refusal
from tracker.errors import SourceError
from tracker.hooks import environment, machine
from tracker.hooks import sidecar as hooked
from tracker.limits.files import beside, open_regular
from tracker.profile.branches import COMMIT_HASH
from tracker.readers import short_word
from tracker.units import is_plain

MAX_BYTES: Final = 1 << 16
"""Largest size of a sidecar; those of the hooks have about a thousand bytes."""

FACTS: Final = frozenset(
    {
        *environment.FACTS, *environment.VARIABLES, *machine.STATES, *machine.NUMBERS,
        # what readers find in profiles, under the same names
        "cuda_driver_version", "cuda_runtime_version", "hip_driver_version", "hip_runtime_version", "cupti_version",
        "distributed_backend", "firmware_version", "os", "cpu",
    }
)  # fmt: skip
"""The facts that a sidecar may state; whatever else it states is left out, since it may be a secret."""

_SCHEMA: Final = 1
_REMEDY: Final = "correct or delete it"
_MUST_AGREE: Final = ("version", "workload", "branch", "device")


class Sidecar(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is said of a profile beside its trace; None and empty: nothing. `configuration`, `tags`: as the options."""

    schema: int = _SCHEMA
    version: str | None = None
    workload: str | None = None
    branch: str | None = None
    main_branch: str | None = None
    main_commits: list[str] = field(default_factory=list)
    commit: str | None = None
    note: str | None = None
    device: str | None = None
    host: str | None = None
    rank: int | None = None
    world_size: int | None = None
    expect_ranks: int | None = None
    configuration: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)


NOTHING: Final = Sidecar()


class _Schema(Struct, frozen=True):
    schema: int = _SCHEMA


def sidecar_of(profile: Path) -> Path | None:
    """The sidecar of a profile; None where there is none."""
    # a folder has it inside: there the suffix begins with a slash
    suffix = hooked.sidecar_of(str(profile)).removeprefix(str(profile))
    return beside(profile, suffix)


def read(path: Path) -> tuple[Sidecar, tuple[str, ...]]:
    """The checked content of a sidecar, and warnings. SourceError names file, key, problem and remedy.

    Facts that are not in FACTS, or no number or short word, are left out with a warning that tells only their names.
    """
    try:
        with open_regular(path) as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceError(path, "", f"the sidecar cannot be read ({error.strerror})", remedy=_REMEDY) from error
    if len(text) > MAX_BYTES:
        raise SourceError(path, "", f"a sidecar of more than {MAX_BYTES >> 10} KiB", remedy=_REMEDY)
    return parsed(text, path)


def parsed(text: bytes, path: Path) -> tuple[Sidecar, tuple[str, ...]]:
    """What `read` gives, of a sidecar whose content is `text`; `path` says where that was."""
    found = _parse(text, path)
    kept = {key: value for key, value in found.facts.items() if key in FACTS and short_word(value)}
    left_out = ", ".join(sorted(key if key in FACTS or short_word(key) else "?" for key in found.facts.keys() - kept))
    warnings = (f"{path.name}: facts that are not kept: {left_out}",) if left_out else ()
    return msgspec.structs.replace(found, facts=kept), warnings


def _parse(text: bytes, path: Path) -> Sidecar:
    try:
        if (schema := msgspec.json.decode(text, type=_Schema).schema) != _SCHEMA:
            problem = f"its schema is {schema}, this tracker knows {_SCHEMA}"
            raise SourceError(path, "key schema", problem, remedy="upgrade tracker, or write it anew")
        found = msgspec.json.decode(text, type=Sidecar)
    except msgspec.ValidationError as error:
        key, _, problem = told_of_refusal(str(error))
        remedy = _REMEDY if problem else f"a sidecar knows {', '.join(Sidecar.__struct_fields__)}"
        raise SourceError(
            path, f"key {key}" if key else "", problem or "there is no such key", remedy=remedy
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(path, "", f"the sidecar is no valid JSON ({error})", remedy=_REMEDY) from error
    for key, problem in problems(found):
        raise SourceError(path, f"key {key}", problem, remedy=_REMEDY)
    return found


def problems(found: Sidecar) -> Iterable[tuple[str, str]]:
    """Key and problem of what has the right type and cannot be."""
    for name in ("version", "workload", "branch", "main_branch", "commit", "note", "device", "host"):
        text = getattr(found, name)
        if text is not None and not (text.strip() and is_plain(text)):
            yield name, "is empty or holds control characters"
    for name in ("configuration", "tags"):
        for key, value in getattr(found, name).items():
            if not key.strip() or not is_plain(key) or not is_plain(value):
                yield name, "has an empty key, or control characters"
    if not all(COMMIT_HASH.fullmatch(commit) for commit in found.main_commits):
        yield "main_commits", "holds what is no commit"
    for name, least in (("rank", 0), ("world_size", 1), ("expect_ranks", 1)):
        number = getattr(found, name)
        if number is not None and not least <= number < 1 << 31:
            yield name, f"is {number}, expected {least} or more"
    if found.rank is not None and found.world_size is not None and found.rank >= found.world_size:
        yield "rank", f"is {found.rank}, of {found.world_size} ranks"


def over(first: Sidecar, second: Sidecar) -> Sidecar:
    """What `first` says, and where it is silent `second`; a commit belongs to the version that is said with it.

    >>> both = over(Sidecar(version="v2", tags={"a": "1"}), Sidecar(version="v1", commit="3fd", note="n"))
    >>> both.version, both.commit, both.note, both.tags
    ('v2', None, 'n', {'a': '1'})
    """
    said: dict[str, Any] = {}
    for name in Sidecar.__struct_fields__:
        one, other = getattr(first, name), getattr(second, name)
        if isinstance(one, dict):
            said[name] = {**other, **one}
        else:
            said[name] = one if one not in (None, []) else other
    if first.version is not None:
        said["commit"] = first.commit
    return Sidecar(**said)


def agreed(said: Mapping[str, Sidecar], *, ignoring: Collection[str] = (), by: str = "sidecar") -> Sidecar:
    """What the sidecars of the ranks of one run say together; `said`: by the profile that each belongs to.

    `by`: what says it, for errors.

    A rank without one says nothing. Version, workload, device and configuration must be the same where they are said,
    but for `ignoring`: a SourceError names two that differ. Of tags and notes the first counts, of expected ranks the
    most; a commit only where all say the same.
    """
    for name in _MUST_AGREE:
        if name not in ignoring:
            _same(name, {path: getattr(one, name) for path, one in said.items()}, by)
    for key in dict.fromkeys(key for one in said.values() for key in one.configuration):
        if key not in ignoring:
            _same(f"configuration {key}", {path: one.configuration.get(key) for path, one in said.items()}, by)
    firsts = list(said.values())
    commits = {one.commit for one in firsts if one.commit is not None}
    return Sidecar(
        version=next((one.version for one in firsts if one.version is not None), None),
        workload=next((one.workload for one in firsts if one.workload is not None), None),
        branch=next((one.branch for one in firsts if one.branch is not None), None),
        main_branch=next((one.main_branch for one in firsts if one.main_branch is not None), None),
        main_commits=next((one.main_commits for one in firsts if one.main_commits), []),
        device=next((one.device for one in firsts if one.device is not None), None),
        note=next((one.note for one in firsts if one.note is not None), None),
        commit=commits.pop() if len(commits) == 1 else None,
        expect_ranks=max((one.expect_ranks for one in firsts if one.expect_ranks is not None), default=None),
        configuration={key: value for one in reversed(firsts) for key, value in one.configuration.items()},
        tags={key: value for one in reversed(firsts) for key, value in one.tags.items()},
    )


def _same(what: str, said: Mapping[str, str | None], by: str) -> None:
    places = {text: path for path, text in said.items() if text is not None}
    if len(places) > 1:
        (one, other), (first, second) = list(places)[:2], list(places.values())[:2]
        raise SourceError(
            first,
            "",
            f"its {by} says {what} {one!r}, that of {second}, another rank of the same run, {other!r}",
            remedy=f"say it for all with an option, or correct the {by}s",
        )
