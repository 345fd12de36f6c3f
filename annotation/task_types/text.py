"""Values that are text: in Unicode NFC, with \\n as the end of a line, without white space around it."""

import re
import unicodedata
from collections.abc import Hashable, Mapping
from functools import cache
from typing import ClassVar

from django.utils.translation import gettext as _, gettext_lazy

from annotation.storable import NOT_STORED
from annotation.task_types.base import Labels, Read, Reading, TaskType, Value

LONG_ROWS = 3
"""A text field of so many lines in Label Studio asks for a long text."""
MOST_MARKS = 100
"""Accents and the like on one letter: putting them into their order takes the square of their number."""


class Text(TaskType):
    max_characters: ClassVar[int]

    def read_text(self, text: str, labels: Labels) -> Read:
        if NOT_STORED.search(text):
            return None, _("it has a character that cannot be stored (NUL or half of a surrogate pair)")
        if has_many_marks(text):
            return None, _("it has a letter with more than %(most)s accents") % {"most": MOST_MARKS}
        text, reason = self.tidied(
            unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
        )
        if reason:
            return None, reason
        if len(text) > self.max_characters:
            return None, _("it has %(count)s characters, more than %(most)s") % {
                "count": f"{len(text):,}",
                "most": f"{self.max_characters:,}",
            }
        return text, ""

    def tidied(self, text: str) -> tuple[str, str]:
        """Without what does not count around the text and within it, and ""; or why there is no answer in
        it.
        """
        return text.strip(), ""

    def parsed(self, text: str) -> Reading:
        """What stood in a model's answer as a value of this type."""
        if not text.strip():
            return Reading(None, "empty answer")
        if len(text) > self.max_characters:
            return Reading(None, f"the answer has more than {self.max_characters:,} characters")
        return Reading(*self.read(text, Labels()))


class Prose(Text):
    """Texts of a language, in which neither case nor white space makes a difference."""

    equal_means = gettext_lazy(
        "Two answers are equal here if they are the same text, whatever their case and white space."
    )
    question = gettext_lazy("Your answer")

    def comparable(self, value: Value) -> Hashable:
        return " ".join(unicodedata.normalize("NFKC", str(value)).casefold().split())


def lines_of(attributes: Mapping[str, str]) -> int:
    """Of a text field of Label Studio."""
    rows = attributes.get("rows", "")
    return int(rows) if rows.isascii() and rows.isdigit() and len(rows) < 6 else 1


def has_many_marks(text: str) -> bool:
    """Whether it is no text but a load for whoever normalises it (`MOST_MARKS`)."""
    return not text.isascii() and _many_marks().search(text) is not None


@cache
def _many_marks() -> re.Pattern[str]:
    """So many characters in a row that are, or begin with, a mark that is put into an order with others."""
    signs = (chr(code) for code in range(0x300, 0x20000) if not 0xD800 <= code < 0xE000)
    marks = "".join(sign for sign in signs if unicodedata.combining(unicodedata.normalize("NFKD", sign)[0]))
    return re.compile(f"[{re.escape(marks)}]{{{MOST_MARKS + 1}}}")
