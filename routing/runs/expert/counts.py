"""What the routing of a run with an expert came to: who labels how many items."""

from typing import Any

from django.db.models import Count, Exists, OuterRef, Q

from annotation.models import WorkItem
from routing.core.reference.sources import PERSON
from routing.models import ExpertRequest, PoolItem, Route, Run, RunSource
from routing.runs.expert.delivered import labelled_by_expert, undelivered
from routing.runs.own_record import has_own_record
from routing.runs.usable_answers import has_usable_answer, passed_on, reaches


def tally_with_expert(run: Run, run_sources: list[RunSource]) -> dict[str, Any]:
    """JSON: how many items are `sent` to each source by the policy, the K models, person, person with the
    dearest model, and the expert; how many `answers` each model gives, before labels are put in their place.
    The paper's `saving` is None: second looks come while people label.
    """
    routes = Route.objects.filter(run=run)
    sent = dict(routes.values_list("position").annotate(count=Count("pk")).order_by())
    answers = [
        sum(
            routes.filter(
                passed_on(run_sources, start, run_source.position), has_usable_answer(run_source)
            ).count()
            for start in range(1, run_source.position + 1)
            if sent.get(start)
        )
        for run_source in run_sources
    ]
    return {
        "sent": [sent.get(position, 0) for position in range(1, len(run_sources) + 4)],
        "answers": answers,
        "saving": None,
    }


def counts_of_people(run: Run) -> tuple[int, int]:
    """Items of the pool with a label by an annotator alone, and by the expert."""
    labelled = PoolItem.objects.filter(has_own_record(run, item="item"), ~undelivered(run, "item"), run=run)
    expert = labelled.filter(labelled_by_expert(run)).count()
    return labelled.count() - expert, expert


def count_blank(run: Run, run_sources: list[RunSource]) -> int:
    """Items of the pool that stay without a label: those that the expert was to label and could not, unless
    a model's or an annotator's label is delivered all the same.
    """
    of_item = WorkItem.objects.filter(item=OuterRef("item"))
    given_up = of_item.filter(batch__in=run.expert_batches, state=WorkItem.State.UNLABELABLE)
    annotated = of_item.filter(batch=run.calibration_batch_id, state=WorkItem.State.DONE)
    requests = ExpertRequest.objects.filter(run=run, item=OuterRef("item"))
    asked = requests.filter(why__in=(ExpertRequest.Why.ASKED, ExpertRequest.Why.RECHECK))
    blank = Q(Exists(given_up)) & ~Q(Exists(requests.filter(why__in=ExpertRequest.LOOKS)))
    models = len(run_sources)
    by_model = Q(position__lte=models) & ~reaches(run_sources, models + 1)
    by_annotator = Q(position=models + PERSON + 1) & Q(Exists(annotated))
    delivered = Q(Exists(asked)) & (by_model | by_annotator)
    return Route.objects.filter(blank, run=run).exclude(delivered).count()
