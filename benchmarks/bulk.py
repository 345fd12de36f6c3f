"""Large projects, in a table: how fast each part of the work is, and how much memory it takes.

    .venv/bin/python benchmarks/bulk.py import [--sizes 10000,100000]                       (SQLite)
    .venv/bin/python benchmarks/bulk.py export --database postgres://root@127.0.0.1/postgres --sizes 1000000

`--help` after the name of a part lists its options. Each size is done by a process of its own, with a new
database: on PostgreSQL one is made beside the one that is named, and dropped afterwards. Memory is the most
that the process at work held at once; that of the database server is not in it.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

import bulk_import
import bulk_items
import bulk_route
from runner import SETTINGS, Row, Table, machine, new_database, set_up

# A part adds options of its own and gives the rows of one size, `options.size`, in a process in which Django
# is set up. `options.folder` is its own and goes away afterwards.
PARTS = {
    "import": bulk_import.Import,
    "route": bulk_route.RouteRun,
    "export": bulk_items.Export,
    "tables": bulk_items.Tables,
}
MARK = "row: "


def parse() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parts = made.add_subparsers(dest="part", required=True, metavar="PART")
    for name, kind in PARTS.items():
        about = kind.__doc__ or ""
        part = parts.add_parser(
            name,
            help=about.partition("\n")[0],
            description=about,
            formatter_class=argparse.RawTextHelpFormatter,
        )
        part.add_argument("--sizes", default="10000,100000", help="numbers of items, separated by commas")
        part.add_argument("--database", default="", help="URL of a PostgreSQL database; default: SQLite")
        part.add_argument("--folder", default="", help="where SQLite and files lie; default: a temporary one")
        part.add_argument("--keep", action="store_true", help="leave databases and files, and say where")
        part.add_argument("--child", type=int, default=0, dest="size", help=argparse.SUPPRESS)
        kind.add_options(part)
    return made.parse_args()


def rows_of(options: argparse.Namespace, size: int) -> Iterator[Row]:
    """Do one size in a process of its own; what it prints besides its rows is passed on."""
    folder = Path(tempfile.mkdtemp(prefix=f"hypac-bulk-{options.part}-", dir=options.folder or None))
    own = nullcontext(f"sqlite:///{folder}/bulk.sqlite3")
    if options.database.startswith("postgres"):
        own = new_database(options.database, f"bulk_{options.part}_{size}", keep=options.keep)
    try:
        with own as url:
            arguments = [*sys.argv[1:], f"--child={size}", f"--folder={folder}"]
            work = subprocess.Popen(
                [sys.executable, __file__, *arguments],
                env={**os.environ, **SETTINGS, "HYPAC_VAR": str(folder / "var"), "DATABASE_URL": url},
                stdout=subprocess.PIPE,
                text=True,
            )
            assert work.stdout
            try:
                for line in work.stdout:
                    if line.startswith(MARK):
                        yield Row(**json.loads(line.removeprefix(MARK)))
                    else:
                        print(line, end="", file=sys.stderr, flush=True)
            except BaseException:
                work.kill()  # the database is about to go
                raise
            if work.wait():
                sys.exit(f"{options.part} of {size:,} ended with status {work.returncode}")
    finally:
        if options.keep:
            print(f"kept: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    options = parse()
    if options.size:
        set_up()
        for row in PARTS[options.part]().rows(options):
            print(MARK + json.dumps(asdict(row)), flush=True)
        return
    # Ended from outside, it tidies up as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    where = "PostgreSQL" if options.database.startswith("postgres") else "SQLite"
    print(f"{options.part}, {where}; {machine()}")
    table = Table("what", "items", "seconds", "per second", "peak memory", "")
    for size in map(int, options.sizes.split(",")):
        for row in rows_of(options, size):
            rate = f"{row.count / row.seconds:,.0f}" if row.count and row.seconds else ""
            peak = f"{row.peak_mib:.0f} MiB"
            table.row(row.what, f"{row.size:,}", f"{row.seconds:.2f}", rate, peak, row.note)


if __name__ == "__main__":
    main()
