"""Answers that are of an image of another size than the one that they were sent for."""

from collections.abc import Sequence
from typing import Any

from annotation.common.image_sizes import Size, misfit, sizes_of
from annotation.common.value_reader import ValueReader
from annotation.words import Words


def misfits(reader: ValueReader, labels: Sequence[tuple[int, Any]]) -> list[Words | None]:
    """Of each (item, label) why it cannot be of the item's image, or None. Images are read for it: not while
    anything is locked.
    """
    sizes = sizes_of({item for item, _label in labels})
    return [_misfit(reader, label, sizes.get(item)) for item, label in labels]


def _misfit(reader: ValueReader, label: Any, size: Size | None) -> Words | None:
    value, _reason = (None, "") if size is None else reader(label)
    return None if value is None or size is None else misfit(reader.kind, value, size)
