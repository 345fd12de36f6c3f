"""A number. The value is a decimal such as "42" or "-0.5": no exponent, no needless zeros, no "-0", no
separators.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar

from django.utils.translation import gettext as _, gettext_lazy

from annotation.task_types.base import Choices, Labels, Read, Reading, TaskType, ValueReason, quoted, short
from annotation.task_types.parsing.markers import NO_JSON, bare, boxed, from_json, marked_places
from annotation.task_types.parsing.number_signs import (
    ASIDE,
    BEFORE,
    BEHIND,
    DIGITS,
    FINE_BEFORE,
    FRACTION,
    ITEM,
    NUMBER,
    REMARK,
    RESULT,
    SENTENCE,
    SHORT_UNIT,
    SO,
    SPACED,
    UNIT,
    UNSURE,
    plain_signs,
)

MAX_CHARACTERS = 200
"""Written without an exponent."""
# Commas may group thousands, in groups of three only, so that a decimal comma is not read as one of them.
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
)
# The minus sign, and what a keyboard for Chinese or Japanese types in place of ASCII.
_ASCII = {0x2212: "-", **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}}

_MAX_LINE = 2_000
"""Characters of a line in which a number is looked for."""
_MAX_LINES = 200
_SEVERAL = Reading(None, "several numbers, and which one is the answer is not clear")
_FRACTIONAL = Reading(None, "a fraction, not a decimal number")
_NONE = Reading(None, "no number in the answer")


class Number(TaskType):
    name = "number"
    title = gettext_lazy("A number")
    help = gettext_lazy("Right if it is close enough to the label; you say how close.")
    max_characters = MAX_CHARACTERS
    losses = ("numeric",)
    measure = "interval"
    equal_means = gettext_lazy(
        "Two answers are equal here if they are the same number. Alpha by distance counts near misses less "
        "than wide ones; the sentence above is about that one."
    )
    question = gettext_lazy("Which number?")
    hint = gettext_lazy("Digits, with a point before decimals and without commas or units: 1234.5")
    digits = True
    surely_read = r"^\s*[+\u2212-]?(\d+\.?\d*|\.\d+)\s*$"
    prompt_question = "What number is the answer to the item?"
    prompt_ending = 'End with a line "Answer: " and the number alone, as a decimal, without a unit.'
    controls = ("Number", "Rating")
    control_attributes: ClassVar[Mapping[str, str]] = {}

    def read_text(self, text: str, labels: Labels) -> Read:
        return read_number(text)

    def parse(self, text: str, choices: Choices) -> Reading:
        return _parsed(text)

    def typed_problem(self, raw: Any) -> str:
        """Where people write decimals with a comma, "1,234" would be stored as a thousand times what they
        meant.
        """
        if isinstance(raw, str) and ("," in raw or "\N{FULLWIDTH COMMA}" in raw):
            return _("Write the number without a comma, and decimals after a point.")
        return ""

    def refusal(self, raw: Any, reason: str) -> str:
        return _("%(shown)s cannot be stored as a number: write digits, with a point before decimals.") % {
            "shown": quoted(raw)
        }

    def schema(self, choices: Choices) -> dict[str, Any]:
        return {"type": "number"}

    def position(self, value: str) -> float:
        return float(value)

    def is_asked_by(self, tag: str, attributes: Mapping[str, str]) -> bool:
        return tag == "Number"


def read_number(text: str) -> Read:
    """The canonical decimal of a text, exactly, or None and why it is no number.

    "1,234.5" (thousands in groups of three), "+.5", "1e3", a typographic minus and full-width digits are
    read; percent signs, currencies, units and fractions are not.
    """
    plain, most = text.strip(), MAX_CHARACTERS
    if len(plain) > most:
        return None, f"a number of more than {most} characters"
    plain = plain.translate(_ASCII)
    if not _NUMBER.fullmatch(plain):
        return None, ValueReason(f"{short(text)} is not a number", "not_a_number", text)
    number = format(Decimal(plain.replace(",", "")), "f")
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
    whole, point, fraction = digits.partition(".")
    digits = (whole.lstrip("0") or "0") + point + fraction
    if len(digits) > most:
        return None, f"a number of more than {most} digits"
    return ("0" if digits == "0" else sign + digits), ""


# --- What models write --------------------------------------------------------------------------------------


def _parsed(text: str) -> Reading:
    """The number in JSON or \\boxed{}, else the one after the last "answer:", else the one that an answer
    without such a mark consists of or ends in.

    Units and signs of currencies and per cent around it are left out, thousands may be grouped. Of a
    calculation counts what follows its last "=". A fraction, a range, a comma that may be a decimal one, and
    a number that is one of several or is multiplied, bounded or denied by a word, is not guessed at.
    """
    value = from_json(text)
    if value is not NO_JSON:
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not isinstance(value, str):
            return _NONE
        text = value
    text = plain_signs(text)
    if (whole := _whole(text)) is not None:
        return Reading(whole)
    if (found := boxed(text)) is not None:
        return _within(found, marked=True)
    places = [_within(place, marked=True) for place in marked_places(text)]
    read = list(dict.fromkeys(place for place in places if place.value is not None))
    if len(read) > 1:
        return _SEVERAL
    return read[0] if read else places[-1] if places else _unmarked(text)


def _whole(text: str) -> str | None:
    """The number that a text consists of."""
    plain = bare(text)
    value, _ = read_number(plain.replace(" ", "") if SPACED.fullmatch(plain.lstrip("+-")) else plain)
    return value if isinstance(value, str) else None


def _unmarked(text: str) -> Reading:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) < 2:
        return _within("".join(lines))
    if len(lines) > _MAX_LINES:
        return _within(lines[-1], at_end=True)
    alone = {value for line in lines if (value := _whole(line)) is not None}
    if len(alone) > 1:
        return _SEVERAL
    if alone and _whole(lines[0]) is not None:
        return Reading(alone.pop())
    return _within(lines[-1], at_end=not SO.match(lines[-1]))


def _within(place: str, *, marked: bool = False, at_end: bool = False) -> Reading:
    """The only number in a line, or the result in which it ends, "... is 7 apples." With `at_end` it has to
    be such a result, or to begin the line. What follows the sentence counts unless the line is `marked`.
    """
    if len(place) > _MAX_LINE:
        return _NONE
    if ITEM.match(place) and len(NUMBER.findall(place)) > 1:
        return _SEVERAL
    said = ASIDE.sub(" ", place)
    for end in (REMARK, SENTENCE) if marked else (REMARK,):
        if found := end.search(said):
            said = said[: found.start()]
    if (whole := _whole(said)) is not None:
        return Reading(whole)
    before, equals, after = said.rpartition("=")
    if equals:
        if re.search(r"[,;]\s|\b(?:or|and)\b", before):
            return _SEVERAL
        said = after
    numbers = list(NUMBER.finditer(said))
    if not numbers:
        return _odd(said) if DIGITS.search(said) else _NONE
    last = numbers[-1]
    behind = said[last.end() :]
    result = RESULT.search(said[: last.start()].rstrip(" \t*_$\u20ac\u00a3\u00a5([{")) and UNIT.match(behind)
    begins = not said[: last.start()].strip("*_$\u20ac\u00a3\u00a5 \t") and SHORT_UNIT.match(behind)
    if len(numbers) > 1 and not result:
        return _FRACTIONAL if FRACTION.search(said) else _SEVERAL
    if at_end and not (equals or result or begins):
        return Reading(None, "no number that is said to be the answer")
    return _read(last, said)


def _read(match: "re.Match[str]", said: str) -> Reading:
    before, behind = FINE_BEFORE.sub("", said[: match.start()]), said[match.end() :]
    if FRACTION.search(said):
        return _FRACTIONAL
    if UNSURE.search(said):
        return Reading(None, "may say that it is not the answer")
    if BEFORE.search(before) or BEHIND.match(behind):
        return _odd(said)
    digits = re.sub("['\u2019\u00a0\u2009\u202f_]", "", match["digits"])
    exponent = f"e{match['power']}" if match["power"] else match["exponent"] or ""
    value, _ = read_number(f"{match['sign']}{digits}{exponent}")
    if not isinstance(value, str):
        return Reading(None, f"{match[0].strip()[:40]!r} can be read in more than one way")
    return Reading(value)


def _odd(said: str) -> Reading:
    shown = " ".join(said.split())
    return Reading(None, f"{shown if len(shown) <= 40 else shown[:40] + '...'!r} is not one plain number")
