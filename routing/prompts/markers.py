"""Where in a longer text the answer proper stands: after "Answer:", in \\boxed{}, in JSON, at its end."""

import json
import re
from typing import Any

_QUOTES = (('"', '"'), ("'", "'"), ("\u201c", "\u201d"), ("\u2018", "\u2019"), ("\u00ab", "\u00bb"))
_WRAPS = (*((mark, mark) for mark in ("**", "__", "`", "*", "_")), *_QUOTES)
_FENCE = re.compile(r"\A```[^\n`]*\n(.*?)\n?```\Z", re.DOTALL)
_WORDS = r"(?:answer|labels?|category|categories|class|classes|choices?|result|solution|classification)"
_MARKER = re.compile(
    rf"(?:(?<![^\W_])(?:final[ \t]+)?{_WORDS}[ \t]*(?:[*_]{{1,2}}[ \t]*)?(?::|=|\bis\b:?)|\#{{4}})"
    r"(?:[*_]{1,2}(?=\s))?[ \t]*",
    re.IGNORECASE,
)
_JSON_NAMES = ("answer", "label", "labels", "category", "class", "choice", "value", "result")


def after_marker(text: str) -> str | None:
    """What follows the last "Answer:", "The answer is" or "####" on its line, or on the next line that has
    something; None where there is no such mark.
    """
    ends = [mark.end() for mark in _MARKER.finditer(text)]
    if not ends:
        return None
    line = next((line.strip() for line in text[ends[-1] :].split("\n") if line.strip(" \t*_")), None)
    # "**Answer: cat**" began before the mark.
    return line[:-2] if line and line.endswith("**") and line.count("**") == 1 else line


def boxed(text: str) -> str | None:
    """What the last \\boxed{...} holds, with inner braces; None where there is none that is closed."""
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth, first = 0, start + len("\\boxed{")
    for index in range(first - 1, len(text)):
        if text[index] not in "{}" or text[index - 1] == "\\":
            continue
        depth += 1 if text[index] == "{" else -1
        if not depth:
            return text[first:index].strip()
    return None


def bare(text: str) -> str:
    """The text without a fence, quotation marks or emphasis around all of it, and without a full stop."""
    text = _unfenced(text.strip())
    for _ in range(4):
        text = text if text.endswith("..") else text.removesuffix(".").rstrip()
        inner = next((text[len(mark) : -len(end)] for mark, end in _WRAPS if _wraps(text, mark, end)), None)
        if inner is None:
            break
        text = inner.strip()
    return text


def last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "")


def from_json(text: str) -> Any:
    """The answer in a JSON object ({"label": ...}), list or text; None where it is no such thing."""
    text = _unfenced(text.strip())
    if not text or text[0] not in '{["':
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        return next(iter(value.values()))
    folded = {name.casefold(): entry for name, entry in value.items()}
    return next((folded[name] for name in _JSON_NAMES if name in folded), None)


def _unfenced(text: str) -> str:
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced and "```" not in fenced[1] else text


def _wraps(text: str, mark: str, end: str) -> bool:
    """Whether one pair of marks stands around the whole text, and not one around each of two parts."""
    inner = text[len(mark) : -len(end)]
    around = len(text) > len(mark) + len(end) and text.startswith(mark) and text.endswith(end)
    return around and mark not in inner and end not in inner
