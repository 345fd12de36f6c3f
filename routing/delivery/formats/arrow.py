"""Pages as columns of Arrow, for the formats that have types."""

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_noop

from annotation import failures
from annotation.errors import InputError
from routing.labels.kinds import BOOLEAN, INTEGER, LIST_OF, NUMBER
from routing.labels.page import ADDED, DeliveryInfo, Page, added_names

if TYPE_CHECKING:
    import pyarrow as pa

NO_CHOICE = failures.register(
    "label_no_choice",
    gettext_noop(
        "The label %(label)r is none of the choices of the project any more, so it has no number. Deliver in "
        "another format."
    ),
)


class Columns:
    """`schema` has one column for each original one, of its kind, and then ours with their types.

    `as_json` counts cells that are no text, in columns where cells are of several kinds: they are written as
    JSON. With `classes`, the keys of the choices, the column `label` holds places in them.
    """

    def __init__(self, info: DeliveryInfo, *, classes: Sequence[str] = ()) -> None:
        # Not before it is needed: web servers, which write no files, would hold 50 MB more.
        import pyarrow as pa

        self._pa = pa
        self._columns, self._now = info.columns, info.label_now
        self._added_columns = info.added
        names = added_names(info.columns, info.added)
        types = added_types(several=info.kind.several)
        if classes:
            types["label"] = pa.list_(pa.int64()) if info.kind.several else pa.int64()
        self.classes, self.label = list(classes), names["label"]
        self._places = {key: place for place, key in enumerate(classes)}
        self.schema = pa.schema(
            [
                *((column, type_of(info.kinds.get(column, ""))) for column in info.columns),
                *((names[name], types[name]) for name in info.added),
            ]
        )
        self.as_json = 0

    def batch(self, page: Page) -> "pa.RecordBatch":
        pa = self._pa
        types = self.schema.types
        values = page.values
        arrays = [
            self._original(values, column, type_) for column, type_ in zip(self._columns, types, strict=False)
        ]
        added = zip(self._added_columns, types[len(self._columns) :], strict=True)
        arrays += [pa.array(self._added(name, page), type_) for name, type_ in added]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _original(self, values: Sequence[Mapping[str, Any]], column: str, type_: "pa.DataType") -> "pa.Array":
        pa = self._pa
        cells = [row.get(column) for row in values]
        if pa.types.is_string(type_):
            other = [place for place, cell in enumerate(cells) if cell is not None and type(cell) is not str]
            self.as_json += len(other)
            for place in other:
                cells[place] = json.dumps(cells[place], ensure_ascii=False, separators=(",", ":"))
        elif pa.types.is_floating(type_):
            cells = list(map(_number, cells))
        elif pa.types.is_list(type_) and pa.types.is_floating(type_.value_type):
            cells = [None if cell is None else list(map(_number, cell)) for cell in cells]
        return pa.array(cells, type_)

    def _added(self, name: str, page: Page) -> Sequence[Any]:
        values = page.columns[name]
        if name == "p_i":
            return [None if value is None else Decimal(value) for value in values]
        if name == "label" and self.classes:
            pairs = zip(values, page.columns["label_name"], strict=True)
            return [None if value is None else self._place(self._now(value, shown)) for value, shown in pairs]
        return values

    def _place(self, value: Any) -> int | list[int]:
        try:
            return [self._places[key] for key in value] if isinstance(value, list) else self._places[value]
        except KeyError:
            raise NO_CHOICE.error(raised_as=InputError, where="formats", label=value) from None


def _number(cell: Any) -> float | None:
    """Of a number, or of the word for one that JSON does not have."""
    return None if cell is None else float(cell)


def type_of(kind: str) -> "pa.DataType":
    """The type of a column of that kind (routing.labels.kinds)."""
    import pyarrow as pa

    if kind.startswith(LIST_OF):
        return pa.list_(type_of(kind.removeprefix(LIST_OF)))
    made: dict[str, Callable[[], pa.DataType]] = {BOOLEAN: pa.bool_, INTEGER: pa.int64, NUMBER: pa.float64}
    return made.get(kind, pa.string)()


def added_types(*, several: bool) -> "dict[str, pa.DataType]":
    """The types of our columns. `several`: a label is a list of choices."""
    import pyarrow as pa

    label = pa.list_(pa.string()) if several else pa.string()
    others = {
        "label": label,
        "label_name": label,
        "uncertainty": pa.float64(),
        "p_i": pa.decimal128(9, 8),
        "asked": pa.bool_(),
        "run": pa.int32(),
        "taken_in": pa.int32(),
        "audited": pa.bool_(),
    }
    return {name: others.get(name, pa.string()) for name in ADDED}
