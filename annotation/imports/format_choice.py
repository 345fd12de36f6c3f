"""In which format a stored file may be read.

Columns are hidden by their names, and the format decides the names: read as plain lines, a table shows
each row whole, with the answers of models in it. So a file that has such columns in one format is read in no
other.
"""

from collections.abc import Iterator
from itertools import islice

from django.utils.translation import gettext_noop

from annotation.errors import InputError
from annotation.imports.columns import answer_columns
from annotation.imports.faults import fault
from annotation.imports.formats import registry
from annotation.imports.formats.base import Row
from annotation.imports.formats.delimited import Delimited
from annotation.imports.formats.detect import detect
from annotation.imports.formats.excel import Excel
from annotation.imports.formats.json_list import JsonList
from annotation.imports.formats.jsonl import JsonLines
from annotation.imports.limits import MOST_NAMES, ImportLimitError
from annotation.imports.reading import reading
from annotation.models import StoredFile
from annotation.ports import routing_port

# So many rows are looked at first to learn the columns; of an archive of images only those that are shown.
SAMPLE = 200
FIRST_IMAGES = 5


def format_for(stored: StoredFile, wanted: str, encoding: str = "") -> str:
    """The format to read the file in: `wanted`, or for "" what it seems to be, or was imported as. `encoding`
    is what `encoding_of` says.

    Raises InputError where it is in no format, or where `wanted` is not open.
    """
    if wanted:
        registry.get(wanted)
    guess, refusal = "", None
    try:
        guess = detect(stored, registry.IMPORTERS.values(), encoding)
    except InputError as error:
        refusal = error
    known = _formats(stored, guess)
    chosen = wanted or guess
    sheets = all(isinstance(registry.get(name), Excel) for name in (*known, *filter(None, [chosen])))
    # Another sheet is another table.
    if not sheets and not set(known) <= {chosen}:
        secrets = {
            name: secret for name in known if name != wanted and (secret := _secret(stored, name, encoding))
        }
        chosen = wanted or next(iter(secrets), guess)
        for name, secret in secrets.items():
            chosen = _in_place_of(stored, chosen, name, secret, encoding)
    if not chosen and refusal is not None:
        raise refusal
    return chosen


def _formats(stored: StoredFile, guess: str) -> list[str]:
    """What the file seems to be, and in what it was imported."""
    imports = stored.project.jobs.filter(kind="import", params__file=stored.pk).order_by("pk")
    names = imports.values_list("params__format", flat=True)
    return list(dict.fromkeys([*filter(None, [guess]), *names]))


def _secret(stored: StoredFile, name: str, encoding: str) -> frozenset[str]:
    """Columns of the file in this format that nobody who labels may see. Where its rows have columns each of
    their own, all of them are read before there is none.
    """
    secret: frozenset[str] = frozenset()
    for most in (SAMPLE, None) if isinstance(registry.get(name), JsonLines | JsonList) else (SAMPLE,):
        columns, answers = _columns(stored, name, encoding, most)
        of_models = routing_port().model_columns(project=stored.project)
        hidden = answer_columns(stored.project, columns) | of_models
        if secret := answers | (columns & hidden):
            break
    return secret


def _in_place_of(stored: StoredFile, chosen: str, name: str, secret: frozenset[str], encoding: str) -> str:
    """The format for a file that is to be read as `chosen`, and has columns to hide as `name`. Raises
    InputError where what is in them would be shown.
    """
    asked, other = registry.get(chosen), registry.get(name)
    if isinstance(asked, JsonLines) and isinstance(other, JsonLines):
        return name if other.holds_labels else chosen  # the same columns, of which it hides more
    if chosen == name:
        return chosen
    tables = isinstance(asked, Delimited) and isinstance(other, Delimited)
    if tables and _columns(stored, chosen, encoding) == _columns(stored, name, encoding):
        return chosen
    words = gettext_noop(
        "Read as the format “%(format)s” this file has the column “%(column)s”, which whoever labels must "
        "not see. In another format it would stand among the rest: leave the format as it is."
    )
    raise fault(words, where="format", format=name, column=min(secret))


def _columns(
    stored: StoredFile, name: str, encoding: str, most: int | None = SAMPLE
) -> tuple[frozenset[str], frozenset[str]]:
    """Columns of the first rows, and those of them with answers; none of what cannot be read."""
    importer = registry.get(name)
    columns: set[str] = set()
    answers: set[str] = set()
    with reading(stored, encoding=encoding, waiting=True) as opened:
        records = opened.records(importer)
        for row in _rows(islice(records, FIRST_IMAGES if importer.holds_images else most)):
            columns.update(row.columns)
            answers.update(row.answers)
            if len(columns) > MOST_NAMES:
                words = gettext_noop(
                    "The rows have more than %(most)s different columns. Give them the same ones."
                )
                raise fault(words, where=row.where, raised_as=ImportLimitError, most=f"{MOST_NAMES:,}")
    return frozenset(columns), frozenset(answers)


def _rows(records: Iterator[object]) -> Iterator[Row]:
    try:
        yield from (record for record in records if isinstance(record, Row))
    except ImportLimitError:
        raise  # what comes behind it has not been looked at
    except InputError:
        return
