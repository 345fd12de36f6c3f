"""A bound, a loss, a score, an importer, a delivery format and a webhook event of one's own: each is one
module and one line of its registry, and is then in forms, in the API and its schema, and does its work.

Task types and backends: tests/annotation/projects/test_one_new_task_type.py and
tests/routing/sources/backends/test_one_new_backend.py.
"""

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, ClassVar

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from drf_spectacular.generators import SchemaGenerator

from annotation.common import events
from annotation.common.events import EVENTS
from annotation.imports.formats.base import Entries, ReadThrough, Row
from annotation.imports.formats.registry import IMPORTERS
from annotation.jobs import jobs
from annotation.models import Job, WebhookDelivery
from routing.core.bounds import BOUNDS
from routing.core.bounds.hypergeometric import Hypergeometric
from routing.core.losses import LOSSES, Loss
from routing.core.losses.base import known_parameters
from routing.core.registry import Registry
from routing.core.scores import SCORES
from routing.core.scores.base import ItemScore, Score, refuse_unknown
from routing.core.verify import main as verify
from routing.delivery.deliver import deliver
from routing.delivery.formats import FORMATS
from routing.delivery.formats.base import Files, RowWriter
from routing.labels.page import DeliveryInfo, Page
from routing.models import Delivery
from testbed.factories import make_project
from testbed.worlds import files_of, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
URL = "https://example.org/hook"


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The one line of a registry, for one test."""

    def line(registry: Registry[Any] | dict[str, Any], entry: Any, name: str = "") -> None:
        entries = registry._entries if isinstance(registry, Registry) else registry
        monkeypatch.setitem(entries, name or entry.name, entry)

    return line


def logged_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def shown(client: Client, name: str, project: Any) -> str:
    return html.unescape(client.get(reverse(name, args=[project.slug])).content.decode())


def schema() -> str:
    return json.dumps(SchemaGenerator().get_schema(public=True))


class Careful(Hypergeometric):
    name: ClassVar[str] = "careful"
    title: ClassVar[str] = "A careful count"
    summary: ClassVar[str] = "As exact as the exact one."


@dataclass(frozen=True)
class FirstLetter:
    name: str = "first_letter"
    bound: float = 1.0
    binary: bool = True

    def __call__(self, label: str, prediction: str) -> float:
        return float(label[:1] != prediction[:1])


@dataclass(frozen=True)
class FirstLetterKind:
    name: str = "first_letter"
    title: str = "The same first letter"
    summary: str = "Right if both begin alike."
    suits: tuple[str, ...] = ("single_choice",)
    parameters: ClassVar[Mapping[str, str]] = {}

    def make(self, params: Mapping[str, Any]) -> Loss:
        known_parameters(self, params)
        return FirstLetter()


@dataclass(frozen=True)
class Halved:
    name: str = "halved"
    title: str = "Half the doubt"
    summary: str = "Half of what is missing from full confidence."
    reads: tuple[str, ...] = ("confidence",)
    parameters: ClassVar[Mapping[str, str]] = {}

    def make(self, params: Mapping[str, Any]) -> Score:
        refuse_unknown(self.name, params, self.parameters)
        return lambda prediction: ItemScore((1 - float(str(prediction["confidence"]))) / 2)


@pytest.mark.parametrize(
    ("registry", "entry", "field"),
    [(BOUNDS, Careful(), "bound"), (LOSSES, FirstLetterKind(), "loss"), (SCORES, Halved(), "score")],
)
def test_a_bound_a_loss_or_a_score_is_offered_and_carries_a_run(
    add, registry, entry, field, tmp_path
) -> None:
    add(registry, entry)
    world = make_world(200, error=(lambda u: 0.2 * u,), costs=("1",))
    client = logged_in(world.manager)
    page = shown(client, "plan", world.project)
    assert entry.title in page
    assert entry.summary in page
    offered = client.get(reverse("api_plan", args=[world.project.slug])).json()["options"][field]
    assert {"name": entry.name, "title": entry.title}.items() <= offered[-1].items()
    run = world.complete(m=80, **{field: entry.name})
    assert (getattr(run, field), run.certificate.certified) == (entry.name, True)
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    for name, content in files_of(Delivery.objects.get()).items():
        (tmp_path / name).write_bytes(content)
    assert verify([str(tmp_path / "certificate.json"), str(tmp_path / "draw.jsonl")]) == 0


class Cards(ReadThrough):
    """Texts with a line of percent signs between them, below a line that says what the file is."""

    name = "cards"
    title = "Cards"
    holds_images = False
    reads_text = is_streamed = True
    endings = (".cards",)
    begins_with = (b"%CARDS",)

    def _entries(self, file: IO[bytes], file_name: str) -> Entries:
        file.seek(0)
        texts = file.read().decode().split("%%")[1:]
        return Entries(iter(enumerate(texts, 1)), lambda entry: self._row(file_name, *entry))

    def _row(self, file_name: str, number: int, text: str) -> Row:
        return Row(f"card {number}", f"{file_name}:{number}", {"text": text.strip()})


def test_an_importer_is_found_by_its_files_and_offered_for_others(add) -> None:
    add(IMPORTERS, Cards())
    project = make_project()
    client = logged_in(project.created_by)
    assert ".cards" in shown(client, "import_upload", project)
    upload = reverse("import_upload", args=[project.slug])
    content = b"%CARDS\n%%one\n%%two\n"
    there = client.post(upload, {"file": SimpleUploadedFile("x.txt", content)}).url
    page = client.get(there).content.decode()
    assert '<option value="cards" selected>Cards (so it seems)</option>' in page
    assert client.post(there, {"format": "cards", "text_column": ["text"]}).status_code == 302
    job = project.jobs.get()
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.DONE, [*job.problems.values_list("message", flat=True)]
    assert list(project.items.order_by("position").values_list("text", flat=True)) == ["one", "two"]


def test_an_importer_reads_what_a_command_is_given(add, tmp_path) -> None:
    add(IMPORTERS, Cards())
    project = make_project()
    path = tmp_path / "more.txt"
    path.write_text("%CARDS\n%%three")
    call_command("import_items", project.slug, str(path), user=project.created_by.username)
    jobs.run(project.jobs.get().pk)
    assert project.items.get().text == "three"


class NamesAlone(RowWriter):
    """The ids of the items, one on each line."""

    file_name: ClassVar[str] = "names.txt"
    summary: ClassVar[Any] = "Who is in it, and nothing else."
    media_type: ClassVar[str] = "text/plain"

    def __init__(self, files: Files, info: DeliveryInfo) -> None:
        super().__init__()
        self._out = files.open(self.file_name, self.media_type)

    def write(self, page: Page) -> None:
        self._out.write("".join(f"{name}\n" for name in page.columns["external_id"]).encode())

    def close(self) -> None:
        """Every page is written at once."""


def test_a_delivery_format_is_offered_and_written(add) -> None:
    add(FORMATS, NamesAlone, "names")
    world = make_world(100, error=(lambda u: 0.1 * u,), costs=("1",))
    run = world.complete(m=40)
    client = logged_in(world.manager)
    page = shown(client, "deliveries", world.project)
    assert 'value="names"' in page
    assert "Who is in it, and nothing else." in page
    assert '"names"' in schema()
    there = reverse("api_deliver", args=[world.project.slug, run.number])
    body = json.dumps({"formats": ["names"]})
    assert client.post(there, body, content_type="application/json").status_code == 202
    world.do("deliver_run")
    names = files_of(Delivery.objects.get())["names.txt"].decode().split()
    assert sorted(names) == sorted(world.truth)


def test_a_webhook_event_is_offered_and_told(add) -> None:
    add(EVENTS, "The tea is ready", "tea.ready")
    project = make_project()
    client = logged_in(project.created_by)
    new = reverse("webhook_new", args=[project.slug])
    page = shown(client, "webhooks", project)
    assert 'value="tea.ready"' in page
    assert "The tea is ready" in page
    assert '"tea.ready"' in schema()
    client.post(new, {"url": URL, "description": "", "events": ["tea.ready"]})
    body = json.dumps({"url": f"{URL}/2", "events": ["tea.ready"]})
    there = reverse("api_webhooks", args=[project.slug])
    assert client.post(there, body, content_type="application/json").status_code == 201
    assert events.emit(project=project, event="tea.ready", data={"cups": 2}) == 2
    assert set(WebhookDelivery.objects.values_list("event", flat=True)) == {"tea.ready"}
