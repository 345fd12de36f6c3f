"""How often a source was right on what people labelled: after the analysis, on the draw, with a range."""

from decimal import Decimal
from typing import Any

import pytest
from django.urls import reverse
from scipy import stats

from routing.models import DrawItem, Prediction, Run, Source
from routing.sources.save_mends import save_mends
from testbed.factories import add_member
from testbed.worlds import World, make_world
from tests.logged_in import client_of  # noqa: F401 - a fixture
from tests.routing.runs.test_script_commands import run as command
from tests.routing.sources.test_health import looked_at

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


def first_of(world: World) -> Source:
    return world.project.sources.get(position=1)


def by_hand(world: World, run: Run) -> list[tuple[str, str]]:
    """(People's label, the first source's answer) of the asked items of the draw."""
    asked = run.run_sources.get(position=1)
    rows = DrawItem.objects.filter(draw__run=run, asked=True).select_related("item")
    answers = dict(
        Prediction.objects.filter(source=asked.source_id, fingerprint=asked.fingerprint).values_list(
            "item", "value"
        )
    )
    return [(str(world.truth[row.item.external_id]), answers[row.item_id]) for row in rows]


def test_it_is_counted_on_the_items_of_the_draw_with_its_exact_range() -> None:
    world = make_world(120)
    source = first_of(world)
    assert looked_at(source).measured is None
    run = world.routed(m=60, p=Decimal(1))
    world.label()  # what is routed to people is no random sample, and does not count
    found = looked_at(source).measured
    assert found is not None
    pairs = by_hand(world, run)
    right = sum(label == answer for label, answer in pairs)
    assert 0 < right < 60
    assert (found.runs, found.asked, found.of, found.answered, found.right) == ((1,), 60, 60, 60, right)
    assert (found.changed, found.random, found.binary) == (False, True, True)
    exact = stats.binomtest(right, 60).proportion_ci(0.95, "exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
    assert sum(one["count"] for one in found.bins) == 60
    assert found.confusion is not None
    names = found.confusion.labels
    for row, label in enumerate(names):
        for column, answer in enumerate(names):
            assert found.confusion.counts[row][column] == pairs.count((label, answer))


def test_nobody_is_told_before_the_analysis_nor_while_another_run_is_open() -> None:
    world = make_world(120)
    world.calibrated(m=40)
    assert looked_at(first_of(world)).measured is None
    other = make_world(120)
    other.analysed(m=40)
    assert looked_at(first_of(other)).measured is not None
    Run.objects.update(state=Run.State.CALIBRATING)
    assert looked_at(first_of(other)).measured is None


def test_where_only_some_were_asked_about_there_is_no_range() -> None:
    """As of a dear model, which is asked about drawn items only where the tests need it."""
    world = make_world(120)
    run = world.analysed(m=40, p=Decimal(1))
    item = DrawItem.objects.filter(draw__run=run, asked=True).first().item
    Prediction.objects.filter(item=item, source=first_of(world)).delete()
    found = looked_at(first_of(world)).measured
    assert found is not None
    assert (found.asked, found.answered, found.random) == (40, 39, False)
    assert (found.low, found.high) == (None, None)


def test_a_source_that_is_read_otherwise_since_says_so() -> None:
    world = make_world(120)
    world.analysed(m=40)
    source = first_of(world)
    save_mends(source=source, user=world.manager, capitals=True)
    found = looked_at(source).measured
    assert found is not None
    assert found.changed is True


def test_page_program_and_command_tell_it_to_whoever_may_see_it(client_of: Any) -> None:  # noqa: F811
    world = make_world(120)
    world.analysed(m=40, p=Decimal(1))
    source, slug = first_of(world), world.project.slug
    client = client_of(world.manager)
    page = client.get(reverse("source_health", args=[slug, source.pk])).content.decode()
    for words in ("What people said in run 1", "How well the scores know", "Which label met which answer"):
        assert words in page
    body = client.get(reverse("api_source_health", args=[slug, source.pk])).json()["measured"]
    assert (body["runs"], body["answered"], body["random"]) == ([1], 40, True)
    assert body["accuracy"] == pytest.approx(body["right"] / 40)
    told = command("source", slug, "--name", source.name, "--health", user=world.manager.username)
    assert f"Right on {body['accuracy']:.1%} of 40 items that people labelled in run 1" in told
    annotator = client_of(add_member(world.project, "annotator"))
    assert annotator.get(reverse("source_health", args=[slug, source.pk])).status_code == 403
