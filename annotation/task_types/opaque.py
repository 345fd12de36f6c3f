"""Values that nothing here can compare, kept as they are: a text, or JSON."""

import json
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from annotation.storable import NOT_STORED
from annotation.task_types.base import Choices, Labels, Read, Reading
from annotation.task_types.text import Text


class Opaque(Text):
    """A text stays as it is but for the white space around it; JSON has one spelling."""

    name = "opaque"
    title = gettext_lazy("Anything else")
    help = gettext_lazy(
        "A text or JSON that is kept as it is: the name of a mesh, segments of a recording, a score sheet. A "
        "program of yours measures how far models' answers are from people's."
    )
    max_characters = 100_000
    any_json = True
    losses = ("measured_elsewhere",)
    equal_means = gettext_lazy("Two answers are equal here if they are the same text.")
    question = gettext_lazy("Your answer")
    rows = 7
    monospaced = True
    prompt_question = "Answer the item."
    prompt_ending = "Write nothing but the answer itself."
    control_attributes = {**Text.control_attributes, "rows": "7"}

    def read(self, raw: Any, labels: Labels) -> Read:
        if isinstance(raw, dict | list):
            try:
                raw = json.dumps(
                    raw, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
                )
            except (TypeError, ValueError, RecursionError):
                return None, _("it is no JSON that can be written down")
        return super().read(raw, labels)

    def read_text(self, text: str, labels: Labels) -> Read:
        """Not normalised, as other texts are: it may name a file."""
        if NOT_STORED.search(text):
            return None, _("it has a character that cannot be stored (NUL or half of a surrogate pair)")
        text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
        if len(text) > self.max_characters:
            return None, _("it has %(count)s characters, more than %(most)s") % {
                "count": f"{len(text):,}",
                "most": f"{self.max_characters:,}",
            }
        return text, ""

    def parse(self, text: str, choices: Choices) -> Reading:
        """Everything."""
        return self.parsed(text)
