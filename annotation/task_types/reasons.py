"""Why a value cannot be used: words for people, with a code for programs."""


class Reason(str):
    """The words; `code` names the kind of reason, and `quotes` is what was given, where they repeat it."""

    __slots__ = ("code", "quotes")

    code: str
    quotes: str

    def __new__(cls, words: str, code: str = "", quotes: str = "") -> "Reason":
        reason = super().__new__(cls, words)
        reason.code, reason.quotes = code, quotes
        return reason


MISSING = Reason("no answer", "no_answer")


def unknown_label(shown: str, given: str) -> Reason:
    return Reason(f"unknown label {shown}", "unknown_label", given)
