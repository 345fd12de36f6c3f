"""The images of items."""

import hashlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hypac_client.errors import ChecksumError, HypacError
from hypac_client.transport import Transport


def image_of(transport: Transport, project: str, item: Mapping[str, Any]) -> bytes:
    """The bytes of an item's image, checked against the SHA-256 by which the server names it.

    Of the address that the item has, that alone counts: the token goes to no other place.
    """
    sha256 = name_of(item)
    content = transport.content(f"{project}images/{sha256}/")
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ChecksumError(f"the image of item {item.get('id')} did not arrive as it was imported")
    return content


def name_of(item: Mapping[str, Any]) -> str:
    """The SHA-256 of its image, as it stands in an address."""
    if not item.get("image"):
        raise HypacError(f"item {item.get('id')} has no image")
    return quote(str(item["image"]).rstrip("/").rpartition("/")[2], safe="")


def save(content: bytes, path: str | PathLike[str]) -> Path:
    """At `path`, whose folder is made where it is missing."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return target
