"""What a project's main page shows: the chain of stages, what to do next, who is at work, the money, and the
items that nobody is left to label.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from django.db.models import Q

from annotation.common.replaced_labels import names_as_given
from annotation.labelling import queue
from annotation.labelling.label_queries import label_in_words
from annotation.labelling.labels_of_record import disagreements
from annotation.models import Job, Project, Skip, WorkItem
from annotation.permissions import Access
from annotation.review.queries import asks_several, open_flags
from routing.common.states import UNDER_WAY
from routing.models import Run
from routing.overview.facts import read_facts
from routing.overview.next_step import NextStep, next_step_of
from routing.overview.stages import Stage, stages_of
from routing.runs.labelling_pace import LabellingProgress, run_labelling
from routing.runs.spending import ModelMoney, Paid, Savings, model_money, paid_by, savings
from routing.visibility import view_permission

SHOWN_STUCK = 20


@dataclass(frozen=True)
class Overview:
    """`run` is the newest that was not cancelled; `stuck` are items that everybody skipped; `failed_job`
    what ended badly. `savings` holds no routing saving: it would cost more than the rest of the page.

    `labelling` says how people come on while they label for the run; `disputes` are items about which a
    reviewer has to decide, `flags` are those that nobody has seen to.
    """

    stages: list[Stage]
    next_step: NextStep
    run: Run | None
    items: int
    spend: list[Paid]
    savings: Savings | None
    money: ModelMoney | None
    labelling: LabellingProgress | None
    running_jobs: list[Job]
    failed_job: Job | None
    stuck: int
    disputes: int
    flags: int
    active: bool
    """Whether the numbers can change without anybody pressing a button here: then the page polls."""

    @property
    def poll_seconds(self) -> int:
        """People label more slowly than machines."""
        return 3 if self.running_jobs else 5

    @property
    def announced(self) -> str:
        """Changes when something is to be told to whoever does not look: not with every count."""
        failed = self.failed_job.pk if self.failed_job else ""
        alarm = "alarm" if self.run and self.run.audit_alarm_at else ""
        return f"{self.run.state if self.run else ''}.{self.next_step.url_name}.{failed}.{alarm}"


def read_overview(project: Project, access: Access) -> Overview:
    """What the project's main page shows to this person."""
    facts = read_facts(access)
    run = facts.run
    may_look = run is not None and access.allows("runs.view")
    spend = paid_by(run) if run and may_look else []
    may_review = access.allows("review")
    moving = [job for job in facts.jobs.values() if job.state != Job.State.PAUSED]
    labelling = run_labelling(run, facts.calibration, facts.routed) if run else None
    return Overview(
        stages=stages_of(facts),
        next_step=next_step_of(facts),
        run=run,
        items=facts.items,
        spend=spend,
        savings=savings(run, spend, with_routing=False) if run and may_look else None,
        money=model_money(run) if run and may_look and run.state in UNDER_WAY else None,
        labelling=labelling if may_look else None,
        running_jobs=list(facts.jobs.values()) if access.allows("jobs.view") else [],
        failed_job=facts.failed if access.allows("jobs.view") else None,
        stuck=queue.stuck_items(project).count() if access.allows("work.decide") else 0,
        disputes=disagreements(project, access.user).count() if may_review and asks_several(project) else 0,
        flags=open_flags(project).count() if may_review else 0,
        active=bool(moving) or bool(labelling and labelling.left),
    )


@dataclass(frozen=True)
class StuckItem:
    """`skips` that nobody took back, and `answers` as (person, label in words). `blind`: nothing of both may
    be seen yet, as labels of its batch are compared with models.
    """

    work: WorkItem
    blind: bool
    skips: list[Skip] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)


def stuck_items_of(access: Access) -> list[StuckItem]:
    """The first SHOWN_STUCK in the order of the queue."""
    found = list(queue.stuck_items(access.project).select_related("item__image", "batch")[:SHOWN_STUCK])
    permission = view_permission(access.project, access)
    closed = permission.hidden | permission.audits
    asked_anew = set(permission.in_open_calibration([work.item_id for work in found]))
    blind = {
        work.pk for work in found if work.batch.blind or work.batch_id in closed or work.item_id in asked_anew
    }
    of = Q(
        work_item__batch__in={work.batch_id for work in found if work.pk not in blind},
        work_item__item__in=[work.item_id for work in found if work.pk not in blind],
    )
    skips: dict[tuple[int, int], list[Skip]] = defaultdict(list)
    shown = permission.skips().filter(of, cleared_at__isnull=True).select_related("user", "work_item")
    for skip in shown.order_by("pk"):
        skips[skip.work_item.batch_id, skip.work_item.item_id].append(skip)
    answers: dict[tuple[int, int], list[tuple[str, str]]] = defaultdict(list)
    names = names_as_given(access.project)
    labels = permission.labels().filter(of).select_related("annotator", "work_item")
    for label in labels.order_by("work_item__slot", "pk"):
        given = (label.annotator.get_username(), label_in_words(label.value, names))
        answers[label.work_item.batch_id, label.item_id].append(given)
    return [
        StuckItem(
            work,
            blind=work.pk in blind,
            skips=[] if work.pk in blind else skips[work.batch_id, work.item_id],
            answers=[] if work.pk in blind else answers[work.batch_id, work.item_id],
        )
        for work in found
    ]
