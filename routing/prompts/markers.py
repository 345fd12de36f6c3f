"""Where in a longer text the answer proper stands: after "Answer:", in \\boxed{}, in JSON, on the last line."""

import json
import re
from typing import Any

_WRAPS = (("**", "**"), ("__", "__"), ("`", "`"), ('"', '"'), ("'", "'"), ("\u201c", "\u201d"), ("\u2018", "\u2019"),
          ("\u00ab", "\u00bb"), ("*", "*"), ("_", "_"))  # fmt: skip
_FENCE = re.compile(r"\A```[^\n`]*\n(.*?)\n?```\Z", re.DOTALL)
_WORDS = (
    r"(?:answer|label|labels|category|categories|class|classes|choice|choices|result|solution|classification)"
)
_MARKER = re.compile(
    rf"(?:(?<![^\W_])(?:final[ \t]+)?{_WORDS}[ \t]*[*_]{{0,2}}[ \t]*(?::|=|\bis\b:?)|\#{{4}})[ \t]*[*_]{{0,2}}",
    re.IGNORECASE,
)
_JSON_NAMES = (
    "answer",
    "label",
    "labels",
    "category",
    "class",
    "choice",
    "classification",
    "value",
    "result",
)


def after_marker(text: str) -> str | None:
    """What follows the last "Answer:", "The answer is" or "####" on its line, or on the next line that has
    something; None where there is no such mark.
    """
    last = None
    for last in _MARKER.finditer(text):
        pass
    if last is None:
        return None
    for line in text[last.end() :].split("\n"):
        if line.strip(" \t*_"):
            return line.strip()
    return None


def boxed(text: str) -> str | None:
    """What the last \\boxed{...} holds, with inner braces; None where there is none that is closed."""
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth, first = 0, start + len("\\boxed{")
    for index in range(first - 1, len(text)):
        character = text[index]
        escaped = index > 0 and text[index - 1] == "\\"
        if character == "{" and not escaped:
            depth += 1
        elif character == "}" and not escaped:
            depth -= 1
            if not depth:
                return text[first:index].strip()
    return None


def bare(text: str) -> str:
    """The text without a fence, quotation marks or emphasis around all of it, and without a final full stop."""
    text = text.strip()
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    for _ in range(4):
        text = text.strip().removesuffix(".").rstrip() if not text.endswith("..") else text.strip()
        for start, end in _WRAPS:
            inner = text[len(start) : -len(end)]
            if len(text) > len(start) + len(end) and text.startswith(start) and text.endswith(end):
                if start not in inner and end not in inner:
                    text = inner.strip()
                    break
        else:
            break
    return text


def last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "")


def from_json(text: str) -> Any:
    """The answer in a JSON object ({"label": ...}), list, text or number; None where it is no such thing."""
    text = text.strip()
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    if not text or text[0] not in '{["':
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        folded = {name.casefold(): entry for name, entry in value.items()}
        named = [folded[name] for name in _JSON_NAMES if name in folded]
        if len(value) == 1:
            named = list(value.values())
        return named[0] if named else None
    return value
