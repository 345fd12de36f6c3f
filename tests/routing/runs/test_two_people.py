"""How often two people differ, as a run, its files, the API and the page on agreement tell it."""

import json
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from html import unescape
from math import ceil, floor

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.translation import override
from scipy.stats import hypergeom

from annotation.labelling import queue
from annotation.labelling.labels_of_record import disagreements
from annotation.models import Label, User, WorkItem
from annotation.projects.manage import update_project
from routing.delivery.deliver import deliver
from routing.models import Certificate, Run
from routing.runs.cancel import cancel_run
from routing.runs.certify import analyse
from routing.runs.plan import plan_of
from routing.runs.route import route
from routing.runs.two_people import sentences_of, shared_items, two_people_of
from testbed.factories import add_member
from testbed.worlds import CHOICES, World, files_of, make_world
from tests.conftest import Stored

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]
DIFFER = "Two of our people differ on "
NOT_KNOWN = "How often two of our people differ is not known here"


@dataclass
class Story:
    """A run in which two people label half of the calibration items. On the first two of those, in draw
    order, they differ; of the third only one answers; on the fourth one person erred at first.
    """

    world: World
    run: Run
    several: list[str] = field(default_factory=list)
    mended: Label | None = None

    def address(self, name: str, *more: object) -> str:
        return reverse(name, args=[self.world.project.slug, *more])

    def page(self, client: Client, name: str, *more: object) -> str:
        answer = client.get(self.address(name, *more))
        return " ".join(unescape(answer.content.decode()).split()) if answer.status_code == 200 else ""


def other(value: object) -> str:
    return next(name for name in CHOICES if name != value)


def labelled(**fields: object) -> Story:
    """Everything is labelled, decided and mended; nothing is analysed."""
    world = make_world(150, error=(lambda u: 0.9 * u,), costs=("1",))
    project = {"overlap": 2, "overlap_share": Decimal("0.5"), **fields}
    update_project(project=world.project, user=world.manager, **project)
    story = Story(world, world.start(m=60))
    world.do("prepare_run")
    run = story.run
    run.refresh_from_db()
    twice = WorkItem.objects.filter(batch=run.calibration_batch, slot=1).values("item")
    drawn = run.draw.items.filter(item__in=twice).order_by("order")
    story.several = list(drawn.values_list("item__external_id", flat=True))
    second = world.annotators[1]
    wrong = {story.several[place] for place in (0, 1, 3)} if story.several else set()
    for user in world.annotators:
        while task := queue.claim(project=world.project, user=user):
            name = task.item.external_id
            if user == second and name == story.several[2]:
                queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
                continue
            right = world.truth[name]
            label = submit(world, user, task, other(right) if user == second and name in wrong else right)
            if user == second and name == story.several[3]:
                story.mended = label
    if story.mended:
        correct(story.mended, world.truth[story.several[3]])
        alone = WorkItem.objects.get(batch=run.calibration_batch, state=WorkItem.State.OPEN)
        queue.ask_no_more(work_item=alone, actor=world.manager)
    for row in disagreements(world.project, world.manager):
        queue.adjudicate(
            batch=row.batch, item=row.item, actor=world.manager, value=world.truth[row.item.external_id]
        )
    run.refresh_from_db()
    return story


def submit(world: World, user: User, task: queue.LeasedItem, value: object) -> Label:
    world.keys += 1
    key = f"key-{world.keys}-of-{world.project.pk}"
    return queue.submit(
        user=user, work_item_id=task.work_item.pk, token=task.token, value=value, idempotency_key=key
    )


def correct(label: Label, value: object) -> Label:
    key = f"correction-of-{label.pk}"
    return queue.correct(user=label.annotator, label_id=label.pk, value=value, idempotency_key=key)


def analyse_it(story: Story) -> Run:
    analyse(run=story.run, user=story.world.manager)
    story.world.do("analyse_run")
    story.run.refresh_from_db()
    return story.run


def interval(pool_size: int, asked: int, least: int, most: int) -> tuple[int, int]:
    """Of numbers in the pool those that explain what was seen, each tried."""
    totals = [
        total
        for total in range(pool_size + 1)
        if hypergeom.sf(least - 1, pool_size, total, asked) > 0.025
        and hypergeom.cdf(most, pool_size, total, asked) > 0.025
    ]
    return min(totals), max(totals)


@pytest.fixture(scope="module")
def _labelled(stored: Stored) -> Story:
    return stored(labelled)


@pytest.fixture(scope="module")
def _analysed(stored: Stored) -> Story:
    def make() -> Story:
        story = labelled()
        analyse_it(story)
        return story

    return stored(make)


@pytest.fixture
def before(_labelled: Story, db: None) -> Story:
    """Labelled, and still open."""
    return deepcopy(_labelled)


@pytest.fixture
def after(_analysed: Story, db: None) -> Story:
    """Analysed."""
    return deepcopy(_analysed)


def test_the_figure_is_that_of_the_peoples_own_answers(after: Story) -> None:
    figure = after.run.certificate.figures["two_people"]
    asked = len(after.several)
    assert asked > 10
    assert (figure["items"], figure["differ"], figure["unknown"]) == (asked, 2, 1)
    assert figure["estimate"] == 2 / (asked - 1)
    low, high = interval(150, asked, 2, 3)
    assert (figure["low"], figure["high"]) == (low / 150, high / 150)


def test_it_is_told_in_one_way_on_pages_in_the_api_and_on_the_card(after: Story, client_of) -> None:
    run, world = after.run, after.world
    figure = run.certificate.figures["two_people"]
    share = f"{round(figure['estimate'] * 1000) / 10:g}\N{NO-BREAK SPACE}%"
    low = f"{floor(figure['low'] * 1000 + 1e-9) / 10:g}\N{NO-BREAK SPACE}%"
    high = f"{ceil(figure['high'] * 1000 - 1e-9) / 10:g}\N{NO-BREAK SPACE}%"
    words = (
        f"{DIFFER}{share} ({low} to {high}) of the items. A single label differs from what most of our "
        "people would say on at most that share; mistakes that most people make alike are not seen. "
        "Counted on items of the calibration set, drawn at random, that two people labelled without "
        f"seeing each other's answer: they differ on 2 of {len(after.several) - 1}. The range is exact, with "
        "95\N{NO-BREAK SPACE}% confidence. A second answer is missing for 1 more; the range holds "
        "whatever it would have been."
    )
    plain = " ".join(words.split())
    client = client_of(world.manager)
    for name, *more in (("run", run.number), ("run_certificate_page", run.number), ("agreement",)):
        page = after.page(client, name, *more).replace('</p> <p class="muted">', " ")
        assert page.count(plain) == 1, name
    assert after.address("run", run.number) in after.page(client, "agreement")
    body = client.get(after.address("api_run", run.number)).json()
    assert body["two_people"] == figure
    # One answer is no majority.
    overlap = json.loads(run.certificate.document)["provenance"]["overlap"]
    assert overlap["settled_by"] == {"majority": len(after.several) - 3, "adjudicated": 2}
    # What is certified does not know of it.
    assert "two_people" not in run.certificate.document
    assert "differ on" not in json.loads(run.certificate.document)["result"]["sentence"]


def test_the_card_of_a_delivery_has_it_in_english_whoever_asks(after: Story) -> None:
    world, run = after.world, after.run
    route(run=run, user=world.manager)
    world.do("route_run")
    with override("fr"):
        deliver(run=run, user=world.manager)
        world.do("deliver_run")
    card = files_of(run.deliveries.get())["README.md"].decode()
    assert card.count(DIFFER) == 1
    assert " ".join(sentences_of(run, run.certificate.figures)) in card


def test_nobody_learns_it_while_somebody_may_label_in_the_calibration_set(before: Story, client_of) -> None:
    world, run = before.world, before.run
    people = [world.manager, *(add_member(world.project, role) for role in ("reviewer", "viewer", "manager"))]
    for user in people:
        client = client_of(user)
        for name, *more in (("run", run.number), ("agreement",), ("overview",)):
            page = before.page(client, name, *more)
            assert page
            assert "people differ on" not in page
            assert "not known here" not in page
        body = client.get(before.address("api_run", run.number)).json()
        assert "two_people" not in body
        assert "figures" not in body
        assert before.page(client, "run_certificate_page", run.number) == ""
    with pytest.raises(ValueError, match="not locked"):
        shared_items(run)


def test_annotators_are_told_at_no_time(after: Story, client_of) -> None:
    client = client_of(after.world.annotators[0])
    for name, *more in (("run", after.run.number), ("agreement",), ("api_run", after.run.number)):
        assert client.get(after.address(name, *more)).status_code in (403, 404)


def test_a_later_run_that_is_open_adds_nothing(after: Story, client_of) -> None:
    world = after.world
    said = " ".join(" ".join(sentences_of(after.run, after.run.certificate.figures)).split())
    cancel_run(run=after.run, user=world.manager)
    later = world.start(m=60)
    world.do("prepare_run")
    client = client_of(world.manager)
    page = after.page(client, "agreement").replace('</p> <p class="muted">', " ")
    assert said in page
    assert "people differ on" not in after.page(client, "run", later.number)


def test_what_is_corrected_after_the_lock_changes_nothing(after: Story) -> None:
    figure = after.run.certificate.figures["two_people"]
    assert after.mended is not None
    newest = Label.objects.get(work_item=after.mended.work_item, superseded_by__isnull=True)
    correct(newest, other(newest.value))
    assert two_people_of(after.run, plan_of(after.run)) == figure


def test_each_item_that_several_people_were_asked_about_is_read_once(after: Story) -> None:
    items = shared_items(after.run)
    assert [item.item_id for item in items] == after.several
    assert Counter(len(item.answers) for item in items) == {2: len(items) - 1, 1: 1}
    truth = after.world.truth
    first = truth[after.several[0]]
    assert sorted(items[0].answers) == sorted((str(first), other(first)))


def test_where_probabilities_of_asking_vary_a_fair_sample_counts() -> None:
    def ask(index: int, row: dict[str, str]) -> None:
        row["ask"] = "0.25" if index % 2 else "1"

    world = make_world(160, error=(lambda u: 0.9 * u,), costs=("1",), change=ask)
    update_project(project=world.project, user=world.manager, overlap=2)
    run = world.start(p=None, p_column="ask", target="pool", bound="hoeffding", m=90)
    world.do("prepare_run")
    world.label()
    run.refresh_from_db()
    figure = analyse_it(Story(world, run)).certificate.figures["two_people"]
    items = shared_items(run)
    seldom = [item for item in items if item.probability == Decimal("0.25")]
    assert len(items) == run.draw.n
    assert len(seldom) < figure["items"] < len(items)
    assert (figure["differ"], figure["unknown"]) == (0, 0)


def test_without_overlap_one_sentence_says_how_to_learn_it(client_of) -> None:
    world = make_world(150)
    run = world.routed(m=60)
    client, slug = client_of(world.manager), world.project.slug
    for name, *more in (("run", run.number), ("run_certificate_page", run.number)):
        page = unescape(client.get(reverse(name, args=[slug, *more])).content.decode())
        assert page.count(NOT_KNOWN) == 1, name
        assert "“Several people per item”" in page
        assert DIFFER not in page
    assert client.get(reverse("api_run", args=[slug, run.number])).json()["two_people"] is None
    deliver(run=run, user=world.manager)
    world.do("deliver_run")
    assert files_of(run.deliveries.get())["README.md"].decode().count(NOT_KNOWN) == 1


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({}, "was not computed with this result"),
        ({"two_people": {"items": 0}}, NOT_KNOWN),
        ({"two_people": {"items": 3, "unknown": 3, "estimate": None}}, "has two answers"),
    ],
)
def test_what_is_said_where_there_is_no_figure(figures: dict, words: str) -> None:
    (said,) = sentences_of(Run(overlap=2, loss="zero_one"), figures)
    assert words in said


def test_it_is_said_what_differing_is_and_who_counts() -> None:
    figure = {"items": 97, "differ": 7, "unknown": 0, "estimate": 7 / 97, "low": 0.0414, "high": 0.1181}
    run = Run(overlap=3, loss="numeric", p_min=Decimal("0.2"))
    said = " ".join(sentences_of(run, {"two_people": figure}))
    assert "7.2\N{NO-BREAK SPACE}% (4.1\N{NO-BREAK SPACE}% to 11.9\N{NO-BREAK SPACE}%)" in said
    assert "the loss between them is not 0" in said
    assert "every item had the same chance" in said
    assert "missing" not in said
    with override("fr"):
        french = " ".join(sentences_of(run, {"two_people": figure}))
    assert "7,2" in french
    assert "people" not in french


BOUND = "A single label differs from what most of our people would say"


@pytest.mark.parametrize(
    ("loss", "params", "bounds"),
    [
        ("zero_one", {}, True),
        ("exact_match", {"ignore_articles": True}, True),
        ("set_equal", {}, True),
        ("numeric", {}, True),
        ("numeric", {"absolute": "0.5"}, False),
        ("numeric", {"relative": "0.01"}, False),
        ("math_equivalence", {}, False),
        ("cosine_distance", {"embedder": "somewhere.gone:embed"}, False),
        ("tests.core.own_losses:gone", {}, False),
        ("forgotten", {}, False),
    ],
)
def test_one_label_is_bounded_only_where_labels_fall_into_kinds(
    loss: str, params: dict, bounds: bool
) -> None:
    figure = {"items": 97, "differ": 7, "unknown": 0, "estimate": 7 / 97, "low": 0.0414, "high": 0.1181}
    run = Run(overlap=2, loss=loss, loss_params=params)
    said = " ".join(sentences_of(run, {"two_people": figure}))
    assert (BOUND in said) is bounds
    assert "istakes that most people make alike are not seen." in said
    with override("fr"):
        french = " ".join(sentences_of(run, {"two_people": figure}))
    assert ("Une étiquette seule" in french) is bounds
    assert "people" not in french


def test_a_figure_that_cannot_be_computed_does_not_stand_in_the_way(before: Story, monkeypatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no embedding model")

    monkeypatch.setattr("routing.runs.analysis.two_people_of", fails)
    run = analyse_it(before)
    assert Certificate.objects.filter(run=run).exists()
    assert run.certificate.figures["chain"]
    assert sentences_of(run, run.certificate.figures) == [
        "How often two of our people differ was not computed with this result."
    ]
