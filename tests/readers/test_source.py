"""The content of a file comes whole, and its digest is that of the bytes that came, whatever happens to the file."""

from __future__ import annotations

import gzip
import hashlib
import os

import pytest

from tracker.errors import SourceError
from tracker.readers import ReadOptions, _source
from tracker.readers._source import SourceText


def digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


@pytest.mark.parametrize("size", [0, 1, 2, 899, 900, 901, 5000])
@pytest.mark.parametrize("form", ["plain", "gzip", "plain, without reads at a place"])
def test_the_digest_is_that_of_the_content(tmp_path, monkeypatch, size, form):
    content = (b"0123456789" * 500)[:size]
    path = tmp_path / "a.json"
    path.write_bytes(gzip.compress(content) if form == "gzip" else content)
    if form.endswith("place"):
        monkeypatch.delattr(os, "preadv", raising=False)
    monkeypatch.setattr(_source, "_HASHED_BYTES", 700)
    text = SourceText(path, ReadOptions(), block_bytes=900)
    assert b"".join(text) == content
    source = text.source()
    assert (source.digest, source.bytes, text.bytes_read) == (digest(content), path.stat().st_size, size)


def test_a_file_that_grows_while_it_is_read_has_the_digest_of_what_was_read(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(b"step 1\n" * 200)
    text = SourceText(path, ReadOptions(), block_bytes=100)
    blocks = iter(text)
    read = next(blocks)
    with path.open("ab") as file:
        file.write(b"step 2\n" * 200)
    read += b"".join(blocks)
    assert len(read) == 2800
    assert text.source().digest == digest(read)


def test_another_file_of_the_same_name_is_another_file(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(b"old" * 300)
    text = SourceText(path, ReadOptions(), block_bytes=100)
    blocks = iter(text)
    read = next(blocks)
    (tmp_path / "new").write_bytes(b"new" * 300)
    (tmp_path / "new").rename(path)
    assert read + b"".join(blocks) == b"old" * 300
    assert text.source().digest == digest(b"old" * 300)


def test_a_file_that_shrinks_while_it_is_read_is_told(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(b"x" * 5000)
    text = SourceText(path, ReadOptions(), block_bytes=100)
    blocks = iter(text)
    next(blocks)
    os.truncate(path, 2000)
    try:
        read = 100 + sum(map(len, blocks))
    except SourceError as error:
        assert "changed while it was read" in str(error)
    else:  # it was hashed after it shrank, and so was read
        assert (read, text.source().digest) == (2000, digest(b"x" * 2000))


def test_what_somebody_else_reads_is_hashed_and_counted_all_the_same(tmp_path):
    content = b"ab" * 5000
    path = tmp_path / "a.json"
    path.write_bytes(content)
    told = []
    text = SourceText(path, ReadOptions(progress=lambda *said: told.append(said)), block_bytes=1000)
    blocks = iter(text)
    next(blocks)
    text.leave_rest()
    assert list(blocks) == []
    assert (text.source().digest, text.bytes_read, told[-1]) == (digest(content), 10_000, (10_000, 10_000))
