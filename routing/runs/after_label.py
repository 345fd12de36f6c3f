"""What a label of a run sets off when it is stored: its price, and with an expert more."""

from annotation.models import Label, WorkItem
from routing.models import ExpertRequest, Run, Spend
from routing.runs.expert.audit import check_for_alarm
from routing.runs.expert.final import after_correction
from routing.runs.expert.requests import person_labelled

Stage = Spend.Stage


def price_of_label(run: Run, label: Label) -> Spend:
    """The entry of a new label for the ledger, not stored."""
    by_expert = label.work_item.batch_id in run.expert_batches
    return Spend(
        project_id=run.project_id,
        run=run,
        by_expert=by_expert,
        stage=_stage(run, label),
        quantity=1,
        amount=run.cost_of_right if by_expert else run.human_cost,
        key=f"label:{label.pk}",
    )


def after_label(run: Run, label: Label, *, corrected: bool) -> None:
    """An annotator's may bring the item to the expert; the expert's may be one of the audit; a corrected one
    may break the final audit. Call it in the transaction that stores the label, once the items are routed.
    """
    if corrected:
        after_correction(run, label)
    if label.work_item.batch_id == run.routed_batch_id:
        person_labelled(run, label)
    if run.audited_items.filter(item=label.item_id).exists():
        check_for_alarm(run, label.item_id)


def after_work_ended(run: Run, work_item: WorkItem) -> None:
    """Where nobody labels an item of the audit, what waited behind it counts."""
    if run.audited_items.filter(item=work_item.item_id).exists():
        check_for_alarm(run, work_item.item_id)


def _stage(run: Run, label: Label) -> Stage:
    batch = label.work_item.batch_id
    if batch in (run.calibration_batch_id, run.expert_batch_id):
        return Stage.CALIBRATION
    if batch == run.expert_routed_batch_id and _is_audit(run, label):
        return Stage.AUDIT
    if batch == run.later_audit_batch_id:
        return Stage.AUDIT
    return Stage.ROUTED


def _is_audit(run: Run, label: Label) -> bool:
    """Whether the expert labelled the item for an audit alone."""
    # What is undecided comes before her only where it was audited before it was corrected.
    looks = (*ExpertRequest.LOOKS, ExpertRequest.Why.UNDECIDED)
    return ExpertRequest.objects.filter(run=run, item=label.item_id, why__in=looks).exists()
