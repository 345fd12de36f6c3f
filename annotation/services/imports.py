"""Bringing data into a project: a look at the file, then a job that reads it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO

from django.db import transaction
from django.utils.translation import gettext as _

from annotation import jobs
from annotation.errors import ConflictError, InputError
from annotation.hooks import model_columns
from annotation.importers import registry
from annotation.importers.base import Importer, Problem, Record
from annotation.importers.excel import Excel
from annotation.models import Job, Project, StoredFile, User
from annotation.selectors.answer_columns import answer_columns
from annotation.services import audit
from annotation.services.files import MODEL_OUTPUT, open_file
from annotation.services.import_columns import Column, Proposal, propose, read_columns
from annotation.services.import_formats import SAMPLE, format_for

IMPORT = "import"
# So many entries of an archive are opened in search of a first image.
IMAGE_SEARCH = 1_000
# So many sheets of a workbook are tried until one can be read.
SHEETS_TRIED = 5
# More fields than this nobody reads on one screen.
MAX_FIELDS = 30


@dataclass(frozen=True)
class Mapping:
    """Which column is an item's id, and which ones people read: one as a text, or several as fields.

    Without an id column the item is named by the file and its line, an image by its path in the archive.
    """

    id_column: str = ""
    text_column: str = ""
    field_columns: tuple[str, ...] = ()

    @classmethod
    def showing(cls, columns: Sequence[str], *, id_column: str = "") -> "Mapping":
        """One column is a text, several are fields in this order."""
        if len(columns) > 1:
            return cls(id_column=id_column, field_columns=tuple(columns))
        return cls(id_column=id_column, text_column=columns[0] if columns else "")

    @classmethod
    def of(cls, params: dict[str, object]) -> "Mapping":
        """That of an import job. Jobs of earlier versions know no fields."""
        fields = params.get("field_columns") or ()
        return cls(str(params["id_column"]), str(params["text_column"]), tuple(fields))  # type: ignore[arg-type]

    @property
    def shown(self) -> tuple[str, ...]:
        return self.field_columns or ((self.text_column,) if self.text_column else ())


@dataclass(frozen=True)
class Preview:
    """The first rows of a file; `problems` are pairs (where, message) met among them.

    `format` is the importer's name, `format_title` what people call it; of a workbook `format` names the
    sheet, which is one of `sheets`. `labels` counts those that people gave the first rows elsewhere.
    `proposal` says why `suggestion` is what it is; None for images. `reserved` are the columns with what
    people and models of another program said.
    """

    format: str
    format_title: str
    columns: list[str]
    rows: list[dict[str, str]]
    problems: list[tuple[str, str]]
    suggestion: Mapping
    holds_images: bool
    details: list[Column]
    proposal: Proposal | None
    sheets: tuple[str, ...] = ()
    labels: int = 0
    reserved: frozenset[str] = frozenset()


def preview(*, stored_file: StoredFile, rows: int = 5, format_name: str = "") -> Preview:
    """Look at the beginning of a file, read as `format_name`, else as what it seems to be.

    Raises InputError where it cannot be read at all, or where another way to read it has columns that nobody
    who labels may see: in this one their values would stand under other names.
    """
    if stored_file.media_type == MODEL_OUTPUT:
        words = _("This file was sent as predictions, which nobody sees before the analysis.")
        raise InputError(words, where="file")
    importer = registry.get(format_for(stored_file, format_name))
    project = stored_file.project
    sheets: list[str] = []
    with open_file(stored_file) as file:
        readers: list[Importer] = [importer]
        if isinstance(importer, Excel):
            importer = importer.in_a_request()
            sheets = importer.sheets(file, stored_file.original_name)
            # An empty sheet, or one of notes, may come first.
            readers = [importer]
            if not importer.sheet:
                readers = [replace(importer, sheet=sheet) for sheet in sheets[:SHEETS_TRIED]]
        importer, found = _first_readable(readers, file, stored_file.original_name, rows)
    sample, problems, labels, answers = found
    if not sample and not problems:
        raise InputError(_("The file has a header but no rows."), where=stored_file.original_name)
    columns = list(dict.fromkeys(name for row in sample for name in row))
    reserved = answer_columns(project, columns) | answers
    details = read_columns(columns, sample, project, reserved | model_columns(project))
    proposal = None if importer.holds_images else propose(details, sample)
    return Preview(
        format=importer.name,
        format_title=importer.title,
        columns=columns,
        rows=sample[:rows],
        problems=problems,
        suggestion=Mapping(proposal.id_column, proposal.text_column) if proposal else Mapping(),
        holds_images=importer.holds_images,
        details=details,
        proposal=proposal,
        sheets=tuple(sheets),
        labels=labels,
        reserved=reserved,
    )


_Sample = tuple[list[dict[str, str]], list[tuple[str, str]], int, frozenset[str]]


def _first_readable(
    readers: Sequence[Importer], file: IO[bytes], name: str, rows: int
) -> tuple[Importer, _Sample]:
    """The first of `readers` that can read the file, and what it finds. Raises the first one's InputError."""
    refusal: InputError | None = None
    for importer in readers:
        try:
            return importer, _first_rows(importer, file, name, rows)
        except InputError as error:
            refusal = refusal or error
    assert refusal is not None  # noqa: S101 - a workbook without a sheet is refused before
    raise refusal


def _first_rows(importer: Importer, file: IO[bytes], name: str, rows: int) -> _Sample:
    """Columns of the first rows, pairs (where, message) of problems among them, how many labels they brought,
    and in which columns.
    """
    sample: list[dict[str, str]] = []
    problems = []
    labels = 0
    answers: set[str] = set()
    records = importer.records(file, name)
    for record in islice(records, rows if importer.holds_images else max(rows, SAMPLE)):
        if isinstance(record, Problem):
            problems.append((record.where, record.message))
        else:
            sample.append(record.columns)
            labels += len(record.labels)
            answers.update(record.answers)
    if importer.holds_images and not sample:
        sample += _first_image(records, problems, name)
    return sample, problems, labels, frozenset(answers)


def check_mapping(*, project: Project, seen: Preview, mapping: Mapping) -> None:
    """Raises InputError whose `where` is the mapping's field: `text_column` for all that people read."""
    if seen.holds_images and mapping.shown:
        raise InputError(_("Images have no text column."), where="text_column")
    if not seen.holds_images and not mapping.shown:
        raise InputError(_("Choose the column that people read."), where="text_column")
    if len(set(mapping.shown)) < len(mapping.shown):
        raise InputError(_("Show each column once."), where="text_column")
    if len(mapping.shown) > MAX_FIELDS:
        words = _("At most %(most)d columns can be shown.") % {"most": MAX_FIELDS}
        raise InputError(words, where="text_column")
    named = [("id_column", mapping.id_column), *(("text_column", name) for name in mapping.shown)]
    for field, name in named:
        if name and seen.columns and name not in seen.columns:
            words = _("The file has no column “%(name)s”; it has %(columns)s.") % {
                "name": name,
                "columns": ", ".join(seen.columns),
            }
            raise InputError(f"{words} {_other_sheets(seen)}".strip(), where=field)
    secret = model_columns(project) - seen.reserved
    for field, name in named:
        if name in seen.reserved:
            words = _(
                "The column “%(name)s” holds what people and models of another program said, and whoever "
                "labels must not see that. Choose another column."
            )
            raise InputError(words % {"name": name}, where=field)
        if name in secret:
            words = _(
                "A source of this project reads its answers from the column “%(name)s”, and whoever labels "
                "must not see them. Choose another column, or change the source first."
            )
            raise InputError(words % {"name": name}, where=field)


def _other_sheets(seen: Preview) -> str:
    """Of a workbook which sheet was read, and how to read another."""
    if len(seen.sheets) < 2:
        return ""
    others = [name for sheet in seen.sheets if (name := Excel(sheet).name) != seen.format]
    words = _("Read as the format “%(format)s”; the other sheets of the workbook are %(others)s.")
    return words % {"format": seen.format, "others": ", ".join(f"“{name}”" for name in others)}


def start_import(
    *,
    project: Project,
    user: User,
    stored_file: StoredFile,
    mapping: Mapping,
    format_name: str = "",
    text_format: str = "",
    keep_labels: bool = False,
    fetched_by: Job | None = None,
) -> Job:
    """Check the mapping and start the job that adds the file's rows as items.

    `text_format` is how the texts of the whole project are shown from now on; "" leaves it as it is.
    `keep_labels`: what people said of the items in the program that wrote the file becomes labels.
    `fetched_by` is the job that brought the file, which knows its import again by that.

    Raises InputError whose `where` is the mapping's field, or the file; ConflictError while another import
    into the project is under way, or where a run rests on how the texts are shown.
    """
    if stored_file.project_id != project.pk:
        raise InputError(_("This file belongs to another project."), where="file")
    if text_format and text_format not in Project.TextFormat.values:
        raise InputError(_("Texts are plain or Markdown."), where="text_format")
    seen = preview(stored_file=stored_file, rows=1, format_name=format_name)
    check_mapping(project=project, seen=seen, mapping=mapping)
    with transaction.atomic():
        if text_format and text_format != project.text_format:
            _set_text_format(project, text_format)
        job = jobs.enqueue(
            project=project,
            kind_name=IMPORT,
            params={
                "file": stored_file.pk,
                "format": seen.format,
                "id_column": mapping.id_column,
                "text_column": mapping.text_column,
                "field_columns": list(mapping.field_columns),
                "keep_labels": keep_labels,
                **({} if fetched_by is None else {"fetch": fetched_by.pk}),
            },
            # One at a time: items get their places in the project one after the other.
            unique_key=IMPORT,
            user=user,
        )
        data: dict[str, object] = {"file": stored_file.original_name, "sha256": stored_file.sha256}
        data |= {"text_format": text_format} if text_format else {}
        data |= {"keep_labels": True} if keep_labels else {}
        audit.record(project=project, actor=user, action="import.started", target=f"job:{job.pk}", data=data)
    return job


def may_change_text_format(project: Project) -> bool:
    """Not once people may have labelled: what they saw stays as it was."""
    return not project.work_batches.filter(imported_by__isnull=True).exists()


def _set_text_format(project: Project, text_format: str) -> None:
    if not may_change_text_format(project):
        raise ConflictError(
            _("People have been asked to label: how the texts are shown stays as it is."), where="text_format"
        )
    project.text_format = text_format
    project.save(update_fields=["text_format"])


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
    words = _("There is no image in this zip archive that can be read.")
    raise InputError(words + (" {}: {}".format(*problems[0]) if problems else ""), where=name)
