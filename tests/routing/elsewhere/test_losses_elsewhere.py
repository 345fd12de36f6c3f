"""Losses that the team's own program measures: asked for once the labels are locked, taken in, certified."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.errors import ConflictError
from annotation.labelling import queue
from annotation.models import AuditEvent, Item, Label
from annotation.ports import routing_port
from routing.elsewhere.losses import take_losses
from routing.models import GivenLosses, Prediction, SentAnswer
from routing.runs import losses_to_measure
from routing.runs.ask_losses import ask_losses
from routing.runs.cancel import cancel_run
from routing.runs.certify import analyse
from testbed.factories import add_member
from testbed.measured import (
    MEASURE,
    PLAN,
    measured,
    measuring,
    mesh,
    right_or_wrong,
    rows_given_out,
    with_losses,
    world_of_meshes,
)
from testbed.worlds import make_world
from tests.routing.sources.sending import sent, uploaded

pytestmark = [pytest.mark.django_db, pytest.mark.costly]


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


def asks(client, world):
    address = reverse("api_run_ask_losses", args=[world.project.slug, 1])
    return client.post(address, {}, content_type="application/json")


def test_nothing_is_given_out_before_the_labels_are_locked(client, world):
    run = world.calibrating(**PLAN, m=40)
    for name in ("api_run_losses", "api_run_losses_lines"):
        refused = asked(client, world, name)
        assert (refused.status_code, refused.json()["code"]) == (409, "no_losses_wanted_now")
    client.force_login(world.manager)
    work = reverse("api_run_work", args=[world.project.slug, 1])
    told = client.get(work, {"part": "calibration"}).json()
    assert any("once all of these labels are there and locked" in words for words in told["conditions"])
    early = asks(client, world)
    assert (early.status_code, early.json()["code"]) == (409, "calibration_unlabelled")
    world.finish()
    with pytest.raises(ConflictError) as caught:
        analyse(run=run, user=world.manager)
    assert caught.value.code == "losses_not_asked"
    locked = asks(client, world)
    assert (locked.status_code, locked.json()["state"]) == (200, "losses")
    run.calibration_batch.refresh_from_db()
    assert run.calibration_batch.locked_at is not None
    again = asks(client, world)
    assert (again.status_code, again.json()["code"]) == (409, "cannot_ask_losses_now")


def test_the_program_gets_labels_and_answers_and_no_score(client, world):
    run = world.calibrated(**PLAN, m=40)
    ask_losses(run=run, user=world.manager)
    told = asked(client, world).json()
    rows = lines(asked(client, world, "api_run_losses_lines"))
    assert (told["measure"], told["binary"], told["models"]) == (MEASURE, False, ["Model 1", "Model 2"])
    assert (told["items"], told["measured"], len(told["missing"])) == (len(rows), 0, len(rows))
    assert any("not from how sure a model was" in words for words in told["conditions"])
    seen = {"item", "name", "text", "fields", "image", "label", "answer1", "answer2", "measured"}
    assert {frozenset(row) for row in rows} == {frozenset(seen)}
    names = dict(Item.objects.values_list("pk", "external_id"))
    assert all(row["label"] == world.truth[names[row["item"]]] for row in rows)
    assert AuditEvent.objects.filter(action="run.losses_handed_out").count() == 1


def test_whoever_labels_sees_nothing_of_it(client, world):
    run = world.calibrated(**PLAN, m=40)
    ask_losses(run=run, user=world.manager)
    for name in ("api_run_losses", "api_run_losses_lines"):
        assert asked(client, world, name, user=world.annotators[0]).status_code == 403
    assert Prediction.objects.filter(source__project=world.project).exists()
    client.force_login(world.manager)
    hidden = client.get(reverse("api_predictions", args=[world.project.slug]))
    assert (hidden.status_code, hidden.json()["code"]) == (403, "still_blind")


@pytest.mark.parametrize("role", ["reviewer", "viewer"])
def test_which_items_were_drawn_is_told_to_no_reader_before_the_analysis(client, world, role):
    run = world.calibrated(**PLAN, m=40)
    ask_losses(run=run, user=world.manager)
    client.force_login(add_member(world.project, role))
    page = client.get(reverse("run", args=[world.project.slug, 1])).content.decode()
    assert "Losses are measured" in page
    assert "Losses are missing of" not in page


def test_the_analysis_waits_for_every_loss_and_names_what_is_missing(client, world):
    run = world.calibrated(**PLAN, m=40)
    ask_losses(run=run, user=world.manager)
    rows = [with_losses(row) for row in rows_given_out(run, world.manager)]
    assert given(client, world, rows[2:]).json()["refused"] == []
    with pytest.raises(ConflictError) as caught:
        analyse(run=run, user=world.manager)
    assert caught.value.code == "losses_missing"
    for row in rows[:2]:
        assert row["name"] in str(caught.value)
    page = client.get(reverse("run", args=[world.project.slug, 1])).content.decode()
    assert "Losses are missing of" in page
    assert rows[0]["name"] in page
    assert "hypac give-losses" in page
    assert given(client, world, rows[:2]).json()["stored"] == 2
    page = client.get(reverse("run", args=[world.project.slug, 1])).content.decode()
    assert reverse("run_analyse", args=[world.project.slug, 1]) in page
    assert analyse(run=run, user=world.manager)
    late = given(client, world, rows[:1])
    assert (late.status_code, late.json()["code"]) == (409, "no_losses_wanted_now")


def test_a_row_that_cannot_be_used_is_refused_with_its_reason(client):
    def change(index, row):
        if index % 2:
            row["model2"] = ""  # no usable answer

    world = world_of_meshes(60, change=change)
    run = world.calibrated(**PLAN, m=30, accept_unusable=True)
    ask_losses(run=run, user=world.manager)
    rows = rows_given_out(run, world.manager)
    both = next(row for row in rows if row["answer2"] is not None)
    one = next(row for row in rows if row["answer2"] is None)
    good = {"item": both["item"], "measured": both["measured"], "loss1": "2.5e-1", "loss2": " .5"}
    bad = [
        ({**good, "item": 0}, "names no item"),
        ({**good, "item": True}, "names no item"),
        ({**good, "measured": one["measured"]}, "not said to be of the label"),
        ({"item": both["item"], "loss1": 0, "loss2": 0}, "not said to be of the label"),
        ({**good, "loss1": None}, "loss1 is missing"),
        ({**good, "loss2": ""}, "loss2 is missing"),
        ({**good, "loss1": 1.01}, "from 0 to 1"),
        ({**good, "loss1": -0.01}, "from 0 to 1"),
        ({**good, "loss1": "nan"}, "from 0 to 1"),
        ({**good, "loss1": "inf"}, "from 0 to 1"),
        ({**good, "loss1": "a lot"}, "from 0 to 1"),
        ({**good, "loss1": "0_1"}, "from 0 to 1"),
        ({**good, "loss1": "\u0661"}, "from 0 to 1"),  # a digit of Arabic
        ({**good, "loss1": "0,5"}, "from 0 to 1"),
        ({**good, "loss1": "."}, "from 0 to 1"),
        ({**good, "loss1": True}, "from 0 to 1"),
        ({**good, "loss1": 10**400}, "from 0 to 1"),
        ({**good, "loss3": 0}, "no model of loss3"),
        ({"item": one["item"], "measured": one["measured"], "loss1": 0, "loss2": 0}, "no usable answer"),
    ]
    taken = given(client, world, [row for row, _ in bad]).json()
    assert (taken["stored"], [entry["row"] for entry in taken["refused"]]) == (0, [*range(1, len(bad) + 1)])
    for entry, (row, words) in zip(taken["refused"], bad, strict=True):
        assert words in entry["reason"], row
    assert given(client, world, [good, {**with_losses(one), "loss2": ""}]).json()["stored"] == 2
    assert GivenLosses.objects.get(item=both["item"]).losses == [0.25, 0.5]
    assert GivenLosses.objects.get(item=one["item"]).losses[1] is None


def test_a_loss_that_comes_again_replaces_the_one_before_and_the_certificate_says_so(
    client, world, certificate_page
):
    run = measuring(world, m=40)
    rows = [with_losses(row) for row in rows_given_out(run, world.manager)]
    rows[0]["loss1"] = 0.125
    taken = given(client, world, rows).json()
    assert (taken["stored"], taken["known"]) == (1, len(rows) - 1)
    run = world.analyse(run)
    draw = {row["item_id"]: row for row in map(json.loads, run.certificate.draw_lines.splitlines())}
    assert draw[rows[0]["name"]]["losses"][0] == 0.125
    assert json.loads(run.certificate.document)["provenance"]["losses_given_anew"] == 1
    assert "sent again with other values before the analysis: 1." in certificate_page(world)


def test_many_rows_take_no_more_queries_than_one_and_the_last_row_of_an_item_counts(world):
    run = world.calibrated(**PLAN, m=40)
    ask_losses(run=run, user=world.manager)
    rows = [with_losses(row) for row in rows_given_out(run, world.manager)]
    counts = []
    for part in (rows[:1], [*rows[1:], {**rows[-1], "loss1": 0.125}]):
        with CaptureQueriesContext(connection) as asked_of_it:
            assert not take_losses(run=run, actor=world.manager, rows=part).refused
        counts.append(len(asked_of_it))
    assert counts[0] == counts[1]
    last = GivenLosses.objects.filter(item=rows[-1]["item"]).order_by("version")
    assert [(row.version, row.losses[0]) for row in last] == [(1, rows[-1]["loss1"]), (2, 0.125)]


def test_losses_of_another_label_or_answer_do_not_count(world):
    run = measuring(world, m=40)
    row = GivenLosses.objects.filter(run=run).first()
    GivenLosses.objects.create(
        run=run, item=row.item, version=2, losses=row.losses, measured="0" * 64, given_by=world.manager
    )
    with pytest.raises(ConflictError) as caught:
        analyse(run=run, user=world.manager)
    assert caught.value.code == "losses_missing"
    assert row.item.external_id in str(caught.value)


def test_only_0_and_1_come_where_the_plan_says_so(client, world):
    run = world.calibrated(**{**PLAN, "loss_params": {"measure": MEASURE, "binary": True}}, m=40)
    ask_losses(run=run, user=world.manager)
    row = with_losses(rows_given_out(run, world.manager)[0], right_or_wrong)
    taken = given(client, world, [{**row, "loss1": 0.5}]).json()
    assert "must be 0 or 1" in taken["refused"][0]["reason"]


def test_an_ordinary_run_asks_for_no_losses(client):
    world = make_world(60)
    world.calibrated(m=40)
    client.force_login(world.manager)
    refused = asks(client, world)
    assert (refused.status_code, refused.json()["code"]) == (409, "losses_computed_here")
    assert asked(client, world).json()["code"] == "losses_computed_here"


def test_json_comes_from_models_and_people_as_it_is_and_is_one_text(client, world):
    source = uploaded(world.project)
    shape = {"mesh": "a.obj", "points": [[0.1, 2], [3, "ä"]]}
    text = '{"mesh":"a.obj","points":[[0.1,2],[3,"ä"]]}'
    assert sent(source, [{"external_id": "t0", "label": shape, "confidence": 0.5}]).state == "done"
    assert SentAnswer.objects.get().answer["label"] == text
    run = world.calibrating(**PLAN, m=40, leave_out=[source.name])
    client.force_login(world.manager)
    work = reverse("api_run_work", args=[world.project.slug, 1])
    item = run.calibration_batch.work_items.first().item_id
    row = {"item": item, "value": shape, "annotator": world.annotators[0].username}
    body = {"rows": [row], "part": "calibration"}
    assert client.post(work, body, content_type="application/json").json()["stored"] == 1
    assert Label.objects.get(item=item).value == text


def test_a_label_that_is_corrected_after_it_was_locked_breaks_the_certificate(world):
    run = measuring(world, m=40)
    label = Label.objects.filter(work_item__batch=run.calibration_batch).first()
    corrected = {"user": label.annotator, "label_id": label.pk, "idempotency_key": "again"}
    queue.correct(**corrected, value=mesh(11), comment="")
    run.refresh_from_db()
    assert run.broken_by
    world.analyse(run)
    run.refresh_from_db()
    assert not run.certificate.holds
    draw = {row["item_id"]: row for row in map(json.loads, run.certificate.draw_lines.splitlines())}
    row = draw[label.item.external_id]  # as it was measured
    assert (row["label"], row["losses"][0]) == (label.value, measured(label.value, row["answers"][0]))


def test_what_is_asked_again_and_again_reads_neither_labels_nor_answers(client, world):
    run = world.calibrated(**PLAN, m=40)
    ask_losses(run=run, user=world.manager)
    rows = [with_losses(row) for row in rows_given_out(run, world.manager)]
    take_losses(run=run, actor=world.manager, rows=rows[5:])
    client.force_login(world.manager)
    tables = {f'"{model._meta.db_table}"."value"' for model in (Label, Prediction)}
    for name in ("run", "api_run", "api_run_losses"):
        with CaptureQueriesContext(connection) as queries:
            assert client.get(reverse(name, args=[world.project.slug, 1])).status_code == 200
        asked_of_it = [one["sql"] for one in queries]
        assert not [sql for sql in asked_of_it if any(table in sql for table in tables)], name
    told = asked(client, world).json()
    assert (told["items"], told["measured"]) == (len(rows), len(rows) - 5)
    assert told["missing"] == [row["name"] for row in rows[:5]]


def test_few_rows_read_the_labels_of_few_items(world, monkeypatch):
    run = world.calibrated(**PLAN, m=40)
    ask_losses(run=run, user=world.manager)
    rows = [with_losses(row) for row in rows_given_out(run, world.manager)]
    read, records_at = [], losses_to_measure.records_at
    monkeypatch.setattr(
        losses_to_measure, "records_at", lambda *given: read.append(found := records_at(*given)) or found
    )
    assert take_losses(run=run, actor=world.manager, rows=rows[:3]).stored == 3
    assert [set(found) for found in read] == [{row["item"] for row in rows[:3]}]


def test_a_program_is_told_the_first_names_and_the_number_of_all(client, world, monkeypatch):
    run = world.calibrated(**PLAN, m=40)
    ask_losses(run=run, user=world.manager)
    names = [row["name"] for row in rows_given_out(run, world.manager)]
    monkeypatch.setattr(losses_to_measure, "LISTED", 3)
    told = asked(client, world).json()
    assert (told["items"], told["measured"], told["missing"]) == (len(names), 0, names[:3])


def test_a_script_asks_for_losses_once_people_have_labelled(world):
    def told():
        out, words = StringIO(), ("ask_losses", world.project.slug, "newest", "--json")
        call_command(*words, "--user", world.manager.username, stdout=out, stderr=StringIO())
        return json.loads(out.getvalue())

    world.calibrating(**PLAN, m=40)
    with pytest.raises(CommandError, match="waits for people") as caught:
        told()
    assert caught.value.returncode == 2
    world.finish()
    assert [told()["state"], told()["state"]] == ["losses", "losses"]
    assert AuditEvent.objects.filter(action="run.losses_asked").count() == 1


def test_a_script_is_told_where_losses_are_computed_here():
    world = make_world(60)
    world.calibrated(m=40)
    with pytest.raises(CommandError, match="are computed here") as caught:
        call_command("ask_losses", world.project.slug, "1", "--user", world.manager.username)
    assert caught.value.returncode == 1


def test_whoever_may_have_seen_answers_that_were_given_out_labels_blind_no_more(world):
    def refused(user):
        return routing_port().blind_objection(project=world.project, user=user)

    run = world.calibrated(**PLAN, m=40)
    ask_losses(run=run, user=world.manager)
    assert refused(world.manager) == ""
    rows_given_out(run, world.manager)
    cancel_run(run=run, user=world.manager)
    assert f"the role of {world.manager.username} shows what" in refused(world.manager)
    assert refused(world.annotators[0]) == ""


def test_where_no_answer_can_be_used_the_page_shows_no_progress_and_offers_the_analysis(client):
    def change(index, row):
        row["model1"] = row["model2"] = ""

    world = world_of_meshes(60, change=change)
    run = world.calibrated(**PLAN, m=30, accept_unusable=True)
    ask_losses(run=run, user=world.manager)
    client.force_login(world.manager)
    page = client.get(reverse("run", args=[world.project.slug, 1])).content.decode()
    assert "there is nothing to measure" in page
    assert "Items whose losses are here" not in page
    assert reverse("run_analyse", args=[world.project.slug, 1]) in page
