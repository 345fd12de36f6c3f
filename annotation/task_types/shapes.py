"""What is drawn on an image, each shape with a label: boxes, masks. The value is a JSON list in text, one
object a shape, in an order that is always the same.

Shapes are drawn in another program, Label Studio or CVAT: a kind of them says how both write it.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from django.utils.translation import gettext as _

from annotation.task_types.base import (
    MISSING,
    OF_FORM,
    Choices,
    Labels,
    Lazy,
    Read,
    Reading,
    TaskType,
    ValueReason,
    kind_of,
    short,
    text_of,
    unknown_label,
)
from annotation.task_types.parsing.markers import NO_JSON, from_json

NOTHING = "[]"
"""That there is nothing to draw."""
DRAWN = 200
"""Shapes of one answer that are shown; of more it is said that there are more."""


class Path(NamedTuple):
    """A shape as SVG has it, within the image's `width` and `height`."""

    label: str
    path: str


@dataclass(frozen=True)
class Drawing:
    """Shapes over an image of so many units, by their inside or their edge; `more` are not drawn."""

    width: int
    height: int
    paths: Sequence[Path]
    filled: bool
    more: int = 0


class _AnyLabel(Labels):
    def key(self, text: str) -> str | None:
        return text


class Shape(Protocol):
    """What a kind reads of one object: a tuple that can be sorted, beginning with the key of its label."""

    @property
    def label(self) -> str: ...

    def _replace(self, *, label: str) -> Any: ...

    def __lt__(self, other: Any, /) -> bool: ...


S = TypeVar("S", bound=Shape)


class Shapes(TaskType, Generic[S]):
    """A task type whose values are shapes of one kind."""

    labels_within = True
    none_within = True
    on_images = True
    compared_by_loss = True
    max_characters: ClassVar[int]
    template = "annotation/task_types/shapes.html"
    rows = 4
    monospaced = True
    surely_read = r"^\s*\[\]\s*$"

    fields: ClassVar[tuple[str, ...]]
    """Of each object, "label" first."""
    most: ClassVar[int]
    """Shapes of one value."""
    most_weight: ClassVar[int] = 0

    # --- In words -------------------------------------------------------------------------------------------

    elsewhere: ClassVar[Lazy]
    """What the desk says of where they are drawn."""
    chapter: ClassVar[str]
    """Of docs/label-studio.md."""
    no_list: ClassVar[Lazy]
    too_many: ClassVar[Lazy]
    too_heavy: ClassVar[Lazy] = ""
    numbered: ClassVar[Lazy]
    refused: ClassVar[Lazy]

    def counted(self, count: int, labels: str) -> str:
        """How many there are, of which labels."""
        raise NotImplementedError

    # --- One shape ------------------------------------------------------------------------------------------

    def shape(self, entry: Mapping[str, Any], label: str) -> S | str:
        """What an object says, or why it is none."""
        raise NotImplementedError

    def plain(self, shape: S) -> dict[str, Any]:
        """The object of a shape, as it is stored."""
        raise NotImplementedError

    def stored(self, entry: Mapping[str, Any]) -> S:
        """The shape of a stored object; raises ValueError, TypeError or ArithmeticError where it is none."""
        raise NotImplementedError

    def weight(self, shape: S) -> int:
        """What a shape is to work with beyond its own text; those of a value have `most_weight` together."""
        return 0

    def together(self, shapes: Sequence[S]) -> str:
        """Why these cannot be one value; "" where they can."""
        return ""

    def drawing(self, shapes: Sequence[S]) -> Drawing:
        raise NotImplementedError

    def shape_schema(self) -> dict[str, Any]:
        """What stands in the JSON schema of a shape beside its label."""
        raise NotImplementedError

    # --- Other programs -------------------------------------------------------------------------------------

    cvat_tag: ClassVar[str]
    """Of a shape in CVAT's file."""
    cvat_type: ClassVar[str]
    """Of its labels there."""
    only_these: ClassVar[Lazy]
    """What is said of a frame of CVAT with shapes of another kind, `shape`."""

    def of_region(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """An object to be read, of a result of Label Studio whose type is the first of `controls`."""
        raise NotImplementedError

    def region(self, shape: S) -> dict[str, Any]:
        """What a result of Label Studio has of a shape, without the names of tags."""
        raise NotImplementedError

    def of_cvat(self, fields: Mapping[str, str], width: int, height: int) -> dict[str, Any]:
        """An object to be read, of a shape on a frame of CVAT of so many pixels."""
        raise NotImplementedError

    # --- What all of them do alike --------------------------------------------------------------------------

    @property
    def region_type(self) -> str:
        """The type of Label Studio's results."""
        return self.controls[0].lower()

    def read(self, raw: Any, labels: Labels) -> Read:
        """A list of objects, or such a list in JSON. Whole shapes may be JSON in texts, too."""
        if raw is None or (isinstance(raw, str) and not raw.strip()):
            return None, MISSING
        if isinstance(raw, str):
            if len(raw) > self.max_characters:
                return None, self._too_long()
            raw = parsed(raw)
        if not isinstance(raw, list | tuple):
            return None, _fault(str(self.no_list))
        if len(raw) > self.most:
            return None, _fault(str(self.too_many) % {"count": f"{len(raw):,}", "most": self.most})
        shapes, weight = list[S](), 0
        for number, entry in enumerate(raw, 1):
            shape = self._read_one(entry, labels)
            if isinstance(shape, str):
                words = str(self.numbered) % {"number": number, "why": shape}
                if isinstance(shape, ValueReason):
                    return None, ValueReason(words, shape.code, shape.quotes)
                return None, _fault(words)
            shapes.append(shape)
            weight += self.weight(shape)
            if weight > self.most_weight:
                return None, _fault(str(self.too_heavy))
        if why := self.together(shapes):
            return None, _fault(why)
        text = self.written(shapes)
        return (text, "") if len(text) <= self.max_characters else (None, self._too_long())

    def in_short(self, entries: Sequence[Mapping[str, Any]]) -> Any:
        """Objects of another program in the form in which they are stored, under the labels that they have;
        as they are where they have none.
        """
        text, _why = self.read(entries, _AnyLabel())
        return entries if text is None else json.loads(str(text))

    def _too_long(self) -> ValueReason:
        return _fault(_("it has more than %(most)s characters") % {"most": f"{self.max_characters:,}"})

    def _read_one(self, entry: Any, labels: Labels) -> S | str:
        """The shape, or why it is none; a label that the project does not have is a ValueReason."""
        if isinstance(entry, str) and len(entry) <= self.max_characters:
            entry = parsed(entry)
        if not isinstance(entry, Mapping):
            return _("it is no object with %(fields)s") % {"fields": ", ".join(self.fields)}
        if entry.get("label") is None:
            return no_field("label")
        if (given := text_of(entry["label"])) is None:
            return _("its label is no text but a %(kind)s") % {"kind": kind_of(entry["label"])}
        shape = self.shape(entry, given)
        if isinstance(shape, str):
            return shape
        key = labels.key(given)
        found: S | str = unknown_label(short(given), given) if key is None else shape._replace(label=key)
        return found

    def parse(self, text: str, choices: Choices) -> Reading:
        value = from_json(text)
        if value is NO_JSON:
            return Reading(None, f"no JSON list of {self.schema_name}")
        spellings = {name: key for key, name in choices} | {key: key for key, _name in choices}
        return Reading(*self.read(value, Labels(spellings)))

    def refusal(self, raw: Any, reason: str) -> str:
        return str(self.refused) % {"reason": reason}

    def schema(self, choices: Choices) -> dict[str, Any]:
        shape = {
            "type": "object",
            "properties": {
                "label": {"type": "string", "enum": [key for key, _name in choices]},
                **self.shape_schema(),
            },
            "required": list(self.fields),
            "additionalProperties": False,
        }
        return {"type": "array", "items": shape, "maxItems": self.most}

    def is_asked_by(self, tag: str, attributes: Mapping[str, str]) -> bool:
        return tag in self.controls

    def written(self, shapes: Sequence[S]) -> str:
        """Their canonical text."""
        plain = [self.plain(shape) for shape in sorted(shapes)]
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))

    def shapes_of(self, value: object) -> tuple[S, ...] | None:
        """The shapes of a stored value; None where it is none."""
        if not isinstance(value, str) or not value.startswith("["):
            return None
        entries = parsed(value)
        if not isinstance(entries, list):
            return None
        if not all(isinstance(one, dict) and one.keys() == {*self.fields} for one in entries):
            return None
        try:
            return tuple(map(self.stored, entries))
        except (ArithmeticError, TypeError, ValueError):
            return None

    def in_words(self, value: object, names: Mapping[str, str]) -> str | None:
        """How many there are of each label; None for no value of this kind."""
        shapes = self.shapes_of(value)
        if shapes is None:
            return None
        counts = Counter(shape.label for shape in shapes)
        labels = ", ".join(f"{names.get(label, label)} × {count}" for label, count in counts.items())
        return self.counted(len(shapes), labels) if shapes else _("nothing to draw")

    def drawn(self, value: object) -> Drawing | None:
        """What is shown of a stored value over its image; None where it is none."""
        shapes = self.shapes_of(value)
        return None if shapes is None else self.drawing(shapes)

    def regions(self, value: object) -> list[dict[str, Any]]:
        """`region` of each shape of a stored value."""
        return list(map(self.region, self.shapes_of(value) or ()))

    def renamed(self, value: object, names: Mapping[str, str]) -> str | None:
        """The value with other names of its labels; None where there is none for one of them."""
        shapes = self.shapes_of(value) or ()
        if any(shape.label not in names for shape in shapes):
            return None
        return self.written([shape._replace(label=names[shape.label]) for shape in shapes])


def no_field(name: str) -> str:
    return _("it has no “%(field)s”") % {"field": name}


def beside(fields: Sequence[str]) -> str:
    return _("it has a field beside %(fields)s; leave it out") % {"fields": ", ".join(fields)}


def one_label(labels: Any) -> Any:
    """Of a result of Label Studio; None where it has several or none."""
    return labels[0] if isinstance(labels, list) and len(labels) == 1 else None


def parsed(text: str) -> Any:
    """None where it is no JSON."""
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError, ArithmeticError):
        return None


def _fault(words: str) -> ValueReason:
    """What is wrong with the form, with nothing in it of what was answered."""
    return ValueReason(words, OF_FORM)
