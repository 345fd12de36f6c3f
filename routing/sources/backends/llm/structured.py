"""Answers that are held to a JSON schema, and the answer that is in them."""

import json
from typing import Any

from routing.sources.context import TaskSpec


def schema_of(spec: TaskSpec) -> dict[str, Any]:
    """The schema of an answer of the task type: an object with one property."""
    name, one = spec.kind.schema_name, spec.kind.schema(spec.choices)
    return {"type": "object", "properties": {name: one}, "required": [name], "additionalProperties": False}


def unwrapped(text: str, spec: TaskSpec) -> str:
    """The answer within a JSON object of that schema, as text; `text` itself where it is none."""
    try:
        # The digits of a number as they were written: 0.10 is no 0.1000000000000000055.
        found = json.loads(text, parse_float=str, parse_int=str)
        answer = found[spec.kind.schema_name]
    except (ValueError, TypeError, KeyError, RecursionError):
        return text
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
