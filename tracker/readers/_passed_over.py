"""Files of a search that no reader takes: which of them to name, and why they are not taken."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tracker.errors import SourceError
from tracker.readers._refused import refused_kind
from tracker.readers._source import (
    BOM,
    GZIP_MAGIC,
    SQLITE_MAGIC,
    UTF_16,
    first_character,
    open_source,
    read_head,
    suffix_of,
)
from tracker.units import printable

RAW_FOLDER: Final = re.compile(r"FRAMEWORK|PROF_.+")
_ARGUMENTS: Final = re.compile(r"(?P<capture>.+_ascend_pt)_op_args")
_BESIDE: Final = re.compile(r"profiler_info(?:_\d+)?\.json|profiler_metadata\.json")
_ARCHIVES: Final = (b"PK\x03\x04", b"\xfd7zXZ", b"BZh", b"7z\xbc\xaf", b"\x28\xb5\x2f\xfd")
_NAMES: Final = tuple(
    (re.compile(pattern), what)
    for pattern, what in (
        (r".*\.?tfevents\..*", "a TensorBoard event file, damaged at its start"),
        (r".*\.(?:pt|pth|ckpt|safetensors|pdparams|pdopt|distcp)", "a checkpoint"),
        (r".*\.(?:npy|npz|pkl|pickle|h5|hdf5|parquet|onnx|bin)", "data, no profile"),
        (r".*\.(?:nsys-rep|qdrep)", "a report of Nsight Systems, export it with nsys export --type sqlite"),
        (r".*\.ncu-rep", "a report of Nsight Compute"),
        (r".*\.(?:pftrace|perfetto-trace|etl|xplane\.pb|rpd)", "a trace of another profiler"),
        (r".*\.(?:png|jpe?g|gif|svg|pdf|html?)", "an image or a page"),
    )
)
"""What files with such names hold, whatever stands in them."""

_LEGACY: Final = re.compile(rb'"pid"\s*:\s*"(?:CPU|CUDA|GPU) functions"')
_LOGS: Final = frozenset((".log", ".txt", ".out", ".err", ""))
_SOURCES: Final = frozenset((".py", ".sh", ".md", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".log", ".txt", ".out"))
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_COLON: Final = re.compile(rb"\s*:")
_KEYS_BYTES: Final = 1 << 16
_NAMED: Final = 5
_LONGEST_NAME: Final = 40


class NotRecognised(Struct, frozen=True, order=True):
    """A file that no reader takes, and why in a few words."""

    path: str
    why: str


def why(path: Path) -> str:
    """Why no reader takes the file at `path`, in a few words."""
    try:
        if path.stat().st_size == 0:
            return "empty"
        head = read_head(path)
        with open_source(path) as file:
            first = file.read(len(GZIP_MAGIC))
    except (OSError, SourceError) as error:
        return error.problem if isinstance(error, SourceError) else (error.strerror or str(error))
    return _why(path, head, is_gzip=first == GZIP_MAGIC)


def _why(path: Path, head: bytes, *, is_gzip: bool) -> str:
    if head.startswith(UTF_16):
        return "UTF-16 text, save it as UTF-8"
    if (refused := refused_kind(path)) is not None:
        return f"{refused.title}; {refused.instead}"
    if named := _by_name(path):
        return named
    if head.startswith(_ARCHIVES) or head[257:262] == b"ustar":
        return "an archive, unpack it first"
    if head.startswith(SQLITE_MAGIC):
        return "gzip of a database, unpack it first" if is_gzip else "a database of no known profiler"
    if path.suffix.lower() == ".gz" and not is_gzip:
        return "named .gz, but no gzip file"
    if of_training := _of_training_log(path, head):
        return of_training
    suffix = suffix_of(path)
    if first_character(head) in (b"{", b"[") and suffix not in _SOURCES:
        return _of_json(path, head)
    is_text = b"\0" not in head and _is_utf_8(head)
    if is_text and suffix in (".csv", ".tsv"):
        return f"a table of no known profiler: columns {_listed(_columns(head))}"
    if is_text and suffix in _LOGS:
        return "a text log without profiler rows or step times"
    return f"{'a text' if is_text else 'a binary'} file of no known profiler{f' ({suffix})' if suffix else ''}"


def _of_training_log(path: Path, head: bytes) -> str:
    from tracker.readers.training_log.choosing import why_not_read

    return why_not_read(path, head)


def _by_name(path: Path) -> str:
    """What a file is by its name alone; '' where that does not say it."""
    what = next((what for pattern, what in _NAMES if pattern.fullmatch(path.name.lower())), "")
    return what if not what or "event file" in what else f"{what} ({suffix_of(path)})"


def _of_json(path: Path, head: bytes) -> str:
    """What JSON holds that is no profile: its top-level keys, as far as they stand in the first of it."""
    if first_character(head) == b"[":
        if _LEGACY.search(head):
            return "an export of torch.autograd.profiler, which names no kinds of events; use torch.profiler"
        return "JSON that is no trace: a list"
    keys = list(dict.fromkeys(_top_keys(read_head(path, _KEYS_BYTES))))
    if "traceEvents" in keys:
        return "a trace of no known profiler"
    return f"JSON that is no trace: {f'top-level keys {_listed(keys)}' if keys else 'no top-level keys'}"


def _top_keys(text: bytes) -> Iterator[str]:
    """The keys of an object, of a text that may end early."""
    depth = 0
    for token in _TOKEN.finditer(text):
        word = token.group()
        depth += (word in (b"{", b"[")) - (word in (b"}", b"]"))
        if depth == 1 and word.startswith(b'"') and _COLON.match(text, token.end()):
            yield word[1:-1].decode(errors="replace")
        elif depth == 0:
            return


def _columns(head: bytes) -> list[str]:
    """The titles in the first line of a table."""
    line = head.removeprefix(BOM).splitlines()[:1] or [b""]
    return [title.strip(' "') for title in re.split("[,\t]", line[0].decode(errors="replace"))]


def _listed(names: Sequence[str]) -> str:
    """The first of the names, without what a terminal would not show."""
    shown = ", ".join(printable(name)[:_LONGEST_NAME] for name in names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown


def _is_utf_8(head: bytes) -> bool:
    """Whether bytes are text, up to a character that they may cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def to_name(passed: Iterable[Path], taken: Sequence[Path]) -> Iterator[NotRecognised]:
    """Those of the files `passed` that do not clearly belong to a profile that is `taken`."""
    return (NotRecognised(str(path), why(path)) for path in of_no_profile(passed, taken))


def of_no_profile(passed: Iterable[Path], taken: Sequence[Path]) -> Iterator[Path]:
    """Yield those of the files `passed` that do not clearly belong to a profile that is `taken`.

    The raw data that a profiler collected lies beside what it exported, and so do the files that describe a capture,
    and the folder with the arguments of its operators.
    """
    homes = {path if path.is_dir() else path.parent for path in taken}
    for path in passed:
        captures = [path.parent] if _BESIDE.fullmatch(path.name) else []
        for parent in path.parents:
            if RAW_FOLDER.fullmatch(parent.name):
                captures.append(parent.parent)
            if arguments := _ARGUMENTS.fullmatch(parent.name):
                captures.append(parent.with_name(arguments["capture"]))
        around = [home for capture in captures for home in (capture, capture / "ASCEND_PROFILER_OUTPUT")]
        if not homes.intersection(around):
            yield path
