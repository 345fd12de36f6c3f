"""Why an answer or its score cannot be used: words for people, with a code for programs."""

from __future__ import annotations


class Reason(str):
    """The words; ``code`` names the kind of reason, ``quotes`` is what was given, where they repeat it."""

    __slots__ = ("code", "quotes")

    code: str
    quotes: str

    def __new__(cls, words: str, code: str = "", quotes: str = "") -> Reason:
        reason = super().__new__(cls, words)
        reason.code, reason.quotes = code, quotes
        return reason


CUT_OFF = Reason("the answer was cut off (finish_reason is 'length')", "cut_off")
MISSING = Reason("the answer is missing", "no_answer")
NO_ANSWER = Reason("no answer", "no_answer")


def score_missing(words: str) -> Reason:
    return Reason(words, "score_missing")
