"""The job "compute_losses": losses that requests want and may not compute, as they may be slow.

Which are wanted stands in the table `ComputedLoss`. When none is left, it goes on with what waits for them:
the expert's second looks, audits, and the end of a run.
"""

import json
import time
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Length, Now
from django.utils.translation import gettext_noop

from annotation.jobs.context import JobContext
from annotation.models import Project
from annotation.words import Words
from routing.common.states import ROUTED
from routing.core.losses import Loss, LossError, LossUnavailableError, each_loss, losses_of, make_loss
from routing.core.losses.base import BatchLoss
from routing.core.losses.looked_up import Pair, looked_up
from routing.core.messages import CoreError
from routing.models import ComputedLoss, Run
from routing.runs.chains import no_losses
from routing.runs.complete import complete_if_done
from routing.runs.expert.audit import check_for_alarm
from routing.runs.expert.requests import decide
from routing.runs.later.audit import check_for_drift

AT_ONCE, SIGNS = 200, 5_000_000
"""Pairs that are read together, and the length of their texts: a mask alone has up to 500,000 signs."""
STORE_SECONDS = 5.0
"""What was computed is stored after so long: an attempt that is broken off begins there again."""


def compute_losses(context: JobContext) -> dict[str, Any]:
    """Raises JobFailedError, which may do better later where what computes a loss failed: once all others are
    computed, so that one loss that cannot be had keeps nothing else back.
    """
    wanted = context.job.project.computed_losses.filter(computed_at__isnull=True)
    done, failed = 0, list[CoreError]()
    for name, params in sorted(wanted.order_by().values_list("loss", "params").distinct()):
        try:
            with looked_up(None):  # here they are computed, from wherever the job was started
                loss = make_loss(name, json.loads(params))
            for rows in _wanted(wanted.filter(loss=name, params=params)):
                for stored in _parts(context, _values(loss, rows)):
                    done += len(stored)
                    with context.chunk(done=done, stage=Words(gettext_noop("Losses"))):
                        _store(stored)
        except CoreError as error:
            failed.append(error)
    for run in _routed_runs(context.job.project):
        try:
            _go_on(context, run)
        except CoreError as error:
            failed.append(error)
    if failed:
        # One that may help itself is tried again, whatever else failed.
        failed.sort(key=lambda error: not isinstance(error, LossUnavailableError))
        raise no_losses(failed[0]) from failed[0]
    return {"computed": done}


def _wanted(rows: QuerySet[ComputedLoss]) -> Iterator[list[ComputedLoss]]:
    """So many together that their texts are not too long, in the order of their keys."""
    behind = 0
    sizes = rows.order_by("pk").annotate(size=Length("label") + Length("answer")).values_list("pk", "size")
    while found := list(sizes.filter(pk__gt=behind)[:AT_ONCE]):
        long = list(accumulate(size for _pk, size in found))
        together = [pk for (pk, _size), so_far in zip(found, long, strict=True) if so_far <= SIGNS]
        behind = together[-1] if together else found[0][0]
        yield list(rows.filter(pk__in=together or [behind]).order_by("pk"))


def _store(rows: Sequence[ComputedLoss]) -> None:
    """The texts are needed no more."""
    stored = ComputedLoss.objects.filter(pk__in=[row.pk for row in rows])
    stored.update(label="", answer="", computed_at=Now())
    ComputedLoss.objects.bulk_update([row for row in rows if row.value is not None], ["value"])


def _parts(context: JobContext, rows: Iterator[ComputedLoss]) -> Iterator[list[ComputedLoss]]:
    """What was computed, as it is to be stored together."""
    part: list[ComputedLoss] = []
    since = time.monotonic()
    for row in rows:
        part.append(row)
        if time.monotonic() - since > STORE_SECONDS or context.pausing:
            yield part
            context.stop_if_asked()
            part, since = [], time.monotonic()
    if part:
        yield part


def _values(loss: Loss, rows: Sequence[ComputedLoss]) -> Iterator[ComputedLoss]:
    """The rows as they are to be stored, one after the other."""
    for row, found in zip(rows, computed(loss, [(row.label, row.answer) for row in rows]), strict=True):
        row.value = None if isinstance(found, LossError) else found
        yield row


def computed(loss: Loss, pairs: Sequence[Pair]) -> Iterator[float | LossError]:
    """Of each pair its loss, or why it has none; as they are computed. Raises LossUnavailableError."""
    if isinstance(loss, BatchLoss):
        try:
            yield from losses_of(
                loss, [label for label, _ in pairs], [answer for _, answer in pairs]
            ).tolist()
            return
        except LossUnavailableError:
            raise
        except LossError:
            pass  # of one of them at least: each is asked about
    for pair in pairs:
        (found,) = each_loss(loss, [pair])
        if isinstance(found, LossUnavailableError):
            raise found
        yield found


def _routed_runs(project: Project) -> list[Run]:
    if project.archived_at is not None:
        return []  # it is looked at alone
    return list(project.runs.filter(state__in=ROUTED, routed_at__isnull=False).order_by("number"))


def _go_on(context: JobContext, run: Run) -> None:
    """Do what waited for losses. What is not computed yet wants another job. Raises CoreError where the run
    is not complete and its loss cannot be made: nothing that waits goes on.
    """
    if run.state == Run.State.LABELLING and (run.by_expert or run.later_audit_share):
        make_loss(run.loss, run.loss_params)
    if run.by_expert:
        behind: int | None = 0
        while behind is not None:
            with context.chunk():
                behind = decide(run, behind=behind)
    with context.chunk():
        if run.by_expert and run.audit_share:
            check_for_alarm(run)
        elif run.later_audit_share:
            check_for_drift(run)
        if run.state == Run.State.LABELLING:
            complete_if_done(run)
