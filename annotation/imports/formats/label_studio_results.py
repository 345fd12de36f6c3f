"""What the results of an annotation or a prediction of Label Studio say, as one value of a label."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.utils.translation import gettext_noop

from annotation.imports.formats.base import GivenLabel
from annotation.task_types import SHAPES
from annotation.words import Words

TOOL = "Label Studio"
REGIONS = {kind.region_type: kind for kind in SHAPES}
# Types of results that say one thing about a whole task, those first that are answers rather than remarks;
# the value lies under the same name, a text's under "text". Regions are together one thing.
TYPES = ("choices", "rating", "number", "textarea", *REGIONS)
_KEYS = {"textarea": "text"}
DRAWN = frozenset(
    shape + ending
    for shape in ("rectangle", "brush", "polygon", "ellipse", "keypoint", "vector", "bitmask")
    for ending in ("", "labels")
)
"""Types of regions on an image."""


def value_of(results: Any) -> tuple[Any, str]:
    """The value and "", or None and why there is none.

    Where there are answers of several types, choices go before ratings, numbers and texts; two controls of
    the same type name no single value, and regions of several types neither.
    """
    if not isinstance(results, list) or not results:
        return None, Words(gettext_noop("it is empty"))
    by_type: dict[str, dict[str, list[Any]]] = {}
    for result in results:
        if not isinstance(result, dict) or not isinstance(result.get("value"), dict):
            continue
        kind = str(result.get("type"))
        found: Any = None
        if kind in REGIONS:
            found = result
        elif kind in TYPES:
            found = result["value"].get(_KEYS.get(kind, kind))
        if found is not None:
            by_type.setdefault(kind, {}).setdefault(str(result.get("from_name")), []).append(found)
    for kind in TYPES:
        if controls := by_type.get(kind):
            if len(controls) > 1:
                return None, Words(
                    gettext_noop("it has several answers (%(names)s)"), names=", ".join(sorted(controls))
                )
            (values,) = controls.values()
            if kind in REGIONS and (problem := _other_regions(results, kind)):
                return None, problem
            return _joined(kind, values), ""
    return None, _other_regions(results) or Words(
        gettext_noop("it has no choice, rating, number, text, rectangle or brush about the whole task")
    )


def short_value_of(results: Any) -> tuple[Any, str]:
    """The same with regions in the one form in which they are stored, where they have it."""
    value, problem = value_of(results)
    kinds = {one.get("type") for one in results if isinstance(one, dict)} if value else set()
    shapes = next((REGIONS[kind] for kind in REGIONS if kind in kinds), None)
    return (shapes.in_short(value) if shapes else value), problem


def _other_regions(results: Sequence[Any], kind: str = "") -> str:
    """That something else is drawn, "" where nothing is: without it, the answer would be another one."""
    types = {str(one.get("type")) for one in results if isinstance(one, dict)}
    if not (other := sorted(types & DRAWN - {kind})):
        return ""
    return Words(
        gettext_noop(
            "it has %(other)s, which is not read here: masks are drawn with the brush, boxes as rectangles"
        ),
        other=", ".join(other),
    )


def _joined(kind: str, values: list[Any]) -> Any:
    """One value of what a control gave: of choices the only one, or a list; of regions all."""
    if kind in REGIONS:
        return [REGIONS[kind].of_region(result) for result in values]
    if kind == "rating":
        return whole_rating(values[-1])
    if kind == "number":
        return values[-1]
    flat = [entry for value in values for entry in (value if isinstance(value, list) else [value])]
    if kind == "textarea":
        return "\n".join(str(entry) for entry in flat)
    return flat[0] if len(flat) == 1 else flat


def whole_rating(value: Any) -> Any:
    """4 for 4.0, as some programs write whole stars: a choice has the name 4."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def given_labels(annotations: Any) -> tuple[GivenLabel, ...]:
    """The labels of a task's annotations, in the order in which they were made. One that was cancelled
    (skipped) is none.
    """
    if not isinstance(annotations, list):
        return ()
    made = [entry for entry in annotations if isinstance(entry, dict) and not entry.get("was_cancelled")]
    made.sort(key=lambda entry: str(entry.get("created_at") or ""))
    return tuple(map(_given, made))


def skipped(annotations: Any) -> int:
    """How many of a task's annotations were cancelled."""
    entries = annotations if isinstance(annotations, list) else []
    return sum(isinstance(entry, dict) and bool(entry.get("was_cancelled")) for entry in entries)


def _given(annotation: dict[str, Any]) -> GivenLabel:
    """No result at all is what somebody leaves who found that none of several choices fits."""
    results = annotation.get("result")
    value, problem = ([], "") if results == [] else value_of(results)
    return GivenLabel(
        value=value,
        annotator=annotator_of(annotation.get("completed_by")),
        created_at=str(annotation.get("created_at") or ""),
        lead_time_ms=milliseconds(annotation.get("lead_time")),
        tool=TOOL,
        problem=problem,
    )


def annotator_of(completed_by: Any) -> str:
    """A person's e-mail address or username where the file has one, else the number of the account."""
    if isinstance(completed_by, dict):
        named = completed_by.get("email") or completed_by.get("username")
        return str(named) if named else annotator_of(completed_by.get("id"))
    if isinstance(completed_by, str) and not completed_by.isdigit():
        return completed_by
    return "" if completed_by in (None, "") else f"user {completed_by}"


def milliseconds(seconds: Any) -> int | None:
    usable = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < 10**7
    return round(seconds * 1000) if usable else None


def predicted(predictions: Any) -> Iterable[tuple[str, Any, Any]]:
    """(model version, value, score) of each prediction that says one thing; of a version the last one."""
    if not isinstance(predictions, list):
        return ()
    found: dict[str, tuple[str, Any, Any]] = {}
    for prediction in predictions:
        if isinstance(prediction, dict):
            value, problem = short_value_of(prediction.get("result"))
            version = " ".join(str(prediction.get("model_version") or "").split()) or "model"
            if not problem:
                found[version] = (version, value, prediction.get("score"))
    return found.values()
