"""Many annotators at once over HTTP, in a table: seconds per answer, errors, doubled and lost items.

    .venv/bin/python benchmarks/load.py [--annotators 32] [--think 1] [--items 100000] [--seconds 60]
    .venv/bin/python benchmarks/load.py --database postgres://user@host/postgres
    .venv/bin/python benchmarks/load.py --database postgres://user@host/name --url http://host:8000

Fills a project that is in the middle of a run, starts a web server, logs the annotators in, and lets each of
them label: one request stores the answer and brings the next item, as the page does it (--by page, which
holds two more items ahead) or a program (--by api). Between two answers they think, half to one and a half
times --think seconds. Now and then one loads anew, which claims: that is the second line. Other answers come
twice, at the same moment, as from a double click.

Without --database it is an SQLite file in a temporary folder. With the address of a PostgreSQL server it
makes a database of its own there and drops it at the end. With --url the server runs already, on --database,
and the project is left in it.

Afterwards the database is asked: "doubled" are items that two people labelled, or held at the same time;
"lost" are answers that the server said it stored and that are not there. The clients take their part of the
processors; how much is printed.
"""

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from load_clients import Crowd, Report  # noqa: E402
from load_server import database, server  # noqa: E402

PASSWORD = "of people who exist as long as this runs"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--annotators", type=int, default=32)
    parser.add_argument("--think", type=float, default=1.0, help="mean seconds between two answers; 0: none")
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--overlap", type=int, default=1, help="people who are asked about an item")
    parser.add_argument("--seconds", type=float, default=60, help="how long it is measured")
    parser.add_argument("--labels", type=int, default=0, help="stop after so many labels, if that is earlier")
    parser.add_argument("--by", choices=["page", "api"], default="page")
    parser.add_argument("--database", default="", help="PostgreSQL, as a URL; without it SQLite")
    parser.add_argument("--url", default="", help="of a server that runs on --database")
    parser.add_argument(
        "--web", choices=["waitress", "gunicorn"], default="waitress", help="the server to start"
    )
    parser.add_argument("--processes", type=int, default=2, help="of gunicorn (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=8, help="of the server (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def prepare(options: argparse.Namespace) -> tuple[str, list[str], int]:
    """Fill the database: the project's slug, the names of its annotators, and the batch that they label."""
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from load_world import make

    return make(options.items, options.annotators, options.overlap, PASSWORD)


@contextmanager
def running(
    options: argparse.Namespace,
) -> Iterator[tuple[str, Callable[[], float], str, list[str], int]]:
    """Address of the server, what tells its processor time, and what `prepare` gives."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hypac-load-"))
        os.environ |= {
            "HYPAC_VAR": folder,
            "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
            "HYPAC_LOG_LEVEL": "ERROR",
            "DJANGO_SECRET_KEY": "of a server that nobody reaches, for as long as this runs",
        }
        os.environ.pop("DATABASE_URL", None)
        if options.database:
            own = stack.enter_context(database(options.database, as_it_is=bool(options.url)))
            os.environ["DATABASE_URL"] = own
        slug, names, batch = prepare(options)
        if options.url:
            address, taken = options.url.rstrip("/"), lambda: 0.0
        else:
            address, taken = stack.enter_context(server(options))
        yield address, taken, slug, names, batch


def show(options: argparse.Namespace, report: Report, doubled: int, lost: int) -> None:
    from django.db import connection

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    print(
        f"{connection.vendor}, {options.items:,} items, {options.annotators} annotators who think "
        f"{options.think:g} s, by {options.by}; {platform.machine()}, {os.cpu_count()} cores, "
        f"{memory:.0f} GiB, load {os.getloadavg()[0]:.1f}\n"
    )
    print("| request | n | p50 | p95 | p99 | longest |\n|---|---:|---:|---:|---:|---:|")
    for name, times in (("answer, and the next item", report.answers), ("claim", report.claims)):
        if times:
            cells = [f"{1000 * value:.0f} ms" for value in (*report.quantiles(times), max(times))]
            print(f"| {name} | {len(times):,} | {' | '.join(cells)} |")
    count = max(1, len(report.stored))
    print(
        f"\n{len(report.stored) / report.seconds:.1f} labels/s in {report.seconds:.0f} s, {report.twice} "
        f"sent twice; errors {len(report.errors)}, doubled {doubled}, lost {lost}; processor time per label: "
        f"web server {1000 * report.server / count:.1f} ms, clients {1000 * report.processor / count:.1f} ms"
    )
    for error in report.errors[:5]:
        print(f"  {error}")


def main() -> None:
    options = parse()
    with running(options) as (address, taken, slug, names, batch):
        crowd = Crowd(address=address, slug=slug, password=PASSWORD, by=options.by, seed=options.seed)
        report = asyncio.run(
            crowd.label(
                names, think=options.think, seconds=options.seconds, labels=options.labels, taken=taken
            )
        )
        from load_world import doubled, lost

        # What several people are asked for they hold at the same time, in different slots.
        twice = report.held_by_two if options.overlap == 1 else 0
        show(options, report, doubled(batch) + twice, lost(report.stored))


if __name__ == "__main__":
    main()
