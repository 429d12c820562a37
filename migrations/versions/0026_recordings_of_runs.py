"""How a run was recorded is kept with the run: until now each question of it read the captures, sources and steps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

TEXT = sa.Text(collation="C").with_variant(sa.Text(), "sqlite")
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAMES: Final = ("format", "timeline", "steps", "schema", "rules")
SAID: Final = """
SELECT c.run_id, c.settings, s.format, c.timeline,
    CASE WHEN EXISTS (SELECT 1 FROM step AS p WHERE p.run_id = c.run_id AND p.rank = c.rank
        AND (p.step <> 0 OR p.duration_ns <> c.duration_ns)) THEN 'marked' ELSE 'unmarked' END,
    f.value, CAST(r.rules_version AS TEXT)
FROM capture AS c
INNER JOIN run AS r ON c.run_id = r.id
LEFT JOIN source AS s ON c.run_id = s.run_id AND c.rank = s.rank
LEFT JOIN run_fact AS f ON c.run_id = f.run_id AND f.kind = 'fact' AND f.key = 'trace_schema_version'
ORDER BY c.run_id, c.settings, s.format
"""
"""What the captures of all runs say, in the order of the runs. Steps are marked where a capture has more than one, or
one that does not last as long as the capture.
"""


def upgrade() -> None:
    op.create_table(
        "recording",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("content", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_recording"),
        sa.UniqueConstraint("digest", name="uq_recording_digest"),
    )
    op.add_column("run", sa.Column("recording_id", sa.BigInteger(), nullable=True))
    rows = op.get_bind().execute(sa.text(SAID)).all()
    found = {run_id: content_of([row[1:] for row in own]) for run_id, own in groupby(rows, key=lambda row: row[0])}
    insert = sa.text("INSERT INTO recording (digest, content) VALUES (:digest, :content)")
    change = sa.text(
        "UPDATE run SET recording_id = (SELECT k.id FROM recording AS k WHERE k.digest = :digest) WHERE id = :run_id"
    )
    for content in sorted(set(found.values())):
        op.get_bind().execute(insert, {"digest": digest_of(content), "content": content})
    for run_id, content in found.items():
        op.get_bind().execute(change, {"digest": digest_of(content), "run_id": run_id})


def downgrade() -> None:
    op.drop_column("run", "recording_id")
    op.drop_table("recording")


def content_of(rows: Sequence[Sequence[Any]]) -> str:
    """What the captures of one run say, as it is kept; `rows`: of SAID without the run."""
    settings, *columns = (
        list(dict.fromkeys(word for word in own if word is not None)) for own in zip(*rows, strict=True)
    )
    words = dict(zip(NAMES, columns, strict=True))
    for name in ("timeline", "steps"):  # one word for all captures of a run
        words[name] = sorted(words[name])[:1]
    said = {name: words[name] for name in sorted(words) if words[name]}
    own = [dict(sorted(json.loads(text).items())) for text in settings]
    return json.dumps({"said": said, "settings": own}, separators=(",", ":"), ensure_ascii=False)


def digest_of(content: str) -> bytes:
    return hashlib.blake2b(content.encode(), digest_size=8).digest()
