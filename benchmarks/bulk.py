"""Large projects, in a table: how fast each part of the work is, and how much memory it takes.

    .venv/bin/python benchmarks/bulk.py import [--sizes 10000,100000] [--formats csv,jsonl,zip]    (SQLite)
    .venv/bin/python benchmarks/bulk.py export --database postgres://root@127.0.0.1/postgres --sizes 1000000

import  files of texts of 200 characters, or a zip of small images, read by the real job
send    predictions that a program sends with the Python client, in one request to `manage.py serve`
route   a run that goes all the way, stage by stage
export  its delivery, a line for each job with the formats that it writes, joined by +
tables  the table of items in every order and with every filter; with --pages the project's other pages

Each size is done by a process of its own, with a new database: on PostgreSQL one is made beside the one that
is named, and dropped afterwards. Memory is the most that the process at work held at once, and the note says
how long that process was at work: the database's server is in neither.
"""

import argparse
import signal
import sys
from contextlib import nullcontext
from multiprocessing import get_context

import bulk_import
import bulk_items
import bulk_run
from runner import Row, Table, installation, machine, new_database, parser_of

PARTS = {
    "import": bulk_import.measure,
    "send": bulk_import.send,
    "route": bulk_run.route,
    "export": bulk_run.export,
    "tables": bulk_items.tables,
}


def do(options: argparse.Namespace, size: int) -> None:
    """Show the rows of one size."""
    # Ended from outside, it tidies up as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    own = nullcontext("")
    if options.database:
        own = new_database(options.database, f"bulk_{options.part}_{size}", keep=options.keep)
    with own as url, installation(url):
        PARTS[options.part](options, size)


def main() -> None:
    parser = parser_of(
        __doc__,
        sizes=("10000,100000", "numbers of items, separated by commas"),
        database=("", "URL of a PostgreSQL database; without it SQLite"),
        keep=(False, "leave the databases on PostgreSQL, and say which"),
        formats=("", "of import: csv,jsonl,zip; of export: csv,jsonl,csv+jsonl"),
        repeat=(5, "passes of tables"),
        only=("", "only lines of tables with this in their name"),
        pages=(False, "the other pages of the project"),
        search=(False, "tables with the index for searching (PostgreSQL)"),
    )
    parser.add_argument("part", choices=PARTS)
    options = parser.parse_args()
    print(f"{options.part}, {'PostgreSQL' if options.database else 'SQLite'}; {machine()}")
    Table(*Row.heads)
    for size in map(int, options.sizes.split(",")):
        child = get_context("spawn").Process(target=do, args=(options, size), daemon=True)
        child.start()
        child.join()
        if child.exitcode:
            sys.exit(f"{options.part} of {size:,} ended with status {child.exitcode}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
