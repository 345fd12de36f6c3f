"""Code. The value keeps the indentation of its first line."""

import re

from django.utils.translation import gettext_lazy

from annotation.task_types.base import Choices, Reading
from annotation.task_types.text import Text

_FENCE = re.compile(r"^[ \t]{0,3}(?:```|~~~)", re.MULTILINE)


class Code(Text):
    name = "code"
    title = gettext_lazy("Code")
    help = gettext_lazy("Compared by its words and signs, or sign by sign; nothing is run.")
    max_characters = 100_000
    losses = ("token_f1", "zero_one")
    equal_means = gettext_lazy("Two answers are equal here if they are the same text.")
    question = gettext_lazy("Which code?")
    rows = 12
    monospaced = True
    prompt_question = "Write the code that the item asks for."
    prompt_ending = "Answer with one fenced code block that holds the whole code."
    control_attributes = {**Text.control_attributes, "rows": "20"}

    def tidied(self, text: str) -> tuple[str, str]:
        return re.sub(r"\A(?:[^\S\n]*\n)+", "", text).rstrip(), ""

    def parse(self, text: str, choices: Choices) -> Reading:
        """The last fenced block; everything where there is none. A block without its end was cut off."""
        fences = [match.start() for match in _FENCE.finditer(text)]
        if not fences:
            return self.parsed(text)
        if len(fences) % 2:
            return Reading(None, "the code block has no end")
        _opening, _line, block = text[fences[-2] : fences[-1]].partition("\n")
        return self.parsed(block)
