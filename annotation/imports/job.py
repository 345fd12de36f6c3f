"""The job that reads a file into items.

It goes through the file twice: first to its end without storing anything, so that a file that breaks off in
the middle adds nothing, then in chunks. A chunk's items, problems, counts and the place in the file are
committed together; a job that is started again goes on behind the last chunk.
"""

import io
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from django.utils.translation import gettext_noop

from annotation.common.bulk import copy_rows
from annotation.common.files import LOST, Content, clean_name, put_content
from annotation.errors import InputError
from annotation.imports.columns import ColumnMapping
from annotation.imports.formats import registry
from annotation.imports.formats.base import Image, Record, Row
from annotation.imports.labels import Kept, LabelKeeper, Labelled
from annotation.imports.other_kind import note_other_kind
from annotation.imports.reading import reading
from annotation.imports.rows import (
    Candidate,
    RowMessage,
    candidate_of,
    classify_rows,
    first_problem,
    known_items,
    none_usable,
    note_uncomputed,
)
from annotation.jobs.context import JobContext
from annotation.models import Item, Job, Project, StoredFile
from annotation.words import Words

CHUNK_ROWS = 5000
CHUNK_CHARACTERS = 4_000_000
CHUNK_IMAGES = 100
SELDOM = ("answers", "spent", "labels_left_out", "uncomputed")


@dataclass
class Counts:
    """What became of the rows so far. Duplicates are added, too: equal content under another id.

    `positions` are the places (first, last) of the items that the import brought, `columns` the names that
    the project did not have before: both are for whoever takes the import back. `labels` counts those that
    came with the items and were kept, `labels_unread` those that could not be read, `labels_left_out`
    responses that were no labels (drafts, discarded, skipped). `answers` are the columns that people's
    answers came in (`Row.answers`): nobody who labels sees them from then on. `spent` is what the rows have
    taken of the file's budget, so that another attempt has no other one. `uncomputed` counts, by column,
    cells of the items that are empty as their formula was never computed.
    """

    added: int = 0
    already_there: int = 0
    problems: int = 0
    duplicates: int = 0
    positions: list[list[int]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    labels: int = 0
    labels_unread: int = 0
    labels_left_out: int = 0
    answers: list[str] = field(default_factory=list)
    spent: int = 0
    uncomputed: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, result: dict[str, Any]) -> "Counts":
        """Those of a job that is started again."""
        return cls(**{entry.name: result[entry.name] for entry in fields(cls) if entry.name in result})

    def as_result(self) -> dict[str, Any]:
        """For the job; without what is seldom where there is none of it, as most imports have it."""
        return {name: value for name, value in asdict(self).items() if value or name not in SELDOM}

    def brought(self, first: int, count: int) -> None:
        """Mostly the chunks of an import lie one behind the other."""
        if not count:
            return
        if self.positions and self.positions[-1][1] == first - 1:
            self.positions[-1][1] += count
        else:
            self.positions.append([first, first + count - 1])


@dataclass
class Chunk:
    """Rows that are committed together. `end` is the number of records of the file up to and with them."""

    end: int
    candidates: list[Candidate] = field(default_factory=list)
    problems: list[RowMessage] = field(default_factory=list)


NO_ROW = none_usable("no_row_usable", gettext_noop("No row of %(file)s could be used (of %(count)s)."))


def run_import(context: JobContext) -> dict[str, Any]:
    """Handler of the kind "import". Raises JobFailedError where no row of the file could be used."""
    params = context.params
    mapping = ColumnMapping.of(params)
    importer = registry.get(params["format"])
    found = StoredFile.objects.select_related("project")
    stored = found.filter(pk=params["file"], project_id=context.job.project_id).first()
    if stored is None:  # it was removed since
        raise LOST.error(raised_as=InputError, where="file")
    counts = Counts.of(context.job.result)
    keeper = LabelKeeper(stored.project, context.job) if params.get("keep_labels") else None
    done, total = context.job.done, context.job.total
    with reading(stored, encoding=params.get("encoding", ""), spent=counts.spent) as opened:
        if total is None:  # else an earlier attempt has read it to its end
            context.progress(stage=Words(gettext_noop("Checking the file")))
            total = opened.count(importer)
        context.progress(total=total, stage=Words(gettext_noop("Adding items")))
        records = opened.records(importer, skip=done)
        for chunk in _chunks(records, stored.project, mapping, start=done):
            counts.spent = opened.spent
            with context.chunk(done=chunk.end):
                _store(context, chunk, mapping, counts, keeper)
    if counts.added + counts.already_there == 0:
        problem = first_problem(context.job)
        raise NO_ROW.error(count=f"{total:,}", file=stored.original_name, problem=problem)
    counts.spent = 0  # of no use any more
    return counts.as_result()


def _chunks(
    records: Iterable[Record], project: Project, mapping: ColumnMapping, *, start: int
) -> Iterator[Chunk]:
    """Images go to the storage here, before the transaction that names them."""

    def keep(image: Image) -> Content:
        return put_content(project=project, content=io.BytesIO(image.content))

    chunk = Chunk(end=start)
    characters = images = 0
    for number, record in enumerate(records, start + 1):
        chunk.end = number
        made = candidate_of(number, record, mapping, keep)
        if isinstance(made, Candidate):
            if isinstance(record, Row):
                made.labels, made.answers, made.left_out = record.labels, record.answers, record.left_out
            chunk.candidates.append(made)
            characters += sum(map(len, made.columns.values()))
            images += made.image is not None
        else:
            chunk.problems.append(made)
        rows = len(chunk.candidates) + len(chunk.problems)
        if rows >= CHUNK_ROWS or characters >= CHUNK_CHARACTERS or images >= CHUNK_IMAGES:
            yield chunk
            chunk = Chunk(end=chunk.end)
            characters = images = 0
    if chunk.candidates or chunk.problems:
        yield chunk


def _store(
    context: JobContext, chunk: Chunk, mapping: ColumnMapping, counts: Counts, keeper: LabelKeeper | None
) -> None:
    """Inside the chunk's transaction, which lets no other worker of this job, and no other import, by."""
    project = Project.objects.get(pk=context.job.project_id)
    known, twins = known_items(project, chunk.candidates)
    columns = dict.fromkeys(project.columns)
    found = classify_rows(chunk.candidates, known=known, twins=twins, columns=columns, mapping=mapping)
    other = [] if counts.added else note_other_kind(project, found.new)
    start = _insert(project, found.new)
    counts.brought(start, len(found.new))
    kept = Kept(0, [])
    if keeper is not None:
        kept = keeper.keep(
            Labelled(position, candidate.where, candidate.labels)
            for position, candidate in enumerate(found.new, start)
        )
        counts.labels_left_out += sum(candidate.left_out for candidate in found.new)
    if list(columns) != project.columns:
        Project.objects.filter(pk=project.pk).update(columns=list(columns))
        counts.columns += [name for name in columns if name not in project.columns]
    brought = {name for candidate in found.new for name in candidate.answers}
    counts.answers += sorted(brought.difference(counts.answers))
    counts.added += len(found.new)
    counts.already_there += found.already_there
    counts.duplicates += len(found.notes)
    counts.problems += len(chunk.problems) + len(found.problems)
    empty = note_uncomputed(found.new, counts.uncomputed)
    told = [*other, *sorted([*chunk.problems, *found.problems, *found.notes, *empty])]  # as in the file
    counts.labels += kept.labels
    counts.labels_unread += len(kept.problems)
    context.problems([*((entry.where, entry.message) for entry in told), *kept.problems, *kept.notes])
    Job.objects.filter(pk=context.job.pk).update(result=counts.as_result())


def _insert(project: Project, candidates: list[Candidate]) -> int:
    """Add them behind the project's items; returns the place of the first."""
    images = {candidate.image.sha256: candidate for candidate in candidates if candidate.image}
    StoredFile.objects.bulk_create(
        (
            StoredFile(
                project=project,
                sha256=sha256,
                storage_name=candidate.image.storage_name,
                original_name=clean_name(candidate.external_id),
                media_type=candidate.media_type,
                size=candidate.image.size,
            )
            for sha256, candidate in images.items()
            if candidate.image
        ),
        ignore_conflicts=True,  # the project has the same bytes already: then that row is meant
    )
    files = dict(StoredFile.objects.filter(project=project, sha256__in=images).values_list("sha256", "pk"))
    last = project.items.order_by("-position").values_list("position", flat=True).first()
    start = 0 if last is None else last + 1
    columns = ["project", "external_id", "position", "text", "image", "data", "content_hash"]
    rows: Iterator[tuple[Any, ...]] = (
        (
            project.pk,
            candidate.external_id,
            position,
            candidate.text,
            files[candidate.image.sha256] if candidate.image else None,
            candidate.columns,
            candidate.content_hash,
        )
        for position, candidate in enumerate(candidates, start)
    )
    if any(candidate.fields for candidate in candidates):
        columns.append("fields")
        rows = ((*row, candidate.fields) for row, candidate in zip(rows, candidates, strict=True))
    if any(candidate.typed for candidate in candidates):
        columns.append("typed")
        rows = ((*row, candidate.typed) for row, candidate in zip(rows, candidates, strict=True))
    copy_rows(Item, columns, rows)
    return start
