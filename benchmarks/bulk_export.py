"""Export: the delivery of a run, written by the real job and kept in the storage.

The project is that of items.py (items_world.py): two models, a twentieth of the items sent to people, and
here a text of 200 characters among the imported columns. A line is one job with the formats that it names; a
rate counts items, whatever the number of files. The processor time is the worker's: the database's server
works beside it.
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any

from bulk_tools import Row, measured

FORMATS = "csv,jsonl,csv+jsonl"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--formats", default=FORMATS, help="what each job writes, of several joined by +")
    parser.add_argument("--repeat", type=int, default=1, help="jobs per line; the middle one counts")


def run(options: argparse.Namespace) -> Iterator[Row]:
    from items_world import make

    project, access = make(options.size)
    lengthen_texts(project)
    yield from rows(project, access.user, options)


def rows(project: Any, user: Any, options: argparse.Namespace) -> Iterator[Row]:
    delivering = project.runs.get(number=1)
    for formats in options.formats.split(","):
        found = [delivered(delivering, user, options.size, formats) for _ in range(options.repeat)]
        found.sort(key=lambda row: row.seconds)
        yield found[len(found) // 2]


def delivered(run: Any, user: Any, size: int, formats: str) -> Row:
    from annotation.jobs import running as jobs
    from annotation.models import Job
    from routing.delivery.deliver import deliver
    from routing.models import Delivery

    job = deliver(run=run, user=user, formats=formats.split("+"))
    begun = time.process_time()
    with measured(formats, size) as row:
        jobs.run(job.pk)
    processor = (time.process_time() - begun) / size * 1e6
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    delivery = Delivery.objects.get(pk=job.result["delivery"])
    assert delivery.rows == size
    sizes = {entry.name: entry.file.size for entry in delivery.files.select_related("file")}
    files = ", ".join(f"{name} {sizes[name] / 1e6:,.0f} MB" for name in sizes if name.startswith("labels."))
    row.note = f"{processor:.1f} µs of processor time per item; {files}"
    return row


def lengthen_texts(project: Any) -> None:
    """What was imported of each item gets a text of 200 characters, different in each."""
    from django.db import connection

    text = "'It goes on for a while, and \"so\" on. ' || substr(hex, 1, 162)"
    if connection.vendor == "postgresql":
        digits = "repeat(md5(id::text), 6)"
        data = f"jsonb_set(data, '{{text}}', to_jsonb({text}))"
    else:
        digits = "hex(zeroblob(60)) || printf('%060d', id * 7919)"
        data = f"json_set(data, '$.text', {text})"
    data = data.replace("hex, 1", f"{digits}, 1")
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE annotation_item SET data = {data} WHERE project_id = %s", [project.pk])  # noqa: S608
        cursor.execute("VACUUM ANALYZE annotation_item" if connection.vendor == "postgresql" else "ANALYZE")
