"""The names that a template may hold: {{ text }}, {{ labels }}, a column of the data."""

import re
from collections.abc import Callable, Mapping

from django.utils.translation import gettext as _, gettext_lazy

from annotation.models import Item
from routing.sources.source_context import TaskSpec

PLACEHOLDER = re.compile(r"\{\{([^{}\n]{1,400})\}\}")
"""One placeholder, its name in the first group, perhaps with spaces around it."""

COLUMN = "column:"
"""What a name begins with that means a column, also where a placeholder of ours has the same name."""

OF_PROJECT = {
    "labels": gettext_lazy(
        "The labels, one on each line: the key, and after a colon the name where that differs."
    ),
    "label_keys": gettext_lazy("The keys of the labels in one line, with commas between them."),
    "guidelines": gettext_lazy("The guidelines of the project, as people see them."),
}
"""Placeholders that are the same for every item: all that a system message may hold."""

OF_ITEM = {
    "text": gettext_lazy("The text of the item."),
    "examples": gettext_lazy(
        "The solved examples as text. Without it they are sent as earlier turns of the chat."
    ),
}


def placeholders(spec: TaskSpec) -> dict[str, str]:
    """The names that a template of this project may hold, each with a sentence about it."""
    fixed = {name: str(words) for name, words in {**OF_ITEM, **OF_PROJECT}.items()}
    if not spec.kind.has_labels:
        fixed = {name: words for name, words in fixed.items() if not name.startswith("label")}
    columns = {
        f"{COLUMN}{column}" if column in fixed or column.startswith(COLUMN) else column: column
        for column in spec.columns
        if PLACEHOLDER.fullmatch("{{" + column + "}}") and column == column.strip()
    }
    return fixed | {
        name: _("The column %(column)r of the imported data.") % {"column": column}
        for name, column in columns.items()
    }


def names_in(template: str) -> list[str]:
    """The names of a template's placeholders, each once, in their order."""
    return list(dict.fromkeys(match[1].strip() for match in PLACEHOLDER.finditer(template)))


def count_of(template: str) -> int:
    """How many placeholders there are, each as often as it is named."""
    return sum(1 for _ in PLACEHOLDER.finditer(template))


def item_fields(template: str) -> list[str]:
    """The names in a template that stand for something of the item."""
    return [name for name in names_in(template) if name not in OF_PROJECT and name != "examples"]


def column_of(name: str) -> str:
    """The column that a name means, if it is not one of the fixed ones."""
    return name.removeprefix(COLUMN).strip() if name.startswith(COLUMN) else name


def fill(template: str, value_of: Callable[[str], str]) -> str:
    """The template with each placeholder replaced, in one pass: what is put in is not looked at again, so
    braces in the text of an item are just text.
    """
    return PLACEHOLDER.sub(lambda match: value_of(match[1].strip()), template)


def fields_of(item: Item) -> dict[str, str]:
    """What the placeholders of an item are filled with. A column that the item lacks is not in it."""
    return {**{f"{COLUMN}{name}": _text(value) for name, value in item.data.items()}, "text": item.text}


def field(fields: Mapping[str, str], name: str) -> str:
    """A field by the name of its placeholder; empty where the item has none, as an empty cell is."""
    if name == "text":
        return fields.get("text", "")
    return fields.get(f"{COLUMN}{column_of(name)}", "")


def of_project(name: str, spec: TaskSpec) -> str:
    """A placeholder of OF_PROJECT."""
    if name == "labels":
        return "\n".join(key if key == label else f"{key}: {label}" for key, label in spec.choices)
    if name == "label_keys":
        return ", ".join(key for key, _ in spec.choices)
    return spec.guidelines.strip()


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
