"""From a row of a file to what can become an item. Nothing is stored here."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import connection
from django.utils.translation import gettext as _, gettext_noop

from annotation import failures
from annotation.common.files import Content
from annotation.failures import Failure
from annotation.imports.columns import ColumnMapping
from annotation.imports.formats.base import (
    EMPTY_IN_ITEM,
    UNCOMPUTED,
    GivenLabel,
    Image,
    Problem,
    Record,
)
from annotation.imports.limits import MAX_COLUMNS
from annotation.jobs.places import within
from annotation.models import Item, Job, JobProblem, Project
from annotation.words import Words

# --- What makes two items the same, and what several columns look like as one text --------------------------

Fields = Sequence[tuple[str, str]]
"""Name and value of each column that is shown, in their order."""


def text_hash(text: str) -> str:
    """SHA-256 (hexadecimal) of what people see of a text item. An image item has the hash of its file."""
    return hashlib.sha256(text.encode()).hexdigest()


def fields_text(fields: Fields) -> str:
    """The fields one below the other: what models read, and what is searched."""
    return "\n".join(f"{name}: {value}" for name, value in fields)


def fields_hash(fields: Fields) -> str:
    """As `text_hash`, of an item with several fields: their names and their order are seen, too.

    No text has a NUL, so that no text has the same hash.
    """
    return text_hash("fields\0" + json.dumps([[name, value] for name, value in fields]))


# --- Rows ---------------------------------------------------------------------------------------------------

MAX_ID = Item._meta.get_field("external_id").max_length or 255
# So much of a cell is repeated in what is said about it.
SHOWN = 60


class RowMessage(NamedTuple):
    """What is said about a row: `number` is its place among the records of the file."""

    number: int
    where: str
    message: str


@dataclass(slots=True)
class Candidate:
    """A row that can become an item. `uncomputed` are its columns that are empty as their formula was never
    computed.
    """

    number: int
    where: str
    external_id: str
    columns: dict[str, str]
    content_hash: str
    text: str = ""
    fields: list[tuple[str, str]] = field(default_factory=list)
    image: Content | None = None
    media_type: str = ""
    typed: dict[str, Any] | None = None
    labels: tuple[GivenLabel, ...] = ()
    answers: tuple[str, ...] = ()
    left_out: int = 0
    uncomputed: frozenset[str] = frozenset()


@dataclass
class Sorted:
    """What becomes of some rows. `notes` are about rows that are added all the same."""

    new: list[Candidate] = field(default_factory=list)
    already_there: int = 0
    problems: list[RowMessage] = field(default_factory=list)
    notes: list[RowMessage] = field(default_factory=list)


def candidate_of(
    number: int, record: Record, mapping: ColumnMapping, keep: Callable[[Image], Content] | None = None
) -> Candidate | RowMessage:
    """The item that a record makes; where it makes none, where that lies and what is wrong and to do.

    `number` is the record's place in the file. `keep` puts an image into the storage; without it nothing is
    kept, and the candidate has no image.
    """
    if isinstance(record, Problem):
        return RowMessage(number, record.where, record.message)
    row = record

    def wrong_at(column: str, message: str) -> RowMessage:
        return RowMessage(number, at_column(row.where, column), message)

    external_id = row.name
    if column := mapping.id_column:
        if column not in row.columns:
            return wrong_at(column, _missing())
        external_id = row.columns[column].strip()
        if column in row.uncomputed:
            return wrong_at(column, Words(UNCOMPUTED))
        if not external_id:
            return wrong_at(column, Words(gettext_noop("It is empty, so the item has no id. Fill it in.")))
    if len(external_id) > MAX_ID:
        words = gettext_noop(
            "“%(value)s” has %(length)s characters; an item's id has at most %(most)s. Shorten it, or choose "
            "another column."
        )
        return wrong_at(column, Words(words, value=_shown(external_id), length=len(external_id), most=MAX_ID))
    if "\0" in external_id:
        return wrong_at(column, Words(gettext_noop("The item's id contains a NUL character. Take it out.")))
    if row.image is not None:
        image = keep(row.image) if keep else None
        digest = image.sha256 if image else hashlib.sha256(row.image.content).hexdigest()
        return Candidate(
            number,
            row.where,
            external_id,
            row.columns,
            digest,
            image=image,
            media_type=row.image.media_type,
            typed=row.typed,
        )
    if mapping.field_columns:
        fields = [(name, row.columns.get(name, "")) for name in mapping.field_columns]
        if not any(value.strip() for _name, value in fields):
            if empty := next((name for name in mapping.field_columns if name in row.uncomputed), ""):
                return wrong_at(empty, Words(UNCOMPUTED))
            return wrong_at(
                "", Words(gettext_noop("All columns that people see are empty: there is nothing to label."))
            )
        text, digest = fields_text(fields), fields_hash(fields)
        made = Candidate(number, row.where, external_id, row.columns, digest, text, fields, typed=row.typed)
        made.uncomputed = row.uncomputed
        return made
    column = mapping.text_column
    if column not in row.columns:
        return wrong_at(column, _missing())
    text = row.columns[column]
    if column in row.uncomputed:
        return wrong_at(column, Words(UNCOMPUTED))
    if not text.strip():
        return wrong_at(
            column,
            Words(gettext_noop("It is empty: there is nothing to label. Fill it in, or drop the row.")),
        )
    made = Candidate(number, row.where, external_id, row.columns, text_hash(text), text, typed=row.typed)
    made.uncomputed = row.uncomputed
    return made


def classify_rows(
    candidates: Iterable[Candidate],
    *,
    known: dict[str, str],
    twins: dict[str, str],
    columns: dict[str, None],
    mapping: ColumnMapping,
    places: dict[str, str] | None = None,
) -> Sorted:
    """Tell new rows from those that are there and those that cannot be added.

    `known` has the content hash of each id that is there, `twins` an id for each content hash, `columns` the
    names of the project's columns, `places` says where the ids are in this file, as far as it was read: all
    grow with what is new.
    """
    places = {} if places is None else places
    found = Sorted()
    for candidate in candidates:
        if (stored_hash := known.get(candidate.external_id)) is not None:
            if stored_hash == candidate.content_hash:
                found.already_there += 1
            else:
                where = at_column(candidate.where, mapping.id_column)
                message = _clash(candidate.external_id, places.get(candidate.external_id, ""))
                found.problems.append(RowMessage(candidate.number, where, message))
            continue
        if not columns.keys() >= candidate.columns.keys():
            if len(columns | dict.fromkeys(candidate.columns)) > MAX_COLUMNS:
                words = gettext_noop(
                    "With this row's columns the project would have more than %(most)s columns. Drop some."
                )
                message = Words(words, most=MAX_COLUMNS)
                found.problems.append(RowMessage(candidate.number, candidate.where, message))
                continue
            columns |= dict.fromkeys(candidate.columns)
        known[candidate.external_id] = candidate.content_hash
        places[candidate.external_id] = candidate.where
        twin = twins.setdefault(candidate.content_hash, candidate.external_id)
        if twin != candidate.external_id:
            words = gettext_noop("Added, but it has the same content as the item “%(name)s”.")
            message = Words(words, name=_shown(twin))
            found.notes.append(RowMessage(candidate.number, candidate.where, message))
        found.new.append(candidate)
    return found


def note_uncomputed(new: Iterable[Candidate], counted: dict[str, int]) -> list[RowMessage]:
    """Count, by column, the cells of items that are empty as their formula was never computed. Of each column
    that was not counted before a note of the first one: a whole column would leave no room for other notes.
    """
    notes = []
    for candidate in new:
        for column in sorted(candidate.uncomputed):
            if column not in counted:
                where = at_column(candidate.where, column)
                notes.append(RowMessage(candidate.number, where, Words(EMPTY_IN_ITEM)))
            counted[column] = counted.get(column, 0) + 1
    return notes


def _clash(external_id: str, place: str) -> Words:
    """`place` is where the same id is in the file, "" for an item that was there before."""
    if place:
        words = gettext_noop(
            "“%(name)s” is the id of %(place)s of this file, too, which has other content. Give one of them "
            "another id."
        )
        return Words(words, name=_shown(external_id), place=place)
    words = gettext_noop(
        "There is an item “%(name)s” with other content already. Items do not change: give this one another "
        "id."
    )
    return Words(words, name=_shown(external_id))


def known_items(project: Project, candidates: list[Candidate]) -> tuple[dict[str, str], dict[str, str]]:
    """Of the project's items: id -> content hash, and content hash -> an id, as far as these rows ask.

    Each value is looked up in its index by itself, whatever the database thinks of a table that is growing:
    it has counted none of the new rows, and would read all of them. One id is enough of a text that is there
    a million times; as bounds, not as equality, the database does not hope to meet it on its way.
    """
    ids = [candidate.external_id for candidate in candidates]
    hashes = list({candidate.content_hash for candidate in candidates})
    return (
        _looked_up(project, ids, "content_hash", "external_id = h.value"),
        _looked_up(
            project,
            hashes,
            "external_id",
            "content_hash >= h.value AND content_hash <= h.value ORDER BY content_hash LIMIT 1",
        ),
    )


def _looked_up(project: Project, values: list[str], column: str, where: str) -> dict[str, str]:
    """What `column` holds for each of the values that an item has."""
    given: str | list[str] = values
    source = "unnest(%s::text[]) AS h (value)"
    if connection.vendor != "postgresql":
        given = json.dumps(values)
        source = "json_each(%s) AS h"
    # All words are from above.
    found = f"SELECT {column} FROM annotation_item WHERE project_id = %s AND {where}"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT h.value, ({found}) FROM {source}", [project.pk, given])  # noqa: S608
        return {value: kept for value, kept in cursor.fetchall() if kept is not None}


def _missing() -> Words:
    return Words(gettext_noop("This row has no such column. Add it, or drop the row."))


def at_column(where: str, column: str) -> str:
    """Where something is: the line, and of a table the column."""
    if not column:
        return where
    words = gettext_noop("%(line)s, column “%(column)s”")
    return within(where, words, of_column=_shown(column), line=where, column=_shown(column))


def _shown(value: str) -> str:
    return value if len(value) <= SHOWN else f"{value[:SHOWN]}…"


def none_usable(code: str, words: str) -> Failure:
    """The failure of a job that could use no row of its file: the template `words` says so, and the first
    problem, if there is one, says why.
    """

    def sentence(params: failures.Params) -> str:
        told = _(words) % params
        return f"{told} {_('The first one: %(problem)s') % params}" if params["problem"] else told

    return failures.register(code, sentence)


def first_problem(job: Job) -> failures.Part | str:
    """As a parameter of that failure; "" where there is none."""
    problem = JobProblem.objects.filter(job=job).first()
    return problem.part if problem else ""
