"""The part `tables` of benchmarks/bulk.py: what pages of the half labelled project of bulk_world.py cost."""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from bulk_world import half_labelled
from runner import Row, busy, peak_mib

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
Steps = dict[str, Callable[[], Any]]


def tables(options: argparse.Namespace, size: int) -> None:
    """Asks for what the page shows: the rows of one page with their delivered labels, and apart from that the
    bounded count, which the page fetches when it is there. "next" and "previous" are the pages behind and
    before an item in the middle. Times are p95 of the passes. "busy" is the most processor time of one pass,
    of this process and of the database server's (if it runs here): on a machine that does other work it tells
    more than the time that passes. With `--pages` the other pages of the project, asked for as by a browser,
    what programs watch, and a backup.
    """
    from django.core.management import call_command

    from annotation.permissions import access_to

    world = half_labelled(size)
    access = access_to(world.manager, world.project.slug)
    if options.search:
        call_command("search_index", "--create")
    for name, steps in (pages if options.pages else table_pages)(world.project, access):
        if options.only in name:
            line(name, steps, size, options.repeat).show()


def line(name: str, steps: Steps, size: int, repeat: int) -> Row:
    """Each step in every pass: the p95 of the slowest, and the most processor time of one."""
    times: dict[str, list[float]] = {step: [] for step in steps}
    most, note = 0.0, ""
    for _ in range(repeat):
        for step, ask in steps.items():
            began, at_work = time.perf_counter(), busy()
            note = ask() or note
            times[step].append(time.perf_counter() - began)
            if step != "count":
                most = max(most, busy() - at_work)
        if sum(map(sum, times.values())) > ENOUGH_SECONDS:
            break
    late = {step: float(np.quantile(taken, 0.95)) for step, taken in times.items()}
    found = [f"busy {1000 * most:.0f} ms", *(f"{step} {1000 * late[step]:.0f} ms" for step in late), note]
    slowest = max(taken for step, taken in late.items() if step != "count")
    return Row(name, size, 0, slowest, peak_mib(), ", ".join(filter(None, found)))


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
