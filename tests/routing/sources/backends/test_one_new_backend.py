"""A backend of one's own is one module and one line of the registry: the rest reads what it declares."""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.urls import reverse

from annotation.errors import InputError
from annotation.jobs import jobs
from annotation.models import Item
from routing.delivery.deliver import deliver
from routing.models import Delivery, Source
from routing.sources.backends import BACKENDS, SourceContext, backend_classes
from routing.sources.backends.base import Answer, Answered, Backend, digest, in_chunks
from routing.sources.backends.params import KEY, Address, Choice, Part, Secret, Text, Whole, read_values
from routing.sources.manage import save_source
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import CHOICES, World

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
JSON = "application/json"
ELSEWHERE = {"backends", "core", "demo"}
"""Folders that may name a backend: their own, scores that are called alike, and projects that use them."""
PATIENCE = Part("Its patience")


class FirstWord(Backend):
    """Answers with the first word of a text, and is unsure, and wrong, of every so many items."""

    title = "The first word of a text"
    note = "It reads no further than the first space."
    params = (
        Text("model", "Who reads", "Any name.", required=True, strip=True),
        KEY,
        Whole("every", "Unsure of every so many", low=2, high=50, default=4, part=PATIENCE),
        Choice("case", "Letters", choices=(("lower", "Small"), ("upper", "Large")), part=PATIENCE),
    )
    told_by = ("model",)
    never_lost = True
    default_score = "recorded"
    fields = frozenset({"confidence"})
    usage: frozenset[str] = frozenset()
    in_flight = 100

    def __init__(self, params: dict[str, Any], context: SourceContext) -> None:
        self.values = read_values(self.params, params)

    def fingerprint(self) -> str:
        return digest(first_word=self.values)

    def predict(self, items: Iterable[Item]) -> Iterator[list[Answered]]:
        for chunk in in_chunks(items, self.in_flight):
            yield [(item, self._answer(item)) for item in chunk]

    def _answer(self, item: Item) -> Answer:
        word, number = item.text.split()
        unsure = int(number) % self.values["every"] == 0
        return Answer("emu" if unsure else word, raw={"confidence": 0.1 if unsure else 0.9})


class AskedElsewhere(FirstWord):
    """The same at an address, which is called as its maker likes."""

    params = (*FirstWord.params, Address("endpoint", "Where it is asked"))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "first_word", f"{__name__}.FirstWord")


@pytest.fixture
def world() -> World:
    """Items whose first word is true."""
    project = make_project(choices=CHOICES, human_cost=Decimal(8), currency="USD")
    texts = [f"{CHOICES[index % 2]} {index}" for index in range(200)]
    items = make_items(project, texts)
    truth = {item.external_id: text.split()[0] for item, text in zip(items, texts, strict=True)}
    return World(project, project.created_by, [add_member(project)], truth)


def test_an_address_is_held_by_its_rule_whatever_it_is_called(world, settings, monkeypatch) -> None:
    settings.HYPAC_PRIVATE_HOSTS = []
    monkeypatch.setitem(BACKENDS, "asked_elsewhere", f"{__name__}.AskedElsewhere")

    def saved(endpoint: str, **more: Any) -> Source:
        fields = {
            "project": world.project,
            "user": world.manager,
            "name": "Reader",
            "cost_per_label": Decimal(1),
        }
        params = {"model": "Ann", "endpoint": endpoint}
        return save_source(backend="asked_elsewhere", params=params, **fields, **more)

    for inside in ("http://127.0.0.1:9/", "http://[::1]/", "http://10.0.0.1/v1", "ftp://example.org"):
        with pytest.raises(InputError) as refused:
            saved(inside)
        assert refused.value.where == "endpoint"
    source = saved("https://ours.example.org/v1", api_key="k")
    assert saved("https://ours.example.org/v2", source=source).api_key  # the same server
    with pytest.raises(InputError, match="entered for another server"):
        saved("https://theirs.example.org/v1", source=source)


def posted(**changes: str) -> dict[str, str]:
    fields = {"name": "Reader", "backend": "first_word", "first_word_model": "Ann", "cost_per_label": "1"}
    return fields | {"cost_function": "flat", **changes}


def added(client: Any, world: World, **changes: str) -> Source:
    client.force_login(world.manager)
    answer = client.post(reverse("source_new", args=[world.project.slug]), posted(**changes))
    assert answer.status_code == 302, answer.context["form"].errors
    return world.project.sources.get()


def test_the_form_of_a_new_source_offers_it_and_asks_for_its_params(client, world) -> None:
    client.force_login(world.manager)
    address = reverse("source_new", args=[world.project.slug])
    shown = client.get(address).content.decode()
    assert '<option value="first_word">The first word of a text</option>' in shown
    assert 'data-value="first_word">It reads no further than the first space.' in shown
    # Another backend has a param of that name, which is something else.
    for label in ("Who reads", "Unsure of every so many", "Letters", "Its patience"):
        assert label in shown
    wrong = client.post(address, posted(first_word_model="", every="1"))
    assert wrong.context["form"].errors == {"first_word_model": ["This is needed."]}
    wrong = client.post(address, posted(every="1"))
    assert wrong.context["form"].errors == {"every": ["This must be a number from 2 to 50."]}
    source = added(client, world, every="5", case="upper", api_key="k")
    assert source.params == {"model": "Ann", "every": 5, "case": "upper"}
    assert source.api_key
    form = client.get(reverse("source_edit", args=[world.project.slug, source.pk])).context["form"]
    assert [form[name].value() for name in ("first_word_model", "every", "case")] == ["Ann", 5, "upper"]
    listed = client.get(reverse("sources", args=[world.project.slug])).content.decode()
    assert 'The first word of a text <span class="muted small-text"><bdi>Ann</bdi>' in listed


def test_the_api_and_the_command_take_it(client, world, capsys) -> None:
    client.force_login(world.manager)
    address = reverse("api_sources", args=[world.project.slug])
    fields = {"name": "Reader", "backend": "first_word", "cost_per_label": "1"}
    refused = client.post(address, {**fields, "params": {"model": "Ann", "evry": 3}}, content_type=JSON)
    assert refused.status_code == 400
    assert "it knows model, every, case" in refused.content.decode()
    answer = client.post(address, {**fields, "params": {"model": "Ann", "every": 3}}, content_type=JSON)
    assert answer.status_code == 201
    body = answer.json()
    assert (body["backend"], body["params"], body["prompt"]) == (
        "first_word",
        {"model": "Ann", "every": 3},
        None,
    )
    given = [world.project.slug, "--user", world.manager.username, "--name", "Second"]
    call_command("source", *given, "--backend", "first_word", "--param", "model=Bob")
    assert world.project.sources.get(name="Second").params == {"model": "Bob"}
    with pytest.raises((CommandError, InputError), match="first_word"):
        call_command("source", *given, "--backend", "last_word")


def test_it_is_tried(client, world) -> None:
    source = added(client, world)
    listed = client.get(reverse("sources", args=[world.project.slug])).content.decode()
    page = reverse("source_try", args=[world.project.slug, source.pk])
    assert page in listed
    client.post(page)
    jobs.run(world.project.jobs.get(kind="try_source").pk)
    shown = client.get(page).content.decode()
    assert shown.count("try-row") == 5
    assert "5 of 5" in shown


def test_a_run_with_it_goes_all_the_way(client, world) -> None:
    added(client, world)
    run = world.complete(m=80, epsilon=Decimal("0.2"))
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    delivery = Delivery.objects.get(run=run)
    assert (delivery.rows, delivery.blanks) == (200, 0)
    assert run.routes.filter(position=1).exists()


def test_nothing_else_names_a_backend() -> None:
    names = re.compile(rf"""["'](?:{"|".join(BACKENDS)})["']""")
    root = Path(settings.BASE_DIR)
    files = [
        file
        for folder in ("annotation", "routing", "templates", "static")
        for file in (root / folder).rglob("*.*")
        if file.suffix in (".py", ".html", ".js") and not ELSEWHERE.intersection(file.relative_to(root).parts)
    ]
    assert len(files) > 300
    assert [str(file) for file in files if names.search(file.read_text())] == []


def test_the_documents_name_every_backend_and_param() -> None:
    page = (Path(settings.BASE_DIR) / "docs" / "backends.md").read_text()
    for name, declared in backend_classes().items():
        if declared is FirstWord:
            continue
        assert f"`{name}`" in page
        told = [param.name for param in declared.params if not isinstance(param, Secret)]
        assert [param for param in told if f"`{param}`" not in page] == []
