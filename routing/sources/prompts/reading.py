"""A usable answer read out of what a model wrote, by task type. Whatever comes, nothing raises."""

from annotation.task_types import Reading
from annotation.task_types.parsing.markers import untagged
from annotation.task_types.text import has_many_marks
from routing.sources.context import TaskSpec
from routing.sources.prompts.thinking import ends_in_thought, split_thinking

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
