"""How long others wait for a page while passwords are being tried, in a table.

    .venv/bin/python benchmarks/login_flood.py [--attackers 16] [--others 4] [--seconds 20]

Starts `manage.py serve` with an empty SQLite database, behind a proxy as far as it knows. Others are logged
in, ask for a page and think a tenth of a second. Attackers try a password of another name each time, without
a pause: none, from one address, and each time from another address. "hashed" is how many attempts were
answered as wrong, "refused" as too many. The attackers run in a process of their own and take their part of
the processors.
"""

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import httpx
from runner import Table, installation, machine, ms, parser_of, percentile, served

NOBODY, ONE, MANY = "nobody", "from one address", "from many addresses"


class Page(NamedTuple):
    """A page of a server, and the session of somebody who may see it."""

    address: str
    path: str
    session: str


def together(count: int, work: Callable[[int], list[float]]) -> list[float]:
    with ThreadPoolExecutor(max(1, count)) as pool:
        return [one for found in pool.map(work, range(count)) for one in found]


def attack(
    address: str, kind: str, attackers: int, seconds: float, counts: "multiprocessing.Queue[int]"
) -> None:
    """Put how many attempts were answered as wrong, and how many as too many."""
    until = time.monotonic() + seconds

    def try_passwords(number: int) -> list[float]:
        found: list[float] = []
        with httpx.Client(base_url=address, timeout=120, trust_env=False) as client:
            client.get("/login/")
            token = client.cookies["csrftoken"]
            while time.monotonic() < until:
                tries = len(found)
                seen = f"10.{number}.{tries >> 8 & 255}.{tries & 255}" if kind == MANY else "192.0.2.1"
                form = {"csrfmiddlewaretoken": token, "username": f"{number}-{tries}", "password": "wrong"}
                answer = client.post("/login/", data=form, headers={"X-Forwarded-For": seen})
                found.append(answer.status_code)
        return found

    found = together(attackers, try_passwords)
    counts.put(found.count(200))
    counts.put(found.count(429) + found.count(503))


def wait_for_pages(page: Page, others: int, seconds: float) -> list[float]:
    """Seconds that each page took."""
    until = time.monotonic() + seconds

    def look(_number: int) -> list[float]:
        times = []
        headers = {"Cookie": f"sessionid={page.session}", "X-Forwarded-For": "192.0.2.9"}
        with httpx.Client(base_url=page.address, timeout=120, headers=headers, trust_env=False) as client:
            while time.monotonic() < until:
                began = time.perf_counter()
                client.get(page.path).raise_for_status()
                times.append(time.perf_counter() - began)
                time.sleep(0.1)
        return times

    return together(others, look)


def measure(options: argparse.Namespace, kind: str, page: Page) -> tuple[list[float], int, int]:
    """Seconds of the others' pages, attempts that were hashed, and that were refused."""
    counts: multiprocessing.Queue[int] = multiprocessing.Queue()
    attackers = 0 if kind == NOBODY else options.attackers
    # A second longer at both ends than is measured.
    process = multiprocessing.Process(
        target=attack, args=(page.address, kind, attackers, options.seconds + 2, counts)
    )
    process.start()
    time.sleep(1)
    times = wait_for_pages(page, options.others, options.seconds)
    hashed, refused = counts.get(timeout=180), counts.get(timeout=180)
    process.join()
    return times, hashed, refused


def page_of(address: str) -> Page:
    from django.test import Client

    from testbed.factories import make_project

    project = make_project()
    client = Client()
    client.force_login(project.created_by)
    return Page(address, f"/projects/{project.slug}/", client.cookies["sessionid"].value)


def main() -> None:
    options = parser_of(
        __doc__,
        attackers=(16, "who try passwords"),
        others=(4, "who look at pages"),
        seconds=(20.0, "of each of the three measurements"),
    ).parse_args()
    print(f"{options.attackers} attackers, {options.others} others, {options.seconds:g} s each; {machine()}")
    with installation(HYPAC_BEHIND_PROXY="1"), served() as (address, _process):
        page = page_of(address)
        table = Table("attackers", "pages of others", "p50", "times", "p95", "times", "hashed", "refused")
        quiet: list[float] = []
        for kind in (NOBODY, ONE, MANY):
            times, hashed, refused = measure(options, kind, page)
            found = [statistics.median(times), percentile(times, 0.95)]
            quiet = quiet or found
            cells = [
                cell
                for now, then in zip(found, quiet, strict=True)
                for cell in (ms(now), f"{now / then:.1f}")
            ]
            table.row(kind, f"{len(times):,}", *cells, f"{hashed:,}", f"{refused:,}")


if __name__ == "__main__":
    main()
