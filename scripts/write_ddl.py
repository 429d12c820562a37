"""Write tracker/store/ddl: the statements that make all tables of a new database, from the tables in the code.

Run it after a change of the tables, with its migration:

    python scripts/write_ddl.py
"""

from __future__ import annotations

from itertools import groupby

from sqlalchemy import create_mock_engine
from sqlalchemy.schema import ExecutableDDLElement

from tracker.store.schema import DDL_END, ddl_file
from tracker.store.tables import metadata

DRIVERS = {"sqlite": "sqlite://", "postgresql": "postgresql+psycopg://"}


def ddl(dialect: str) -> str:
    """The statements that make all tables in `dialect`, in an order that their references allow."""
    found: list[str] = []

    def keep(statement: ExecutableDDLElement, *_: object, **__: object) -> None:
        text = str(statement.compile(dialect=engine.dialect)).strip()
        found.append("\n".join(line.rstrip().replace("\t", "    ") for line in text.splitlines()))

    engine = create_mock_engine(DRIVERS[dialect], keep)
    metadata.create_all(engine, checkfirst=False)
    # SQLAlchemy keeps the indexes of a table as a set, in another order each time
    ordered = [
        statement
        for is_index, own in groupby(found, key=lambda statement: " INDEX " in statement.splitlines()[0])
        for statement in (sorted(own) if is_index else own)
    ]
    return "".join(f"{statement}{DDL_END}" for statement in ordered)


def main() -> None:
    """Write them for both databases."""
    for dialect in DRIVERS:
        ddl_file(dialect).write_text(ddl(dialect), encoding="utf-8")


if __name__ == "__main__":
    main()
