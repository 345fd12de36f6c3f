"""What a plan says of references before money is spent: labels and hours by role, warnings, what is missing.

What each way costs is given here: how it is foretold, `test_reference_outlook.py` looks at.
"""

import io
import json
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from annotation.errors import InputError
from annotation.labelling import queue
from routing.core.reference.ways import ALONE, EVERYTHING, PEOPLES_WORD, SETTLED, WITH_PEOPLE, Way
from routing.models import Run
from routing.runs.expert.ask import ask_expert
from routing.runs.labelling_pace import expert_time_of, labelling_time_of
from routing.runs.measure import start_measurement
from routing.runs.plan import outlook_of_plan
from routing.runs.start import start_run
from testbed.experts import ExpertWorld

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
PLAN = {"epsilon": "0.1", "alpha": "0.1", "m": 160}
TYPED = {"epsilon": "10", "alpha": "10"}  # a page takes percent
WAYS = (
    Way(PEOPLES_WORD, 4000.0, 240.0, 0.0),
    Way(SETTLED, 8000.0, 500.0, 0.0),
    Way(WITH_PEOPLE, 5000.0, 220.0, 110.0),
    Way(ALONE, 6000.0, 0.0, 130.0),
    Way(EVERYTHING, 7000.0, 0.0, 400.0),
)
DEAR = tuple(
    Way(way.name, 100.0 if way.name == EVERYTHING else way.cost, way.people, way.expert) for way in WAYS
)
ASK_HER = "ask her and start no run"


@pytest.fixture
def here() -> ExpertWorld:
    return ExpertWorld()


@pytest.fixture
def measured(here: ExpertWorld, monkeypatch: pytest.MonkeyPatch) -> ExpertWorld:
    measure(here, monkeypatch)
    return here


def measure(here: ExpertWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, WAYS)
    found = start_measurement(project=here.world.project, user=here.world.manager, entropy=5, size=80)
    assert found.usable is not None


def told(monkeypatch: pytest.MonkeyPatch, ways: tuple[Way, ...]) -> None:
    monkeypatch.setattr("routing.runs.reference_outlook.ways", lambda *_: ways)


def with_expert(here: ExpertWorld, **fields: Any) -> dict[str, Any]:
    return {**PLAN, "reference": "expert", "expert": here.expert.username, **fields}


def asked(here: ExpertWorld, client: Any, **plan: Any) -> dict[str, Any]:
    client.force_login(here.world.manager)
    address = reverse("api_plan", args=[here.world.project.slug])
    answer = client.post(address, PLAN | plan, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return dict(answer.json())


def commanded(here: ExpertWorld, *words: str) -> str:
    out = io.StringIO()
    plan = (here.world.project.slug, "--user", here.world.manager.username)
    numbers = ("--epsilon", "0.1", "--alpha", "0.1", "--m", "160")
    call_command("plan", *plan, *numbers, *words, stdout=out)
    return out.getvalue()


def page_of(here: ExpertWorld, client: Any, **plan: Any) -> str:
    client.force_login(here.world.manager)
    answer = client.get(reverse("plan_outlook", args=[here.world.project.slug]), PLAN | plan | TYPED)
    return str(answer.content.decode())


def timed(here: ExpertWorld, user: Any, seconds: int, most: int = 10) -> int:
    """Labels of somebody for whatever waits for them, each within so many seconds; returns how many."""
    for count in range(most):
        if (task := queue.claim(project=here.world.project, user=user)) is None:
            return count
        queue.submit(
            user=user,
            work_item_id=task.work_item.pk,
            token=task.token,
            value=here.world.truth[task.item.external_id],
            idempotency_key=f"timed-{task.work_item.pk}",
            lead_time_ms=1000 * seconds,
        )
    return most


def something_to_label(here: ExpertWorld) -> None:
    """Outside of any run."""
    items = list(here.world.project.items.order_by("-position").values_list("pk", flat=True)[:10])
    queue.create_batch(project=here.world.project, item_ids=items, blind=True, priority=5, entropy=1)


def test_labels_and_hours_stand_by_role_for_each_reference_and_each_error_of_people(measured, client) -> None:
    found = asked(measured, client, **with_expert(measured))["references"]
    assert (found["people_seconds"], found["expert_seconds"]) == (15, 15)
    assert len(found["assumptions"]) == 6
    for assumption in found["assumptions"]:
        by_name = {way["reference"]: way for way in assumption["ways"]}
        assert list(by_name) == [way.name for way in WAYS]
        both = by_name[WITH_PEOPLE]
        assert (both["people"], both["expert"]) == (220, 110)
        assert both["people_hours"] == pytest.approx(220 * 15 / 3600)
        assert both["expert_hours"] == pytest.approx(110 * 15 / 3600)
        assert by_name[ALONE]["people_hours"] == by_name[PEOPLES_WORD]["expert_hours"] == 0

    page = page_of(measured, client, **with_expert(measured, seconds="30"))
    assert page.count("<caption>Everything paid") == 6
    assert page.count("Annotators: 220 labels, 1 h 50 min") == 6  # at 30 s
    assert page.count("Expert: 110 labels, 55 min") == 6
    assert "Expert: 1 h 20 min" in page  # of at most 160 asked items, beside annotators
    assert page.count("Expert: 400 labels, 3 h 20 min") == 6

    text = commanded(measured)
    assert text.count("If people err on ") == 1 + 6  # the recommendation, and a table each
    rows = [line.split() for line in text.splitlines() if line.startswith("An expert with people")]
    assert rows == [["An", "expert", "with", "people", "220", "labels", "0.9", "h", "110", "labels", "0.5", "h", "5,000.00"]] * 6  # fmt: skip  # noqa: E501
    assert text.count("One person's word *") == 6
    assert json.loads(commanded(measured, "--json"))["references"]["assumptions"] == found["assumptions"]


def test_the_time_of_the_expert_is_her_own_where_hers_was_measured(here) -> None:
    project = here.world.project
    assert expert_time_of(project, experts=[here.expert.username], people=20).seconds == 20
    something_to_label(here)
    timed(here, here.expert, 50)
    mine = expert_time_of(project, experts=[here.expert.username], people=20)
    assert (mine.seconds, mine.labels) == (50, 10)
    somebody = here.world.annotators[0]
    assert expert_time_of(project, experts=[somebody.username], people=20).labels == 0
    assert expert_time_of(project, experts=[], people=20).labels == 0  # of no run the expert


def test_what_an_expert_labelled_in_a_run_is_no_time_of_annotators() -> None:
    here = ExpertWorld(90)
    run = here.start(m=60, recheck_share=Decimal(1))
    assert sum(timed(here, user, 10, 60) for user in here.world.annotators) == 60
    ask_expert(run=run, user=here.world.manager)
    here.world.do("ask_expert")
    assert timed(here, here.expert, 60, 60) == 60
    assert labelling_time_of(run.project).seconds == 10
    assert expert_time_of(run.project, experts=[], people=10).seconds == 60


@pytest.mark.parametrize("hers", [False, True])
def test_it_is_said_whether_her_time_is_assumed(here, monkeypatch, client, hers) -> None:
    if hers:
        something_to_label(here)
        timed(here, here.expert, 50)
    measure(here, monkeypatch)
    words = "A label by the expert at 50 s, as hers were timed here." if hers else "too few of hers"
    plan = with_expert(here)
    assert words in asked(here, client, **plan)["references"]["times"]
    assert words in page_of(here, client, **plan)
    assert words in commanded(here, "--reference", "expert", "--expert", here.expert.username)


def test_the_recommendation_is_one_sentence(measured, client) -> None:
    sentence = asked(measured, client)["references"]["recommendation"]
    assert "“An expert with people”, for about 5,000" in sentence
    assert sentence.endswith(".")
    assert ". " not in sentence


def test_a_run_that_costs_more_than_its_expert_alone_is_asked_about_once_more(
    measured, client, monkeypatch
) -> None:
    told(monkeypatch, DEAR)
    project, manager = measured.world.project, measured.world.manager
    plan = with_expert(measured)
    seen = asked(measured, client, **plan)
    assert seen["asks_to_accept_dearer"]
    assert ASK_HER in seen["warnings"][-1]
    assert ASK_HER in seen["references"]["recommendation"]
    assert page_of(measured, client, **plan).count(ASK_HER) == 2
    words = ("--reference", "expert", "--expert", measured.expert.username)
    assert commanded(measured, *words).count(ASK_HER) == 2

    answer = client.post(reverse("api_runs", args=[project.slug]), plan, content_type="application/json")
    assert (answer.status_code, answer.json()["field"]) == (400, "accept_dearer")
    with pytest.raises(CommandError, match="--accept-dearer"):
        commanded(measured, *words, "--start")
    page = client.post(reverse("plan", args=[project.slug]), plan | TYPED).content.decode()
    assert "Start all the same, although the expert alone is expected to cost less" in page
    assert not Run.objects.exists()
    client.post(reverse("plan", args=[project.slug]), plan | TYPED | {"accept_dearer": "on"})
    assert Run.objects.get().created_by == manager


def test_where_the_promise_leaves_people_out_or_a_run_is_cheaper_nothing_is_asked(
    measured, client, monkeypatch
) -> None:
    plan = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 160}
    assert not asked(measured, client, **with_expert(measured))["asks_to_accept_dearer"]
    told(monkeypatch, DEAR)
    seen = asked(measured, client)
    assert not seen["asks_to_accept_dearer"]
    assert not [words for words in seen["warnings"] if ASK_HER in words]
    assert ASK_HER in seen["references"]["recommendation"]
    with pytest.raises(InputError, match=ASK_HER):
        start_run(
            project=measured.world.project, user=None, accept_dearer=False, **plan,
            reference="expert", expert=measured.expert.username,
        )  # fmt: skip
    start_run(project=measured.world.project, user=None, accept_dearer=False, **plan)


@pytest.mark.parametrize(
    ("share", "m", "warned"),
    [(None, 160, False), ("0.5", 160, False), ("0.3", 160, True), ("0.3", 900, False)],
)
def test_a_small_share_of_rechecked_items_is_for_many_items(share, m, warned) -> None:
    here = ExpertWorld(960)
    plan = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": m, "pilot_size": 0}
    seen = outlook_of_plan(
        project=here.world.project,
        reference="expert",
        expert=here.expert.username,
        recheck_share=None if share is None else Decimal(share),
        **plan,
    )
    assert any("r = 0.3 is for 900 asked items or more" in words for words in seen.warnings) == warned


def test_that_the_expert_waits_for_annotators_is_told_everywhere(here, client) -> None:
    words = "The expert has nothing to do until annotators have labelled the calibration set, about 40 min"
    plan = with_expert(here)
    assert any(words in warning for warning in asked(here, client, **plan)["warnings"])
    assert words in page_of(here, client, **plan)
    assert words in commanded(here, "--reference", "expert", "--expert", here.expert.username)
    assert not [one for one in asked(here, client)["warnings"] if "nothing to do" in one]


def test_what_is_missing_for_the_table_is_said(here, client) -> None:
    words = "can be told once the models are measured."
    seen = asked(here, client)
    assert seen["references"] is None
    assert words in seen["references_missing"]
    assert words in page_of(here, client)
    assert words in commanded(here)
    later = asked(here, client, target="population")["references_missing"]
    assert "none of them is an expert" in later
    assert later.endswith(".")


def test_nothing_is_missing_where_models_are_measured(measured, client) -> None:
    assert asked(measured, client)["references_missing"] == ""
