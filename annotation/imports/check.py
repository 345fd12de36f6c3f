"""What an import would do, told before it is started. Nothing is stored."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from django.utils.translation import gettext as _, ngettext

from annotation.errors import ConflictError
from annotation.imports.columns import ColumnMapping
from annotation.imports.formats import registry
from annotation.imports.formats.base import Problem, Record
from annotation.imports.limits import SAMPLE_CHARACTERS
from annotation.imports.reading import reading
from annotation.imports.rows import (
    Candidate,
    RowMessage,
    candidate_of,
    classify_rows,
    known_items,
    note_uncomputed,
)
from annotation.models import Item, StoredFile
from annotation.words import for_reader

# A file up to so many bytes is read to its end, or so many rows, which may be short; of a larger one, and of
# images, only the first rows.
QUICK_BYTES = 4 * 1024**2
QUICK_ROWS = 50_000
FIRST_ROWS = 10_000
FIRST_IMAGES = 50
CHUNK = 1_000
SHOWN_PROBLEMS = 5


@dataclass
class Check:
    """Counts as an import has them; `whole`: they are of the whole file, else of its first rows. `again` are
    new ones with the content of an item that is in the project already. `uncomputed`: by column, cells that
    would be empty as their formula was never computed.

    `first` is the first row that can become an item, as an Item that is not stored.
    """

    rows: int = 0
    new: int = 0
    already_there: int = 0
    duplicates: int = 0
    unusable: int = 0
    again: int = 0
    whole: bool = True
    problems: list[tuple[str, str]] = field(default_factory=list)
    uncomputed: dict[str, int] = field(default_factory=dict)
    first: Item | None = None


def check_import(
    *, stored_file: StoredFile, mapping: ColumnMapping, format_name: str, encoding: str = ""
) -> Check:
    """Raises InputError where the file cannot be read on; the import would say the same."""
    importer = registry.get(format_name)
    if importer.holds_images:
        most = FIRST_IMAGES
    else:
        most = FIRST_ROWS if stored_file.size > QUICK_BYTES else QUICK_ROWS
    check = Check()
    with reading(stored_file, encoding=encoding, waiting=True) as opened:
        records = opened.records(importer)
        _add(check, stored_file, mapping, islice(records, most))
        check.whole = next(records, None) is None
    return check


def _add(check: Check, stored_file: StoredFile, mapping: ColumnMapping, records: Iterable[Record]) -> None:
    project = stored_file.project
    known: dict[str, str] = {}
    twins: dict[str, str] = {}
    places: dict[str, str] = {}
    columns = dict.fromkeys(project.columns)
    for chunk in _chunks(records):
        made = [candidate_of(check.rows + place, record, mapping) for place, record in enumerate(chunk, 1)]
        check.rows += len(made)
        candidates = [entry for entry in made if isinstance(entry, Candidate)]
        stored, twins_stored = known_items(project, candidates)
        known, twins = stored | known, twins_stored | twins
        found = classify_rows(
            candidates, known=known, twins=twins, columns=columns, mapping=mapping, places=places
        )
        check.new += len(found.new)
        check.already_there += found.already_there
        check.duplicates += len(found.notes)
        note_uncomputed(found.new, check.uncomputed)
        check.again += sum(candidate.content_hash in twins_stored for candidate in found.new)
        unusable = sorted([*found.problems, *(entry for entry in made if isinstance(entry, RowMessage))])
        check.unusable += len(unusable)
        room = max(SHOWN_PROBLEMS - len(check.problems), 0)
        check.problems += [(for_reader(entry.where), for_reader(entry.message)) for entry in unusable[:room]]
        if check.first is None and candidates:
            first = candidates[0]
            check.first = Item(project=project, text=first.text, fields=first.fields)


def _chunks(records: Iterable[Record]) -> Iterator[list[Record]]:
    chunk: list[Record] = []
    characters = 0
    for record in records:
        chunk.append(record)
        characters += 0 if isinstance(record, Problem) else sum(map(len, record.columns.values()))
        if len(chunk) >= CHUNK or characters >= SAMPLE_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


# --- Whether it would add items once more that are there already, under other names -------------------------

# Where items have no id of their own, so many rows are the least, and one in so many, from which it is asked:
# short texts repeat themselves.
LEAST_ROWS = 2
ONE_IN = 10
FIELD = "add_duplicates"


def duplication_warning(
    *, stored_file: StoredFile, mapping: ColumnMapping, format_name: str, check: Check
) -> str:
    """Why it should be asked first, in a sentence; "" where nothing is doubled, as far as `check` looked."""
    if _named_otherwise(stored_file, mapping, format_name):
        return _(
            "This file was imported before, with another column as the name of the item: all its rows would "
            "be in the project twice."
        )
    if mapping.id_column or check.again < max(LEAST_ROWS, -(-check.rows // ONE_IN)):
        return ""
    words = ngettext(
        "Of %(rows)s row that was looked at %(again)s is in the project already, under another name.",
        "Of %(rows)s rows that were looked at %(again)s are in the project already, under other names.",
        check.rows,
    )
    words += " " + _("Choose a column that names the items, or leave out these rows.")
    return words % {"rows": f"{check.rows:,}", "again": f"{check.again:,}"}


def refuse_duplication(
    *, stored_file: StoredFile, mapping: ColumnMapping, format_name: str, encoding: str = ""
) -> None:
    """Raises ConflictError where the import would double items, as far as a quick look at the file shows."""
    if not stored_file.project.items.exists():
        return
    check = Check()
    if not mapping.id_column:
        check = check_import(
            stored_file=stored_file, mapping=mapping, format_name=format_name, encoding=encoding
        )
    if reason := duplication_warning(
        stored_file=stored_file, mapping=mapping, format_name=format_name, check=check
    ):
        words = _("To add them all the same, say so (add_duplicates).")
        raise ConflictError(f"{reason} {words}", where=FIELD, code="would_double_items")


def _named_otherwise(stored: StoredFile, mapping: ColumnMapping, format_name: str) -> bool:
    """Whether items are there of an import of the same bytes that took their names from elsewhere."""
    imports = stored.project.jobs.filter(kind="import", params__file=stored.pk, params__format=format_name)
    return any(
        result.get("positions") and params["id_column"] != mapping.id_column
        for params, result in imports.values_list("params", "result")
    )
