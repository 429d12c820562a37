"""Source files -> `Profile`. One reader per format; a reader knows its format and no database.

A reader is a module (or folder) of this package, named in `tracker.profile.FORMATS`, that exports `TITLE`,
`sniff(path, head) -> bool` and `read(path, options) -> Profile`. `sniff` sees the first 4 KiB of the content
(decompressed), nothing for a folder. A reader may also export `instead(path) -> Path | None`: what to give in place of
a file that it knows but leaves to another one beside it; and `whole(path) -> Path`: the file that stands for all files
of the capture that a claimed file is a part of; and `unfinished(path) -> str`: why the profiler is not done with it
yet; and `NAMED`: a pattern of the names that only its profiler gives to files; and `TRACES`: one of the files that are
traces in Chrome's format, with the times of the profile; and `RANGES`: what its operators are, where only ranges that
the program opens are operators. Modules load on use. Names that start with `_` are no readers.
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from msgspec import Struct
from msgspec.structs import replace

from tracker.errors import SourceError, UsageError
from tracker.hooks.sidecar import SIDECAR
from tracker.limits.deadline import READ_S
from tracker.limits.files import MOST_FILES, is_made_up, is_real_file, is_real_folder
from tracker.limits.rows import REMEDY as ROWS_REMEDY
from tracker.limits.rows import TooManyRowsError
from tracker.limits.touch import touch, touch_each
from tracker.profile import FORMATS, NO_OP
from tracker.readers._cut_span import Span
from tracker.readers._facts import short_word
from tracker.readers._passed_over import NotRecognised, of_no_profile, to_name, why
from tracker.readers._refused import refused_kind
from tracker.readers._source import (
    GZIP_MAGIC,
    SAVE_AS_UTF_8,
    UTF_16,
    ReadOptions,
    SourceText,
    no_file,
    open_source,
    read_head,
)
from tracker.units import counted, format_ns

if TYPE_CHECKING:
    from tracker.profile import Packed, Profile, Source

__all__ = [
    "NAMES",
    "PARTIAL",
    "Found",
    "NotRecognised",
    "ReadOptions",
    "Reader",
    "Search",
    "Seen",
    "Span",
    "ambiguous",
    "check_content",
    "claim",
    "events_in",
    "find",
    "is_sidecar",
    "load",
    "misnamed",
    "not_recognised_line",
    "of_no_profile",
    "older_digests",
    "outside_ranges",
    "read",
    "read_head",
    "refused_kind",
    "search",
    "short_word",
    "survey",
    "to_name",
    "unfinished",
    "why",
]  # fmt: skip

NAMES: Final = FORMATS
"""The readers, each by the format that it reads."""

RENAMED: Final = {"paddle_log": "training_log"}
"""Formats that have another name now; stored runs and settings may say the old one."""


_LEVELS_OF_A_CAPTURE: Final = 4
"""How deep files lie in the folder of a capture: PROF_*/device_0/timeline inside that of a framework."""


DIGEST_KIND: Final = 2
"""Version of the digests of files: 1 was BLAKE2, 2 is BLAKE3. Who reads with another one names files otherwise."""
PARTIAL: Final = ".part"
"""The end of the names of files that are still being written; their writer renames them when they are whole."""


class Reader(Protocol):
    """What every reader module exports."""

    TITLE: str

    def sniff(self, path: Path, head: bytes) -> bool:
        """True where `path` is surely this reader's format."""
        ...

    def read(self, path: Path, options: ReadOptions) -> Profile:
        """The whole of `path`; a SourceError where it cannot be read."""
        ...


class Found(Struct, frozen=True, order=True):
    """A file or folder and the one reader that claims it."""

    path: Path
    format: str


class Search(Struct, frozen=True):
    """What is at or below a path.

    `warnings`: of files that are passed over but named as profiles; `passed`: the other files that no reader takes.
    `problems`: what cannot be examined, or what several readers claim, where the search was to go on after it.
    """

    found: tuple[Found, ...]
    warnings: tuple[str, ...] = ()
    passed: tuple[NotRecognised, ...] = ()
    problems: tuple[SourceError, ...] = ()


class Seen(Struct, frozen=True):
    """A file or folder and all the readers that claim it; `problem`: why it cannot even be looked at."""

    path: Path
    claims: tuple[str, ...] = ()
    problem: SourceError | None = None


def load(name: str) -> Reader:
    """The reader called `name`; a UsageError lists the names for any other word."""
    name = RENAMED.get(name, name)
    if name not in NAMES:
        raise UsageError(f"no format '{name}'", remedy=f"known formats: {', '.join(NAMES)}")
    return cast(Reader, import_module(f"{__name__}.{name}"))


def outside_ranges(format: str, outside_ns: int, whole_ns: int) -> str:
    """A sentence on device time that was launched outside all ranges, where ranges are the operators of a `format`;
    '' for other formats, also several of one run, for less than 1 %, and where no work at all was launched in a range.
    """
    word = getattr(load(format), "RANGES", "") if format in NAMES else ""
    if not word or not 0.01 * whole_ns < outside_ns < whole_ns:
        return ""
    part = f"{format_ns(outside_ns)} of {format_ns(whole_ns)} device time ({outside_ns / whole_ns * 100:.1f} %)"
    return f"{part} was launched in no {word} and belongs to no operator, module or phase: it is the row {NO_OP}"


def claim(path: Path | str, format: str | None = None) -> str:
    """The one reader that claims `path`; `format` decides without looking. None or two are a SourceError."""
    path = _existing(path)
    if format is not None:
        load(format)
        return format
    if is_sidecar(path):
        profile = path.parent if path.name == SIDECAR else Path(str(path).removesuffix(f".{SIDECAR}"))
        raise SourceError(path, "", "this file only tells of a profile", remedy=f"give the profile itself: {profile}")
    with touch(path):
        claims = _claims(path, NAMES)
    if len(claims) == 1:
        return claims[0]
    if claims:
        raise ambiguous(path, claims)
    with touch(path):
        if (other := _instead(path)) is not None:
            raise SourceError(path, "", "this file is not read itself", remedy=f"give {other}, which lies beside it")
        raise _unknown(path)


def find(path: Path | str, format: str | None = None) -> list[Found]:
    """All profiles at or below `path`, ordered by path; a SourceError where there is none, as in `search`."""
    return list(search(path, format).found)


def search(path: Path | str, format: str | None = None, *, keep_going: bool = False) -> Search:
    """All profiles at or below `path`, ordered by path; a SourceError where there is none, or a folder is unreadable.

    A file must be claimed. In a folder, what no reader claims is passed over, with a warning where it is `misnamed`;
    a claimed folder is not looked into. `keep_going`: what is wrong is a problem of the result, and no error.
    """
    path = _existing(path)
    if format is not None:
        load(format)
    if path.is_file():
        return Search((_found(path, claim(path, format)),))
    found: set[Found] = set()
    warnings: list[str] = []
    passed: list[Path] = []
    problems: list[SourceError] = []
    for seen in touch_each(_walk(path, _names(format)), path):
        if (problem := _problem_of(seen)) is not None:
            problems.append(problem)
            if not keep_going:
                raise problem
        elif seen.claims:
            found.add(Found(seen.path, seen.claims[0]))
        else:
            with touch(seen.path):
                warning = misnamed(seen.path, format)
                is_known = is_sidecar(seen.path) or _instead(seen.path) is not None
            if warning:
                warnings.append(warning)
            elif not is_known:
                passed.append(seen.path)
    left = tuple(to_name(passed, [one.path for one in found]))
    if not found and not problems:
        named = f" ({warnings[0].removeprefix(f'{path}{os.sep}')})" if warnings else ""
        others = f"; {not_recognised_line(left, path)}" if left else ""
        raise SourceError(path, "", f"no profile in this folder{named}{others}", remedy=_known_formats())
    return Search(tuple(sorted(found)), tuple(warnings), left, tuple(problems))


def not_recognised_line(passed: Sequence[NotRecognised], root: Path | None = None, limit: int = 5) -> str:
    """A line like `2 files not recognised: a.txt (an archive, unpack it first), b.json (empty)`, '' for none.

    Paths below `root` are relative to it; files beyond `limit` are counted, with the command that lists them.
    """
    if not passed:
        return ""
    start = "" if root is None else f"{root}{os.sep}"
    names = [f"{one.path.removeprefix(start)} ({one.why})" for one in passed[:limit]]
    more = ""
    if len(passed) > limit:
        folder = root or Path(os.path.commonpath([Path(one.path).parent for one in passed]))
        command = f"tracker doctor {shlex.quote(str(folder))} --format json"
        more = f" and {len(passed) - limit} more; {command} lists all"
    return f"{counted(len(passed), 'file')} not recognised: {', '.join(names)}{more}"


def _problem_of(seen: Seen) -> SourceError | None:
    return seen.problem or (ambiguous(seen.path, seen.claims) if len(seen.claims) > 1 else None)


def misnamed(path: Path, format: str | None = None) -> str:
    """A warning of a file that no reader claims although its name says that it is a profile (of `format`); else ''."""
    patterns = ((name, getattr(load(name), "NAMED", None)) for name in _names(format))
    name = next((name for name, pattern in patterns if pattern is not None and pattern.fullmatch(path.name)), None)
    if name is None:
        return ""
    return f"{_unknown(path).problem}; it was passed over, although its name says {name}"


def survey(path: Path | str, format: str | None = None) -> Iterator[Seen]:
    """Every file at or below `path`, and every claimed folder: what `find` takes, what it refuses, what it passes over.

    A conflict or a damaged file is reported and the survey goes on. Hidden files and PARTIAL ones are left out, as in
    `find`.
    """
    path = Path(path)
    if format is not None:
        load(format)
    try:
        _existing(path)
    except SourceError as error:
        yield Seen(path, problem=error)
        return
    if path.is_dir():
        yield from touch_each(_walk(path, _names(format)), path)
    else:
        yield _look(path, NAMES) if format is None else Seen(_found(path, format).path, (format,))


def ambiguous(path: Path, claims: Sequence[str]) -> SourceError:
    """The error for a file or folder that several readers claim."""
    return SourceError(path, "", f"could be {' or '.join(claims)}", remedy="say which with --format")


def read(found: Found, options: ReadOptions | None = None) -> Profile:
    """What `found` holds, by its reader."""
    try:
        with touch(found.path, READ_S):
            profile = load(found.format).read(found.path, options or ReadOptions())
    except TooManyRowsError as error:
        raise SourceError(found.path, "", str(error), remedy=ROWS_REMEDY) from error
    except (OverflowError, RecursionError) as error:  # what no reader could tell the place of: sums, for example
        problem = "nested too deeply" if isinstance(error, RecursionError) else "a number is beyond 64 bits"
        raise SourceError(found.path, "", problem, remedy="export the profile again") from error
    from tracker.readers._kept_texts import with_kept_texts

    if profile.packed:
        return replace(profile, packed=tuple(map(_with_kept_texts_of_packed, profile.packed)))
    return with_kept_texts(_with_names(profile, found.path))


def _with_kept_texts_of_packed(packed: Packed) -> Packed:
    from tracker.readers._kept_texts import with_kept_texts

    return replace(packed, profile=with_kept_texts(packed.profile))


def events_in(path: Path, span: Span, options: ReadOptions, digest: str) -> Iterator[bytes]:
    """The text of each event of the trace at `path` that lies in `span` or overlaps it, and of those that name its
    processes and threads: nothing else of it. At the end a SourceError where the content has another digest.
    """
    from tracker.readers._cutting import events_of

    text = SourceText(path, options)
    yield from events_of(text, span)
    _check_digest(text, digest)


def check_content(path: Path, options: ReadOptions, digest: str) -> None:
    """SourceError where the content of the file at `path` has another digest."""
    text = SourceText(path, options)
    for _ in text:
        pass
    _check_digest(text, digest)


def _check_digest(text: SourceText, digest: str) -> None:
    if text.source().digest.hex() == digest:
        return
    from tracker.readers._older_digests import older_digest_of

    older = older_digest_of(text.path)
    if older is None or older.hex() != digest:
        problem = "has another content than when it was ingested"
        raise SourceError(text.path, "", problem, remedy="put the file back, or ingest the new one")


def older_digests(sources: Sequence[Source]) -> Mapping[bytes, Sequence[bytes]]:
    """Of each file of one capture, by its digest, those by which an older database may know it."""
    from tracker.readers import _older_digests

    return _older_digests.older_digests(sources)


def _with_names(profile: Profile, path: Path) -> Profile:
    """`profile`, and what the names of its path state of the configuration where it says nothing itself.

    One key alone may mean something else in a name; two of one name are a layout of benchmarks.
    """
    from tracker.readers._stated import configuration_in_names

    is_trace = profile.format != "training_log"
    if not (named := configuration_in_names(path, at_least=2, of_trace=is_trace)):
        return profile
    captures = (replace(one, configuration={**named, **one.configuration}) for one in profile.captures)
    return replace(profile, captures=tuple(captures))


def unfinished(seen: Seen) -> str:
    """Why the profiler is not done with what was seen; '' where it is, or no reader can tell."""
    reasons = (getattr(load(name), "unfinished", None) for name in seen.claims)
    with touch(seen.path):
        return next((said for ask in reasons if ask is not None and (said := ask(seen.path))), "")


def _unknown(path: Path) -> SourceError:
    """Why no reader claims `path`, as far as its content tells."""
    if path.is_dir():
        return SourceError(path, "", "no reader knows this folder", remedy=_known_formats())
    if path.stat().st_size == 0:
        return SourceError(path, "", "the file is empty", remedy="export the profile again")
    if read_head(path).startswith(UTF_16):
        return SourceError(path, "byte 0", "the text is UTF-16, which no reader knows", remedy=SAVE_AS_UTF_8)
    if (folder := _capture_around(path)) is not None:
        return SourceError(path, "", "this file is a part of a capture", remedy=f"give its folder {folder}")
    if path.suffix == ".gz" and not _is_gzip(path):
        problem = "is named .gz, but is no gzip file, and no reader knows its content"
        return SourceError(path, "", problem, remedy="copy or export it again")
    if (refused := refused_kind(path)) is not None:
        return SourceError(path, "", f"is {refused.title}, and is not read", remedy=refused.instead)
    reason = why(path)
    from tracker.readers.training_log.choosing import NO_TIMES, WITH_TIMES

    remedy = WITH_TIMES if reason.endswith(NO_TIMES) else _known_formats()
    return SourceError(path, "", f"no reader knows this file ({reason})", remedy=remedy)


def _is_gzip(path: Path) -> bool:
    with open_source(path) as file:
        return file.read(len(GZIP_MAGIC)) == GZIP_MAGIC


def _existing(path: Path | str) -> Path:
    path = Path(path)
    with touch(path):
        try:
            is_there = path.exists()
        except OSError as error:  # such as a name that is too long
            raise SourceError(path, "", f"cannot be read ({error.strerror})", remedy="check the path") from error
        if not is_there:
            raise SourceError(path, "", "no such file or folder", remedy="check the path")
        state = path.stat()
    if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
        raise no_file(path)
    if is_made_up(state.st_dev):
        problem = "lies on a file system that the kernel makes up, such as /proc and /sys, which holds no profiles"
        raise SourceError(path, "", problem, remedy="give a file or folder on a disk")
    return path


def is_sidecar(path: Path) -> bool:
    """Whether `path` is a file that tells of a profile, and none itself, by its name."""
    return (path.name == SIDECAR or path.name.endswith(f".{SIDECAR}")) and path.is_file()


def _claims(path: Path, names: tuple[str, ...]) -> list[str]:
    if is_sidecar(path):
        return []
    head = b"" if path.is_dir() else read_head(path)
    return [name for name in names if load(name).sniff(path, head)]


def _instead(path: Path) -> Path | None:
    """What a reader takes in place of `path`, None where none does."""
    asked = (getattr(load(name), "instead", None) for name in NAMES)
    return next((other for ask in asked if ask is not None and (other := ask(path)) is not None), None)


def capture_of(file: Path) -> Path:
    """Return what is ingested to read `file`: the folder of the capture that it is a part of, else the file itself."""
    return _capture_around(file) or file


def _capture_around(file: Path) -> Path | None:
    """The outermost of the next folders around `file` that is a capture as a whole, None where none is."""
    with touch(file):
        folders = file.absolute().parents[:_LEVELS_OF_A_CAPTURE]
        around = [folder for folder in folders if len(_look(folder, NAMES).claims)]
    return around[-1] if around else None


def _names(format: str | None) -> tuple[str, ...]:
    return NAMES if format is None else (format,)


def _walk(folder: Path, names: tuple[str, ...]) -> Iterator[Seen]:
    unread: list[OSError] = []
    count = 0
    for parent, folders, files in os.walk(folder, onerror=unread.append):
        yield from _unreadable(unread)
        count += len(files) + len(folders)
        if count > MOST_FILES:
            problem = f"holds more than {MOST_FILES:,} files and folders"
            yield Seen(folder, problem=SourceError(folder, "", problem, remedy="give the folders of the profiles"))
            return
        here = Path(parent)
        seen = _look(here, names)
        if seen.claims or seen.problem:
            folders.clear()
            yield seen
            continue
        folders[:] = sorted(name for name in folders if not name.startswith(".") and _is_folder(here / name))
        for name in sorted(files):
            path = here / name
            if not name.startswith(".") and not name.endswith(PARTIAL) and _is_file(path):
                yield _look(path, names)
    yield from _unreadable(unread)


def _unreadable(errors: list[OSError]) -> Iterator[Seen]:
    """The folders that could not be listed, taken out of `errors`; what went away meanwhile was never there."""
    for error in errors:
        if not isinstance(error, FileNotFoundError):
            path = Path(error.filename)
            yield Seen(path, problem=_closed(path, error))
    errors.clear()


def _closed(path: Path, error: OSError) -> SourceError:
    problem = f"cannot be looked into ({error.strerror or error})"
    return SourceError(path, "", problem, remedy="make it readable, or name the profiles beside it one by one")


def _is_file(path: Path) -> bool:
    """Whether `path` is a file, or may be one: then a look at it says why that cannot be told."""
    try:
        with touch(path):
            return is_real_file(path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        return error.errno != errno.ELOOP


def _is_folder(path: Path) -> bool:
    """Whether `path` is a folder that may hold profiles, or may be one: a look at it then says why nobody can tell."""
    try:
        with touch(path):
            return is_real_folder(path.stat())
    except OSError:
        return True


def _look(path: Path, names: tuple[str, ...]) -> Seen:
    try:
        with touch(path):
            claims = tuple(_claims(path, names))
        return Seen(_found(path, claims[0]).path if len(claims) == 1 else path, claims)
    except SourceError as error:
        return Seen(path, problem=error)
    except OSError as error:  # a folder that a reader may not list
        return Seen(path, problem=_closed(path, error))


def _found(path: Path, name: str) -> Found:
    """The file or folder that the reader `name` takes for `path`: another one where that is a part of its capture."""
    whole = getattr(load(name), "whole", None)
    return Found(path if whole is None else whole(path), name)


def _known_formats() -> str:
    ways = '--input-format NAME, of a watched folder format = "NAME" in [[watch.folders]], reads it as one of them'
    return f"known formats: {', '.join(NAMES)}; {ways}"
