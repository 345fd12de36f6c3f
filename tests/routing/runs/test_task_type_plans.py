"""The plan page of projects that ask for something else than one choice."""

import html
import re

import pytest
from django.urls import reverse

from routing.models import Run
from routing.runs.plan_options import NO_EMBEDDINGS
from testbed.worlds import LONG, NUMBERS, SETS, Answers, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
CODE = Answers("code", (), LONG.true, LONG.right, LONG.wrong)
PLAN = {"epsilon": "10", "alpha": "10", "m": "20", "p": "1", "target": "dataset", "rule": "fixed_sequence"}


@pytest.mark.parametrize(
    ("answers", "offered"),
    [
        (NUMBERS, ["numeric"]),
        (SETS, ["set_equal", "jaccard"]),
        (LONG, ["cosine_distance", "token_f1", "exact_match", "measured_elsewhere"]),
        (CODE, ["token_f1", "zero_one", "measured_elsewhere"]),
    ],
    ids=["number", "several", "long", "code"],
)
def test_the_losses_that_suit_are_offered_and_the_first_that_works_is_taken(client_of, answers, offered):
    taken = [next(name for name in offered if name != "cosine_distance")]  # this server has no embeddings
    world = make_world(40, answers=answers)
    client, url = client_of(world.manager), reverse("plan", args=[world.project.slug])
    page = html.unescape(client.get(url).content.decode())
    assert re.findall(r'name="loss" value="(\w+)"', page) == offered
    assert re.findall(r'name="loss" value="(\w+)"[^>]* checked', page) == taken
    answer = client.post(url, {**PLAN, "anyway": "on"})  # graded losses take more labels than there are here
    assert answer.status_code == 302, html.unescape(answer.content.decode())
    assert Run.objects.get().loss == taken[0]


def test_what_the_server_lacks_is_said_beside_the_loss_and_refused(client_of):
    world = make_world(40, answers=LONG)
    client, url = client_of(world.manager), reverse("plan", args=[world.project.slug])
    chosen = {**PLAN, "loss": "cosine_distance"}
    outlook = client.get(reverse("plan_outlook", args=[world.project.slug]), chosen)
    for answer in (client.get(url), client.post(url, chosen), outlook):
        assert str(NO_EMBEDDINGS) in html.unescape(answer.content.decode())
    assert not Run.objects.exists()


def test_only_numbers_have_a_tolerance_and_its_faults_a_place(client_of):
    for answers, offered in ((NUMBERS, True), (SETS, False)):
        world = make_world(30, answers=answers)
        client, slug = client_of(world.manager), world.project.slug
        page = client.get(reverse("plan", args=[slug])).content.decode()
        live = client.get(reverse("plan_outlook", args=[slug]), PLAN).content.decode()
        # What comes later has a place on the page: htmx reports what has none as an error.
        for name in ("tolerance", "tolerance_percent"):
            assert (f'id="id_{name}_error"' in page, f'id="id_{name}_error"' in live) == (offered, offered)


def test_the_tolerance_of_numbers_is_a_field_of_the_plan(client_of):
    world = make_world(40, answers=NUMBERS)
    client, url = client_of(world.manager), reverse("plan", args=[world.project.slug])
    typed = {**PLAN, "loss": "numeric", "tolerance": "0.5", "tolerance_percent": "2"}
    answer = client.post(url, typed)
    assert answer.status_code == 302, html.unescape(answer.content.decode())
    run = Run.objects.get()
    assert run.loss_params == {"absolute": "0.5", "relative": "0.02"}
    again = html.unescape(client.get(url, {"like": run.number}).content.decode())
    assert 'name="tolerance" value="0.5"' in again
    assert 'name="tolerance_percent" value="2"' in again
