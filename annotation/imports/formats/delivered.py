"""What HyPAC itself delivered, in whatever format: it is told by the columns that a delivery adds.

The labels that people gave are labels again; what models said stays in its columns, of which a source can be
made.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import takewhile
from types import MappingProxyType
from typing import Any

from annotation.imports.formats.base import GivenLabel, Record, Row

TOOL = "HyPAC"
BY_PEOPLE = frozenset({"person", "expert"})
PREFIX = "hypac_"
ADDED = (
    *(
        "external_id",
        "label",
        "label_name",
        "source",
        "annotator",
        "settled_by",
        "uncertainty",
        "p_i",
        "asked",
    ),
    *("run", "certificate_id", "reason"),
)
"""Those that every delivery has behind the item's own columns, in this order."""
FURTHER = frozenset({"expert_saw", "taken_in", "audited", "suggestion"})
"""Those that some deliveries have behind these."""
NONE: Mapping[str, str] = MappingProxyType({})


def with_labels(records: Iterable[Record]) -> Iterator[Record]:
    """Rows of a delivery with the labels that people gave, and all others as they are."""
    return map(_read, records)


def columns_of(columns: Iterable[str]) -> Mapping[str, str]:
    """By the columns that a delivery adds, what they are called among these; empty where they are not there.
    Where an item has a column of the name already, that of the delivery has a prefix.
    """
    return _found(tuple(columns))


# Rows of one file mostly have the same columns.
@lru_cache(maxsize=64)
def _found(columns: tuple[str, ...]) -> Mapping[str, str]:
    bare = [_bare(name) for name in columns]
    for start in range(len(bare) - len(ADDED), -1, -1):
        end = start + len(ADDED)
        if tuple(bare[start:end]) == ADDED:
            further = takewhile(lambda pair: pair[0] in FURTHER, zip(bare[end:], columns[end:], strict=True))
            return MappingProxyType(dict([*zip(ADDED, columns[start:end], strict=True), *further]))
    return NONE


def _bare(name: str) -> str:
    while name.startswith(PREFIX):
        name = name.removeprefix(PREFIX)
    return name


def _read(record: Record) -> Record:
    if not isinstance(record, Row) or "certificate_id" not in record.columns:
        return record
    if not (ours := columns_of(record.columns)):
        return record
    # Nobody who labels may see what was said of the item.
    answers = tuple(name for column, name in ours.items() if column != ADDED[0])
    given = record.columns[ours["source"]] in BY_PEOPLE
    return record._replace(answers=answers, labels=(_label(record, ours),) if given else ())


def _label(row: Row, ours: Mapping[str, str]) -> GivenLabel:
    value: Any = (row.typed or {}).get(ours["label"], row.columns[ours["label"]])
    # Several choices have several names. Where all cells are text, both are lists as JSON.
    if isinstance(value, str) and value.startswith("[") and row.columns[ours["label_name"]].startswith("["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    return GivenLabel(value, annotator=row.columns[ours["annotator"]], tool=TOOL)
