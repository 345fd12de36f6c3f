"""Runs whose reference is an expert, from the plan to the verified delivery."""

import csv
import io
import json
import random
from decimal import Decimal
from fractions import Fraction

import pytest
from django.db.models import F
from django.test import Client
from django.urls import reverse

from annotation.errors import ConflictError, InputError
from annotation.labelling import queue
from annotation.models import AuditEvent, Label, Membership, WorkItem
from annotation.people.erase import erase_person
from routing.core.reference.sources import CHECKED, EXPERT, PERSON
from routing.core.verify import main as verify
from routing.delivery.card import Counts, card
from routing.models import ExpertRequest, Route, Run, Spend
from routing.runs.certify import analyse
from routing.runs.expert.ask import ask_expert
from routing.runs.expert.requests import hand_over
from testbed.experts import ExpertWorld
from testbed.factories import add_member
from testbed.worlds import CHOICES, rows_of
from tests.everywhere import told_anywhere

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]


@pytest.mark.parametrize("share", ["1", "0.5", "0.3"])
def test_a_run_with_an_expert_from_plan_to_verified_delivery(share, tmp_path):
    here = ExpertWorld()
    run = here.start(recheck_share=Decimal(share), audit_share=Decimal("0.2"))
    if share == "0.5":
        here.label(*here.world.annotators)  # through the queue
    run = here.routed(run)
    with pytest.raises(ConflictError, match=r"the expert of run 1 of .*, which is under way"):
        erase_person(user=here.expert, actor=None, typed=here.expert.username)
    run = here.finish(run)

    assert run.state == Run.State.COMPLETE
    assert run.certificate.certified
    files = here.delivered(run)
    rows = list(csv.DictReader(io.StringIO(files["labels.csv"].decode())))
    assert all(row["label"] for row in rows)
    wrong = sum(row["label"] != here.world.truth[row["external_id"]] for row in rows)
    assert wrong <= 24  # epsilon = 0.1 of 240, fulfilled in this seeded world
    for name in ("certificate.json", "draw.jsonl"):
        (tmp_path / name).write_bytes(files[name])
    assert verify([str(tmp_path / "certificate.json"), str(tmp_path / "draw.jsonl")]) == 0
    if share == "1":
        her_name_stays_in_the_certificate_alone(here, run)


def her_name_stays_in_the_certificate_alone(here, run) -> None:
    """Once she is erased: pages have her number, and the certificate is the same byte for byte."""
    name, before = here.expert.username, run.certificate.document
    assert name in before
    done = erase_person(user=here.expert, actor=None, typed=name)
    assert done.files == 1  # they have her name, and are counted
    assert told_anywhere(name) == {
        *("Certificate.document", "Certificate.messages", "Commitment.document"),
        *("RosterEntry.name", "Run.expert_name"),
    }
    client, where = Client(), [run.project.slug, run.number]
    client.force_login(here.world.manager)
    for page in ("run_certificate_page", "run", "run_plan"):
        shown = client.get(reverse(page, args=where)).content.decode()
        assert name not in shown, page
        assert done.name in shown, page
        assert ("The name of the expert was erased" in shown) == (page == "run_certificate_page")
    run = Run.objects.select_related("project", "certificate").get(pk=run.pk)
    assert run.certificate.document == before
    assert f"labels are by `{done.name}`" in card(run, Counts(), [])


@pytest.mark.parametrize("share", ["1", "0.5"])
def test_where_models_and_expert_are_cheapest_alone_each_score_decides_about_its_own_model(share, tmp_path):
    chance = random.Random(11)

    def change(_index, row):
        row["confidence1"] = f"{chance.random():.6f}"  # tells nothing, so that slices of it tell nothing

    here = ExpertWorld(
        400,
        error=0.25,
        change=change,
        errors=(lambda _: 0.4, lambda u: 0.002 if u < 0.75 else 0.9),
        own_scores=True,
    )
    plan = {"recheck_share": Decimal(share), "epsilon": Decimal("0.06"), "m": 160, "pilot_size": 80}
    run = here.routed(here.start(**plan))
    result = json.loads(run.certificate.document)["result"]
    assert result["certified"]
    assert result["models"][-1] == 2  # which only a policy on every score has, as its thresholds
    assert result["thresholds"][-1] is not None
    models = run.run_sources.count()
    sent = set(Route.objects.filter(run=run).values_list("position", flat=True))
    assert {models, models + EXPERT + 1} <= sent
    assert not sent & {models + PERSON + 1, models + CHECKED + 1}
    here.finish(run)
    assert run.state == Run.State.COMPLETE
    files = here.delivered(run)
    rows = list(csv.DictReader(io.StringIO(files["labels.csv"].decode())))
    assert "Model 2" in {row["source"] for row in rows}
    # Of the calibration set a label that all give, and that she did not look at, is its annotator's.
    assert not any("person" in row["source"] for row in rows if row["asked"] != "true")
    assert sum(row["label"] != here.world.truth[row["external_id"]] for row in rows) <= 24
    for name in ("certificate.json", "draw.jsonl"):
        (tmp_path / name).write_bytes(files[name])
    assert verify([str(tmp_path / "certificate.json"), str(tmp_path / "draw.jsonl")]) == 0


def test_nobody_labels_what_is_not_theirs():
    here = ExpertWorld()
    run = here.finish(here.routed(here.start()))

    assert not Label.objects.exclude(annotator=F("work_item__assigned_to")).exists()
    experts = {run.expert_batch_id, run.expert_routed_batch_id}
    for label in Label.objects.select_related("work_item"):
        assert (label.annotator == here.expert) == (label.work_item.batch_id in experts)


def test_the_ledger_has_the_labels_of_the_expert_at_their_price():
    here = ExpertWorld()
    run = here.finish(here.routed(here.start(expert_cost=Decimal(30), audit_share=Decimal("0.3"))))

    by_expert = Label.objects.filter(annotator=here.expert).count()
    by_others = Label.objects.exclude(annotator=here.expert).count()
    spent = {True: Decimal(0), False: Decimal(0)}
    for spend in Spend.objects.filter(run=run, source__isnull=True):
        spent[spend.by_expert] += spend.amount
    assert spent == {True: 30 * by_expert, False: 8 * by_others}
    audits = ExpertRequest.objects.filter(run=run, why="audit").count()
    assert Spend.objects.filter(run=run, stage="audit").count() == audits > 0


def test_the_expert_labels_what_not_all_agree_on_and_the_recheck_set_in_one_shuffled_queue():
    here = ExpertWorld()
    run = here.asked(here.start(recheck_share=Decimal("0.25")))

    assert run.state == Run.State.CHECKING
    asked = list(run.draw.items.filter(asked=True).order_by("order").values_list("item", flat=True))
    why = dict(ExpertRequest.objects.filter(run=run).values_list("item", "why"))
    assert [item for item in asked if why.get(item) == "recheck"] == asked[: len(asked) // 4]
    answers = {label.item_id: label.value for label in Label.objects.all()}
    for item in run.project.items.filter(pk__in=asked[len(asked) // 4 :]):
        said = {answers[item.pk], item.data["model1"], item.data["model2"]}
        assert (item.pk in why) == (len(said) > 1)
    served = list(
        WorkItem.objects.filter(batch=run.expert_batch).order_by("order").values_list("item", flat=True)
    )
    assert sorted(served) == sorted(why)
    assert served != [item for item in asked if item in why]  # not in the order of the draw


def test_nothing_goes_on_out_of_its_order():
    here = ExpertWorld()
    run = here.start()
    with pytest.raises(ConflictError, match="still to be labelled"):
        ask_expert(run=run, user=here.world.manager)
    here.asked(run)
    with pytest.raises(ConflictError, match="cannot be asked now"):
        ask_expert(run=run, user=here.world.manager)
    with pytest.raises(ConflictError, match="still to be labelled"):
        analyse(run=run, user=here.world.manager)


@pytest.mark.parametrize(
    ("fields", "where", "words"),
    [
        ({"expert": ""}, "expert", "Choose who the expert is"),
        ({"expert": "nobody"}, "expert", "cannot be the expert"),
        ({"rule": "every_score"}, "rule", "three chains"),
        ({"recheck_share": Decimal(0)}, "recheck_share", "above 0"),
        ({"expert_cost": Decimal(0)}, "expert_cost", "above 0"),
        ({"accepted_error": Decimal(1)}, "accepted_error", "below"),
        ({"target": "pool"}, "target", "one delivered data set"),
        ({"recheck_share": Decimal("0.001"), "m": 20}, "recheck_share", "recheck nothing"),
        ({"reference": "settled"}, "expert", "Only with an expert"),
        ({"reference": "truth"}, "reference", "no reference"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_by_its_field(fields, where, words):
    here = ExpertWorld(60)
    with pytest.raises(InputError, match=words) as error:
        here.start(**({"m": 40} | fields))
    assert error.value.where == where
    assert not Run.objects.exists()


def test_who_may_not_be_on_the_roster():
    here = ExpertWorld(60)
    names = [user.username for user in here.world.annotators]
    manager = here.world.manager.username
    for roster, words in (
        ({here.expert.username: None}, "is the expert of this run"),
        ({manager: None}, "may see what models answer"),
        ({"stranger": None}, "may not label in this project"),
        ({names[0]: None, names[1]: Decimal("0.5")}, "no share"),
        ({names[0]: Decimal("0.5"), names[1]: Decimal("0.4")}, "add up to 0.9"),
    ):
        given = {name: None if share is None else Fraction(share) for name, share in roster.items()}
        with pytest.raises(InputError, match=words) as error:
            here.start(roster=given, m=40)
        assert error.value.where == "roster"
    reviewer = add_member(here.world.project, Membership.Role.REVIEWER)
    for reference in ({}, {"reference": "settled", "expert": ""}):
        with pytest.raises(InputError, match="may see what others label"):
            here.start(roster={reviewer.username: None, names[0]: None}, m=40, **reference)
    with pytest.raises(InputError, match="cannot be the expert"):
        here.start(expert=reviewer.username, m=40)


def test_an_answer_that_does_not_come_counts_against_people_and_goes_to_the_expert():
    here = ExpertWorld()
    run = here.start()
    absent, *others = here.world.annotators
    here.label(*others)
    missing = hand_over(run=run, user=absent, actor=here.world.manager)
    assert missing == WorkItem.objects.filter(assigned_to=absent, state="unlabelable").count() > 0
    here.asked(run)
    left = WorkItem.objects.filter(assigned_to=absent).values("item")
    assert ExpertRequest.objects.filter(run=run, item__in=left).count() == missing
    run = here.finish(here.routed_from(run))
    assert run.state == Run.State.COMPLETE
    document = json.loads(run.certificate.document)
    assert document["draw"]["unanswered"] == missing
    assert not Label.objects.filter(annotator=absent).exists()  # what was routed to them went to the expert
    assert all(row.label for row in rows_of(run))


def test_routed_items_of_somebody_who_left_go_to_the_expert():
    here = ExpertWorld(error=0.01)
    run = here.routed(here.start())
    gone = next(
        user
        for user in here.world.annotators
        if WorkItem.objects.filter(batch=run.routed_batch, assigned_to=user).exists()
    )
    task = queue.claim(project=here.world.project, user=gone)
    count = hand_over(run=run, user=gone, actor=here.world.manager)
    asked = ExpertRequest.objects.filter(run=run, why="no_answer")
    assert asked.count() == count > 0
    with pytest.raises(ConflictError, match="kept as a draft"):
        queue.submit(
            user=gone, work_item_id=task.work_item.pk, token=task.token, value="cat", idempotency_key="late"
        )
    assert queue.claim(project=here.world.project, user=gone) is None
    with pytest.raises(ConflictError, match="no open item"):
        hand_over(run=run, user=gone, actor=here.world.manager)
    assert AuditEvent.objects.filter(action="run.work_handed_over", data__items=count).exists()
    assert here.finish(run).state == Run.State.COMPLETE


def test_a_routed_item_that_its_person_skips_goes_to_the_expert_at_once():
    here = ExpertWorld()
    run = here.routed(here.start())
    for user in here.world.annotators:
        if task := queue.claim(project=here.world.project, user=user):
            break
    queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
    assert ExpertRequest.objects.get(run=run, item=task.item).why == "no_answer"
    assert here.finish(run).state == Run.State.COMPLETE


def test_a_second_look_follows_a_difference_and_a_correction():
    here = ExpertWorld(600, error=0.15)
    plan = {"epsilon": Decimal("0.08"), "expert_cost": Decimal(80), "m": 300}
    run = here.routed(here.start(**plan))
    models = run.run_sources.count()
    checked = Route.objects.filter(run=run, position=models + 2).values_list("item", flat=True)
    work = WorkItem.objects.filter(batch=run.routed_batch, item__in=checked, state="open")
    assert work.exists(), "this world sends something to person and model together"
    here.label(*here.world.annotators)
    for item in run.project.items.filter(
        pk__in=WorkItem.objects.filter(batch=run.routed_batch, item__in=checked).values("item")
    ):
        said = Label.objects.get(work_item__batch=run.routed_batch, item=item).value
        differs = said != item.data[f"model{models}"]
        why = ExpertRequest.objects.filter(run=run, item=item).values_list("why", flat=True).first()
        assert (why == "second_look") == differs
    agreed = Label.objects.filter(work_item__batch=run.routed_batch, item__in=checked).exclude(
        item__in=ExpertRequest.objects.filter(run=run).values("item")
    )[0]
    here.finish(run)
    assert run.state == Run.State.COMPLETE
    other = next(name for name in CHOICES if name != agreed.value)
    queue.correct(user=agreed.annotator, label_id=agreed.pk, value=other, idempotency_key="corrected")
    run.refresh_from_db()
    assert ExpertRequest.objects.get(run=run, item=agreed.item).why == "second_look"
    assert run.state == Run.State.LABELLING  # open again until the expert has looked
    assert here.finish(run).state == Run.State.COMPLETE


def test_a_corrected_label_comes_to_the_expert_although_she_was_to_audit_it_alone():
    here = ExpertWorld(600, error=0.15)
    plan = {"epsilon": Decimal("0.08"), "expert_cost": Decimal(80), "m": 300, "audit_share": Decimal("0.5")}
    run = here.routed(here.start(**plan))
    checked = Route.objects.filter(run=run, position=run.run_sources.count() + 2).values("item")
    here.label(*here.world.annotators)
    audited = run.expert_requests.filter(why="audit", item__in=checked).values("item")
    label = Label.objects.filter(work_item__batch=run.routed_batch, item__in=audited)[0]
    other = next(name for name in CHOICES if name != label.value)
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="corrected")
    assert run.expert_requests.get(item=label.item).why == "second_look"
    assert here.finish(run).state == Run.State.COMPLETE


def test_what_the_delivery_tells_of_the_expert():
    here = ExpertWorld()
    run = here.routed(here.start(audit_share=Decimal("0.3")))
    waiting = {row.external_id: row for row in rows_of(run) if row.label is None}
    assert {row.reason for row in waiting.values()} <= {"it waits for a person", "it waits for the expert"}
    here.finish(run)
    why = dict(ExpertRequest.objects.filter(run=run).values_list("item__external_id", "why"))
    for row in rows_of(run):
        assert row.expert_saw == why.get(row.external_id)
        assert (row.source == "expert") == (row.external_id in why)
        if row.source == "expert":
            assert row.label == here.world.truth[row.external_id]


def test_an_expert_who_cannot_label_leaves_a_blank_and_no_traceback():
    here = ExpertWorld()
    run = here.routed(here.start(audit_share=Decimal(0)))
    for user in here.world.annotators:
        if task := queue.claim(project=here.world.project, user=user):
            break
    queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="broken")
    here.label(*here.world.annotators)
    task = queue.claim(project=here.world.project, user=here.expert)
    queue.skip(user=here.expert, work_item_id=task.work_item.pk, token=task.token, reason="broken")
    queue.give_up(work_item=task.work_item, actor=here.world.manager)
    run = here.finish(run)
    assert run.state == Run.State.COMPLETE
    blank = [row for row in rows_of(run) if row.label is None]
    assert [(row.external_id, row.reason) for row in blank] == [
        (task.item.external_id, "nobody could label it")
    ]


def test_a_label_of_the_expert_that_changes_after_the_lock_marks_the_run():
    here = ExpertWorld()
    run = here.analysed(here.start())
    label = Label.objects.filter(annotator=here.expert).first()
    other = next(name for name in CHOICES if name != label.value)
    queue.correct(user=here.expert, label_id=label.pk, value=other, idempotency_key="changed")
    run.refresh_from_db()
    assert "was corrected after the labels had been locked" in run.broken_by[0]


def test_an_expert_who_becomes_a_reviewer_labels_blind_no_more():
    here = ExpertWorld()
    run = here.asked(here.start())
    Membership.objects.filter(project=run.project, user=here.expert).update(role="reviewer")
    assert queue.claim(project=here.world.project, user=here.expert) is None
    assert queue.stuck_items(run.project).exists()  # a manager is told


def test_two_people_settle_a_label_and_a_third_where_they_differ():
    here = ExpertWorld(error=0.2)
    run = here.world.start(reference="settled", m=160, p=None, rule="")
    here.world.do("prepare_run")
    run.refresh_from_db()
    people = [*here.world.annotators, here.expert]
    while here.label(*people):
        pass
    batch = run.calibration_batch
    progress = queue.batch_progress(batch)
    assert progress.finished
    for item in run.draw.items.values_list("item", flat=True):
        first, second, *third = Label.objects.filter(work_item__batch=batch, item=item).order_by(
            "work_item__slot"
        )
        assert first.annotator != second.annotator
        assert bool(third) == (first.value != second.value)
        settled = batch.settlements.get(item=item, superseded_by__isnull=True)
        assert settled.value == (third[0].value if third else first.value)
        if third and third[0].value not in (first.value, second.value):
            assert settled.decided_by == third[0].annotator
    analyse(run=run, user=here.world.manager)
    here.world.do("analyse_run")
    run.refresh_from_db()
    document = json.loads(run.certificate.document)
    assert document["reference"] == {"kind": "settled"}
    assert "two of our people" in document["result"]["sentence"]
