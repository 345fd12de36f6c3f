"""Deliveries: the labelled data of a run as files, with the certificate and all that is needed to recompute
it.
"""

import io
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any

from django.db.models import Max
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common import audit
from annotation.common.files import MODEL_OUTPUT, Content, name_content, put_content
from annotation.errors import ConflictError, InputError
from annotation.jobs import jobs
from annotation.jobs.context import JobContext
from annotation.models import Job, StoredFile, User
from annotation.words import Words
from routing.common.states import ROUTED
from routing.delivery.card import Counts, card
from routing.delivery.formats import DEFAULT_FORMATS, FORMATS
from routing.delivery.formats.base import File, Files
from routing.delivery.legend import legend
from routing.delivery.parts import Part, checked_part, part_of, selecting
from routing.delivery.people_card import people_card
from routing.delivery.places import MANIFEST
from routing.delivery.write_back import write_back
from routing.labels.all_items import delivery_of
from routing.models import Delivery, DeliveryFile, Run
from routing.runs.commitment_queries import answered_later, committed_files
from routing.runs.events import delivery_made
from routing.runs.expert.final import final_certificate_of
from routing.runs.people_agreement import people_agreement

IN_MEMORY = 8 * 1024**2
NDJSON = "application/x-ndjson"


def deliver(
    *,
    run: Run,
    user: User | None,
    formats: Sequence[str] = DEFAULT_FORMATS,
    since: Delivery | None = None,
    filters: Mapping[str, str] | None = None,
    unless_delivered: bool = False,
) -> Job:
    """Have the job `deliver_run` write the files of a delivery, in these formats of
    `routing.delivery.formats.FORMATS`.

    While people still label, the delivery is partial: what has no label yet is a blank row that says so.
    With `since` it holds only what is not as that delivery of the project gave it out, with `filters` (names
    and values of the items table's) what they find. With `unless_delivered` none is made that would hold what
    the last one of its kind does (`_same`), or of `since` nothing new: the job's result names that one as
    `delivery`, and `made` is false.

    Raises ConflictError before the run is routed, InputError where no format is named or one is unknown, and
    as `parts.checked_part` does.
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
            % {"run": run.number, "state": run.get_state_display().lower()},
            code="nothing_to_deliver",
        )
    part = checked_part(run, user=user, since=since, filters=filters or {})
    return jobs.enqueue(
        project=run.project,
        kind_name="deliver_run",
        params={
            "run": run.pk,
            "formats": chosen,
            **part.params,
            **({"unless_delivered": True} if unless_delivered else {}),
        },
        unique_key=f"deliver_run:{run.pk}",
        user=user,
        total=run.project.items.count(),
    )


CANCELLED = failures.register("run_cancelled", gettext_noop("Run %(run)s was cancelled."))


def deliver_run(context: JobContext) -> dict[str, Any]:
    """Write to temporary files first and to the storage then; the rows that name the files come last, all at
    once.
    """
    runs = Run.objects.select_related("project", "certificate")
    run = runs.get(pk=context.params["run"], project=context.job.project_id)
    if run.state not in ROUTED:
        raise CANCELLED.error(raised_as=ConflictError, run=run.number)
    if context.job.result:  # written by a worker that died before it could say so
        return dict(context.job.result)
    part = part_of(run, user=context.job.created_by, params=context.params)
    with ExitStack() as stack:
        made = _write(context, run, part, stack)
        context.progress(stage=Words(gettext_noop("Files")))
        stored = [(file, put_content(project=run.project, content=file.content)) for file in made.files]
        stored += _committed(context, run)
        manifest = _manifest(stored)
        stored.append((manifest, put_content(project=run.project, content=manifest.content)))
        if context.params.get("unless_delivered") and (same := _same(run, part, made.counts, stored)):
            return {"delivery": same.pk, "number": same.number, "made": False}
        given = put_content(project=run.project, content=made.given)
    with context.chunk(done=made.counts.items):
        last = Delivery.objects.filter(run=run).aggregate(last=Max("number"))["last"] or 0
        delivery = Delivery.objects.create(
            run=run,
            number=last + 1,
            rows=made.counts.rows,
            blanks=made.counts.blanks,
            items=made.counts.items,
            since=part.since,
            filters=dict(part.filters),
            given=_named(run, File("given", made.given, MODEL_OUTPUT), given),
            two_people=made.agreement,
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
            data={
                "delivery": delivery.number,
                "rows": delivery.rows,
                "blanks": delivery.blanks,
                "items": delivery.items,
                **({"erased": made.counts.erased} if made.counts.erased else {}),
                **part.params,
            },
        )
        result = {
            "delivery": delivery.pk,
            "number": delivery.number,
            "made": True,
            "rows": delivery.rows,
            "blanks": delivery.blanks,
            "items": delivery.items,
            "by_reason": dict(made.counts.by_reason),
            "by_source": dict(made.counts.by_source),
            "partial": run.state != Run.State.COMPLETE,
            "formats": made.counted,
            **({} if part.since is None else {"gone": made.counts.gone}),
            **({"erased": made.counts.erased} if made.counts.erased else {}),
        }
        Job.objects.filter(pk=context.job.pk).update(result=result)
        delivery_made(delivery, partial=bool(result["partial"]))
        write_back(delivery)
    return result


@dataclass(frozen=True)
class _Made:
    """`given` is what a later delivery is compared with; `counted`: of each format how many cells its counted
    limits concern; `agreement`: of a run by people how far they agree (`people_agreement`).
    """

    counts: Counts
    files: list[File]
    given: IO[bytes]
    counted: dict[str, dict[str, int]]
    agreement: dict[str, Any] | None


def _write(context: JobContext, run: Run, part: Part, stack: ExitStack) -> _Made:
    formats = [name for name in FORMATS if name in context.params.get("formats", DEFAULT_FORMATS)]
    kinds = [FORMATS[name] for name in formats]
    # Temporary files have no name that a killed worker could leave behind.
    files = Files(lambda: stack.enter_context(_temporary()))
    counts, given = Counts(), files.unnamed()
    with (
        selecting(part, given) as picked,
        delivery_of(
            run,
            texts=any(kind.reads_texts for kind in kinds),
            kinds=any(kind.reads_kinds for kind in kinds),
            conditions=part.conditions if part.filters else None,
        ) as (then, info, pages),
    ):
        writers = [kind(files, info) for kind in kinds]
        for page in map(picked.of, pages):
            for writer in writers if page else ():
                writer.write(page)
            counts.add(page)
            context.progress(done=counts.items, stage=Words(gettext_noop("Rows")))
    counts.gone = picked.gone
    for writer in writers:
        writer.close()
    agreement = people_agreement(then) if then.by_people else None
    which: dict[str, Any] = {"since": part.since, "filters": part.filters, "columns": legend(then, info)}
    if agreement is None:
        said = card(then, counts, writers, **which)
    else:
        said = people_card(then, counts, writers, agreement, **which)
    cards = {name: header + said for writer in writers for name, header in writer.headers.items()}
    return _Made(
        counts,
        [
            *files.made,
            *(_small(name, text, "text/markdown") for name, text in cards.items()),
            *([] if then.by_people else _certified(then)),
            *(
                [_small("final_audit.json", final.document, "application/json")]
                if (final := final_certificate_of(then))
                else []
            ),
            _small("README.md", said, "text/markdown"),
        ],
        given,
        {name: writer.counts for name, writer in zip(formats, writers, strict=True)},
        agreement,
    )


def _certified(run: Run) -> list[File]:
    return [
        _small("certificate.json", run.certificate.document, "application/json"),
        _small("draw.jsonl", run.certificate.draw_lines, NDJSON),
    ]


def _committed(context: JobContext, run: Run) -> list[tuple[File, Content]]:
    """What the run committed to, of which the certificate holds the hashes, and what models have answered
    since: by both a route can be checked.
    """
    if (found := committed_files(run)) is None:
        return []
    items, pilot = found
    # The bytes are there already, under their hash, and nothing else is written.
    committed = File("committed.jsonl", io.BytesIO(), NDJSON)
    made = [(committed, Content(items.sha256, items.storage_name, items.size))]
    with _temporary() as later:
        later.writelines(line + b"\n" for line in answered_later(run, context.stop_if_asked))
        others = [File("answered.jsonl", later, NDJSON)] if later.tell() else []
        others += [_small("pilot.jsonl", pilot, NDJSON)] if pilot else []
        return made + [(file, put_content(project=run.project, content=file.content)) for file in others]


def _same(run: Run, part: Part, counts: Counts, stored: Sequence[tuple[File, Content]]) -> Delivery | None:
    """The delivery of the run that holds all of this already: the one that a part without rows builds on, and
    else the last one with the same filters and files, where each of these is the same byte for byte. None
    that was made before the run was complete: a complete run has one of its own.
    """
    made = run.deliveries.filter(created_at__gte=run.completed_at) if run.completed_at else run.deliveries
    if part.since is not None:
        return None if counts.rows or counts.gone else made.filter(pk=part.since.pk).first()
    hashes = {file.name: content.sha256 for file, content in stored}
    earlier = made.filter(since=None).order_by("-number").prefetch_related("files__file")
    for delivery in earlier.iterator(chunk_size=10):  # mostly it is the first
        files = {entry.name: entry.file.sha256 for entry in delivery.files.all()}
        # Databases compare JSON by its text: the same filters in another order are the same.
        if delivery.filters == dict(part.filters) and files.keys() == hashes.keys():
            return delivery if files == hashes else None
    return None


def _manifest(stored: Sequence[tuple[File, Content]]) -> File:
    """Size and SHA-256 of every other file of the delivery, as they were when it was put into the storage."""
    files = {file.name: {"bytes": content.size, "sha256": content.sha256} for file, content in stored}
    document = {"files": files, "format": "hypac-manifest", "version": 1}
    text = json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    return _small(MANIFEST, text, "application/json")


def _small(name: str, text: str, media_type: str) -> File:
    return File(name, io.BytesIO(text.encode()), media_type)


def _temporary() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)


def _named(run: Run, file: File, content: Content) -> StoredFile:
    return name_content(
        project=run.project,
        content=content,
        original_name=f"{run.project.slug}-run{run.number}-{file.name.replace('/', '-')}",
        media_type=file.media_type,
    )
