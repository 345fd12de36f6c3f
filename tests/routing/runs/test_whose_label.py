"""Whose label is right, and whose mistakes count: the same on every page, in every file and in the API."""

from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from html import unescape
from math import ceil, floor

import pytest
from django.test import Client
from django.urls import reverse

from annotation.models import Label
from annotation.review.agreement_queries import agreement
from routing.core.reference.ways import NAMES
from routing.models import Run
from routing.runs.certificate_words import limitations_of, what_breaks_it
from routing.runs.certify import analyse
from routing.runs.route import route
from testbed.experts import ExpertWorld
from tests.conftest import Stored

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]

NOT_COUNTED = "People's own mistakes are not counted"
COUNTED = "Mistakes of models and of people are counted"
ALIKE = "A mistake that two people make alike is not counted"
EXPERTS = "Mistakes of the expert are not counted"
SAID = {"person": {NOT_COUNTED}, "settled": {ALIKE}, "expert": {COUNTED, EXPERTS}}
MEASURED = "People's error was last measured at "


@dataclass
class Story:
    """One project: a run with an expert, then one in which one person is right, then one of two people and a
    third, each with items of its own.
    """

    here: ExpertWorld
    runs: dict[str, Run]

    def page(self, client: Client, name: str, run: Run) -> str:
        answer = client.get(reverse(name, args=[run.project.slug, run.number]))
        assert answer.status_code == 200
        return " ".join(unescape(answer.content.decode()).split())

    def body(self, client: Client, run: Run) -> dict:
        return client.get(reverse("api_run", args=[run.project.slug, run.number])).json()


def told() -> Story:
    here = ExpertWorld(120, human_cost="8", error=0.1)
    runs = {"expert": here.finish(here.routed(here.start(m=70, audit_share=Decimal("0.3"))))}
    for reference in ("person", "settled"):
        here.more_items(80)
        run = here.world.start(reference=reference, m=45, p=None, rule="", epsilon="0.15")
        here.world.do("prepare_run")
        run.refresh_from_db()
        label_all(here)
        run.refresh_from_db()
        analyse(run=run, user=here.world.manager)
        here.world.do("analyse_run")
        run.refresh_from_db()
        route(run=run, user=here.world.manager)
        here.world.do("route_run")
        label_all(here)
        run.refresh_from_db()
        runs[reference] = run
    return Story(here, runs)


def label_all(here: ExpertWorld) -> None:
    while here.label(*here.world.annotators, here.expert):
        pass


@pytest.fixture(scope="module")
def _told(stored: Stored) -> Story:
    return stored(told)


@pytest.fixture
def story(_told: Story, db: None) -> Story:
    return deepcopy(_told)


@pytest.mark.parametrize("reference", ["person", "settled", "expert"])
def test_whose_mistakes_count_is_said_everywhere_and_nowhere_otherwise(
    story: Story, client_of, reference: str
) -> None:
    run = story.runs[reference]
    client = client_of(story.here.world.manager)
    body = story.body(client, run)
    assert run.certificate.certified, "the sentences of a promise are compared"
    places = {
        "page of the certificate": story.page(client, "run_certificate_page", run),
        "page of the run": story.page(client, "run", run),
        "data card": " ".join(story.here.delivered(run)["README.md"].decode().split()),
        "API": " ".join((body["certificate"]["sentence"], body["certificate"]["what_is_right"])),
    }
    for place, text in places.items():
        found = {words for words in (NOT_COUNTED, COUNTED, ALIKE, EXPERTS) if words in text}
        assert found == SAID[reference], place


@pytest.mark.parametrize("reference", ["person", "settled", "expert"])
def test_the_plan_says_it_in_the_words_of_its_reference(client_of, reference: str) -> None:
    here = ExpertWorld(120, human_cost="8")
    plan = {"epsilon": "0.1", "alpha": "0.1", "m": 60, "reference": reference}
    if reference == "expert":
        plan["expert"] = here.expert.username
    client, slug = client_of(here.world.manager), here.world.project.slug
    body = client.post(reverse("api_plan", args=[slug]), plan, "application/json").json()
    typed = {**plan, "epsilon": "10", "alpha": "10", "p": "1", "target": "dataset"}  # a page takes percent
    page = client.get(reverse("plan_outlook", args=[slug]), typed)
    shown = " ".join(unescape(page.content.decode()).split())
    for text in (f"{body['sentence']} {body['what_is_right']}", shown.split("By how often people err")[0]):
        assert (NOT_COUNTED in text) == (reference == "person")
        assert (ALIKE in text) == (reference == "settled")
        assert (EXPERTS in text) == (reference == "expert")
        assert ("differ from people on at most" in text) == (reference == "person")
        assert ("differ from what these people give on at most" in text) == (reference == "settled")
    assert body["sentence"] in shown


def test_the_certificates_page_of_an_expert_speaks_of_her(story: Story, client_of) -> None:
    run = story.runs["expert"]
    page = story.page(client_of(story.here.world.manager), "run_certificate_page", run)
    for words in (
        "against the expert labelling every item for 2,880.00 USD",
        "differs from the expert's labels on",
        "The expert looked at",
        "has sounded no alarm",
        "is changed after it was locked",
        "The instructions are changed",
        "sounds an alarm",
    ):
        assert words in page, words
    for words in ("models differed from people", "people labelling every item", "Routing saving"):
        assert words not in page.split("The plan")[0], words


def test_what_breaks_a_promise_follows_from_its_reference() -> None:
    for reference, own in (("expert", "sounds an alarm"), ("settled", "each other's answers")):
        assert own in " ".join(what_breaks_it(Run(reference=reference)))
        assert own not in " ".join(what_breaks_it(Run(reference="person")))
    assert "the expert would say" in " ".join(limitations_of(Run(reference="expert", alpha="0.05"), ""))


def test_where_one_person_is_right_it_is_told_what_an_expert_found_before(story: Story, client_of) -> None:
    client = client_of(story.here.world.manager)
    people = story.runs["expert"].certificate.figures["people"]["all"]
    found = story.body(client, story.runs["person"])["people_measured"]
    assert found == {
        "run": story.runs["expert"].number,
        "holds": True,
        **{name: people[name] for name in ("differ", "asked", "estimate", "low", "high")},
    }
    low, high = floor(people["low"] * 1000) / 10, ceil(people["high"] * 1000) / 10
    words = f"({low:g} % to {high:g} %): in run 1 they differed"
    run = story.runs["person"]
    texts = [story.page(client, name, run) for name in ("run", "run_certificate_page")]
    texts.append(" ".join(story.here.delivered(run)["README.md"].decode().split()))
    for text in texts:
        assert text.count(MEASURED) == 1
        assert words in text
    assert "last measured" not in run.certificate.document
    for reference in ("settled", "expert"):
        assert MEASURED not in story.page(client, "run", story.runs[reference])
        assert story.body(client, story.runs[reference])["people_measured"] is None
    Run.objects.filter(pk=story.runs["expert"].pk).update(
        invalid_reasons=[{"code": "", "params": {}, "words": "x"}]
    )
    assert story.body(client, run)["people_measured"]["holds"] is False
    assert "That run was marked invalid since." in story.page(client, "run", run)


def test_people_are_told_by_annotator_and_ranked_nowhere(story: Story, client_of) -> None:
    run, client = story.runs["expert"], client_of(story.here.world.manager)
    figures = run.certificate.figures["people"]
    body = story.body(client, run)["people"]
    assert body["all"] == figures["all"]
    assert {row.pop("name"): row for row in body["annotators"]} == figures["annotators"]
    card = story.here.delivered(run)["README.md"].decode()
    assert body["warning"] in card
    for user in story.here.world.annotators:
        assert user.username not in card
    for name, row in figures["annotators"].items():
        line = next(line for line in card.splitlines() if line.startswith(f"- `{name}`"))
        assert f"differs on {row['differ']} of {row['asked']} asked items" in line
        assert line.endswith(f"finds {row['caught']}, the dearest model shares {row['shared']}")
    assert f"On the other {figures['all']['caught']} it says something else" in card


def test_the_audit_stands_on_the_card_and_an_alarm_is_not_kept_back(story: Story) -> None:
    run = story.runs["expert"]
    card = story.here.delivered(run)["README.md"].decode()
    assert "people err on more than 5\N{NO-BREAK SPACE}% is" in card
    assert "It has sounded no alarm." in card
    run.audit_alarm_at = run.routed_at
    run.save()
    assert "It sounded an alarm" in story.here.delivered(run)["README.md"].decode()


def test_other_references_stand_beside_the_choice_and_certify_nothing(story: Story, client_of) -> None:
    run, client = story.runs["expert"], client_of(story.here.world.manager)
    rows = story.body(client, run)["other_references"]
    assert {row["name"] for row in rows} == set(NAMES) - {"settled"}
    assert rows == run.certificate.figures["references"]
    page = story.page(client, "run_evidence", run)
    assert page.count("the others certify nothing") == 1
    assert f"{rows[1]['wrong']} of {rows[1]['seen']}" in page
    assert "the others certify nothing" not in story.page(client, "run_evidence", story.runs["person"])
    assert story.body(client, story.runs["person"])["other_references"] == []


def test_two_people_differ_as_often_as_they_do_although_a_third_decides() -> None:
    here = ExpertWorld(80, human_cost="8", error=0.25)
    run = here.world.start(reference="settled", m=60, p=None, rule="", epsilon="0.3")
    here.world.do("prepare_run")
    run.refresh_from_db()
    label_all(here)
    batch = run.calibration_batch
    said: dict[int, dict[int, object]] = {}
    for label in Label.objects.filter(work_item__batch=batch).select_related("work_item"):
        said.setdefault(label.item_id, {})[label.work_item.slot] = label.value
    unlike = [item for item, values in said.items() if values[0] != values[1]]
    assert len(unlike) == sum(2 in values for values in said.values()) > 12
    analyse(run=run, user=here.world.manager)
    here.world.do("analyse_run")
    run.refresh_from_db()
    figure = run.certificate.figures["two_people"]
    assert (figure["items"], figure["differ"], figure["unknown"]) == (60, len(unlike), 0)
    together = agreement(here.world.project)
    assert together.answers == 120
    alike = sum(pair.shared * pair.equal for pair in together.pairs)
    assert alike == pytest.approx(60 - len(unlike))
