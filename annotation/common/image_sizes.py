"""How large images are, as programs show them that turn them by their EXIF."""

from collections.abc import Collection, Sequence
from typing import IO, Any

from django.utils.translation import gettext_noop
from PIL import ExifTags, Image

from annotation.common.files import open_file
from annotation.common.storage import StorageError
from annotation.common.value_reader import ValueReader
from annotation.errors import InputError
from annotation.models import Item, StoredFile
from annotation.task_types import TaskType
from annotation.words import Words

Size = tuple[int, int]
"""Height and width in pixels."""
OTHER_SIZE = gettext_noop(
    "It is of an image with %(found)s pixels (height × width), and this image has %(wanted)s. Scale it to "
    "that size."
)
_ON_ITS_SIDE = range(5, 9)
# No SVG: it can hold scripts.
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")


def size_of(stored: StoredFile) -> Size | None:
    """None where the file is lost, or is no image any more."""
    try:
        with open_file(stored) as file:
            return size_in(file)
    except (InputError, StorageError, OSError):
        return None


def size_in(file: IO[bytes]) -> Size:
    """Of the image in an open file, of which no more than its header is read. Raises OSError for no image."""
    with Image.open(file, formats=FORMATS) as image:
        width, height = image.size
        return (width, height) if _on_its_side(image) else (height, width)


def _on_its_side(image: Image.Image) -> bool:
    try:
        return image.getexif().get(ExifTags.Base.Orientation) in _ON_ITS_SIDE
    except Exception:  # damaged EXIF, which browsers pass over: SyntaxError, struct.error and others
        return False


def sizes_of(items: Collection[int]) -> dict[int, Size]:
    """By item; those without an image, or whose image cannot be read, are left out."""
    found = Item.objects.filter(pk__in=items, image__isnull=False).select_related("image")
    sizes = ((item.pk, size_of(item.image)) for item in found if item.image is not None)
    return {item: size for item, size in sizes if size is not None}


def misfit(kind: TaskType, value: object, size: Size) -> Words | None:
    """Why a stored value cannot be of an image of this size; None where it may."""
    found = kind.size_of(value)
    if found is None or found == size:
        return None
    return Words(OTHER_SIZE, found=_in_words(found), wanted=_in_words(size))


def misfits(reader: ValueReader, labels: Sequence[tuple[int, Any]]) -> list[Words | None]:
    """The same of each (item, label) as somebody sent it. Images are read for it: not while anything is
    locked.
    """
    sizes = sizes_of({item for item, _label in labels})
    return [_misfit_of(reader, label, sizes.get(item)) for item, label in labels]


def _misfit_of(reader: ValueReader, label: Any, size: Size | None) -> Words | None:
    value, _reason = (None, "") if size is None else reader(label)
    return None if value is None or size is None else misfit(reader.kind, value, size)


def _in_words(size: Size) -> str:
    return f"{size[0]:,} × {size[1]:,}"
