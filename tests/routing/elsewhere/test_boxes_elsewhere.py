"""Boxes: images and two models' answers come in, people label in another program, and it is certified here."""

import json
from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.projects.label_studio_config import read_config
from routing.core.verify import main as verify
from routing.models import Run
from testbed.delivered import delivered
from tests.annotation.imports.test_imports import storage
from tests.boxes_story import nearly, regions, sides_of, world_of_boxes
from tests.verify.reports import found_in

__all__ = ["storage"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly]
FORMATS = ("csv", "tsv", "json", "jsonl", "parquet", "xlsx", "doccano", "manifest", "huggingface", "label_studio")


def work(client, world, **query):
    client.force_login(world.manager)
    address = reverse("api_run_work_lines", args=[world.project.slug, 1])
    response = client.get(address, {"shape": "label-studio", **query})
    assert response.status_code == 200
    return [json.loads(line) for line in b"".join(response.streaming_content).splitlines()]


def back(client, world, rows, **more):
    address = reverse("api_run_work", args=[world.project.slug, 1])
    body = {"rows": rows, "people": {"user 7": world.annotators[0].username}, **more}
    taken = client.post(address, body, content_type="application/json").json()
    assert taken["refused"] == []
    return taken


def drawn(tasks, truth):
    """An export of Label Studio, with what somebody drew."""
    return [
        {**task, "id": number, "annotations": [{"result": regions(truth[name]), "completed_by": 7}]}
        for number, task in enumerate(tasks)
        for name in [task["meta"]["hypac"]["external_id"]]
    ]


@pytest.mark.parametrize(("loss", "epsilon"), [("box_f1", "0.12"), ("boxes_right", "0.2")])
def test_from_a_zip_and_predictions_to_a_delivery_that_holds(client, storage, tmp_path, loss, epsilon):
    world, truth = world_of_boxes(150)
    run = world.start(m=90, p=Decimal(1), epsilon=Decimal(epsilon), loss=loss)
    world.do("prepare_run")
    rows = drawn(work(client, world, part="calibration"), truth)
    assert back(client, world, rows, part="calibration")["stored"] == len(rows)
    run.refresh_from_db()
    run = world._route(world._analyse(run))
    assert run.certificate.certified
    rows = drawn(work(client, world), truth)
    assert back(client, world, rows)["stored"] == len(rows)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE

    files = delivered(world, run, FORMATS)
    lines = [json.loads(line) for line in files["labels.jsonl"].splitlines()]
    assert {line["external_id"] for line in lines} == set(truth)
    assert all(isinstance(sides_of(line["label"]), list) for line in lines)
    by_people = [line for line in lines if line["source"] == "person"]
    assert all(line["label"] == world.truth[line["external_id"]] for line in by_people)
    assert {line["source"] for line in lines} == {"person", "Detector 1", "Detector 2"}
    given = [str(tmp_path / name) for name in ("certificate.json", "draw.jsonl")]
    for name in ("certificate.json", "draw.jsonl"):
        (tmp_path / name).write_bytes(files[name])
    assert verify(given) == 0
    kept = {name: content for name, content in files.items() if "/" not in name}
    found = found_in(tmp_path / "files", kept)
    assert found.faults == ""
    assert found.code == {"box_f1": 3, "boxes_right": 0}[loss]
    assert "given in another program" in found.notes
