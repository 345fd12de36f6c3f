"""The newest try of a source, as far as it may be seen."""

from dataclasses import dataclass
from decimal import Decimal

from annotation.models import Job
from routing.models import Source, SourceTry
from routing.services.tries import KIND, any_hidden, mean_cost


@dataclass(frozen=True)
class ShownTry:
    """`job` is the newest one, `tried` the newest that is done; None where there is none or, if `hidden`,
    where it must not be seen now because a run has begun with its items.
    """

    job: Job | None
    tried: SourceTry | None
    hidden: bool
    mean_cost: Decimal | None


def newest_try(source: Source) -> ShownTry:
    jobs = Job.objects.filter(project=source.project_id, kind=KIND, unique_key=f"try:{source.pk}")
    tried = source.tries.order_by("-job_id").first()
    hidden = tried is not None and any_hidden([row["item"] for row in tried.rows])
    shown = None if hidden else tried
    return ShownTry(jobs.order_by("-id").first(), shown, hidden, mean_cost(shown) if shown else None)
