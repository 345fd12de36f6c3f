"""A promise of a mean loss is nowhere said to be one of labels that differ; what is to be typed is shown."""

import re
from collections.abc import Callable
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse

from routing.models import Run
from routing.runs.ask_losses import ask_losses
from routing.runs.form_fields import ParametersField
from routing.runs.plan_in_words import plan_in_words
from testbed.measured import MEASURE, PLAN, world_of_meshes
from testbed.worlds import World

TYPED = {"epsilon": "5", "alpha": "10", "target": "pool", "m": "60", "p": "1"}
MEASURED = {"loss": "measured_elsewhere", "loss_params": f"measure: {MEASURE}"}
OF_ERRORS = re.compile(r"labels (that )?differ|of the labels differ|may differ from the label|At most differ")


@pytest.fixture
def world() -> World:
    return world_of_meshes(100)


def words(page: bytes) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page.decode()).replace("\N{NO-BREAK SPACE}", " ").split())


@pytest.mark.django_db
@pytest.mark.costly
def test_the_plan_says_mean_loss_what_is_needed_and_how(
    world: World, client_of: Callable[..., Client]
) -> None:
    client, slug = client_of(world.manager), [world.project.slug]
    page = client.get(reverse("plan", args=slug)).content
    said = words(page)
    assert "At most this mean loss against the reference" in said
    assert "One thing more is needed: which program measures the loss" in said
    assert "measure = … : which program measures" in said
    assert re.search(rb'<details class="part" id="part-loss" open>', page)
    for binary in ("false", "true"):
        given = {**TYPED, **MEASURED, "loss_params": f"{MEASURED['loss_params']}\nbinary = {binary}"}
        live = words(client.get(reverse("plan_outlook", args=slug), given).content)
        assert f"What measures the loss: {MEASURE}" in live
        assert ("At most this mean loss" in live) == (binary == "false")
        assert ("the mean loss, from 0 to 1 for each, may be at most 0.05" in live) == (binary == "false")
        assert bool(OF_ERRORS.search(live)) == (binary == "true")


@pytest.mark.django_db
@pytest.mark.costly
def test_a_run_that_waits_for_losses_says_how_they_come(
    world: World, client_of: Callable[..., Client]
) -> None:
    run = world.calibrated(**{**PLAN, "m": 40})
    ask_losses(run=run, user=world.manager)
    address = reverse("run", args=[world.project.slug, run.number])
    page = client_of(world.manager).get(address).content.decode()
    place = reverse("help_document", args=["label-studio"]) + "#doc-losses-that-your-program-measures"
    assert f'href="{place}"' in page
    assert f'href="{reverse("help_document", args=["client"])}"' in page
    client = client_of(world.manager)
    assert 'id="doc-losses-that-your-program-measures"' in client.get(place).content.decode()
    newest = run.commitments.latest("number")
    assert newest.sha256 in page
    assert "Note this hash now" in page


@pytest.mark.django_db
@pytest.mark.costly
def test_the_pages_of_the_run_say_mean_loss(world: World, client_of: Callable[..., Client]) -> None:
    run = world.start(**{**PLAN, "m": 40, "epsilon": Decimal("0.05")})
    assert plan_in_words(run)[0][0] == "Mean loss against people's labels, at most (epsilon)"
    overview = words(client_of(world.manager).get(reverse("overview", args=[world.project.slug])).content)
    assert "Mean loss, at most (ε)" in overview
    assert "Labels that differ" not in overview


def test_a_run_knows_whether_its_loss_counts_errors() -> None:
    graded = Run(loss="measured_elsewhere", loss_params={"measure": "a"})
    counted = Run(loss="measured_elsewhere", loss_params={"measure": "a", "binary": True})
    assert [graded.binary, counted.binary, Run(loss="zero_one", loss_params={}).binary] == [False, True, True]


def test_parameters_are_read_as_the_help_writes_them_and_as_it_reads() -> None:
    field = ParametersField("loss_params")
    for typed in ("measure = square.py: 1.0", "measure: square.py: 1.0", " measure  =square.py: 1.0 "):
        assert field.clean(typed) == {"measure": "square.py: 1.0"}
    assert field.clean("measure = a=b\nbinary: true") == {"measure": "a=b", "binary": True}
    for typed in ("measure", "= 1", ": 1", "measure =", "measure:"):
        with pytest.raises(ValidationError):
            field.clean(typed)
