"""Augmented manifests of Amazon SageMaker Ground Truth: JSON Lines in which a label stands beside an object
that tells how it came about, `<label>` and `<label>-metadata`.

Only labels that the file says people gave are such. What HyPAC tells of its own items in `hypac` becomes
columns, so that they have their names again.
"""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_noop

from annotation.imports.formats.base import GivenLabel
from annotation.imports.formats.delivered import BY_PEOPLE
from annotation.imports.formats.jsonl import JsonLines
from annotation.words import Words

TOOL = "Ground Truth"
SOURCES = ("source", "source-ref")
METADATA = "-metadata"
MARKS = ("class-name", "class-map", "human-annotated", "job-name")
OURS = "hypac"
NAME = "external_id"
"""That of an item in `hypac`."""


class Manifest(JsonLines):
    name = "manifest"
    title = gettext_noop("Ground Truth manifest, JSON Lines")
    endings = (".manifest",)
    holds_labels = True

    def claims_object(self, first: Any, *, listed: bool) -> bool:
        """Whether it names its source and has a label, or is a line of ours without one."""
        if listed or not isinstance(first, dict):
            return False
        if not any(isinstance(first.get(name), str) for name in SOURCES):
            return False
        return bool(_labelled(first)) or isinstance(first.get(OURS), dict)

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        ours = value.get(OURS)
        if not isinstance(ours, dict):
            return value
        return {**value, NAME: ours[NAME]} if NAME in ours and NAME not in value else value

    def _answers(self, columns: Mapping[str, str]) -> tuple[str, ...]:
        marks = [name for name in columns if name.endswith(METADATA)]
        found = [*marks, *(name.removesuffix(METADATA) for name in marks), OURS]
        return tuple(name for name in found if name in columns)

    def _labels(self, value: dict[str, Any]) -> tuple[GivenLabel, ...]:
        ours = value.get(OURS)
        ours = ours if isinstance(ours, dict) else {}
        found = []
        for name in _labelled(value):
            metadata = value[name + METADATA]
            if metadata.get("human-annotated") == "yes" or ours.get("source") in BY_PEOPLE:
                found.append(_given(value.get(name), metadata, ours))
        if len(found) > 1:
            problem = Words(gettext_noop("the item has several of them"))
            return (GivenLabel(None, tool=TOOL, problem=problem),)
        return tuple(found)


def _labelled(value: Mapping[str, Any]) -> list[str]:
    """Names of the labels of an item."""
    return [
        name
        for name in value
        if isinstance(metadata := value.get(name + METADATA), dict)
        and any(mark in metadata for mark in MARKS)
    ]


def _given(label: Any, metadata: Mapping[str, Any], ours: Mapping[str, Any]) -> GivenLabel:
    """The name of a class, or of several, goes before its number; the label of a delivery before both."""
    given: Any = metadata.get("class-name", label)
    if isinstance(classes := metadata.get("class-map"), dict):
        given = list(classes.values())
    created = str(metadata.get("creation-date") or "")
    return GivenLabel(ours.get("label", given), str(ours.get("annotator") or ""), created, tool=TOOL)
