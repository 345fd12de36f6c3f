"""Where in a longer text the answer proper stands: after "Answer:", in \\boxed{}, in JSON, at its end."""

import json
import re
from typing import Any

_QUOTES = (('"', '"'), ("'", "'"), ("\u201c", "\u201d"), ("\u2018", "\u2019"), ("\u00ab", "\u00bb"))
_WRAPS = (*((mark, mark) for mark in ("**", "__", "`", "*", "_")), *_QUOTES)
_FENCE = re.compile(r"\A```[^\n`]*\n(.*?)\n?```\Z", re.DOTALL)
_FENCED = re.compile(r"^```(?:json)?[ \t]*\n(.*?)\n```[ \t]*$", re.DOTALL | re.MULTILINE | re.IGNORECASE)
_TAGS = re.compile(r"\A<(answer|label|labels|result)>(.*)</\1>\Z", re.DOTALL | re.IGNORECASE)
_ENDS = re.compile(r"(?:<\|[a-z_]{2,20}\|>|</?s>)\s*\Z")

ANSWER = r"(?:answer|result|solution)"
LABEL = r"(?:answer|labels?|category|categories|class|classes|choices?|result|solution|classification)"
_EMPHASIS = r"[ \t]*(?:[*_]{1,2}[ \t]*)?"


def _marks(words: str) -> "tuple[re.Pattern[str], re.Pattern[str]]":
    """Marks that begin a line, and those within one."""
    begin = r"[ \t>#*_-]{0,8}(?:the[ \t]+)?(?:final[ \t]+|correct[ \t]+)?"
    close = r"(?:[*_]{1,2}(?=\s))?[ \t]*"
    at_start = (
        rf"^{begin}{words}(?:[ \t]*\([^()\n]{{0,80}}\))?{_EMPHASIS}[:=\uff1a]{close}|^[ \t]*####(?!#)[ \t]*"
    )
    within = rf"(?<![^\W_])(?:final[ \t]+)?{words}{_EMPHASIS}(?::|=|\uff1a|\bis\b:?){close}|####[ \t]*"
    return re.compile(at_start, re.IGNORECASE | re.MULTILINE), re.compile(within, re.IGNORECASE)


_MARKS = {words: _marks(words) for words in (ANSWER, LABEL, "answer")}
_BEHIND = re.compile(r"(?:^|(?::|\bis)[ \t]*)(?=[{\[])")
_BEGINS = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
MOST_OF_LINE = 5_000
_JSON_NAMES = ("answer", "label", "labels", "category", "class", "choice", "prediction", "value", "result")
NO_JSON = object()
"""What `from_json` gives where there is none; JSON may be null."""
_NO_ANSWERS = ("confidence", "probability", "certainty", "reason", "reasoning", "explanation", "thought")


def marked_places(text: str, words: str = ANSWER, *, within: bool = True) -> list[str]:
    """What follows the last "Answer:" that begins a line, and with `within` what follows the last "the answer
    is" or "answer:" behind that, each to the end of its line or, where nothing is there, of the next one that
    has something; "" where nothing follows.
    """
    at_start, inside = _MARKS[words]
    ends = [mark.end() for mark in at_start.finditer(text)][-1:]
    if within:
        ends += [mark.end() for mark in inside.finditer(text, ends[-1] if ends else 0)][-1:]
    return [_line_from(text, end) for end in ends]


def after_mark(text: str, words: str = ANSWER) -> str | None:
    """All that follows the last "Answer:" that begins a line, else the last "the answer is"; None where there
    is neither.
    """
    for pattern in _MARKS[words]:
        if ends := [mark.end() for mark in pattern.finditer(text)]:
            return text[ends[-1] :]
    return None


def _line_from(text: str, start: int) -> str:
    line = next((line.strip() for line in text[start:].split("\n") if line.strip(" \t*_")), "")
    # "**Answer: cat**" began before the mark.
    return line[:-2] if line.endswith("**") and line.count("**") == 1 else line


def boxed(text: str) -> str | None:
    """What the last \\boxed{...} holds, with inner braces; "" where it is not closed, None where there is
    none.
    """
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
    return ""


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


def untagged(text: str) -> str:
    """The text without <answer> around it, and without signs of a chat template at its end."""
    text = text.strip()
    text = text[:-60] + _ENDS.sub("", text[-60:])
    tagged = _TAGS.match(text.strip())
    return tagged[2].strip() if tagged else text


def last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "")


def from_json(text: str) -> Any:
    """The answer in a JSON object ({"label": ...}), list or text: of the whole text, of the only fenced block
    in it, or of its last line. Numbers come as they are written, as text. NO_JSON where there is none, and
    None where an object has several fields and none is called like an answer.
    """
    whole = _unfenced(text.strip())
    if whole[:1] in ("{", "[", '"'):
        found = _parsed(whole)
        if found is not NO_JSON:
            return found
    blocks = _FENCED.findall(text) if text.count("```") == 2 else []
    line = last_line(text)
    several = len(_BEGINS.findall(text)) > 1
    closed = len(line) <= MOST_OF_LINE and line[-1:] in ("}", "]")
    behind = _BEHIND.search(line) if closed and not several else None
    for place in [*blocks, *([line[behind.end() :]] if behind else [])]:
        if (found := _parsed(place)) is not NO_JSON:
            return found
    return NO_JSON


def _parsed(text: str) -> Any:
    try:
        value = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        return NO_JSON
    if not isinstance(value, dict):
        return value
    folded = {name.casefold(): entry for name, entry in value.items()}
    found = [folded[name] for name in _JSON_NAMES if name in folded]
    if found:
        return found[0]
    return next(
        (entry for name, entry in folded.items() if len(value) == 1 and name not in _NO_ANSWERS), None
    )


def _unfenced(text: str) -> str:
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced and "```" not in fenced[1] else text


def _wraps(text: str, mark: str, end: str) -> bool:
    """Whether one pair of marks stands around the whole text, and not one around each of two parts."""
    inner = text[len(mark) : -len(end)]
    around = len(text) > len(mark) + len(end) and text.startswith(mark) and text.endswith(end)
    return around and mark not in inner and end not in inner
