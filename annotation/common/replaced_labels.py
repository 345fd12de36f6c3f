"""Labels that are given no more: merged into another one, or split into several.

Nothing that was stored is written anew. What a stored key means now is looked up where it is read: a merged
label counts as the one that it went into; of a split one people choose anew, item by item.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from django.utils.translation import gettext as _

from annotation.models import Project
from annotation.task_types import TASK_TYPES, Value


@dataclass(frozen=True)
class ReplacedLabels:
    """By the key of a label that is given no more: the keys of those in its place, and its name."""

    into: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.into)

    @cached_property
    def merged(self) -> dict[str, str]:
        """By the key of a label that counts as another one now that one's; it may have been split itself."""
        return {key: last for key in self.into if (last := self._last(key)) != key}

    @cached_property
    def split(self) -> frozenset[str]:
        """Keys of labels, merged ones included, in whose place people have to choose."""
        return frozenset(key for key in self.into if self._last(key) in self.into)

    def now(self, value: Value) -> Value:
        """What a stored label is read as; one that was split stays what it is."""
        if not self.into:
            return value
        if isinstance(value, list):
            return sorted({self.merged.get(key, key) for key in value})
        return self.merged.get(value, value)

    def before(self, key: str) -> list[str]:
        """The keys that are read as this one, itself among them."""
        return [key, *(old for old, last in self.merged.items() if last == key)]

    def choices_for(self, key: str) -> list[str]:
        """Keys of the labels of which people choose one in place of this one; itself if it was not split."""
        last = self._last(key)
        if last not in self.into:
            return [last]
        found = (choice for part in self.into[last] for choice in self.choices_for(part))
        return list(dict.fromkeys(found))

    def with_names(self, names: Mapping[str, str]) -> dict[str, str]:
        """The names of all keys that may be stored, as they are now; `names` are those of the choices."""
        old = {key: self._last(key) for key in self.into}
        then = {key: names.get(last, self.names.get(last, last)) for key, last in old.items()}
        return dict(names) | {key: name for key, name in then.items() if key not in names}

    def _last(self, key: str) -> str:
        """Along merges: a label with several in its place is the end of them."""
        while len(self.into.get(key, ())) == 1:
            (key,) = self.into[key]
        return key


NONE = ReplacedLabels()


def choice_keys(label: Value | None) -> frozenset[str]:
    """The keys of the choices that a label of a type with choices gives."""
    return frozenset(label if isinstance(label, list) else [] if label is None else [label])


def replaced_labels(project: Project) -> ReplacedLabels:
    """Asked of the database once for each object of a project: every page of labels needs it."""
    if not TASK_TYPES[project.task_type].has_choices:
        return NONE
    found: ReplacedLabels | None = project.__dict__.get("_replaced_labels")
    if found is None:
        rows = list(project.replaced_choices.values_list("key", "name", "into"))
        found = ReplacedLabels(
            {key: tuple(into) for key, _, into in rows}, {key: name for key, name, _ in rows}
        )
        project.__dict__["_replaced_labels"] = found
    return found


def forget_replaced_labels(project: Project) -> None:
    """They were changed, and this object is used further."""
    project.__dict__.pop("_replaced_labels", None)


def names_as_given(project: Project) -> dict[str, str]:
    """Names by key of all choices that may be stored as labels: of one that was replaced what people saw, and
    what became of it.
    """
    names = dict(project.choices.values_list("key", "name"))
    replaced = replaced_labels(project)
    now = replaced.with_names(names)
    told = {
        key: (_("%(name)s (split)") if key in replaced.split else _("%(name)s (now %(now)s)"))
        % {"name": name, "now": now[key]}
        for key, name in replaced.names.items()
    }
    return told | names


def choice_names(project: Project) -> dict[str, str]:
    """Names by key of all choices that may be stored as labels, as they are now."""
    return replaced_labels(project).with_names(dict(project.choices.values_list("key", "name")))
