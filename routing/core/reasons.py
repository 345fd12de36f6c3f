"""Why an answer or its score cannot be used: words for people, with a code for programs."""

from __future__ import annotations


class ScoreReason(str):
    """The words; ``code`` names the kind of reason, ``quotes`` is what was given, where they repeat it."""

    __slots__ = ("code", "quotes")

    code: str
    quotes: str

    def __new__(cls, words: str, code: str = "", quotes: str = "") -> ScoreReason:
        reason = super().__new__(cls, words)
        reason.code, reason.quotes = code, quotes
        return reason


CUT_OFF = ScoreReason("the answer was cut off (finish_reason is 'length')", "cut_off")
MISSING = ScoreReason("the answer is missing", "no_answer")
NO_ANSWER = ScoreReason("no answer", "no_answer")


def score_missing(words: str) -> ScoreReason:
    return ScoreReason(words, "score_missing")
