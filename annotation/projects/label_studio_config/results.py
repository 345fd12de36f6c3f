"""A label as Label Studio writes it: the results of an annotation or of a prediction."""

import hashlib
from typing import Any

from annotation.common.values import Value
from annotation.projects.label_studio_config.reading import Control


def results_of(value: Value, control: Control, *, name: str) -> list[dict[str, Any]]:
    """`name` tells this answer from all others, so that its id is the same each time.

    Of several choices none is no result, as in Label Studio.
    """
    if value == []:
        return []
    return [
        {
            "id": hashlib.sha256(name.encode()).hexdigest()[:10],
            "from_name": control.name,
            "to_name": control.to_name,
            "type": control.kind,
            "value": _value(value, control.kind),
        }
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
