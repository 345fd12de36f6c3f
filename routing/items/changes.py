"""Changes to many items at once: chosen ones, or all that a filter finds.

Each is a job that goes through the items in the order of their keys, chunk by chunk, and asks again before
each chunk what the person may see and do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy, gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.errors import ConflictError, InputError, JobFailedError, NotAllowedError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.labelling import queue
from annotation.labelling.comments import add_comment, resolve_flag
from annotation.labelling.validation import check_comment
from annotation.models import Comment, Item, Job, Project, User, WorkBatch, WorkItem
from annotation.permissions import Access, access_to
from routing.core import sampling
from routing.items.filters import filtered
from routing.labels.conditions import by_person
from routing.runs.covered_items import covered_items
from routing.visibility import ViewPermission, view_permission

CHANGE_KIND, UNDO = "change_items", "undo_change_items"
CHUNK = 500
# So many chosen items are done with at once, while the person waits.
AT_ONCE = 200
ASKED_PRIORITY = 20


@dataclass
class Outcome:
    """How far a change is: items done, the last one, and what an undo has to know."""

    items: int = 0
    last: int = 0
    comments: list[int] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Change:
    """`concerns` narrows items down to those on which it has an effect; `make` makes it on a chunk of them.

    `needs` is the action of annotation.permissions; `takes_text`: "" (no text), "optional" or
    "required".
    """

    name: str
    title: Promise
    needs: str
    concerns: Callable[[ViewPermission, QuerySet[Item]], QuerySet[Item]]
    make: Callable[[ViewPermission, User, Sequence[Item], str, Outcome], None]
    takes_text: str = ""
    can_be_undone: bool = False
    needs_routed: bool = False


def allowed_changes(change: Change, access: Access, permission: ViewPermission) -> bool:
    return access.allows(change.needs) and (permission.delivers or not change.needs_routed)


def chosen_items(
    permission: ViewPermission, *, filters: Mapping[str, str], item_ids: Sequence[int] | None
) -> QuerySet[Item]:
    """These items of the project, or all that the filters find."""
    if item_ids is not None:
        return permission.project.items.filter(pk__in=item_ids).order_by()
    return filtered(permission, filters)


def change_items(
    *,
    access: Access,
    change_name: str,
    filters: Mapping[str, str],
    item_ids: Sequence[int] | None = None,
    run: int | None = None,
    text: str = "",
) -> Job:
    """Make a change to items (job "change_items"): to `item_ids`, else to all that `filters` find.

    A few chosen ones are done before this returns. Raises InputError for an unknown change, a filter that may
    not be used or a text that is missing, NotAllowedError where the person may not, and ConflictError where
    there is nothing to do, or no run whose labels are delivered and the change needs one, or where people are
    being asked for other items at this moment.
    """
    change = CHANGES.get(change_name)
    if change is None:
        raise InputError(_("Choose what to do with the items."), where="change")
    permission = view_permission(access.project, access, run=run)
    _may(change, access, permission)
    text = check_comment(text.strip())
    if change.takes_text == "required" and not text:
        raise InputError(_("Write something."), where="text")
    total = change.concerns(permission, chosen_items(permission, filters=filters, item_ids=item_ids)).count()
    if not total:
        raise ConflictError(_("None of these items can be changed in that way."), code="no_item_changes")
    job = jobs.enqueue(
        project=access.project,
        kind_name=CHANGE_KIND,
        params={
            "change": change.name,
            "filters": dict(filters),
            "items": None if item_ids is None else list(item_ids),
            "shown_run": run,
            "text": text if change.takes_text else "",
        },
        # Two that ask people at the same time would ask twice about the same items.
        unique_key=f"{CHANGE_KIND}:{change.name}" if change.needs_routed else "",
        user=access.user,
        total=total,
    )
    if item_ids is not None and len(item_ids) <= AT_ONCE:
        jobs.run(job.pk)
        job.refresh_from_db()
    return job


def undo_change(*, access: Access, job: Job) -> Job:
    """Take back what a change did (job "undo_change_items"): flags are resolved, and people are no longer
    asked for what they have not labelled yet. Raises ConflictError where it cannot be taken back.
    """
    change = CHANGES.get(job.params.get("change", "")) if job.kind == CHANGE_KIND else None
    if change is None or not change.can_be_undone or job.state in jobs.UNFINISHED:
        raise ConflictError(_("This cannot be taken back."), code="cannot_take_back")
    if not access.allows(change.needs):
        raise NOT_ALLOWED.error(raised_as=NotAllowedError)
    done = Outcome(**job.result)
    undo = jobs.enqueue(
        project=job.project,
        kind_name=UNDO,
        params={"job": job.pk},
        unique_key=f"{UNDO}:{job.pk}",
        user=access.user,
        total=done.items,
    )
    if done.items <= AT_ONCE:
        jobs.run(undo.pk)
        undo.refresh_from_db()
    return undo


# --- The jobs -----------------------------------------------------------------------------------------------


def run_change(context: JobContext) -> dict[str, Any]:
    """Handler of "change_items"."""
    params, job = context.params, context.job
    change = CHANGES[params["change"]]
    outcome = Outcome(**job.result)
    while True:
        permission, actor = _again(job, change)
        items = chosen_items(permission, filters=params["filters"], item_ids=params["items"])
        page = list(change.concerns(permission, items).filter(pk__gt=outcome.last).order_by("pk")[:CHUNK])
        with context.chunk(done=outcome.items + len(page)):
            if not page:
                audit.record(
                    project=job.project,
                    actor=actor,
                    action="items.changed",
                    target=f"job:{job.pk}",
                    data={"change": change.name, "items": outcome.items},
                )
                break
            change.make(permission, actor, page, params["text"], outcome)
            outcome.items += len(page)
            outcome.last = page[-1].pk
            Job.objects.filter(pk=job.pk).update(result=asdict(outcome))
    return asdict(outcome)


def run_undo(context: JobContext) -> dict[str, Any]:
    """Handler of "undo_change_items"."""
    made = Job.objects.get(pk=context.params["job"], project=context.job.project_id)
    _permission, actor = _again(context.job, CHANGES[made.params["change"]])
    outcome = Outcome(**made.result)
    for batch in WorkBatch.objects.filter(pk__in=outcome.batches, project=made.project_id):
        with context.chunk():
            queue.withdraw_batch(batch=batch)
    done = 0
    if outcome.comments:
        first, last = outcome.comments
        flags = Comment.objects.filter(
            pk__gte=first,
            pk__lte=last,
            item__project=made.project_id,
            author=made.created_by,
            text=made.params["text"],
            is_flag=True,
            work_item__isnull=True,
            resolved_at__isnull=True,
            created_at__gte=made.created_at,
        )
        while page := list(flags.select_related("item__project").order_by("pk")[:CHUNK]):
            with context.chunk(done=done + len(page)):
                for comment in page:
                    resolve_flag(comment=comment, actor=actor)
            done += len(page)
    with context.chunk(done=outcome.items):
        audit.record(
            project=made.project,
            actor=actor,
            action="items.change_undone",
            target=f"job:{made.pk}",
            data={"change": made.params["change"]},
        )
    return {"job": made.pk}


ASKER_GONE = failures.register(
    "asker_gone", gettext_noop("Whoever asked for this is no longer in the project.")
)
NOT_ALLOWED = failures.register("not_allowed", gettext_noop("You may not do that in this project."))
NOT_ROUTED = failures.register(
    "run_not_routed",
    gettext_noop(
        "People can be asked for chosen items once a run has been routed, and while no other one is open."
    ),
)


def _again(job: Job, change: Change) -> tuple[ViewPermission, User]:
    """What the person who asked for the job may see now. Raises JobFailedError where they may no longer."""
    access = access_to(job.created_by, job.project.slug) if job.created_by else None
    if access is None:
        raise ASKER_GONE.error()
    permission = view_permission(job.project, access, run=job.params.get("shown_run"))
    try:
        _may(change, access, permission)
    except (ConflictError, NotAllowedError) as error:
        raise JobFailedError.of(error) from error
    return permission, access.user


def _may(change: Change, access: Access, permission: ViewPermission) -> None:
    if not access.allows(change.needs):
        raise NOT_ALLOWED.error(raised_as=NotAllowedError)
    if not allowed_changes(change, access, permission):
        raise NOT_ROUTED.error(raised_as=ConflictError)


# --- The changes --------------------------------------------------------------------------------------------


def _all(_permission: ViewPermission, items: QuerySet[Item]) -> QuerySet[Item]:
    return items


def _flagged(permission: ViewPermission, items: QuerySet[Item]) -> QuerySet[Item]:
    return items.filter(Exists(_flags(permission).filter(item=OuterRef("pk"))))


def _flags(permission: ViewPermission) -> QuerySet[Comment]:
    return permission.comments().filter(is_flag=True, resolved_at__isnull=True)


def _stuck(permission: ViewPermission, items: QuerySet[Item]) -> QuerySet[Item]:
    return items.filter(pk__in=permission.stuck().order_by().values("item"))


def _labelled_by_models(permission: ViewPermission, items: QuerySet[Item]) -> QuerySet[Item]:
    """Items of the delivered run without a label by a person, which nobody is asked about either; none where
    one person's label is not right by definition.
    """
    if permission.run is None or permission.run.reference != permission.run.Reference.PERSON:
        return items.none()  # whoever is free is not who is right
    # Of what is audited nobody may see that it is asked about: such an item may be put to people, too.
    asked = permission.work().filter(
        item=OuterRef("pk"), state__in=WorkItem.UNFINISHED, batch__withdrawn_at__isnull=True
    )
    pool = covered_items(permission.run).filter(item=OuterRef("pk"))
    there = Q(erased_at__isnull=True)
    return items.filter(there & ~by_person(permission) & ~Q(Exists(asked)) & Q(Exists(pool)))


def _comment(
    _permission: ViewPermission, actor: User, items: Sequence[Item], text: str, outcome: Outcome
) -> None:
    for item in items:
        add_comment(item=item, author=actor, text=text)


def _flag(
    _permission: ViewPermission, actor: User, items: Sequence[Item], text: str, outcome: Outcome
) -> None:
    for item in items:
        made = add_comment(item=item, author=actor, text=text, is_flag=True)
        first, last = outcome.comments or (made.pk, made.pk)
        outcome.comments = [min(first, made.pk), max(last, made.pk)]


def _resolve(
    permission: ViewPermission, actor: User, items: Sequence[Item], _text: str, outcome: Outcome
) -> None:
    for comment in _flags(permission).filter(item__in=items).select_related("item__project"):
        resolve_flag(comment=comment, actor=actor)


def _ask_again(
    permission: ViewPermission, actor: User, items: Sequence[Item], _text: str, outcome: Outcome
) -> None:
    for work_item in permission.stuck().filter(item__in=items).select_related("batch__project"):
        queue.ask_again(work_item=work_item, actor=actor)


def _give_up(
    permission: ViewPermission, actor: User, items: Sequence[Item], _text: str, outcome: Outcome
) -> None:
    for work_item in permission.stuck().filter(item__in=items).select_related("batch__project"):
        queue.give_up(work_item=work_item, actor=actor)


def _ask_people(
    permission: ViewPermission, actor: User, items: Sequence[Item], _text: str, outcome: Outcome
) -> None:
    """Labels of record in place of the models'. With the reference `person` such a label counts as right in
    every loss, so that the error of the delivered data set, as the run's target defines it, can
    only fall: the certificate stays true.
    """
    batch = queue.create_batch(
        project=permission.project,
        item_ids=[item.pk for item in items],
        blind=False,
        priority=ASKED_PRIORITY,
        entropy=sampling.new_entropy(),
    )
    outcome.batches.append(batch.pk)


CHANGES: dict[str, Change] = {
    change.name: change
    for change in (
        Change(
            "flag",
            gettext_lazy("Flag for a reviewer"),
            "review",
            _all,
            _flag,
            takes_text="optional",
            can_be_undone=True,
        ),
        Change("comment", gettext_lazy("Add a comment"), "review", _all, _comment, takes_text="required"),
        Change("resolve", gettext_lazy("Say that the flags are seen to"), "review", _flagged, _resolve),
        Change(
            "ask_again", gettext_lazy("Ask everybody again who skipped"), "work.decide", _stuck, _ask_again
        ),
        Change("give_up", gettext_lazy("Decide that nobody can label them"), "work.decide", _stuck, _give_up),
        Change(
            "ask_people",
            gettext_lazy("Ask people in place of the models"),
            "runs.edit",
            _labelled_by_models,
            _ask_people,
            can_be_undone=True,
            needs_routed=True,
        ),
    )
}


def change_of(project: Project, job_id: int) -> Job | None:
    """A change of the project's items."""
    return project.jobs.filter(pk=job_id, kind=CHANGE_KIND).select_related("created_by").first()
