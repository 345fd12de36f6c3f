"""Deliveries: the labelled data of a run as files, with the certificate and all that is needed to recompute
it.
"""

import io
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any

from django.db.models import Max
from django.utils.translation import gettext as _

from annotation import jobs
from annotation.errors import ConflictError, InputError
from annotation.jobs import JobContext
from annotation.models import Job, Project, StoredFile, User
from annotation.services import audit
from annotation.services.files import Content, name_content, put_content
from routing.delivery import DEFAULT_FORMATS, FORMATS
from routing.delivery.card import Counts, card
from routing.delivery.rows import delivered_pages
from routing.models import Delivery, DeliveryFile, Run
from routing.services.states import ROUTED

IN_MEMORY = 8 * 1024**2


def deliver(*, run: Run, user: User | None, formats: Sequence[str] = DEFAULT_FORMATS) -> Job:
    """Write the files of a delivery (job "deliver_run"), in these formats of `routing.delivery.FORMATS`.

    While people still label, the delivery is partial: what has no label yet is a blank row that says so.
    Raises ConflictError before the run is routed, InputError where no format is named or one is unknown.
    """
    chosen = [name for name in FORMATS if name in formats]
    if not chosen or len(chosen) < len(set(formats)):
        raise InputError(
            _("Choose at least one of these formats: %(formats)s.") % {"formats": ", ".join(FORMATS)},
            where="formats",
        )
    run.refresh_from_db()
    if run.state not in ROUTED:
        raise ConflictError(
            _("Run %(run)s has nothing to deliver yet (%(state)s): it has to be routed first.")
            % {"run": run.number, "state": run.get_state_display().lower()}
        )
    return jobs.enqueue(
        project=run.project,
        kind_name="deliver_run",
        params={"run": run.pk, "formats": chosen},
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
        context.progress(stage="Files")
        stored = [(file, put_content(project=run.project, content=file.content)) for file in made.files]
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
            DeliveryFile(delivery=delivery, name=file.name, file=_named(run, file, content))
            for file, content in stored
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
class _File:
    name: str
    content: IO[bytes]
    media_type: str


@dataclass(frozen=True)
class _Made:
    counts: Counts
    files: list[_File]


def _write(context: JobContext, run: Run, stack: ExitStack) -> _Made:
    formats = [FORMATS[name] for name in context.params.get("formats", DEFAULT_FORMATS)]
    # Temporary files have no name that a killed worker could leave behind.
    outs = [stack.enter_context(_temporary()) for _ in formats]
    several = run.project.task_type == Project.TaskType.MULTIPLE_CHOICE
    writers = [
        writer(out, run.project.columns, several=several) for writer, out in zip(formats, outs, strict=True)
    ]
    counts = Counts()
    with delivered_pages(run) as (then, pages):
        for page in pages:
            for writer in writers:
                writer.write(page)
            counts.add(page)
            context.progress(done=counts.rows, stage="Rows")
    for writer in writers:
        writer.close()
    names = [writer.file_name for writer in writers]
    return _Made(
        counts,
        [
            *(_File(w.file_name, out, w.media_type) for w, out in zip(writers, outs, strict=True)),
            _small("certificate.json", then.certificate.document, "application/json"),
            _small("draw.jsonl", then.certificate.draw_lines, "application/x-ndjson"),
            _small("README.md", card(then, counts, names), "text/markdown"),
        ],
    )


def _small(name: str, text: str, media_type: str) -> _File:
    return _File(name, io.BytesIO(text.encode()), media_type)


def _temporary() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)


def _named(run: Run, file: _File, content: Content) -> StoredFile:
    return name_content(
        project=run.project,
        content=content,
        original_name=f"{run.project.slug}-run{run.number}-{file.name}",
        media_type=file.media_type,
    )
