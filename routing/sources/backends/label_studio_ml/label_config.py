"""Label Studio's description of what is shown and asked: the fields of an item, and the names of answers.

https://labelstud.io/tags lists the tags. An object tag (Text, Image, ...) has a value such as "$text", the
name of a field; a control tag (Choices, Number, ...) names the object tag that it is about in toName.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from django.utils.translation import gettext as _

from annotation.errors import InputError
from routing.sources.source_context import TaskSpec

# Control tag -> where the value of its answers is.
VALUES = {"Choices": "choices", "Number": "number", "Rating": "rating", "TextArea": "text"}
IMAGE = "Image"
MAX_CHARACTERS = 200_000
_VARIABLE = re.compile(r"\$([^\s$]+)")


@dataclass(frozen=True)
class LabelConfig:
    """`fields` are the names of what an item is sent with, each with the tag that shows it; `control` is the
    name of the tag that asks the project's question, `control_tag` its kind.
    """

    xml: str
    fields: Mapping[str, str]
    control: str
    control_tag: str


def label_config(task: TaskSpec, given: str = "") -> LabelConfig:
    """What `given` says, or for "" a configuration made from the project's task type and choices.

    Raises InputError naming label_config.
    """
    xml = given.strip() or made_from(task)
    root = parsed_config(xml)
    fields = {
        match[1]: tag.tag
        for tag in root.iter()
        if tag.get("name") and not tag.get("toName") and (match := _VARIABLE.match(tag.get("value") or ""))
    }
    if not fields:
        raise _wrong(_('No tag shows anything of an item, as <Text name="text" value="$text"/> does.'))
    wanted = task.kind.controls
    asking = next(
        (tag for tag in root.iter() if tag.tag in wanted and tag.get("name") and tag.get("toName")), None
    )
    if asking is None:
        raise _wrong(
            _("This project needs a tag %(names)s with a name and toName.") % {"names": " or ".join(wanted)}
        )
    return LabelConfig(xml, fields, asking.get("name") or "", asking.tag)


def made_from(task: TaskSpec) -> str:
    """A configuration that shows an item's text, or its image, and asks the project's question about it."""
    view = ET.Element("View")
    shown = "image" if task.kind.on_images else "text"
    ET.SubElement(view, IMAGE if task.kind.on_images else "Text", name=shown, value=f"${shown}")
    tag = task.kind.controls[0]
    control = ET.SubElement(view, tag, name="label", toName=shown)
    if task.kind.has_labels:
        if tag == "Choices":
            control.set("choice", task.kind.control_attributes["choice"])
        names = [name for _, name in task.choices]
        for key, name in task.choices:
            # What answers name a choice by. A name that two choices have would name neither.
            entry = "Choice" if tag == "Choices" else "Label"
            ET.SubElement(control, entry, value=name if names.count(name) == 1 else key)
    return ET.tostring(view, encoding="unicode")


def parsed_config(xml: str) -> ET.Element:
    """Raises InputError naming label_config."""
    if len(xml) > MAX_CHARACTERS:
        raise _wrong(
            _("It has more than %(max_characters)s characters.") % {"max_characters": f"{MAX_CHARACTERS:,}"}
        )
    # Even within a comment: what is one, only a parser knows.
    if re.search(r"<!(?!--)", xml):
        raise _wrong(_("It needs no <!DOCTYPE>, <!ENTITY> or <![CDATA[; leave them out."))
    try:
        return ET.fromstring(xml)  # noqa: S314 - entities cannot be declared: see above
    except (ET.ParseError, ValueError, RecursionError) as error:
        place = getattr(error, "position", None)
        where = f" (line {place[0]}, column {place[1] + 1})" if place else ""
        raise _wrong(_("It is no XML%(where)s.") % {"where": where}) from None


def _wrong(sentence: str) -> InputError:
    return InputError(sentence, where="label_config")
