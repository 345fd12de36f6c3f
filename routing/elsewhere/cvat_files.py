"""The images of a file "CVAT for images 1.1", read without a tree of it, which would take fifty times the
memory of its text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.task_types.base import short
from routing.elsewhere.answers import MOST

MOST_BYTES = 8 * 1024**2
DEEPEST = 20
"""Elements within each other: a task's meta has eight."""
ROOT, IMAGE, TAG = "annotations", "image", "tag"
BESIDE = frozenset({"version", "meta", IMAGE})
_IMAGE_DEPTH, _SHAPE_DEPTH = 2, 3


@dataclass
class Frame:
    """An image: its own fields, those of each of its shapes, of which one more is kept than an image may
    have, and the name of the first thing on it that is neither such a shape nor a tag, "" without one.
    """

    fields: Mapping[str, str]
    shapes: list[Mapping[str, str]] = field(default_factory=list)
    other: str = ""


class _Reader:
    """What the parser calls for each element."""

    def __init__(self, shape: str, most: int) -> None:
        self.frames: list[Frame] = []
        self._shape, self._most = shape, most
        self._depth, self._within_image = 0, False

    def start(self, tag: str, fields: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise InputError(_("The elements of this file lie too deep within each other."), where="body")
        if self._depth == 1 and tag != ROOT:
            raise _other_file(tag)
        if self._depth == _IMAGE_DEPTH:
            self._begin(tag, fields)
        elif self._depth == _SHAPE_DEPTH and self._within_image:
            frame = self.frames[-1]
            if tag not in (self._shape, TAG):
                frame.other = frame.other or tag
            elif tag == self._shape and len(frame.shapes) <= self._most:
                frame.shapes.append(fields)

    def _begin(self, tag: str, fields: Mapping[str, str]) -> None:
        if tag not in BESIDE:
            raise _other_file(tag)
        self._within_image = tag == IMAGE
        if self._within_image:
            if len(self.frames) == MOST:
                raise InputError(
                    _("More than %(most)s images are in this file. Export the jobs of the task one by one.")
                    % {"most": f"{MOST:,}"},
                    where="body",
                )
            self.frames.append(Frame(fields))

    def end(self, _tag: str) -> None:
        self._depth -= 1

    def close(self) -> list[Frame]:
        return self.frames


def read_file(content: bytes, *, shape: str, most: int) -> list[Frame]:
    """In their order, with the shapes of that tag, of which an image may have so many. Raises InputError for
    what is no such file, or a too large one.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(_("This is no text in UTF-8."), where="body") from None
    # Even within a comment: what is one, only a parser knows.
    if re.search(r"<!(?!--)", text):
        raise InputError(_("It needs no <!DOCTYPE>, <!ENTITY> or <![CDATA[; leave them out."), where="body")
    reader = _Reader(shape, most)
    parser = ElementTree.XMLParser(target=reader)  # noqa: S314 - without entities
    try:
        parser.feed(re.sub(r"\A\s*<\?xml[^>]*\?>", "", text))
        parser.close()
    except (ElementTree.ParseError, ValueError, RecursionError) as error:
        raise InputError(
            _("This is no XML (%(error)s). Send annotations.xml out of the archive that CVAT exports.")
            % {"error": str(error)[:200]},
            where="body",
        ) from None
    return reader.frames


def _other_file(tag: str) -> InputError:
    return InputError(
        _("This file has a %(tag)s where images are. Export the task in the format “CVAT for images 1.1”.")
        % {"tag": short(tag)},
        where="body",
    )
