"""Masks on an image, each with a label: which pixels are what. The value is a JSON list in text, one object a
mask, in an order that is always the same:

    [{"label":"cat","size":[480,640],"counts":[1200,35,445,38,...]}]

`label` is the key of a label of the project; `size` is height and width of the image in pixels, `counts` how
many pixels outside and inside follow each other down its columns, as COCO's uncompressed RLE has them. They
are drawn in another program: nothing here draws.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import ceil
from typing import Any, NamedTuple

from django.utils.translation import gettext as _, gettext_lazy, ngettext

from annotation.task_types import brush, outline_budget, rle
from annotation.task_types.base import ValueReason
from annotation.task_types.shapes import DRAWN, Drawing, Path, Shapes, beside, no_field, one_label

LONGEST_SIDE = 65_535
MOST_PIXELS = 10**9
MOST_OUTLINE = 500_000
TOO_LONG = gettext_lazy("the outlines of its masks are together longer than 500,000 pixels")
SHOWN_COLUMNS, SHOWN_PIECES = 200, 6_000
"""Of one mask, and pieces of columns of all masks of an answer, on pages: the rest is drawn more roughly."""

Size = tuple[int, int]


class Mask(NamedTuple):
    """A mask with the key of its label; `size` is height and width, `counts` the one way to write it."""

    label: str
    size: Size
    counts: rle.Counts

    @property
    def edges(self) -> list[int]:
        return rle.edges_of(self.counts)


class Masks(Shapes[Mask]):
    name = "masks"
    title = gettext_lazy("Masks on images")
    help = gettext_lazy(
        "Areas of an image to the pixel, each with a label. People draw them in Label Studio or CVAT, and "
        "what they drew comes back; models, certificate and delivery are here."
    )
    fields = ("label", "size", "counts")
    most = 500
    max_characters = 500_000
    most_weight, too_heavy = MOST_OUTLINE, TOO_LONG
    losses = ("mask_dice", "masks_right")
    equal_means = gettext_lazy(
        "Two answers are equal here if the pixels of each label, all its masks together, overlap as much as "
        "the loss “All masks right” asks: Dice 0.8 if the loss of run or project says nothing else."
    )
    question = gettext_lazy("Which pixels are what? Give a mask of each.")
    hint = gettext_lazy(
        "A JSON list, one object a mask: label, size (height and width in pixels) and counts, as in COCO's "
        "RLE. [] says that there is nothing to draw."
    )
    prompt_question = "Find the pixels of everything with one of these labels on the image."
    prompt_ending = (
        'Answer with a JSON list and nothing else, one object for each mask: {{"label": ..., "size": '
        '[height, width], "counts": [...]}}. The label is one of {labels}, exactly as in the list, size is '
        "that of the image in pixels, and counts are the lengths of runs of pixels outside and inside the "
        "mask in turn, beginning outside, down the columns, as in the uncompressed RLE of COCO. Answer with "
        "[] where there is none."
    )
    schema_name = "masks"
    has_size = True
    controls = ("BrushLabels",)
    control_attributes = {}
    cvat_tag = cvat_type = "mask"
    only_these = gettext_lazy("It has a %(shape)s: only masks are read, which CVAT's brush draws.")
    elsewhere = gettext_lazy(
        "Masks are drawn in Label Studio or CVAT, not on this page: whoever leads the project gives the "
        "images out there and takes the masks back. Whoever has masks as COCO's RLE can put them into the "
        "field."
    )
    chapter = "doc-masks"
    no_list = gettext_lazy("it is no JSON list of masks")
    too_many = gettext_lazy("it has %(count)s masks, more than %(most)s")
    numbered = gettext_lazy("mask %(number)s: %(why)s")
    refused = gettext_lazy("These masks cannot be stored: %(reason)s.")

    def counted(self, count: int, labels: str) -> str:
        words = ngettext("%(count)s mask: %(labels)s", "%(count)s masks: %(labels)s", count)
        return words % {"count": count, "labels": labels}

    def shape(self, entry: Mapping[str, Any], label: str) -> Mask | str:
        if entry.get("size") is None:
            return no_field("size")
        if (size := _size(entry["size"])) is None:
            return _(
                "its “size” is not height and width of the image: whole numbers of pixels up to %(longest)s, "
                "together %(most)s"
            ) % {"longest": f"{LONGEST_SIDE:,}", "most": f"{MOST_PIXELS:,}"}
        form = next((form for form in _FORMS if entry.keys() >= {form}), "counts")
        if entry.get(form) is None:
            return no_field("counts")
        if entry.keys() - {"label", "size", *_FORMS[form]}:
            return beside(self.fields)
        edges = _READERS[form](entry, size)
        return edges if isinstance(edges, str) else Mask(label, size, rle.counts_of(edges, size[0] * size[1]))

    def together(self, shapes: Sequence[Mask]) -> str:
        if len({mask.size for mask in shapes}) > 1:
            return _("its masks have several sizes: all of one image have the same")
        return ""

    def size_of(self, value: object) -> Size | None:
        return next((mask.size for mask in self.shapes_of(value) or ()), None)

    def weight(self, shape: Mask) -> int:
        """Sides of pixels between inside and outside, on which it depends how long a mask takes to turn."""
        return rle.perimeter(shape.edges, shape.size[0])

    def written(self, shapes: Sequence[Mask]) -> str:
        """Without masks that cover no pixel: they say nothing."""
        return super().written([mask for mask in shapes if len(mask.counts) > 1])

    def plain(self, shape: Mask) -> dict[str, Any]:
        return {"label": shape.label, "size": list(shape.size), "counts": list(shape.counts)}

    def stored(self, entry: Mapping[str, Any]) -> Mask:
        height, width = map(int, entry["size"])
        return Mask(str(entry["label"]), (height, width), tuple(map(int, entry["counts"])))

    def shape_schema(self) -> dict[str, Any]:
        side = {"type": "integer", "minimum": 1, "maximum": LONGEST_SIDE}
        return {
            "size": {"type": "array", "items": side, "minItems": 2, "maxItems": 2},
            "counts": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        }

    def drawing(self, shapes: Sequence[Mask]) -> Drawing:
        height, width = shapes[0].size if shapes else (1, 1)
        paths, left = list[Path](), SHOWN_PIECES
        for mask in shapes[:DRAWN]:
            pieces = list(islice(_pieces(mask), left))
            left -= len(pieces)
            if not left:
                break
            paths.append(Path(mask.label, "".join(pieces)))
        return Drawing(width, height, paths, filled=True, more=len(shapes) - len(paths))

    def of_region(self, result: Mapping[str, Any]) -> dict[str, Any]:
        value = result["value"]
        # JSON-MIN has the size among the rest.
        sides = [result.get(side, value.get(side)) for side in ("original_height", "original_width")]
        return {"label": one_label(value.get(self.region_type)), "size": sides, "rle": value.get("rle")}

    def region(self, shape: Mask) -> dict[str, Any]:
        (height, width), pixels = shape.size, shape.size[0] * shape.size[1]
        rows = rle.transposed(shape.edges, height, width)
        return {
            "original_width": width,
            "original_height": height,
            "image_rotation": 0,
            "value": {"format": "rle", "rle": brush.packed(rows, pixels), self.region_type: [shape.label]},
        }

    def of_cvat(self, fields: Mapping[str, str], width: int, height: int) -> dict[str, Any]:
        part = {name: fields.get(name) for name in _PART}
        return {"label": fields.get("label"), "size": [height, width], "part": fields.get("rle"), **part}


# --- The ways to write one ---
_PART = ("left", "top", "width", "height")
_FORMS = {"rle": ("rle",), "part": ("part", *_PART), "counts": ("counts",)}
"""By what tells them: all that stands there beside label and size."""


def _of_coco(entry: Mapping[str, Any], size: Size) -> list[int] | str:
    """The edges down the columns, or why there are none, of counts in a list or in COCO's compressed form."""
    given = entry["counts"]
    counts = rle.from_text(given) if isinstance(given, str) else _counts(given)
    if counts is None:
        return _("its “counts” are no run lengths: a list of whole numbers from 0, or COCO's compressed text")
    if sum(counts) != size[0] * size[1]:
        return _("its “counts” are together %(found)s pixels, and its size has %(pixels)s") % {
            "found": f"{sum(counts):,}",
            "pixels": f"{size[0] * size[1]:,}",
        }
    return rle.edges_of(counts)


def _of_label_studio(entry: Mapping[str, Any], size: Size) -> list[int] | str:
    height, width = size
    edges = brush.unpacked(entry["rle"], height * width)
    if edges is None:
        return _("its “rle” is not what Label Studio makes of an image of its size")
    return _turned(edges, width, height)


def _of_cvat(entry: Mapping[str, Any], size: Size) -> list[int] | str:
    """Runs along the rows of the part in which the mask lies."""
    sides = [_whole(entry.get(name)) for name in _PART]
    counts = _counts(str(entry["part"]).split(","))
    if counts is None or any(side is None for side in sides):
        return _("its “rle”, “left”, “top”, “width” or “height” is no whole number of pixels")
    left, top, across, down = (side or 0 for side in sides)
    if left + across > size[1] or top + down > size[0] or not across or not down:
        return _("it reaches beyond the image")
    if sum(counts) != across * down:
        return _("its “rle” is together %(found)s pixels, and its width and height have %(pixels)s") % {
            "found": f"{sum(counts):,}",
            "pixels": f"{across * down:,}",
        }
    part = rle.edges_of(counts)
    if rle.perimeter(part, across) > MOST_OUTLINE:
        return str(TOO_LONG)
    return _turned(rle.placed(part, across, left=left, top=top, width=size[1]), size[1], size[0])


_READERS = {"rle": _of_label_studio, "part": _of_cvat, "counts": _of_coco}


def _turned(edges: list[int], length: int, number: int) -> list[int] | str:
    sides = rle.perimeter(edges, length)
    if sides > MOST_OUTLINE:
        return str(TOO_LONG)
    if not outline_budget.spend(sides):
        return ValueReason(str(outline_budget.SPENT), outline_budget.SPENT_CODE)
    return rle.transposed(edges, length, number)


def _size(given: Any) -> Size | None:
    if not isinstance(given, list | tuple) or len(given) != 2:
        return None
    height, width = map(_whole, given)
    if not height or not width or max(height, width) > LONGEST_SIDE or height * width > MOST_PIXELS:
        return None
    return height, width


def _counts(given: Any) -> list[int] | None:
    if not isinstance(given, list | tuple):
        return None
    found = [count for count in map(_whole, given) if count is not None]
    return found if len(found) == len(given) else None


def _whole(given: Any) -> int | None:
    """A number of pixels, which models and files may give as text; None for anything else."""
    if isinstance(given, str):
        given = given.strip()
        given = int(given) if given.isascii() and given.isdigit() and len(given) <= 10 else None
    return given if type(given) is int and 0 <= given <= MOST_PIXELS else None


def _pieces(mask: Mask) -> Iterator[str]:
    """Rectangles down its columns, of a wide mask of every second, third, ... column, so much wider."""
    found = list(rle.lines(mask.edges, mask.size[0]))
    if not found:
        return
    step = ceil((found[-1][1] - found[0][0]) / SHOWN_COLUMNS)
    shown = 0
    for first, after, within in found:
        start = max(first, shown)
        if start >= after:
            continue
        shown = max(after, start + step)
        wide = min(shown, mask.size[1]) - start
        for top, bottom in zip(within[::2], within[1::2], strict=True):
            yield f"M{start} {top}h{wide}v{bottom - top}h-{wide}z"
