"""Tables: a page of the table of items in every order and with every filter, as items.py measures it.

With `--pages` the other pages of the project in place of these: each is asked for as a browser does. Times
are p95 of the passes, "busy" is the most processor time of one pass (see items.py); nothing is counted per
second.
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any

from bulk_tools import Row, peak_mib


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeat", type=int, default=5, help="passes")
    parser.add_argument("--only", default="", help="only lines with this in their name")
    parser.add_argument("--pages", action="store_true", help="the other pages of the project")
    parser.add_argument("--search", action="store_true", help="with the index for searching (PostgreSQL)")


def run(options: argparse.Namespace) -> Iterator[Row]:
    from django.core.management import call_command
    from items_world import found, make

    project, access = found(options.size)
    if project is None:
        project, access = make(options.size)
        if options.search:
            call_command("search_index", "--create")
    yield from pages(project, access, options) if options.pages else tables(project, access, options)


def tables(project: Any, access: Any, options: argparse.Namespace) -> Iterator[Row]:
    from items import measured_lines, p95

    for line in measured_lines(project, access, options.repeat, options.only):
        slowest = max(p95(line.times[kind]) for kind in ("page", "next", "previous"))
        note = f"busy {line.busy:.0f} ms, count {p95(line.times['count']):.0f} ms {line.cut}"
        yield Row(line.name, options.size, 0, slowest / 1000, peak_mib(), note.strip())


def pages(project: Any, access: Any, options: argparse.Namespace) -> Iterator[Row]:
    from django.conf import settings
    from django.db import connection
    from django.test import Client
    from items import p95, processor

    settings.ALLOWED_HOSTS = ["testserver"]
    client = Client(raise_request_exception=True)
    client.force_login(access.user)
    for name, address, headers in addresses(project):
        if options.only not in name:
            continue
        times, busy, size = [], 0.0, 0
        for _ in range(options.repeat):
            start, before = time.perf_counter(), processor(connection)
            answer = client.get(address, headers=headers)
            size = len(b"".join(answer) if answer.streaming else answer.content)
            times.append(time.perf_counter() - start)
            busy = max(busy, processor(connection) - before)
            assert answer.status_code in (200, 286), (name, answer.status_code)
            if sum(times) > 30:
                break
        note = f"busy {busy * 1000:.0f} ms, {size / 1000:.0f} kB"
        yield Row(name, options.size, 0, p95(times), peak_mib(), note)


def addresses(project: Any) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(name, address, headers) of what is asked for."""
    from django.urls import reverse

    from annotation.models import Membership

    of = [project.slug]
    one = project.items.get(position=3)
    annotator = project.memberships.filter(role=Membership.Role.ANNOTATOR).first()
    poll = {"HX-Request": "true"}
    yield "list of projects", reverse("project_list"), {}
    yield "overview", reverse("overview", args=of), {}
    yield "overview, poll", reverse("overview", args=of), poll
    yield "items", reverse("items", args=of), {}
    yield "items, searched", reverse("items", args=of) + "?q=t777", {}
    yield "item", reverse("item", args=[*of, one.pk]), {}
    yield "review", reverse("review", args=of), {}
    yield "review, count", reverse("review_count", args=of), poll
    yield "flags", reverse("review_flags", args=of), {}
    yield "agreement", reverse("agreement", args=of), {}
    yield "people", reverse("members", args=of), {}
    yield "person", reverse("member", args=[*of, annotator.user_id]), {}
    yield "imports and other work", reverse("jobs", args=of), {}
    yield "import", reverse("import_upload", args=of), {}
    yield "audit trail", reverse("audit", args=of), {}
    yield "project, managing", reverse("project_manage", args=of), {}
    yield "sources", reverse("sources", args=of), {}
    yield "plan", reverse("plan", args=of), {}
    yield "runs", reverse("runs", args=of), {}
    yield "run", reverse("run", args=[*of, 1]), {}
    yield "deliveries", reverse("deliveries", args=of), {}
