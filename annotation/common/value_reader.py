"""Values of labels: what people, models and columns give, brought into the one form in which it is stored.

What that form is, each task type says (annotation.task_types).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from annotation.common.replaced_labels import replaced_labels
from annotation.models import Project
from annotation.task_types import MISSING, TASK_TYPES, Labels, Read, TaskType, Value, ValueReason, as_text

__all__ = ["MISSING", "Read", "Value", "ValueReader", "ValueReason", "as_text", "reader_of", "spellings"]


@dataclass(frozen=True)
class ValueReader:
    """Reads the values of one project. `keys` has every spelling of a choice with its key, and is empty for
    the task types that have no choices.
    """

    task_type: str
    keys: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def kind(self) -> TaskType:
        return TASK_TYPES[self.task_type]

    @cached_property
    def _labels(self) -> Labels:
        return Labels(self.keys)

    def __call__(self, raw: Any) -> Read:
        """The canonical value of what was given and "", or None and the reason in a few words.

        `raw` is text, a number, or for several choices also a list; anything may come, nothing raises.
        """
        return self.kind.read(raw, self._labels)


def reader_of(project: Project) -> ValueReader:
    """The reader of a project's values: one query where it has choices, none otherwise."""
    if not TASK_TYPES[project.task_type].has_labels:
        return ValueReader(project.task_type)
    return ValueReader(project.task_type, spellings(project))


def spellings(project: Project) -> dict[str, str]:
    """Every text by which a choice may be named, with the choice's key. A key goes before a name, and a name
    that two choices have names neither. A label that was merged is read as the one that it went into.
    """
    choices = list(project.choices.values_list("key", "name"))
    names: dict[str, list[str]] = {}
    for key, name in choices:
        names.setdefault(name, []).append(key)
    by_name = {name: keys[0] for name, keys in names.items() if len(keys) == 1}
    spelled = by_name | {key: key for key, _ in choices}
    replaced = replaced_labels(project)
    merged = {key: last for key, last in replaced.merged.items() if last not in replaced.split}
    return {**{replaced.names[key]: last for key, last in merged.items()}, **merged, **spelled}
