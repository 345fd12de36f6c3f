"""The job that reads a file into items.

It goes through the file twice: first to its end without storing anything, so that a file that breaks off in
the middle adds nothing, then in chunks. A chunk's items, problems, counts and the place in the file are
committed together; a job that is started again goes on behind the last chunk.
"""

import io
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from annotation.errors import JobFailedError
from annotation.importers import registry
from annotation.importers.base import MAX_COLUMNS, Problem, Record, Row
from annotation.jobs import JobContext
from annotation.models import Item, Job, JobProblem, Project, StoredFile
from annotation.services.files import Content, clean_name, open_file, put_content
from annotation.services.imports import Mapping
from annotation.services.items import text_hash

CHUNK_ROWS = 1000
CHUNK_CHARACTERS = 4_000_000
CHUNK_IMAGES = 100
MAX_ID = Item._meta.get_field("external_id").max_length or 255


@dataclass
class Counts:
    """What became of the rows so far. Duplicates are added, too: equal content under another id."""

    added: int = 0
    already_there: int = 0
    problems: int = 0
    duplicates: int = 0


@dataclass
class Candidate:
    """A row that can become an item."""

    where: str
    external_id: str
    columns: dict[str, str]
    content_hash: str
    text: str = ""
    image: Content | None = None
    media_type: str = ""


@dataclass
class Chunk:
    """Rows that are committed together. `end` is the number of records of the file up to and with them."""

    end: int
    candidates: list[Candidate] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)


def run_import(context: JobContext) -> dict[str, Any]:
    """Handler of the kind "import". Raises JobFailedError where no row of the file could be used."""
    params = context.params
    mapping = Mapping(id_column=params["id_column"], text_column=params["text_column"])
    importer = registry.get(params["format"])
    stored = StoredFile.objects.select_related("project").get(
        pk=params["file"], project_id=context.job.project_id
    )
    counts = Counts(**context.job.result)
    with open_file(stored) as file:
        context.progress(stage="Checking the file")
        total = importer.count(file, stored.original_name)
        context.progress(total=total, stage="Adding items")
        records = importer.records(file, stored.original_name, skip=context.job.done)
        for chunk in _chunks(records, stored.project, mapping, start=context.job.done):
            with context.chunk(done=chunk.end):
                _store(context, chunk, counts)
    if counts.added + counts.already_there == 0:
        first = JobProblem.objects.filter(job=context.job).first()
        raise JobFailedError(
            f"None of the {total:,} rows of {stored.original_name} could be used."
            + (f" The first one: {first}" if first else "")
        )
    return asdict(counts)


def _chunks(records: Iterable[Record], project: Project, mapping: Mapping, *, start: int) -> Iterator[Chunk]:
    """Images go to the storage here, before the transaction that names them."""
    chunk = Chunk(end=start)
    characters = images = 0
    for record in records:
        chunk.end += 1
        if isinstance(record, Problem):
            chunk.problems.append((record.where, record.message))
        elif reason := _row_problem(record, mapping):
            chunk.problems.append((record.where, reason))
        else:
            chunk.candidates.append(_candidate(record, project, mapping))
            characters += sum(map(len, record.columns.values()))
            images += record.image is not None
        rows = len(chunk.candidates) + len(chunk.problems)
        if rows >= CHUNK_ROWS or characters >= CHUNK_CHARACTERS or images >= CHUNK_IMAGES:
            yield chunk
            chunk = Chunk(end=chunk.end)
            characters = images = 0
    if chunk.candidates or chunk.problems:
        yield chunk


def _row_problem(row: Row, mapping: Mapping) -> str:
    for name in (mapping.id_column, mapping.text_column):
        if name and name not in row.columns:
            return f"There is no column {name!r} in this row."
    external_id = _external_id(row, mapping)
    if not external_id:
        return f"The column {mapping.id_column!r} is empty, so the item has no id."
    if len(external_id) > MAX_ID:
        return f"The item's id has {len(external_id)} characters; at most {MAX_ID} can be stored."
    if "\0" in external_id:
        return "The item's id contains a NUL character."
    if row.image is None and not row.columns[mapping.text_column].strip():
        return f"The column {mapping.text_column!r} is empty: there is nothing to label."
    return ""


def _external_id(row: Row, mapping: Mapping) -> str:
    return row.columns[mapping.id_column].strip() if mapping.id_column else row.name


def _candidate(row: Row, project: Project, mapping: Mapping) -> Candidate:
    external_id = _external_id(row, mapping)
    if row.image is None:
        text = row.columns[mapping.text_column]
        return Candidate(row.where, external_id, row.columns, text_hash(text), text=text)
    image = put_content(project=project, content=io.BytesIO(row.image.content))
    return Candidate(
        row.where, external_id, row.columns, image.sha256, image=image, media_type=row.image.media_type
    )


def _store(context: JobContext, chunk: Chunk, counts: Counts) -> None:
    """Inside the chunk's transaction, which lets no other worker of this job, and no other import, by."""
    project = Project.objects.get(pk=context.job.project_id)
    items = project.items.all()
    known = dict(
        items.filter(external_id__in=[candidate.external_id for candidate in chunk.candidates])
        .order_by()
        .values_list("external_id", "content_hash")
    )
    twins = dict(
        items.filter(content_hash__in={candidate.content_hash for candidate in chunk.candidates})
        .order_by("-position")
        .values_list("content_hash", "external_id")
    )
    columns = dict.fromkeys(project.columns)
    problems = list(chunk.problems)
    notes = []
    new = []
    for candidate in chunk.candidates:
        if (stored_hash := known.get(candidate.external_id)) is not None:
            if stored_hash == candidate.content_hash:
                counts.already_there += 1
            else:
                problems.append(
                    (
                        candidate.where,
                        f"There is an item {candidate.external_id!r} with other content already. Items do "
                        "not change: give this one another id.",
                    )
                )
            continue
        if len(columns | dict.fromkeys(candidate.columns)) > MAX_COLUMNS:
            problems.append(
                (
                    candidate.where,
                    f"With this row's columns the project would have more than {MAX_COLUMNS} columns.",
                )
            )
            continue
        columns |= dict.fromkeys(candidate.columns)
        known[candidate.external_id] = candidate.content_hash
        if (twin := twins.setdefault(candidate.content_hash, candidate.external_id)) != candidate.external_id:
            counts.duplicates += 1
            notes.append((candidate.where, f"Added, but it has the same content as the item {twin!r}."))
        new.append(candidate)
    _insert(project, new)
    if list(columns) != project.columns:
        Project.objects.filter(pk=project.pk).update(columns=list(columns))
    counts.added += len(new)
    counts.problems += len(problems)
    context.problems(problems + notes)
    Job.objects.filter(pk=context.job.pk).update(result=asdict(counts))


def _insert(project: Project, candidates: list[Candidate]) -> None:
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
    Item.objects.bulk_create(
        Item(
            project=project,
            external_id=candidate.external_id,
            position=position,
            text=candidate.text,
            image_id=files[candidate.image.sha256] if candidate.image else None,
            data=candidate.columns,
            content_hash=candidate.content_hash,
        )
        for position, candidate in enumerate(candidates, start)
    )
