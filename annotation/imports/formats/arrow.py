"""Rows of Arrow's record batches: as text, and what was no text beside it. Parquet files and data sets saved
to disk are read in such batches.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils.translation import gettext_noop

from annotation.imports.faults import fault
from annotation.imports.formats.base import Problem, Record, row_or_problem
from annotation.imports.formats.jsonl import text_of
from annotation.imports.formats.text import longest_row
from annotation.imports.limits import CELL, MAX_DEPTH, MOST_BYTES, MOST_VALUES
from annotation.jobs.places import place_of_row
from annotation.words import Words

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

# Rows that are unpacked together, as a column of nothing has any number of them in no room; of those with
# lists, and the values in them.
TOGETHER = 1_000
NESTED = 100
# Values in lists whose sizes are looked at together.
COUNTED = 1_000_000
# What a number takes in a row, of which there may be many where nothing is in the file.
VALUE_BYTES = 8

Features = Mapping[str, Any]


class Cells(NamedTuple):
    columns: dict[str, str]
    typed: dict[str, Any] | None


def check_types(schema: "pa.Schema", where: str) -> None:
    """Refuse a table with a column that cannot be read, by its name."""
    for field in schema:
        if not can_be_read(field.type):
            words = gettext_noop(
                "The column %(name)r holds values of the type %(type)s, which are neither text nor numbers "
                "nor times, nor lists of them. Write it as text, or leave it out; images are read from a zip "
                "archive."
            )
            raise fault(words, where=where, name=field.name, type=str(field.type)[:200])


def can_be_read(kind: "pa.DataType", depth: int = 0) -> bool:
    import pyarrow as pa

    if not pa.types.is_nested(kind):
        text = is_text(kind) and not (depth and pa.types.is_string_view(kind))
        return text or _has_text(kind, depth)
    if depth >= MAX_DEPTH or not (
        _is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_struct(kind)
    ):
        return False
    return all(can_be_read(kind.field(place).type, depth + 1) for place in range(kind.num_fields))


def records_of(
    batch: "pa.RecordBatch", features: Features, *, first: int, name: str, longest: int, place: str = ""
) -> Iterator[Record]:
    """The rows of a batch, of which the first is number `first` of its table. `features` says of a column how
    a data set describes it; `place` stands before the row's number for people, `name` in items' ids.
    """
    for number, cells in enumerate(_rows(batch, features), first):
        where = place_of_row(number, place)
        if cells is None:
            yield Problem(
                where, Words(gettext_noop("This row is too long. Raise HYPAC_MAX_CELL_CHARACTERS."))
            )
        elif isinstance(cells, str):
            yield Problem(where, Words(gettext_noop("This row cannot be used: %(error)s"), error=cells))
        else:
            yield row_or_problem(where, f"{name}:{number}", cells.columns, longest, cells.typed)


def measured(batch: "pa.RecordBatch") -> tuple[int, int]:
    """Number of rows, and about how many characters are in them, without making them."""
    names = sum(len(name) + CELL for name in batch.schema.names) * len(batch)
    return len(batch), names + sum(int(_sizes(column).sum()) for column in batch.columns)


def _rows(batch: "pa.RecordBatch", features: Features) -> Iterator[Cells | str | None]:
    """None for a row that is longer than any that is read of another format; text that says what is wrong."""
    import pyarrow as pa
    import pyarrow.compute as pc

    np = _numpy()
    step = NESTED if any(pa.types.is_nested(kind) for kind in batch.schema.types) else TOGETHER
    for part in (batch.slice(start, step) for start in range(0, len(batch), step)):
        sizes = pa.array(sum(map(_sizes, part.columns), np.zeros(len(part), np.int64)))
        too_long = pc.greater(sizes, longest_row())
        largest = pc.max(pc.if_else(too_long, 0, sizes)).as_py() or 0
        together = min(max(MOST_BYTES // max(largest, 1), 1), len(part))
        for start in range(0, len(part), together):
            yield from _unpacked(part.slice(start, together), too_long.slice(start, together), features)


def _unpacked(
    part: "pa.RecordBatch", leave_out: "pa.BooleanArray", features: Features
) -> Iterator[Cells | str | None]:
    """Rows that together are not too long."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = len(part)
    typed: list[dict[str, Any] | None] = [None] * count
    wrong = [""] * count
    some_out = pc.any(leave_out).as_py()
    columns: list[Sequence[str]] = []
    names = part.schema.names
    for name, column in zip(names, part.columns, strict=True):
        if some_out:
            column = pc.if_else(leave_out, pa.scalar(None, column.type), column)
        feature = features.get(name)
        if pa.types.is_nested(column.type) or has_names(feature):
            columns.append(_values(name, column, feature, typed, wrong))
        else:
            columns.append(_scalars(name, column, typed))
    outs = leave_out.to_pylist() if some_out else repeat(False, count)
    rows: Iterable[tuple[str, ...]] = zip(*columns, strict=True) if columns else [()] * count
    for out, problem, texts, kept in zip(outs, wrong, rows, typed, strict=True):
        if out or problem:
            yield problem or None
        else:
            yield Cells(dict(zip(names, texts, strict=True)), kept)


def _scalars(name: str, column: "pa.Array", typed: list[dict[str, Any] | None]) -> Sequence[str]:
    """Texts of a column without lists; its numbers, truth values and what is nothing go to `typed`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _plain(column)
    texts: list[str] = [value or "" for value in pc.cast(column, pa.large_string()).to_pylist()]
    kind = column.type
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if number or pa.types.is_boolean(kind) or column.null_count:
        kept: bool | int | float | None
        for place, value in enumerate(column.to_pylist() if number or pa.types.is_boolean(kind) else texts):
            if value is None or isinstance(value, bool | int):
                kept = value
            elif isinstance(value, float) and math.isfinite(value):
                # Of fewer than 64 bits it is what is written, not the double that is nearest to it.
                kept = value if pa.types.is_float64(kind) else float(texts[place])
            elif isinstance(value, str) and not value and not column[place].is_valid:
                kept = None
            else:
                if isinstance(value, float):
                    texts[place] = word_of(value)
                continue
            _keep(typed, place, name, kept)
    return texts


def _values(
    name: str, column: "pa.Array", feature: Any, typed: list[dict[str, Any] | None], wrong: list[str]
) -> list[str]:
    """Texts of a column with lists, or with names of classes."""
    texts = []
    for place, value in enumerate(column.to_pylist()):
        try:
            cell = _as_json(value, column.type, feature)
            texts.append(cell if isinstance(cell, str) else text_of(cell, name))
        except ValueError as error:
            wrong[place] = str(error)
            texts.append("")
            continue
        if not isinstance(cell, str):
            _keep(typed, place, name, cell)
    return texts


def _keep(typed: list[dict[str, Any] | None], place: int, name: str, value: Any) -> None:
    row = typed[place]
    if row is None:
        row = typed[place] = {}
    row[name] = value


def _as_json(value: Any, kind: "pa.DataType", feature: Any) -> Any:
    """Raises ValueError where a number names no class."""
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_map(kind):
        pairs = [
            (_as_json(key, kind.key_type, None), _as_json(item, kind.item_type, None)) for key, item in value
        ]
        if all(isinstance(key, str) for key, _item in pairs) and len(dict(pairs)) == len(pairs):
            return dict(pairs)
        return [list(pair) for pair in pairs]
    if isinstance(value, dict):
        inner = feature if isinstance(feature, dict) else {}
        if inner.get("_type") == "Sequence":
            inner = inner.get("feature") or {}  # one of an object is stored as an object of lists
            inner = {key: {"feature": of, "_type": "List"} for key, of in inner.items()}
        return {key: _as_json(value[key], kind.field(key).type, inner.get(key)) for key in value}
    if isinstance(value, list):
        return [_as_json(entry, kind.value_type, _of_entries(feature)) for entry in value]
    if names := class_names(feature):
        return _class(value, names)
    return _plain_value(value, kind)


def word_of(value: float) -> str:
    """Of what is no finite number, which JSON has no number for: the word that Python and JavaScript read."""
    return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")


def _of_entries(feature: Any) -> Any:
    """What is said of a list's entries: [what] in older data sets, else a type with a `feature`."""
    if isinstance(feature, list):
        return feature[0] if feature else None
    return feature.get("feature") if isinstance(feature, dict) else None


def _plain_value(value: Any, kind: "pa.DataType") -> Any:
    import pyarrow as pa

    if isinstance(value, float):
        if not math.isfinite(value):
            return word_of(value)
        return value if pa.types.is_float64(kind) else float(str(_numpy().float32(value)))
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, Decimal | timedelta):
        return str(value)
    return value.isoformat()


def _class(number: Any, names: Sequence[str]) -> str | None:
    """-1 is what data sets write where there is no label."""
    if number == -1:
        return None
    if not 0 <= number < len(names):
        words = gettext_noop("there is no class %(number)s; there are %(count)s.")
        raise ValueError(Words(words, number=str(number), count=len(names)))
    return names[number]


def class_names(feature: Any) -> list[str]:
    """Of the numbers in a column, as a data set of Hugging Face describes it; none where they are numbers."""
    if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
        return [str(name) for name in feature.get("names") or ()]
    return []


def has_names(feature: Any) -> bool:
    return bool(class_names(feature))


def features_of(text: Any) -> Features:
    """What the metadata of a table, or of a data set, say of its columns; nothing where they say nothing."""
    try:
        found = json.loads(text)
        features = found.get("features") or found["info"]["features"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return features if isinstance(features, dict) else {}


def _sizes(column: "pa.Array") -> "np.ndarray[Any, Any]":
    """Bytes of each row of a column, without unpacking what it has only once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    np, kind = _numpy(), column.type
    if pa.types.is_dictionary(kind):
        return _counts(pc.take(pc.cast(_lengths(column.dictionary), pa.int64()), column.indices))
    if is_text(kind):
        return _counts(_lengths(column))
    if pa.types.is_struct(kind):
        return sum((_sizes(part) for part in column.flatten()), np.full(len(column), VALUE_BYTES))
    if not pa.types.is_nested(kind):
        return np.zeros(len(column), np.int64)
    if pa.types.is_fixed_size_list(kind):
        child = column.flatten()
        counts = _counts(pc.list_value_length(column))
    else:
        offsets = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        child = column.values.slice(offsets[0], offsets[-1] - offsets[0])
        counts = np.diff(offsets)
    if len(child) > MOST_VALUES:
        words = gettext_noop(
            "There are lists with %(count)s values in a few rows; at most %(most)s are read."
        )
        raise fault(words, where="file", count=f"{len(child):,}", most=f"{MOST_VALUES:,}")
    if not (pa.types.is_nested(child.type) or is_text(child.type)):
        return np.asarray(counts * VALUE_BYTES, np.int64)
    summed = np.zeros(len(child) + 1, np.int64)
    for start in range(0, len(child), COUNTED):
        summed[start + 1 : start + 1 + COUNTED] = _sizes(child.slice(start, COUNTED))
    np.cumsum(summed, out=summed)
    ends = np.cumsum(counts)
    return np.asarray(summed[ends] - summed[ends - counts] + counts * VALUE_BYTES, np.int64)


def _lengths(column: "pa.Array") -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_length(pc.cast(column, pa.large_string()))


def _counts(lengths: "pa.Array") -> "np.ndarray[Any, Any]":
    import pyarrow.compute as pc

    found: np.ndarray[Any, Any] = pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False)
    return found.astype(_numpy().int64)


def _plain(column: "pa.Array") -> "pa.Array":
    """A column of text as one kind of text, any other as it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_text(column.type):
        return column
    if pa.types.is_dictionary(column.type):
        column = pc.take(column.dictionary, column.indices)
    return pc.cast(column, pa.large_string())


def is_text(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_list(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind))


def _has_text(kind: "pa.DataType", depth: int) -> bool:
    """Whether a value is written in one way, and short."""
    import pyarrow as pa

    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    times = pa.types.is_temporal(kind)
    if depth and times and getattr(kind, "unit", "") == "ns":
        return False  # Python has no such times
    return bool(numbers or times or pa.types.is_boolean(kind) or pa.types.is_null(kind))


def _numpy() -> Any:
    """Not before it is needed: web servers, which seldom look into a table, would hold its memory."""
    import numpy

    return numpy
