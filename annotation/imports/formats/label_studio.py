"""Label Studio: lists of tasks, exports as JSON and as JSON-MIN; one list, or one object a line.

The fields of `data` become columns. All else that a task has (its number, annotations, predictions, drafts,
meta, times) is kept as it is in one column, COLUMN. What each version of a model predicted stands in two
columns besides, so that a recorded source can be made of them.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, groupby
from typing import IO, Any, NamedTuple

from django.conf import settings
from django.utils.translation import gettext_noop

from annotation.imports.faults import said_by
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
from annotation.imports.formats.jsonl import cells_of, decoded, text_of
from annotation.imports.formats.label_studio_names import own_name, with_own_names
from annotation.imports.formats.label_studio_results import (
    REGIONS,
    TOOL,
    annotator_of,
    given_labels,
    milliseconds,
    predicted,
    skipped,
    whole_rating,
)
from annotation.imports.formats.lines import text_lines
from annotation.imports.formats.reserved import LABEL_STUDIO as COLUMN, PREDICTED
from annotation.imports.formats.text import longest_row, without_marks
from annotation.jobs.places import place_in_line, place_of_line
from annotation.words import Words

# What JSON-MIN adds behind the answers.
MIN_MARKS = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement")
TASK_MARKS = ("annotations", "predictions", "completions", "drafts", "meta", "inner_id")


class _Entry(NamedTuple):
    number: int
    where: str
    text: str


class LabelStudio(ReadThrough):
    name = "label_studio"
    reads_text = True
    title = gettext_noop("Label Studio tasks")
    holds_images = False
    holds_labels = True

    def claims_object(self, first: Any, *, listed: bool) -> bool:
        if not isinstance(first, dict):
            return False
        if isinstance(first.get("data"), dict):
            return first.keys() <= {"id", "data"} or any(mark in first for mark in TASK_MARKS)
        return _is_min(first)

    def _entries(self, file: IO[bytes], file_name: str) -> Entries:
        longest = settings.HYPAC_MAX_CELL_CHARACTERS

        def record(entries: list[_Entry]) -> Record:
            first = entries[0]
            if len(entries) > 1 and sum(len(entry.text) for entry in entries) > longest_row():
                return Problem(
                    first.where, Words(gettext_noop("This row is too long. Raise HYPAC_MAX_CELL_CHARACTERS."))
                )
            name = f"{file_name}:{first.number}"
            try:
                row = _row(first.where, name, [decoded(entry.text) for entry in entries])
            except ValueError as error:
                return Problem(
                    first.where,
                    Words(gettext_noop("This task cannot be used: %(error)s"), error=said_by(error)),
                )
            checked = row_or_problem(row.where, row.name, row.columns, longest, row.typed)
            return _with_labels(checked, row) if isinstance(checked, Row) else checked

        return Entries(_grouped(_read(file, file_name)), record)


def _with_labels(checked: Row, row: Row) -> Row:
    return checked._replace(labels=row.labels, left_out=row.left_out)


def _is_min(entry: dict[str, Any]) -> bool:
    return all(mark in entry for mark in ("annotator", "annotation_id", "lead_time"))


def _read(file: IO[bytes], file_name: str) -> Iterator[_Entry]:
    head = without_marks(file)
    start = next((block for block in iter(lambda: head.read(64), b"") if block.strip()), b"").lstrip()
    file.seek(0)
    if start.startswith(b"["):
        for number, line, text in numbered_entries(file, file_name):
            yield _Entry(number, place_in_line(line, number), text)
        return
    for number, text in text_lines(file, file_name):
        yield _Entry(number, place_of_line(number), text)


def _grouped(entries: Iterator[_Entry]) -> Iterator[list[_Entry]]:
    """One list for each task: JSON-MIN has an entry for each annotation, those of one task in a row."""
    first = next(entries, None)
    if first is None:
        return
    everything = chain([first], entries)
    if not _min_task(first)[1]:
        yield from ([entry] for entry in everything)
        return
    for _key, same in groupby(everything, _min_task):
        yield list(_no_longer(same))


def _no_longer(entries: Iterator[_Entry]) -> Iterator[_Entry]:
    """Those up to where they are too long for a row; the others are passed over."""
    length, longest = 0, longest_row()
    for entry in entries:
        if length <= longest:
            yield entry
        length += len(entry.text)


def _min_task(entry: _Entry) -> tuple[Any, bool]:
    """What tells the tasks of JSON-MIN apart, and whether this entry is one of them."""
    try:
        task = decoded(entry.text)
    except ValueError:
        return entry.number, False
    if not isinstance(task, dict) or not _is_min(task):
        return entry.number, False
    return (json.dumps(task.get("id")) if "id" in task else entry.number), True


def _row(where: str, name: str, entries: list[Any]) -> Row:
    """Raises ValueError that says what is wrong."""
    task, left_out = entries[0], 0
    if not isinstance(task, dict):
        raise ValueError(Words(gettext_noop("it is no JSON object ({...}).")))
    if isinstance(task.get("data"), dict):
        data = with_own_names(task["data"], task.get("meta"))
        rest = {key: value for key, value in task.items() if key != "data"}
        annotations = task.get("annotations", task.get("completions"))
        labels, left_out = given_labels(annotations), skipped(annotations)
    elif _is_min(task):
        data, rest, labels = _of_min(entries)
    else:
        raise ValueError(Words(gettext_noop('it has no "data" with the fields of the task.')))
    if COLUMN in data:
        raise ValueError(
            Words(
                gettext_noop(
                    "its data has a field “%(name)s”, a name that is kept for what Label Studio says. "
                    "Rename it."
                ),
                name=COLUMN,
            )
        )
    columns, typed = cells_of(data)
    if rest:
        columns[COLUMN] = text_of(rest, COLUMN)
        typed = (typed or {}) | {COLUMN: rest}
    if said := prediction_values(task, columns):
        cells, numbers = cells_of(said)
        columns |= cells
        typed = {**(typed or {}), **(numbers or {})} or None
    try:
        "".join(chain(columns, columns.values())).encode()
    except UnicodeEncodeError:
        raise ValueError(Words(gettext_noop("it contains half a character (a lone surrogate)."))) from None
    number = task.get("id")
    own = own_name(task.get("meta"))
    if not own.strip() and isinstance(number, int | str) and not isinstance(number, bool):
        own = str(number)
    return Row(where, own.strip() or name, columns, labels=labels, typed=typed, left_out=left_out)


def prediction_values(task: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    """Two columns for each version of a model, with what it predicted and its score. `taken` are the names of
    other columns.
    """
    values: dict[str, Any] = {}
    names = set(taken)
    for version, *said in predicted(task.get("predictions")):
        for ending, value in zip(PREDICTED, said, strict=True):
            name = _free(f"{version}{ending}", names)
            names.add(name)
            values[name] = value
    return values


def prediction_columns(task: Mapping[str, Any], columns: Collection[str]) -> list[str]:
    """Which of an item's columns `prediction_values` has added to those of its data."""
    found = []
    for name in prediction_values(task, ()):
        added = name
        while f"{COLUMN}.{added}" in columns:
            added = f"{COLUMN}.{added}"
        found.append(added)
    return found


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name = f"{COLUMN}.{name}"
    return name


def _of_min(entries: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any], tuple[GivenLabel, ...]]:
    """Data, what else there is, and labels. The answers stand between the task's number and who gave them;
    they are told from the task's own fields only where there is one.
    """
    answers = list(dict.fromkeys(name for entry in entries for name in _answers(entry)))
    hidden = {*answers, *MIN_MARKS, "id"}
    data = {name: value for name, value in entries[0].items() if name not in hidden}
    rest = {"id": entries[0].get("id"), "json_min": [_only(entry, hidden) for entry in entries]}
    labels = []
    for entry in entries:
        value, problem = _min_value(entry)
        labels.append(
            GivenLabel(
                value=value,
                annotator=annotator_of(entry.get("annotator")),
                created_at=str(entry.get("created_at") or ""),
                lead_time_ms=milliseconds(entry.get("lead_time")),
                tool=TOOL,
                problem=problem,
            )
        )
    return data, rest, tuple(labels)


def _only(entry: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name in names}


def _answers(entry: dict[str, Any]) -> list[str]:
    """Names of its answers: those between the task's number and who gave them."""
    names = list(entry)
    return names[names.index("id") + 1 : names.index("annotator")] if "id" in names else []


def _min_value(entry: dict[str, Any]) -> tuple[Any, str]:
    """JSON-MIN has a text alone where there is one, else an object, or a list of objects; of an annotation
    without a result, as in JSON, nothing.
    """
    answers = _answers(entry)
    if len(answers) != 1:
        if not answers:
            return ([], "") if "id" in entry else (None, Words(gettext_noop("it is empty")))
        return None, Words(gettext_noop("it has several answers (%(names)s)"), names=", ".join(answers))
    value = entry.get(answers[0])
    for field, kind in REGIONS.items():
        if isinstance(value, list) and value and all(isinstance(one, dict) and field in one for one in value):
            return [kind.of_region({"value": one}) for one in value], ""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        value = next((value[key] for key in ("choices", "rating", "number", "text") if key in value), None)
        value = whole_rating(value)
        return (
            (value, "")
            if value is not None
            else (None, Words(gettext_noop("it has no choice, rating, number or text")))
        )
    return whole_rating(value), ""
