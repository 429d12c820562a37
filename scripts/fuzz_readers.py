"""Damages profiles at random and ingests them: whatever they hold, the end is a run or one clear error, in time.

    python scripts/fuzz_readers.py                        # all formats for a minute
    python scripts/fuzz_readers.py --seconds 3600 --seed 7 --format cann
    python scripts/fuzz_readers.py --parts                # traces that several threads decode
    python scripts/fuzz_readers.py --atheris --format torch_profiler -max_total_time=3600

The profiles are the small ones under tests/data, or those that --data names. One file of a profile is damaged: bits
turned, pieces cut out, doubled or swapped, numbers put in the place of others; of a gzip file its content, at times
the gzip itself; or cells of a table, or values of a JSON file, are what they should not be. Then all of it is read,
turned into rows and saved in a database in memory. Anything but a TrackerError is a finding: its profile is kept under
--keep with the traceback beside it, and the exit code is 1.

With --parts a damaged PyTorch trace is read by one thread, and by several in blocks of some size: what the rows,
warnings or errors of both differ in is a finding.

The same seed damages the same profiles in the same way. With --atheris (pip install atheris), libFuzzer finds its
own way through the code of the readers instead; what stands behind the options above goes to it.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
WITH_ATHERIS = "--atheris" in sys.argv[1:]
if WITH_ATHERIS:
    # before anything of ours is imported: libFuzzer sees its way only through what is imported after this
    try:
        import atheris
    except ImportError:
        sys.stderr.write("--atheris needs atheris: pip install atheris\n")
        sys.exit(2)
    atheris.instrument_imports(include=["tracker"]).__enter__()

import numpy as np  # noqa: E402
from msgspec import Struct  # noqa: E402

from scripts import one_place  # noqa: E402
from tracker import readers, timeline  # noqa: E402
from tracker.errors import TrackerError  # noqa: E402
from tracker.intake import IngestOptions, ingest  # noqa: E402
from tracker.readers import Found, ReadOptions  # noqa: E402
from tracker.readers._source import SourceText  # noqa: E402
from tracker.readers.torch_profiler.reading import captures_of  # noqa: E402
from tracker.store import Store, open_store  # noqa: E402

DATA = ROOT / "tests" / "data"
SECONDS_PER_PROFILE = 20
MAX_BYTES = 64 << 20
GZIP = b"\x1f\x8b"
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
WORD = re.compile(rb'"[^"\\]*"')
ODD_NUMBERS = (
    b"0", b"-1", b"1e18", b"1e400", b"-9223372036854775808", b"9223372036854775808", b"18446744073709551616", b"NaN",
    b"Infinity", b"null", b"1.5", b'"7"', b"true", b"[]", b"{}", b"99999999999999999999999999",
)  # fmt: skip
ODD_BYTES = (
    b"\0",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"[" * 5000,
    b'{"a":' * 2000,
    b"\n",
    b",",
    b'"',
    b"\\u0000",
    b"\\ud800",
)


class TooSlow(Exception):
    """A profile took longer than it may."""


def damaged(content: bytes, chance: random.Random) -> bytes:
    """`content` with one to four things wrong with it."""
    for _ in range(chance.randint(1, 4)):
        content = chance.choice(_WAYS)(content, chance)
    return content


def _flip(content: bytes, chance: random.Random) -> bytes:
    found = bytearray(content)
    for _ in range(chance.choice((1, 1, 4, 32)) if found else 0):
        found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    return bytes(found)


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randint(0, len(content))]


def _leave_out(content: bytes, chance: random.Random) -> bytes:
    start, end = _span(content, chance)
    return content[:start] + content[end:]


def _double(content: bytes, chance: random.Random) -> bytes:
    start, end = _span(content, chance)
    return content[:end] + content[start:]


def _insert(content: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(content))
    return content[:at] + chance.choice(ODD_BYTES) + content[at:]


def _line(content: bytes, chance: random.Random) -> bytes:
    """A line left out, doubled, or moved."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    line = lines.pop(chance.randrange(len(lines)))
    for _ in range(chance.randint(0, 2)):
        lines.insert(chance.randint(0, len(lines)), line)
    return b"".join(lines)


def _number(content: bytes, chance: random.Random) -> bytes:
    """A number replaced by an odd one, or by another of this file."""
    return _replaced(content, NUMBER, ODD_NUMBERS, chance)


def _word(content: bytes, chance: random.Random) -> bytes:
    """A text replaced by another of this file, or by what is no text."""
    return _replaced(content, WORD, (b'""', b"null", b"3", b"[]", b'"\xff"'), chance)


def _replaced(content: bytes, what: re.Pattern[bytes], odd: tuple[bytes, ...], chance: random.Random) -> bytes:
    places = [match.span() for match in what.finditer(content)]
    if not places:
        return content
    start, end = chance.choice(places)
    other = slice(*chance.choice(places))
    return content[:start] + chance.choice((content[other], chance.choice(odd))) + content[end:]


def _span(content: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randint(0, len(content))
    return start, min(len(content), start + chance.choice((1, 8, 100, 4000)))


_WAYS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip, _cut, _leave_out, _double, _insert, _line, _number, _number, _number, _word, _word,
)  # fmt: skip


def profiles(data: Path = DATA, format: str | None = None) -> list[Found]:
    """The profiles under `data`, or those of one format."""
    return [found for found in readers.find(data) if format in (None, found.format)]


def damage(found: Found, chance: random.Random, folder: Path) -> Path:
    """A copy of the profile in `folder` with one of its files damaged; where it lies."""
    target = folder / found.path.name
    if found.path.is_dir():
        shutil.copytree(found.path, target)
    else:
        shutil.copy(found.path, target)
    files = sorted(path for path in target.rglob("*") if path.is_file()) if target.is_dir() else [target]
    file = chance.choice(files)
    if chance.random() < 0.4 and _misplace(file, chance):
        return target
    content = file.read_bytes()
    if content.startswith(GZIP) and chance.random() < 0.8:
        file.write_bytes(gzip.compress(damaged(gzip.decompress(content), chance), 1))
    else:
        file.write_bytes(damaged(content, chance))
    return target


def _misplace(file: Path, chance: random.Random) -> bool:
    """One or two cells or values of a file replaced by what does not belong there; False where it has none."""
    found = one_place.places(file)
    for place in chance.sample(found, min(len(found), chance.randint(1, 2))):
        with suppress(LookupError, TypeError):  # the first one replaced what was around the second one
            one_place.put(file, place, chance.choice(one_place.values(file)))
    return bool(found)


def take(store: Store, path: Path, chance: random.Random, format: str) -> str:
    """Ingest what lies at `path`, and say how that ended: `run` or `error`. Any other exception is a finding."""
    lenient = chance.random() < 0.5
    options = IngestOptions(
        # with the format named, no reader can leave the damaged file to another one
        format=format if chance.random() < 0.7 else None,
        allow_partial=lenient,
        skip_bad_rows=lenient,
        max_bytes=MAX_BYTES,
        judge=False,
    )
    try:
        with within(SECONDS_PER_PROFILE):
            ingest(store, [path], version=f"v{chance.getrandbits(64)}", workload="fuzz", options=options)
    except TrackerError as error:
        if "\n" in str(error):
            raise AssertionError("the error has more than one line") from error
        return "error"
    return "run"


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """TooSlow where the block takes longer."""

    def stop(_number: int, _frame: object) -> None:
        raise TooSlow(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def play(found: Found, seed: str, store: Store, folder: Path) -> str:
    """One damaged copy of the profile, ingested; the same `seed` damages it in the same way."""
    chance = random.Random(seed)
    return take(store, damage(found, chance, folder), chance, found.format)


def play_in_parts(found: Found, seed: str, folder: Path) -> str:
    """One damaged copy of a trace, read by one thread and by several: AssertionError where they find something else."""
    chance = random.Random(seed)
    path = damage(found, chance, folder)
    options = ReadOptions(allow_partial=chance.random() < 0.5, skip_bad_rows=chance.random() < 0.5, max_bytes=MAX_BYTES)
    # of what gzip leaves a tenth of; one to three hundred blocks
    size = path.stat().st_size * (10 if path.suffix == ".gz" else 1)
    threads, block_bytes = chance.choice((2, 3, 4)), 1 + int(size / 10 ** chance.uniform(0, 2.5))
    with within(SECONDS_PER_PROFILE):
        alone, together = (_read_in_parts(path, number, block_bytes, options) for number in (1, threads))
    # what is left of an event whose text is broken depends on what else its block holds, with any number of threads
    if alone != together and not (_is_broken(alone) and _is_broken(together)):
        raise AssertionError(f"{threads} threads read blocks of {block_bytes} bytes otherwise than one does")
    return "error" if isinstance(alone, str) else "run"


def _read_in_parts(path: Path, threads: int, block_bytes: int, options: ReadOptions) -> str | tuple[Any, ...]:
    """The rows and warnings of a trace, or its error."""
    try:
        captures, warnings = captures_of(SourceText(path, options, block_bytes), options, threads=threads)
        rows = [_plain(timeline.build(capture).rows) for capture in captures]
    except (TrackerError, OverflowError, RecursionError) as error:  # readers.read makes errors of the last two
        return str(error)
    return rows, warnings


def _plain(value: Any) -> Any:
    """Rows as lists, which compare."""
    if isinstance(value, np.ndarray):
        return repr(value.tolist())  # nan is nan
    if isinstance(value, Struct):
        return [_plain(getattr(value, name)) for name in value.__struct_fields__]
    if isinstance(value, dict):
        return {name: _plain(column) for name, column in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def _is_broken(found: str | tuple[Any, ...]) -> bool:
    """Whether the text of an event was no JSON."""
    if isinstance(found, str):
        return "malformed JSON" in found or "part of another one" in found
    return any("broken text" in warning for warning in found[1])


def search(chosen: list[Found], asked: argparse.Namespace) -> int:
    """Play for the time that was asked for; how many findings there were."""
    ends: Counter[str] = Counter()
    stop, played, findings = time.monotonic() + asked.seconds, 0, 0
    while time.monotonic() < stop:
        with open_store("sqlite://") as store:  # a fresh one now and then, which keeps it small
            for number in range(played, played + 200):
                found = chosen[number % len(chosen)]
                seed = f"{asked.seed}:{number}"
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        here = Path(folder)
                        end = play_in_parts(found, seed, here) if asked.parts else play(found, seed, store, here)
                        ends[f"{found.format} {end}"] += 1
                    except Exception:  # noqa: BLE001 what is not expected is what we look for
                        findings += 1
                        _keep(asked.keep / f"{found.format}-{asked.seed}-{number}", Path(folder), seed)
                played += 1
                if time.monotonic() > stop:
                    break
    for end, count in sorted(ends.items()):
        sys.stdout.write(f"{end:24}{count:8}\n")
    sys.stdout.write(f"{played} profiles, {findings} findings\n")
    return findings


def _keep(place: Path, folder: Path, seed: str) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place)
    (place / "traceback.txt").write_text(f"seed {seed}\n\n{traceback.format_exc()}")
    sys.stdout.write(f"{place}: {traceback.format_exc().splitlines()[-1]}\n")


def search_with_atheris(chosen: list[Found], words: list[str]) -> None:
    """Let libFuzzer make up the bytes of a profile's largest file; it ends with the first finding."""
    for name in readers.NAMES:
        readers.load(name)
    store, played = open_store("sqlite://"), 0

    def one(data: bytes) -> None:
        nonlocal store, played
        played += 1
        if played % 500 == 0:  # a fresh one now and then, which keeps it small
            store.close()
            store = open_store("sqlite://")
        chance = random.Random(data)
        found = chosen[data[0] % len(chosen) if data else 0]
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / found.path.name
            if found.path.is_dir():
                shutil.copytree(found.path, target)
            changed = _largest(target) if found.path.is_dir() else target
            changed.write_bytes(data[1:])
            take(store, target, chance, found.format)

    corpus = Path(tempfile.mkdtemp(prefix="fuzz-readers-"))
    for number, found in enumerate(chosen[:256]):
        (corpus / str(number)).write_bytes(bytes([number]) + _largest(found.path).read_bytes())
    longest = max(path.stat().st_size for path in corpus.iterdir()) if any(corpus.iterdir()) else 1 << 16
    atheris.Setup([sys.argv[0], f"-max_len={2 * longest}", *words, str(corpus)], one)
    atheris.Fuzz()


def _largest(path: Path) -> Path:
    """The file itself, or the largest one of a folder, the first by name of those."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return max(files, key=lambda file: file.stat().st_size)


def main() -> None:
    """Search as the command line says; exit code 1 where something was found."""
    parser: Any = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="how long to search (60)")
    parser.add_argument("--seed", type=int, default=0, help="where the random damage starts (0)")
    parser.add_argument("--format", choices=readers.NAMES, help="profiles of this format only")
    parser.add_argument("--data", type=Path, default=DATA, help="where the profiles lie (tests/data)")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="where findings go (fuzz-findings)")
    parser.add_argument("--parts", action="store_true", help="PyTorch traces, by one thread and by several")
    parser.add_argument("--atheris", action="store_true", help="let libFuzzer choose the damage")
    asked, words = parser.parse_known_args()
    chosen = profiles(asked.data, "torch_profiler" if asked.parts else asked.format)
    if WITH_ATHERIS:
        search_with_atheris(chosen, words)
    elif words:
        parser.error(f"unknown options: {' '.join(words)}")
    else:
        sys.exit(1 if search(chosen, asked) else 0)


if __name__ == "__main__":
    os.environ.setdefault("TRACKER_CONFIG", os.devnull)
    main()
