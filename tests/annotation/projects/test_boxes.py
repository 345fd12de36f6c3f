"""Boxes on images: their one form, the pages on which they are shown, and what Label Studio says of them."""

import html
import itertools
import json
import re
from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.common.value_reader import ValueReader, reader_of
from annotation.errors import ConflictError, InputError
from annotation.imports.formats.label_studio_results import value_of
from annotation.labelling import queue
from annotation.labelling.alike import Alike
from annotation.labelling.known_answers import is_right
from annotation.labelling.label_queries import label_in_words, with_choice
from annotation.models import Label, Settlement
from annotation.projects.label_studio_config import config_of, read_config, results_of
from annotation.projects.manage import ChoiceSpec, create_project, set_choices
from annotation.review.agreement_queries import agreement
from annotation.task_types import TASK_TYPES
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
from tests.boxes_story import CONFIG, regions
from tests.label_studio_story import brought
from tests.routing.sources.sending import problems, sent, uploaded

__all__ = ["storage"]
pytestmark = pytest.mark.database

READ = ValueReader("boxes", {"cat": "cat", "Cat": "cat", "dog": "dog"})
CAT = {"label": "cat", "x": 10, "y": 20.5, "width": 30, "height": 40}
DOG = {"label": "dog", "x": 5, "y": 5, "width": 5, "height": 5}
CAT_TEXT = '{"label":"cat","x":10,"y":20.5,"width":30,"height":40}'
DOG_TEXT = '{"label":"dog","x":5,"y":5,"width":5,"height":5}'
NEAR = {**CAT, "x": 10.4, "width": 29.5}


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ([DOG, CAT], f"[{CAT_TEXT},{DOG_TEXT}]"),
        ([{**CAT, "label": "Cat", "x": "10.00004", "rotation": 0}], f"[{CAT_TEXT}]"),
        (json.dumps([CAT]), f"[{CAT_TEXT}]"),
        ([json.dumps(CAT)], f"[{CAT_TEXT}]"),
        ([], "[]"),
        ("[]", "[]"),
        (
            [{**CAT, "x": -0.004, "width": 100.008}],
            f"[{CAT_TEXT}]".replace(":10,", ":0,").replace(":30,", ":100,"),
        ),
        ([CAT, CAT], f"[{CAT_TEXT},{CAT_TEXT}]"),
    ],
)
def test_boxes_have_one_form(raw, value):
    assert READ(raw) == (value, "")
    assert READ(value) == (value, "")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("cat", "no JSON list"),
        ({"boxes": []}, "no JSON list"),
        ([CAT, "x"], "box 2: it is no object"),
        ([{**CAT, "label": "emu"}], "box 1: unknown label 'emu'"),
        ([{**CAT, "label": None}], "no “label”"),
        ([{**CAT, "label": ["cat"]}], "its label is no text"),
        ([{**CAT, "score": 0.5}], "a field beside"),
        ([{**CAT, "rotation": 12}], "turned"),
        ([{**CAT, "rotation": "x"}], "turned"),
        ([{**CAT, "x": 71}], "x and x + width are 0 to 100"),
        ([{**CAT, "y": -1}], "y and y + height"),
        ([{**CAT, "width": 0.00001}], "“width” is 0"),
        ([{**CAT, "width": -1}], "“width” is 0"),
        ([{**CAT, "height": True}], "“height” is no number"),
        ([{**CAT, "x": float("nan")}], "“x” is no number"),
        ([{**CAT, "x": 10**5000}], "“x” is no number"),
        ('[{"label":"cat","x":1e999999999,"y":1,"width":1,"height":1}]', "“x” is no number"),
        ("[" * 100_000, "no JSON list"),
        ("[]" + " " * 200_000, "characters"),
        ([CAT] * 501, "more than 500"),
        ("", "no answer"),
        (None, "no answer"),
    ],
)
def test_what_is_no_list_of_boxes_is_refused_with_its_box(raw, words):
    value, reason = READ(raw)
    assert value is None
    assert words in reason


def test_models_are_asked_for_boxes_and_read():
    spec = TaskSpec("boxes", choices=(("cat", "A cat"), ("dog", "A dog")))
    prompt = default_prompt(spec).template
    assert '{"label": ..., "x": ...' in prompt
    assert "{{ labels }}" in prompt
    assert read_answer(f"Here they are:\n```json\n[{CAT_TEXT}]\n```", spec).value == f"[{CAT_TEXT}]"
    assert read_answer('{"boxes": []}', spec).value == "[]"
    assert read_answer("There is a cat.", spec).reason == "no JSON list of boxes"
    boxes = schema_of(spec)["properties"]["boxes"]
    assert boxes["items"]["properties"]["label"]["enum"] == ["cat", "dog"]


def test_results_of_label_studio_are_boxes_and_boxes_are_results():
    project = ValueReader("boxes", {"cat": "cat", "dog": "dog"})
    given, problem = value_of(regions([DOG, CAT]))
    assert (project(given), problem) == ((f"[{CAT_TEXT},{DOG_TEXT}]", ""), "")
    control = read_config(CONFIG).control
    results = results_of(f"[{CAT_TEXT},{DOG_TEXT}]", control, name="1")
    assert value_of(results) == value_of(regions([CAT, DOG]))
    assert len({result["id"] for result in results}) == 2
    assert results_of("[]", control, name="1") == []
    two = regions([CAT])
    two[0]["value"]["rectanglelabels"] = ["cat", "dog"]
    assert "“label”" in project(value_of(two)[0])[1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('<Label value="Cat" alias="cat" background="#b3401d"/>', "<Label/>"), "a Label with a value"),
        (('toName="picture">', 'toName="picture" choice="multiple">'), "What is drawn has one label"),
        (("$image", "image"), 'value="$field"'),
        (("<Image", "<Text"), "draws on one Image"),
        (("<View>", '<View><PolygonLabels name="p" toName="picture"/>'), "PolygonLabels"),
    ],
)
def test_a_configuration_that_asks_for_something_else_is_refused(change, words):
    with pytest.raises(InputError, match=re.escape(words)):
        read_config(CONFIG.replace(*change))


@pytest.fixture
def project(db):
    return create_project(user=make_user("owner"), name="Animals", label_config=CONFIG)


def asked(project, *, people=1, overlap=1, size=(8, 8)):
    """An image that people are asked about."""
    project.overlap = overlap
    (item,) = make_image_items(project, [make_image(project.items.count(), size=size)])
    queue.create_batch(
        project=project, item_ids=[item.pk], blind=False, priority=1, entropy=1, overlap=overlap
    )
    return item, [add_member(project) for _ in range(people)]


def answered(project, user, value):
    task = queue.claim(project=project, user=user)
    return queue.submit(
        user=user,
        work_item_id=task.work_item.pk,
        token=task.token,
        value=value,
        idempotency_key=user.username,
    )


def test_a_project_with_one_label_is_enough_and_a_label_in_use_stays(project):
    config = read_config(config_of(project))
    assert (config.task_type, [spec.key for spec in config.choices]) == ("boxes", ["cat", "dog"])
    _item, (ann,) = asked(project)
    label = answered(project, ann, [NEAR])
    assert label_in_words(label.value, {"cat": "Cat", "dog": "Dog 🐕"}) == "1 box: Cat × 1"
    assert with_choice(Label.objects.all(), project, "cat").exists()
    assert not with_choice(Label.objects.all(), project, "dog").exists()
    cat = ChoiceSpec("Cat", key="cat")
    assert len(set_choices(project=project, user=project.created_by, choices=[cat])) == 1
    with pytest.raises(ConflictError, match="given to items"):
        set_choices(project=project, user=project.created_by, choices=[ChoiceSpec("Emu")])


def test_the_desk_says_where_boxes_are_drawn_and_takes_them_as_json(project, client_of):
    _item, (ann,) = asked(project)
    client = client_of(ann)
    page = client.get(reverse("annotate", args=[project.slug])).content.decode()
    assert "Boxes are drawn in Label Studio or CVAT" in page
    submit = reverse("annotate_submit", args=[project.slug])
    refused = client.post(submit, {**fields(page), "value": json.dumps([{**CAT, "x": 99}])})
    assert "x and x + width are 0 to 100 percent" in html.unescape(refused.content.decode())
    client.post(submit, {**fields(page), "value": json.dumps([CAT])})
    label = Label.objects.get()
    assert label.value == f"[{CAT_TEXT}]"
    page = client.get(reverse("annotate", args=[project.slug]), {"correct": label.pk}).content.decode()
    assert '<path d="M10 20.5h30v40h-30z" stroke="#b3401d">' in page
    assert "style=" not in page
    owner = client_of(project.created_by)
    page = owner.get(reverse("item", args=[project.slug, label.item_id])).content.decode()
    assert '<path d="M10 20.5h30v40h-30z" stroke="#b3401d">' in page
    assert "1 box: Cat × 1" in page
    found = owner.get(reverse("items", args=[project.slug]), {"human": "cat"}).content.decode()
    assert "i0.png" in found


def test_what_two_draw_alike_is_settled_and_a_reviewer_takes_over_one_of_two(project, client_of):
    _item, people = asked(project, people=2, overlap=2)
    first = answered(project, people[0], [CAT, DOG])
    answered(project, people[1], [DOG, NEAR])
    assert Settlement.objects.get().value == first.value
    assert agreement(project).together.equal.value == 1
    project.work_batches.update(withdrawn_at=None)
    _item, people = asked(project, people=2, overlap=2)
    answered(project, people[0], [CAT])
    wrong = answered(project, people[1], [{**CAT, "label": "dog"}])
    assert Settlement.objects.count() == 1
    client = client_of(add_member(project, "reviewer"))
    page = client.get(reverse("review", args=[project.slug])).content.decode()
    assert page.count("<path d=") == 2
    taken = client.get(
        reverse("review", args=[project.slug]), {"take": wrong.pk, "work_item": fields(page)["work_item"]}
    ).content.decode()
    typed = html.unescape(re.search(r"<textarea id=\"answer\"[^>]*>\n(.*?)</textarea>", taken, re.DOTALL)[1])
    client.post(reverse("review_decide", args=[project.slug]), {**fields(taken), "value": typed})
    assert Settlement.objects.get(decided_by__isnull=False).value == wrong.value


def decided_by_third(project, people):
    """An image about which two are asked, and a third where they differ."""
    (item,) = make_image_items(project, 1)
    return queue.create_batch(
        project=project,
        item_ids=[item.pk],
        blind=True,
        priority=1,
        entropy=1,
        overlap=2,
        people=lambda ids: [[person.pk for person in people] for _ in ids],
        third_decides=True,
    )


def test_no_third_person_is_asked_where_two_draw_alike(project):
    people = [add_member(project) for _ in range(2)]
    batch = decided_by_third(project, people)
    first = answered(project, people[0], [CAT])
    answered(project, people[1], [NEAR])
    settled = Settlement.objects.get()
    assert (settled.value, settled.method) == (first.value, "majority")
    assert batch.work_items.count() == 2


def test_a_third_person_who_draws_as_one_of_two_decides_nothing_alone(project):
    people = [add_member(project) for _ in range(3)]
    batch = decided_by_third(project, people[:2])
    answered(project, people[0], [CAT])
    answered(project, people[1], [DOG])
    assert not Settlement.objects.exists()
    batch.work_items.create(
        item=batch.work_items.first().item, slot=2, assigned_to=people[2], order=1, priority=1
    )
    third = answered(project, people[2], [NEAR])
    settled = Settlement.objects.get()
    assert (settled.value, settled.method, settled.decided_by) == (third.value, "majority", None)


def cat_at(x):
    return json.dumps([{"label": "cat", "x": x, "y": 0, "width": 30, "height": 30}], separators=(",", ":"))


@pytest.mark.parametrize("order", list(itertools.permutations((0, 8, 16))))
def test_whoever_draws_between_two_is_like_most_of_them_in_whatever_order(project, order):
    drawn = [cat_at(x) for x in order]
    alike = Alike(project)
    assert not alike(cat_at(0), cat_at(16))
    assert alike.given_by_most(drawn) == cat_at(8)
    assert alike.given_by_most([cat_at(0), cat_at(16)]) is None
    assert set(alike.comparable(drawn)) == {cat_at(8)}


def test_labels_of_an_import_that_are_drawn_alike_are_settled(storage, db):
    export = [
        {
            "id": 1,
            "data": {"image": "https://pictures.example.org/1.png", "key": "k1"},
            "annotations": [
                {"result": regions([boxes]), "completed_by": who} for who, boxes in ((3, CAT), (4, NEAR))
            ],
        }
    ]
    _project, job = brought(export, config=CONFIG, text_column="image")
    assert job.result["labels"] == 2
    assert Settlement.objects.get().value == f"[{CAT_TEXT}]"


def test_a_known_answer_is_right_where_the_loss_finds_no_difference(project):
    reader = reader_of(project)
    known, near, other = (reader(boxes)[0] for boxes in ([CAT], [NEAR], [CAT, DOG]))
    alike = Alike(project)
    assert is_right(alike, near, known)
    assert not is_right(alike, other, known)


def test_tasks_of_label_studio_bring_addresses_labels_and_a_model(storage, db):
    export = [
        {
            "id": number,
            "data": {"image": f"https://pictures.example.org/{number}.png", "key": f"k{number}"},
            "annotations": [{"result": regions([CAT]), "completed_by": 3}] if number < 5 else [],
            "predictions": [
                {"model_version": "yolo", "score": round(0.5 + number / 100, 3), "result": regions([NEAR])}
            ],
        }
        for number in range(30)
    ]
    project, job = brought(export, config=CONFIG, text_column="image")
    assert (job.result["added"], job.result["labels"]) == (30, 5)
    assert set(Label.objects.values_list("value", flat=True)) == {f"[{CAT_TEXT}]"}
    (model,) = found_models(project).sound
    assert (model.label_column, model.sure_column) == ("yolo.label", "yolo.score")
    add_suggested(project=project, user=project.created_by, prices={model.label_column: Decimal("0.01")})
    assert project.sources.get().backend == "recorded"
    assert config_of(project) == CONFIG.strip()


def test_what_is_wrong_with_a_line_of_predictions_is_told_and_what_it_says_is_not(project):
    make_image_items(project, 5)
    wrong = [[{**CAT, "x": 99}], [{**CAT, "label": "secret"}], "boxes"]
    lines = [
        {"external_id": f"i{n}.png", "label": one, "confidence": 1} for n, one in enumerate([*wrong, []])
    ]
    job = sent(uploaded(project), lines)
    assert (job.result["added"], job.result["problems"]) == (1, 3)
    told = " ".join(problems(job).values())
    assert "box 1: it reaches beyond the image" in told
    assert "a label that the project does not have" in told
    assert "secret" not in told


def test_an_ml_backend_is_asked_for_boxes_and_gives_them():
    spec = TaskSpec("boxes", choices=(("cat", "Cat"), ("dog", "Dog")))
    config = label_config(spec)
    assert (config.fields, config.control_tag) == ({"image": "Image"}, "RectangleLabels")
    result = regions([DOG, CAT])
    answer = answer_of({"result": result, "score": 0.7, "model_version": "yolo"}, config, spec.kind, "")
    assert READ(answer.value)[0] == f"[{CAT_TEXT},{DOG_TEXT}]"
    assert answer.raw == {"confidence": 0.7}
    assert answer_of({"result": []}, config, spec.kind, "").value == "[]"
    assert answer_of({}, config, spec.kind, "").reason == "no prediction"
    other = [{**result[0], "type": "choices"}]
    assert answer_of({"result": other}, config, spec.kind, "").reason == "no prediction"


def test_boxes_are_served_as_label_studio_calls_their_labels(project):
    config = CONFIG.replace('alias="cat"', 'alias="katze"').replace(' alias="dog"', "")
    control = read_label_control(project, config)
    found = control.result(f"[{CAT_TEXT},{DOG_TEXT}]", name="1", said_by="yolo")
    labels = [region["value"]["rectanglelabels"] for region in found]
    assert labels == [["Dog 🐕"], ["katze"]]
    assert control.result("[]", name="1", said_by="yolo") == []
    alone = config.replace('  <Label value="Dog 🐕"/>\n', "")
    assert read_label_control(project, alone).result(f"[{DOG_TEXT}]", name="1", said_by="yolo") == []


def test_the_kind_of_a_project_is_said_by_its_loss(db):
    project = make_project(
        task_type="boxes", choices=("cat",), loss="boxes_right", loss_params={"iou": "0.7"}
    )
    assert TASK_TYPES[project.task_type].losses[0] == "box_f1"
    with pytest.raises(InputError, match="three decimals"):
        make_project(task_type="boxes", choices=("cat",), loss="box_f1", loss_params={"iou": "1.2"})
