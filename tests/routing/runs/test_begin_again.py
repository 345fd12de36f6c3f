"""Other words for people in the middle of a run: what that costs is said first, and a run can begin anew."""

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from django.urls import reverse

from annotation.projects.forms import SettingsForm
from routing.models import Run
from routing.runs.cancel import cancel_run
from routing.runs.forms import PlanForm
from routing.runs.replan import plan_form_data
from testbed.factories import add_member, make_user
from testbed.worlds import World, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def world() -> World:
    return make_world(150)


def save(client, world: World, **changed: str):
    form = SettingsForm(project=world.project)
    fields = {name: form[name].value() for name in form.fields}
    sent = {name: "" if value is None else value for name, value in fields.items()} | changed
    return client.post(reverse("project_settings", args=[world.project.slug]), {"form": "basics", **sent})


def words(page: str) -> str:
    found = re.search(r'<div[^>]*id="words-asked"[^>]*>(.*?)</div></div>', page, re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found[1])) if found else ""


def test_before_anybody_has_labelled_guidelines_change_without_a_question(client_of, world) -> None:
    world.calibrating(m=60, p=Decimal(1))
    answer = save(client_of(world.manager), world, guidelines="Look at the ears.")
    assert answer.status_code == 302
    world.project.refresh_from_db()
    assert world.project.guidelines == "Look at the ears."


def test_in_the_middle_of_a_calibration_the_page_says_first_what_it_costs(client_of, world) -> None:
    run = world.calibrating(m=60, p=Decimal(1))
    assert world.label(limit=20) == 20
    client = client_of(world.manager)
    page = save(client, world, guidelines="Look at the ears.").content.decode()
    said = words(page)
    assert "20 of its 60 answers are given" in said
    assert "the other 40 are given by the new words" in said
    assert "alpha 0.1" in said
    assert "Look at the ears." in page  # what was typed is still there
    world.project.refresh_from_db()
    run.refresh_from_db()
    assert (world.project.guidelines, run.state) == ("", Run.State.CALIBRATING)

    assert save(client, world, guidelines="Look at the ears.", words="go_on").status_code == 302
    world.project.refresh_from_db()
    run.refresh_from_db()
    assert (world.project.guidelines, run.state) == ("Look at the ears.", Run.State.CALIBRATING)


def test_nothing_is_asked_where_what_people_are_told_stays(client_of, world) -> None:
    world.project.guidelines = "Two\nlines"
    world.project.save()
    world.calibrating(m=60, p=Decimal(1))
    world.label(limit=20)
    answer = save(client_of(world.manager), world, guidelines="Two\r\nlines", name="Another name")
    assert answer.status_code == 302


def test_beginning_again_cancels_the_run_and_leads_to_its_plan(client_of, world) -> None:
    run = world.calibrating(m=60, p=Decimal(1), epsilon=Decimal("0.12"), budget=Decimal("2500.5"))
    world.label(limit=20)
    client = client_of(world.manager)
    answer = save(client, world, guidelines="Look at the ears.", words="begin_again")
    assert answer.status_code == 302
    run.refresh_from_db()
    world.project.refresh_from_db()
    assert (world.project.guidelines, run.state) == ("Look at the ears.", Run.State.CANCELLED)
    page = client.get(answer["Location"]).content.decode()
    assert "Filled in as run 1 was planned." in page
    assert re.search(r'name="m" value="60"', page)
    assert re.search(r'name="epsilon" value="12"', page)
    assert re.search(r'name="budget" value="2500.5"', page)


def test_an_experts_run_cannot_go_on_by_other_words(client_of) -> None:
    world = make_world(150)
    add_member(world.project, user=make_user("erin"))
    run = world.calibrating(m=60, p=Decimal(1), reference="expert", expert="erin", rule="")
    client = client_of(world.manager)
    said = words(save(client, world, guidelines="Look at the ears.").content.decode())
    assert "cannot go on with other words" in said
    assert "let the run go on" not in said
    # Whoever insists is refused as before.
    assert save(client, world, guidelines="Look at the ears.", words="go_on").status_code == 200
    world.project.refresh_from_db()
    assert world.project.guidelines == ""
    assert save(client, world, guidelines="Look at the ears.", words="begin_again").status_code == 302
    run.refresh_from_db()
    assert run.state == Run.State.CANCELLED


def test_what_is_wrong_with_the_settings_cancels_nothing(client_of, world) -> None:
    run = world.calibrating(m=60, p=Decimal(1))
    world.label(limit=20)
    refused = save(client_of(world.manager), world, guidelines="x" * 200_000, words="begin_again")
    assert refused.status_code == 200
    run.refresh_from_db()
    assert run.state == Run.State.CALIBRATING


def test_the_run_that_was_spoken_of_begins_again_and_not_a_later_one_that_is_over(client_of) -> None:
    world = make_world(150)
    add_member(world.project, user=make_user("erin"))
    first = world.start(m=60, p=Decimal(1), reference="expert", expert="erin", rule="")
    Run.objects.filter(pk=first.pk).update(state=Run.State.ANALYSED)
    cancel_run(run=world.start(m=60, p=Decimal(1)), user=world.manager)
    client = client_of(world.manager)
    assert "Run 1 rests on" in words(save(client, world, guidelines="Look at the ears.").content.decode())
    answer = save(client, world, guidelines="Look at the ears.", words="begin_again")
    assert answer.status_code == 302
    assert answer["Location"].endswith("?like=1")
    first.refresh_from_db()
    assert first.state == Run.State.CANCELLED


def test_a_run_that_is_over_does_not_begin_again(client_of, world) -> None:
    run = world.complete(m=60, p=Decimal(1))
    answer = save(client_of(world.manager), world, guidelines="Look at the ears.", words="begin_again")
    assert "There is no run any more" in answer.content.decode()
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE


@pytest.mark.parametrize(
    "fields",
    [
        {
            "m": 60,
            "p": Decimal("0.8"),
            "epsilon": Decimal("0.055"),
            "bound": "hoeffding",
            "p_column": "",
        },
        {"m": 60, "p": Decimal(1), "rule": "split_fixed_sequence", "split_share": Decimal("0.4")},
        {"m": 60, "p": Decimal(1), "reference": "settled", "rule": ""},
        {
            "m": 60,
            "p": Decimal(1),
            "reference": "expert",
            "expert": "erin",
            "expert_cost": Decimal(7),
            "recheck_share": Decimal("0.25"),
            "rule": "",
        },
        {"m": 60, "p": Decimal(1), "target": "population", "later_audit_share": Decimal("0.1")},
        {"m": 60, "suggestions": True},
    ],
    ids=["p", "split", "settled", "expert", "population", "suggestions"],
)
def test_a_plan_like_that_of_a_run_is_that_plan(fields) -> None:
    world = make_world(150)
    for name in ("erin", "finn", "gus"):
        add_member(world.project, user=make_user(name))
    first = world.start(**fields)
    form = PlanForm(plan_form_data(first), project=world.project)
    assert form.is_valid(), form.errors
    cancel_run(run=first, user=world.manager)
    second = world.start(**{"rule": "", "m": 1, "p": None, **form.values()})
    same = [
        *(
            "epsilon",
            "alpha",
            "target",
            "m",
            "p",
            "p_column",
            "rule",
            "bound",
            "loss",
            "loss_params",
            "score",
        ),
        *("split_share", "reference", "expert_cost", "recheck_share", "audit_share", "accepted_error"),
        *("later_audit_share", "draw_from", "suggestions", "budget"),
    ]
    assert {name: getattr(second, name) for name in same} == {name: getattr(first, name) for name in same}
    assert _people(second) == _people(first)


def _people(run: Run) -> list[tuple[str, str, Fraction]]:
    return [(row.user.username, row.role, Fraction(row.share)) for row in run.roster.select_related("user")]


def test_shares_of_a_roster_come_along(world) -> None:
    for name in ("finn", "gus"):
        add_member(world.project, user=make_user(name))
    run = world.start(m=60, p=Decimal(1), roster={"finn": Fraction(1, 4), "gus": Fraction(3, 4)})
    initial = plan_form_data(run)
    assert initial["roster"] == ["finn", "gus"]
    assert initial["shares"] == "finn = 1/4\ngus = 3/4"


def test_a_plan_is_like_no_run_of_another_project(client_of, world) -> None:
    client = client_of(world.manager)
    for like in ("1", "x", "-1"):
        assert client.get(reverse("plan", args=[world.project.slug]), {"like": like}).status_code == 404
