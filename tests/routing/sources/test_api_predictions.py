"""Predictions sent in and given out, by programs."""

import io
import json
from decimal import Decimal

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from annotation.common.api import uploads
from annotation.jobs import jobs
from annotation.people.tokens import make_token
from routing.models import SentAnswer
from routing.sources.manage import save_source
from testbed.factories import add_member, make_items, make_project
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]
NDJSON = "application/x-ndjson"


@pytest.fixture
def source(client):
    project = make_project(choices=("cat", "dog"))
    make_items(project, 3)
    client.force_login(project.created_by)
    return save_source(
        project=project,
        user=project.created_by,
        name="Outside",
        backend="uploaded",
        params={"model": "house-7b"},
        cost_per_label=Decimal(0),
    )


def send(client, source, lines, query="", content_type=NDJSON):
    body = "".join(json.dumps(line) + "\n" for line in lines)
    here = reverse("api_source_predictions", kwargs={"slug": source.project.slug, "source_id": source.pk})
    return client.post(f"{here}{query}", body, content_type=content_type)


def test_lines_are_taken_in_by_a_job_that_names_what_it_could_not_use(client, source) -> None:
    lines = [
        {"external_id": "t0", "label": "cat", "confidence": 0.9},
        {"external_id": "t1", "label": "emu"},
        {"external_id": "t7", "label": "cat"},
    ]
    response = send(client, source, lines)
    assert response.status_code == 202
    jobs.run(response.json()["id"])
    job = client.get(response.headers["Location"]).json()
    counts = {"added": 1, "already_there": 0, "problems": 2, "compared": False}
    assert (job["state"], job["result"]) == ("done", counts)
    assert {problem["where"] for problem in job["problems"]} == {"line 2, field “label”", "line 3"}
    assert [problem["line"] for problem in job["problems"]] == [2, 3]
    [listed] = client.get(reverse("api_jobs", args=[source.project.slug])).json()["results"]
    assert (listed["problem_count"], job["problem_count"], response.json()["problem_count"]) == (2, 2, 0)
    assert SentAnswer.objects.get().item.external_id == "t0"


def test_as_many_lines_come_in_as_any_file_may_have(client, source) -> None:
    """More than Django takes into memory: 100,000 answers are a usual size."""
    _, secret = make_token(user=source.project.created_by, name="nightly")
    program = Client(headers={"Authorization": f"Token {secret}", "Idempotency-Key": "as-a-whole"})
    lines = [{"external_id": f"t{n}", "label": "cat", "confidence": 0.123456} for n in range(100_000)]
    response = send(program, source, lines)
    assert response.status_code == 202
    assert source.project.files.get().size > settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    again = send(program, source, lines)
    assert (again.json(), again.headers["Idempotency-Replayed"]) == (response.json(), "true")
    assert send(program, source, lines[1:]).status_code == 422
    assert source.project.jobs.count() == 1


def test_lines_that_break_off_leave_nothing_and_come_again(client, source, monkeypatch) -> None:
    lines = [{"external_id": f"t{n}", "label": "cat", "confidence": 0.9} for n in range(3)]
    with monkeypatch.context() as patched:
        patched.setattr(uploads, "_body_of", lambda request: io.BytesIO(b'{"external_id": "t0", '))
        assert "broke off" in send(client, source, lines).json()["detail"]
    assert not source.project.files.exists()
    assert not source.project.jobs.exists()
    jobs.run(send(client, source, lines).json()["id"])
    assert SentAnswer.objects.count() == 3


def test_what_cannot_be_read_at_all_is_refused_at_once(client, source) -> None:
    line = [{"external_id": "t0", "label": "cat"}]
    assert send(client, source, line, "?encoding=latin").status_code == 400
    assert send(client, source, line, "?format=csv").status_code == 400
    assert send(client, source, line, "?revison=2").status_code == 400
    assert not source.project.jobs.exists()


def test_a_second_file_waits_for_the_first(client, source) -> None:
    line = [{"external_id": "t0", "label": "cat"}]
    assert send(client, source, line).status_code == 202
    assert send(client, source, line).status_code == 409


def test_another_kind_of_source_takes_none(client) -> None:
    world = make_world(20)
    client.force_login(world.manager)
    response = send(client, world.project.sources.first(), [{"external_id": "t0", "label": "cat"}])
    assert response.status_code == 400
    assert not world.project.files.exists()


def test_nobody_sees_a_prediction_before_the_analysis_nor_while_another_run_is_open(client) -> None:
    world = make_world(60, costs=("1",), error=(lambda u: u / 2,))
    world.calibrated(m=30)
    client.force_login(world.manager)
    addresses = [
        reverse(name, kwargs={"slug": world.project.slug})
        for name in ("api_predictions", "api_prediction_lines")
    ]
    for address in addresses:
        response = client.get(address)
        assert response.status_code == 403
        assert "model1" not in response.content.decode()
    for role in ("annotator", "reviewer"):
        client.force_login(add_member(world.project, role))
        assert [client.get(address).status_code for address in addresses] == [403, 403]


def test_after_the_analysis_predictions_are_listed_with_their_scores(client) -> None:
    world = make_world(60)
    world.analysed(m=30)
    client.force_login(world.manager)
    first = world.project.sources.order_by("position").first()
    here = reverse("api_predictions", kwargs={"slug": world.project.slug})
    page = client.get(f"{here}?source={first.pk}&page_size=50").json()
    rest = client.get(page["next"]).json()
    rows = page["results"] + rest["results"]
    assert (len(page["results"]), len(rows), rest["next"]) == (50, 60, None)
    assert {row["external_id"] for row in rows} == {f"t{n}" for n in range(60)}
    item = world.project.items.get(external_id="t5")
    [row] = client.get(f"{here}?source={first.pk}&external_id=t5").json()["results"]
    assert (row["item"], row["value"]) == (item.pk, item.data["model1"])
    [score] = row["scores"]
    assert score["uncertainty"] == pytest.approx(1 - float(item.data["confidence1"]))
    lines = reverse("api_prediction_lines", kwargs={"slug": world.project.slug})
    answer = client.get(f"{lines}?source={first.pk}", headers={"accept": NDJSON})
    assert answer.headers["Content-Type"] == NDJSON
    sent = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]
    assert sent == rows
