"""doccano: JSON Lines of texts with the labels that people gave, as it exports classification and sequences
of text.

Its columns are those of any JSON Lines; what stands in `label` (`labels` in older versions) is given by
people, too, and nobody who labels may see it.
"""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_noop

from annotation.imports.formats.base import GivenLabel
from annotation.imports.formats.jsonl import JsonLines
from annotation.words import Words

TOOL = "doccano"
TEXTS = ("text", "data")
LABELS = ("label", "labels")


class Doccano(JsonLines):
    name = "doccano"
    title = gettext_noop("doccano, JSON Lines")
    answers = LABELS
    holds_labels = True

    def claims_object(self, first: Any, *, listed: bool) -> bool:
        """Whether it has a text and a list of labels of the whole text."""
        if listed or not isinstance(first, dict):
            return False
        texts = any(isinstance(first.get(name), str) for name in TEXTS)
        return texts and any(_are_labels(first.get(name)) for name in LABELS)

    def _answers(self, columns: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(name for name in LABELS if name in columns)

    def _labels(self, value: dict[str, Any]) -> tuple[GivenLabel, ...]:
        return _given(value)


def _are_labels(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _given(value: dict[str, Any]) -> tuple[GivenLabel, ...]:
    """None where nobody labelled. The file does not say who did: those of one annotator are a file each."""
    for name in LABELS:
        if (labels := value.get(name)) is None:
            continue
        if _are_labels(labels):
            return (GivenLabel(labels[0] if len(labels) == 1 else labels, tool=TOOL),) if labels else ()
        problem = Words(gettext_noop("“%(name)s” is no list of labels of the whole text."), name=name)
        return (GivenLabel(None, tool=TOOL, problem=problem),)
    return ()
