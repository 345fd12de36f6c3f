"""Whether the labels of a complete run have been given out."""

from django.db.models import QuerySet

from annotation.labelling.labels_of_record import has_record
from annotation.models import Job
from routing.common.states import ROUTED, State
from routing.models import Route, Run


def is_delivered(run: Run) -> bool:
    """Whether a delivery was made since the run is complete. What filters found counts as none."""
    since = {"created_at__gte": run.completed_at} if run.completed_at else {}
    made = set(run.deliveries.filter(filters={}, **since).values_list("pk", flat=True))
    return bool(made - _begun_before(run, made)) if made else False


def is_overtaken(run: Run) -> bool:
    """Whether the run is complete, and what was delivered of it does not have all labels."""
    return run.state == State.COMPLETE and run.deliveries.exists() and not is_delivered(run)


def run_with_model_labels(run: Run) -> Run | None:
    """Of a run by people the newest other one with models, where these label items that its deliveries leave
    blank; deliveries of that one have the labels by people of both.
    """
    if not run.by_people:
        return None
    other = Run.objects.filter(project=run.project_id, by_people=False, state__in=ROUTED).last()
    return other if other is not None and _of_models_alone(other).exists() else None


def left_to_models(run: Run) -> int:
    """How many items no person has labelled that models label in this run: deliveries of others leave them
    blank.
    """
    return _of_models_alone(run).count()


def _of_models_alone(run: Run) -> QuerySet[Route]:
    to_models = run.routes.filter(position__lte=run.run_sources.count())
    return to_models.exclude(has_record(run.project, item="item"))


def _begun_before(run: Run, deliveries: set[int]) -> set[int]:
    """Those that were begun while people labelled, and ended after that."""
    jobs = Job.objects.filter(project=run.project_id, kind="deliver_run", result__partial=True)
    jobs = jobs.filter(result__delivery__in=list(deliveries))
    return {result["delivery"] for result in jobs.values_list("result", flat=True)}
