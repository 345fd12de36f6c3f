"""What is promised where the team's own program measures losses: plans, certificates, deliveries."""

import html
import json
from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.errors import InputError
from annotation.labelling import queue
from routing.core.certificate import canonical_bytes
from routing.core.verify import main as verify
from routing.elsewhere.losses import take_losses
from routing.models import Run
from routing.runs.ask_losses import ask_losses
from routing.runs.same_answers import same_answers
from testbed.delivered import delivered, measured_elsewhere
from testbed.factories import add_member, make_project
from testbed.forgeries import put_right, read, written
from testbed.measured import (
    MEASURE,
    MESHES,
    PLAN,
    measured,
    measuring,
    mesh,
    right_or_wrong,
    rows_given_out,
    with_losses,
    world_of_meshes,
)
from testbed.queue_answers import submitted
from tests.verify.reports import found_in

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]


@pytest.mark.parametrize("rule", ["fixed_sequence", "every_score", "split_fixed_sequence"])
def test_from_labels_and_measured_losses_to_a_delivery_that_holds(certificate_page, tmp_path, rule):
    world = world_of_meshes(300)
    run = measuring(world, rule=rule, epsilon=Decimal("0.3"), m=200, p=Decimal(1))
    world.route(world.analyse(run))
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
    assert MEASURE in certificate_page(world)
    given_files = [str(tmp_path / name) for name in ("certificate.json", "draw.jsonl")]
    for name in ("certificate.json", "draw.jsonl"):
        (tmp_path / name).write_bytes(files[name])
    assert verify(given_files) == 0
    found = found_in(tmp_path / "files", files)
    assert (found.faults, found.code) == ("", 3 if rule == "split_fixed_sequence" else 0), found
    assert MEASURE in found.notes


def test_a_dear_last_model_answers_everything_before_it_is_measured():
    world = world_of_meshes(300)  # at a fourth of people's price it is dear
    run = measuring(world, rule="every_score", m=100)
    assert run.chains["lazy"] is True
    world.analyse(run)
    rows = [json.loads(line) for line in run.certificate.draw_lines.splitlines()]
    assert all(row["called"] == [True, True] for row in rows if row["asked"])


def some_are_blank(index, row):
    row["model1"] = "" if index % 11 == 0 else row["model1"]
    row["model2"] = "" if index % 5 == 0 else row["model2"]


@pytest.mark.parametrize("rule", ["fixed_sequence", "every_score"])
def test_losses_of_0_and_1_are_counted_exactly(tmp_path, rule):
    world = world_of_meshes(300, change=some_are_blank)
    plan = {"loss_params": {"measure": MEASURE, "binary": True}, "target": "dataset", "rule": rule}
    run = world.calibrating(**{**PLAN, **plan}, accept_unusable=True)
    given_up = world.label(answer=lambda item: None if item.pk % 17 == 0 else world.truth[item.external_id])
    assert 0 < world.give_up_all() < given_up
    ask_losses(run=run, user=world.manager)
    rows = [with_losses(row, right_or_wrong) for row in rows_given_out(run, world.manager)]
    assert {row["loss2"] for row in rows} == {None, 0, 1}
    assert list(take_losses(run=run, actor=world.manager, rows=rows).refused) == []
    world.route(world.analyse(run))
    world.finish()
    document = json.loads(run.certificate.document)
    assert (document["plan"]["bound"], document["result"]["certified"]) == ("hypergeometric", True)
    found = found_in(tmp_path / "files", delivered(world, run))
    assert (found.faults, found.code) == ("", 0), found


def test_a_count_of_errors_certifies_nothing_about_losses_between_0_and_1(tmp_path):
    world = world_of_meshes(300)
    binary = {"loss_params": {"measure": MEASURE, "binary": True}, "target": "dataset"}
    run = world.route(world.analyse(measuring(world, measure=right_or_wrong, **binary)))
    world.finish()
    run.refresh_from_db()
    files = delivered(world, run)
    assert found_in(tmp_path / "files", files).code == 0
    document = json.loads(files["certificate.json"])
    del document["plan"]["loss_params"]["binary"]
    found = found_in(tmp_path / "files", put_right({**files, "certificate.json": canonical_bytes(document)}))
    assert (found.code, "a loss may be a part of one" in found.faults) == (1, True)


@pytest.mark.parametrize(
    ("more", "where", "words"),
    [
        ({"loss_params": {}}, "loss_params", "which program measures"),
        ({"bound": "hypergeometric"}, "bound", "needs a loss of 0 or 1"),
        ({"reference": "settled"}, "reference", "exact loss"),
        ({"target": "population", "later_audit_share": Decimal("0.1")}, "later_audit_share", "audit"),
    ],
)
def test_what_cannot_be_promised_is_refused_with_the_plan(world, more, where, words):
    with pytest.raises(InputError) as caught:
        world.start(**{**PLAN, "m": 40, **more})
    assert caught.value.where == where
    assert words in str(caught.value)
    assert not Run.objects.exists()


def test_a_project_names_no_program_but_its_plans_do():
    assert make_project(task_type="opaque", choices=()).task_type == MESHES.task_type
    assert make_project(task_type="code", choices=(), loss="measured_elsewhere").loss == "measured_elsewhere"
    with pytest.raises(InputError, match="no parameter 'program'"):
        make_project(
            task_type="code", choices=(), loss="measured_elsewhere", loss_params={"program": MEASURE}
        )


def test_a_loss_that_was_changed_in_the_delivery_is_found(tmp_path):
    files = measured_elsewhere()
    rows = read(files, "draw.jsonl")
    row = next(row for row in rows if row["losses"] and row["losses"][0] < 0.5)
    row["losses"][0] = 0.75
    found = found_in(tmp_path / "files", put_right({**files, "draw.jsonl": written("draw.jsonl", rows)}))
    assert (found.code, "observed" in found.faults) == (1, True)
    row["losses"][0] = None
    found = found_in(tmp_path / "files", put_right({**files, "draw.jsonl": written("draw.jsonl", rows)}))
    assert "not one for each answer that there is" in found.faults


def test_an_expert_and_such_losses_do_not_go_together(world):
    expert = add_member(world.project, "reviewer")
    binary = {"loss_params": {"measure": MEASURE, "binary": True}, "target": "dataset"}
    plan = {"reference": "expert", "expert": expert.username, "expert_cost": Decimal(20), "rule": ""}
    with pytest.raises(InputError, match="no loss that is measured elsewhere comes for these") as caught:
        world.start(**{**PLAN, **binary, **plan, "m": 40, "p": None})
    assert caught.value.where == "loss"


@pytest.mark.parametrize("binary", ["", "\nbinary = true"])
def test_the_page_of_the_plan_asks_which_program_measures_and_foretells_the_rest(client, world, binary):
    client.force_login(world.manager)
    page = client.get(reverse("plan", args=[world.project.slug])).content.decode()
    assert 'id="part-loss" open' in page
    assert "must say, in one line" in html.unescape(page)
    plan = {"epsilon": "20", "alpha": "10", "m": "60", "p": "1", "target": "dataset"}
    plan["loss_params"] = f"measure = {MEASURE}{binary}"
    told = client.get(reverse("plan_outlook", args=[world.project.slug]), plan)
    words = html.unescape(told.content.decode())
    assert told.status_code == 200
    assert "must say, in one line" not in words
    assert ("mean loss" in words) == (not binary)
    assert client.post(reverse("plan", args=[world.project.slug]), plan).status_code == 302
    run = Run.objects.get()
    assert run.loss_params["measure"] == MEASURE
    assert run.bound == ("hypergeometric" if binary else "betting_upper")


def test_of_boxes_two_people_say_the_same_as_ever_whoever_measures_the_models():
    project = make_project(task_type="boxes", loss="measured_elsewhere", loss_params={"measure": MEASURE})
    one = '[{"label":"cat","x":10,"y":10,"width":20,"height":20}]'
    near, far = one.replace('"x":10,', '"x":11,'), one.replace('"x":10,', '"x":60,')
    same = same_answers(project, None)
    assert (same(one, near), same(one, far)) == (True, False)


def test_what_two_people_and_a_third_give_is_measured_like_one_persons(tmp_path):
    world = world_of_meshes(200)
    world.annotators.append(add_member(world.project))
    binary = {"loss_params": {"measure": MEASURE, "binary": True}, "target": "dataset", "rule": ""}
    run = world.calibrating(**{**PLAN, **binary, "reference": "settled", "m": 100, "p": None})
    mistaken = world.annotators[0].pk

    def label():
        before = world.keys
        for user in world.annotators:
            while task := queue.claim(project=world.project, user=user):
                value = world.truth[task.item.external_id]
                value = mesh(99) if user.pk == mistaken and task.item.pk % 7 == 0 else value
                world.keys += 1
                submitted(user, task, value, f"key-{world.keys}")
        return world.keys > before

    while label():
        pass
    run.refresh_from_db()
    ask_losses(run=run, user=world.manager)
    rows = [with_losses(row, right_or_wrong) for row in rows_given_out(run, world.manager)]
    assert {row["label"] for row in rows} <= set(world.truth.values())  # the third decided
    assert list(take_losses(run=run, actor=world.manager, rows=rows).refused) == []
    world.route(world.analyse(run))
    while label():
        pass
    run.refresh_from_db()
    assert (run.state, run.certificate.certified) == (Run.State.COMPLETE, True)
    found = found_in(tmp_path / "files", delivered(world, run))
    assert (found.faults, found.code) == ("", 0), found
