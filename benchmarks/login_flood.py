"""How long others wait for a page while passwords are being tried, in a table.

    .venv/bin/python benchmarks/login_flood.py [--attackers 16] [--others 4] [--seconds 20]
    .venv/bin/python benchmarks/login_flood.py --checkout ../older    # the same against other code

Starts `manage.py serve` of the checkout on a loopback port, with an empty SQLite database in a temporary
folder, behind a proxy as far as it knows. Others are logged in, ask for a page and think a tenth of a second.
Attackers try a password of another name each time, without a pause: none, from one address, and each time
from another address. "hashed" is how many attempts were answered as wrong, "refused" as too many. The
attackers run in a process of their own and take their part of the processors.
"""

import argparse
import http.client
import multiprocessing
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from testbed.servers import free_port  # noqa: E402

NOBODY, ONE, MANY = "nobody", "from one address", "from many addresses"
SET_UP = """
import django; django.setup()
from django.test import Client
from annotation.models import User
from annotation.services.projects import ChoiceSpec, create_project
user = User.objects.create_user("owner")
project = create_project(user=user, name="Shop", choices=[ChoiceSpec("yes"), ChoiceSpec("no")])
client = Client()
client.force_login(user)
print(project.slug, client.cookies["sessionid"].value)
"""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--attackers", type=int, default=16)
    parser.add_argument("--others", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20, help="of each of the three measurements")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="the code to serve")
    return parser.parse_args()


@contextmanager
def serving(checkout: Path) -> Iterator[tuple[int, str, str]]:
    """Port, the path of a page, and the session of somebody who may see it."""
    with tempfile.TemporaryDirectory(prefix="hypac-flood-") as folder:
        port = free_port()
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("HYPAC_", "DJANGO_"))
        }
        environment = {
            **kept,
            "HYPAC_VAR": folder,
            "HYPAC_BEHIND_PROXY": "1",
            "HYPAC_LOG_LEVEL": "ERROR",
            "DJANGO_SETTINGS_MODULE": "hypac_site.settings",
            "PYTHONPATH": str(checkout),
        }
        environment.pop("DATABASE_URL", None)
        command = [sys.executable, "manage.py", "serve", "--port", str(port)]
        process = subprocess.Popen(
            command, cwd=checkout, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _wait_until_healthy(port, process)
            made = subprocess.run(
                [sys.executable, "-c", SET_UP],
                cwd=checkout,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            slug, session = made.stdout.split()[-2:]
            yield port, f"/projects/{slug}/", session
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _wait_until_healthy(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        if process.poll() is not None:
            sys.exit("The server ended while it started.")
        try:
            if _ask(http.client.HTTPConnection("127.0.0.1", port, timeout=5), "GET", "/healthz")[0] == 200:
                return
        except OSError:
            time.sleep(0.2)
    sys.exit("The server did not answer within three minutes.")


def _ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: str = "", **headers: str
) -> tuple[int, http.client.HTTPMessage]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body or None, named)
    answer = connection.getresponse()
    answer.read()
    return answer.status, answer.headers


def attack(
    port: int, kind: str, attackers: int, seconds: float, counts: "multiprocessing.Queue[int]"
) -> None:
    """Put how many attempts were answered as wrong, and how many as too many."""
    until = time.monotonic() + seconds
    found: list[int] = []

    def try_passwords(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        _, headers = _ask(connection, "GET", "/login/")
        token = str(headers["Set-Cookie"]).partition("csrftoken=")[2].partition(";")[0]
        tries = 0
        while time.monotonic() < until:
            tries += 1
            seen = f"10.{number}.{tries >> 8 & 255}.{tries & 255}" if kind == MANY else "192.0.2.1"
            form = {"csrfmiddlewaretoken": token, "username": f"{number}-{tries}", "password": "wrong"}
            status, _ = _ask(
                connection,
                "POST",
                "/login/",
                urlencode(form),
                Cookie=f"csrftoken={token}",
                Content_Type="application/x-www-form-urlencoded",
                X_Forwarded_For=seen,
            )
            found.append(status)

    threads = [threading.Thread(target=try_passwords, args=(number,)) for number in range(attackers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts.put(found.count(200))
    counts.put(found.count(429) + found.count(503))


def wait_for_pages(port: int, path: str, session: str, others: int, seconds: float) -> list[float]:
    """Seconds that each page took."""
    until = time.monotonic() + seconds
    times: list[float] = []

    def look() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while time.monotonic() < until:
            began = time.perf_counter()
            status, _ = _ask(
                connection, "GET", path, Cookie=f"sessionid={session}", X_Forwarded_For="192.0.2.9"
            )
            times.append(time.perf_counter() - began)
            assert status == 200, status
            time.sleep(0.1)

    threads = [threading.Thread(target=look) for _ in range(others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def measure(options: argparse.Namespace, kind: str, server: tuple[int, str, str]) -> tuple[float, float]:
    """Print a row; the median and the 95th percentile in seconds."""
    port, path, session = server
    counts: multiprocessing.Queue[int] = multiprocessing.Queue()
    attackers = 0 if kind == NOBODY else options.attackers
    # A second longer at both ends than is measured.
    process = multiprocessing.Process(
        target=attack, args=(port, kind, attackers, options.seconds + 2, counts)
    )
    process.start()
    time.sleep(1)
    times = wait_for_pages(port, path, session, options.others, options.seconds)
    hashed, refused = counts.get(timeout=180), counts.get(timeout=180)
    process.join()
    median, late = statistics.median(times), statistics.quantiles(times, n=20)[-1]
    cells = [kind, f"{len(times):,}", f"{1000 * median:.0f} ms", f"{1000 * late:.0f} ms"]
    print("|", " | ".join([*cells, f"{hashed:,}", f"{refused:,}"]), "|", flush=True)
    return median, late


def main() -> None:
    options = parse()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    print(
        f"{options.attackers} attackers, {options.others} others, {options.seconds:g} s each; "
        f"{platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB, load {os.getloadavg()[0]:.1f}\n"
    )
    print("| attackers | pages of others | p50 | p95 | hashed | refused |\n|---|---:|---:|---:|---:|---:|")
    with serving(options.checkout.resolve()) as server:
        quiet = measure(options, NOBODY, server)
        for kind in (ONE, MANY):
            found = measure(options, kind, server)
            ratios = [f"{one / other:.1f}" for one, other in zip(found, quiet, strict=True)]
            print(f"  {kind}: {' and '.join(ratios)} times what they are without", file=sys.stderr)


if __name__ == "__main__":
    main()
