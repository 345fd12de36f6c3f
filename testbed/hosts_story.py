"""A project from import to delivery on three hosts; each worker host is killed in the middle of its work."""

import io
import json
import re
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import PIL.Image
import psycopg
from psycopg import sql

from testbed.hosts import Host, until
from testbed.object_store import Bucket
from testbed.servers import status_of

PASSWORD = "a password for the tests of hosts"
SET_UP = """
import sys
from decimal import Decimal
from annotation.models import User
from annotation.projects.manage import ChoiceSpec, create_project
from testbed.factories import add_member
user = User.objects.create_user("manager", password=sys.argv[1])
choices = [ChoiceSpec("yes"), ChoiceSpec("no")]
texts = create_project(user=user, name="Texts", choices=choices, human_cost=Decimal("8"), currency="USD")
add_member(texts)
create_project(user=user, name="Pictures", choices=choices)
"""
WORLD = """
from annotation.models import Label, Project
from routing.models import Run
from testbed.hosts_story import truth
from testbed.worlds import World
project = Project.objects.get(slug="texts")
members = project.memberships.exclude(user=project.created_by).select_related("user")
keys = project.items.values_list("external_id", flat=True)
people = [member.user for member in members]
world = World(project, project.created_by, people, {key: truth(key) for key in keys}, Label.objects.count())
run = project.runs.order_by("-number").first()
"""
FINISH = "from django.db import transaction\nwith transaction.atomic():\n    world.finish()\n"
START_RUN = (
    WORLD
    + """
from decimal import Decimal
from routing.sources.manage import save_source
for number, column in enumerate(("fast", "slow"), start=1):
    params = {"label_column": column, "confidence_column": "confidence"}
    save_source(project=project, user=world.manager, name=column, backend="recorded", position=number,
                params=params, cost_per_label=Decimal(number))
world.start(epsilon=Decimal("0.05"), m=300)
"""
)
ANALYSE = WORLD + FINISH + "from routing.runs.certify import analyse\nanalyse(run=run, user=world.manager)"
ROUTE = WORLD + "from routing.runs.route import route\nroute(run=run, user=world.manager)"
DELIVER = (
    WORLD + FINISH + "run.refresh_from_db()\n"
    "from routing.delivery.deliver import deliver\ndeliver(run=run, user=world.manager)"
)


def environment_of(bucket: Bucket, database_url: str, redis_url: str, address: str) -> dict[str, str]:
    """What the hosts have in common, with the web server at this address and port."""
    return {
        **bucket.environment,
        "DATABASE_URL": database_url,
        "CELERY_BROKER_URL": redis_url,
        "DJANGO_SECRET_KEY": "the same on every host " * 3,
        "DJANGO_ALLOWED_HOSTS": address.partition(":")[0],
        "HYPAC_ENCRYPTION_KEYS": "YSBrZXkgdGhhdCBhbGwgaG9zdHMgaGF2ZSBpbiBjb20=",
        "HYPAC_JOB_STALE_SECONDS": "5",
        "HYPAC_WEB_BIND": address,
        "WEB_CONCURRENCY": "1",
    }


def truth(external_id: str) -> str:
    return "yes" if int(external_id.removeprefix("t")) % 3 else "no"


def table(rows: int) -> bytes:
    """Texts with what two models said of them: the first is wrong now and then where it is unsure."""
    lines = ["id,text,fast,slow,confidence"]
    for number in range(rows):
        true = truth(f"t{number}")
        unsure = number * 7919 % 1000 / 1000
        wrong = unsure > 0.9 and number % 2 == 0
        fast = {"yes": "no", "no": "yes"}[true] if wrong else true
        lines.append(
            f"t{number},text number {number} {'of some length ' * 10},{fast},{true},{1 - unsure:.3f}"
        )
    return ("\n".join(lines) + "\n").encode()


def picture(number: int) -> bytes:
    made = io.BytesIO()
    PIL.Image.new("RGB", (40, 40), (number * 10 % 256, 90, 120)).save(made, "PNG")
    return made.getvalue()


@dataclass
class StoryReport:
    """What happened; `stages` are (what, seconds, by which host)."""

    stages: list[tuple[str, float, str]] = field(default_factory=list)
    # Kind of job -> the hosts that began with one, in no order.
    begun: dict[str, list[str]] = field(default_factory=dict)
    rows: int = 0
    different: int = 0
    images: int = 0
    verified: bool = False
    files: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class Story:
    """`web` has the web server at `address`, and the reconciler; `one` and `two` have a worker each.
    `database_url` is as the teller of the story reaches it."""

    web: Host
    one: Host
    two: Host
    address: str
    database_url: str
    rows: int
    folder: Path
    report: StoryReport = field(default_factory=StoryReport)

    def tell(self) -> StoryReport:
        with psycopg.connect(self.database_url, autocommit=True) as self._database:
            self._begin()
            with httpx.Client(base_url=self.address, timeout=120) as self._browser:
                self._log_in()
                self._import_with_a_kill()
                self._pictures()
                self._run_with_a_kill()
                self._download()
        self.report.files = {host.name: host.files() for host in (self.web, self.one, self.two)}
        return self.report

    def _begin(self) -> None:
        began = time.monotonic()
        for host in (self.web, self.one, self.two):
            host.boot()
        self.web.manage("migrate", "--no-input", "--verbosity=0")
        self.web.python(SET_UP, PASSWORD)
        self.web.start(
            sys.executable, "-m", "gunicorn", "-c", "python:hypac_site.gunicorn", "hypac_site.wsgi"
        )
        self.web.start(sys.executable, "-m", "celery", "-A", "hypac_site", "beat", "--loglevel=warning")
        self.one.start_worker()
        until(self._healthy, "the web server")
        self._stage("start", began, self.web.name)

    def _healthy(self) -> bool:
        return status_of(f"{self.address}/readyz", seconds=20) == 200

    def _log_in(self) -> None:
        self._post("/login/", {"username": "manager", "password": PASSWORD})
        assert self._browser.get("/projects/texts/").status_code in (200, 302)

    def _post(self, path: str, data: dict[str, Any], files: dict[str, Any] | None = None) -> httpx.Response:
        page = self._browser.get(path, follow_redirects=True)
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
        assert token, page.text[:2000]
        answer = self._browser.post(
            path,
            data={**data, "csrfmiddlewaretoken": token[1]},
            files=files,
            headers={"Referer": self.address},
        )
        assert answer.status_code == 302, answer.text[:3000]
        return answer

    def _upload(self, project: str, name: str, content: bytes, form: dict[str, Any]) -> None:
        answer = self._post(f"/projects/{project}/import/", {}, files={"file": (name, content)})
        self._post(answer.headers["Location"], form)

    def _import_with_a_kill(self) -> None:
        """Host one takes the import, and is gone in the middle of it; host two does the rest."""
        began = time.monotonic()
        form = {"text_column": "text", "id_column": "id", "text_format": "plain"}
        with self._held("annotation_item"):
            self._upload("texts", "texts.csv", table(self.rows), form)
            self._wait("import", "running")
            self.two.start_worker()
            self.one.kill()
        self._wait("import", "done")
        self._stage("import, its host killed", began, self._who())
        assert self._value("SELECT count(*) FROM annotation_item") == self.rows
        # A new machine in its place: nothing was on the old one that is needed.
        self.one.boot()
        self.one.start_worker()

    def _pictures(self) -> None:
        began = time.monotonic()
        images = [picture(number) for number in range(20)]
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for number, image in enumerate(images):
                archive.writestr(f"{number}.png", image)
        self._upload("pictures", "pictures.zip", packed.getvalue(), {"text_column": ""})
        self._wait("import", "done")
        self._stage("import of images", began, self._who())
        query = "SELECT f.sha256 FROM annotation_item i JOIN annotation_storedfile f ON f.id = i.image_id"
        for (digest,) in self._database.execute(query).fetchall():
            answer = self._browser.get(f"/projects/pictures/images/{digest}/")
            self.report.images += answer.status_code == 200 and answer.content in images

    def _run_with_a_kill(self) -> None:
        """Host two is gone while the models' answers are being stored, if it is the one at work."""
        began = time.monotonic()
        with self._held("routing_prediction"):
            self.web.python(START_RUN)
            self._wait("prepare_run", "running")
            until(self._who, "a host that says what it does")
            victim = self.one if self._who() == self.one.name else self.two
            victim.kill()
        self._wait("prepare_run", "done")
        self._stage("predictions, their host killed", began, self._who())
        victim.boot()
        victim.start_worker()
        for kind, code in (("analyse_run", ANALYSE), ("route_run", ROUTE), ("deliver_run", DELIVER)):
            began = time.monotonic()
            self.web.python(code)
            self._wait(kind, "done")
            self._stage(kind, began, self._who())

    def _download(self) -> None:
        began = time.monotonic()
        page = self._browser.get("/projects/texts/deliveries/").text
        path = re.search(r'href="([^"]+\.zip)"', page)
        assert path, page[:3000]
        archive = zipfile.ZipFile(io.BytesIO(self._browser.get(path[1]).content))
        folder = self.folder / "delivery"
        archive.extractall(folder)
        self._stage("download", began, self.web.name)
        lines = next(folder.rglob("labels.jsonl")).read_text().splitlines()
        found = {entry["id"]: entry["label"] for entry in map(json.loads, lines)}
        assert len(found) == len(lines), "an item came out twice"
        self.report.rows = len(lines)
        self.report.different = sum(label != truth(key) for key, label in found.items())
        said = self.web.run(
            *(sys.executable, "-m", "routing.core.verify"),
            *(str(next(folder.rglob(name))) for name in ("certificate.json", "draw.jsonl")),
        )
        self.report.verified = bool(said)
        for host in (self.one, self.two):
            for kind in re.findall(r" Job \d+ \((\w+)\) begins", host.said()):
                self.report.begun.setdefault(kind, []).append(host.name)

    @contextmanager
    def _held(self, table_name: str) -> Iterator[None]:
        """Nobody can write to the table meanwhile: so a job is in the middle of its work."""
        with psycopg.connect(self.database_url) as connection:
            connection.execute(sql.SQL("LOCK TABLE {} IN SHARE MODE").format(sql.Identifier(table_name)))
            yield
            time.sleep(0.5)

    def _wait(self, kind: str, state: str) -> None:
        def reached() -> bool:
            query = "SELECT state, error FROM annotation_job WHERE kind = %s ORDER BY id DESC LIMIT 1"
            row = self._database.execute(query, [kind]).fetchone()
            assert row is None or row[0] not in ("failed", "cancelled"), row
            return row is not None and row[0] == state

        until(reached, f"{kind} to be {state}", seconds=400)

    def _value(self, query: str) -> Any:
        row = self._database.execute(query).fetchone()  # type: ignore[arg-type]  # of this file
        return row and row[0]

    def _who(self) -> str:
        """The host of the newest job: the one in whose log its message came last."""
        job = self._value("SELECT max(id) FROM annotation_job")
        begins: dict[str, str] = {}
        for host in (self.one, self.two):
            for line in host.said().splitlines():
                if f" Job {job} (" in line and " begins" in line:
                    begins[line[:23]] = host.name  # the time comes first
        return begins[max(begins)] if begins else ""

    def _stage(self, what: str, began: float, who: str) -> None:
        self.report.stages.append((what, time.monotonic() - began, who))
