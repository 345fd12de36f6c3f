"""The audit of people's labels after the routing of a run with an expert."""

import json
from decimal import Decimal

import pytest

from annotation.labelling import queue
from annotation.models import Label, WebhookDelivery, WorkItem
from annotation.outside.webhooks.manage import create_webhook
from routing.core.reference.audit import audited
from routing.models import AuditedItem, ExpertRequest, Run
from routing.runs import audits
from routing.runs.expert.audit import audit_state
from testbed.experts import ExpertWorld
from testbed.worlds import CHOICES

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]


def test_the_audit_warns_when_people_err_more_than_was_accepted(client_of):
    here = ExpertWorld(error=0.0)
    webhook, _ = create_webhook(
        project=here.world.project,
        actor=here.world.manager,
        url="https://example.org/",
        events=["run.audit_alarm"],
    )
    run = here.routed(here.start(audit_share=Decimal(1), accepted_error=Decimal("0.02")))
    marked = AuditedItem.objects.filter(run=run).count()
    assert marked == run.routed_batch.work_items.count() > 10
    here.error = 0.9
    while run.audit_alarm_at is None and here.label(*here.world.annotators, limit=5):
        here.label(here.expert)
        run.refresh_from_db()
    state = audit_state(run)
    assert run.audit_alarm_at is not None
    assert state.alarm
    assert state.differ >= 2
    assert "The audit found" in run.broken_by[0]
    assert not WorkItem.objects.filter(batch=run.routed_batch, state="open").exists()
    assert ExpertRequest.objects.filter(run=run, why="alarm").exists()
    notice = "The audit warns: people err more than was accepted."
    overview = f"/projects/{run.project.slug}/"
    assert notice in client_of(here.world.manager).get(overview).content.decode()
    assert notice not in client_of(here.world.annotators[0]).get(overview).content.decode()
    assert here.finish(run).state == Run.State.COMPLETE
    (message,) = WebhookDelivery.objects.filter(webhook=webhook)  # told once, whatever is labelled after it
    told = json.loads(message.payload)
    assert told["type"] == "run.audit_alarm"
    assert told["data"] == {
        "project": run.project.slug,
        "run": run.number,
        "audited": state.audited,
        "differ": state.differ,
        "url": f"/api/v1/projects/{run.project.slug}/runs/{run.number}/",
    }


def test_nothing_that_is_stored_or_delivered_tells_which_items_are_audited():
    here = ExpertWorld(240, human_cost="8")
    run = here.routed(here.start(m=120, audit_share=Decimal("0.5")))
    asked = list(run.routed_batch.work_items.values_list("item__external_id", flat=True))
    marked = set(run.audited_items.values_list("item__external_id", flat=True))
    assert 0 < len(marked) < len(asked)
    told = {name for name, mark in zip(asked, audited(run.salt, asked, run.audit_share), strict=True) if mark}
    assert told != marked


def test_the_audit_counts_on_from_where_it_was_and_anew_after_a_correction(monkeypatch):
    monkeypatch.setattr(audits, "AT_ONCE", 3)
    here = ExpertWorld(error=0.0)
    run = here.routed(here.start(audit_share=Decimal(1), accepted_error=Decimal("0.6")))
    here.error = 0.3
    here.label(*here.world.annotators)
    here.label(here.expert, limit=run.routed_batch.work_items.count() // 2)
    run.refresh_from_db()
    while not (found := audit_state(run)).audited:
        here.label(here.expert, limit=1)
        run.refresh_from_db()
    kept, run.audit_found = run.audit_found, None
    assert audit_state(run) == found
    assert kept["audited"] <= found.audited
    here.finish(run)
    of_audits = Label.objects.filter(work_item__batch=run.expert_routed_batch, item__in=audited_of(run))
    label = of_audits.first()
    before = audit_state(run).differ
    person = Label.objects.get(work_item__batch=run.routed_batch, item=label.item)
    differed = person.value != label.value
    value = next(name for name in CHOICES if name != label.value) if not differed else person.value
    queue.correct(user=here.expert, label_id=label.pk, value=value, idempotency_key="second thought")
    run.refresh_from_db()
    assert audit_state(run).differ == before + (-1 if differed else 1)
    assert run.audit_found["differ"] == audit_state(run).differ


def test_what_an_annotator_corrects_after_the_expert_has_looked_changes_no_audit():
    here = ExpertWorld(error=0.0)
    run = here.routed(here.start(audit_share=Decimal(1), accepted_error=Decimal("0.6")))
    here.error = 0.3
    here.finish(run)
    found = audit_state(run)
    assert found.differ
    audited = Label.objects.filter(work_item__batch=run.routed_batch, item__in=audited_of(run))
    for label in audited.exclude(value=None):
        true = here.world.truth[label.item.external_id]
        if label.value != true:
            queue.correct(user=label.annotator, label_id=label.pk, value=true, idempotency_key=f"c{label.pk}")
    run.refresh_from_db()
    assert audit_state(run) == found


def audited_of(run):
    return run.expert_requests.filter(why="audit").values("item")
