"""Labelled data as files, for programs."""

import hashlib
import io
import zipfile

import pytest
from django.core.files.storage import default_storage
from django.urls import reverse

from annotation.jobs import jobs
from routing.management.runs import run_content
from routing.models import Delivery, Run
from routing.ports import CORRECTED
from routing.runs.certify import mark_invalid
from testbed.factories import make_project
from testbed.worlds import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def world(client):
    world = make_world(60)
    world.complete(m=30)
    client.force_login(world.manager)
    return world


def address(world, view, **parts) -> str:
    return reverse(view, kwargs={"slug": world.project.slug, **parts})


def made(client, world, body=None) -> dict:
    response = client.post(
        address(world, "api_deliver", number=1), body or {}, content_type="application/json"
    )
    assert response.status_code == 202
    jobs.run(response.json()["id"])
    job = client.get(response.headers["Location"]).json()
    assert job["state"] == "done", job
    found = client.get(address(world, "api_delivery", delivery_id=job["result"]["delivery"]))
    assert found.status_code == 200
    return found.json()


def content_of(response) -> bytes:
    return b"".join(response.streaming_content)


def test_a_delivery_names_its_files_and_what_is_in_them(client, world) -> None:
    delivery = made(client, world, {"formats": ["jsonl", "tsv"]})
    of_certificate = {"certificate.json", "draw.jsonl", "committed.jsonl", "answered.jsonl"}
    assert {"labels.jsonl", "labels.tsv", "README.md", "manifest.json", *of_certificate} == {
        file["name"] for file in delivery["files"]
    }
    assert (delivery["rows"], delivery["run"], delivery["partial"]) == (60, 1, False)
    for file in delivery["files"]:
        content = content_of(client.get(file["url"]))
        assert hashlib.sha256(content).hexdigest() == file["sha256"]
        assert len(content) == file["size"]
        if file["name"] == "certificate.json":
            assert file["sha256"] == delivery["certificate"]


def test_a_download_that_broke_off_goes_on_and_one_that_is_there_is_not_sent_again(client, world) -> None:
    file = made(client, world)["files"][0]
    whole = client.get(file["url"])
    content = content_of(whole)
    part = client.get(file["url"], headers={"range": "bytes=10-"})
    assert (part.status_code, content_of(part)) == (206, content[10:])
    assert client.get(file["url"], headers={"range": f"bytes={len(content)}-"}).status_code == 416
    assert client.get(file["url"], headers={"if-none-match": whole.headers["ETag"]}).status_code == 304


def test_the_archive_holds_all_files_and_is_the_same_each_time(client, world) -> None:
    delivery = made(client, world)
    answer = client.get(delivery["zip"])
    content = content_of(answer)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = {name.split("/", 1)[1] for name in archive.namelist()}
    assert names == {file["name"] for file in delivery["files"]}
    assert content_of(client.get(delivery["zip"])) == content
    assert client.get(delivery["zip"], headers={"if-none-match": answer.headers["ETag"]}).status_code == 304


def test_what_asks_for_its_own_type_gets_the_file(client, world) -> None:
    delivery = made(client, world)
    for file in delivery["files"]:
        assert client.get(file["url"], headers={"accept": file["media_type"]}).status_code == 200
    assert client.get(delivery["zip"], headers={"accept": "application/zip"}).status_code == 200


def test_deliveries_are_listed_newest_first(client, world) -> None:
    first, second = made(client, world), made(client, world, {"formats": ["json"]})
    here = address(world, "api_deliveries")
    assert [row["id"] for row in client.get(here).json()["results"]] == [second["id"], first["id"]]
    assert len(client.get(f"{here}?run=1").json()["results"]) == 2
    assert client.get(f"{here}?run=2").json()["results"] == []


def test_formats_that_are_unknown_or_none_are_refused(client, world) -> None:
    for formats in ([], ["docx"], "csv"):
        response = client.post(
            address(world, "api_deliver", number=1), {"formats": formats}, content_type="application/json"
        )
        assert response.status_code == 400, formats
        assert response.json()["field"].startswith("formats")
    assert not Delivery.objects.exists()


def test_a_part_says_what_it_is_and_what_of(client, world) -> None:
    whole = made(client, world)
    assert (whole["items"], whole["since"], whole["filters"], whole["part"]) == (60, None, {}, "")
    since = made(client, world, {"since": whole["id"], "filters": {}})
    assert (since["rows"], since["items"], since["since"]) == (0, 60, whole["id"])
    assert since["part"].startswith("A part: 0 of 60 items.")
    assert ("What is certified is about all 60 items" in since["part"]) is whole["certified"]
    filtered = made(client, world, {"filters": {"by": "person"}})
    assert (filtered["filters"], filtered["since"]) == ({"by": "person"}, None)
    assert 0 < filtered["rows"] < filtered["items"]


def test_what_is_certified_of_the_whole_is_not_told_of_a_part(client) -> None:
    world = make_world(400, error=(lambda u: 0.6 * u * u, lambda u: 0.3 * u * u))
    world.complete(m=200, epsilon="0.1", alpha="0.1")
    client.force_login(world.manager)
    whole = made(client, world)
    assert whole["certified"]
    for body in ({"filters": {"u_from": "0.3"}}, {"since": whole["id"]}):
        part = made(client, world, body)
        assert not part["certified"]
        assert part["sentence"] == f"{part['part']} {whole['sentence']}"
        assert "not about this part" in part["sentence"]
        assert part["certificate"] == whole["certificate"]
    listed = client.get(address(world, "api_deliveries")).json()["results"]
    assert [row["certified"] for row in listed] == [False, False, True]


def test_what_was_broken_is_certified_no_longer_for_programs(client) -> None:
    world = make_world(400, error=(lambda u: 0.6 * u * u, lambda u: 0.3 * u * u))
    run = world.complete(m=200, epsilon="0.1", alpha="0.1")
    client.force_login(world.manager)
    before = made(client, world)
    path = f"/api/v1/projects/{world.project.slug}/runs/{run.number}/"
    document = client.get(f"{path}certificate.json").content
    assert client.get(path).json()["certificate"]["certified"]
    mark_invalid(run=run, why=CORRECTED, params={"item": "7"}, actor=None)
    after = client.get(address(world, "api_delivery", delivery_id=before["id"])).json()
    assert (before["certified"], before["broken_by"]) == (True, [])
    assert (after["certified"], after["broken_by"]) == (
        False,
        ["The calibration label of item 7 was corrected after the labels had been locked."],
    )
    assert not client.get(path).json()["certificate"]["certified"]
    assert not run_content(Run.objects.get(pk=run.pk))["certified"]
    assert client.get(f"{path}certificate.json").content == document


def test_a_part_that_cannot_be_told_is_refused(client, world) -> None:
    whole = made(client, world)
    other = make_world(60)
    other.complete(m=30)
    for body, field in (
        ({"since": whole["id"] + 1}, "since"),
        ({"since": "newest"}, "since"),
        ({"since": 2**70}, "since"),
        ({"since": whole["id"], "filters": {"by": "person"}}, "since"),
        ({"filters": {"colour": "red"}}, "colour"),
        ({"filters": {"label": "unicorn"}}, "label"),
        ({"filters": ["by"]}, "filters"),
    ):
        response = client.post(address(world, "api_deliver", number=1), body, content_type="application/json")
        assert (response.status_code, response.json()["field"]) == (400, field), response.json()
    client.force_login(other.manager)
    body = {"since": whole["id"]}
    response = client.post(address(other, "api_deliver", number=1), body, content_type="application/json")
    assert (response.status_code, response.json()["field"]) == (400, "since")


def test_nothing_is_delivered_before_the_run_is_routed(client) -> None:
    world = make_world(60)
    world.analysed(m=30)
    client.force_login(world.manager)
    response = client.post(address(world, "api_deliver", number=1), {}, content_type="application/json")
    assert response.status_code == 409


def test_deliveries_of_another_project_are_not_there(client, world) -> None:
    delivery = made(client, world)
    other = make_project(user=world.manager)
    for name, parts in (
        ("api_delivery", {}),
        ("api_delivery_zip", {}),
        ("api_delivery_file", {"name": "labels.csv"}),
    ):
        here = reverse(name, kwargs={"slug": other.slug, "delivery_id": delivery["id"], **parts})
        assert client.get(here).status_code == 404
    gone = address(world, "api_delivery_file", delivery_id=delivery["id"], name="nothing")
    assert client.get(gone).status_code == 404


def test_a_file_that_the_storage_has_lost_is_said_so(client, world) -> None:
    delivery = made(client, world)
    file = Delivery.objects.get().files.get(name="labels.csv")
    default_storage.delete(file.file.storage_name)
    url = next(entry["url"] for entry in delivery["files"] if entry["name"] == "labels.csv")
    for lost in (url, delivery["zip"]):
        response = client.get(lost)
        assert response.status_code == 400
        assert "no longer in the storage" in response.json()["detail"]
