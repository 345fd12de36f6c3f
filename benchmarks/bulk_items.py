"""The parts `export` and `tables` of benchmarks/bulk.py, in the half labelled project of bulk_world.py."""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

from bulk_world import half_labelled
from runner import Row, busy, measured, middle, peak_mib, percentile

ENOUGH_SECONDS = 20
SEARCHES = {
    "none": {},
    "q=name": {"q": "t777"},
    "q=rare word": {"q": "has no such word"},
    "q=frequent word": {"q": "goes on for"},
}
FILTERS = (
    *("stage=labelled", "stage=unlabelled", "stage=waiting", "stage=stuck", "stage=disputed"),
    *("stage=unlabelable", "by=person", "by=1", "by=2", "by=nobody", "sent=2", "label=cat", "label=emu"),
    *("human=emu", "answer=1:cat", "answer=1:emu", "u_from=0.99", "u_to=0.5", "annotator=ANN", "flag=open"),
    *("comment=any", "differ=people", "differ=sources", "same=any"),
)
# The run's thresholds at a million items: about 0.05 and 0.51. One label in a hundred is an emu.
PAIRS = (
    ("stage=waiting u_from=0.97", "-u"),
    ("stage=labelled human=cat", "-label"),
    ("by=1 label=dog", "position"),
    ("by=2 u_from=0.4", "-u"),
    ("sent=person flag=open", "position"),
    ("annotator=ANN label=emu", "-label"),
    ("answer=1:cat sent=2", "name"),
    ("stage=unlabelled u_to=0.1", "u"),
    ("label=cat flag=open", "name"),
    ("stage=labelled comment=any", "-time"),
)


EXPORT_OPTIONS = {
    "formats": ("csv,jsonl,csv+jsonl", "what each job writes, of several joined by +"),
    "repeat": (1, "jobs per line; the middle one counts"),
}
TABLES_OPTIONS = {
    "repeat": (5, "passes"),
    "only": ("", "only lines with this in their name"),
    "pages": (False, "the other pages of the project"),
    "search": (False, "with the index for searching (PostgreSQL)"),
}
Steps = dict[str, Callable[[], Any]]


def export(options: argparse.Namespace) -> None:
    """The delivery of a run, written by the real job and kept in the storage.

    A text of 160 characters is among the imported columns. A line is one job with the formats that it names;
    a rate counts items, whatever the number of files. The time at work is the worker's: the database's server
    works beside it.
    """
    project, access = half_labelled(options.size)
    run = project.runs.get(number=1)
    for formats in options.formats.split(","):
        middle(delivered(run, access.user, options.size, formats) for _ in range(options.repeat)).show()


def delivered(run: Any, user: Any, size: int, formats: str) -> Row:
    from annotation.jobs import jobs
    from annotation.models import Job
    from routing.delivery.deliver import deliver
    from routing.models import Delivery

    job = deliver(run=run, user=user, formats=formats.split("+"))
    with measured(formats, size) as row:
        jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, job.error
    delivery = Delivery.objects.get(pk=job.result["delivery"])
    assert delivery.rows == size
    sizes = {entry.name: entry.file.size for entry in delivery.files.select_related("file")}
    files = ", ".join(f"{name} {sizes[name] / 1e6:,.0f} MB" for name in sizes if name.startswith("labels."))
    row.note += f"; {files}"
    return row


def tables(options: argparse.Namespace) -> None:
    """A page of the table of items in every order, with every filter and ten pairs of them.

    It asks for what the page shows: the rows of one page with their delivered labels, and apart from that the
    bounded count, which the page fetches when it is there. "next" and "previous" are the pages behind and
    before an item in the middle. Times are p95 of the passes. "busy" is the most processor time of one pass,
    of this process and of the database server's (if it runs here): on a machine that does other work it tells
    more than the time that passes. With `--pages` the other pages of the project, asked for as by a browser,
    the page on which people label with the longest guidelines and the longest item in Markdown, what programs
    watch, and a backup.
    """
    from django.core.management import call_command

    project, access = half_labelled(options.size)
    if options.search:
        call_command("search_index", "--create")
    for name, steps in (pages if options.pages else table_pages)(project, access):
        if options.only in name:
            line(name, steps, options).show()


def line(name: str, steps: Steps, options: argparse.Namespace) -> Row:
    """Each step in every pass: the p95 of the slowest, and the most processor time of one."""
    times: dict[str, list[float]] = {step: [] for step in steps}
    most, note = 0.0, ""
    for _ in range(options.repeat):
        for step, ask in steps.items():
            began, at_work = time.perf_counter(), busy()
            note = ask() or note
            times[step].append(time.perf_counter() - began)
            if step != "count":
                most = max(most, busy() - at_work)
        if sum(map(sum, times.values())) > ENOUGH_SECONDS:
            break
    late = {step: percentile(taken, 0.95) for step, taken in times.items()}
    found = [f"busy {1000 * most:.0f} ms", *(f"{step} {1000 * late[step]:.0f} ms" for step in late), note]
    slowest = max(taken for step, taken in late.items() if step != "count")
    return Row(name, options.size, 0, slowest, peak_mib(), ", ".join(filter(None, found)))


def table_pages(project: Any, access: Any) -> Iterator[tuple[str, Steps]]:
    from routing.items.counts import table_total
    from routing.items.sorts import NAMES, SORTS, cursor_of, place_of
    from routing.items.table import table_page
    from routing.visibility import view_permission

    annotator = str(project.memberships.filter(role="annotator").first().user_id)

    def read(text: str) -> dict[str, str]:
        parts = (part.partition("=") for part in text.split())
        return {name: value.replace("ANN", annotator) for name, _, value in parts}

    asked = [(f"order {name}", {}, name) for name in NAMES]
    asked += [(f"filter {name}", chosen, "position") for name, chosen in SEARCHES.items()]
    asked += [(f"filter {name}", read(name), "position") for name in FILTERS]
    asked += [(f"{names}, {sort}", read(names), sort) for names, sort in PAIRS]
    size = project.items.count()
    halfway = project.items.get(position=min(size // 200 * 100 + 99, size - 1))
    permission = view_permission(project, access)
    for name, filters, sort in asked:
        order = SORTS[sort.removeprefix("-")]
        key = place_of(permission, sort, halfway.pk)
        if key is None:
            rows = order.rows(permission).order_by(*order.key).values_list(*order.key)
            key = rows[rows.count() // 2]

        def page(filters: Any = filters, sort: str = sort, **place: Any) -> str:
            found = table_page(
                view_permission(project, access), filters=filters, sort=sort, count=False, **place
            )
            return "not looked at all" if found.cut else ""

        def total(filters: Any = filters, sort: str = sort) -> None:
            table_total(view_permission(project, access), filters=filters, sort=sort)

        place = cursor_of(key)
        steps = {"first": page, "next": partial(page, after=place), "previous": partial(page, before=place)}
        yield name, {**steps, "count": total}


def pages(project: Any, access: Any) -> Iterator[tuple[str, Steps]]:
    from django.conf import settings
    from django.core.management import call_command
    from django.test import Client
    from django.urls import reverse

    settings.HYPAC_METRICS_TOKEN = "of this benchmark"
    client = Client(raise_request_exception=True, headers={"Authorization": "Bearer of this benchmark"})
    client.force_login(access.user)
    annotator = project.memberships.filter(role="annotator").first().user_id
    own = {"item": [project.items.get(position=3).pk], "member": [annotator], "run": [1]}
    names = "overview items item review review_count review_flags agreement members member jobs import_upload"
    names += " audit project_manage sources plan runs run deliveries"
    addresses = {"project_list": reverse("project_list")}
    addresses |= {name: reverse(name, args=[project.slug, *own.get(name, ())]) for name in names.split()}
    addresses["items, searched"] = reverse("items", args=[project.slug]) + "?q=t777"
    addresses |= {"readyz": "/readyz", "metrics": "/metrics"}
    addresses["labelling page, longest"] = reverse("annotate", args=[longest(access.user)])
    addresses["overview, poll"] = addresses["overview"]
    for name, address in addresses.items():

        def get(address: str = address, polls: bool = name.endswith("poll")) -> str:
            answer = client.get(address, headers={"HX-Request": "true"} if polls else {})
            size = len(b"".join(answer) if answer.streaming else answer.content)
            assert answer.status_code in (200, 286), (address, answer.status_code)
            return f"{size / 1000:.0f} kB"

        yield name, {"page": get}

    copies = (str(settings.VAR_DIR.parent / f"copy {number}") for number in count())
    yield "backup", {"command": lambda: call_command("backup", next(copies), verbosity=0)}


def longest(user: Any) -> str:
    """A project with the longest guidelines, whose one item is as long as one shown as Markdown may be."""
    from annotation.common import limits
    from annotation.labelling import queue
    from testbed.factories import make_items, make_project

    text = "Some **bold** text with `code` and a [link](https://x.org).\n\n- one\n- two\n\n" * 1000
    project = make_project(user, guidelines=text[: limits.GUIDELINES], text_format="markdown")
    items = make_items(project, [text[: limits.MARKDOWN]])
    queue.create_batch(project=project, item_ids=[items[0].pk], blind=False, priority=1, entropy=1)
    return project.slug
