"""Configurations of Label Studio: what people see, and the one thing they are asked. A project is made from
one and gives one, with which Label Studio shows its items and what was said about them.

A configuration is XML that somebody gave: a document type (and with it every entity) is refused before
anything is parsed.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from django.utils.translation import gettext as _
from PIL import ImageColor

from annotation.common.value_reader import Value
from annotation.errors import InputError
from annotation.imports.columns import shown_in_order
from annotation.imports.formats.label_studio_names import plain_names
from annotation.imports.formats.reserved import LABEL_STUDIO
from annotation.imports.formats.zip_images import FILE_NAME
from annotation.models import Choice, Project
from annotation.projects.choices import RESERVED_HOTKEYS, ChoiceSpec
from annotation.task_types import SHAPES, TASK_TYPES, Shapes

WHERE = "label_config"
MAX_CHARACTERS = 200_000
RATING_STARS = 5

SHAPE_CONTROLS: dict[str, Shapes[Any]] = {tag: kind for kind in SHAPES for tag in kind.controls}
CONTROLS = ("Choices", "TextArea", "Rating", "Number", *SHAPE_CONTROLS)
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

    @property
    def shapes(self) -> Shapes[Any] | None:
        """What is drawn with it; None where nothing is."""
        return SHAPE_CONTROLS.get(self.tag)

    @property
    def entry(self) -> str:
        """The tag of each of its labels."""
        return "Label" if self.shapes else "Choice"


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
    of_shapes = {label for tag in tags if tag.tag in SHAPE_CONTROLS for label in tag.findall("Label")}
    names = sorted({str(tag.tag) for tag in tags if tag not in of_shapes} - KNOWN)
    if not names:
        return []
    return [
        _(
            "These tags are not supported: %(names)s. Spans, polygons, audio, video and relations are not "
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
    if control.tag in SHAPE_CONTROLS:
        found += _of_shapes(control, objects)
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


def _of_shapes(control: ElementTree.Element, objects: Sequence[ElementTree.Element]) -> list[str]:
    found = []
    labels = control.findall("Label")
    if control.get("value"):
        found.append(_("Labels that each task brings along (value) are not supported: list them."))
    elif not labels or any(not label.get("value") for label in labels):
        found.append(_("%(tag)s needs a Label with a value for each label.") % {"tag": control.tag})
    if control.get("choice") == "multiple":
        found.append(_('What is drawn has one label here: take choice="multiple" out.'))
    if [tag.tag for tag in objects] != ["Image"]:
        found.append(_("%(tag)s draws on one Image, and nothing else is shown.") % {"tag": control.tag})
    elif objects[0].get("valueList"):
        found.append(_("An item is one image: take valueList out."))
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
    for choice in control.findall("Label" if control.tag in SHAPE_CONTROLS else "Choice"):
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


# --- A label as Label Studio writes it: the results of an annotation or of a prediction ---
def results_of(value: Value, control: Control, *, name: str) -> list[dict[str, Any]]:
    """`name` tells this answer from all others, so that its id is the same each time.

    Of several choices none is no result, as in Label Studio; of shapes each is one.
    """
    if value == []:
        return []
    if control.shapes:
        regions = [
            (f"{name}\n{number}", region)
            for number, region in enumerate(control.shapes.regions(value), start=1)
        ]
    else:
        regions = [(name, {"value": _value(value, control.kind)})]
    return [
        {
            "id": hashlib.sha256(own.encode()).hexdigest()[:10],
            "from_name": control.name,
            "to_name": control.to_name,
            "type": control.kind,
            **said,
        }
        for own, said in regions
    ]


def _value(value: Value, kind: str) -> dict[str, Any]:
    if isinstance(value, list):
        return {kind: value}
    if kind == "choices":
        return {"choices": [value]}
    if kind == "textarea":
        return {"text": [value]}
    return {kind: int(value) if value.lstrip("-").isdigit() else float(value)}


def is_exact(value: Value, kind: str) -> bool:
    """Whether a number is one that programs which read JSON hold as it is."""
    if kind != "number" or not isinstance(value, str):
        return True
    digits = value.replace(".", "").lstrip("-0")
    return len(digits) <= 15


# --- A configuration for a project ---
NAME, ITEM = "label", "item"
LOOKED_AT = 50


def config_of(project: Project) -> str:
    """The configuration that the project was made from, as long as its labels are still those; else one that
    is made for it.
    """
    choices = list(project.choices.order_by("position"))
    if project.label_config:
        with suppress(InputError):
            if _still_fits(read_config(project.label_config), project, choices):
                return project.label_config
    kind = TASK_TYPES[project.task_type]
    images = kind.on_images or project.items.filter(image__isnull=False).exists()
    plain = plain_names(project.columns)
    columns = [plain.get(name, name) for name in columns_of_tasks(project)]
    return write_config(
        task_type=project.task_type,
        choices=choices,
        columns=columns or ["image" if images else "text"],
        images=images,
        names=_names_of_tasks(project),
    )


def columns_of_tasks(project: Project) -> list[str]:
    """Which columns the configuration shows of a task, in their order. Of an image to draw on it is one, by
    which the task has the image; in an archive that of its file's name.
    """
    shown = shown_in_order(project) or project.columns[:1]
    if not TASK_TYPES[project.task_type].on_images:
        return shown
    return [FILE_NAME] if FILE_NAME in project.columns and FILE_NAME not in shown else shown[:1]


def _still_fits(config: LabellingConfig, project: Project, choices: Sequence[Choice]) -> bool:
    keys = {spec.key or spec.name for spec in config.choices}
    columns = plain_names(project.columns)
    if columns and not set(config.columns) <= {*columns, *columns.values()}:
        return False
    return config.task_type == project.task_type and keys == {choice.key for choice in choices}


def _names_of_tasks(project: Project) -> tuple[str, str]:
    """The names that imported annotations and predictions have for the answer and for what it is about."""
    wanted = TASK_TYPES[project.task_type].controls[0].lower()
    if LABEL_STUDIO in project.columns:
        cells = project.items.filter(typed__has_key=LABEL_STUDIO).order_by("position")
        for task in cells.values_list(f"typed__{LABEL_STUDIO}", flat=True)[:LOOKED_AT]:
            for result in _results(task):
                if result.get("type") == wanted:
                    return str(result.get("from_name") or NAME), str(result.get("to_name") or ITEM)
    return NAME, ITEM


def _results(task: Any) -> Iterator[dict[str, Any]]:
    for given in ("annotations", "predictions"):
        entries = task.get(given) if isinstance(task, dict) else None
        for entry in entries if isinstance(entries, list) else ():
            results = entry.get("result") if isinstance(entry, dict) else None
            if isinstance(results, list):
                yield from (result for result in results if isinstance(result, dict))


def write_config(
    *,
    task_type: str,
    choices: Sequence[Choice],
    columns: Sequence[str],
    images: bool = False,
    names: tuple[str, str] = (NAME, ITEM),
) -> str:
    """`columns` are those that people see, in their order, by names that can be shown (`plain_names`);
    `names` are those of the answer and of what it is about.
    """
    root = ElementTree.Element("View")
    name, to_name = names
    for place, column in enumerate(columns):
        own = to_name if not place else f"{to_name}_{place + 1}"
        ElementTree.SubElement(root, "Image" if images else "Text", name=own, value=f"${column}")
    kind = TASK_TYPES[task_type]
    attributes = {"name": name, "toName": to_name, **kind.control_attributes}
    control = ElementTree.SubElement(root, kind.controls[0], attributes)
    if kind.has_labels:
        for choice in choices:
            tag = "Choice" if kind.has_choices else "Label"
            entry = ElementTree.SubElement(control, tag, value=choice.name)
            if choice.key != choice.name:
                entry.set("alias", choice.key)
            if choice.hotkey:
                entry.set("hotkey", choice.hotkey)
            entry.set("background", choice.color)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"
