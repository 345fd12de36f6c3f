"""Masks: images and two models' answers come in, people draw in another program, it is certified here."""

import json
from decimal import Decimal
from xml.etree import ElementTree

import pytest
from django.urls import reverse

from annotation.models import Item, Label
from annotation.task_types import outline_budget
from routing.core.losses import make_loss
from tests.annotation.imports.test_imports import storage
from tests.masks_story import coco, cvat_mask, ellipse, painted, pixels_of, regions, world_of_masks
from tests.routing.elsewhere.test_boxes_elsewhere import (
    back,
    cvat,
    delivered_from_elsewhere,
    drawn,
    sent_cvat,
    work,
)
from tests.routing.sources.sending import problems, sent, uploaded

__all__ = ["storage"]
pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]


@pytest.mark.parametrize(("loss", "epsilon"), [("mask_dice", "0.15"), ("masks_right", "0.1")])
def test_from_a_zip_and_predictions_to_a_delivery_that_holds(client, storage, tmp_path, loss, epsilon):
    world, truth = world_of_masks(150)
    code = {"mask_dice": 3, "masks_right": 0}[loss]
    about = {"loss": loss, "epsilon": Decimal(epsilon), "code": code}
    files = delivered_from_elsewhere(client, world, truth, tmp_path, **about, regions=regions)
    tasks = json.loads(files["label_studio/tasks.json"])
    results = [one for task in tasks for said in task["annotations"] for one in said["result"]]
    assert results
    assert all(one["value"]["format"] == "rle" and one["original_width"] == 80 for one in results)
    assert b"<BrushLabels" in files["label_studio/config.xml"]


@pytest.fixture
def calibrating(storage):
    world, truth = world_of_masks(60)
    world.start(m=40)
    world.do("prepare_run")
    return world, truth


def test_a_file_of_cvat_goes_there_and_comes_back(client, calibrating):
    world, truth = calibrating
    root = ElementTree.fromstring(cvat(client, world).read("annotations.xml"))  # noqa: S314 - ours
    assert [label.findtext("type") for label in root.iter("label")] == ["mask", "mask"]
    images, names = root.findall("image"), dict(Item.objects.values_list("pk", "external_id"))
    for image in images:
        for mask in truth[names[int(image.get("name").partition("_")[0])]]:
            ElementTree.SubElement(image, "mask", {"occluded": "0", "z_order": "0", **cvat_mask(mask)})
    xml = ElementTree.tostring(root)
    empty = [place for place, image in enumerate(images, start=1) if image.find("mask") is None]
    taken = sent_cvat(client, world, xml).json()
    assert taken["stored"] == len(images) - len(empty)
    assert [entry["row"] for entry in taken["refused"]] == empty
    again = sent_cvat(client, world, xml, empty="nothing").json()
    assert again == {"stored": len(empty), "known": len(images) - len(empty), "refused": []}
    loss = make_loss("mask_dice")
    for label in Label.objects.select_related("item"):
        assert loss(world.truth[label.item.external_id], label.value) == 0


def test_what_no_mask_is_told_with_its_image(client, calibrating):
    world, _truth = calibrating
    root = ElementTree.fromstring(cvat(client, world).read("annotations.xml"))  # noqa: S314 - ours
    polygon, unknown, beyond, short, large = root.findall("image")[:5]
    for image in root.findall("image")[5:]:
        root.remove(image)
    mask = {"label": "cat", "rle": "0,4", "left": "3", "top": "3", "width": "2", "height": "2"}
    for image in (unknown, beyond, short, large):
        ElementTree.SubElement(image, "mask", mask)
    ElementTree.SubElement(polygon, "polygon", {"label": "cat", "points": "0,0;1,0;1,1"})
    unknown[0].set("label", "emu")
    beyond[0].set("left", "79")
    short[0].set("rle", "0,3")
    large.set("width", "100000")
    reasons = [
        entry["reason"] for entry in sent_cvat(client, world, ElementTree.tostring(root)).json()["refused"]
    ]
    words = ["only masks are read", "unknown label 'emu'", "beyond the image", "together 3", "65,535"]
    assert [word in reason for word, reason in zip(words, reasons, strict=True)] == [True] * 5
    assert not Label.objects.exists()


def test_what_no_brush_drew_is_told_with_its_row(client, calibrating):
    world, truth = calibrating
    tasks = drawn(work(client, world, part="calibration"), truth, regions)
    rows = [row for row in tasks if row["annotations"][0]["result"]][:3]
    for row, kind in zip(rows, ("polygonlabels", "brushlabels", "brushlabels"), strict=True):
        row["annotations"][0]["result"][0]["type"] = kind
    rows[1]["annotations"][0]["result"][0]["value"]["rle"] = painted(pixels_of(truth_of(rows[1], truth)))[:9]
    rows[2]["annotations"][0]["result"][0]["original_width"] = 81
    taken = back(client, world, rows, part="calibration", refused=3)
    reasons = [entry["reason"] for entry in taken["refused"]]
    assert "polygonlabels, which is not read here" in reasons[0]
    assert "not what Label Studio makes" in reasons[1]
    assert "not what Label Studio makes" in reasons[2]


def test_masks_of_an_image_of_another_size_are_refused_with_both_sizes(client, calibrating):
    world, truth = calibrating
    tasks = drawn(work(client, world, part="calibration"), truth, regions)
    row = next(row for row in tasks if row["annotations"][0]["result"])
    small = [coco("cat", ellipse(10, 10, 5, 5, (40, 30)))]
    row["annotations"][0]["result"] = regions(small)
    (refused,) = back(client, world, [row], part="calibration", refused=1)["refused"]
    assert "an image with 30 × 40 pixels (height × width), and this image has 60 × 80" in refused["reason"]
    name, other = world.project.items.values_list("external_id", flat=True)[:2]
    lines = [
        {"external_id": name, "label": small, "confidence": 0.5},
        {"external_id": other, "label": [], "confidence": 0.5},
    ]
    job = sent(uploaded(world.project, name="Small"), lines)
    assert (job.result["added"], job.result["problems"]) == (1, 1)
    ((where, message),) = problems(job).items()
    assert where.startswith("line 1")
    assert "30 × 40 pixels" in message


def test_what_is_too_much_for_one_request_is_told_and_can_be_sent_again(client, calibrating, monkeypatch):
    world, truth = calibrating
    rows = drawn(work(client, world, part="calibration"), truth, regions)
    monkeypatch.setattr(outline_budget, "MOST_AT_ONCE", 500)
    sent = rows
    for _request in rows:
        taken = client.post(
            reverse("api_run_work", args=[world.project.slug, 1]),
            {"rows": sent, "people": {"user 7": world.annotators[0].username}, "part": "calibration"},
            content_type="application/json",
        ).json()
        assert all("smaller parts" in entry["reason"] and entry["again"] for entry in taken["refused"])
        sent = [sent[entry["row"] - 1] for entry in taken["refused"]]
        if not sent:
            break
        assert taken["stored"], "nothing would ever be done"
    assert Label.objects.count() == len(rows)


def truth_of(row, truth):
    return truth[row["meta"]["hypac"]["external_id"]][0]
