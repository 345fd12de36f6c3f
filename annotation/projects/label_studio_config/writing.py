"""A configuration for a project, with which Label Studio shows its items and what was said about them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from xml.etree import ElementTree

from annotation.errors import InputError
from annotation.imports.formats.label_studio_names import plain_names
from annotation.imports.formats.reserved import LABEL_STUDIO
from annotation.imports.shown_columns import shown_in_order
from annotation.models import Choice, Project
from annotation.projects.label_studio_config.reading import LabellingConfig, read_config
from annotation.task_types import TASK_TYPES

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
    images = project.items.filter(image__isnull=False).exists()
    plain = plain_names(project.columns)
    columns = [plain.get(name, name) for name in shown_in_order(project) or project.columns[:1]]
    return write_config(
        task_type=project.task_type,
        choices=choices,
        columns=columns or ["image" if images else "text"],
        images=images,
        names=_names_of_tasks(project),
    )


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
    if kind.has_choices:
        for choice in choices:
            entry = ElementTree.SubElement(control, "Choice", value=choice.name)
            if choice.key != choice.name:
                entry.set("alias", choice.key)
            if choice.hotkey:
                entry.set("hotkey", choice.hotkey)
            entry.set("background", choice.color)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"
