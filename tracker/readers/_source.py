"""Reading source files: options every reader takes, and the decompressed, checked and hashed bytes of one file."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from msgspec import Struct

from tracker.errors import SourceError
from tracker.limits.files import is_real_file, open_regular
from tracker.limits.touch import touch
from tracker.readers._digest import ContentDigest
from tracker.units import MAX_BYTES

if TYPE_CHECKING:
    from tracker.profile import Source

GZIP_MAGIC: Final = b"\x1f\x8b"
SQLITE_MAGIC: Final = b"SQLite format 3\0"
BOM: Final = b"\xef\xbb\xbf"
"""What some editors write in front of UTF-8 text; it is no part of it."""

UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
"""What UTF-16 text starts with; no UTF-8 text does."""

SAVE_AS_UTF_8: Final = "save it as UTF-8, or export the profile again"
BLOCK_BYTES: Final = 1 << 20

Progress = Callable[[int, int], None]


class ReadOptions(Struct, frozen=True):
    """How to read a profile; every reader takes these and ignores what its format does not have.

    `flow_category`: link device events to the host by flow arrows of this category. `allow_partial`: keep what a
    truncated file still holds. `skip_bad_rows`: leave out rows with impossible values and count them, instead of
    failing. `max_bytes`: limit on the decompressed size of one file. `progress`: called with (bytes read, bytes in
    all) on disk. `threads`: how many may decode one file at once. `is_named`: whether the user named the format.
    """

    flow_category: str | None = None
    allow_partial: bool = False
    skip_bad_rows: bool = False
    max_bytes: int = MAX_BYTES
    progress: Progress | None = None
    threads: int = 1
    is_named: bool = False


def open_source(path: Path) -> BinaryIO:
    """The file at `path`, opened for reading only; a SourceError where it cannot be opened."""
    try:
        with touch(path):
            if not is_real_file(path.stat()) and not path.is_dir():
                raise no_file(path)  # a pipe would be waited at
            return open_regular(path)
    except OSError as error:
        raise SourceError(path, "", f"cannot be opened: {error.strerror or error}") from error


_MARK: Final = b"?"


def no_file(path: Path) -> SourceError:
    """The error for what stands where a file should."""
    # such as that of <(zcat a.json.gz), which can be read once only
    return SourceError(path, "", "is a pipe or a device, no file", remedy="save what it gives as a file")


def read_head(path: Path, size: int = 4096) -> bytes:
    """The first `size` bytes of the content, decompressed when the file is gzip (told by content, not by name)."""
    head = b""
    with open_source(path) as file:
        try:
            for block in content_blocks(path, file, size):
                head += block
                if len(head) >= size:
                    break
        except EOFError as error:
            if not head:
                raise SourceError(path, "byte 0", "the gzip stream ends early", remedy="copy the file again") from error
    return head[:size]


def first_character(head: bytes) -> bytes:
    """The first character of a text that is no blank and no byte order mark."""
    return head.removeprefix(BOM).lstrip()[:1]


def may_be_events(head: bytes) -> bool:
    """Whether a text starts as a trace does: with the list of its events, or an object that has it.

    >>> may_be_events(b'[{"ph"'), may_be_events(b'{"traceEvents": ['), may_be_events(b'{"layers": [')
    (True, True, False)
    """
    first = first_character(head)
    return first == b"[" or (first == b"{" and b'"traceEvents"' in head)


def suffix_of(path: Path) -> str:
    """The end of a file's name in small letters, without the `.gz` behind it.

    >>> suffix_of(Path("a/kernel_details.CSV.gz"))
    '.csv'
    """
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def source_of(path: Path, options: ReadOptions) -> Source:
    """Path, size and digest of a file; a SourceError where it is larger than the limit."""
    from tracker.profile import Source

    digest = ContentDigest()
    with open_source(path) as file:
        size = file.seek(0, 2)
        if size > options.max_bytes:
            problem = f"the file is larger than the limit of {options.max_bytes} bytes"
            raise SourceError(path, "", problem, remedy="raise limits.max_bytes in the settings")
        file.seek(0)
        while block := _next_block(path, file, BLOCK_BYTES):
            digest.add(block)
            if options.progress:
                options.progress(file.tell(), size)
    return Source(os.path.abspath(path), size, digest.value())


def content_blocks(path: Path, file: BinaryIO, size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The content in blocks of at most `size` bytes; EOFError behind the last byte of a gzip stream that was cut."""
    start = _next_block(path, file, len(GZIP_MAGIC))
    file.seek(0)
    if start == GZIP_MAGIC:
        yield from _gunzip_again(path, _gunzip(path, file, size), size)
    else:
        while block := _next_block(path, file, size):
            yield block


def _next_block(path: Path, file: BinaryIO | _Blocks, size: int) -> bytes:
    """Return the next block of a file, which a disk must not take for ever to give."""
    with touch(path):
        return file.read(size)


def _gunzip_again(path: Path, blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Unpack what was compressed twice, as by a script that compresses what the profiler has compressed already."""
    head = b""
    while len(head) < len(GZIP_MAGIC):
        block = next(blocks, None)
        if block is None:
            break
        head += block
    rest = chain([head], blocks) if head else blocks
    yield from _gunzip(path, _Blocks(rest), size) if head.startswith(GZIP_MAGIC) else rest


class _Blocks:
    """The bytes of some blocks as a file to read from."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._read = 0

    def read(self, _size: int) -> bytes:
        """Return the next block, whatever its size; b"" behind the last one."""
        block = next(self._blocks, b"")
        self._read += len(block)
        return block

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._read


def _gunzip(path: Path, file: BinaryIO | _Blocks, size: int) -> Iterator[bytes]:
    from isal import igzip_lib

    damaged = cast("type[Exception]", igzip_lib.IsalError)  # isal's stubs take it for an instance
    decompressor = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    waiting = b""
    while True:
        if decompressor.eof:
            # gzip files may be concatenated, and some writers pad with zero bytes
            waiting = _behind_zeros(decompressor.unused_data, file, size)
            if not waiting:
                return
            decompressor = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        elif decompressor.needs_input:
            waiting = _next_block(path, file, size)
            if not waiting:
                raise EOFError
        try:
            block = decompressor.decompress(waiting, size)
        except damaged as error:
            place = f"byte {file.tell()}"
            raise SourceError(path, place, f"damaged gzip: {error}", remedy="copy or export the file again") from error
        waiting = b""
        if block:
            yield block


def _behind_zeros(rest: bytes, file: BinaryIO | _Blocks, size: int) -> bytes:
    """What is left of `rest` and the blocks behind it from the first byte that is not zero; b"" at the end."""
    while not (found := rest.lstrip(b"\0")):
        rest = file.read(size)
        if not rest:
            break
    return found


class SourceText:
    """The UTF-8 content of one file, block by block: counted, limited, checked and hashed on the way.

    Iterate once, to the end; then `source()` describes the file. `ended_early` is True where a gzip stream was cut and
    `options.allow_partial` lets that pass. `replaces_bytes`: whether bytes that are no UTF-8 stand as `?` each, which
    `replaced_bytes` counts; else they are an error. `checks_text`: False for text in any encoding, as it is.
    `block_bytes`: of a block, at most.
    """

    def __init__(self, path: Path, options: ReadOptions, block_bytes: int = BLOCK_BYTES) -> None:
        self.path = path
        self.ended_early = False
        self.bytes_read = 0
        self.replaces_bytes = False
        self.checks_text = True
        self.replaced_bytes = 0
        self._options = options
        self.block_bytes = block_bytes
        self._digest = ContentDigest()
        self._bytes_on_disk = 0

    def __iter__(self) -> Iterator[bytes]:
        from concurrent.futures import ThreadPoolExecutor

        decoder = codecs.getincrementaldecoder("utf-8")()
        held = b""  # the first bytes of a character whose last ones are in the next block
        # hashing needs no lock of Python's: it runs beside what is done with the block
        with open_source(self.path) as file, ThreadPoolExecutor(1, "digest") as beside:
            hashed = beside.submit(self._digest.add, b"")
            self._bytes_on_disk = file.seek(0, 2)
            file.seek(0)
            try:
                for block in content_blocks(self.path, file, self.block_bytes):
                    if not self.checks_text:
                        text = block
                    elif self.replaces_bytes:
                        text, held = self._replaced(held + block)
                    else:
                        self._check_text(block, decoder)
                        text = block
                    hashed.result()
                    hashed = beside.submit(self._digest.add, block)
                    self.bytes_read += len(block)
                    self._check_size()
                    if self._options.progress:
                        self._options.progress(file.tell(), self._bytes_on_disk)
                    yield text
                if held:
                    self.replaced_bytes += len(held)
                    yield _MARK * len(held)
            except EOFError as error:
                self._accept_early_end(error)

    def size_on_disk(self) -> int:
        """Return how many bytes the file has now, before it is read; 0 where nobody can say."""
        try:
            with touch(self.path):
                return self.path.stat().st_size
        except OSError:
            return 0

    def source(self) -> Source:
        """What was read: path, bytes on disk, digest of the decompressed content."""
        from tracker.profile import Source

        return Source(os.path.abspath(self.path), self._bytes_on_disk, self._digest.value())

    def _check_text(self, block: bytes, decoder: codecs.IncrementalDecoder) -> None:
        pending = len(decoder.getstate()[0])
        if block.isascii() and not pending:
            return
        try:
            decoder.decode(block)
        except UnicodeDecodeError as error:
            if self.bytes_read == 0 and block.startswith(UTF_16):
                raise SourceError(self.path, "byte 0", "the text is UTF-16", remedy=SAVE_AS_UTF_8) from error
            place = f"byte {self.bytes_read - pending + error.start}"
            raise SourceError(self.path, place, "not UTF-8 text", remedy=SAVE_AS_UTF_8) from error

    def _replaced(self, block: bytes) -> tuple[bytes, bytes]:
        """Return a block with `?` for each byte that is no UTF-8, and the start of a character at its end."""
        if block.isascii():
            return block, b""
        if self.bytes_read == 0 and block.startswith(UTF_16):
            raise SourceError(self.path, "byte 0", "the text is UTF-16", remedy=SAVE_AS_UTF_8)
        parts: list[bytes] = []
        start = 0
        while True:
            try:
                block[start:].decode("utf-8")
            except UnicodeDecodeError as error:
                bad, behind = start + error.start, start + error.end
                if behind == len(block) and error.reason == "unexpected end of data":
                    return b"".join([*parts, block[start:bad]]), block[bad:]
                parts += [block[start:bad], _MARK * (behind - bad)]
                self.replaced_bytes += behind - bad
                start = behind
            else:
                return b"".join([*parts, block[start:]]), b""

    def _check_size(self) -> None:
        if self.bytes_read > self._options.max_bytes:
            problem = f"the content is larger than the limit of {self._options.max_bytes} bytes"
            raise SourceError(
                self.path, f"byte {self._options.max_bytes}", problem, remedy="raise limits.max_bytes in the settings"
            )

    def _accept_early_end(self, error: EOFError) -> None:
        self.ended_early = True
        if not self._options.allow_partial:
            place = f"byte {self.bytes_read} of the content"
            remedy = "export it again, or read what is there with --allow-partial"
            raise SourceError(self.path, place, "the gzip stream ends early", remedy=remedy) from error
