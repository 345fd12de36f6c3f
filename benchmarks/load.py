"""Many annotators at once over HTTP, in a table: seconds per answer, errors, doubled and lost items.

    .venv/bin/python benchmarks/load.py [--annotators 32] [--think 1] [--items 100000] [--seconds 60]
    .venv/bin/python benchmarks/load.py --database postgres://user@host/postgres

Fills a project that is in the middle of a run, starts a web server, logs the annotators in, and lets each of
them label as the page does it: one request stores the answer and brings the next item, two more are held
ahead. Between two answers they think, half to one and a half times --think seconds. Now and then one loads
anew, which claims: that is the second line. Other answers come twice, at the same moment, as from a double
click. Without --database, the address of a PostgreSQL server, it is SQLite; either is dropped at the end.

Afterwards the database is asked: "doubled" are items that two people labelled, or held at the same time;
"lost" are answers that the server said it stored and that are not there. The clients take their part of the
processors; how much is printed.
"""

import argparse
import asyncio
from contextlib import ExitStack
from functools import partial

from load_clients import Crowd, Report
from load_world import doubled, lost, make
from runner import (
    Table,
    children_of,
    installation,
    machine,
    ms,
    new_database,
    options_of,
    percentile,
    processor_time,
    served,
)

PASSWORD = "of people who exist as long as this runs"


def show(options: argparse.Namespace, report: Report, doubled: int, lost: int) -> None:
    from django.db import connection

    print(
        f"{connection.vendor}, {options.items:,} items, {options.annotators} annotators who think "
        f"{options.think:g} s; {machine()}"
    )
    table = Table("request", "n", "p50", "p95", "p99", "longest")
    for name, times in (("answer, and the next item", report.answers), ("claim", report.claims)):
        shares = [ms(percentile(times, share)) for share in (0.5, 0.95, 0.99, 1) if times]
        table.row(name, f"{len(times):,}", *shares)
    count = max(1, len(report.stored))
    print(
        f"\n{len(report.stored) / report.seconds:.1f} labels/s in {report.seconds:.0f} s, {report.twice} "
        f"sent twice; errors {len(report.errors)}, doubled {doubled}, lost {lost}; processor time per label: "
        f"web server {1000 * report.server / count:.1f} ms, clients {1000 * report.processor / count:.1f} ms"
    )
    for error in report.errors[:5]:
        print(f"  {error}")


def main() -> None:
    options = options_of(
        __doc__,
        annotators=(32, "who label at once"),
        think=(1.0, "mean seconds between two answers; 0: none"),
        items=(100_000, "that wait for a label"),
        seconds=(60.0, "how long it is measured"),
        database=("", "PostgreSQL, as a URL; without it SQLite"),
        threads=(8, "of the server"),
        seed=(1, "of what the annotators do"),
    )
    with ExitStack() as stack:
        database = stack.enter_context(new_database(options.database, "load")) if options.database else ""
        stack.enter_context(installation(database))
        slug, names, batch = make(options.items, options.annotators, PASSWORD)
        # As `manage.py serve` starts it, without the worker.
        command = ["waitress", "--listen=127.0.0.1:PORT", f"--threads={options.threads}"]
        address, server = stack.enter_context(served("-m", *command, "hypac_site.wsgi:application"))
        crowd = Crowd(address, slug, PASSWORD, options.seed, options.think)
        taken = partial(processor_time, server, *children_of(server))
        report = asyncio.run(crowd.label(names, options.seconds, taken))
        show(options, report, doubled(batch) + report.held_by_two, lost(report.stored))


if __name__ == "__main__":
    main()
