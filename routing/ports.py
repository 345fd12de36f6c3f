"""What annotation tells and asks routing: the other side of annotation.ports."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from django.db.models import Min, Q
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.models import (
    AuditEvent,
    BucketSync,
    Job,
    Label,
    Membership,
    Project,
    Settlement,
    User,
    WorkBatch,
    WorkItem,
)
from annotation.permissions import ROLES_BY_ACTION, Access
from annotation.ports import LossOffer, Suggestion, WordingChange
from routing.common.states import CANCELLABLE, UNDER_WAY, State
from routing.delivery.write_back import unwritten_deliveries, write_deliveries
from routing.items.changes import CHANGE_KIND as CHANGE
from routing.models import (
    Certificate,
    Delivery,
    Prediction,
    RosterEntry,
    Run,
)
from routing.overview.facts import read_facts
from routing.overview.next_step import next_step_of
from routing.runs.after_label import after_label, after_work_ended, price_of_label
from routing.runs.certify import mark_invalid
from routing.runs.complete import calibration_ended, complete_if_done, run_of_batch
from routing.runs.expert.requests import hand_over_item, person_did_not_answer
from routing.runs.later.audit import check_for_drift
from routing.runs.losses_to_measure import HANDED_OUT
from routing.runs.measurements import KIND as MEASURE
from routing.runs.personal_data import erasure_objection, files_naming, forget_person, own_data
from routing.runs.plan_options import check_loss, loss_lacks, losses_offered
from routing.runs.raw_output import forget_raw_output
from routing.runs.replan import cancel_to_replan, wording_change
from routing.runs.roster import decider_of
from routing.runs.same_answers import same_answers
from routing.runs.suggestions import suggestion_of
from routing.runs.two_people import newest_run, sentences_of
from routing.runs.waiting_for_losses import maintain_losses
from routing.sources.copies import copy_sources
from routing.sources.hidden_columns import columns_hidden_now, hidden_columns
from routing.sources.prompt_versions import source_asked_otherwise
from routing.sources.sent_answers import KIND as SEND
from routing.sources.sent_words import page_of_sent_answers
from routing.sources.suggested import found_models, models_in
from routing.visibility import hidden_batches, in_open_calibration

# Each of these permissions opens a page of the administration that shows model output of single items.
SHOWN_IN_THE_ADMINISTRATION = tuple(
    f"routing.{verb}_{model}"
    for model in ("prediction", "itemscore", "poolitem", "route")
    for verb in ("view", "change")
)

CORRECTED = failures.register(
    "label_corrected",
    gettext_noop("The calibration label of item %(item)s was corrected after the labels had been locked."),
)
SETTLED_OTHERWISE = failures.register(
    "label_settled_otherwise",
    gettext_noop(
        "The label of record of calibration item %(item)s changed after the labels had been locked."
    ),
)


class Routing:
    """Implements annotation.ports.RoutingPort."""

    def label_stored(self, *, label: Label, replaced: Label | None) -> None:
        """Pay for the label, see whether the run is now complete, or what a correction breaks: of an item
        that several people answered only `settled` can tell.
        """
        batch = label.work_item.batch
        run = run_of_batch(batch)
        if run is None:
            return
        calibration = batch.pk in (run.calibration_batch_id, run.expert_batch_id)
        if replaced is not None:
            if calibration and batch.locked_at is not None and not _has_several(label.work_item):
                mark_invalid(
                    run=run,
                    why=CORRECTED,
                    params={"item": label.item.external_id},
                    actor=label.annotator,
                )
        else:
            price_of_label(run, label).save(force_insert=True)
        if calibration:
            if replaced is None:
                calibration_ended(run, label.work_item)
            return
        if run.by_expert:
            after_label(run, label, corrected=replaced is not None)
        if batch.pk == run.later_audit_batch_id:
            check_for_drift(run, label.item_id)
        if replaced is None:
            complete_if_done(run, label.work_item)

    def settled(self, *, batch: WorkBatch, settlements: Sequence[Settlement]) -> None:
        """See what a changed label of record breaks, or whether the run is now complete."""
        run = run_of_batch(batch)
        if run is None:
            return
        if batch.pk == run.later_audit_batch_id:
            for row in settlements:
                check_for_drift(run, row.item_id)
        if batch.pk in (run.routed_batch_id, run.later_audit_batch_id):
            complete_if_done(run)
            return
        if batch.locked_at is None:
            calibration_ended(run)
            return
        for row in settlements:
            # Not by times: of two servers one clock may be behind the other.
            if row.value != (row.supersedes.value if row.supersedes else None):
                mark_invalid(
                    run=run,
                    why=SETTLED_OTHERWISE,
                    params={"item": row.item.external_id},
                    actor=row.decided_by,
                )

    def work_item_ended(self, *, work_item: WorkItem) -> None:
        run = run_of_batch(work_item.batch)
        if run is None:
            return
        if work_item.batch_id in (run.routed_batch_id, run.expert_routed_batch_id):
            if run.by_expert and work_item.batch_id == run.routed_batch_id:
                person_did_not_answer(run, work_item)
            after_work_ended(run, work_item)
            complete_if_done(run, work_item)
        elif work_item.batch_id == run.later_audit_batch_id:
            check_for_drift(run, work_item.item_id)
            complete_if_done(run, work_item)
        else:
            calibration_ended(run, work_item)

    def work_item_skipped(self, *, work_item: WorkItem, user: User) -> None:
        """What an annotator cannot label after the routing goes to the expert."""
        run = run_of_batch(work_item.batch)
        if run is not None and run.by_expert and work_item.batch_id == run.routed_batch_id:
            hand_over_item(run, work_item)
            after_work_ended(run, work_item)

    def write_deliveries(self, *, sync: BucketSync, user: User | None, again: bool) -> int:
        return write_deliveries(sync=sync, user=user, again=again)

    def unwritten_deliveries(self, *, sync: BucketSync) -> tuple[int, str]:
        return unwritten_deliveries(sync)

    def decider(self, *, batch: WorkBatch, item_id: int) -> int | None:
        run = run_of_batch(batch)
        return None if run is None else decider_of(run, item_id)

    def suggestion(self, *, work_item: WorkItem) -> Suggestion | None:
        return suggestion_of(work_item)

    def locked_together(self, *, batch: WorkBatch) -> Collection[int]:
        by_expert = Q(reference=Run.Reference.EXPERT)
        routed = Q(routed_batch=batch.pk) | Q(expert_routed_batch=batch.pk)
        runs = Run.objects.filter(by_expert & routed | Q(later_audit_batch=batch.pk))
        names = ("later_audit_batch", "routed_batch", "expert_routed_batch")
        audit, *together = runs.values_list(*names).first() or (None,)
        if audit == batch.pk:
            return [batch.pk]  # an alarm withdraws what others hold of it
        return [pk for pk in together if pk is not None]

    def project_duplicated(self, *, project: Project, copy: Project, actor: User) -> None:
        copy_sources(project, copy, actor)

    def blind_objection(self, *, project: Project, user: User) -> str:
        """Once a run is analysed, or its models' answers were given out to be measured, whoever may look at
        predictions may have seen those of the items that are left: by their role, by one that they had since,
        or in the administration.
        """
        if words := _on_the_roster(project, user):
            return words
        first = _shown_since(project)
        if first is None:
            return ""
        seers = ROLES_BY_ACTION["predictions.view"]
        if Membership.objects.filter(project=project, user=user, role__in=seers).exists():
            return _(
                "An earlier run of this project has been analysed, or its models' answers were given out, "
                "and the role of %(name)s shows what its models predicted. So these items have to be "
                "labelled by people who cannot see that: annotators and reviewers."
            ) % {"name": user.username}
        if user.is_staff and any(map(user.has_perm, SHOWN_IN_THE_ADMINISTRATION)):
            return _(
                "An earlier run of this project has been analysed, or its models' answers were given out, "
                "and the administration of this server shows %(name)s what its models predicted. So these "
                "items have to be labelled by people who cannot see that."
            ) % {"name": user.username}
        if _had_role(project, user, seers, since=first):
            return _(
                "An earlier run of this project has been analysed, or its models' answers were given out, "
                "and a role that %(name)s had then showed what its models predicted. So these items have to "
                "be labelled by people who could not see that."
            ) % {"name": user.username}
        return ""

    def schema_objection(self, *, project: Project) -> str:
        run = project.runs.filter(state__in=(*UNDER_WAY, State.ANALYSED)).first()
        if run is None:
            return ""
        return _(
            "Run %(number)s rests on the labels as they are (%(state)s). Finish or cancel it before you "
            "change them."
        ) % {
            "number": run.number,
            "state": run.get_state_display().lower(),
        }

    def wording_objection(
        self,
        *,
        project: Project,
        question: str | None = None,
        guidelines: str | None = None,
        choices: Sequence[tuple[str, str]] | None = None,
        text_format: str | None = None,
    ) -> str:
        """Prompts that hold the guidelines or the labels would change with them, under a run whose models
        may still be called; and an expert's run promises that people label by the same rules throughout.
        """
        held = project.runs.filter(reference=Run.Reference.EXPERT, state__in=CANCELLABLE).first()
        if held is not None and any(one is not None for one in (question, guidelines, choices, text_format)):
            return _(
                "Run %(number)s promises that people label later items as they labelled the calibration set: "
                "question, guidelines, the order of labels and the format of texts can be changed once it is "
                "complete or cancelled."
            ) % {"number": held.number}
        found = source_asked_otherwise(project, guidelines=guidelines, choices=choices)
        if found is None:
            return ""
        run, source = found
        return _(
            "The prompt of %(source)s holds what you changed, and run %(number)s rests on it (%(state)s). "
            "Finish or cancel the run first, or take it out of the prompt of the next one."
        ) % {"source": source.name, "number": run.number, "state": run.get_state_display().lower()}

    def wording_change(self, *, project: Project, guidelines: str | None) -> WordingChange | None:
        return wording_change(project, guidelines=guidelines)

    def cancel_to_replan(self, *, project: Project, user: User) -> str:
        return cancel_to_replan(project=project, user=user)

    def hidden_batches(self, *, project: Project) -> set[int]:
        return hidden_batches(project)

    def hidden_items(self, *, project: Project, item_path: str) -> Q:
        return in_open_calibration(project, item_path)

    def hidden_columns(self, *, project: Project) -> frozenset[str]:
        return columns_hidden_now(project)

    def model_columns(self, *, project: Project) -> frozenset[str]:
        return hidden_columns(project)

    def models_in(
        self, *, project: Project, columns: Sequence[str], rows: Sequence[Mapping[str, str]]
    ) -> list[tuple[str, str]]:
        return [(one.label_column, one.sure_column) for one in models_in(project, columns, rows)]

    def models_to_add(self, *, access: Access) -> tuple[Sequence[str], str] | None:
        if not access.allows("sources.edit"):
            return None
        found = [one.label_column for one in found_models(access.project).suggestions]
        return (found, reverse("sources", args=[access.project.slug])) if found else None

    def job_page(self, *, job: Job, access: Access) -> tuple[str, str] | None:
        """The run that a job works for, what a change to many items did, or where answers are sent in."""
        if job.kind == SEND and access.allows("sources.edit"):
            return page_of_sent_answers(job)
        if job.kind == CHANGE and access.allows("review"):
            return _("What was changed"), reverse("items_changed", args=[access.project.slug, job.pk])
        if job.kind == MEASURE and access.allows("runs.edit"):
            return _("Plan a run"), reverse("plan", args=[access.project.slug])
        if "run" not in job.params or not access.allows("runs.view"):
            return None
        run = Run.objects.filter(project=access.project, pk=job.params["run"]).first()
        if run is None:
            return None
        title = _("Back to run %(number)s") % {"number": run.number}
        return title, reverse("run", args=[access.project.slug, run.number])

    def project_contents(self, *, project: Project) -> list[tuple[str, int]]:
        return [
            (_("Sources with their prompts"), project.sources.count()),
            (_("Predictions"), Prediction.objects.filter(source__project=project).count()),
            (_("Runs"), Run.objects.filter(project=project).count()),
            (_("Certificates"), Certificate.objects.filter(run__project=project).count()),
            (_("Deliveries"), Delivery.objects.filter(run__project=project).count()),
        ]

    def losses_offered(self, *, task_type: str) -> Sequence[LossOffer]:
        return losses_offered(task_type)

    def same_answers(self, *, project: Project, batch: int | None) -> Callable[[str, str], bool]:
        return same_answers(project, batch)

    def check_loss(self, *, project: Project) -> None:
        check_loss(project)

    def loss_lacks(self, *, project: Project) -> str:
        return loss_lacks(project)

    def next_step(self, *, access: Access) -> tuple[str, str, str] | None:
        step = next_step_of(read_facts(access))
        if step.url_name and step.method == "get":
            return step.text, step.button, step.address
        return step.text, step.pressed_elsewhere, reverse("overview", args=[access.project.slug])

    def two_people(self, *, access: Access) -> tuple[Sequence[str], str, str] | None:
        run = newest_run(access.project)
        if run is None or not access.allows("runs.view"):
            return None
        title = _("Run %(number)s") % {"number": run.number}
        address = reverse("run", args=[access.project.slug, run.number])
        return sentences_of(run, run.certificate.figures), title, address

    def own_data(self, *, user: User) -> Iterator[tuple[str, Iterable[Mapping[str, object]]]]:
        return own_data(user)

    def erasure_objection(self, *, user: User) -> str:
        return erasure_objection(user)

    def forget_person(self, *, user: User) -> None:
        forget_person(user)

    def files_naming(self, *, user: User) -> int:
        return files_naming(user)

    def forget_raw_output(self, *, before: datetime, most: int) -> bool:
        return forget_raw_output(before=before, most=most)

    def maintain_losses(self) -> None:
        maintain_losses()


def _shown_since(project: Project) -> datetime | None:
    """Since when somebody may have seen what models answered about items of a run of the project."""
    analysed = Certificate.objects.filter(run__project=project).aggregate(first=Min("created_at"))
    handed_out = AuditEvent.objects.filter(project=project, action=HANDED_OUT)
    moments = (analysed["first"], handed_out.aggregate(first=Min("created_at"))["first"])
    return min((one for one in moments if one is not None), default=None)


def _on_the_roster(project: Project, user: User) -> str:
    """Why somebody on the roster of a run under way may label blind no more: since it began they had a role
    with which they could see what others label there.
    """
    entries = RosterEntry.objects.filter(run__project=project, user=user, run__state__in=UNDER_WAY)
    strict = Q(role=RosterEntry.Role.EXPERT) | Q(run__reference=Run.Reference.SETTLED)
    fields = ("run", "run__number", "run__reference")
    entry = entries.filter(strict).order_by("run__number").values_list(*fields).first()
    if entry is None:
        return ""
    run, number, reference = entry
    # One that was cancelled may have left answers of single people, which settle nothing.
    begun = Run.objects.filter(Q(pk=run) | Q(state=State.CANCELLED, reference=reference), project=project)
    since = begun.earliest("number").created_at
    seers = ROLES_BY_ACTION["review"]
    now = Membership.objects.filter(project=project, user=user, role__in=seers).exists()
    if not now and not _had_role(project, user, seers, since=since):
        return ""
    return _(
        "The role of %(name)s, or one since run %(number)s began or one like it that was cancelled, shows "
        "what others label. Its items have to be labelled by people who cannot see that."
    ) % {"number": number, "name": user.username}


def _has_several(work_item: WorkItem) -> bool:
    """Whether several people were asked about the item."""
    if work_item.batch.overlap == 1:
        return False
    return WorkItem.objects.filter(batch=work_item.batch_id, item=work_item.item_id, slot=1).exists()


def _had_role(project: Project, user: User, roles: Collection[str], *, since: datetime) -> bool:
    """Whether the person lost one of these roles after `since`, as the audit trail tells."""
    lost = Q(action="member.role_changed", data__from__in=list(roles))
    lost |= Q(action="member.removed", data__role__in=list(roles))
    # By id, as names can change; events from before ids were written down name the person alone.
    theirs = Q(data__user=user.pk) | Q(data__user__isnull=True, target=f"user:{user.username}"[:120])
    return AuditEvent.objects.filter(lost, theirs, project=project, created_at__gte=since).exists()
