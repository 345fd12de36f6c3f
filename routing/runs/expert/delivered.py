"""What is delivered of an item of a run with an expert, beside the label that was given last."""

from collections.abc import Collection, Mapping, Sequence

from django.db.models import Exists, OuterRef, Q

from annotation.common.ranges import of_items
from annotation.models import Project, WorkItem
from routing.core.reference.sources import PERSON
from routing.models import ExpertRequest, Route, Run

State = WorkItem.State


def labelled_by_expert(run: Run, item: str = "item") -> Exists:
    """Whether the expert labelled the item in this run, for rows that name it by `item`."""
    return _labelled_in(run.expert_batches, item)


def labelled_by_experts(project: Project, *, item: str) -> Exists:
    """The same of any run of the project."""
    return _labelled_in(batches_of_experts(project), item)


def batches_of_experts(project: Project) -> list[int]:
    runs = project.runs.filter(reference=Run.Reference.EXPERT).only("expert_batch", "expert_routed_batch")
    return [batch for run in runs for batch in run.expert_batches]


def _labelled_in(batches: Sequence[int], item: str) -> Exists:
    return Exists(WorkItem.objects.filter(batch__in=batches, state=State.DONE, item=OuterRef(item)))


def reasons_of(run: Run, ids: Sequence[int]) -> list[str | None]:
    """Why the expert was asked about each item; `UNDECIDED` where that is not decided, None where she was
    not.
    """
    if not run.by_expert:
        return [None] * len(ids)
    found = dict(run.expert_requests.filter(of_items("item", ids)).values_list("item_id", "why"))
    return list(map(found.get, ids))


def not_delivered(run: Run, records: Collection[int], routes: Mapping[int, int]) -> set[int]:
    """Items with a label by an annotator that is not delivered: what waits for the expert, but for an audit,
    or may still have to; what she could not label, unless the policy leaves it to the annotator; and what it
    leaves to a model whose answer may be another one.
    """
    if not run.by_expert or not records:
        return set()
    ids = list(records)
    why = dict(run.expert_requests.filter(of_items("item", ids)).values_list("item_id", "why"))
    states = _states(run, ids)
    people = run.run_sources.count() + PERSON + 1
    found = {
        item
        for item, reason in why.items()
        if item in records and states.get(item) != State.DONE and not _stays(reason, routes.get(item), people)
    }
    if not run.sorts_labels:
        found |= {item for item in records if item not in why and routes.get(item, people) < people}
    return found


def undelivered(run: Run, item: str) -> Q:
    """The same as a condition on rows that name their item by `item`."""
    if not run.by_expert:
        return Q(pk__in=[])
    people = run.run_sources.count() + PERSON + 1
    stays = Route.objects.filter(run=run, position=people, item=OuterRef("item"))
    asked = Q(why__in=(ExpertRequest.Why.ASKED, ExpertRequest.Why.RECHECK))
    waiting = ExpertRequest.objects.filter(~labelled_by_expert(run), run=run, item=OuterRef(item))
    waiting = waiting.exclude(why__in=ExpertRequest.LOOKS).exclude(asked & Q(Exists(stays)))
    condition = Q(Exists(waiting))
    if not run.sorts_labels:
        seen = ExpertRequest.objects.filter(run=run, item=OuterRef(item))
        of_models = Route.objects.filter(run=run, position__lt=people, item=OuterRef(item))
        condition |= Q(Exists(of_models)) & ~Q(Exists(seen))
    return condition


def _stays(reason: str, position: int | None, people: int) -> bool:
    """Whether the annotator's label is delivered although the expert has not labelled the item."""
    if reason in ExpertRequest.LOOKS:
        return True
    return reason in (ExpertRequest.Why.ASKED, ExpertRequest.Why.RECHECK) and position == people


def _states(run: Run, ids: Sequence[int]) -> dict[int, str]:
    work = WorkItem.objects.filter(of_items("item", ids), batch__in=run.expert_batches)
    return dict(work.order_by("pk").values_list("item_id", "state"))
