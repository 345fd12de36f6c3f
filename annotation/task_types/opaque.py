"""Values that nothing here can compare, kept as they are: a text, or JSON."""

import json
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from annotation.storable import NOT_STORED
from annotation.task_types.base import Choices, Labels, Read, Reading
from annotation.task_types.text import Text


class Opaque(Text):
    """A text stays as it is but for the white space around it; JSON has one spelling, also as text."""

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
                raw = _spelt(raw)
            except (TypeError, ValueError, RecursionError):
                return None, _("it is no JSON that can be written down")
        return super().read(raw, labels)

    def read_text(self, text: str, labels: Labels) -> Read:
        """Not normalised, as other texts are: it may name a file."""
        text = _one_spelling(text.replace("\r\n", "\n").replace("\r", "\n").strip())
        if NOT_STORED.search(text):  # what JSON writes as an escape
            return None, _("it has a character that cannot be stored (NUL or half of a surrogate pair)")
        if len(text) > self.max_characters:
            return None, _("it has %(count)s characters, more than %(most)s") % {
                "count": f"{len(text):,}",
                "most": f"{self.max_characters:,}",
            }
        return text, ""

    def parse(self, text: str, choices: Choices) -> Reading:
        """Everything."""
        return self.parsed(text)


def _spelt(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _one_spelling(text: str) -> str:
    """Of an object or a list of JSON, as if it had not come as text; any other text as it is. What cannot be
    written down again without loss, as a name that stands twice in an object, is a text, too.
    """
    if not text.startswith(("{", "[")):
        return text
    try:
        return _spelt(json.loads(text, object_pairs_hook=_each_once))
    except (ValueError, RecursionError):
        return text


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found
