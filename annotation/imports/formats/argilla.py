"""Argilla: the folder that `Dataset.to_disk` writes, in a zip archive.

Fields and metadata become columns under their names. What a model suggested stands in three columns for each
question, as in `records.to_datasets`, so that a recorded source can be made of them; people's responses are
kept whole in columns, and are given labels where they answer one question.
"""

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.imports.faults import fault, said_by
from annotation.imports.formats.archives import content_of, file_in, open_archive
from annotation.imports.formats.base import (
    Entries,
    GivenLabel,
    Problem,
    ReadThrough,
    Record,
    Row,
    row_or_problem,
)
from annotation.imports.formats.json_list import numbered_entries
from annotation.imports.formats.jsonl import cells_of, decoded
from annotation.imports.formats.reserved import AGENT, RESPONSES, SCORE, STATUS, SUGGESTION, USERS
from annotation.jobs.places import place_of_record
from annotation.words import Words

TOOL = "Argilla"
RECORDS = "records.json"
# A draft, or a response that was discarded, is no answer; where nothing is said of it, nobody knows.
SUBMITTED, NO_ANSWER = "submitted", ("draft", "discarded", "pending")
# Of a record itself, beside what it holds.
OWN = ("id", "status", "_server_id", "vectors")


class Argilla(ReadThrough):
    name = "argilla"
    title = gettext_noop("Argilla data set")
    holds_images = False
    holds_labels = True

    def claims_archive(self, archive: zipfile.ZipFile) -> bool:
        return is_argilla(archive)

    def _entries(self, file: IO[bytes], file_name: str) -> Entries:
        longest = settings.HYPAC_MAX_CELL_CHARACTERS
        archive = open_archive(file)
        info = next((info for path, info in content_of(archive).items() if _is_records(path)), None)
        if info is None:
            raise fault(gettext_noop("There are no records in this archive (records.json)."), where=file_name)

        def record(entry: tuple[int, int, str]) -> Record:
            number, _line, text = entry
            where = place_of_record(number)
            try:
                found = decoded(text)
                cells = flat(found)
                columns, typed = cells_of(cells)
            except ValueError as error:
                return Problem(
                    where, Words(gettext_noop("This record cannot be used: %(error)s"), error=said_by(error))
                )
            row = row_or_problem(where, f"{file_name}:{number}", columns, longest, typed)
            return labelled(row, cells) if isinstance(row, Row) else row

        return Entries(_numbered(archive, info, file_name), record)


def _numbered(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, file_name: str
) -> Iterator[tuple[int, int, str]]:
    with file_in(archive, info, info.filename) as file:
        yield from numbered_entries(file, file_name)


def is_argilla(archive: zipfile.ZipFile) -> bool:
    """Told by its settings, which lie beside the records."""
    names = archive.namelist()
    return any(_is_records(name) for name in names) and any(
        "/.argilla/" in f"/{name.replace(chr(92), '/')}" for name in names
    )


NOT_SUBMITTED = Words(gettext_noop("the file does not say that it was submitted"))


def _is_records(path: str) -> bool:
    return PurePosixPath(path).name == RECORDS


def flat(record: Any) -> dict[str, Any]:
    """A record as one object. Raises ValueError where it is none."""
    if not isinstance(record, dict) or not isinstance(record.get("fields"), dict):
        raise ValueError(Words(gettext_noop("it has no fields.")))
    found: dict[str, Any] = {name: record[name] for name in OWN if record.get(name) is not None}
    for group in ("fields", "metadata"):
        for name, value in _object(record.get(group)).items():
            found[f"{group}.{name}" if name in found else name] = value
    for question, suggestion in _object(record.get("suggestions")).items():
        said = _object(suggestion)
        found[f"{question}{SUGGESTION}"] = said.get("value")
        found[f"{question}{SUGGESTION}{SCORE}"] = said.get("score")
        found[f"{question}{SUGGESTION}{AGENT}"] = said.get("agent")
    for question, responses in _object(record.get("responses")).items():
        given = [_object(entry) for entry in responses] if isinstance(responses, list) else []
        found[f"{question}{RESPONSES}"] = [entry.get("value") for entry in given]
        found[f"{question}{RESPONSES}{USERS}"] = [entry.get("user_id") for entry in given]
        found[f"{question}{RESPONSES}{STATUS}"] = [entry.get("status") for entry in given]
    return found


def labelled(row: Row, cells: Mapping[str, Any]) -> Row:
    """The row with what people answered, of cells as `flat` or `records.to_datasets` makes them."""
    statuses = [values for name, values in cells.items() if name.endswith(RESPONSES + STATUS)]
    said = [status for values in statuses if isinstance(values, list) for status in values]
    left_out = sum(status in NO_ANSWER for status in said)
    return row._replace(labels=given_labels(cells), left_out=left_out)


def given_labels(cells: Mapping[str, Any]) -> tuple[GivenLabel, ...]:
    """What people answered, of a row as `flat` or `records.to_datasets` makes it."""
    answered = {
        name.removesuffix(RESPONSES): values
        for name, values in cells.items()
        if name.endswith(RESPONSES) and isinstance(values, list) and isinstance(cells.get(name + USERS), list)
    }
    answered = {
        question: values
        for question, values in answered.items()
        if any(
            _at(cells.get(f"{question}{RESPONSES}{STATUS}"), place) not in NO_ANSWER
            for place in range(len(values))
        )
    }
    if len(answered) > 1:
        words = gettext_noop("there are answers to several questions (%(names)s)")
        several = Words(words, names=", ".join(sorted(answered)))
        return (GivenLabel(None, tool=TOOL, problem=several),)
    labels = []
    for question, values in answered.items():
        name = f"{question}{RESPONSES}"
        users, status = cells[name + USERS], cells.get(name + STATUS)
        for place, value in enumerate(values):
            said = _at(status, place)
            if value is None or said in NO_ANSWER:
                continue
            annotator = str(_at(users, place) or "")
            problem = "" if said == SUBMITTED else NOT_SUBMITTED
            labels.append(GivenLabel(value, annotator=annotator, tool=TOOL, problem=problem))
    return tuple(labels)


def _at(values: Any, place: int) -> Any:
    return values[place] if isinstance(values, list) and place < len(values) else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
