"""The plan page of projects that ask for something else than one choice."""

import html
import re

import pytest
from django.urls import reverse

from annotation.task_types import TASK_TYPES
from routing.models import Run
from routing.runs.plan_options import NO_EMBEDDINGS
from testbed.worlds import LONG, NUMBERS, SETS, Answers, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
CODE = Answers("code", (), LONG.true, LONG.right, LONG.wrong)
PLAN = {"epsilon": "10", "alpha": "10", "m": "20", "p": "1", "target": "dataset", "rule": "fixed_sequence"}


@pytest.mark.parametrize(
    ("answers", "offered"),
    [(NUMBERS, ["numeric"]), (SETS, ["set_equal", "jaccard"]), (LONG, ["cosine_distance"]), (CODE, [])],
    ids=["number", "several", "long", "code"],
)
def test_the_losses_that_suit_are_offered_and_the_first_is_taken(client_of, answers, offered):
    world = make_world(40, answers=answers)
    client, url = client_of(world.manager), reverse("plan", args=[world.project.slug])
    page = html.unescape(client.get(url).content.decode())
    assert re.findall(r'name="loss" value="(\w+)"', page) == offered
    assert re.findall(r'name="loss" value="(\w+)"[^>]* checked', page) == offered[:1]
    refusals = {"long_text": str(NO_EMBEDDINGS), "code": str(TASK_TYPES["code"].no_loss)}
    refusal = refusals.get(answers.task_type)
    answer = client.post(url, PLAN)
    if refusal is None:
        assert answer.status_code == 302, html.unescape(answer.content.decode())
        assert Run.objects.get().loss == offered[0]
    else:
        assert refusal in html.unescape(answer.content.decode())
        assert not Run.objects.exists()
        # It is told before anything is sent, too, beside what the plan would mean.
        outlook = client.get(reverse("plan_outlook", args=[world.project.slug]), PLAN)
        assert refusal in html.unescape(outlook.content.decode())
        assert refusal in page
