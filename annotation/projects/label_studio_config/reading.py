"""Reading a configuration: what people see, and the one thing they are asked.

It is XML that somebody gave: a document type (and with it every entity) is refused before anything is parsed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from django.utils.translation import gettext as _
from PIL import ImageColor

from annotation.errors import InputError
from annotation.models import Project
from annotation.projects.choices import RESERVED_HOTKEYS, ChoiceSpec
from annotation.task_types import TASK_TYPES

WHERE = "label_config"
MAX_CHARACTERS = 200_000
RATING_STARS = 5

CONTROLS = ("Choices", "TextArea", "Rating", "Number")
OBJECTS = ("Text", "Image")
# What only lays the page out, or is read with its parent.
SILENT = frozenset({"View", "Header", "Style", "Choice", "Markdown"})
KNOWN = frozenset({*CONTROLS, *OBJECTS, *SILENT})


@dataclass(frozen=True)
class Control:
    """How an answer is written in a result: `tag` is one of CONTROLS."""

    tag: str
    name: str
    to_name: str

    @property
    def kind(self) -> str:
        """The type of its results."""
        return self.tag.lower()


@dataclass(frozen=True)
class LabellingConfig:
    """`columns` are the fields of a task's data that people see, without the dollar sign."""

    task_type: str
    choices: Sequence[ChoiceSpec]
    text_format: str
    shows_images: bool
    columns: Sequence[str]
    control: Control


def read_config(text: str) -> LabellingConfig:
    """Raises InputError that names all that cannot be used, and what to do."""
    root = _parsed(text)
    tags = [tag for tag in root.iter() if isinstance(tag.tag, str)]
    controls = [tag for tag in tags if tag.tag in CONTROLS]
    objects = [tag for tag in tags if tag.tag in OBJECTS]
    problems = [*_unknown(tags), *_of_controls(controls, objects), *_of_objects(objects)]
    if problems:
        raise InputError(" ".join(problems), where=WHERE)
    control = controls[0]
    markdown = any(tag.tag == "Markdown" for tag in tags)
    return LabellingConfig(
        task_type=_task_type(control),
        choices=_choices(control),
        text_format=Project.TextFormat.MARKDOWN if markdown else Project.TextFormat.PLAIN,
        shows_images=any(tag.tag == "Image" for tag in objects),
        columns=tuple(dict.fromkeys(str(tag.get("value"))[1:] for tag in objects)),
        control=Control(str(control.tag), str(control.get("name")), str(control.get("toName"))),
    )


def _parsed(text: str) -> ElementTree.Element:
    if len(text) > MAX_CHARACTERS:
        raise InputError(
            _("The configuration has more than %(most)s characters.") % {"most": f"{MAX_CHARACTERS:,}"},
            where=WHERE,
        )
    if re.search(r"<!\s*(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise InputError(
            _("The configuration declares a document type or entities. Take that out."), where=WHERE
        )
    # What an encoding declaration says of bytes is nothing to a text.
    text = re.sub(r"\A\s*<\?xml[^>]*\?>", "", text).strip()
    try:
        return ElementTree.fromstring(text)  # noqa: S314 - without a document type there are no entities
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(
            _("This is no XML (%(error)s). Copy the whole configuration from Label Studio: Settings, "
              "Labeling Interface, Code.") % {"error": error},
            where=WHERE,
        ) from None  # fmt: skip


def _unknown(tags: Sequence[ElementTree.Element]) -> list[str]:
    names = sorted({str(tag.tag) for tag in tags} - KNOWN)
    if not names:
        return []
    return [
        _(
            "These tags are not supported: %(names)s. Spans, boxes, audio, video and relations are not "
            "labelled here; take them out of the configuration, or leave this project in Label Studio."
        )
        % {"names": ", ".join(name[:60] for name in names)}
    ]


def _of_controls(
    controls: Sequence[ElementTree.Element], objects: Sequence[ElementTree.Element]
) -> list[str]:
    if len(controls) != 1:
        named = ", ".join(f"{tag.tag} {tag.get('name', '')}".strip() for tag in controls)
        if not controls:
            return [_("It asks nothing: it needs one of %(tags)s.") % {"tags": ", ".join(CONTROLS)}]
        return [
            _(
                "It asks %(count)d things of each task (%(named)s), and a project here asks one. Make a "
                "project for each, with the others taken out of the configuration."
            )
            % {"count": len(controls), "named": named}
        ]
    control = controls[0]
    found = []
    if not control.get("name") or not control.get("toName"):
        found.append(_("%(tag)s needs a name and a toName.") % {"tag": control.tag})
    elif control.get("toName") not in {tag.get("name") for tag in objects}:
        found.append(
            _("%(tag)s “%(name)s” belongs to “%(to)s”, which is not there.")
            % {"tag": control.tag, "name": control.get("name"), "to": control.get("toName")}
        )
    if control.get("perRegion") == "true" or control.get("perItem") == "true":
        found.append(_("Answers to a part of a task (perRegion, perItem) are not supported. Take that out."))
    if control.tag == "Choices":
        found += _of_choices(control)
    if control.tag == "Rating" and not 2 <= _stars(control) <= 100:
        found.append(_("A rating has 2 to 100 stars (maxRating)."))
    return found


def _of_choices(control: ElementTree.Element) -> list[str]:
    found = []
    given = control.findall("Choice")
    if control.get("value") or control.get("apiUrl"):
        found.append(_("Choices that each task brings along (value, apiUrl) are not supported: list them."))
    elif not given:
        found.append(_("Choices needs a Choice for each label."))
    if any(len(choice) for choice in given):
        found.append(_("Choices within a Choice are not supported: put them all on one level."))
    if any(not choice.get("value") for choice in given):
        found.append(_("Each Choice needs a value."))
    return found


def _of_objects(objects: Sequence[ElementTree.Element]) -> list[str]:
    if not objects:
        return [_("It shows nothing: it needs one of %(tags)s.") % {"tags": ", ".join(OBJECTS)}]
    found = []
    if any(not re.fullmatch(r"\$[^\s$].*", tag.get("value", "")) for tag in objects):
        found.append(_('What is shown is named by value="$field", the field of the task\'s data.'))
    if len({tag.tag for tag in objects}) > 1:
        found.append(_("Texts and images in one task are not supported: an item is one or the other."))
    return found


def _task_type(control: ElementTree.Element) -> str:
    return next(
        name for name, kind in TASK_TYPES.items() if kind.is_asked_by(str(control.tag), control.attrib)
    )


def _choices(control: ElementTree.Element) -> list[ChoiceSpec]:
    """The key is what results hold: the alias where there is one."""
    if control.tag == "Rating":
        return [ChoiceSpec(str(stars)) for stars in range(1, _stars(control) + 1)]
    taken: set[str] = set()
    found = []
    for choice in control.findall("Choice"):
        name = str(choice.get("value"))
        hotkey = choice.get("hotkey", "").strip().lower()
        if len(hotkey) != 1 or hotkey in RESERVED_HOTKEYS | taken:
            hotkey = ""
        taken.add(hotkey)
        key = choice.get("alias") or name.strip()
        found.append(ChoiceSpec(name, key=key, hotkey=hotkey, color=_color(choice.get("background"))))
    return found


def _stars(control: ElementTree.Element) -> int:
    return _whole(control.get("maxRating"), RATING_STARS)


def _whole(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else default


def _color(text: str | None) -> str:
    """As # and six digits; "" where it is no colour that is known by its name or number."""
    try:
        return "#{:02x}{:02x}{:02x}".format(*ImageColor.getrgb(text or "")[:3])
    except ValueError:
        return ""
