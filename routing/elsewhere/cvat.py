"""Boxes and masks by way of CVAT: images in an archive that it takes, and its file "CVAT for images 1.1".

CVAT knows a frame by the name of its file alone, so the number of the item begins it: 17_cat.png.
"""

import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from typing import Any, NamedTuple
from xml.etree import ElementTree

from django.utils.translation import gettext as _
from PIL import ExifTags, Image

from annotation.common import audit
from annotation.common.files import open_file
from annotation.common.storage import StorageError
from annotation.errors import ConflictError, InputError
from annotation.models import Item, Project, User, WorkItem
from annotation.task_types import TASK_TYPES, Shapes
from annotation.task_types.base import short
from routing.delivery.downloads import FIRST_MOMENT, READ_BY_ALL, Pipe
from routing.elsewhere.answers import Given
from routing.elsewhere.cvat_files import Frame, read_file
from routing.elsewhere.work import PAGE, batches_for_elsewhere, waiting_work
from routing.models import Run

CVAT = "cvat"
FILE, FOLDER = "annotations.xml", "images"
LEFT_OUT = "left-out.txt"
"""Number and name of each item that waits and whose image is not in the archive, where there are any."""
WAIT, NOTHING = "wait", "nothing"
EMPTY = (WAIT, NOTHING)
"""What an image without a shape says: that nobody looked at it yet, or that there is nothing to draw."""
MOST_PIXELS = 10**6
_ON_ITS_SIDE = range(5, 9)
_ENDINGS = {"image/jpeg": "jpg"}
_NUMBER = re.compile(r"(?:^|[/\\])([0-9]{1,18})_[^/\\]*\Z")
_SIZE = re.compile(r"[0-9]{1,7}")
BLOCK = 1024**2


def archive(*, run: Run, user: User, part: str) -> Callable[[], Iterator[bytes]]:
    """The parts of a zip archive with what waits: the images, and `annotations.xml`, which has the labels and
    names every image without a shape. That it was given out stands in the audit trail.

    Raises ConflictError where nothing of that part may be labelled elsewhere now, or no shapes are asked for,
    or where the images are not here.
    """
    kind = shapes_of(run.project)
    batches = batches_for_elsewhere(run, part)
    asked = WorkItem.objects.filter(batch__in=batches)
    if asked.exists() and not asked.filter(item__image__isnull=False).exists():
        raise ConflictError(
            _("The images of this project are not here, but at the addresses that its items have."),
            code="no_images_here",
        )
    audit.record(
        project=run.project,
        actor=user,
        action="run.handed_out",
        target=f"run:{run.number}",
        data={"format": CVAT, "part": part},
    )
    project = run.project

    def parts() -> Iterator[bytes]:
        pipe, frames, left_out = Pipe(), list[tuple[str, tuple[int, int]]](), list[str]()
        ids = waiting_work(batches)
        with zipfile.ZipFile(pipe, "w", zipfile.ZIP_STORED) as made:  # type: ignore[call-overload]
            for start in range(0, len(ids), PAGE):
                found = Item.objects.select_related("image").in_bulk(ids[start : start + PAGE])
                for item in (found[pk] for pk in ids[start : start + PAGE] if pk in found):
                    # All of it, before its first byte is sent: later nothing could be said any more.
                    image = _image(item)
                    if image is None:
                        left_out.append(f"{item.pk}\t{' '.join(item.short_name.split())}")
                        continue
                    name = name_of(item)
                    frames.append((name, image.size))
                    with made.open(_entry(f"{FOLDER}/{name}"), "w") as out:
                        for start_of_block in range(0, len(image.content), BLOCK):
                            out.write(image.content[start_of_block : start_of_block + BLOCK])
                            yield pipe.take()
            made.writestr(_entry(FILE), written(project, kind, frames))
            if left_out:
                made.writestr(_entry(LEFT_OUT), "".join(f"{line}\n" for line in left_out))
        yield pipe.take()

    return parts


def name_of(item: Item) -> str:
    """Of its file there: the item's number, and what its own name has of letters and digits."""
    assert item.image is not None  # noqa: S101 - asked for images alone
    stem = re.sub(r"[^\w-]+", "_", item.short_name.rpartition(".")[0] or item.short_name, flags=re.ASCII)
    kind = item.image.media_type
    return f"{item.pk}_{stem[:60]}.{_ENDINGS.get(kind, kind.removeprefix('image/'))}"


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, FIRST_MOMENT)
    info.external_attr = READ_BY_ALL
    return info


class _Image(NamedTuple):
    """A file, and its width and height in pixels."""

    content: bytes
    size: tuple[int, int]


def _image(item: Item) -> _Image | None:
    """The file of an item, with its size as programs show it that turn it by its EXIF; None for an item
    without an image, or whose file is lost, cannot be read to its end, or is no image any more.
    """
    if item.image is None:
        return None
    try:
        with open_file(item.image) as stored:
            content = stored.read()
        with Image.open(BytesIO(content)) as image:
            width, height = image.size
            on_its_side = image.getexif().get(ExifTags.Base.Orientation) in _ON_ITS_SIDE
            return _Image(content, (height, width) if on_its_side else (width, height))
    except (InputError, StorageError, OSError):
        return None


def written(project: Project, kind: Shapes[Any], frames: Sequence[tuple[str, tuple[int, int]]]) -> bytes:
    """CVAT's file with these frames, by name and size, and no shape in them."""
    root = ElementTree.Element("annotations")
    ElementTree.SubElement(root, "version").text = "1.1"
    task = ElementTree.SubElement(ElementTree.SubElement(root, "meta"), "task")
    ElementTree.SubElement(task, "size").text = str(len(frames))
    labels = ElementTree.SubElement(task, "labels")
    for choice in project.choices.order_by("position"):
        label = ElementTree.SubElement(labels, "label")
        ElementTree.SubElement(label, "name").text = choice.key
        ElementTree.SubElement(label, "color").text = choice.color
        ElementTree.SubElement(label, "type").text = kind.cvat_type
        ElementTree.SubElement(label, "attributes")
    for number, (name, (width, height)) in enumerate(frames):
        sizes = {"width": str(width), "height": str(height)}
        ElementTree.SubElement(root, "image", {"id": str(number), "name": name, **sizes})
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def answers_of(content: bytes, kind: Shapes[Any], *, annotator: str, empty: str) -> list[Given]:
    """One for each image of CVAT's file, in their order; what cannot be read of one is said there.

    Raises InputError for what is no such file.
    """
    found = read_file(content, shape=kind.cvat_tag, most=kind.most)
    if not found:
        raise InputError(
            _("There is no image in this file. Export the task in the format “CVAT for images 1.1”."),
            where="body",
        )
    return [
        _given(image, kind, row=row, annotator=annotator, empty=empty)
        for row, image in enumerate(found, start=1)
    ]


def _given(image: Frame, kind: Shapes[Any], *, row: int, annotator: str, empty: str) -> Given:
    number = _NUMBER.search(image.fields.get("name", ""))
    item = int(number[1]) if number else None
    value, problem = _value(image, kind, empty)
    if item is None:
        value, problem = None, _("Its name begins with no item's number, as those of the archive do.")
    return Given(row, item, value, annotator, problem=problem)


def _value(image: Frame, kind: Shapes[Any], empty: str) -> tuple[list[dict[str, Any]] | None, str]:
    """The shapes and "", or None and why there are none, in a sentence."""
    if image.other:
        return None, str(kind.only_these) % {"shape": short(image.other)}
    if not image.shapes and empty == WAIT:
        return None, _(
            "Nothing is drawn on it. If whoever drew looked at all of these images, send the file again with "
            "empty=nothing."
        )
    width, height = (_pixels(image.fields.get(side, "")) for side in ("width", "height"))
    if not width or not height:
        return None, _("Its width and height are not there: whole numbers of pixels from 1 to 1,000,000.")
    return [kind.of_cvat(shape, width, height) for shape in image.shapes], ""


def _pixels(text: str) -> int | None:
    """The width or height of an image."""
    return int(text) if _SIZE.fullmatch(text) and 1 <= int(text) <= MOST_PIXELS else None


def shapes_of(project: Project) -> Shapes[Any]:
    """Raises ConflictError where the project asks for no shapes."""
    kind = TASK_TYPES[project.task_type]
    if not isinstance(kind, Shapes):
        raise ConflictError(
            _("CVAT's files hold shapes on images, and this project asks for none."), code="no_boxes_asked"
        )
    return kind
