"""What could make an expert's certificate say more than is delivered, and does not."""

import json
from decimal import Decimal

import pytest
from django.urls import reverse

from annotation.errors import ConflictError, InputError
from annotation.labelling import queue
from annotation.models import Label, Membership, WorkItem
from annotation.permissions import access_to
from annotation.projects.manage import ChoiceSpec, set_choices, update_project
from routing.items.table import item_rows
from routing.labels.columns import DeliveryContext, columns_of
from routing.models import Run
from routing.runs.cancel import cancel_run
from routing.runs.certify import analyse
from routing.runs.expert.requests import hand_over
from routing.runs.label_counts import count_unlabelled
from routing.runs.plan import outlook_of_plan
from testbed.experts import ExpertWorld
from testbed.factories import add_member
from testbed.worlds import CHOICES, Answers, rows_of

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]


@pytest.fixture
def routed() -> tuple[ExpertWorld, Run]:
    here = ExpertWorld(240, human_cost="8")
    return here, here.routed(here.start(m=120))


def by_models(run: Run) -> list[int]:
    labelled = Label.objects.filter(item__project=run.project).values("item")
    models = run.run_sources.count()
    return list(
        run.routes.filter(position__lte=models).exclude(item__in=labelled).values_list("item", flat=True)
    )


def test_a_label_given_for_another_purpose_takes_the_place_of_nothing_that_was_certified(routed) -> None:
    here, run = routed
    here.finish(run)
    item = here.world.project.items.get(pk=by_models(run)[0])
    before = columns_of(DeliveryContext.of(run), [item.pk], [item.external_id])
    batch = queue.create_batch(
        project=here.world.project, item_ids=[item.pk], blind=False, priority=1, entropy=1
    )
    other = next(name for name in CHOICES if name != before["label"][0])
    Label.objects.create(
        item=item,
        work_item=WorkItem.objects.get(batch=batch),
        annotator=here.world.annotators[0],
        value=other,
        idempotency_key="foreign",
    )
    WorkItem.objects.filter(batch=batch).update(state=WorkItem.State.DONE)
    after = columns_of(DeliveryContext.of(run), [item.pk], [item.external_id])
    assert after["label"] == before["label"]
    assert after["source"] == before["source"]


NEAR = Answers(
    task_type="number",
    choices=(),
    true=lambda random_: "10.8",
    right=lambda random_, true: "10.4",
    wrong=lambda random_, true: "99",
)


def test_within_a_tolerance_an_item_on_which_all_agree_is_delivered_as_its_source_says(monkeypatch) -> None:
    here = ExpertWorld(240, human_cost="8", answers=NEAR)
    monkeypatch.setattr(here, "answer", lambda user, item: "10.8" if user == here.expert else "10.0")
    run = here.start(m=120, loss="numeric", loss_params={"absolute": "0.5"}, audit_share=Decimal(0))
    run = here.finish(here.routed(run))
    assert run.certificate.certified
    rows = rows_of(run)
    # Of people every label is wrong, of the models those that say 10.4 are right.
    alone = [
        row for row in rows if row.asked and row.expert_saw is None and row.source not in ("person", "expert")
    ]
    assert alone
    assert {row.label for row in alone} == {"10.4"}
    wrong = [row for row in rows if row.label not in ("10.4", "10.8")]
    assert len(wrong) <= run.epsilon * run.pool_size
    given_by = {row.external_id: row.source for row in rows}
    for by, name in {"person": "person", "1": "Model 1", "2": "Model 2", "expert": "expert"}.items():
        page = item_rows(
            run.project, access_to(here.world.manager, run.project.slug), filters={"by": by}, size=400
        )
        assert {row.external_id for row in page.rows} == {
            pk for pk, source in given_by.items() if source == name
        }


def test_what_neither_its_annotator_nor_the_expert_labels_is_counted_as_blank() -> None:
    here = ExpertWorld(error=0.01)
    run = here.start()
    absent, *others = here.world.annotators
    here.label(*others)
    hand_over(run=run, user=absent, actor=here.world.manager)
    here.asked(run)
    not_answered = WorkItem.objects.filter(assigned_to=absent).values("item")
    for work_item in WorkItem.objects.filter(batch=run.expert_batch, item__in=not_answered)[:12]:
        queue.give_up(work_item=work_item, actor=here.world.manager)
    run = here.finish(here.routed_from(run))
    blank = [row for row in rows_of(run) if row.label is None]
    assert blank
    assert count_unlabelled(run) == len(blank)


def test_people_are_not_asked_in_place_of_models_where_their_word_is_not_right(routed, client) -> None:
    here, run = routed
    here.finish(run)
    client.force_login(here.world.manager)
    asked = by_models(run)
    address = reverse("items_change", args=[run.project.slug])
    client.post(address, {"change": "ask_people", "item": [str(item) for item in asked], "sure": "yes"})
    assert not WorkItem.objects.filter(item__in=asked).exists()


def test_guidelines_and_labels_stay_until_people_have_labelled_the_last_item(routed) -> None:
    here, run = routed
    project, manager = here.world.project, here.world.manager
    with pytest.raises(ConflictError, match="label later items as they labelled"):
        update_project(project=project, user=manager, guidelines="Label otherwise.")
    turned = [ChoiceSpec(choice.name, choice.key) for choice in reversed(project.choices.all())]
    with pytest.raises(ConflictError, match="label later items as they labelled"):
        set_choices(project=project, user=manager, choices=turned)
    assert project.guidelines == ""
    here.finish(run)
    update_project(project=project, user=manager, guidelines="Label otherwise.")


def test_a_correction_of_what_the_expert_has_seen_asks_nobody_and_leaves_the_run_complete() -> None:
    here = ExpertWorld(240, human_cost="8", error=0.15)
    run = here.finish(here.routed(here.start(m=120, audit_share=Decimal(1), accepted_error=Decimal("0.5"))))
    assert run.state == Run.State.COMPLETE
    audited = run.audited_items.values("item")
    label = Label.objects.filter(work_item__batch=run.routed_batch, item__in=audited).first()
    assert label is not None
    other = next(name for name in CHOICES if name != label.value)
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="again")
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE
    assert run.completed_at is not None


def test_what_a_skip_brings_to_the_expert_waits_for_her_in_the_delivery(routed) -> None:
    here, run = routed
    user = here.world.annotators[0]
    task = queue.claim(project=run.project, user=user)
    assert task is not None
    item = task.work_item.item
    queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="unclear")
    found = columns_of(DeliveryContext.of(run), [item.pk], [item.external_id])
    assert found["reason"] == ["it waits for the expert"]
    cancel_run(run=run, user=here.world.manager)
    label = Label.objects.filter(work_item__batch=run.routed_batch).first()
    if label is not None:
        other = next(name for name in CHOICES if name != label.value)
        queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="after")


def test_two_people_and_a_third_are_refused_where_they_can_certify_nothing() -> None:
    here = ExpertWorld(240, human_cost="8")
    plan = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 60, "p": None, "reference": "settled"}
    outlook_of_plan(project=here.world.project, **plan)
    with pytest.raises(InputError, match="the target") as refused:
        outlook_of_plan(project=here.world.project, target="pool", **plan)
    assert refused.value.where == "reference"
    assert here.finish(here.routed(here.start(m=120))).state == Run.State.COMPLETE
    # What people labelled before is in no promise of theirs.
    found = outlook_of_plan(project=here.world.project, **plan | {"m": 20})
    assert found.plan.data_set_size is None


def test_a_price_that_cannot_be_kept_and_a_roster_beside_overlap_are_refused() -> None:
    here = ExpertWorld(240, human_cost="8")
    project = here.world.project
    plan = {"epsilon": Decimal("0.1"), "alpha": Decimal("0.1"), "m": 60, "p": None}
    expert = {"reference": "expert", "expert": here.expert.username}
    for cost in ("0.0000001", "1e9", "NaN"):
        with pytest.raises(InputError, match="Write a price") as refused:
            outlook_of_plan(project=project, expert_cost=Decimal(cost), **plan, **expert)
        assert refused.value.where == "expert_cost"
    project.overlap, project.overlap_share = 2, Decimal(1)
    project.save()
    with pytest.raises(InputError, match="leave the roster empty"):
        outlook_of_plan(project=project, roster={here.world.annotators[0].username: None}, **plan)


def test_more_people_than_a_certificate_can_name_are_refused_before_anything_is_paid(monkeypatch) -> None:
    here = ExpertWorld(60)
    monkeypatch.setattr("routing.runs.roster.MOST_ANNOTATORS", 2)
    with pytest.raises(InputError, match="too many") as refused:
        here.start(m=40)
    assert refused.value.where == "roster"
    assert not Run.objects.exists()


@pytest.fixture
def settled() -> tuple[ExpertWorld, Run]:
    here = ExpertWorld(240, human_cost="8", error=0.3)
    run = here.world.start(reference="settled", m=60, p=None, rule="")
    here.world.do("prepare_run")
    run.refresh_from_db()
    return here, run


def test_of_two_people_the_answer_of_one_settles_nothing(settled) -> None:
    here, run = settled
    while not WorkItem.objects.filter(batch=run.calibration_batch, state="done").exists():
        here.label(*here.world.annotators, limit=1)
    done = WorkItem.objects.filter(batch=run.calibration_batch, state="done").values("item")
    alone = WorkItem.objects.filter(batch=run.calibration_batch, item__in=done, state="open").first()
    assert alone is not None
    manager, reviewer = here.world.manager, add_member(run.project, "reviewer")
    for decision in ("ask_no_more", "give_up"):  # whose it is can still label it
        with pytest.raises(ConflictError, match="who can still label it"):
            queue.decide_on_stuck_item(work_item=alone, actor=manager, decision=decision)
    assert alone.assigned_to is not None
    Membership.objects.filter(project=run.project, user=alone.assigned_to).update(is_active=False)
    with pytest.raises(ConflictError, match="nobody in their place"):
        queue.decide_on_stuck_item(work_item=alone, actor=manager, decision="ask_no_more")
    with pytest.raises(ConflictError, match="a third one of the roster decides"):
        queue.adjudicate(batch=run.calibration_batch, item=alone.item, actor=reviewer, value=CHOICES[0])
    alone.refresh_from_db()
    assert alone.state == WorkItem.State.OPEN


def test_where_the_third_is_gone_the_item_is_given_up_and_counts_as_not_labelled(settled) -> None:
    here, run = settled
    people, batch = [*here.world.annotators, here.expert], run.calibration_batch
    while not (third := WorkItem.objects.filter(batch=batch, slot=2, state="open").first()):
        here.label(*people, limit=1)
    assert third.assigned_to is not None
    Membership.objects.filter(project=run.project, user=third.assigned_to).update(is_active=False)
    while here.label(*(user for user in people if user != third.assigned_to)):
        pass
    while stuck := queue.stuck_items(run.project).first():
        queue.decide_on_stuck_item(work_item=stuck, actor=here.world.manager, decision="give_up")
    analyse(run=run, user=here.world.manager)
    here.world.do("analyse_run")
    run.refresh_from_db()
    assert json.loads(run.certificate.document)["draw"]["unanswered"] > 0


def test_a_correction_after_the_lock_on_which_two_differ_is_for_a_reviewer(settled) -> None:
    here, run = settled
    people, batch = [*here.world.annotators, here.expert], run.calibration_batch
    while here.label(*people):
        pass
    queue.lock_batch(batch=batch)
    alone = WorkItem.objects.filter(batch=batch, slot=2).values("item")
    label = Label.objects.filter(work_item__batch=batch).exclude(item__in=alone).first()
    assert label is not None
    other = next(name for name in CHOICES if name != label.value)
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key="late")
    asked = WorkItem.objects.filter(batch=batch, item=label.item, slot=2, state__in=("open", "leased"))
    assert not asked.exists()
    reviewer = add_member(run.project, "reviewer")
    batch.refresh_from_db()
    found = queue.adjudicate(batch=batch, item=label.item, actor=reviewer, value=CHOICES[0], confirmed=True)
    assert found.value == CHOICES[0]
