"""Many annotators at once over HTTP, in a table: seconds per answer, errors, doubled and lost items.

    .venv/bin/python benchmarks/load.py [--annotators 32] [--think 1] [--items 100000] [--seconds 60]
    .venv/bin/python benchmarks/load.py --database postgres://user@host/postgres
    .venv/bin/python benchmarks/load.py --annotators 4 --think 0.1 --attackers 16

Fills a project that is in the middle of a run, starts a web server, logs the annotators in, and lets each of
them label as the page does it: one request stores the answer and brings the next item, two more are held
ahead. Between two answers they think, half to one and a half times --think seconds. Now and then one loads
anew, which claims: that is the second line. Other answers come twice, at the same moment, as from a double
click. Without --database, the address of a PostgreSQL server, it is SQLite; either is dropped at the end.

Afterwards the database is asked: "doubled" are items that two people labelled, or held at the same time;
"lost" are answers that the server said it stored and that are not there. The clients take their part of the
processors; how much is printed.

With --attackers so many others, in a process of their own, try a password of another name each time, from
another address, without a pause. "hashed" is how many attempts were answered as wrong, "refused" as too many.
"""

import argparse
import asyncio
from collections.abc import Collection
from contextlib import ExitStack
from functools import partial

import numpy as np
from load_clients import Crowd, Report
from runner import (
    Table,
    analyze,
    children_of,
    installation,
    machine,
    ms,
    new_database,
    options_of,
    processor_time,
    served,
)

PASSWORD = "of people who exist as long as this runs"
MODELLED = 200
TEXT = "Item {} has a text of some two hundred characters. " + "It goes on for a while. " * 6


def make(size: int, people: int) -> tuple[str, list[str], int]:
    """A run whose thresholds send `size` items to people: slug, names of the annotators, the batch's id.

    Answers to it go the whole way: they are paid, and each asks whether the run is complete.
    """
    from django.contrib.auth.hashers import make_password
    from django.db import connection

    from annotation.labelling import queue
    from annotation.models import User, WorkItem
    from routing.models import Run
    from testbed.factories import add_member, make_items
    from testbed.worlds import make_world

    world = make_world(MODELLED)
    run = world.routed(m=80)
    waiting = WorkItem.objects.filter(batch__project=world.project, state=WorkItem.State.OPEN)
    waiting.update(state=WorkItem.State.WITHDRAWN)
    items = make_items(world.project, [TEXT.format(number) for number in range(size)])
    item_ids = [item.pk for item in items]
    batch = queue.create_batch(project=world.project, item_ids=item_ids, blind=False, priority=5, entropy=1)
    Run.objects.filter(pk=run.pk).update(routed_batch=batch, state=Run.State.LABELLING)
    secret = make_password(PASSWORD)  # which takes its time, once
    names = [f"{world.project.slug}-{number}" for number in range(people)]
    for name in names:
        add_member(world.project, user=User.objects.create(username=name, password=secret))
    analyze()
    connection.close()
    return world.project.slug, names, batch.pk


def doubled(batch: int) -> int:
    """Items of the batch with more labels than work items that are done, or two from one person."""
    from django.db.models import Count

    from annotation.models import Label, WorkItem

    labels = Label.objects.filter(work_item__batch=batch, version=1)
    done = WorkItem.objects.filter(batch=batch, state=WorkItem.State.DONE).count()
    by_one = labels.values("item", "annotator").annotate(n=Count("pk")).filter(n__gt=1).count()
    by_slot = labels.values("work_item").annotate(n=Count("pk")).filter(n__gt=1).count()
    return by_one + by_slot + abs(labels.count() - done)


def lost(keys: Collection[str]) -> int:
    """How many of these answers have no label."""
    from annotation.models import Label

    return len(set(keys) - set(Label.objects.values_list("idempotency_key", flat=True)))


def show(options: argparse.Namespace, report: Report, doubled: int, lost: int) -> None:
    from django.db import connection

    print(
        f"{connection.vendor}, {options.items:,} items, {options.annotators} annotators who think "
        f"{options.think:g} s; {machine()}"
    )
    table = Table("request", "n", "p50", "p95", "p99", "longest")
    for name, times in (("answer, and the next item", report.answers), ("claim", report.claims)):
        shares = [ms(float(np.quantile(times, share))) for share in (0.5, 0.95, 0.99, 1) if times]
        table.row(name, f"{len(times):,}", *shares)
    count = max(1, len(report.stored))
    print(
        f"\n{len(report.stored) / report.seconds:.1f} labels/s in {report.seconds:.0f} s, {report.twice} "
        f"sent twice; errors {len(report.errors)}, doubled {doubled}, lost {lost}; processor time per label: "
        f"web server {1000 * report.server / count:.1f} ms, clients {1000 * report.processor / count:.1f} ms"
    )
    if tried := report.attempts:
        print(f"passwords tried: {tried[200]:,} hashed, {tried[429] + tried[503]:,} refused")
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
        attackers=(0, "who try passwords meanwhile"),
    )
    with ExitStack() as stack:
        database = stack.enter_context(new_database(options.database, "load")) if options.database else ""
        stack.enter_context(installation(database, HYPAC_BEHIND_PROXY="1"))
        slug, names, batch = make(options.items, options.annotators)
        # As `manage.py serve` starts it, without the worker.
        command = ["waitress", "--listen=127.0.0.1:PORT", f"--threads={options.threads}"]
        address, server = stack.enter_context(served("-m", *command, "hypac_site.wsgi:application"))
        crowd = Crowd(address, slug, PASSWORD, options.seed, options.think, options.attackers)
        taken = partial(processor_time, server, *children_of(server))
        report = asyncio.run(crowd.label(names, options.seconds, taken))
        show(options, report, doubled(batch) + report.held_by_two, lost(report.stored))


if __name__ == "__main__":
    main()
