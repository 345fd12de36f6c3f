"""What people send: checked before anything is stored."""

from typing import Any

from django.utils.translation import gettext as _

from annotation.errors import InputError
from annotation.models import Label, Project
from annotation.values import CHOICE_TYPES, MISSING, Value, reader_of

MAX_COMMENT = 2000
MAX_LEAD_TIME_MS = 2**31 - 1
MAX_KEY = Label._meta.get_field("idempotency_key").max_length or 64


def validate_value(project: Project, value: Any) -> Value:
    """The canonical form of a label's value (annotation.values).

    Raises InputError where it is no label of the project. A comma in a number is refused: where people write
    decimals with one, "1,234" would be stored as a thousand times what they meant.
    """
    canonical, reason = reader_of(project)(value)
    if canonical is not None:
        number = project.task_type == Project.TaskType.NUMBER
        if number and isinstance(value, str) and ("," in value or "\N{FULLWIDTH COMMA}" in value):
            raise InputError(
                _("Write the number without a comma, and decimals after a point."), where="value"
            )
        return canonical
    shown = repr(value) if len(repr(value)) <= 100 else repr(value)[:100] + "..."
    if reason == MISSING:
        sentence = _("%(shown)s is no answer.") % {"shown": shown} if value else _("There is no answer yet.")
    elif project.task_type in CHOICE_TYPES:
        sentence = _("%(shown)s is not one of this project's labels. Reload the page.") % {"shown": shown}
    elif project.task_type == Project.TaskType.NUMBER:
        sentence = _(
            "%(shown)s cannot be stored as a number: write digits, with a point before decimals."
        ) % {"shown": shown}
    else:
        sentence = _("The answer cannot be stored: %(reason)s.") % {"reason": reason}
    raise InputError(sentence, where="value")


def check_comment(comment: str) -> str:
    if len(comment) > MAX_COMMENT:
        raise InputError(
            _("The comment has %(count)s characters; at most %(max_comment)s are kept.")
            % {"count": f"{len(comment):,}", "max_comment": f"{MAX_COMMENT:,}"},
            where="comment",
        )
    if "\0" in comment:
        raise InputError(_("The comment contains a NUL character."), where="comment")
    return comment


def check_idempotency_key(key: str) -> str:
    if not 1 <= len(key) <= MAX_KEY or not key.isprintable():
        raise InputError(
            _("Send a random key of 1 to 64 characters, a new one for every answer."), where="idempotency_key"
        )
    return key


def usable_lead_time(lead_time_ms: int | None) -> int | None:
    """The measured time; None where a clock that jumped made it senseless: no reason to refuse a label."""
    return lead_time_ms if lead_time_ms is not None and 0 <= lead_time_ms <= MAX_LEAD_TIME_MS else None
