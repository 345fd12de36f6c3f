"""Where requests find slow losses, which only jobs compute: in the table of those that were computed.

A pair that is not there is stored as wanted, and a job (`routing.runs.compute_losses`) computes it.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from annotation.jobs import jobs
from annotation.models import Job, Project
from routing.core.losses.looked_up import Pair, looked_up
from routing.models import ComputedLoss

KIND = "compute_losses"
AT_ONCE = 500
PAUSE = timedelta(minutes=5)
"""From a job that failed for good to the next one that a look at a page begins."""


@contextmanager
def losses_looked_up(project: Callable[[], Project | None]) -> Iterator[None]:
    """Within it no slow loss is computed: it is what was computed of the pair before, for this project."""

    def lookup(name: str, params: str, pairs: Sequence[Pair]) -> dict[Pair, float | None]:
        asked = project()
        return {} if asked is None else _found(asked, name, params, pairs)

    with looked_up(lookup):
        yield


def _found(project: Project, name: str, params: str, pairs: Sequence[Pair]) -> dict[Pair, float | None]:
    found: dict[Pair, float | None] = {}
    wanted: list[ComputedLoss] = []
    for start in range(0, len(pairs), AT_ONCE):
        keys = {_key(name, params, pair): pair for pair in pairs[start : start + AT_ONCE]}
        rows = project.computed_losses.filter(pair__in=list(keys), computed_at__isnull=False)
        known = dict(rows.values_list("pair", "value"))
        found |= {keys[key]: value for key, value in known.items()}
        wanted += [
            ComputedLoss(project=project, pair=key, loss=name, params=params, label=pair[0], answer=pair[1])
            for key, pair in keys.items()
            if key not in known
        ]
    if wanted:
        _want(project, wanted)
    return found


def _key(name: str, params: str, pair: Pair) -> str:
    return hashlib.sha256(json.dumps([name, params, *pair]).encode()).hexdigest()


def _want(project: Project, rows: Sequence[ComputedLoss]) -> None:
    # In one order, so that two who want the same ones never wait for each other.
    rows = sorted(rows, key=lambda row: row.pair)
    with transaction.atomic():
        ComputedLoss.objects.bulk_create(rows, batch_size=AT_ONCE, ignore_conflicts=True)
        # Locked, so that no worker begins it before these are committed. One at work may have seen them or
        # not: it is not counted on.
        waiting = project.jobs.select_for_update().filter(kind=KIND, state=Job.State.QUEUED)
        if waiting.values_list("pk", flat=True).first() is None and not _failed_lately(project):
            jobs.enqueue(project=project, kind_name=KIND, params={}, of_closed=True)


def _failed_lately(project: Project) -> bool:
    last = project.jobs.filter(kind=KIND).order_by("-pk").values_list("state", "finished_at").first()
    if last is None or last[0] != Job.State.FAILED:
        return False
    return last[1] is None or last[1] > timezone.now() - PAUSE
