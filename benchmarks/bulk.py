"""Large projects, in a table: how fast each part of the work is, and how much memory it takes.

    .venv/bin/python benchmarks/bulk.py import [--sizes 10000,100000]                       (SQLite)
    .venv/bin/python benchmarks/bulk.py export --database postgres://root@127.0.0.1/postgres --sizes 1000000

`--help` after the name of a part lists its options. Each size is done by a process of its own, with a new
database: on PostgreSQL one is made beside the one that is named, and dropped afterwards. Memory is the most
that the process at work held at once; that of the database server is not in it.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import bulk_import
import bulk_items
import bulk_route
from runner import SETTINGS, Row, Table, add_options, machine, new_database, set_up

# What shows the rows of one size, `options.size`, in a process in which Django is set up, and its options.
PARTS = {
    "import": (bulk_import.measure, bulk_import.OPTIONS),
    "send": (bulk_import.send, {}),
    "route": (bulk_route.measure, bulk_route.OPTIONS),
    "export": (bulk_items.export, bulk_items.EXPORT_OPTIONS),
    "tables": (bulk_items.tables, bulk_items.TABLES_OPTIONS),
}
SHARED = {
    "sizes": ("10000,100000", "numbers of items, separated by commas"),
    "database": ("", "URL of a PostgreSQL database; without it SQLite"),
    "keep": (False, "leave databases and files, and say where"),
}


def parse() -> argparse.Namespace:
    style = argparse.RawTextHelpFormatter
    made = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parts = made.add_subparsers(dest="part", required=True, metavar="PART")
    for name, (work, options) in PARTS.items():
        about = work.__doc__ or ""
        part = parts.add_parser(name, help=about.partition("\n")[0], description=about, formatter_class=style)
        add_options(part, **SHARED, **options)
        part.add_argument("--child", type=int, default=0, dest="size", help=argparse.SUPPRESS)
    return made.parse_args()


def do(options: argparse.Namespace, size: int) -> None:
    """Do one size in a process of its own."""
    folder = Path(tempfile.mkdtemp(prefix=f"hypac-bulk-{options.part}-"))
    own = nullcontext(f"sqlite:///{folder}/bulk.sqlite3")
    if options.database:
        own = new_database(options.database, f"bulk_{options.part}_{size}", keep=options.keep)
    try:
        with own as url:
            command = [sys.executable, *sys.argv, f"--child={size}"]
            environment = {**os.environ, **SETTINGS, "HYPAC_VAR": str(folder / "var"), "DATABASE_URL": url}
            if status := subprocess.run(command, env=environment, check=False).returncode:
                sys.exit(f"{options.part} of {size:,} ended with status {status}")
    finally:
        if options.keep:
            print(f"kept: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    options = parse()
    if options.size:
        set_up()
        PARTS[options.part][0](options)
        return
    # Ended from outside, it tidies up as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"{options.part}, {'PostgreSQL' if options.database else 'SQLite'}; {machine()}")
    Table(*Row.heads)
    for size in map(int, options.sizes.split(",")):
        do(options, size)


if __name__ == "__main__":
    main()
