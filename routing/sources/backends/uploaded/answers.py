"""One answer as it is sent: checked, brought into the form in which it is stored, and read again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext_noop

from annotation.common.value_reader import ValueReader, ValueReason
from annotation.errors import InputError
from annotation.imports.faults import fault
from annotation.storable import storable_text
from annotation.task_types.base import OF_FORM
from routing.sources.backends.base import MOST_REASON, Answer
from routing.sources.backends.cells import decimal_cell
from routing.sources.backends.recorded import MAX_COUNT, PLACES, READERS

ONE_NUMBER = ("confidence", "uncertainty")
SEVERAL_NUMBERS = ("probabilities", "label_logprobs", "token_probabilities", "token_logprobs")
TEXTS = ("samples", "verbalized")
SCORE_FIELDS = (*ONE_NUMBER, *SEVERAL_NUMBERS, *TEXTS)
GAVE_NONE = ValueReason("the model gave no answer", "no_answer")
COUNTS = ("tokens_in", "tokens_out")
FIELDS = (
    *("external_id", "label", "reason"),
    *SCORE_FIELDS,
    *(*COUNTS, "seconds", "finish_reason", "cost"),
)
"""What a line may hold. A backend that reads columns (`recorded`) takes the same under the same names."""
SHARES = frozenset({"probabilities", "token_probabilities"})
LISTS = frozenset({"token_probabilities", "token_logprobs"})


class NoLabelError(InputError):
    """A line whose label is none of the project. `said` is what it says, for those who may be told."""

    said: str


@dataclass(frozen=True)
class Sent:
    """`external_id` names the item, `answer` is what is stored. What stands in an answer is never repeated in
    a message: whoever reads of the job may label.
    """

    external_id: str
    answer: dict[str, Any]


def sent_from(line: Mapping[str, Any], reader: ValueReader) -> Sent:
    """An answer from the object of a line. Raises InputError, its `where` the field."""
    if unknown := [name for name in line if name not in FIELDS]:
        words = gettext_noop("No field of an answer; the fields are %(names)s.")
        raise fault(words, where=storable_text(unknown[0][:40]), names=", ".join(FIELDS))
    external_id = item_named(line, "external_id")
    if "label" not in line:
        raise fault(gettext_noop("It is missing; null says that the model gave none."), where="label")
    label, reason = line["label"], _text(line, "reason")
    value, why = reader(label) if label is not None else (None, "")
    if label is not None and value is None:
        no_label, unreadable = (
            gettext_noop(
                "It is no label of the project. If it means one, say which on the page “Answers” of the "
                "source, and send it again."
            ),
            gettext_noop("It cannot be read."),
        )
        if not reader.kind.has_choices:
            raise _unreadable(why, unreadable)
        error = fault(no_label, where="label", raised_as=NoLabelError)
        assert isinstance(error, NoLabelError)  # noqa: S101
        error.said = why.quotes.strip() if isinstance(why, ValueReason) else ""
        raise error
    if label is not None and reason:
        raise fault(gettext_noop("Only an answer without a label has a reason."), where="reason")
    if line.get("confidence") is not None and line.get("uncertainty") is not None:
        raise fault(gettext_noop("Give a confidence or an uncertainty, not both."), where="uncertainty")
    answer: dict[str, Any] = {"label": value if reader.kind.any_json else _label(label)}
    if label is None:
        answer["reason"] = reason[:MOST_REASON] or GAVE_NONE
        if not reason:
            answer["reason_code"] = GAVE_NONE.code
    given = {name: line[name] for name in SCORE_FIELDS if line.get(name) is not None}
    answer["raw"] = {name: _raw(name, value) for name, value in given.items()}
    answer |= {name: _count(line, name) for name in COUNTS if line.get(name) is not None}
    answer |= {name: str(_amount(line, name)) for name in ("seconds", "cost") if line.get(name) is not None}
    if finish := _text(line, "finish_reason").strip().lower()[:40]:
        answer["finish_reason"] = finish
    return Sent(external_id, answer)


def _unreadable(why: str, words: str) -> InputError:
    """What is wrong with its form may be told: nothing that it says stands in that."""
    code = why.code if isinstance(why, ValueReason) else ""
    if code == OF_FORM:
        return fault(gettext_noop("It cannot be read: %(why)s."), where="label", why=str(why))
    if code == "unknown_label":
        words = gettext_noop("It names a label that the project does not have.")
    return fault(words, where="label")


def item_named(line: Mapping[str, Any], name: str) -> str:
    """The name of the item in the field `name`. Raises InputError."""
    given = line.get(name)
    if isinstance(given, int | float) and not isinstance(given, bool):
        words = gettext_noop('It is a number and has to be text, in quotation marks: "%(value)s".')
        raise fault(words, where=name, value=json.dumps(given)[:40])
    if given is not None and not isinstance(given, str):
        raise fault(gettext_noop("It is no text; it names the item, as text in quotation marks."), where=name)
    if not given:
        raise fault(gettext_noop("It is missing: it names the item, as text."), where=name)
    return given


def answer_in(stored: Mapping[str, Any]) -> Answer:
    """What was stored, as a backend gives it."""
    seconds, cost = stored.get("seconds"), stored.get("cost")
    return Answer(
        stored["label"],
        ValueReason(stored.get("reason", ""), stored.get("reason_code", ""), stored.get("reason_quotes", "")),
        stored.get("raw", {}),
        tokens_in=stored.get("tokens_in"),
        tokens_out=stored.get("tokens_out"),
        finish_reason=stored.get("finish_reason", ""),
        latency_ms=None if seconds is None else float(seconds) * 1_000,
        cost=None if cost is None else Decimal(cost).quantize(PLACES),
        served_model=stored.get("served_model", ""),
        served_revision=stored.get("served_revision", ""),
    )


def stored_form(answer: Answer) -> dict[str, Any]:
    """An answer that a backend has read, as `sent_from` would store it."""
    stored: dict[str, Any] = {"label": answer.value, "raw": answer.raw}
    if answer.value is None:
        stored["reason"] = answer.reason
        if isinstance(answer.reason, ValueReason):
            stored |= {"reason_code": answer.reason.code, "reason_quotes": answer.reason.quotes[:MOST_REASON]}
    for name in (*COUNTS, "finish_reason", "served_model", "served_revision"):
        if value := getattr(answer, name):
            stored[name] = value
    return stored


def _label(label: Any) -> str | list[str] | None:
    if isinstance(label, list):
        return [entry if isinstance(entry, str) else json.dumps(entry) for entry in label]
    return label if isinstance(label, str) or label is None else json.dumps(label)


def _raw(name: str, value: Any) -> Any:
    """As the column of that name gives it, so that both have the same scores."""
    if name in ONE_NUMBER:
        number = decimal_cell(value) if _is_number(value) else None
        if number is None or number > 1:
            raise fault(gettext_noop("It is no number from 0 to 1."), where=name)
        return str(value)
    if name in SEVERAL_NUMBERS:
        _check_numbers(name, value)
    elif not isinstance(value, list) or not all(entry is None or _is_plain(entry) for entry in value):
        raise fault(gettext_noop("It is no list of texts."), where=name)
    return READERS[name](json.dumps(value, ensure_ascii=False))


def _check_numbers(name: str, value: Any) -> None:
    if isinstance(value, list):
        numbers = value
    elif isinstance(value, dict) and name not in LISTS:
        numbers = list(value.values())
    else:
        no_list, no_object = (
            gettext_noop("It is no list of numbers."),
            gettext_noop("It is no object of numbers."),
        )
        raise fault(no_list if name in LISTS else no_object, where=name)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise fault(gettext_noop("It holds something that is no number."), where=name)
        if name in SHARES and not 0 <= number <= 1:
            raise fault(gettext_noop("It holds a number that is not from 0 to 1."), where=name)


def _count(line: Mapping[str, Any], name: str) -> int:
    value = line[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_COUNT:
        raise fault(gettext_noop("It is no whole number from 0 on."), where=name)
    return value


def _amount(line: Mapping[str, Any], name: str) -> Decimal:
    value = line[name]
    number = decimal_cell(value) if _is_number(value) else None
    if number is None:
        raise fault(gettext_noop("It is no number from 0 on."), where=name)
    return number


def _text(line: Mapping[str, Any], name: str) -> str:
    value = line.get(name)
    if value is not None and not isinstance(value, str):
        raise fault(gettext_noop("It is no text."), where=name)
    return value or ""


def _is_number(value: Any) -> bool:
    """A number, or one that is written as text, as exports from tables have it."""
    return isinstance(value, int | float | str) and not isinstance(value, bool)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
