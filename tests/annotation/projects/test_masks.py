"""Masks on images: what a value is, by the desk, in configurations, imports and predictions."""

import html
import json
import re
import time
from decimal import Decimal

import numpy as np
import pytest
from django.urls import reverse

from annotation.common.value_reader import ValueReader, reader_of
from annotation.errors import InputError
from annotation.imports.formats.label_studio_results import short_value_of, value_of
from annotation.labelling.alike import Alike
from annotation.labelling.label_queries import label_in_words, with_choice
from annotation.models import Label, Settlement
from annotation.projects.label_studio_config import config_of, read_config, results_of
from annotation.projects.manage import create_project
from annotation.review.agreement_queries import agreement
from annotation.task_types import SHAPES, TASK_TYPES, outline_budget, rle
from annotation.task_types.brush import packed
from annotation.templatetags.shapes import drawn, shapes_of
from routing.label_studio.label_config import read_label_control
from routing.sources.backends import TaskSpec
from routing.sources.backends.label_studio_ml.calls import answer_of
from routing.sources.backends.label_studio_ml.label_config import label_config
from routing.sources.backends.llm.answers import schema_of
from routing.sources.prompts import default_prompt, read_answer
from routing.sources.suggested import add_suggested, found_models
from testbed.factories import add_member, make_image, make_image_items, make_project, make_user
from tests.annotation.imports.test_imports import storage
from tests.annotation.labelling.test_annotate import fields
from tests.annotation.projects.test_boxes import answered, asked
from tests.label_studio_story import brought
from tests.masks_story import CONFIG, SIZE, coco, cvat_mask, ellipse, pixels_of, regions
from tests.routing.sources.sending import problems, sent, uploaded

__all__ = ["storage"]
pytestmark = pytest.mark.database

READ = ValueReader("masks", {"cat": "cat", "Cat": "cat", "dog": "dog"})
KIND = SHAPES[1]
CAT = {"label": "cat", "size": [4, 6], "counts": [5, 2, 2, 2, 13]}
DOG = {"label": "dog", "size": [4, 6], "counts": [0, 24]}
CAT_TEXT = '{"label":"cat","size":[4,6],"counts":[5,2,2,2,13]}'
DOG_TEXT = '{"label":"dog","size":[4,6],"counts":[0,24]}'


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ([DOG, CAT], f"[{CAT_TEXT},{DOG_TEXT}]"),
        ([{**CAT, "label": "Cat"}], f"[{CAT_TEXT}]"),
        (json.dumps([CAT]), f"[{CAT_TEXT}]"),
        ([json.dumps(CAT)], f"[{CAT_TEXT}]"),
        ([{**CAT, "counts": ["5", "2", "2", "2", "13"], "size": ["4", "6"]}], f"[{CAT_TEXT}]"),
        ([{**CAT, "counts": "5220;"}], f"[{CAT_TEXT}]"),  # as pycocotools packs it
        ([{**CAT, "counts": [5, 1, 0, 1, 2, 2, 13, 0]}], f"[{CAT_TEXT}]"),
        ([CAT, {**DOG, "counts": [24]}], f"[{CAT_TEXT}]"),  # a mask without a pixel says nothing
        ([], "[]"),
        ("[]", "[]"),
        ([{**DOG, "counts": [24]}], "[]"),
        ([CAT, CAT], f"[{CAT_TEXT},{CAT_TEXT}]"),
    ],
)
def test_masks_have_one_form(raw, value):
    assert READ(raw) == (value, "")
    assert READ(value) == (value, "")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("cat", "no JSON list of masks"),
        ({"masks": []}, "no JSON list"),
        ([CAT, "x"], "mask 2: it is no object with label, size, counts"),
        ([{**CAT, "label": "emu"}], "mask 1: unknown label 'emu'"),
        ([{**CAT, "label": None}], "no “label”"),
        ([{"label": "cat", "counts": [24]}], "no “size”"),
        ([{"label": "cat", "size": [4, 6]}], "no “counts”"),
        ([{**CAT, "score": 0.5}], "a field beside"),
        ([{**CAT, "size": [4]}], "height and width"),
        ([{**CAT, "size": [0, 6]}], "height and width"),
        ([{**CAT, "size": [4.5, 6]}], "height and width"),
        ([{**CAT, "size": [65536, 1]}], "height and width"),
        ([{**CAT, "size": [65535, 65535], "counts": [65535**2]}], "height and width"),
        ([{**CAT, "counts": [5, 2]}], "together 7 pixels, and its size has 24"),
        ([{**CAT, "counts": [-1, 25]}], "no run lengths"),
        ([{**CAT, "counts": [5, True, 18]}], "no run lengths"),
        ([{**CAT, "counts": [5, 10**5000]}], "no run lengths"),
        ([{**CAT, "counts": "é"}], "no run lengths"),
        ([{**CAT, "counts": {"5": 2}}], "no run lengths"),
        ([CAT, {**DOG, "size": [6, 4]}], "several sizes"),
        ("[" * 100_000, "no JSON list"),
        ("[]" + " " * 500_000, "characters"),
        ([CAT] * 501, "more than 500"),
        ([{"label": "cat", "size": [4, 6], "rle": [1, 2]}], "not what Label Studio makes"),
        ([{"label": "cat", "size": [4, 6], "rle": packed([5, 7], 25)}], "not what Label Studio makes"),
        ("", "no answer"),
        (None, "no answer"),
    ],
)
def test_what_is_no_list_of_masks_is_refused_with_its_mask(raw, words):
    value, reason = READ(raw)
    assert value is None
    assert words in reason


def test_large_sizes_with_few_runs_cost_nothing_and_long_outlines_are_refused():
    began = time.perf_counter()
    whole = {"label": "cat", "size": [31_250, 32_000], "counts": [0, 10**9]}
    assert READ([whole])[1] == ""
    assert "longer than 500,000" in READ([whole] * 5)[1]
    stripes = {"size": [64_000, 15_000], "rle": packed(range(0, 960_000_000, 15_000), 960_000_000)}
    assert "longer than 500,000" in READ([{"label": "cat", **stripes}])[1]
    part = KIND.of_cvat({"label": "cat", "rle": "0,900000000", "left": "0", "top": "0"}, 30_000, 30_000)
    assert READ([{**part, "width": "30000", "height": "30000"}])[1] == ""
    assert "longer" in READ([{**part, "width": "30000", "height": "30000"}] * 5)[1]
    assert time.perf_counter() - began < 5


def test_of_one_request_no_more_outline_is_read_than_bounded():
    stripes = {"label": "cat", "size": [40, 300], "rle": packed(range(0, 12_000, 300), 12_000)}
    sides = rle.perimeter(list(range(0, 12_000, 300)), 300)
    with outline_budget.bounded(3 * sides - 1):
        assert READ([stripes, stripes])[1] == ""
        for _again in range(2):
            value, reason = READ([stripes])
            assert value is None
            assert "smaller parts" in reason
        assert READ([CAT])[1] == ""
        with outline_budget.bounded(sides):
            assert READ([stripes])[1] == ""
    assert READ([stripes] * 4)[1] == ""


def test_models_are_asked_for_masks_and_read():
    spec = TaskSpec("masks", choices=(("cat", "A cat"), ("dog", "A dog")))
    prompt = default_prompt(spec).template
    assert '"counts": [...]' in prompt
    assert "{{ labels }}" in prompt
    assert read_answer(f"Here they are:\n```json\n[{CAT_TEXT}]\n```", spec).value == f"[{CAT_TEXT}]"
    assert read_answer("There is a cat.", spec).reason == "no JSON list of masks"
    masks = schema_of(spec)["properties"]["masks"]
    assert masks["items"]["required"] == ["label", "size", "counts"]


def test_results_of_label_studio_are_masks_and_masks_are_results():
    masks = [coco("dog", ellipse(20, 30, 9, 14)), coco("cat", ellipse(60, 20, 12, 9))]
    value = READ(masks)[0]
    assert READ(value_of(regions(masks))[0]) == (value, "")
    results = results_of(value, read_config(CONFIG).control, name="1")
    assert READ(value_of(results)[0]) == (value, "")
    assert [json.loads(value), ""] == list(short_value_of(results))
    assert (results[0]["original_width"], results[0]["original_height"]) == (80, 60)
    assert (results[0]["type"], results[0]["value"]["format"]) == ("brushlabels", "rle")
    assert len({result["id"] for result in results}) == 2
    two = regions(masks[:1])
    two[0]["value"]["brushlabels"] = ["cat", "dog"]
    assert "“label”" in READ(value_of(two)[0])[1]


@pytest.mark.parametrize("kind", ["polygonlabels", "ellipselabels", "rectanglelabels"])
def test_an_answer_with_other_shapes_is_not_read_without_them(kind):
    other = {"type": kind, "from_name": "p", "value": {"points": [[0, 0]], kind: ["cat"]}}
    for results in ([other, *regions([CAT])], [*regions([CAT]), other]):
        value, problem = value_of(results)
        assert value is None
        assert "is not read here" in problem


@pytest.mark.parametrize("mask", [coco("cat", ellipse(30, 20, 9, 14)), coco("dog", ellipse(79, 59, 30, 30))])
def test_masks_of_cvat_are_read(mask):
    entry = KIND.of_cvat(cvat_mask(mask), 80, 60)
    assert READ([entry]) == READ([mask])
    for field, words in (("rle", "no whole number"), ("left", "no whole number"), ("top", "no whole number")):
        assert words in READ([KIND.of_cvat({**cvat_mask(mask), field: "1.5"}, 80, 60)])[1]
    assert "beyond the image" in READ([KIND.of_cvat({**cvat_mask(mask), "left": "70"}, 80, 60)])[1]
    assert "pixels, and its width" in READ([KIND.of_cvat({**cvat_mask(mask), "rle": "5"}, 80, 60)])[1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('<Label value="Cat" alias="cat" background="#b3401d"/>', "<Label/>"), "BrushLabels needs a Label"),
        (("<Image", "<Text"), "BrushLabels draws on one Image"),
        (("<View>", '<View><PolygonLabels name="p" toName="picture"/>'), "PolygonLabels"),
        (("<View>", '<View><RectangleLabels name="p" toName="picture"/>'), "asks 2 things"),
    ],
)
def test_a_configuration_that_asks_for_something_else_is_refused(change, words):
    with pytest.raises(InputError, match=re.escape(words)):
        read_config(CONFIG.replace(*change))


@pytest.fixture
def project(db):
    return create_project(user=make_user("owner"), name="Animals", label_config=CONFIG)


def test_the_desk_says_where_masks_are_drawn_shows_them_and_takes_them_as_json(project, client_of):
    config = read_config(config_of(project))
    assert (config.task_type, [spec.key for spec in config.choices]) == ("masks", ["cat", "dog"])
    _item, (ann,) = asked(project, size=(6, 4))
    client = client_of(ann)
    page = client.get(reverse("annotate", args=[project.slug])).content.decode()
    assert "Masks are drawn in Label Studio or CVAT" in page
    submit = reverse("annotate_submit", args=[project.slug])
    refused = client.post(submit, {**fields(page), "value": json.dumps([{**CAT, "counts": [1]}])})
    assert "together 1 pixels" in html.unescape(refused.content.decode())
    client.post(submit, {**fields(page), "value": json.dumps([CAT])})
    label = Label.objects.get()
    assert label.value == f"[{CAT_TEXT}]"
    assert label_in_words(label.value, {"cat": "Cat", "dog": "Dog"}) == "1 mask: Cat × 1"
    assert label_in_words("[]", {"cat": "Cat"}) == "nothing to draw"
    assert with_choice(Label.objects.all(), project, "cat").exists()
    assert not with_choice(Label.objects.all(), project, "dog").exists()
    page = client.get(reverse("annotate", args=[project.slug]), {"correct": label.pk}).content.decode()
    shown = '<path d="M1 1h1v2h-1zM2 1h1v2h-1z" fill="#b3401d"><title>Cat</title>'
    assert shown in page
    assert 'viewBox="0 0 6 4"' in page
    assert "style=" not in page
    owner = client_of(project.created_by)
    page = owner.get(reverse("item", args=[project.slug, label.item_id])).content.decode()
    assert shown in page
    assert "1 mask: Cat × 1" in page


def test_what_is_shown_of_a_mask_is_short_whatever_it_is(project):
    by = shapes_of(project)
    assert by is not None
    noise = np.random.default_rng(1).integers(0, 2, (200, 1000), dtype=np.uint8)
    value = READ([coco("cat", noise)])[0]
    shown = drawn(value, by)
    assert shown is not None
    assert (shown.drawing.more, shown.shapes) == (1, [])  # too much of it to be drawn
    wide = READ([coco("cat", ellipse(2000, 100, 1900, 90, (4000, 200)))])[0]
    (path,) = drawn(wide, by).shapes
    assert 100 <= path.path.count("M") <= 201
    small = READ([coco("cat", ellipse(300, 100, 3, 3, (4000, 200)))])[0]
    assert drawn(small, by).shapes[0].path.count("M") == 7


def test_what_two_draw_nearly_alike_is_settled(project, client_of):
    _item, people = asked(project, people=2, overlap=2, size=SIZE)
    mask = coco("cat", ellipse(30, 30, 20, 20))
    near, other = coco("cat", np.roll(pixels_of(mask), 2)), coco("cat", ellipse(50, 30, 20, 20))
    first = answered(project, people[0], [mask])
    answered(project, people[1], [near])
    assert Settlement.objects.get().value == first.value
    assert agreement(project).together.equal.value == 1
    alike, reader = Alike(project), reader_of(project)
    assert not alike(reader([mask])[0], reader([other])[0])
    project.work_batches.update(withdrawn_at=None)
    _item, people = asked(project, people=2, overlap=2, size=SIZE)
    answered(project, people[0], [mask])
    answered(project, people[1], [other])
    assert Settlement.objects.count() == 1
    page = client_of(add_member(project, "reviewer")).get(reverse("review", args=[project.slug]))
    assert page.content.decode().count('<path d="') == 2


def test_tasks_of_label_studio_bring_labels_and_a_model(storage, db):
    mask, near = coco("cat", ellipse(30, 30, 20, 20)), coco("cat", ellipse(31, 30, 20, 20))
    export = [
        {
            "id": number,
            "data": {"image": f"https://pictures.example.org/{number}.png", "key": f"k{number}"},
            "annotations": [{"result": regions([mask]), "completed_by": 3}] if number < 3 else [],
            "predictions": [
                {"model_version": "sam", "score": round(0.5 + number / 100, 3), "result": regions([near])}
            ],
        }
        for number in range(8)
    ]
    project, job = brought(export, config=CONFIG, text_column="image")
    assert (job.result["added"], job.result["labels"]) == (8, 3)
    assert set(Label.objects.values_list("value", flat=True)) == {READ([mask])[0]}
    (model,) = found_models(project).sound
    assert (model.label_column, model.sure_column) == ("sam.label", "sam.score")
    assert json.loads(project.items.first().data["sam.label"]) == json.loads(READ([near])[0])
    add_suggested(project=project, user=project.created_by, prices={model.label_column: Decimal("0.01")})
    assert project.sources.get().backend == "recorded"


def test_an_annotation_of_json_min_without_a_result_says_what_one_of_json_says(storage, db):
    """That there is nothing to draw; and the second entry of a task has its answer although the first has
    none.
    """
    mask = coco("cat", ellipse(30, 30, 20, 20))
    (region,) = regions([mask])
    drawn_there = {**region["value"], "original_width": 80, "original_height": 60}
    ends = {"annotation_id": 1, "created_at": "2026-01-01", "lead_time": 2.0}
    data = {"image": "https://pictures.example.org/1.png", "key": "k", "id": 1}
    export = [{**data, "annotator": 3, **ends}, {**data, "animals": [drawn_there], "annotator": 4, **ends}]
    _project, job = brought(export, config=CONFIG, text_column="image")
    assert job.result["labels"] == 2
    assert set(Label.objects.values_list("value", flat=True)) == {"[]", READ([mask])[0]}


def test_what_is_wrong_with_a_line_of_predictions_is_told_and_what_it_says_is_not(project):
    make_image_items(project, [make_image(n, size=(6, 4)) for n in range(4)])
    wrong = [[{**CAT, "counts": [1]}], [{**CAT, "label": "secret"}], "masks"]
    lines = [
        {"external_id": f"i{n}.png", "label": one, "confidence": 1} for n, one in enumerate([*wrong, [CAT]])
    ]
    job = sent(uploaded(project), lines)
    assert (job.result["added"], job.result["problems"]) == (1, 3)
    told = " ".join(problems(job).values())
    assert "mask 1: its “counts” are together 1 pixels" in told
    assert "secret" not in told


def test_an_ml_backend_is_asked_for_masks_and_gives_them():
    spec = TaskSpec("masks", choices=(("cat", "Cat"), ("dog", "Dog")))
    config = label_config(spec)
    assert (config.fields, config.control_tag) == ({"image": "Image"}, "BrushLabels")
    masks = [coco("dog", ellipse(20, 30, 9, 14)), coco("cat", ellipse(60, 20, 12, 9))]
    answer = answer_of({"result": regions(masks), "score": 0.7}, config, spec.kind, "")
    assert READ(answer.value) == READ(masks)
    assert answer_of({"result": []}, config, spec.kind, "").value == "[]"


def test_masks_are_served_as_label_studio_calls_their_labels(project):
    control = read_label_control(project, CONFIG.replace('alias="cat"', 'alias="katze"'))
    found = control.result(f"[{CAT_TEXT},{DOG_TEXT}]", name="1", said_by="sam")
    assert [region["value"]["brushlabels"] for region in found] == [["dog"], ["katze"]]
    alone = CONFIG.replace('  <Label value="Dog 🐕" alias="dog"/>\n', "")
    assert read_label_control(project, alone).result(f"[{DOG_TEXT}]", name="1", said_by="sam") == []


def test_the_kind_of_a_project_is_said_by_its_loss(db):
    project = make_project(
        task_type="masks", choices=("cat",), loss="masks_right", loss_params={"least_dice": "0.9"}
    )
    assert TASK_TYPES[project.task_type].losses[0] == "mask_dice"
    with pytest.raises(InputError, match="three decimals"):
        make_project(
            task_type="masks", choices=("cat",), loss="masks_right", loss_params={"least_dice": "1.2"}
        )
