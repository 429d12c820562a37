"""A capture of whole microseconds gives the same rows however its times are written."""

from __future__ import annotations

import gzip
import re

from tests.test_rereading import trace
from tracker import readers
from tracker.timeline import build


def test_whole_microseconds_written_as_ns_give_the_same_rows(tmp_path):
    plain = trace(tmp_path / "us.pt.trace.json.gz", 100)
    text = gzip.decompress(plain.read_bytes())
    exact = tmp_path / "ns.pt.trace.json.gz"
    exact.write_bytes(gzip.compress(re.sub(rb'("(?:ts|dur)": \d+)', rb"\1.000", text)))
    found = [build(readers.read(readers.find(path)[0]).captures[0]).rows for path in (plain, exact)]
    assert found[0].overall == found[1].overall
    assert found[0].steps == found[1].steps
    assert [step.breakdown.duration_ns for step in found[1].steps] == [105_000, 100_000]
