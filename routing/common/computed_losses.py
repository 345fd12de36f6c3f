"""Where requests find slow losses, which only jobs compute: in the table of those that were computed.

A pair that is not there is stored as wanted, and a job (`routing.runs.compute_losses`) computes it.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from annotation.jobs import jobs
from annotation.models import Job, Project
from routing.core.losses import LossError, LossUnavailableError, each_loss, make_loss
from routing.core.losses.looked_up import Pair, looked_up
from routing.core.messages import CoreError
from routing.models import ComputedLoss, Run

log = logging.getLogger(__name__)

KIND = "compute_losses"
AT_ONCE = 500
PAUSE = timedelta(minutes=5)
"""From a job that failed for good to the next one that a look at a page begins."""
KEPT, UNASKED = timedelta(days=28), timedelta(days=1)
"""After so long a computed loss goes, and a wanted one that nobody has asked about."""


@contextmanager
def losses_looked_up(project: Callable[[], Project | None]) -> Iterator[None]:
    """Within it no slow loss is computed: it is what was computed of the pair before, for this project."""

    def lookup(name: str, params: str, pairs: Sequence[Pair]) -> dict[Pair, float | None]:
        asked = project()
        return {} if asked is None else _found(asked, name, params, pairs)

    with looked_up(lookup):
        yield


def known_losses(run: Run, pairs: Sequence[Pair]) -> list[float | LossError]:
    """Of each pair its loss by the run's, as far as it is computed; `LossUnavailableError` where it is not,
    or what computes it is not to be had here: no label waits for that, and the job that computes losses says
    it.
    """
    if not pairs:
        return []
    with losses_looked_up(lambda: run.project):
        try:
            loss = make_loss(run.loss, run.loss_params)
        except CoreError as error:
            log.warning("The loss %s of run %s cannot be made.", run.loss, run.pk, exc_info=True)
            return [LossUnavailableError(error.said)] * len(pairs)
        return each_loss(loss, pairs)


def _found(project: Project, name: str, params: str, pairs: Sequence[Pair]) -> dict[Pair, float | None]:
    found: dict[Pair, float | None] = {}
    new: list[ComputedLoss] = []
    wanted: dict[str, datetime] = {}
    for start in range(0, len(pairs), AT_ONCE):
        keys = {key_of_pair(name, params, pair): pair for pair in pairs[start : start + AT_ONCE]}
        rows = project.computed_losses.filter(pair__in=list(keys))
        there = {row[0]: row[1:] for row in rows.values_list("pair", "value", "computed_at", "asked_at")}
        found |= {keys[key]: value for key, (value, computed, _asked) in there.items() if computed}
        wanted |= {key: asked for key, (_value, computed, asked) in there.items() if not computed}
        new += [
            ComputedLoss(project=project, pair=key, loss=name, params=params, label=pair[0], answer=pair[1])
            for key, pair in keys.items()
            if key not in there
        ]
    _still_wanted(project, wanted)
    if new:
        _want(project, new)
    if wanted:
        have_computed(project)
    return found


def key_of_pair(name: str, params: str, pair: Pair) -> str:
    """Of the loss of one pair, whatever project it is in."""
    return hashlib.sha256(json.dumps([name, params, *pair]).encode()).hexdigest()


def _still_wanted(project: Project, wanted: Mapping[str, datetime]) -> None:
    """Now and then only: looking at a page is to write nothing."""
    now = timezone.now()
    old = sorted(key for key, asked in wanted.items() if asked < now - UNASKED / 2)
    for start in range(0, len(old), AT_ONCE):
        rows = project.computed_losses.filter(pair__in=old[start : start + AT_ONCE]).order_by("pair")
        with transaction.atomic():
            # Nobody is waited for, who might wait for this one: who has a row locked says that it is wanted.
            free = rows.select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True)
            ComputedLoss.objects.filter(pk__in=list(free)).update(asked_at=now)


def _want(project: Project, rows: Sequence[ComputedLoss]) -> None:
    # All in one order, so that two who want the same ones never wait for each other.
    rows = sorted(rows, key=lambda row: row.pair)
    with transaction.atomic():
        ComputedLoss.objects.bulk_create(rows, batch_size=AT_ONCE, ignore_conflicts=True)
        have_computed(project, soon=True)


def have_computed(project: Project, *, soon: bool = False) -> None:
    """See to it that a job computes what is wanted, unless one has failed just now. For what this transaction
    stores (`soon`) neither that counts nor a job that has begun, which may have seen it or not.
    """
    mine = project.jobs.filter(kind=KIND)
    if soon:
        # Locked, so that no worker begins it before this is committed. Where somebody else has it locked
        # there will be two: whoever waited for them might be waited for.
        waiting = mine.select_for_update(skip_locked=True).filter(state=Job.State.QUEUED)
        under_way = waiting.values_list("pk", flat=True).first() is not None
    else:
        under_way = mine.filter(state__in=jobs.UNFINISHED).exists() or _failed_lately(project)
    if not under_way:
        jobs.enqueue(project=project, kind_name=KIND, params={}, of_closed=True)


def _failed_lately(project: Project) -> bool:
    last = project.jobs.filter(kind=KIND).order_by("-pk").values_list("state", "finished_at").first()
    if last is None or last[0] != Job.State.FAILED:
        return False
    return last[1] is None or last[1] > timezone.now() - PAUSE


def forget_losses(*, most: int) -> bool:
    """Remove losses that were computed so long ago, and those that nobody has wanted for a while, `most` of
    each: whoever needs one again has it computed again. Returns whether there may be more.
    """
    now = timezone.now()
    old = ComputedLoss.objects.filter(computed_at__lt=now - KEPT).order_by("computed_at")
    unasked = ComputedLoss.objects.filter(computed_at__isnull=True, asked_at__lt=now - UNASKED)
    removed = [_removed(rows, most) for rows in (old, unasked.order_by("asked_at"))]
    return most in removed


def _removed(rows: QuerySet[ComputedLoss], most: int) -> int:
    ids = list(rows.values_list("pk", flat=True)[:most])
    if ids:
        ComputedLoss.objects.filter(pk__in=ids).delete()
    return len(ids)
