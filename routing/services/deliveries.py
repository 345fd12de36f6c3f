"""Deliveries: the labelled data of a run as files, with the certificate and all that is needed to recompute
it.
"""

import io
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any

from django.db.models import Max
from django.utils.translation import gettext as _

from annotation import jobs
from annotation.errors import ConflictError
from annotation.jobs import JobContext
from annotation.models import Job, StoredFile, User
from annotation.services import audit
from annotation.services.files import store_file
from routing.delivery import FORMATS
from routing.delivery.card import Counts, card
from routing.delivery.rows import delivered_rows
from routing.models import Delivery, DeliveryFile, Run
from routing.services.states import ROUTED

PROGRESS_EVERY = 2_000
IN_MEMORY = 8 * 1024**2


def deliver(*, run: Run, user: User | None) -> Job:
    """Write the files of a delivery (job "deliver_run"). Raises ConflictError before the run is routed.

    While people still label, the delivery is partial: what has no label yet is a blank row that says so.
    """
    run.refresh_from_db()
    if run.state not in ROUTED:
        raise ConflictError(
            _("Run %(run)s has nothing to deliver yet (%(state)s): it has to be routed first.")
            % {"run": run.number, "state": run.get_state_display().lower()}
        )
    return jobs.enqueue(
        project=run.project,
        kind_name="deliver_run",
        params={"run": run.pk},
        unique_key=f"deliver_run:{run.pk}",
        user=user,
        total=run.project.items.count(),
    )


def deliver_run(context: JobContext) -> dict[str, Any]:
    """Write to temporary files first and to the storage then; the rows that name the files come last, all at
    once.
    """
    run = Run.objects.select_related("project", "certificate").get(pk=context.params["run"])
    if run.state not in ROUTED:
        raise ConflictError(_("Run %(run)s was cancelled.") % {"run": run.number})
    if context.job.result:  # written by a worker that died before it could say so
        return dict(context.job.result)
    with ExitStack() as stack:
        made = _write(context, run, stack)
        stored = [(name, _store(run, name, out, media_type)) for name, out, media_type in made.files]
    with context.chunk(done=made.counts.rows):
        last = Delivery.objects.filter(run=run).aggregate(last=Max("number"))["last"] or 0
        delivery = Delivery.objects.create(
            run=run,
            number=last + 1,
            rows=made.counts.rows,
            blanks=made.counts.blanks,
            created_by=context.job.created_by,
        )
        DeliveryFile.objects.bulk_create(
            DeliveryFile(delivery=delivery, name=name, file=file) for name, file in stored
        )
        audit.record(
            project=run.project,
            actor=context.job.created_by,
            action="run.delivered",
            target=f"run:{run.number}",
            data={"delivery": delivery.number, "rows": delivery.rows, "blanks": delivery.blanks},
        )
        result = {
            "delivery": delivery.pk,
            "rows": delivery.rows,
            "blanks": delivery.blanks,
            "by_reason": dict(made.counts.by_reason),
            "by_source": dict(made.counts.by_source),
            "partial": run.state != Run.State.COMPLETE,
        }
        Job.objects.filter(pk=context.job.pk).update(result=result)
    return result


@dataclass(frozen=True)
class _Made:
    counts: Counts
    files: list[tuple[str, IO[bytes], str]]


def _write(context: JobContext, run: Run, stack: ExitStack) -> _Made:
    outs = {name: stack.enter_context(_temporary()) for name in FORMATS}
    writers = [FORMATS[name](out, run.project.columns) for name, out in outs.items()]
    counts = Counts()
    for original, row in delivered_rows(run):
        for writer in writers:
            writer.write(original, row)
        counts.add(row)
        if counts.rows % PROGRESS_EVERY == 0:
            context.progress(done=counts.rows, stage="Rows")
    for writer in writers:
        writer.close()
    certificate = run.certificate
    text = "text/markdown"
    return _Made(
        counts,
        [
            *((FORMATS[name].file_name, out, FORMATS[name].media_type) for name, out in outs.items()),
            ("certificate.json", io.BytesIO(certificate.document.encode()), "application/json"),
            ("draw.jsonl", io.BytesIO(certificate.draw_lines.encode()), "application/x-ndjson"),
            ("README.md", io.BytesIO(card(run, counts).encode()), text),
        ],
    )


def _temporary() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)


def _store(run: Run, name: str, out: IO[bytes], media_type: str) -> StoredFile:
    return store_file(
        project=run.project,
        content=out,
        original_name=f"{run.project.slug}-run{run.number}-{name}",
        media_type=media_type,
    )
