"""A usable answer read out of what a model wrote, by task type, apart from what it thought aloud.

Whatever comes, nothing raises.
"""

import re

from annotation.task_types import Reading
from annotation.task_types.parsing.markers import untagged
from annotation.task_types.text import has_many_marks
from routing.sources.source_context import TaskSpec

RULES = 2
"""Number of the rules below, part of every fingerprint. Raise it where another answer would be read."""

MAX_CHARACTERS = 200_000
"""An answer is read up to here; one that is longer has run away."""


def read_answer(text: str, spec: TaskSpec) -> Reading:
    """The value that the answer `text` gives. Thinking that is still in it is taken out first."""
    if len(text) > MAX_CHARACTERS:
        return Reading(None, f"the answer has more than {MAX_CHARACTERS:,} characters")
    if has_many_marks(text):
        return Reading(None, "the answer has letters with too many accents to be read")
    if ends_in_thought(text):
        return Reading(None, "cut off inside its thinking")
    answer = untagged(split_thinking(text)[1])
    if not answer:
        return Reading(None, "empty answer")
    return spec.kind.parse(answer, spec.choices)


_NAMES = "think|thinking|thought|reasoning"
_OPENS = re.compile(rf"<(?:{_NAMES})>|\[THINK\]", re.IGNORECASE)
_CLOSES = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]", re.IGNORECASE)


def split_thinking(text: str) -> tuple[str, str]:
    """The reasoning in `text` and the rest, both without white space around them.

    Everything before the last closing tag is reasoning, with or without an opening tag: the chat templates of
    some models write that themselves. An answer that begins with an opening tag and has no closing one was
    cut off: it is reasoning as a whole, and the rest is empty. A tag in the middle of an answer is text.
    """
    reasoning, rest = "", text
    end = 0
    for close in _CLOSES.finditer(text):
        end = close.end()
    if end:
        reasoning, rest = _CLOSES.sub("", _OPENS.sub("", text[:end])), text[end:]
    if opened := _OPENS.match(rest.lstrip()):
        reasoning, rest = f"{reasoning.rstrip()}\n{rest.lstrip()[opened.end() :]}", ""
    return reasoning.strip(), rest.strip()


def ends_in_thought(text: str) -> bool:
    """Whether the answer was cut off before the thinking had ended."""
    reasoning, rest = split_thinking(text)
    return not rest and bool(reasoning or _OPENS.search(text)) and not _CLOSES.search(text.rstrip()[-20:])
