"""A name or a few words."""

import re
from collections.abc import Mapping

from django.utils.translation import gettext_lazy

from annotation.task_types.base import Choices, Reading
from annotation.task_types.parsing.markers import (
    NO_JSON,
    bare,
    boxed,
    from_json,
    last_line,
    marked_places,
)
from annotation.task_types.text import LONG_ROWS, Prose, lines_of

_SAID = re.compile(
    r"\A(?:(?:so|thus|therefore|hence),?[ \t]+)?(?:the[ \t]+)?(?:(?:final|correct)[ \t]+)?"
    r"answer[ \t]+is\b[ \t]*:?[ \t]*",
    re.IGNORECASE,
)
_INITIALS = re.compile(r"(?:\A|[\s.])[^\W\d_]\.\Z")


class ShortText(Prose):
    name = "short_text"
    title = gettext_lazy("A short text")
    help = gettext_lazy("A name or a few words. Right if it is the same text; capitals make no difference.")
    max_characters = 1_000
    losses = ("exact_match",)
    prompt_question = "Give the answer to the item, as short as it can be."
    prompt_ending = 'End with a line "Answer: " and the answer alone.'

    def parse(self, text: str, choices: Choices) -> Reading:
        """An answer in JSON or \\boxed{}; else what follows the last "Answer:" that begins a line, or "The
        answer is" that begins the last one; else everything.
        """
        value = from_json(text)
        if isinstance(value, str):
            return self.parsed(value)
        if value is not NO_JSON and not isinstance(value, list):
            return Reading(None, "JSON without an answer in it")
        if (found := boxed(text)) is not None:
            return self.parsed(found)
        line = last_line(text)
        if places := marked_places(text, "answer", within=False):
            found = places[0]
        elif said := _SAID.match(line):
            found = line[said.end() :]
        else:
            found = text
        kept = found.strip()
        return self.parsed(kept if _INITIALS.search(kept) else bare(kept))

    def is_asked_by(self, tag: str, attributes: Mapping[str, str]) -> bool:
        return tag == "TextArea" and lines_of(attributes) < LONG_ROWS
