"""Why a value cannot be used: words for people, with a code for programs."""


class ValueReason(str):
    """The words; `code` names the kind of reason, and `quotes` is what was given, where they repeat it."""

    __slots__ = ("code", "quotes")

    code: str
    quotes: str

    def __new__(cls, words: str, code: str = "", quotes: str = "") -> "ValueReason":
        reason = super().__new__(cls, words)
        reason.code, reason.quotes = code, quotes
        return reason


MISSING = ValueReason("no answer", "no_answer")


def unknown_label(shown: str, given: str) -> ValueReason:
    return ValueReason(f"unknown label {shown}", "unknown_label", given)
