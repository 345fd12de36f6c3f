"""Which item a task of Label Studio is about.

What a delivery of ours says is a candidate, and so are its numbers, those of the project that it was imported
from: they count only where the content is the same, too, since any other project has the same names and
numbers, and the text may have been changed since. What is left is found by its content, if one item alone
has it.
"""

import json
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import Count, Min, QuerySet

from annotation.imports.rows import text_hash
from annotation.models import Item, Project

CHUNK = 500
MOST_NAMED = 2_000
# How Label Studio names what was uploaded: cat.png is /data/upload/7/1a2b3c4d-cat.png.
_UPLOADED = re.compile(r"^[0-9a-f]{8}-")
_LONGEST_ID = 255
_MOST_TEXTS = 50


def match_items(project: Project, tasks: Sequence[Any]) -> list[Item | None]:
    """One entry for each of `tasks`, in their order; None where it is no item of the project, or may be
    several. Of an item its id and its name are loaded, nothing that it holds.
    """
    found: list[Item | None] = []
    for start in range(0, len(tasks), CHUNK):
        found += _chunk(project, tasks[start : start + CHUNK])
    return found


def _chunk(project: Project, tasks: Sequence[Any]) -> list[Item | None]:
    """By names and hashes, of which a task may have a hundred; what items hold is read of the few whose
    number is right, one after the other.
    """
    read = [_Task(place, task if isinstance(task, Mapping) else {}) for place, task in enumerate(tasks)]
    items = Item.objects.filter(project=project).order_by()
    by_name = {
        known.external_id: known
        for names in _in_parts({name for task in read for name in task.names})
        for known in map(_Known._make, items.filter(external_id__in=names).values_list(*_Known._fields))
    }
    shown = _shown(items, read, by_name)
    found = [task.among(by_name, shown) for task in read]
    left = {
        digest for task, known in zip(read, found, strict=True) if known is None for digest in task.hashes
    }
    alone: dict[str, int | None] = {}
    for digests in _in_parts(left):
        same = items.filter(content_hash__in=digests, image__isnull=True).values_list("content_hash")
        for digest, first, count in same.annotate(Min("pk"), Count("pk")):
            alone[digest] = first if count == 1 else None
    ids = [known.pk if known else task.by_content(alone) for task, known in zip(read, found, strict=True)]
    loaded = items.only("external_id", "project_id").in_bulk([pk for pk in ids if pk is not None])
    return [None if pk is None else loaded.get(pk) for pk in ids]


def _shown(
    items: QuerySet[Item], read: Sequence["_Task"], by_name: Mapping[str, "_Known"]
) -> set[tuple[int, int]]:
    """Pairs (place of the task, id of the item) where the number is right and so is the content, of items
    whose hash does not tell: several fields are one each in a task, a picture has another address there, a
    number may be what people see, and a text may stand behind many others.
    """
    asked: dict[int, list[int]] = defaultdict(list)
    for task in read:
        for name in task.numbers:
            if (known := by_name.get(name)) and not task.has_hash(known):
                asked[known.pk].append(task.place)
    found = set()
    for pks in _in_parts(asked):
        rows = items.filter(pk__in=pks).values_list("pk", "image_id", "fields", "data", "content_hash")
        for pk, image, fields, data, digest in rows.iterator(chunk_size=100):
            for place in asked[pk]:
                task = read[place]
                if image:
                    same = not set(task.texts).isdisjoint(data.values())
                elif fields:
                    same = all(value in task.cells if value else task.lacks(name) for name, value in fields)
                else:
                    same = digest in task.hashes_of_cells
                if same:
                    found.add((place, pk))
    return found


def _in_parts(values: Iterable[Any]) -> Iterator[list[Any]]:
    """No statement names more than so many."""
    rest = list(values)
    for start in range(0, len(rest), MOST_NAMED):
        yield rest[start : start + MOST_NAMED]


class _Known(NamedTuple):
    pk: int
    external_id: str
    content_hash: str
    image_id: int | None


class _Task:
    def __init__(self, place: int, task: Mapping[str, Any]) -> None:
        data, meta = task.get("data"), task.get("meta")
        data = data if isinstance(data, Mapping) else {}
        ours = meta.get("hypac") if isinstance(meta, Mapping) else None
        self.place = place
        own = ours.get("external_id") if isinstance(ours, Mapping) else None
        given = (own, data.get("external_id"), data.get("id"), task.get("id"), task.get("inner_id"))
        self.numbers = [name for value in given if (name := _name(value))]
        self.data = data
        self.texts = list(dict.fromkeys(_texts(data.values())))[:_MOST_TEXTS]
        self.cells = frozenset(_texts(map(_as_text, data.values())))
        self.files = [name for text in self.texts for name in _files(text)]

    @property
    def names(self) -> list[str]:
        return [*self.numbers, *self.files]

    @cached_property
    def hashes(self) -> frozenset[str]:
        return frozenset(map(text_hash, self.texts))

    @cached_property
    def hashes_of_cells(self) -> frozenset[str]:
        return frozenset(map(text_hash, self.cells))

    def lacks(self, column: str) -> bool:
        """Whether the task has nothing in this column, or no such column."""
        return self.data.get(column) in (None, "")

    def has_hash(self, known: _Known) -> bool:
        """Whether its text, or the name of its picture, is in the task."""
        if known.image_id:
            return known.external_id in self.files
        return known.content_hash in self.hashes

    def among(self, known: Mapping[str, _Known], shown: Container[tuple[int, int]]) -> _Known | None:
        """What the task's names lead to."""
        for name in self.numbers:
            item = known.get(name)
            if item and (self.has_hash(item) or (self.place, item.pk) in shown):
                return item
        pictures = (known.get(name) for name in self.files)
        return next((item for item in pictures if item and item.image_id), None)

    def by_content(self, alone: Mapping[str, int | None]) -> int | None:
        """The item that alone has a text of the task; None where there are several."""
        same = [alone[digest] for digest in self.hashes if digest in alone]
        return same[0] if len(same) == 1 else None


def _name(value: Any) -> str:
    """An id as text; "" for what is none."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    text = str(value) if not isinstance(value, int) or abs(value) < 10**18 else ""
    return text if text.isprintable() and len(text) <= _LONGEST_ID else ""


def _as_text(value: Any) -> Any:
    """As an import makes text of a cell."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return None


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str) and value and "\0" not in value:
            try:
                value.encode()
            except UnicodeEncodeError:  # half a character
                continue
            yield value


def _files(text: str) -> tuple[str, ...]:
    """The name of a file, if the text is an address or a path of one, and its name before it was uploaded."""
    if "/" not in text or len(text) > 2000 or not text.isprintable():
        return ()
    name = text.partition("?")[0].rpartition("/")[2][:_LONGEST_ID]
    return tuple(dict.fromkeys(filter(None, (name, _UPLOADED.sub("", name)))))
