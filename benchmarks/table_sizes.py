"""What a project takes on the disk of PostgreSQL: bytes of each table and index, by row and by item.

    .venv/bin/python benchmarks/table_sizes.py --database postgres://root@127.0.0.1/a_large_project

Reads the catalogue of a database that is there, for example one that benchmarks/items.py made; it changes
nothing. Rows are those that the last ANALYZE estimated, so run it after one. Tables below `--least` rows are
left out.
"""

import argparse
import sys

import psycopg

TABLES = """
    SELECT c.oid, c.relname, greatest(c.reltuples, 0)::bigint, pg_relation_size(c.oid),
           pg_total_relation_size(c.oid) - pg_relation_size(c.oid) - pg_indexes_size(c.oid),
           pg_indexes_size(c.oid)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname = 'public' AND c.reltuples >= %s
    ORDER BY pg_total_relation_size(c.oid) DESC
"""
INDEXES = """
    SELECT i.relname, pg_relation_size(i.oid), am.amname
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_am am ON am.oid = i.relam
    WHERE x.indrelid = %s ORDER BY 2 DESC
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", required=True, help="URL of the database")
    parser.add_argument("--least", type=int, default=10_000, help="rows of the smallest table shown")
    options = parser.parse_args()
    with psycopg.connect(options.database) as database:
        tables = database.execute(TABLES, [options.least]).fetchall()
        items = next((rows for _, name, rows, *_ in tables if name == "annotation_item"), 0)
        if not items:
            print("There is no table of items with so many rows; has ANALYZE been run?", file=sys.stderr)
            return 1
        print("| table or index | rows | MiB | bytes a row | bytes an item |")
        print("|---|---:|---:|---:|---:|")
        sums = [0, 0]
        for oid, name, rows, heap, rest, indexes in tables:
            line(f"**{name}**", rows, heap + rest, items)
            sums[0] += heap + rest
            sums[1] += indexes
            for index, size, method in database.execute(INDEXES, [oid]).fetchall():
                line(f"&nbsp; {index}{'' if method == 'btree' else f' ({method})'}", rows, size, items)
        line("tables together", items, sums[0], items)
        line("indexes together", items, sums[1], items)
        line("all", items, sum(sums), items)
        version = database.execute("SHOW server_version").fetchone()
    print(f"\nPostgreSQL {version[0] if version else '?'}, {items:,} items.")
    return 0


def line(name: str, rows: int, size: int, items: int) -> None:
    print(f"| {name} | {rows:,} | {size / 2**20:,.1f} | {size / max(rows, 1):,.0f} | {size / items:,.0f} |")


if __name__ == "__main__":
    sys.exit(main())
