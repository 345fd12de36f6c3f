"""What is known of a source's answers before they are trusted: on its page, for programs, and on the command
line; and who is told what of it.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Project
from annotation.permissions import access_to
from routing.models import Run, Source
from routing.runs import start
from routing.sources.health import Health, health_of
from routing.sources.manage import save_source
from testbed.factories import make_items
from testbed.worlds import World, make_world
from tests.logged_in import client_of  # noqa: F401 - a fixture
from tests.routing.runs.test_script_commands import ended, run
from tests.routing.sources.test_usability import PLAN, ROWS, imported, page_of, source_of, with_source

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def looked_at(source: Source) -> Health:
    access = access_to(source.project.created_by, source.project.slug)
    assert access is not None
    return health_of(source, access)


@pytest.fixture
def odd(tmp_path: Path, client_of: Any) -> tuple[Source, Client]:  # noqa: F811
    project = imported(tmp_path, ROWS)
    client = client_of(project.created_by)
    return with_source(project, client), client


def test_the_page_has_each_reason_with_its_count_and_examples(odd: tuple[Source, Client]) -> None:
    source, client = odd
    page = page_of(client, "source_health", source.project.slug, source.pk)
    for words in (
        "no label of this project",
        "Shipping",
        "a label of this project but for capitals or blanks",
    ):
        assert words in page
    assert "of 200 looked at, of 200 items" in page
    assert "n1<" not in page  # no item is named before the analysis
    assert "Which items these are is told once a run is analysed" in page
    address = reverse("source_health", args=[source.project.slug, source.pk])
    for name in ("sources", "plan"):
        assert address in page_of(client, name, source.project.slug)


def test_programs_are_told_the_same(odd: tuple[Source, Client]) -> None:
    source, client = odd
    body = client.get(reverse("api_source_health", args=[source.project.slug, source.pk])).json()
    assert (body["usability"]["usable"], body["unusable"], body["without_answer"]) == (60, 140, 20)
    assert body["reasons"][0] == {
        **{"code": "unknown_label", "words": "no label of this project", "count": 40},
        "examples": [{"answer": "Shipping", "item": None}],
    }
    assert body["classes"] == [{"label": "billing", "count": 60}, {"label": "refund", "count": 60}]
    assert sum(one["count"] for one in body["confidence"]) == 60
    owner = source.project.created_by.username
    asked = ("source", source.project.slug, "--name", "fast", "--health")
    assert json.loads(run(*asked, "--json", user=owner)) == body
    assert "40 no label of this project: 'Shipping'" in run(*asked, user=owner)
    _code, reason = ended("source", source.project.slug, "--name", "other", "--health", user=owner)
    assert "no source 'other'" in reason
    assert Source.objects.count() == 1


def test_confidences_are_counted_by_twentieths_and_labels_that_none_gives_are_named() -> None:
    project, [source] = source_of(0)
    for sure in ("0", "0.05", "0.07", "1", "0.999", "0.5", "2") * 3:
        make_items(project, 1, data={"guess": "cat", "sure": sure})
    health = looked_at(source)
    assert {one.low: one.count for one in health.bins if one.count} == {0: 3, 0.05: 6, 0.5: 3, 0.95: 6}
    assert health.classes == (("cat", 21), ("dog", 0))


def second(project: Project, column: str) -> Source:
    return save_source(
        project=project,
        user=project.created_by,
        name=column,
        backend="recorded",
        params={"label_column": column},
        cost_per_label=0,
    )


def test_two_sources_agree_where_both_have_a_usable_answer() -> None:
    project, [source] = source_of(0)
    for other in ("cat", "cat", "dog", "bird", "") * 4:
        make_items(project, 1, data={"guess": "cat", "sure": "0.5", "slow": other})
    slow = second(project, "slow")
    [there], [back] = looked_at(source).agreements, looked_at(slow).agreements
    assert (there.source, there.both, there.same) == ("slow", 12, 8)
    assert (back.source, back.both, back.same) == ("fast", 12, 8)


@pytest.mark.parametrize("values", [1, 9])
def test_a_score_of_fewer_than_ten_values_asks_once_more(values: int) -> None:
    project, [source] = source_of(0)
    for number in range(60):
        make_items(project, 1, data={"guess": "cat", "sure": str(number % values / 10)})
    assert looked_at(source).usable.asks
    make_items(project, 1, data={"guess": "cat", "sure": "0.99"})
    assert looked_at(source).usable.asks == (values + 1 < 10)


class TestBlind:
    def test_while_a_run_is_open_nothing_but_counts_is_told(self, odd: tuple[Source, Client]) -> None:
        source, client = odd
        project = source.project
        start.start_run(project=project, user=project.created_by, **{**PLAN, "m": 40})
        health = looked_at(source)
        assert (health.shown, health.bins, health.classes, health.agreements) == (False, (), (), ())
        assert all(reason.examples == () for reason in health.reasons)
        assert health.usable.unusable == 140
        page = page_of(client, "source_health", project.slug, source.pk)
        assert "Shipping" not in page
        assert "is not shown now" in page

    def test_of_a_handful_nothing_is_counted_that_would_tell_what_they_are(self) -> None:
        project, [source] = source_of(19)
        assert (looked_at(source).shown, looked_at(source).classes) == (False, ())
        make_items(project, 1, data={"guess": "cat", "sure": "0.5"})
        assert looked_at(source).classes == (("cat", 20), ("dog", 0))

    def test_items_are_named_once_model_output_may_be_seen(self) -> None:
        world = make_world(60)
        odd = world.project.items.order_by("position")[7]
        odd.data |= {"model1": "bird"}
        odd.save()
        source = world.project.sources.get(position=1)
        assert [one.item for one in examples(source)] == [None]
        world.analysed(m=40)
        assert [(one.answer, one.item) for one in examples(source)] == [("bird", odd)]

    def test_agreement_with_what_a_model_gave_in_a_run_waits_for_its_analysis(self) -> None:
        world = make_world(60)
        world.analysed(m=40)
        asked_elsewhere(world, position=2)
        source = world.project.sources.get(position=1)
        assert [one.source for one in looked_at(source).agreements] == ["Model 2"]
        Run.objects.update(state=Run.State.CALIBRATING)
        assert looked_at(source).agreements == ()


def examples(source: Source) -> Any:
    [reason] = looked_at(source).reasons
    return reason.examples


def asked_elsewhere(world: World, position: int) -> None:
    """Of the source at this place only what it gave in a run is known from now on."""
    params = {"url": "http://127.0.0.1:9/v1", "model": "m"}
    world.project.sources.filter(position=position).update(backend="openai_api", params=params)
