"""Where in Label Studio's configuration the project's question is asked, and how answers are written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

from django.utils.translation import gettext as _

from annotation.common.value_reader import Value
from annotation.errors import InputError
from annotation.models import Project
from annotation.projects.label_studio_config import Control, results_of
from annotation.task_types import TASK_TYPES
from routing.sources.backends.label_studio_ml.label_config import parsed_config


@dataclass(frozen=True)
class LabelControl:
    """`tokens` are what stands for each choice in answers, by its key; None where there are no choices."""

    control: Control
    tokens: Mapping[str, str] | None

    def result(self, value: Value, *, name: str, said_by: str) -> list[dict[str, Any]]:
        """The regions of an answer; none where it has a choice that the configuration does not have. `name`
        tells it from all others.
        """
        if self.tokens is not None and self.control.shapes:
            if (renamed := self.control.shapes.renamed(value, self.tokens)) is None:
                return []
            value = renamed
        elif self.tokens is not None:
            keys = value if isinstance(value, list) else [value]
            if any(key not in self.tokens for key in keys):
                return []
            known = [self.tokens[key] for key in keys]
            value = known if isinstance(value, list) else known[0]
        regions = results_of(value, self.control, name=name)
        return [{**region, "meta": {"text": [said_by]}} for region in regions]


def read_label_control(project: Project, xml: str) -> LabelControl:
    """Of several tags that could ask it, the one that has most of the project's choices.

    Raises InputError naming label_config.
    """
    root = parsed_config(xml)
    kind = TASK_TYPES[project.task_type]
    kinds = (*kind.controls, "Rating") if kind.one_choice else kind.controls
    tags = [tag for tag in root.iter() if tag.tag in kinds and tag.get("name") and tag.get("toName")]
    if not tags:
        raise InputError(
            _("This project needs a tag %(names)s with a name and toName.") % {"names": " or ".join(kinds)},
            where="label_config",
        )
    choices = list(project.choices.values_list("key", "name"))
    if not kind.has_labels:
        return LabelControl(_control(tags[0]), None)
    found = [(_tokens(tag, choices), tag) for tag in tags]
    tokens, tag = max(found, key=lambda entry: len(entry[0]))
    if not tokens:
        raise InputError(
            _("None of the project's labels is a choice there. They are %(names)s.")
            % {"names": ", ".join(name for _key, name in choices[:10])},
            where="label_config",
        )
    return LabelControl(_control(tag), tokens)


def _control(tag: ET.Element) -> Control:
    return Control(str(tag.tag), str(tag.get("name")), str(tag.get("toName")))


def _tokens(tag: ET.Element, choices: Sequence[tuple[str, str]]) -> dict[str, str]:
    """A choice is known by its key or its name, as value or as alias; answers hold the alias, if any."""
    if tag.tag == "Rating":
        return {key: key for key, _name in choices if key.isascii() and key.isdigit()}
    known: dict[str, str] = {}
    for choice in tag.iter(_control(tag).entry):
        value, alias = choice.get("value", ""), choice.get("alias", "")
        for word in (value, value.strip(), alias):
            known.setdefault(word, alias or value)
    names = [name for _key, name in choices]
    found = {}
    for key, name in choices:
        # A name that two choices have would name neither.
        words = (key, name) if names.count(name) == 1 else (key,)
        if token := next((known[word] for word in words if word in known), ""):
            found[key] = token
    return found
