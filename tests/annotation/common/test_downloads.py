"""Downloads of stored files: checksum, what is not sent twice, and parts of a file."""

import base64
import hashlib
import io
import zipfile

import pyarrow.parquet as pq
import pytest
from django.urls import reverse

from routing.models import Delivery
from testbed.worlds import World, make_world
from tests.routing.delivery.test_delivery_pages import delivered, page_of

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


@pytest.fixture
def world() -> World:
    return make_world(60)


@pytest.fixture
def delivery(world: World) -> Delivery:
    return delivered(world, world.complete(m=30))


def body(response) -> bytes:
    return b"".join(response.streaming_content)


def test_a_download_says_its_length_and_checksum(client_of, world, delivery) -> None:
    path = reverse("delivery_file", args=[world.project.slug, delivery.pk, "labels.jsonl"])
    answer = client_of(world.manager).get(path)
    content = body(answer)
    digest = hashlib.sha256(content)
    assert answer.headers["Content-Length"] == str(len(content))
    assert answer.headers["ETag"] == f'"{digest.hexdigest()}"'
    assert answer.headers["Repr-Digest"] == f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"
    name = f"{world.project.slug}-run-1-delivery-1-labels.jsonl"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "no-cache" in answer.headers["Cache-Control"]


def test_what_the_browser_has_is_not_sent_again(client_of, world, delivery) -> None:
    client = client_of(world.manager)
    path = reverse("delivery_file", args=[world.project.slug, delivery.pk, "labels.csv"])
    etag = client.get(path).headers["ETag"]
    assert client.get(path, headers={"If-None-Match": etag}).status_code == 304
    assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [("bytes=0-9", 0, 10), ("bytes=100-", 100, None), ("bytes=-7", -7, None), ("bytes=5-99999999", 5, None)],
)
def test_a_part_of_a_file_is_sent_alone(client_of, world, delivery, asked, start, end) -> None:
    client = client_of(world.manager)
    path = reverse("delivery_file", args=[world.project.slug, delivery.pk, "labels.csv"])
    whole = body(client.get(path))
    answer = client.get(path, headers={"Range": asked})
    assert answer.status_code == 206
    content = body(answer)
    assert content == whole[start:end]
    assert answer.headers["Content-Length"] == str(len(content))
    first = whole.index(content) if start >= 0 else len(whole) + start
    last = first + len(content) - 1
    assert answer.headers["Content-Range"] == f"bytes {first}-{last}/{len(whole)}"


def test_ranges_that_mean_nothing(client_of, world, delivery) -> None:
    client = client_of(world.manager)
    path = reverse("delivery_file", args=[world.project.slug, delivery.pk, "labels.csv"])
    whole = body(client.get(path))
    beyond = client.get(path, headers={"Range": f"bytes={len(whole)}-"})
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, f"bytes */{len(whole)}")
    assert client.get(path, headers={"Range": "bytes=9-3"}).status_code == 416
    assert client.get(path, headers={"Range": "bytes=-0"}).status_code == 416
    for asked in ("bytes=0-1,4-5", "bytes=-", "lines=1-2", "bytes=a-b"):
        assert body(client.get(path, headers={"Range": asked})) == whole
    stale = client.get(path, headers={"Range": "bytes=0-1", "If-Range": '"what it was before"'})
    assert body(stale) == whole


def test_the_formats_of_a_delivery_are_chosen_on_its_page(client_of, world) -> None:
    run = world.complete(m=30)
    client = client_of(world.manager)
    assert 'value="csv" id="format-csv" checked' in page_of(world, client)
    path = reverse("run_deliver", args=[world.project.slug, run.number])
    answer = client.post(path, {"choose": "1"}, follow=True)
    assert "Choose at least one of these formats" in answer.content.decode()
    assert not world.project.jobs.filter(kind="deliver_run").exists()
    client.post(path, {"choose": "1", "format": ["parquet", "tsv"]})
    world.do("deliver_run")
    delivery = run.deliveries.get()
    names = set(delivery.files.values_list("name", flat=True))
    assert names == {
        "labels.tsv",
        "labels.parquet",
        "committed.jsonl",
        "answered.jsonl",
        "certificate.json",
        "draw.jsonl",
        "README.md",
        "manifest.json",
    }
    page = page_of(world, client)
    assert 'value="parquet" id="format-parquet" checked' in page
    assert 'value="csv" id="format-csv" checked' not in page
    archive = client.get(reverse("delivery_zip", args=[world.project.slug, delivery.pk]))
    with zipfile.ZipFile(io.BytesIO(body(archive))) as files:
        assert pq.read_table(io.BytesIO(files.read("run-1-delivery-1/labels.parquet"))).num_rows == 60
        card = files.read("run-1-delivery-1/README.md").decode()
        assert "labels.tsv" in card
        assert "has an apostrophe in front" in card


def test_a_delivery_from_another_page_has_the_usual_formats(client_of, world) -> None:
    run = world.complete(m=30)
    client_of(world.manager).post(reverse("run_deliver", args=[world.project.slug, run.number]))
    assert world.project.jobs.get(kind="deliver_run").params["formats"] == ["csv", "jsonl"]
