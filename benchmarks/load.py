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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from load_clients import Crowd, Report
from load_world import doubled, lost, make
from runner import (
    Table,
    children_of,
    installation,
    machine,
    ms,
    new_database,
    parser_of,
    percentile,
    processor_time,
    served,
)

PASSWORD = "of people who exist as long as this runs"


class Server(NamedTuple):
    """`taken` tells its processor time, `batch` is what the annotators label."""

    address: str
    taken: Callable[[], float]
    slug: str
    names: list[str]
    batch: int


def parse() -> argparse.Namespace:
    parser = parser_of(
        __doc__,
        annotators=(32, "who label at once"),
        think=(1.0, "mean seconds between two answers; 0: none"),
        items=(100_000, "that wait for a label"),
        overlap=(1, "people who are asked about an item"),
        seconds=(60.0, "how long it is measured"),
        labels=(0, "stop after so many labels, if that is earlier"),
        database=("", "PostgreSQL, as a URL; without it SQLite"),
        url=("", "of a server that runs on --database"),
        processes=(2, "of gunicorn"),
        threads=(8, "of the server"),
        seed=(1, "of what the annotators do"),
    )
    parser.add_argument("--by", choices=["page", "api"], default="page")
    parser.add_argument("--web", choices=["waitress", "gunicorn"], default="waitress", help="what to start")
    return parser.parse_args()


@contextmanager
def running(options: argparse.Namespace) -> Iterator[Server]:
    with ExitStack() as stack:
        database = options.database
        if database and not options.url:
            database = stack.enter_context(new_database(database, "load"))
        stack.enter_context(installation(database))
        slug, names, batch = make(options.items, options.annotators, options.overlap, PASSWORD)
        if options.url:
            yield Server(options.url.rstrip("/"), lambda: 0.0, slug, names, batch)
            return
        # As `manage.py serve` starts it, without the worker; or as docs/deployment.md does.
        command = ["waitress", "--listen=127.0.0.1:PORT", f"--threads={options.threads}"]
        if options.web == "gunicorn":
            command = ["gunicorn", "-c", "python:hypac_site.gunicorn", "--bind=127.0.0.1:PORT"]
            command += [f"--workers={options.processes}", f"--threads={options.threads}"]
        address, pid = stack.enter_context(served("-m", *command, "hypac_site.wsgi:application"))
        yield Server(address, lambda: processor_time(pid, *children_of(pid)), slug, names, batch)


def show(options: argparse.Namespace, report: Report, doubled: int, lost: int) -> None:
    from django.db import connection

    print(
        f"{connection.vendor}, {options.items:,} items, {options.annotators} annotators who think "
        f"{options.think:g} s, by {options.by}; {machine()}"
    )
    table = Table("request", "n", "p50", "p95", "p99", "longest")
    for name, times in (("answer, and the next item", report.answers), ("claim", report.claims)):
        if times:
            table.row(
                name, f"{len(times):,}", *(ms(percentile(times, share)) for share in (0.5, 0.95, 0.99, 1))
            )
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
    with running(options) as server:
        crowd = Crowd(server.address, server.slug, PASSWORD, by=options.by, seed=options.seed)
        label = crowd.label(
            server.names,
            think=options.think,
            seconds=options.seconds,
            labels=options.labels,
            taken=server.taken,
        )
        report = asyncio.run(label)
        # What several people are asked for they hold at the same time, in different slots.
        twice = report.held_by_two if options.overlap == 1 else 0
        show(options, report, doubled(server.batch) + twice, lost(report.stored))


if __name__ == "__main__":
    main()
