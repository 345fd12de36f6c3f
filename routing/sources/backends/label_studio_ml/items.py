"""What a server is sent of an item: the fields that the label configuration shows, and no other column."""

import base64
from typing import Any

from annotation.common.files import open_file
from annotation.models import Item
from routing.sources.backends.label_studio_ml.label_config import IMAGE, LabelConfig


class ItemError(Exception):
    """The item cannot be shown as the label configuration says."""


def task_of(item: Item, config: LabelConfig) -> dict[str, Any]:
    """The data of a Label Studio task. An image goes as a data URI: nobody gets a key to fetch it with.

    A field is the column of its name; a tag for text whose field no column has shows the item's text. Raises
    ItemError.
    """
    data: dict[str, Any] = {}
    for field, tag in config.fields.items():
        if tag == IMAGE:
            data[field] = _image(item)
        elif field in item.data:
            data[field] = item.data[field]
        elif item.image_id:
            raise ItemError(f"the label configuration shows {field!r}, and the item is an image without it")
        else:
            data[field] = item.text
    return data


def _image(item: Item) -> str:
    if item.image is None:
        raise ItemError("the label configuration shows an image, and the item is text")
    with open_file(item.image) as content:
        encoded = base64.b64encode(content.read()).decode()
    return f"data:{item.image.media_type};base64,{encoded}"
