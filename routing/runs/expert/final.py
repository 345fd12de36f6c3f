"""The final audit of a run with an expert: once everything is labelled, a manager has labels by people drawn,
which the expert labels, too (job "draw_final_audit"); then a manager has the result computed (job
"analyse_final_audit"). Formulas: `routing.core.reference.final`.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.common.ranges import of_items
from annotation.common.value_reader import Value, as_text
from annotation.errors import ConflictError, Refusal
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import Job, Label, User, WorkBatch, WorkItem
from annotation.words import Words
from routing.common.states import State
from routing.core import sampling
from routing.core.calibration import Calibration
from routing.core.certificate import canonical_bytes
from routing.core.documents import parse_document, parse_draw, parse_plan
from routing.core.messages import to_json
from routing.core.reference.final import Frame, SampledLabel, audited, drawn_places
from routing.core.reference.plan import FinalPlan
from routing.core.reference.sources import CHECKED, PERSON
from routing.models import (
    Certificate,
    ExpertRequest,
    FinalAudit,
    FinalCertificate,
    FinalSample,
    PoolItem,
    Run,
)
from routing.runs.events import final_audit_broken
from routing.runs.expert.analyse import MODELS_PART
from routing.runs.expert.audit import ALARMED
from routing.runs.expert.delivered import labelled_by_expert, undelivered
from routing.runs.expert.requests import ask_about
from routing.runs.ledger import charge_final_audit
from routing.runs.own_record import has_own_record
from routing.runs.reference import final_plan_of

DRAW, ANALYSE, PART = "draw_final_audit", "analyse_final_audit", 10_000
CHANGED = failures.register(
    "final_label_changed",
    gettext_noop("The label of item %(item)s was corrected after the final audit had been drawn."),
)
CORRECTED_MEANWHILE = failures.register(
    "final_label_changed_meanwhile",
    gettext_noop("A label of the final audit was corrected while its certificate was computed."),
)


@dataclass(frozen=True)
class FinalState:
    """How far the final audit of a run is.

    Attributes
    ----------
    audit
        None until it is drawn.
    open : int
        Drawn items that the expert has not labelled yet.
    certificate
        None until it is analysed.
    objection : str
        Why it cannot be drawn now, or analysed once it is drawn; "" where it can.
    """

    audit: FinalAudit | None
    open: int
    certificate: FinalCertificate | None
    objection: str

    @property
    def to_draw(self) -> bool:
        return self.audit is None and not self.objection

    @property
    def to_analyse(self) -> bool:
        return self.audit is not None and self.certificate is None and not self.objection


def final_state(run: Run) -> FinalState | None:
    """None where none is planned."""
    if run.final_sample is None:
        return None
    drawn = FinalAudit.objects.filter(run=run).select_related("certificate", "run").first()
    if drawn is None:
        return FinalState(None, 0, None, _objection_to_draw(run))
    certificate: FinalCertificate | None = getattr(drawn, "certificate", None)
    left = _open(run, drawn) if certificate is None else 0
    return FinalState(drawn, left, certificate, _objection_to_analyse(run, drawn, certificate, left))


def final_certificate_of(run: Run) -> FinalCertificate | None:
    """What its final audit found; None where there is none, or before its analysis."""
    if run.final_sample is None:
        return None
    return FinalCertificate.objects.filter(audit__run=run).select_related("audit__run").first()


def draw_final_audit(*, run: Run, user: User | None) -> Job:
    """Have the sample drawn and the expert asked about it (job "draw_final_audit").

    Raises ConflictError, in words, where none is planned, it is drawn already, not everything is labelled, or
    no annotator's label is left to look at.
    """
    run.refresh_from_db()
    if run.final_sample is None:
        raise ConflictError(
            _("No final audit is planned for run %(run)s: that is fixed with the plan.")
            % {"run": run.number},
            code="no_final_audit",
        )
    if FinalAudit.objects.filter(run=run).exists():
        raise ConflictError(
            _("The final audit of run %(run)s is drawn already.") % {"run": run.number},
            code="final_audit_drawn",
        )
    if words := _objection_to_draw(run):
        raise ConflictError(words, code=words.code)
    with transaction.atomic():
        audit.record(
            project=run.project, actor=user, action="run.final_audit_started", target=f"run:{run.number}"
        )
        return _enqueue(run, DRAW, user)


def analyse_final_audit(*, run: Run, user: User | None) -> Job:
    """Have the result computed (job "analyse_final_audit"): once, when the expert has labelled all of it.

    Raises ConflictError in words.
    """
    run.refresh_from_db()
    drawn = FinalAudit.objects.filter(run=run).select_related("certificate").first()
    if drawn is None:
        raise ConflictError(
            _("The final audit of run %(run)s is not drawn yet.") % {"run": run.number},
            code="final_audit_not_drawn",
        )
    certificate: FinalCertificate | None = getattr(drawn, "certificate", None)
    if words := _objection_to_analyse(run, drawn, certificate, _open(run, drawn)):
        raise ConflictError(words, code=words.code)
    with transaction.atomic():
        audit.record(
            project=run.project, actor=user, action="run.final_audit_analysed", target=f"run:{run.number}"
        )
        return _enqueue(run, ANALYSE, user)


def draw_sample(context: JobContext) -> dict[str, Any]:
    """The job "draw_final_audit"."""
    runs = Run.objects.select_related("project", "expert_routed_batch")
    run = runs.get(pk=context.params["run"], project=context.job.project_id)
    context.progress(stage=Words(gettext_noop("Drawing the final audit")))
    with context.chunk():
        # A correction, which locks the batch first, waits for this, and then finds what was drawn.
        if (batch := run.expert_routed_batch_id) is not None:
            WorkBatch.objects.select_for_update(no_key=True).get(pk=batch)
        run = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        if run.state != State.COMPLETE or run.final_sample is None or hasattr(run, "final_audit"):
            return {"state": run.state}
        rows = _frame(run).order_by("position").values_list("item", "item__external_id")
        frame = list(rows.iterator(chunk_size=PART))
        if not frame:
            return {"items": 0}
        entropy = sampling.new_entropy()
        places = drawn_places(len(frame), run.final_sample, entropy).tolist()
        drawn = FinalAudit.objects.create(
            run=run,
            size=len(frame),
            frame_hash=sampling.pool_hash(name for _item, name in frame),
            sampled=len(places),
            entropy=str(entropy),
        )
        charge_final_audit(run)
        items = [frame[place][0] for place in places]
        labels = _labels_of_people(run, items)
        FinalSample.objects.bulk_create(
            (
                FinalSample(audit=drawn, item_id=item, order=order, place=place, label=labels[item])
                for order, (item, place) in enumerate(zip(items, places, strict=True))
            ),
            batch_size=PART,
        )
        # What she could not label before she is not asked again: it counts as unanswered.
        asked = set(run.expert_requests.values_list("item", flat=True))
        ask_about(run, {item: ExpertRequest.Why.FINAL for item in labels if item not in asked})
    return {"items": len(places)}


def analyse_sample(context: JobContext) -> dict[str, Any]:
    """The job "analyse_final_audit"."""
    runs = Run.objects.select_related("project", "certificate")
    run = runs.get(pk=context.params["run"], project=context.job.project_id)
    context.progress(stage=Words(gettext_noop("Certificate")))
    drawn, final = run.final_audit, final_plan_of(run)
    if final is None or hasattr(drawn, "certificate"):
        return {}
    columns = _columns(run.certificate, drawn, final, rows := _sampled(run, drawn))
    with context.chunk():
        Run.objects.select_for_update(no_key=True).get(pk=run.pk)  # before or after a correction
        if _sampled(run, drawn) != rows:
            raise CORRECTED_MEANWHILE.error(permanent=False)
        FinalCertificate.objects.create(audit=drawn, **columns)
    return {"certified": columns["certified"]}


def final_columns(certificate: Certificate, drawn: FinalAudit, moment: datetime) -> dict[str, Any]:
    """The columns of the certificate of a final audit, from what was said until this moment."""
    final = final_plan_of(certificate.run)
    if final is None:
        raise ValueError(f"no final audit is planned for run {certificate.run_id}")
    return _columns(certificate, drawn, final, _sampled(certificate.run, drawn, moment))


def _columns(
    certificate: Certificate, drawn: FinalAudit, final: FinalPlan, rows: Sequence[SampledLabel]
) -> dict[str, Any]:
    own = parse_document(certificate.document.encode())
    found = audited(
        own,
        parse_plan(own),
        Calibration.from_rows(parse_draw(certificate.draw_lines.encode())),
        sha256=certificate.sha256,
        final=final,
        frame=Frame(drawn.size, drawn.frame_hash, int(drawn.entropy)),
        rows=rows,
    )
    document = canonical_bytes(found.document)
    return {
        "certified": found.result.certified,
        "document": document.decode(),
        "messages": to_json(found.said),
        "sha256": hashlib.sha256(document).hexdigest(),
    }


def after_correction(run: Run, label: Label) -> None:
    """A corrected label breaks the final audit: an annotator's that could be drawn and was not, once it is
    drawn, and the expert's of a drawn item, once it is analysed. Call it in the transaction that stores it.
    """
    if run.final_sample is None:
        return
    Run.objects.select_for_update(no_key=True).get(pk=run.pk)  # as whoever draws
    drawn = FinalAudit.objects.select_for_update(no_key=True).filter(run=run).first()
    if drawn is None:
        return
    sampled = drawn.sample.filter(item=label.item_id).exists()
    if label.work_item.batch_id in run.expert_batches:
        if not sampled or not FinalCertificate.objects.filter(audit=drawn).exists():
            return
    elif sampled or _seen_before(run, label.item_id, drawn):
        return  # of a drawn one the label of then counts, and of a seen one the expert's is delivered
    _break(run, drawn, label)


def _seen_before(run: Run, item: int, drawn: FinalAudit) -> bool:
    """Whether the expert had labelled an item before the draw, so that it could not be drawn."""
    labels = Label.objects.filter(
        work_item__batch__in=run.expert_batches, item=item, created_at__lte=drawn.drawn_at
    )
    return labels.exists()


def _break(run: Run, drawn: FinalAudit, label: Label) -> None:
    params = {"item": label.item.external_id}
    reason: dict[str, Any] = {"code": CHANGED.code, "params": params}
    if reason in ({key: known[key] for key in reason} for known in drawn.invalid_reasons):
        return
    words = failures.in_english(CHANGED.code, params)
    drawn.invalid_reasons.append(reason | {"words": words})
    drawn.save(update_fields=["invalid_reasons"])
    if sha256 := FinalCertificate.objects.filter(audit=drawn).values_list("sha256", flat=True).first():
        final_audit_broken(run, sha256=sha256, reason=CHANGED.code)
    audit.record(
        project=run.project,
        actor=label.annotator,
        action="run.final_audit_broken",
        target=f"run:{run.number}",
        data={"reason": words},
    )


def _enqueue(run: Run, kind: str, user: User | None) -> Job:
    return jobs.enqueue(
        project=run.project,
        kind_name=kind,
        params={"run": run.pk},
        unique_key=f"{kind}:{run.pk}",
        user=user,
    )


def _objection_to_draw(run: Run) -> Refusal:
    if run.state != State.COMPLETE:
        return Refusal(
            _("The final audit of run %(run)s is drawn once everything is labelled (now: %(state)s).")
            % {
                "run": run.number,
                "state": run.get_state_display().lower(),
            },
            "run_not_complete",
        )
    if any(reason["code"] != ALARMED.code for reason in run.invalid_reasons):
        return Refusal(
            _("Something broke the certificate of this run, and would break that of a final audit, too."),
            "certificate_broken",
        )
    if not run.certificate.figures.get(MODELS_PART, {}).get("holds", True):
        return Refusal(
            _(
                "The calibration set does not show that models get few enough items wrong for the final "
                "audit of this plan: whatever people's labels are, it would certify nothing."
            ),
            "final_audit_hopeless",
        )
    people = [run.run_sources.count() + place + 1 for place in (PERSON, CHECKED)]
    if not (run.routes.filter(position__in=people).exists() and _frame(run).exists()):
        return Refusal(
            _(
                "The expert has given every label of this run that no model gives: there is nothing left to "
                "audit, and its certificate assumes nothing about people."
            ),
            "nothing_to_audit",
        )
    return Refusal()


def _objection_to_analyse(
    run: Run, drawn: FinalAudit, certificate: FinalCertificate | None, left: int
) -> Refusal:
    if certificate is not None:
        return Refusal(
            _("The final audit of run %(run)s has been analysed: it is drawn and analysed once.")
            % {"run": run.number},
            "final_audit_analysed",
        )
    if left:
        return Refusal(
            _("%(left)s items of the final audit are still to be labelled by the expert.")
            % {"left": f"{left:,}"},
            "final_audit_unlabelled",
        )
    return Refusal()


def _frame(run: Run) -> QuerySet[PoolItem]:
    """Items of the pool whose delivered label an annotator gave, and not the expert."""
    return PoolItem.objects.filter(
        has_own_record(run, item="item"), ~undelivered(run, "item"), ~labelled_by_expert(run), run=run
    )


def _open(run: Run, drawn: FinalAudit) -> int:
    work = WorkItem.objects.filter(
        batch=run.expert_routed_batch_id,
        state__in=WorkItem.UNFINISHED,
        item__in=drawn.sample.values("item"),
    )
    return work.count()


def _labels_of_people(run: Run, items: list[int]) -> Mapping[int, Value]:
    """Of these items, in their order, what their annotators said last."""
    found: dict[int, Value] = {}
    for start in range(0, len(items), PART):
        labels = Label.objects.filter(
            of_items("item", items[start : start + PART]),
            work_item__batch__in=list(filter(None, (run.calibration_batch_id, run.routed_batch_id))),
            superseded_by__isnull=True,
        )
        found.update(labels.values_list("item", "value"))
    return {item: found[item] for item in items}


def _sampled(run: Run, drawn: FinalAudit, moment: datetime | None = None) -> list[SampledLabel]:
    """What was drawn, with what the expert says of it, or had said at this moment."""
    labels = Label.objects.filter(
        work_item__batch=run.expert_routed_batch_id,
        work_item__state=WorkItem.State.DONE,
        item__in=drawn.sample.values("item"),
        **({} if moment is None else {"created_at__lte": moment}),
    )
    expert: dict[int, Value] = dict(labels.order_by("version").values_list("item", "value"))
    rows = drawn.sample.order_by("order").values_list("place", "item", "item__external_id", "label")
    return [
        SampledLabel(place, name, as_text(label), as_text(expert[item]) if item in expert else None)
        for place, item, name, label in rows
    ]
