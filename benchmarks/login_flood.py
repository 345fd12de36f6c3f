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
from typing import Any

import httpx
from runner import Table, installation, machine, ms, options_of, percentile, served

NOBODY, ONE, MANY = "nobody", "from one address", "from many addresses"


def together(count: int, work: Callable[[int], list[Any]]) -> list[Any]:
    with ThreadPoolExecutor(max(1, count)) as pool:
        return [one for found in pool.map(work, range(count)) for one in found]


def attack(address: str, kind: str, attackers: int, seconds: float) -> list[int]:
    """The status of each attempt."""
    until = time.monotonic() + seconds

    def try_passwords(number: int) -> list[int]:
        found: list[int] = []
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

    return together(attackers, try_passwords)


def wait_for_pages(address: str, path: str, session: str, others: int, seconds: float) -> list[float]:
    """Seconds that each page took."""
    until = time.monotonic() + seconds
    headers = {"Cookie": f"sessionid={session}", "X-Forwarded-For": "192.0.2.9"}

    def look(_number: int) -> list[float]:
        times = []
        with httpx.Client(base_url=address, timeout=120, headers=headers, trust_env=False) as client:
            while time.monotonic() < until:
                began = time.perf_counter()
                client.get(path).raise_for_status()
                times.append(time.perf_counter() - began)
                time.sleep(0.1)
        return times

    return together(others, look)


def measure(
    options: argparse.Namespace, kind: str, address: str, page: tuple[str, str]
) -> tuple[list[float], list[int]]:
    """Seconds of the others' pages, and the status of each attempt."""
    attackers = 0 if kind == NOBODY else options.attackers
    with multiprocessing.Pool(1) as pool:
        # A second longer at both ends than is measured.
        attempts = pool.apply_async(attack, (address, kind, attackers, options.seconds + 2))
        time.sleep(1)
        times = wait_for_pages(address, *page, options.others, options.seconds)
        return times, attempts.get(timeout=180)


def make_page() -> tuple[str, str]:
    """The path of a page, and the session of somebody who may see it."""
    from django.test import Client

    from testbed.factories import make_project

    project = make_project()
    client = Client()
    client.force_login(project.created_by)
    return f"/projects/{project.slug}/", client.cookies["sessionid"].value


def main() -> None:
    options = options_of(
        __doc__,
        attackers=(16, "who try passwords"),
        others=(4, "who look at pages"),
        seconds=(20.0, "of each of the three measurements"),
    )
    print(f"{options.attackers} attackers, {options.others} others, {options.seconds:g} s each; {machine()}")
    with installation(HYPAC_BEHIND_PROXY="1"), served() as (address, _process):
        page = make_page()
        table = Table("attackers", "pages of others", "p50", "times", "p95", "times", "hashed", "refused")
        quiet: list[float] = []
        for kind in (NOBODY, ONE, MANY):
            times, attempts = measure(options, kind, address, page)
            found = [statistics.median(times), percentile(times, 0.95)]
            quiet = quiet or found
            cells = []
            for now, then in zip(found, quiet, strict=True):
                cells += [ms(now), f"{now / then:.1f}"]
            refused = attempts.count(429) + attempts.count(503)
            table.row(kind, f"{len(times):,}", *cells, f"{attempts.count(200):,}", f"{refused:,}")


if __name__ == "__main__":
    main()
