"""Boxes: images and two models' answers come in, people draw in another program, it is certified here."""

import io
import json
import zipfile
from decimal import Decimal
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from django.core.files.storage import default_storage
from django.urls import reverse
from PIL import ExifTags, Image

from annotation.common.files import open_file
from annotation.common.storage import StorageError
from annotation.models import AuditEvent, Item, Label
from routing.core.losses import make_loss
from routing.core.verify import main as verify
from routing.delivery.formats import FORMATS
from routing.models import Run
from testbed.delivered import delivered
from testbed.worlds import Answers, make_world
from tests.annotation.imports.test_imports import storage
from tests.boxes_story import SIZE, regions, sides_of, world_of_boxes
from tests.verify.reports import found_in

__all__ = ["storage"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]


def work(client, world, **query):
    client.force_login(world.manager)
    address = reverse("api_run_work_lines", args=[world.project.slug, 1])
    response = client.get(address, {"shape": "label-studio", **query})
    assert response.status_code == 200
    return [json.loads(line) for line in b"".join(response.streaming_content).splitlines()]


def back(client, world, rows, *, refused=0, **more):
    address = reverse("api_run_work", args=[world.project.slug, 1])
    body = {"rows": rows, "people": {"user 7": world.annotators[0].username}, **more}
    taken = client.post(address, body, content_type="application/json").json()
    assert len(taken["refused"]) == refused, taken["refused"]
    return taken


def drawn(tasks, truth, regions=regions):
    """An export of Label Studio, with what somebody drew."""
    return [
        {**task, "id": number, "annotations": [{"result": regions(truth[name]), "completed_by": 7}]}
        for number, task in enumerate(tasks)
        for name in [task["meta"]["hypac"]["external_id"]]
    ]


def delivered_from_elsewhere(client, world, truth, tmp_path, *, loss, epsilon, code, regions=regions):
    """The files of a run whose people draw in another program from its calibration set to its end, which are
    what was drawn, and hold; `code` is how the verifier ends.
    """
    run = world.start(m=90, p=Decimal(1), epsilon=epsilon, loss=loss)
    world.do("prepare_run")
    rows = drawn(work(client, world, part="calibration"), truth, regions)
    assert back(client, world, rows, part="calibration")["stored"] == len(rows)
    run.refresh_from_db()
    run = world.route(world.analyse(run))
    assert run.certificate.certified
    rows = drawn(work(client, world), truth, regions)
    assert back(client, world, rows)["stored"] == len(rows)
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE

    files = delivered(world, run, tuple(FORMATS))
    lines = [json.loads(line) for line in files["labels.jsonl"].splitlines()]
    assert {line["external_id"] for line in lines} == set(truth)
    by_people = [line for line in lines if line["source"] == "person"]
    assert all(line["label"] == world.truth[line["external_id"]] for line in by_people)
    assert {line["source"] for line in lines} == {"person", "Detector 1", "Detector 2"}
    given = [str(tmp_path / name) for name in ("certificate.json", "draw.jsonl")]
    for name in ("certificate.json", "draw.jsonl"):
        (tmp_path / name).write_bytes(files[name])
    assert verify(given) == 0
    found = found_in(tmp_path / "files", delivered(world, run))
    assert found.faults == ""
    assert found.code == code
    assert "given in another program" in found.notes
    return files


@pytest.mark.parametrize(("loss", "epsilon"), [("box_f1", "0.12"), ("boxes_right", "0.1")])
def test_from_a_zip_and_predictions_to_a_delivery_that_holds(client, storage, tmp_path, loss, epsilon):
    world, truth = world_of_boxes(150)
    code = {"box_f1": 3, "boxes_right": 0}[loss]
    files = delivered_from_elsewhere(
        client, world, truth, tmp_path, loss=loss, epsilon=Decimal(epsilon), code=code
    )
    lines = [json.loads(line) for line in files["labels.jsonl"].splitlines()]
    assert all(isinstance(sides_of(line["label"]), list) for line in lines)


# --- CVAT ---------------------------------------------------------------------------------------------------


def cvat(client, world, *, part="calibration"):
    client.force_login(world.manager)
    response = client.get(reverse("api_run_work_cvat", args=[world.project.slug, 1]), {"part": part})
    assert (response.status_code, response["Content-Type"]) == (200, "application/zip")
    return zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content)))


def sent_cvat(client, world, xml, **query):
    address = reverse("api_run_work_cvat", args=[world.project.slug, 1])
    query = {"part": "calibration", "annotator": world.annotators[0].username, **query}
    return client.post(f"{address}?{urlencode(query)}", xml, content_type="application/xml")


def boxes_in(image, boxes):
    """As CVAT writes them, in pixels."""
    width, height = int(image.get("width")), int(image.get("height"))
    for box in boxes:
        left, top = box["x"] * width / 100, box["y"] * height / 100
        right, bottom = left + box["width"] * width / 100, top + box["height"] * height / 100
        edges = {"xtl": left, "ytl": top, "xbr": right, "ybr": bottom}
        sides = {name: f"{edge:.6f}" for name, edge in edges.items()}
        ElementTree.SubElement(
            image, "box", {"label": box["label"], "occluded": "0", "z_order": "0", **sides}
        )


@pytest.fixture
def calibrating(storage):
    world, truth = world_of_boxes(60)
    world.start(m=40)
    world.do("prepare_run")
    return world, truth


def test_a_file_of_cvat_goes_there_and_comes_back(client, calibrating):
    world, truth = calibrating
    made = cvat(client, world)
    root = ElementTree.fromstring(made.read("annotations.xml"))  # noqa: S314 - ours
    assert [label.findtext("name") for label in root.iter("label")] == ["cat", "dog"]
    images, names = root.findall("image"), dict(Item.objects.values_list("pk", "external_id"))
    waiting = world.project.runs.get().calibration_batch.work_items.values_list("item", flat=True)
    assert {int(image.get("name").partition("_")[0]) for image in images} == set(waiting)
    for image in images:
        assert Image.open(io.BytesIO(made.read(f"images/{image.get('name')}"))).size == SIZE
        boxes_in(image, truth[names[int(image.get("name").partition("_")[0])]])
        image.set("name", f"images/{image.get('name')}")  # as of a task that was made of the archive
    xml = ElementTree.tostring(root)
    empty = [place for place, image in enumerate(images, start=1) if image.find("box") is None]
    taken = sent_cvat(client, world, xml).json()
    assert taken["stored"] == len(images) - len(empty)
    assert [entry["row"] for entry in taken["refused"]] == empty
    assert "empty=nothing" in taken["refused"][0]["reason"]
    again = sent_cvat(client, world, xml, empty="nothing").json()
    assert again == {"stored": len(empty), "known": len(images) - len(empty), "refused": []}
    loss = make_loss("boxes_right", {"iou": "0.99"})
    for label in Label.objects.select_related("item"):
        assert loss(world.truth[label.item.external_id], label.value) == 0


def test_an_image_that_is_lost_is_left_out_and_named(client, calibrating):
    world, _truth = calibrating
    whole = cvat(client, world)
    assert "left-out.txt" not in whole.namelist()
    batch = world.project.runs.get().calibration_batch
    item = batch.work_items.select_related("item__image").order_by("pk")[3].item
    default_storage.delete(item.image.storage_name)
    made = cvat(client, world)
    assert made.testzip() is None
    assert made.read("left-out.txt").decode() == f"{item.pk}\t{item.short_name}\n"
    assert len(made.namelist()) == len(whole.namelist())  # one image less, and the file that names it
    frames = ElementTree.fromstring(made.read("annotations.xml")).findall("image")  # noqa: S314 - ours
    assert item.pk not in {int(image.get("name").partition("_")[0]) for image in frames}


@pytest.mark.parametrize("error", [OSError("a cable"), StorageError("no answer")])
def test_an_image_that_breaks_while_it_is_read_is_left_out_and_named(client, calibrating, monkeypatch, error):
    world, _truth = calibrating
    batch = world.project.runs.get().calibration_batch
    broken = batch.work_items.select_related("item__image").order_by("pk")[3].item

    class Breaking(io.BytesIO):
        def read(self, *size):
            if self.tell():
                raise error
            return super().read(100)

    def opened(stored):
        return Breaking(b"x" * 500) if stored == broken.image else open_file(stored)

    monkeypatch.setattr("routing.elsewhere.cvat.open_file", opened)
    made = cvat(client, world)
    assert made.testzip() is None
    assert made.read("left-out.txt").decode() == f"{broken.pk}\t{broken.short_name}\n"
    assert len(made.namelist()) == batch.work_items.count() + 1  # one image less, and two files


def test_an_image_on_its_side_has_the_size_in_which_it_is_shown(client, calibrating):
    world, _truth = calibrating
    item = world.project.runs.get().calibration_batch.work_items.first().item
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    turned = io.BytesIO()
    Image.new("RGB", SIZE).save(turned, "PNG", exif=exif)
    default_storage.delete(item.image.storage_name)
    default_storage.save(item.image.storage_name, turned)
    frames = ElementTree.fromstring(cvat(client, world).read("annotations.xml")).findall("image")  # noqa: S314
    (frame,) = [one for one in frames if one.get("name").startswith(f"{item.pk}_")]
    assert (int(frame.get("width")), int(frame.get("height"))) == SIZE[::-1]


def test_what_no_box_is_told_with_its_image(client, calibrating):
    world, _truth = calibrating
    root = ElementTree.fromstring(cvat(client, world).read("annotations.xml"))  # noqa: S314 - ours
    turned, drawn, unknown, beyond, nameless = root.findall("image")[:5]
    for image in root.findall("image")[5:]:
        root.remove(image)
    for image in (turned, unknown, beyond, nameless):
        boxes_in(image, [{"label": "cat", "x": 10, "y": 10, "width": 20, "height": 20}])
    turned[0].set("rotation", "30")
    ElementTree.SubElement(drawn, "polygon", {"label": "cat", "points": "0,0;1,0;1,1"})
    unknown[0].set("label", "emu")
    beyond[0].set("xbr", "81")
    nameless.set("name", "cat.png")
    reasons = [
        entry["reason"] for entry in sent_cvat(client, world, ElementTree.tostring(root)).json()["refused"]
    ]
    words = ["turned", "only rectangles", "unknown label 'emu'", "beyond the image", "no item's number"]
    assert [word in reason for word, reason in zip(words, reasons, strict=True)] == [True] * 5
    assert not Label.objects.exists()


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        (b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x "y">]><annotations>&x;</annotations>', "DOCTYPE"),
        ("<annotations/>".encode("utf-16"), "UTF-8"),
        (b"<annotations>", "no XML"),
        (b"<annotations><version>1.1</version></annotations>", "no image"),
    ],
)
def test_what_is_no_file_of_cvat_is_refused(client, calibrating, xml, words):
    world, _truth = calibrating
    client.force_login(world.manager)
    refused = sent_cvat(client, world, xml)
    assert refused.status_code == 400
    assert words in refused.json()["detail"]


def test_cvat_has_no_shape_for_choices(client):
    world = make_world(60)
    world.calibrating(m=30)
    client.force_login(world.manager)
    address = reverse("api_run_work_cvat", args=[world.project.slug, 1])
    assert client.get(address, {"part": "calibration"}).json()["code"] == "no_boxes_asked"


def test_cvat_gets_no_addresses_of_images(client):
    boxes = Answers(
        "boxes", ("cat",), lambda random_: "[]", lambda random_, true: "[]", lambda random_, true: "[]"
    )
    world = make_world(60, answers=boxes)
    world.calibrating(m=30)
    client.force_login(world.manager)
    address = reverse("api_run_work_cvat", args=[world.project.slug, 1])
    assert client.get(address, {"part": "calibration"}).json()["code"] == "no_images_here"


def test_images_have_addresses_only_where_they_are_asked_for(client, calibrating):
    world, _truth = calibrating
    named = work(client, world, part="calibration")
    assert all(task["data"]["file_name"].endswith(".png") for task in named)
    assert not any("/" in task["data"]["file_name"] for task in named)
    linked = work(client, world, part="calibration", image_seconds=60)
    client.logout()
    shown = client.get(linked[0]["data"]["file_name"])
    assert (shown.status_code, shown["Content-Type"]) == (200, "image/png")
    own = work(client, world, shape="hypac", part="calibration", image_seconds=60)
    assert own[0]["image_url"].startswith("http")
    assert AuditEvent.objects.filter(data__image_seconds=60).count() == 2
