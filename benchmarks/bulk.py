"""Large projects, in a table: how fast each part of the work is, and how much memory it takes.

    .venv/bin/python benchmarks/bulk.py import [--sizes 10000,100000]                       (SQLite)
    .venv/bin/python benchmarks/bulk.py export --database postgres://root@127.0.0.1/postgres --sizes 1000000

The parts are `import`, `route`, `export` and `tables`, each in a file bulk_<part>.py beside this one;
`--help` after the name of a part lists its options. Each size is done by a process of its own, with a new
database: on PostgreSQL one is made beside the one that is named, and dropped afterwards. Memory is the most
that the process at work held at once; that of the database server is not in it.
"""

import argparse
import importlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from bulk_tools import Row  # noqa: E402 - found beside this file, wherever it is started

# A part is a module with `run(options) -> Iterable[Row]`: it is called in a process with Django set up and
# the database migrated, for `options.size` items; `options.folder` is its own and goes away afterwards.
# `add_options(parser)`, where it is there, adds options of its own. Django is imported inside of `run`.
PARTS = {
    "import": "bulk_import",
    "route": "bulk_route",
    "export": "bulk_export",
    "tables": "bulk_tables",
}
MARK = "row: "


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parts = made.add_subparsers(dest="part", required=True, metavar="PART")
    for name, module_name in PARTS.items():
        if not (ROOT / "benchmarks" / f"{module_name}.py").exists():
            continue
        module = importlib.import_module(module_name)
        about = (module.__doc__ or "").strip()
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
        if hasattr(module, "add_options"):
            module.add_options(part)
    return made


def child(options: argparse.Namespace) -> None:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    for row in importlib.import_module(PARTS[options.part]).run(options):
        print(MARK + json.dumps(asdict(row)), flush=True)


def rows_of(options: argparse.Namespace, size: int) -> Iterator[Row]:
    """Do one size in a process of its own; what it prints besides its rows is passed on."""
    folder = Path(tempfile.mkdtemp(prefix=f"hypac-bulk-{options.part}-", dir=options.folder or None))
    try:
        with _database(options, size, folder) as url:
            environment = os.environ | {
                "HYPAC_VAR": str(folder / "var"),
                "DATABASE_URL": url,
                "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
                "HYPAC_LOG_LEVEL": "ERROR",
                "DJANGO_SECRET_KEY": "of a server that nobody reaches, for as long as this runs",
            }
            arguments = [*sys.argv[1:], f"--child={size}", f"--folder={folder}"]
            work = subprocess.Popen(
                [sys.executable, __file__, *arguments], env=environment, stdout=subprocess.PIPE, text=True
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


@contextmanager
def _database(options: argparse.Namespace, size: int, folder: Path) -> Iterator[str]:
    """The URL of a new database."""
    if not options.database or options.database.startswith("sqlite"):
        yield f"sqlite:///{folder}/bulk.sqlite3"
        return
    import psycopg
    from psycopg.sql import SQL, Identifier

    name = f"hypac_bulk_{options.part}_{size}_{os.getpid()}"
    url = urlunsplit(urlsplit(options.database)._replace(path=f"/{name}"))
    with psycopg.connect(options.database, autocommit=True) as server:
        server.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
        try:
            yield url
        finally:
            if options.keep:
                print(f"kept: {url}", file=sys.stderr)
            else:
                server.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


def main() -> None:
    options = parser().parse_args()
    if options.size:
        child(options)
        return
    # Ended from outside, it tidies up as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    where = "PostgreSQL" if options.database.startswith("postgres") else "SQLite"
    print(f"{options.part}, {where}; {platform.machine()}, {os.cpu_count()} cores")
    print("| what | items | seconds | per second | peak memory | |")
    print("|---|---:|---:|---:|---:|---|", flush=True)
    for size in map(int, options.sizes.split(",")):
        for row in rows_of(options, size):
            rate = f"{row.count / row.seconds:,.0f}" if row.count and row.seconds else ""
            cells = (
                row.what,
                f"{row.size:,}",
                f"{row.seconds:.2f}",
                rate,
                f"{row.peak_mib:.0f} MiB",
                row.note,
            )
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
