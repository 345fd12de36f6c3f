"""What a project takes on the disk of PostgreSQL: bytes of each table and index, by row and by item.

    .venv/bin/python benchmarks/table_sizes.py --database postgres://root@127.0.0.1/a_large_project

Reads the catalogue of a database that is there, as `benchmarks/bulk.py route --keep --undeleted` leaves one;
it changes nothing. Rows are those that the last ANALYZE estimated, so run it after one.
"""

import sys

import psycopg
from runner import Table, options_of

TABLES = """
    SELECT c.oid, c.relname, greatest(c.reltuples, 0)::bigint,
           pg_total_relation_size(c.oid) - pg_indexes_size(c.oid), pg_indexes_size(c.oid)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname = 'public' AND c.reltuples >= %s
    ORDER BY pg_total_relation_size(c.oid) DESC
"""
INDEXES = """
    SELECT i.relname || CASE am.amname WHEN 'btree' THEN '' ELSE ' (' || am.amname || ')' END,
           pg_relation_size(i.oid)
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_am am ON am.oid = i.relam
    WHERE x.indrelid = %s ORDER BY 2 DESC
"""


def main() -> None:
    options = options_of(
        __doc__, database=("", "URL of the database"), least=(10_000, "rows of the smallest table shown")
    )
    with psycopg.connect(options.database) as database:
        tables = database.execute(TABLES, [options.least]).fetchall()
        items = next((rows for _, name, rows, *_ in tables if name == "annotation_item"), 0)
        if not items:
            sys.exit("There is no table of items with so many rows; has ANALYZE been run?")
        shown = Table("table or index", "rows", "MiB", "bytes a row", "bytes an item")

        def line(name: str, rows: int, size: int) -> None:
            shares = (f"{size / max(count, 1):,.0f}" for count in (rows, items))
            shown.row(name, f"{rows:,}", f"{size / 2**20:,.1f}", *shares)

        for oid, name, rows, heap, _ in tables:
            line(f"**{name}**", rows, heap)
            for index, size in database.execute(INDEXES, [oid]).fetchall():
                line(f"&nbsp; {index}", rows, size)
        heaps, indexes = (sum(row[column] for row in tables) for column in (3, 4))
        line("tables together", items, heaps)
        line("indexes together", items, indexes)
        line("all", items, heaps + indexes)


if __name__ == "__main__":
    main()
