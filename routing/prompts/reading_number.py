"""Answers that are numbers."""

import re

from annotation.values import read_number
from routing.backends.context import TaskSpec
from routing.prompts.base import Reading
from routing.prompts.markers import after_marker, bare, boxed, from_json

_GROUPED = r"[0-9]{1,3}(?:['\u2019\u00a0\u2009\u202f_][0-9]{3})+(?:[.,][0-9]+)?"
_TIMES = r"[ \t]*(?:\u00d7|\*|\\times|\\cdot)[ \t]*10[ \t]*(?:\^|\*\*)[ \t]*\{?(?P<power>[-+]?[0-9]{1,4})\}?"
_NUMBER = re.compile(
    # A sign, where it is no minus between two terms, digits with whatever may stand between them, ...
    rf"(?<![\w.,])(?P<sign>(?<![)\]])[-+]?)(?P<digits>{_GROUPED}|[0-9][0-9.,]*[0-9]|[0-9]|\.[0-9]+)"
    # ... an exponent, and what makes a fraction of it.
    rf"(?P<exponent>[eE][-+]?[0-9]{{1,4}}(?![\w])|{_TIMES})?(?P<fraction>[ \t]*/[ \t]*[0-9])?"
)
_SPACED = re.compile(r"[0-9]{1,3}(?: [0-9]{3})+(?:\.[0-9]+)?")
_LATEX = re.compile(r"\\[,;!: ]|\{,\}|\\%")
_FRACTION = re.compile(r"\\[dt]?frac\b")


def read_decimal(text: str, spec: TaskSpec) -> Reading:
    """The number in \\boxed{} or JSON, the first after the last "answer:", else the last one in the text.

    Units and signs of currencies and per cent around it are left out, thousands may be grouped. A fraction,
    or a comma that may be a decimal one, is not guessed at.
    """
    value = from_json(text)
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        text = value if isinstance(value, str) else repr(value)
    plain = bare(text)
    whole, _ = read_number(plain.replace(" ", "") if _SPACED.fullmatch(plain.lstrip("+-")) else plain)
    if isinstance(whole, str):
        return Reading(whole)
    found = boxed(text)
    place, marked = (found, True) if found is not None else (after_marker(text), True)
    if place is None or not re.search(r"[0-9]", place):
        place, marked = text, False
    place = place.replace("\u2212", "-").replace("\u2013", "-")
    place = _LATEX.sub(lambda match: "," if match[0] == "{,}" else "%" if match[0] == "\\%" else "", place)
    if _FRACTION.search(place) and marked:
        return Reading(None, "a fraction, not a decimal number")
    numbers = list(_NUMBER.finditer(place))
    if not numbers:
        return Reading(None, "no number in the answer")
    return _read(numbers[0] if marked else numbers[-1])


def _read(match: "re.Match[str]") -> Reading:
    if match["fraction"]:
        return Reading(None, "a fraction, not a decimal number")
    digits = re.sub("['\u2019\u00a0\u2009\u202f_]", "", match["digits"])
    exponent = match["exponent"] or ""
    if match["power"]:
        exponent = f"e{match['power']}"
    value, _ = read_number(f"{match['sign']}{digits}{exponent}")
    if not isinstance(value, str):
        return Reading(None, f"{match[0].strip()[:40]!r} can be read in more than one way")
    return Reading(value)
