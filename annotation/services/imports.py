"""Bringing data into a project: a look at the file, then a job that reads it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from django.db import transaction

from annotation import jobs
from annotation.errors import InputError
from annotation.importers import registry
from annotation.importers.base import Problem, Record
from annotation.importers.detect import detect
from annotation.models import Job, Project, StoredFile, User
from annotation.services import audit
from annotation.services.files import open_file

IMPORT = "import"
# So many rows are looked at to learn the columns; of an archive of images only those that are shown.
SAMPLE = 50
# So many entries of an archive are opened in search of a first image.
IMAGE_SEARCH = 1_000
ID_NAMES = ("id", "external_id", "item_id", "uid", "uuid", "key", "index", "idx")
TEXT_NAMES = (
    "text", "content", "sentence", "review", "question", "prompt", "comment", "body", "document", "message",
    "abstract", "title",
)  # fmt: skip


@dataclass(frozen=True)
class Mapping:
    """Which column is an item's id and which its text.

    Without an id column the item is named by the file and its line, an image by its path in the archive.
    """

    id_column: str = ""
    text_column: str = ""


@dataclass(frozen=True)
class Preview:
    """The first rows of a file; `problems` are pairs (where, message) met among them.

    `format` is the importer's name, `format_title` what people call it.
    """

    format: str
    format_title: str
    columns: list[str]
    rows: list[dict[str, str]]
    problems: list[tuple[str, str]]
    suggestion: Mapping
    holds_images: bool


def preview(*, stored_file: StoredFile, rows: int = 5) -> Preview:
    """Look at the beginning of a file. Raises InputError where it cannot be read at all."""
    importer = registry.get(detect(stored_file))
    sample: list[dict[str, str]] = []
    problems = []
    with open_file(stored_file) as file:
        records = importer.records(file, stored_file.original_name)
        for record in islice(records, rows if importer.holds_images else max(rows, SAMPLE)):
            if isinstance(record, Problem):
                problems.append((record.where, record.message))
            else:
                sample.append(record.columns)
        if importer.holds_images and not sample:
            sample += _first_image(records, problems, stored_file.original_name)
    if not sample and not problems:
        raise InputError("The file has a header but no rows.", where=stored_file.original_name)
    columns = list(dict.fromkeys(name for row in sample for name in row))
    return Preview(
        format=importer.name,
        format_title=importer.title,
        columns=columns,
        rows=sample[:rows],
        problems=problems,
        suggestion=Mapping() if importer.holds_images else _suggestion(columns, sample),
        holds_images=importer.holds_images,
    )


def start_import(*, project: Project, user: User, stored_file: StoredFile, mapping: Mapping) -> Job:
    """Check the mapping and start the job that adds the file's rows as items.

    Raises InputError whose `where` is the mapping's field, or the file; ConflictError while another import
    into the project is under way.
    """
    if stored_file.project_id != project.pk:
        raise InputError("This file belongs to another project.", where="file")
    seen = preview(stored_file=stored_file, rows=1)
    if seen.holds_images and mapping.text_column:
        raise InputError("Images have no text column.", where="text_column")
    if not seen.holds_images and not mapping.text_column:
        raise InputError("Choose the column that people read.", where="text_column")
    for field in ("id_column", "text_column"):
        name = getattr(mapping, field)
        if name and seen.columns and name not in seen.columns:
            raise InputError(
                f"The file has no column {name!r}; it has {', '.join(seen.columns)}.", where=field
            )
    with transaction.atomic():
        job = jobs.enqueue(
            project=project,
            kind_name=IMPORT,
            params={
                "file": stored_file.pk,
                "format": seen.format,
                "id_column": mapping.id_column,
                "text_column": mapping.text_column,
            },
            # One at a time: items get their places in the project one after the other.
            unique_key=IMPORT,
            user=user,
        )
        audit.record(
            project=project,
            actor=user,
            action="import.started",
            target=f"job:{job.pk}",
            data={"file": stored_file.original_name, "sha256": stored_file.sha256},
        )
    return job


def _first_image(
    records: Iterator[Record], problems: list[tuple[str, str]], name: str
) -> list[dict[str, str]]:
    """Columns of the first image that follows: an archive may begin with a text about itself.

    Raises InputError where none does. Of an archive whose images come very late that is left to the import.
    """
    searched = 0
    for record in islice(records, IMAGE_SEARCH):
        if not isinstance(record, Problem):
            return [record.columns]
        searched += 1
    if searched == IMAGE_SEARCH:
        return []
    reason = " {}: {}".format(*problems[0]) if problems else ""
    raise InputError(f"There is no image in this zip archive that can be read.{reason}", where=name)


def _suggestion(columns: list[str], sample: list[dict[str, str]]) -> Mapping:
    def by_name(names: tuple[str, ...]) -> str:
        lower = {column.strip().lower(): column for column in reversed(columns)}
        return next((lower[name] for name in names if name in lower), "")

    id_column = by_name(ID_NAMES)
    values = [row.get(id_column, "") for row in sample]
    if "" in values or len(set(values)) < len(values):
        id_column = ""  # it names no single item
    text_column = by_name(TEXT_NAMES) or max(
        (column for column in columns if column != id_column),
        key=lambda column: sum(len(row.get(column, "")) for row in sample),
        default="",
    )
    return Mapping(id_column=id_column, text_column=text_column)
