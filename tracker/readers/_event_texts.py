"""Cuts a trace of any size into texts of whole events, without holding it in memory.

A cut is guessed at the last `}, {` of a buffer and proved by decoding `[` + text + `]`: a cut inside an event, inside
a string or behind the list cannot parse. Where guesses fail (end of the list, lists of objects in `args`) an exact
scan decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, NoReturn, TypeVar

import msgspec
from msgspec import Struct

from tracker.errors import SourceError
from tracker.readers._source import BOM, SourceText

CHUNK_BYTES: Final = 1 << 20
MAX_EVENT_BYTES: Final = 64 << 20
"""Longest event, and longest text beside `traceEvents`, that is read at all."""

GUESSES: Final = 4
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]]', re.DOTALL)
_TOKEN_OR_COMMA: Final = re.compile(_TOKEN.pattern + rb"|,", re.DOTALL)
_KEY_END: Final = re.compile(rb"\s*:\s*")
_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_EVENT: Final = re.compile(r" - at `\$\[(\d+)\]\.?(.*)`")
_BLANKS: Final = b" \t\r\n"
_KEY: Final = b'"traceEvents"'
LAST_COMMA: Final = "malformed JSON: a comma without an event behind it"
EXPORT_AGAIN: Final = "export the trace again"
ALLOW_PARTIAL: Final = "export the trace again, or read what is there with --allow-partial"

Events = TypeVar("Events")


class Chunk(Struct, Generic[Events], frozen=True):
    """Some whole events: as text (a JSON list; or what starts with them, where `decode_first` took them), decoded, and
    the byte of the content at which the text starts.
    """

    text: bytes
    events: Events
    offset: int


class EventTexts(Generic[Events]):
    """The events of one trace, in chunks; iterate once. Afterwards `top_text` is the rest of the trace.

    `decode` turns the text of a list into events and raises msgspec.DecodeError for anything else. `decode_first`: a
    faster way where a text starts with an event: its first events, as many as it likes of those that a comma follows,
    and the byte behind the last of these commas; None: decode shall do it. `exporter`: what
    writes such traces, for the remedy where this is none.
    `partial`: why the trace ended early, empty when it is whole; only with `allow_partial`, else a SourceError.
    `may_stay_open`: a bare list that ends behind a whole event is whole without its `]`; then `is_open` is True.
    """

    def __init__(
        self,
        source: SourceText,
        decode: Callable[[bytes], Events],
        *,
        exporter: str,
        allow_partial: bool = False,
        may_stay_open: bool = False,
        chunk_bytes: int = CHUNK_BYTES,
        decode_first: Callable[[bytes], tuple[Events, int] | None] | None = None,
    ) -> None:
        self.partial = ""
        self.is_open = False
        self._may_stay_open = may_stay_open
        self._none_such = f"give a trace exported by {exporter}"
        self.top_text = b"{}"
        self._source = source
        self._blocks = iter(source)
        self._decode = decode
        self._decode_first = decode_first
        self._allow_partial = allow_partial
        self._chunk_bytes = chunk_bytes
        self._buffer = b""
        self._offset = 0  # byte of the content at which the buffer starts
        self._after_comma = False
        self._closed = False

    @property
    def has_all(self) -> bool:
        """Whether the list of the events was ended: all of them were there, whatever is missing behind it."""
        return self._closed

    def __iter__(self) -> Iterator[Chunk[Events]]:
        head = self._read_head()
        want = self._chunk_bytes
        while True:
            more = self._fill(want)
            chunk = self._next_chunk()
            if chunk is not None:
                want = self._chunk_bytes
                yield chunk
            if self._closed:
                self._read_tail(head)
                return
            if chunk is not None:
                continue
            if not more:
                yield from self._end_early(is_bare=not head)
                self.top_text = head + b"[]}" if head else b"{}"
                return
            want = self._grow(want)

    def _fill(self, want: int) -> bool:
        """Reads until the buffer holds more than `want` bytes; False when the content ended before."""
        parts = [self._buffer]
        size = len(self._buffer)
        while size <= want:
            block = next(self._blocks, None)
            if block is None:
                self._buffer = b"".join(parts)
                return False
            parts.append(block)
            size += len(block)
        self._buffer = b"".join(parts)
        return True

    def _grow(self, want: int) -> int:
        if want > MAX_EVENT_BYTES:
            self._fail(
                self._offset, f"one event, or the text before the events, is longer than {MAX_EVENT_BYTES} bytes"
            )
        return max(want, len(self._buffer)) * 2

    def _fail(self, offset: int, problem: str, remedy: str = EXPORT_AGAIN) -> NoReturn:
        raise SourceError(self._source.path, f"byte {offset}", problem, remedy=remedy)

    # -- before the events

    def _read_head(self) -> bytes:
        """Moves behind the `[` of the event list; returns the text before it (empty for a bare list)."""
        want = self._chunk_bytes
        while True:
            more = self._fill(want)
            if self._buffer.startswith(BOM):
                self._buffer = b" " * len(BOM) + self._buffer[len(BOM) :]  # places in the file stay what they are
            if self._buffer.lstrip(_BLANKS)[:1] not in (b"{", b"["):
                self._no_list()
            start = self._list_start()
            if start >= 0:
                head = self._buffer[:start]
                self._consume(start + 1, after_comma=False)
                return b"" if not head.strip(_BLANKS) else head
            if not more:
                self._no_list()
            want = self._grow(want)

    def _list_start(self) -> int:
        """Position of the `[` that opens the event list, -1 when it is not in the buffer."""
        depth = 0
        for token in _TOKEN.finditer(self._buffer):
            text = token.group()
            if text == b"[" and depth == 0:
                return token.start()
            if text in (b"{", b"["):
                depth += 1
            elif text in (b"}", b"]"):
                depth -= 1
            elif text == b'"':
                return -1
            elif depth == 1 and text == _KEY:
                colon = _KEY_END.match(self._buffer, token.end())
                if colon and self._buffer[colon.end() : colon.end() + 1] == b"[":
                    return colon.end()
            if depth <= 0:
                return -1
        return -1

    def _no_list(self) -> NoReturn:
        text = self._buffer.strip(_BLANKS)
        if not text:
            raise SourceError(self._source.path, "", "the file is empty", remedy=EXPORT_AGAIN)
        if text[:1] not in (b"{", b"["):
            self._fail(0, "not JSON: a trace starts with '{' or '['", self._none_such)
        try:
            msgspec.json.decode(text, type=msgspec.Raw)
        except msgspec.DecodeError as error:
            if _BYTE.search(str(error)):
                self._malformed(error, self._buffer, 0)
            self._fail(self._source.bytes_read, "the JSON ends before the list 'traceEvents'")
        except RecursionError as error:
            self._too_deep(error)
        self._fail(0, "JSON without a list 'traceEvents'", self._none_such)

    # -- the events

    def _next_chunk(self) -> Chunk[Events] | None:
        """The next chunk, taken out of the buffer; None when the buffer holds no whole event."""
        first = self._decode_first(self._buffer) if self._decode_first is not None else None
        if first is not None:
            return self._take(Chunk(self._buffer, first[0], self._offset), first[1], after_comma=True)
        for end, after_comma in self._guessed_cuts():
            text = b"".join((b"[", memoryview(self._buffer)[:end], b"]"))
            try:
                events = self._decode(text)
            except (msgspec.ValidationError, RecursionError) as error:
                self._malformed(error, text, self._offset - 1)
            except msgspec.DecodeError:
                continue
            return self._take(Chunk(text, events, self._offset - 1), after_comma, after_comma=True)
        return self._scanned_chunk()

    def _guessed_cuts(self) -> Iterator[tuple[int, int]]:
        """Ends of `}` and of the comma behind it, from the last `}, {` backwards."""
        position = len(self._buffer)
        found = 0
        for _ in range(64):
            position = self._buffer.rfind(b"{", 0, position)
            if position <= 0 or found == GUESSES:
                return
            start = max(0, position - 256)
            before = self._buffer[start:position].rstrip(_BLANKS)
            event = before[:-1].rstrip(_BLANKS)
            if before.endswith(b",") and event.endswith(b"}"):
                found += 1
                yield start + len(event), start + len(before)

    def _scanned_chunk(self) -> Chunk[Events] | None:
        end, closed = self._scan()
        if closed >= 0:
            self._closed = True
            if not self._buffer[:closed].strip(_BLANKS):
                if self._after_comma:
                    self._fail(self._offset + closed, LAST_COMMA)
                self._consume(closed + 1, after_comma=False)
                return None
            return self._take(self._decoded(closed), closed + 1, after_comma=False)
        rest = self._buffer[end:].lstrip(_BLANKS)
        if end == 0 or not rest:
            self._check_malformed()
            return None
        if rest[:1] != b",":
            self._fail(self._offset + len(self._buffer) - len(rest), "malformed JSON: no comma between two events")
        return self._take(self._decoded(end), len(self._buffer) - len(rest) + 1, after_comma=True)

    def _scan(self) -> tuple[int, int]:
        """End of the buffer's last whole event (0: none), and position of the `]` that closes the list (-1: none)."""
        depth = 0
        end = 0
        for token in _TOKEN.finditer(self._buffer):
            text = token.group()
            if text == b'"':
                break
            if text in (b"{", b"["):
                depth += 1
            elif text in (b"}", b"]"):
                if depth == 0:
                    return end, token.start()
                depth -= 1
                if depth == 0:
                    end = token.end()
        return end, -1

    def _decoded(self, end: int) -> Chunk[Events]:
        text = b"".join((b"[", memoryview(self._buffer)[:end], b"]"))
        try:
            return Chunk(text, self._decode(text), self._offset - 1)
        except (msgspec.DecodeError, RecursionError) as error:
            self._malformed(error, text, self._offset - 1)

    def _take(self, chunk: Chunk[Events], size: int, *, after_comma: bool) -> Chunk[Events]:
        self._consume(size, after_comma=after_comma)
        return chunk

    def _consume(self, size: int, *, after_comma: bool) -> None:
        self._buffer = self._buffer[size:]
        self._offset += size
        self._after_comma = after_comma

    def _check_malformed(self) -> None:
        """Tells broken JSON from JSON that only goes on behind the buffer."""
        try:
            msgspec.json.decode(b"[" + self._buffer, type=msgspec.Raw)
        except msgspec.DecodeError as error:
            place = _BYTE.search(str(error))
            # the last bytes may be half a number or half a word: that is no proof
            if place and int(place.group(1)) < len(self._buffer) - 64:
                self._malformed(error, b"[" + self._buffer, self._offset - 1)
        except RecursionError as error:
            self._too_deep(error)

    def _end_early(self, *, is_bare: bool) -> Iterator[Chunk[Events]]:
        end, _ = self._scan()
        ends_whole = not self._buffer[end:].strip(_BLANKS) and (end > 0 or self._after_comma)
        self.is_open = is_bare and ends_whole and self._may_stay_open and not self._source.ended_early
        if not self.is_open:
            self._truncated("the trace ends in the middle of its events")
        if end:
            yield self._decoded(end)

    def _truncated(self, problem: str) -> None:
        self.partial = f"{problem} (byte {self._source.bytes_read})"
        if not self._allow_partial:
            self._fail(self._source.bytes_read, problem, ALLOW_PARTIAL)

    # -- behind the events

    def _read_tail(self, head: bytes) -> None:
        while self._fill(len(self._buffer) + self._chunk_bytes):
            if len(self._buffer) > MAX_EVENT_BYTES:
                self._fail(self._offset, f"the text behind the events is longer than {MAX_EVENT_BYTES} bytes")
        if not head:
            rest = self._buffer.lstrip(_BLANKS)
            if rest:
                self._fail(self._offset + len(self._buffer) - len(rest), "malformed JSON: text behind the event list")
            return
        whole = head + b"[]" + self._buffer
        try:
            msgspec.json.decode(whole, type=msgspec.Raw)
        except msgspec.DecodeError as error:
            if place := _BYTE.search(str(error)):
                in_head = int(place.group(1)) <= len(head)
                self._malformed(error, whole, 0 if in_head else self._offset - len(head) - 2)
            self._truncated("the trace ends behind its events")
            whole = head + b"[]}"
        except RecursionError as error:
            self._too_deep(error)
        self.top_text = whole

    def _malformed(self, error: Exception, text: bytes, offset: int) -> NoReturn:
        if isinstance(error, RecursionError):
            self._too_deep(error)
        problem = str(error).removeprefix("JSON is malformed: ")
        place = _BYTE.search(problem)
        event = _EVENT.search(problem)
        position = int(place.group(1)) if place else find_event(text, int(event.group(1))) if event else 0
        word = re.match(rb"-?(?:NaN|Inf\w*)", text[position:])
        if word:
            problem = f"{word.group().decode()} is no JSON number"
        elif place and "trailing comma" in problem and not text[position:].strip(_BLANKS + b",]"):
            problem = LAST_COMMA
        elif place:
            problem = f"malformed JSON: {_BYTE.sub('', problem).strip()}"
        else:
            field = f" - at `{event.group(2)}`" if event and event.group(2) else ""  # its number is that in this text
            problem = f"not an event of a trace: {_EVENT.sub('', problem)}{field}"
        raise SourceError(self._source.path, f"byte {offset + position}", problem, remedy=EXPORT_AGAIN) from error

    def _too_deep(self, error: Exception) -> NoReturn:
        place = f"byte {self._offset} or later"
        raise SourceError(self._source.path, place, "the JSON is nested too deeply", remedy=EXPORT_AGAIN) from error


def find_event(text: bytes, index: int) -> int:
    """Position in the list text `text` of its element number `index`; for error messages."""
    depth = 0
    seen = 0
    start = 1
    for token in _TOKEN_OR_COMMA.finditer(text):
        word: Any = token.group()
        if seen == index:
            break
        depth += (word in (b"{", b"[")) - (word in (b"}", b"]"))
        if word == b"," and depth == 1:
            seen, start = seen + 1, token.end()
    return start + len(text[start:]) - len(text[start:].lstrip(_BLANKS))
