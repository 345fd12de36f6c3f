"""Answers that are numbers."""

import re

from annotation.values import read_number
from routing.backends.context import TaskSpec
from routing.prompts.base import Reading
from routing.prompts.markers import NO_JSON, bare, boxed, from_json, marked_places
from routing.prompts.number_signs import (
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

MAX_LINE = 2_000
"""Characters of a line in which a number is looked for."""
MAX_LINES = 200
SEVERAL = Reading(None, "several numbers, and which one is the answer is not clear")
FRACTIONAL = Reading(None, "a fraction, not a decimal number")
NONE = Reading(None, "no number in the answer")


def read_decimal(text: str, spec: TaskSpec) -> Reading:
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
            return NONE
        text = value
    text = plain_signs(text)
    if (whole := _whole(text)) is not None:
        return Reading(whole)
    if (found := boxed(text)) is not None:
        return _within(found, marked=True)
    places = [_within(place, marked=True) for place in marked_places(text)]
    read = list(dict.fromkeys(place for place in places if place.value is not None))
    if len(read) > 1:
        return SEVERAL
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
    if len(lines) > MAX_LINES:
        return _within(lines[-1], at_end=True)
    alone = {value for line in lines if (value := _whole(line)) is not None}
    if len(alone) > 1:
        return SEVERAL
    if alone and _whole(lines[0]) is not None:
        return Reading(alone.pop())
    return _within(lines[-1], at_end=not SO.match(lines[-1]))


def _within(place: str, *, marked: bool = False, at_end: bool = False) -> Reading:
    """The only number in a line, or the result in which it ends, "... is 7 apples." With `at_end` it has to
    be such a result, or to begin the line. What follows the sentence counts unless the line is `marked`.
    """
    if len(place) > MAX_LINE:
        return NONE
    if ITEM.match(place) and len(NUMBER.findall(place)) > 1:
        return SEVERAL
    said = ASIDE.sub(" ", place)
    for end in (REMARK, SENTENCE) if marked else (REMARK,):
        if found := end.search(said):
            said = said[: found.start()]
    if (whole := _whole(said)) is not None:
        return Reading(whole)
    before, equals, after = said.rpartition("=")
    if equals:
        if re.search(r"[,;]\s|\b(?:or|and)\b", before):
            return SEVERAL
        said = after
    numbers = list(NUMBER.finditer(said))
    if not numbers:
        return _odd(said) if DIGITS.search(said) else NONE
    last = numbers[-1]
    behind = said[last.end() :]
    result = RESULT.search(said[: last.start()].rstrip(" \t*_$\u20ac\u00a3\u00a5([{")) and UNIT.match(behind)
    begins = not said[: last.start()].strip("*_$\u20ac\u00a3\u00a5 \t") and SHORT_UNIT.match(behind)
    if len(numbers) > 1 and not result:
        return FRACTIONAL if FRACTION.search(said) else SEVERAL
    if at_end and not (equals or result or begins):
        return Reading(None, "no number that is said to be the answer")
    return _read(last, said)


def _read(match: "re.Match[str]", said: str) -> Reading:
    before, behind = FINE_BEFORE.sub("", said[: match.start()]), said[match.end() :]
    if FRACTION.search(said):
        return FRACTIONAL
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
