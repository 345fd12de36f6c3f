"""A text of several lines, compared by its meaning."""

from collections.abc import Mapping

from django.utils.translation import gettext_lazy

from annotation.task_types.base import Choices, Reading
from annotation.task_types.text import LONG_ROWS, Prose, lines_of


class LongText(Prose):
    name = "long_text"
    title = gettext_lazy("A long text")
    help = gettext_lazy("Compared by meaning, which needs an embedding model on a server, or by its words.")
    max_characters = 50_000
    losses = ("cosine_distance", "token_f1", "exact_match")
    rows = 7
    prompt_question = "Write the answer to the item."
    prompt_ending = "Write nothing but the answer itself."
    control_attributes = {**Prose.control_attributes, "rows": "10"}

    def parse(self, text: str, choices: Choices) -> Reading:
        """Everything."""
        return self.parsed(text)

    def is_asked_by(self, tag: str, attributes: Mapping[str, str]) -> bool:
        return tag == "TextArea" and lines_of(attributes) >= LONG_ROWS
