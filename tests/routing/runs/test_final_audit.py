"""The final audit of a run with an expert, from the plan to the verified certificate."""

import json
from decimal import Decimal

import pytest

from annotation.errors import ConflictError, InputError
from annotation.labelling import queue
from annotation.models import Label, WebhookDelivery
from annotation.outside.webhooks.manage import create_webhook
from routing.core.verify import main as verify
from routing.models import ExpertRequest, FinalAudit, FinalCertificate, Run, Spend
from routing.runs.expert.counts import counts_of_people
from routing.runs.expert.final import (
    analyse_final_audit,
    draw_final_audit,
    final_certificate_of,
    final_state,
)
from routing.runs.ledger import ledger
from testbed.experts import ExpertWorld
from testbed.worlds import CHOICES, rows_of

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]

PLAN = {
    "m": 110,
    "recheck_share": Decimal(1),
    "final_sample": 40,
    "final_models_error": Decimal("0.06"),
    "audit_share": Decimal(0),
}


def world(**options) -> ExpertWorld:
    return ExpertWorld(240, **options)


def completed(here: ExpertWorld, **fields) -> Run:
    return here.finish(here.routed(here.start(**(PLAN | fields))))


def drawn(here: ExpertWorld, run: Run) -> Run:
    draw_final_audit(run=run, user=here.world.manager)
    here.world.do("draw_final_audit")
    run.refresh_from_db()
    return run


def analysed(here: ExpertWorld, run: Run) -> FinalCertificate:
    here.finish(run)
    analyse_final_audit(run=run, user=here.world.manager)
    here.world.do("analyse_final_audit")
    found = final_certificate_of(run)
    assert found is not None
    return found


def test_a_final_audit_from_plan_to_verified_certificate(tmp_path):
    here = world(error=0.0)
    run = completed(here)
    people, _expert = counts_of_people(run)
    before = [entry.alpha for entry in ledger(run)]
    drawn(here, run)

    sample = set(run.final_audit.sample.values_list("item", flat=True))
    assert run.final_audit.size == people
    assert len(sample) == min(40, people) == run.final_audit.sampled
    assert set(run.expert_requests.filter(why="final").values_list("item", flat=True)) == sample
    assert run.state == Run.State.LABELLING
    with pytest.raises(ConflictError, match="still to be labelled"):
        analyse_final_audit(run=run, user=here.world.manager)
    with pytest.raises(ConflictError, match="drawn already"):
        draw_final_audit(run=run, user=here.world.manager)
    # A second certificate of the run may be wrong, too.
    assert [entry.alpha for entry in ledger(run)] == [before[0] + run.alpha]

    found = analysed(here, run)
    document = json.loads(found.document)
    assert found.certified
    assert found.holds
    assert document["certificate"] == run.certificate.sha256
    assert len(document["rows"]) == len(sample)
    assert document["result"]["people"]["differ"] <= document["result"]["people"]["allowed"]
    assert json.loads(run.certificate.document)["reference"]["final_audit"]["sample"] == 40
    audits = Spend.objects.filter(run=run, stage="audit")
    assert audits.count() == len(sample)
    for row in rows_of(run):
        if row.expert_saw == "final":
            assert row.source == "expert"
            assert row.label == here.world.truth[row.external_id]
    with pytest.raises(ConflictError, match="once"):
        analyse_final_audit(run=run, user=here.world.manager)

    files = here.delivered(run)
    assert files["final_audit.json"].decode() == found.document
    assert "Final audit: At most 10 %" in files["README.md"].decode()
    for name in ("certificate.json", "draw.jsonl", "final_audit.json"):
        (tmp_path / name).write_bytes(files[name])
    command = [str(tmp_path / "certificate.json"), str(tmp_path / "draw.jsonl"), "--final"]
    assert verify([*command, str(tmp_path / "final_audit.json")]) == 0
    for change in (
        lambda other: other["rows"][0].update(expert="z" if other["rows"][0]["expert"] != "z" else "y"),
        lambda other: other["rows"].reverse(),
        lambda other: other["plan"].update(models_error="0.08"),
        lambda other: other["result"]["people"].update(allowed=61),
    ):
        other = json.loads(found.document)
        change(other)
        (tmp_path / "other.json").write_text(json.dumps(other))
        assert verify([*command, str(tmp_path / "other.json")]) == 1


def test_people_who_drift_are_found_out_and_the_ordinary_certificate_stands():
    here = world(error=0.0)
    run = here.routed(here.start(**PLAN))
    here.error = 0.8
    here.finish(run)
    found = analysed(here, drawn(here, run))

    assert not found.certified
    assert "could not be certified without the assumption" in found.sentence
    assert json.loads(found.document)["result"]["people"]["holds"] is False
    assert run.certificate.holds


def test_what_the_expert_cannot_label_counts_as_wrong_and_pages_say_it(client_of):
    here = world(error=0.0)
    run = completed(here)
    client, page = client_of(here.world.manager), f"/projects/{run.project.slug}/runs/{run.number}/"
    assert "Draw the final audit" in client.get(page).content.decode()
    drawn(here, run)
    assert "are still to be labelled by the expert" in client.get(page).content.decode()
    for _ in range(30):
        task = queue.claim(project=here.world.project, user=here.expert)
        queue.skip(user=here.expert, work_item_id=task.work_item.pk, token=task.token, reason="broken")
        queue.give_up(work_item=task.work_item, actor=here.world.manager)
    found = analysed(here, run)

    people = json.loads(found.document)["result"]["people"]
    assert (people["differ"], people["unanswered"], people["holds"]) == (0, 30, False)
    assert all(row.label is not None for row in rows_of(run))  # the annotator's label is delivered
    for address in (page, f"{page}certificate/"):
        assert "could not be certified without the assumption" in client.get(address).content.decode()
    assert client.get(f"{page}final_audit.json").content.decode() == found.document
    told = client.get(f"/api/v1{page}final-audit/").json()
    assert (told["certified"], told["open"], told["sampled"]) == (False, 0, 40)


def _correct(label: Label) -> None:
    other = next(name for name in CHOICES if name != label.value)
    queue.correct(user=label.annotator, label_id=label.pk, value=other, idempotency_key=f"other-{label.pk}")


def test_corrections_break_it_where_they_change_what_it_speaks_of():
    here = world(error=0.0)
    run = drawn(here, completed(here, final_sample=20))
    sample = run.final_audit.sample.values("item")
    of_people = Label.objects.filter(work_item__batch=run.routed_batch)
    seen = ExpertRequest.objects.filter(run=run).values("item")
    _correct(of_people.filter(item__in=sample).first())  # what it said then is what was drawn
    first = Label.objects.filter(work_item__batch=run.expert_routed_batch, item__in=sample).first()
    assert first is None
    here.finish(run)
    by_expert = Label.objects.filter(work_item__batch=run.expert_routed_batch, item__in=sample)
    _correct(by_expert.first())  # before the analysis her last word counts
    assert FinalAudit.objects.get(run=run).invalid_reasons == []
    found = analysed(here, run)
    assert found.broken_by == []

    create_webhook(
        project=run.project, actor=here.world.manager, url="https://a.example/", events=["certificate.broken"]
    )
    _correct(of_people.exclude(item__in=seen).first())
    found = final_certificate_of(run)
    assert len(found.broken_by) == 1
    assert "was corrected after the final audit had been drawn" in found.broken_by[0]
    _correct(by_expert.filter(superseded_by__isnull=True).last())
    assert len(final_certificate_of(run).broken_by) == 2
    assert not final_certificate_of(run).holds
    told = [json.loads(row.payload)["data"] for row in WebhookDelivery.objects.all()]
    assert [row["certificate"] for row in told] == [found.sha256], "of two reasons programs are told once"


def test_no_final_audit_where_none_is_planned_or_nothing_is_left_to_draw():
    here = world()
    run = completed(here, final_sample=None, final_models_error=None)
    assert final_state(run) is None
    with pytest.raises(ConflictError, match="No final audit is planned"):
        draw_final_audit(run=run, user=here.world.manager)
    early = world()
    run = early.routed(early.start(**PLAN))
    with pytest.raises(ConflictError, match="once everything is labelled"):
        draw_final_audit(run=run, user=early.world.manager)


@pytest.mark.parametrize(
    ("fields", "where", "words"),
    [
        ({"final_models_error": Decimal("0.01")}, "final_models_error", "how many labels"),
        ({"final_sample": 10, "final_models_error": Decimal("0.2")}, "final_models_error", "epsilon"),
        ({"final_sample": 10, "final_people_alpha": Decimal("0.9")}, "final_people_alpha", "below alpha"),
        (
            {
                "final_sample": 10,
                "final_people_alpha": Decimal("0.09"),
                "final_models_alpha": Decimal("0.09"),
            },
            "final_people_alpha",
            "more than alpha",
        ),
        ({"final_sample": 10, "reference": "person", "expert": ""}, "final_sample", "Only with an expert"),
    ],
)
def test_plans_of_a_final_audit_that_cannot_be(fields, where, words):
    here = world()
    with pytest.raises(InputError, match=words) as refused:
        here.start(**fields)
    assert refused.value.where == where
