"""A mathematical expression, plain text or LaTeX. The value is text on one line."""

import re
from collections.abc import Hashable

from django.utils.translation import gettext as _, gettext_lazy

from annotation.task_types.base import Choices, Reading, Value
from annotation.task_types.parsing.markers import bare, boxed, from_json, last_line, marked_places
from annotation.task_types.text import Text

# Marks of a formula with nothing in it, which no comparison could read.
_EMPTY = re.compile(r"\\boxed|[$\\{}()\[\]\s]")
_AROUND = (("$$", "$$"), ("\\(", "\\)"), ("\\[", "\\]"), ("$", "$"))
_DISPLAYED = re.compile(r"(?:\\\[([^\[\]]{1,2000}?)\\\]|\$\$([^$]{1,2000}?)\$\$)[ \t.]*\Z")
_SENTENCE = re.compile(r"\.[ \t]+(?=[A-Z][a-z])|,[ \t]+(?:which|because|since)\b")


class Math(Text):
    name = "math"
    title = gettext_lazy("A mathematical expression")
    help = gettext_lazy("Right if it is the same mathematics, however it is written: 1/2 is 0.5.")
    max_characters = 2_000
    losses = ("math_equivalence",)
    equal_means = gettext_lazy(
        "Two answers are equal here if they are the same text, whatever their white space."
    )
    question = gettext_lazy("Which expression?")
    hint = gettext_lazy(r"As plain text or LaTeX: 3/4, x^2 + 1, \frac{3}{4}, (0, 1]")
    monospaced = True
    prompt_question = "Solve the problem in the item."
    prompt_ending = "Put the final answer, and nothing else, into \\boxed{{}}."

    def tidied(self, text: str) -> tuple[str, str]:
        text = " ".join(text.split())
        return text, "" if _EMPTY.sub("", text) else _("no formula in it")

    def parse(self, text: str, choices: Choices) -> Reading:
        """The last \\boxed{}; else an answer in JSON; else what follows "answer:"; else the formula or the
        line in which the text ends.
        """
        found = boxed(text)
        if found == "":
            return Reading(None, "\\boxed{} has no end, or nothing in it")
        if found is None:
            found = _unboxed(text)
        for _again in range(2):
            found = bare(found)
            for start, end in _AROUND:
                if len(found) > len(start) + len(end) and found.startswith(start) and found.endswith(end):
                    inner = found[len(start) : -len(end)]
                    found = found if start in inner else inner.strip()
        return self.parsed(found)

    def comparable(self, value: Value) -> Hashable:
        return "".join(str(value).split())


def _unboxed(text: str) -> str:
    value = from_json(text)
    if isinstance(value, str):
        return value
    if places := marked_places(text):
        return _SENTENCE.split(places[-1], maxsplit=1)[0]
    if displayed := _DISPLAYED.search(text[-2_100:]):
        return (displayed[1] or displayed[2]).strip()
    return last_line(bare(text))
