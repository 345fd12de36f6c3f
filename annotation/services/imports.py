"""Bringing data into a project: a look at the file, then a job that reads it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from django.db import transaction
from django.utils.translation import gettext as _

from annotation import jobs
from annotation.errors import ConflictError, InputError
from annotation.hooks import model_columns
from annotation.importers import registry
from annotation.importers.base import Problem, Record
from annotation.importers.detect import detect
from annotation.models import Job, Project, StoredFile, User
from annotation.services import audit
from annotation.services.files import open_file
from annotation.services.import_columns import Column, Proposal, propose, read_columns

IMPORT = "import"
# So many rows are looked at to learn the columns; of an archive of images only those that are shown.
SAMPLE = 200
# So many entries of an archive are opened in search of a first image.
IMAGE_SEARCH = 1_000
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

    `format` is the importer's name, `format_title` what people call it. `proposal` says why `suggestion` is
    what it is; None for images.
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


def preview(*, stored_file: StoredFile, rows: int = 5, format_name: str = "") -> Preview:
    """Look at the beginning of a file, read as `format_name`, else as what it seems to be.

    Raises InputError where it cannot be read at all.
    """
    importer = registry.get(format_name or detect(stored_file))
    project = stored_file.project
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
        raise InputError(_("The file has a header but no rows."), where=stored_file.original_name)
    columns = list(dict.fromkeys(name for row in sample for name in row))
    details = read_columns(columns, sample, project, frozenset(model_columns(project)))
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
    )


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
            raise InputError(words, where=field)
    if secret := model_columns(project) & set(mapping.shown):
        words = _(
            "A source of this project reads its answers from the column “%(name)s”, and whoever labels must "
            "not see them. Choose another column, or change the source first."
        ) % {"name": min(secret)}
        raise InputError(words, where="text_column")


def start_import(
    *,
    project: Project,
    user: User,
    stored_file: StoredFile,
    mapping: Mapping,
    format_name: str = "",
    text_format: str = "",
) -> Job:
    """Check the mapping and start the job that adds the file's rows as items.

    `text_format` is how the texts of the whole project are shown from now on; "" leaves it as it is.

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
            },
            # One at a time: items get their places in the project one after the other.
            unique_key=IMPORT,
            user=user,
        )
        data = {"file": stored_file.original_name, "sha256": stored_file.sha256}
        data |= {"text_format": text_format} if text_format else {}
        audit.record(project=project, actor=user, action="import.started", target=f"job:{job.pk}", data=data)
    return job


def may_change_text_format(project: Project) -> bool:
    """Not once people may have labelled: what they saw stays as it was."""
    return not project.work_batches.exists()


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
