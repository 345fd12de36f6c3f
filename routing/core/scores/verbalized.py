"""The paper's verbalized score: the model is asked how likely its answer is correct, and says a number."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any, ClassVar

from routing.core.messages import declare, gettext_noop, say
from routing.core.reasons import score_missing
from routing.core.scores.base import (
    ItemScore,
    Score,
    ScoreError,
    complement,
    entries_of,
    number_or_reason,
    refuse_unknown,
    unusable,
)

# The paper, implementation details, table "Prompt for the verbalized confidence scores", word for word.
SYSTEM_PROMPT = (
    "You are a reasoning assistant. For each question and proposed answer, you must estimate how likely the "
    "proposed answer is correct."
)
USER_PROMPT = (
    "Question: {question}\n"
    "Answer: {answer}\n"
    "Provide a probability (between 0.0 and 1.0) that your answer is correct. Only output the probability."
)
TRIALS = 10
"""How often the paper asks; the score is 1 - the mean of the replies."""

_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_ALONE = re.compile(rf"\W*?({_NUMBER})\s*(%?)\W*")
_NUMBERS = re.compile(rf"(?<![\w.])({_NUMBER})\s*(%?)(?!\w)")
_NAMED = re.compile(
    rf"(?:probability|confidence)\b(?:[^\w\n]|\bis\b|\bof\b|\bscore\b)*?(?<![\w.])({_NUMBER})\s*(%?)(?!\w)",
    re.IGNORECASE,
)


def prompts(question: str, answer: str) -> tuple[str, str]:
    """System and user prompt of one trial."""
    # Not str.format: a question may hold braces, and the second part must not be searched for the first.
    before, _, rest = USER_PROMPT.partition("{question}")
    between, _, after = rest.partition("{answer}")
    return SYSTEM_PROMPT, f"{before}{question}{between}{answer}{after}"


def parse_reply(reply: object) -> float | str:
    """The confidence in [0, 1] that one reply states, or the reason why none can be read from it.

    A number alone ("0.85", "85%"), else the last number that follows "probability" or "confidence", else
    the only number there is. What a model thinks aloud (<think>...</think>) is not its reply.
    """
    if not isinstance(reply, str):
        return number_or_reason(reply, "the stated probability")
    # Past the last end of a thought there is none to take out, and looking for one takes quadratic time.
    before, end, after = reply.rpartition("</think>")
    text = (_THOUGHT.sub("", before + end) + after).strip()
    if "<think>" in text:
        return "the reply ends in the middle of a thought"
    if not text:
        return "the reply is empty"
    alone = _ALONE.fullmatch(text)
    found = [alone] if alone else list(_NAMED.finditer(text))[-1:] or list(_NUMBERS.finditer(text))
    values = {(match[1], match[2]) for match in found}
    if len(values) != 1:
        what = "several numbers" if values else "no number"
        return f"the reply holds {what}: {text[:40]!r}"
    number, percent = values.pop()
    value = float(number) / 100 if percent else float(number)
    return number_or_reason(value, "the stated probability")


@dataclass(frozen=True)
class Verbalized:
    """U = 1 - the mean of the confidences stated in ``verbalized``, a list of replies.

    Replies from which nothing can be read are left out; where fewer than ``least_replies`` remain, there is
    no usable score.
    """

    name: str = "verbalized"
    title: str = gettext_noop("Stated confidence")
    summary: str = gettext_noop(
        "1 minus the mean confidence that the model states when asked, ten times in the paper."
    )
    reads: tuple[str, ...] = ("verbalized",)
    parameters: ClassVar[Mapping[str, str]] = {
        "least_replies": gettext_noop("How many replies must be readable (1 unless told otherwise).")
    }

    def make(self, params: Mapping[str, Any]) -> Score:
        refuse_unknown(self.name, params, self.parameters)
        least = params.get("least_replies", 1)
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            raise ScoreError(say("verbalized.least_replies", value=repr(least)))

        def score(prediction: Mapping[str, object]) -> ItemScore:
            return verbalized(prediction, least)

        return score


def verbalized(prediction: Mapping[str, object], least_replies: int = 1) -> ItemScore:
    """The score of one prediction."""
    stored = prediction.get("verbalized")
    replies = [stored] if isinstance(stored, str | int | float) else entries_of(stored)
    if not replies:
        return unusable(score_missing("the stated confidences are missing"))
    parsed = [parse_reply(reply) for reply in replies]
    values = [value for value in parsed if isinstance(value, float)]
    if len(values) < least_replies:
        reason = next((value for value in parsed if isinstance(value, str)), "")
        wanted = f"{len(values)} of {len(replies)} replies can be read, {least_replies} are needed"
        return unusable(f"{wanted}; {reason}" if reason else wanted)
    return ItemScore(max(0.0, complement(fsum(values) / len(values))))


SAYS = {
    "verbalized.least_replies": gettext_noop(
        "least_replies must be a whole number of at least 1, not %(value)s"
    ),
}
declare(SAYS)
