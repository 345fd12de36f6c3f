"""The processes of docs/compose/compose.yaml, started without Docker by the commands that stand there:
gunicorn with several processes, a worker, beat, on PostgreSQL and Redis. A file goes in through the pages, as
from behind the proxy.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from testbed import compose
from testbed.servers import free_port
from tests.services.conftest import ROOT

HOST = "labels.test"
TOKEN = "a-token-of-the-tests"
PASSWORD = "correct-horse-battery"
ROWS = 50
SET_UP = f"""
import django; django.setup()
from annotation.models import User
from annotation.projects.manage import ChoiceSpec, create_project
user = User.objects.create_user("manager", password={PASSWORD!r})
create_project(user=user, name="Shop", choices=[ChoiceSpec("yes"), ChoiceSpec("no")])
"""
VALUES = compose.KEYS | {"HYPAC_HOST": HOST, "HYPAC_METRICS_TOKEN": TOKEN}


class Processes:
    """Services of the file as processes, each with its log."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.environment = environment
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def command(self, service: str) -> tuple[list[str], dict[str, str]]:
        entry = compose.services(ROOT)[service]
        program, *rest = entry["command"]
        path = Path(sys.executable).with_name(program)
        assert path.exists(), f"the command {program} of {service}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HYPAC_", "DJANGO_", "CELERY_"))}
        own = compose.environment(entry, VALUES)
        more = {"PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "hypac_site.settings"}
        return [str(path), *rest], {**kept, **own, **more, **self.environment}

    def run(self, service: str) -> None:
        command, environment = self.command(service)
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, service: str) -> None:
        command, environment = self.command(service)
        with (self.folder / f"{service}.log").open("ab") as log:
            self.running[service] = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def log(self, service: str) -> str:
        return (self.folder / f"{service}.log").read_text()

    def stop(self) -> dict[str, int]:
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        codes = {}
        for service, process in self.running.items():
            try:
                codes[service] = process.wait(180)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                codes[service] = -9
        self.running = {}
        return codes


class Browser:
    """Somebody in front of the proxy: HTTPS to there, what the proxy adds from there on."""

    def __init__(self, address: str) -> None:
        self.client = httpx.Client(base_url=address, timeout=60)
        self.cookies: dict[str, str] = {}

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {
            "Host": HOST,
            "Origin": f"https://{HOST}",
            "X-Forwarded-Proto": "https",
            "X-Forwarded-For": "198.51.100.7",
            "X-Request-ID": "of-the-proxy-4711",
            "X-CSRFToken": self.cookies.get("csrftoken", ""),
            "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
        }
        answer = self.client.request(method, path, headers=headers, **options)
        for line in answer.headers.get_list("set-cookie"):
            name, value = line.partition(";")[0].split("=", 1)
            self.cookies[name] = value
        return answer


@pytest.fixture
def site(postgres_url: str, redis_url: str, tmp_path: Path) -> Iterator[Processes]:
    bind = f"127.0.0.1:{free_port()}"
    processes = Processes(
        tmp_path,
        DATABASE_URL=postgres_url,
        CELERY_BROKER_URL=redis_url,
        HYPAC_VAR=str(tmp_path / "var"),
        HYPAC_WEB_BIND=bind,
        TMPDIR=str(tmp_path),
        HYPAC_API_WRONG_TOKEN_RATE="20/hour",
    )
    yield processes
    processes.stop()


def until(check: Callable[[], bool], processes: Processes, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        for service, process in processes.running.items():
            assert process.poll() is None, f"{service} ended:\n{processes.log(service)[-3000:]}"
        assert time.monotonic() < deadline, processes.log("web")[-3000:]
        time.sleep(0.1)


def processes_of(log: str) -> set[int]:
    """Those that wrote a line about a request."""
    whole = log.rpartition("\n")[0]  # the last line may still be on its way
    lines = [json.loads(line) for line in whole.splitlines() if line.startswith("{")]
    return {line["process"] for line in lines if line["logger"] == "hypac.requests"}


def test_a_file_goes_in_through_the_pages_of_a_whole_installation(site: Processes, postgres_url: str) -> None:
    site.run("migrate")
    subprocess.run([sys.executable, "-c", SET_UP], cwd=ROOT, env=site.command("web")[1], check=True)
    for service in ("web", "worker", "beat"):
        site.start(service)
    browser = Browser(f"http://{site.environment['HYPAC_WEB_BIND']}")

    def is_ready() -> bool:
        try:
            return browser.ask("GET", "/readyz").status_code == 200
        except httpx.TransportError:
            return False

    until(is_ready, site)

    assert browser.ask("GET", "/login/").status_code == 200
    answer = browser.ask("POST", "/login/", data={"username": "manager", "password": PASSWORD})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert answer.headers["X-Request-ID"] == "of-the-proxy-4711"
    rows = "id,text\n" + "".join(f"{number},text {number}\n" for number in range(ROWS))
    answer = browser.ask("POST", "/projects/shop/import/", files={"file": ("rows.csv", rows.encode())})
    form = {"text_column": "text", "id_column": "id", "format": "csv_comma", "text_format": "plain"}
    answer = browser.ask("POST", answer.headers["Location"], data=form)
    job = answer.headers["Location"].rstrip("/").rsplit("/", 1)[1]

    def job_is_done() -> bool:
        return bool(browser.ask("GET", f"/api/v1/projects/shop/jobs/{job}/").json()["state"] == "done")

    until(job_is_done, site)
    with psycopg.connect(postgres_url) as database:
        assert database.execute("SELECT count(*) FROM annotation_item").fetchone() == (ROWS,)

    # All processes count together, requests as well as how often an address sends wrong tokens.
    def with_a_new_connection(path: str) -> int:
        browser.client.close()
        browser.client = httpx.Client(base_url=browser.client.base_url, timeout=60)
        return browser.ask("GET", path).status_code

    def with_a_wrong_token() -> int:
        with httpx.Client(base_url=browser.client.base_url, timeout=60) as other:
            wrong = {"Host": "web", "X-Forwarded-Proto": "https", "Authorization": f"Token {'0' * 64}"}
            return other.get("/api/v1/projects/", headers=wrong).status_code

    def two_processes_answered() -> bool:
        with_a_new_connection("/login/")
        return len(processes_of(site.log("web"))) == 2

    until(two_processes_answered, site)
    assert [with_a_new_connection("/join/no-such-token/") for _ in range(30)] == [404] * 30
    answers = [with_a_wrong_token() for _ in range(30)]
    assert (answers.count(401), answers.count(429)) == (20, 10)

    def metrics() -> httpx.Response:
        return browser.client.get("/metrics", headers={"Host": "web", "Authorization": f"Bearer {TOKEN}"})

    answer = metrics()
    assert answer.status_code == 200
    asked = r'hypac_http_request_seconds_count\{method="GET",status="4xx",view="join_link"\} 30.0'
    assert re.search(asked, answer.text)

    # A process that is replaced goes on with the figures of the one before it, and leaves no file of its own.
    before = processes_of(site.log("web"))
    os.kill(min(before), signal.SIGTERM)

    def another_process_answered() -> bool:
        with_a_new_connection("/login/")
        return len(processes_of(site.log("web")) - before) == 1

    until(another_process_answered, site)
    assert re.search(asked, metrics().text)
    figures = list(site.folder.glob("hypac-metrics-*/*.db"))
    assert len(figures) == 2, figures
    assert 'hypac_jobs{kind="import",state="done"} 1.0' in answer.text

    assert site.stop() == {"web": 0, "worker": 0, "beat": 0}
    web = [json.loads(line) for line in site.log("web").splitlines() if line.startswith("{")]
    login = next(line for line in web if line["message"].startswith("POST /login/ 302"))
    assert (login["request_id"], login["address"]) == ("of-the-proxy-4711", "198.51.100.7")
    worker = [json.loads(line) for line in site.log("worker").splitlines() if line.startswith("{")]
    assert any("annotation.run_job" in line["message"] for line in worker)
    assert PASSWORD not in site.log("web") + site.log("worker") + site.log("beat")
