"""Cuts a trace of any size into texts of whole events, without holding it in memory.

A cut is guessed at the last `}, {` of a buffer and proved by decoding `[` + text + `]`: a cut inside an event, inside
a string or behind the list cannot parse. Where guesses fail (end of the list, lists of objects in `args`) an exact
scan decides.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, Final, Generic, NoReturn, TypeVar

import msgspec
from msgspec import Struct

from tracker.errors import SourceError
from tracker.readers._broken_text import BOUNDARY, LIST_END, mend_event
from tracker.readers._source import BOM, SourceText
from tracker.units import counted

CHUNK_BYTES: Final = 1 << 20
MAX_EVENT_BYTES: Final = 8 << 20
"""Longest event, and longest text before the events, that is read at all. The longest real ones have 200 kB: an
operator on 10,000 tensors, a process group of 16,000 ranks.
"""

MAX_TAIL_BYTES: Final = 64 << 20
"""Longest text behind the events, which is not looked through."""

GUESSES: Final = 4
MOST_MISSES: Final = 8
"""Of blocks on several threads; a trace with more of them is read on one."""

# possessive, so that a text that goes on behind the buffer is passed once
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)
_TOKEN_OR_COMMA: Final = re.compile(_TOKEN.pattern + rb"|,", re.DOTALL)
_KEY_END: Final = re.compile(rb"\s*:\s*")
_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_EVENT: Final = re.compile(r" - at `\$\[(\d+)\]\.?(.*)`")
# what every event has, and hardly any object in its args
_IS_EVENT: Final = re.compile(rb'"ph"\s*:\s*"\w"')
_TRIED_BOUNDARIES: Final = 64
_NEAR: Final = 256
_BLANKS: Final = b" \t\r\n"
_KEY: Final = b'"traceEvents"'
LAST_COMMA: Final = "malformed JSON: a comma without an event behind it"
EXPORT_AGAIN: Final = "export the trace again"
ONE_FILE_EACH: Final = "two processes wrote this file: give each a file of its own, and export again"
ALLOW_PARTIAL: Final = "export the trace again, or read what is there with --allow-partial"

Events = TypeVar("Events")
Decoded_co = TypeVar("Decoded_co", covariant=True)


class Chunk(Struct, Generic[Events], frozen=True):
    """Some whole events: as text (a JSON list; or what starts with them, where `decode_first` took them), decoded, and
    the byte of the content at which the text starts.
    """

    text: bytes
    events: Events
    offset: int


class EventPart(Struct, Generic[Decoded_co], frozen=True):
    """Events of a text that starts anywhere, decoded: from byte `start`, where one seems to start (-1: nowhere), to
    byte `end`, behind the comma that follows the last of them; 0: there are none.
    """

    events: Decoded_co
    start: int
    end: int


class InParts(Struct, Generic[Decoded_co], frozen=True):
    """How to decode several texts at once: `decode` takes a text, and whether it starts with an event, on any thread.

    What it takes is a part of what `decode_first` of `EventTexts` takes.
    """

    decode: Callable[[bytes, bool], EventPart[Decoded_co]]
    threads: int


class EventTexts(Generic[Events]):
    """The events of one trace, in chunks; iterate once. Afterwards `top_text` is the rest of the trace.

    `decode` turns the text of a list into events and raises msgspec.DecodeError for anything else. `decode_first`: a
    faster way where a text starts with an event: its first events, as many as it likes of those that a comma follows,
    and the byte behind the last of these commas; None: decode shall do it. `in_parts`: how to decode several blocks of
    the source at once. `exporter`: what writes such traces, for the remedy where this is none.
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
        in_parts: InParts[Events] | None = None,
    ) -> None:
        self.partial = ""
        self.is_open = False
        self._may_stay_open = may_stay_open
        self._none_such = f"give a trace exported by {exporter}"
        self.top_text = b"{}"
        self._source = source
        self._blocks: Iterator[bytes] = iter(source)
        self._decode = decode
        self._decode_first = decode_first
        self._in_parts = in_parts
        self._misses = 0  # how often a block was decoded from where no event starts, or behind an unusual one
        self._allow_partial = allow_partial
        self._chunk_bytes = chunk_bytes
        self._buffer = b""
        self._scanned = (0, 0, 0)  # how far the buffer was scanned: position, depth there, end of the last whole event
        self._offset = 0  # byte of the content at which the buffer starts
        self._after_comma = False
        self._closed = False
        source.replaces_bytes = True
        self._mended = 0  # events whose text was broken, and means one thing only
        self._lost = 0  # events whose text was broken
        self._first_broken: SourceError | None = None
        self._malformed_at = -1  # byte of the content at which the JSON that was tried last is malformed
        self._found_events = False
        self._mended_chunk: Chunk[Events] | None = None
        self._has_moved = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of the events should know of the text that they had; only behind the last of them."""
        notes = []
        if self._first_broken is not None:
            how = [f"{self._mended} mended"] if self._mended else []
            how += [f"{self._lost} left out"] if self._lost else []
            broken = counted(self._mended + self._lost, "event")
            notes.append(f"broken text in {broken}: {', '.join(how)} (the first at {self._first_broken.place})")
        if self._source.replaced_bytes:
            notes.append(f"{counted(self._source.replaced_bytes, 'byte')} that are no UTF-8 stand as ?")
        return tuple(notes)

    @property
    def has_all(self) -> bool:
        """Whether the list of the events was ended: all of them were there, whatever is missing behind it."""
        return self._closed

    def __iter__(self) -> Iterator[Chunk[Events]]:
        head = self._read_head()
        yield from self._read_in_parts()
        want = self._chunk_bytes
        while True:
            more = self._fill(want)
            try:
                chunk = self._next_chunk()
            except SourceError as error:
                if not self._steps_over(error, more=more):
                    raise
                chunk = self._mended_chunk
                if chunk is None:
                    want = self._chunk_bytes if self._has_moved else self._grow(want)
                    continue
            if chunk is not None:
                want = self._chunk_bytes
                self._found_events = True
                yield chunk
            if self._closed:
                self._read_tail(head)
                if self._first_broken is not None and not self._found_events:
                    raise self._first_broken
                return
            if chunk is not None:
                yield from self._read_in_parts()
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

    # -- several blocks at once

    def _read_in_parts(self) -> Iterator[Chunk[Events]]:
        """Read blocks on several threads at once, as far as each is proved by the one before it.

        A block is decoded from where an event seems to start. That is a guess, which counts only where the text between
        it and the last event before it is whole events: so, from the start of the list on, every event that counts
        starts where one does. At the first block of which that cannot be said the buffer is what is left, from the last
        proved event on, and it is read as if there were no threads.
        """
        if self._in_parts is None or self._misses > MOST_MISSES:
            return
        decode, threads = self._in_parts.decode, self._in_parts.threads
        with ThreadPoolExecutor(threads, "decode") as pool:
            waiting = deque([(self._buffer, pool.submit(decode, self._buffer, True))])
            rest = b""  # the text behind the last proved event
            at = self._offset  # byte of the content at which the first text that waits starts
            while waiting:
                while len(waiting) <= threads and (block := self._next_block()):
                    waiting.append((block, pool.submit(decode, block, False)))
                text, decoding = waiting.popleft()
                chunks = self._proved_chunks(rest, text, decoding.result(), at)
                if chunks is None:
                    self._misses += 1
                    self._push_back([text, *(block for block, _ in waiting)])
                    break
                part = decoding.result()
                rest = text[max(part.start, part.end) :]
                at += len(text)
                if chunks:
                    self._found_events = self._after_comma = True
                    yield from chunks
            self._buffer, self._offset, self._scanned = rest, at - len(rest), (0, 0, 0)

    def _proved_chunks(self, rest: bytes, text: bytes, part: EventPart[Events], at: int) -> list[Chunk[Events]] | None:
        """Return the events of a part, with those between it and the one before, of which `rest` is left.

        None where the part does not start with an event, or what is between cannot be read here. `at`: the byte of the
        content at which `text` starts.
        """
        if part.start < 0 or self._decode_first is None:
            return None
        chunks = []
        between = rest + text[: part.start]
        if between.strip(_BLANKS):
            found = self._decode_first(between)
            if found is None or between[found[1] :].strip(_BLANKS):
                return None
            chunks.append(Chunk(between, found[0], at - len(rest)))
        if part.end:
            chunks.append(Chunk(text, part.events, at))
        return chunks

    def _next_block(self) -> bytes | None:
        """Return the next block; None at the end, and where it cannot be read: what is left to read says why."""
        try:
            return next(self._blocks, None)
        except SourceError as error:
            self._blocks = _raise_late(error)
            return None

    def _push_back(self, blocks: Sequence[bytes]) -> None:
        """Give back what is not proved, in blocks of the size of those that are read without threads."""
        self._blocks = chain(_smaller_blocks(blocks, self._chunk_bytes), self._blocks)
        if self._misses > MOST_MISSES:
            self._blocks = _smaller_blocks(self._blocks, self._chunk_bytes)

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
        position, depth, end = self._scanned
        for token in _TOKEN.finditer(self._buffer, position):
            text = token.group()
            if text == b'"':
                break
            position = token.end()
            if text in (b"{", b"["):
                depth += 1
            elif text in (b"}", b"]"):
                if depth == 0:
                    return end, token.start()
                depth -= 1
                if depth == 0:
                    end = token.end()
        # a longer buffer is scanned from here on: an event of many megabytes comes in many blocks
        self._scanned = (position, depth, end)
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
        self._scanned = (0, 0, 0)
        self._offset += size
        self._after_comma = after_comma

    # -- events whose text is broken

    def _steps_over(self, error: SourceError, *, more: bool) -> bool:
        """Whether the reading can go on behind `error`: what is malformed is the text of one event.

        `_mended_chunk` has the events in front of it, or the mended one, if any; `_has_moved`: something was taken out
        of the buffer, else it must grow.
        """
        self._mended_chunk, self._has_moved = None, False
        at = self._malformed_at - self._offset
        if self._malformed_at < 0 or at < 0 or self._is_between_events(at):
            return False
        self._malformed_at = -1
        self._closed = False
        start = len(self._buffer) - len(self._buffer.lstrip(_BLANKS))
        boundaries = list(BOUNDARY.finditer(self._buffer, start, min(len(self._buffer), at + 1)))
        for boundary in reversed(boundaries[-_TRIED_BOUNDARIES:]):
            events = self._try_events(self._buffer[start : boundary.end("end")])
            if events is not None:
                text = b"[" + self._buffer[: boundary.end("end")] + b"]"
                self._mended_chunk = self._take(Chunk(text, events, self._offset - 1), boundary.end(), after_comma=True)
                self._has_moved = True
                return True
        return self._step_over_event(error, start, at, more=more)

    def _step_over_event(self, error: SourceError, start: int, at: int, *, more: bool) -> bool:
        """Mend or leave out the event at `start` of the buffer, whose text is malformed at `at`."""
        end, behind = self._end_of_broken_event(at, more=more)
        if end < 0:
            return more  # the rest of the event is not in the buffer yet
        self._first_broken = self._first_broken or error
        mended = mend_event(self._buffer[start:end])
        events = None if mended is None else self._try_events(mended)
        self._has_moved = True
        if events is None or mended is None:
            self._lost += 1
        else:
            self._mended += 1
            self._mended_chunk = Chunk(b"[" + mended + b"]", events, self._offset + start - 1)
        self._consume(behind, after_comma=False)
        return True

    def _end_of_broken_event(self, at: int, *, more: bool) -> tuple[int, int]:
        """Return where the event ends that is malformed at `at`, and where the next begins; (-1, -1) for not yet.

        The next one is the first behind it that is an event: lists of objects in `args` look alike.
        """
        boundaries = BOUNDARY.finditer(self._buffer, max(0, at - 1))
        candidate = next(boundaries, None)
        while candidate is not None:
            following = next(boundaries, None)
            end = -1
            if following is not None:
                end = following.end("end")
            elif not more:
                end = self._end_of_list(candidate.end())
            if end >= 0 and _IS_EVENT.search(self._buffer, candidate.end(), end):
                return candidate.end("end"), candidate.end()
            candidate = following
        if more:
            return -1, -1
        end = self._end_of_list(at)
        return end, end

    def _end_of_list(self, start: int) -> int:
        """Return where the last event ends, from `start` on in a buffer that holds the rest of the trace; -1: nowhere.

        Lists of objects in `args` end alike, but only behind the list of events stands the rest of a trace.
        """
        for last in LIST_END.finditer(self._buffer, start):
            rest = self._buffer[last.end() :]
            if rest.strip(_BLANKS) == b"]":
                return last.end("end")
            try:
                msgspec.json.decode(b'{"": [' + rest, type=msgspec.Raw)
            except (msgspec.DecodeError, RecursionError):
                continue
            return last.end("end")
        return -1

    def _try_events(self, text: bytes) -> Events | None:
        try:
            return self._decode(b"[" + text + b"]")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def _is_between_events(self, at: int) -> bool:
        """Whether what is malformed lies between two events: then none of them is to blame."""
        before = self._buffer[max(0, at - _NEAR) : at].rstrip(_BLANKS)
        return before.endswith(b"}") and self._buffer[at : at + 1] in (b"{", b"")

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
            if len(self._buffer) > MAX_TAIL_BYTES:
                self._fail(self._offset, f"the text behind the events is longer than {MAX_TAIL_BYTES} bytes")
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
                if _IS_EVENT.search(self._buffer):
                    self._fail(self._offset, "behind the end of the trace stands a part of another one", ONE_FILE_EACH)
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
        if place and text[:1] == b"[":
            self._malformed_at = offset + position
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


def _raise_late(error: SourceError) -> Iterator[bytes]:
    """Raise, when the next block is asked for, the error that kept it from being read."""
    yield from ()
    raise error


def _smaller_blocks(blocks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Cut blocks into those of about `size` bytes, between characters."""
    for block in blocks:
        start = 0
        while start < len(block):
            end = start + size
            while end < len(block) and block[end] & 0xC0 == 0x80:
                end += 1
            yield block[start:end]
            start = end


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
