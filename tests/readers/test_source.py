"""The content of a file comes whole, and its digest is that of the bytes that came, whatever happens to the file."""

from __future__ import annotations

import gzip
import os

import pytest
from blake3 import blake3

from tracker.errors import SourceError
from tracker.readers import ReadOptions
from tracker.readers._source import SourceText


def digest(content: bytes) -> bytes:
    return blake3(content).digest(length=16)


@pytest.mark.parametrize("size", [0, 1, 2, 899, 900, 901, 5000])
@pytest.mark.parametrize("form", ["plain", "gzip"])
def test_the_digest_is_that_of_the_content(tmp_path, size, form):
    content = (b"0123456789" * 500)[:size]
    path = tmp_path / "a.json"
    path.write_bytes(gzip.compress(content) if form == "gzip" else content)
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


def test_a_file_that_shrinks_while_it_is_read_has_the_digest_of_what_was_read(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(b"x" * 5000)
    text = SourceText(path, ReadOptions(), block_bytes=100)
    blocks = iter(text)
    read = next(blocks)
    os.truncate(path, 2000)
    read += b"".join(blocks)
    assert text.source().digest == digest(read)


@pytest.mark.parametrize("zeros", [0, 1, 63, 64, 512])
def test_zeros_between_the_members_of_a_gzip_file_are_passed_over_however_it_is_read(tmp_path, zeros):
    path = tmp_path / "log.txt.gz"
    path.write_bytes(gzip.compress(b"step 1\n") + b"\0" * zeros + gzip.compress(b"step 2\n") + b"\0" * zeros)
    for size in (1, 20, 64, 1 << 20):
        assert b"".join(SourceText(path, ReadOptions(), block_bytes=size)) == b"step 1\nstep 2\n"


def test_what_follows_the_zeros_and_is_no_member_is_an_error(tmp_path):
    path = tmp_path / "log.txt.gz"
    path.write_bytes(gzip.compress(b"step 1\n") + b"\0" * 512 + b"this is no member at all")
    with pytest.raises(SourceError, match="damaged gzip"):
        list(SourceText(path, ReadOptions(), block_bytes=64))


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"a" * 63 + "é".encode()[:1] + b"z", 63),  # the first half of é ends a block of 64, no second one follows
        (b"a" * 62 + "€".encode()[:2] + b"z", 62),
        (b"a" * 61 + "€".encode() + b"\xff", 64),
        ("é".encode() * 40 + b"\xff", 80),
    ],
)
def test_the_place_of_what_is_no_text_is_where_it_starts(tmp_path, content, place):
    path = tmp_path / "log.txt"
    path.write_bytes(content)
    with pytest.raises(SourceError) as error:
        list(SourceText(path, ReadOptions(), block_bytes=64))
    assert error.value.place == f"byte {place}"
