"""Bringing data into a project: a look at the file, then a job that reads it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from django.db import transaction
from django.utils.translation import gettext as _, gettext_noop

from annotation.common import audit, limits
from annotation.common.files import MODEL_OUTPUT, open_file
from annotation.errors import ConflictError, InputError
from annotation.imports.allowance import one_look
from annotation.imports.check import refuse_duplication
from annotation.imports.columns import (
    IMPORT,
    Column,
    ColumnMapping,
    Proposal,
    answer_columns,
    previous_id_column,
    propose,
    read_columns,
)
from annotation.imports.encodings import encoding_of
from annotation.imports.faults import fault
from annotation.imports.format_choice import SAMPLE, format_for
from annotation.imports.formats import registry
from annotation.imports.formats.base import Image, Importer, Problem, Record, Row
from annotation.imports.formats.delimited import Delimited
from annotation.imports.formats.delivered import columns_of
from annotation.imports.formats.excel import Excel
from annotation.imports.formats.hugging_face import HuggingFace
from annotation.imports.formats.images import thumbnail
from annotation.imports.formats.lines import COLUMN as TEXT, PlainLines
from annotation.imports.formats.reserved import RESPONSES
from annotation.imports.formats.zip_texts import ZipTexts
from annotation.imports.limits import MAX_COLUMNS, SAMPLE_CHARACTERS
from annotation.imports.reading import Reading, reading
from annotation.jobs import jobs
from annotation.models import Job, Project, StoredFile, User
from annotation.ports import routing_port
from annotation.words import for_reader

# So many entries of an archive are opened in search of a first image.
IMAGE_SEARCH = 1_000
# So many sheets of a workbook are tried until one can be read.
SHEETS_TRIED = 5


@dataclass(frozen=True)
class Preview:
    """The first rows of a file; `problems` are pairs (where, message) met among them.

    `format` is the importer's name, `format_title` what people call it; of a workbook `format` names the
    sheet, which is one of `sheets`. `labels` counts those that people gave the first rows elsewhere.
    `more_columns` are there beside `columns`, which are as many as a project has at most.
    `proposal` says why `suggestion` is what it is; None for images. `models` are pairs of columns
    (answers, how sure, or "") that read like a model of which a source can be made. `reserved` are the
    columns with what people and models of another program said. `encoding` is that of a text that does
    not say it itself; `thumbnails` are data addresses of the first images.
    """

    format: str
    format_title: str
    columns: list[str]
    rows: list[dict[str, str]]
    problems: list[tuple[str, str]]
    suggestion: ColumnMapping
    holds_images: bool
    details: list[Column]
    proposal: Proposal | None
    models: list[tuple[str, str]]
    sheets: tuple[str, ...] = ()
    labels: int = 0
    reserved: frozenset[str] = frozenset()
    more_columns: int = 0
    encoding: str = ""
    thumbnails: list[str] = field(default_factory=list)

    @property
    def may_keep_labels(self) -> bool:
        """Whether people's labels come with the rows, or with some behind the first ones."""
        return bool(self.labels or columns_of(self.columns))


@one_look()
def preview(*, stored_file: StoredFile, rows: int = 5, format_name: str = "", encoding: str = "") -> Preview:
    """Look at the beginning of a file, read as `format_name`, else as what it seems to be.

    Raises EncodingNeededError where it is a text whose `encoding` somebody has to say; InputError where it
    cannot be read at all, or where another way to read it has columns that nobody
    who labels may see: in this one their values would stand under other names.
    """
    if stored_file.media_type == MODEL_OUTPUT:
        words = gettext_noop(
            "This file was sent as predictions, and answers of it are stored, which nobody sees before the "
            "analysis. Keep the items in a file of their own, without the answers of the model, and import "
            "that."
        )
        raise fault(words, where="file")
    encoding = encoding_of(stored_file, encoding)
    importer = registry.get(format_for(stored_file, format_name, encoding))
    if isinstance(importer, Delimited):
        _refuse_web_page(stored_file)
    project = stored_file.project
    sheets: list[str] = []
    with reading(stored_file, encoding=encoding, waiting=True) as opened:
        readers: list[Importer] = [importer]
        if isinstance(importer, Excel):
            importer = importer.in_a_request()
            sheets = importer.sheets(opened.file, opened.name)
            # An empty sheet, or one of notes, may come first.
            readers = [importer]
            if not importer.sheet:
                readers = [replace(importer, sheet=sheet) for sheet in sheets[:SHEETS_TRIED]]
        importer, found = _first_readable(readers, opened, rows)
    sample, problems, labels, answers, places, images = found
    if not sample and not problems:
        raise fault(gettext_noop("The file has a header but no rows."), where=stored_file.original_name)
    # A project has no more; rows of JSON may each have others.
    named = list(dict.fromkeys(name for row in sample for name in row))
    columns = named[:MAX_COLUMNS]
    reserved = answer_columns(project, columns) | answers
    details = read_columns(columns, sample, project, reserved | routing_port().model_columns(project=project))
    proposal = (
        None if importer.holds_images else propose(details, sample, places, previous_id_column(project))
    )
    return Preview(
        format=importer.name,
        format_title=importer.title,
        columns=columns,
        rows=sample[:rows],
        problems=problems,
        suggestion=ColumnMapping(proposal.id_column, proposal.text_column) if proposal else ColumnMapping(),
        holds_images=importer.holds_images,
        details=details,
        proposal=proposal,
        models=routing_port().models_in(project=project, columns=columns, rows=sample),
        sheets=tuple(sheets),
        labels=labels,
        reserved=reserved,
        more_columns=len(named) - len(columns),
        encoding=encoding,
        thumbnails=[thumbnail(image) for image in images],
    )


_Sample = tuple[list[dict[str, str]], list[tuple[str, str]], int, frozenset[str], list[str], list[Image]]


def _refuse_web_page(stored_file: StoredFile) -> None:
    """Raises InputError where what is to be a table is a page as a browser saved it."""
    with open_file(stored_file) as file:
        head = file.read(200).removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        words = gettext_noop(
            "This seems to be a web page, and no table. Get the file that the page leads to, and import that."
        )
        raise fault(words, where=stored_file.original_name)


def _first_readable(readers: Sequence[Importer], opened: Reading, rows: int) -> tuple[Importer, _Sample]:
    """The first of `readers` that can read the file, and what it finds. Raises the first one's InputError."""
    refusal: InputError | None = None
    for importer in readers:
        try:
            return importer, _first_rows(importer, opened, rows)
        except InputError as error:
            refusal = refusal or error
    assert refusal is not None  # noqa: S101 - a workbook without a sheet is refused before
    raise refusal


def _first_rows(importer: Importer, opened: Reading, rows: int) -> _Sample:
    """Columns of the first rows, pairs (where, message) of problems among them, how many labels they brought,
    in which columns, where the rows are, and their images.
    """
    sample: list[dict[str, str]] = []
    places: list[str] = []
    problems = []
    labels = 0
    answers: set[str] = set()
    images: list[Image] = []
    records = opened.records(importer)
    characters = 0
    for record in islice(records, rows if importer.holds_images else max(rows, SAMPLE)):
        if isinstance(record, Problem):
            problems.append((for_reader(record.where), for_reader(record.message)))
        else:
            sample.append(record.columns)
            places.append(for_reader(record.where))
            images += [record.image] if record.image else []
            labels += len(record.labels)
            answers.update(record.answers)
            characters += sum(map(len, record.columns.values()))
            if characters > SAMPLE_CHARACTERS:
                break
    if importer.holds_images and not sample:
        for row in _first_image(records, problems, opened.name):
            sample.append(row.columns)
            images += [row.image] if row.image else []
    return sample, problems, labels, frozenset(answers), places, images


def check_mapping(*, project: Project, seen: Preview, mapping: ColumnMapping) -> None:
    """Raises InputError whose `where` is the mapping's field: `text_column` for all that people read."""
    if seen.holds_images and mapping.shown:
        words = gettext_noop(
            "This file holds images, and no column of them is read: leave the text column out. Where the "
            "project is about texts, import the images into a project of their own."
        )
        raise fault(words, where="text_column")
    if not seen.holds_images and not mapping.shown:
        raise fault(gettext_noop("Choose the column that people read."), where="text_column")
    if len(set(mapping.shown)) < len(mapping.shown):
        raise fault(gettext_noop("Show each column once."), where="text_column")
    if len(mapping.shown) > limits.ITEM_FIELDS:
        words = gettext_noop("At most %(most)s columns can be shown.")
        raise fault(words, where="text_column", most=limits.ITEM_FIELDS)
    named = [("id_column", mapping.id_column), *(("text_column", name) for name in mapping.shown)]
    for where, name in named:
        if name and seen.columns and name not in seen.columns:
            words = _("The file has no column “%(name)s”; it has %(columns)s.") % {
                "name": name,
                "columns": ", ".join(seen.columns),
            }
            raise InputError(f"{words} {_other_sheets(seen)}".strip(), where=where)
    secret = routing_port().model_columns(project=project) - seen.reserved
    for where, name in named:
        if name in seen.reserved:
            words = gettext_noop(
                "The column “%(name)s” holds what people and models of another program said, and whoever "
                "labels must not see that. Choose another column."
            )
            raise fault(words, where=where, name=name)
        if name in secret:
            words = gettext_noop(
                "A source of this project reads its answers from the column “%(name)s”, and whoever labels "
                "must not see them. Choose another column, or change the source first."
            )
            raise fault(words, where=where, name=name)


def _with_only_text(mapping: ColumnMapping, seen: Preview) -> ColumnMapping:
    """Where a file has no columns of its own, it need not be said which one people read."""
    if mapping.shown or seen.format not in (PlainLines.name, ZipTexts.name):
        return mapping
    return replace(mapping, text_column=TEXT)


def _other_sheets(seen: Preview) -> str:
    """Of a workbook which sheet was read, and how to read another."""
    if len(seen.sheets) < 2:
        return ""
    others = [name for sheet in seen.sheets if (name := Excel(sheet).name) != seen.format]
    words = _("Read as the format “%(format)s”; the other sheets of the workbook are %(others)s.")
    return words % {"format": seen.format, "others": ", ".join(f"“{name}”" for name in others)}


@one_look()
def start_import(
    *,
    project: Project,
    user: User,
    stored_file: StoredFile,
    mapping: ColumnMapping,
    format_name: str = "",
    text_format: str = "",
    keep_labels: bool = False,
    add_duplicates: bool = False,
    encoding: str = "",
    fetched_by: Job | None = None,
    fetched_key: str = "",
) -> Job:
    """Check the mapping and start the job that adds the file's rows as items.

    `text_format` is how the texts of the whole project are shown from now on; "" leaves it as it is.
    `keep_labels`: what people said of the items in the program that wrote the file becomes labels.
    `add_duplicates`: rows whose content is in the project under other names are added all the same.
    `encoding` is that of a text that is neither UTF-8 nor marked as UTF-16. `fetched_by` is the job that
    brought the file, which knows its import again by that; `fetched_key` says which one, of several.

    Raises InputError whose `where` is the mapping's field, or the file; ConflictError while another import
    into the project is under way, where a run rests on how the texts are shown, or where items would be there
    twice.
    """
    if stored_file.project_id != project.pk:
        raise fault(gettext_noop("This file belongs to another project."), where="file")
    if text_format and text_format not in Project.TextFormat.values:
        raise fault(gettext_noop("Texts are plain or Markdown."), where="text_format")
    seen = preview(stored_file=stored_file, rows=1, format_name=format_name, encoding=encoding)
    mapping = _with_only_text(mapping, seen)
    check_mapping(project=project, seen=seen, mapping=mapping)
    if keep_labels:
        _refuse_no_labels(seen)
    if not add_duplicates:
        refuse_duplication(
            stored_file=stored_file, mapping=mapping, format_name=seen.format, encoding=seen.encoding
        )
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
                **({"encoding": seen.encoding} if seen.encoding else {}),
                **({} if fetched_by is None else {"fetch": fetched_by.pk}),
                **({"key": fetched_key} if fetched_key else {}),
            },
            # One at a time: items get their places in the project one after the other.
            unique_key=IMPORT,
            user=user,
        )
        data: dict[str, object] = {"file": stored_file.original_name, "sha256": stored_file.sha256}
        data |= {"text_format": text_format} if text_format else {}
        data |= {"encoding": seen.encoding} if seen.encoding else {}
        data |= {"keep_labels": True} if keep_labels else {}
        data |= {"add_duplicates": True} if add_duplicates else {}
        audit.record(project=project, actor=user, action="import.started", target=f"job:{job.pk}", data=data)
    return job


def _refuse_no_labels(seen: Preview) -> None:
    """Raises InputError where the file's format does not say what people labelled."""
    importer = registry.get(seen.format)
    of_argilla = isinstance(importer, HuggingFace) and any(name.endswith(RESPONSES) for name in seen.columns)
    if not (seen.may_keep_labels or importer.holds_labels or of_argilla):
        words = gettext_noop(
            "A file of this format (%(format)s) does not say which of its columns are labels that people "
            "gave: none would be kept. Labels are kept of %(formats)s. Import it without keeping labels: its "
            "columns come along and are delivered."
        )
        raise fault(words, where="keep_labels", format=seen.format, formats=registry.formats_with_labels())


def may_change_text_format(project: Project) -> bool:
    """Not once people may have labelled: what they saw stays as it was."""
    return not project.work_batches.filter(imported_by__isnull=True).exists()


def _set_text_format(project: Project, text_format: str) -> None:
    if not may_change_text_format(project):
        raise ConflictError(
            _("People have been asked to label: how the texts are shown stays as it is."),
            where="text_format",
            code="wording_in_use",
        )
    project.text_format = text_format
    project.save(update_fields=["text_format"])


def _first_image(records: Iterator[Record], problems: list[tuple[str, str]], name: str) -> list[Row]:
    """The first image that follows: an archive may begin with a text about itself.

    Raises InputError where none does. Of an archive whose images come very late that is left to the import.
    """
    searched = 0
    for record in islice(records, IMAGE_SEARCH):
        if not isinstance(record, Problem):
            return [record]
        searched += 1
    if searched == IMAGE_SEARCH:
        return []
    words = _("There is no image in this zip archive that can be read.")
    raise InputError(words + (" {}: {}".format(*problems[0]) if problems else ""), where=name)
