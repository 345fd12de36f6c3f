"""Losses that the team's own program measures: asked for once the labels are locked, taken in, certified."""

import json
from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.errors import ConflictError, InputError
from annotation.models import AuditEvent, Item
from routing.core.verify import main as verify
from routing.models import GivenLosses, Prediction, Run
from routing.runs.ask_losses import ask_losses
from routing.runs.certify import analyse
from testbed.delivered import delivered
from testbed.worlds import make_world
from tests.measured_story import (
    MEASURE,
    MESHES,
    PLAN,
    measured,
    measuring,
    right_or_wrong,
    rows_given_out,
    size_of,
    with_losses,
    world_of_meshes,
)
from tests.verify.reports import found_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return world_of_meshes(80)


def asked(client, world, name="api_run_losses", user=None):
    client.force_login(user or world.manager)
    return client.get(reverse(name, args=[world.project.slug, 1]))


def lines(response):
    assert response.status_code == 200
    return [json.loads(line) for line in b"".join(response.streaming_content).splitlines()]


def given(client, world, rows):
    client.force_login(world.manager)
    address = reverse("api_run_losses", args=[world.project.slug, 1])
    return client.post(address, {"rows": rows}, content_type="application/json")


@pytest.mark.parametrize("rule", ["fixed_sequence", "every_score", "split_fixed_sequence"])
def test_from_labels_and_measured_losses_to_a_delivery_that_holds(client, tmp_path, rule):
    world = world_of_meshes(300)
    run = measuring(world, rule=rule, epsilon=Decimal("0.3"), m=200, p=Decimal(1))
    world._route(world._analyse(run))
    world.finish()
    run.refresh_from_db()
    assert (run.certificate.certified, run.state) == (True, Run.State.COMPLETE)
    document = json.loads(run.certificate.document)
    assert document["plan"]["loss_params"] == {"measure": MEASURE}
    draw = [json.loads(line) for line in run.certificate.draw_lines.splitlines()]
    for row in draw:
        assert row["losses"] == [measured(row["label"], answer) for answer in row["answers"]]
    files = delivered(world, run)
    assert MEASURE in files["README.md"].decode()
    assert MEASURE in client_page(client, world)
    given_files = [str(tmp_path / name) for name in ("certificate.json", "draw.jsonl")]
    for name in ("certificate.json", "draw.jsonl"):
        (tmp_path / name).write_bytes(files[name])
    assert verify(given_files) == 0


def client_page(client, world):
    client.force_login(world.manager)
    return client.get(reverse("run_certificate_page", args=[world.project.slug, 1])).content.decode()
