"""Answers that are held to a JSON schema, and the answer that is in them."""

import json
from typing import Any

from routing.backends.context import TaskSpec

NAMES = {"single_choice": "label", "multiple_choice": "labels"}
NAME = "answer"


def schema_of(spec: TaskSpec) -> dict[str, Any]:
    """The schema of an answer of the task type: an object with one property."""
    keys = [key for key, _ in spec.choices]
    one: dict[str, Any] = {"type": "string"}
    if spec.task_type == "single_choice":
        one["enum"] = keys
    elif spec.task_type == "multiple_choice":
        one = {"type": "array", "items": {"type": "string", "enum": keys}}
    elif spec.task_type == "number":
        one = {"type": "number"}
    name = NAMES.get(spec.task_type, NAME)
    return {"type": "object", "properties": {name: one}, "required": [name], "additionalProperties": False}


def unwrapped(text: str, spec: TaskSpec) -> str:
    """The answer within a JSON object of that schema, as text; `text` itself where it is none."""
    try:
        # The digits of a number as they were written: 0.10 is no 0.1000000000000000055.
        found = json.loads(text, parse_float=str, parse_int=str)
        answer = found[NAMES.get(spec.task_type, NAME)]
    except (ValueError, TypeError, KeyError, RecursionError):
        return text
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
