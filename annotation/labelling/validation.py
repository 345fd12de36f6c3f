"""What people send: checked before anything is stored."""

from typing import Any

from django.utils.translation import gettext as _

from annotation.common.image_sizes import misfit, sizes_of
from annotation.common.value_reader import MISSING, Value, reader_of
from annotation.errors import InputError
from annotation.models import Label, Project
from annotation.task_types import TASK_TYPES, TaskType
from annotation.task_types.base import quoted
from annotation.task_types.outline_budget import SPENT_CODE
from annotation.words import for_reader

MAX_COMMENT = 2000
MAX_LEAD_TIME_MS = 2**31 - 1
GIVEN_ELSEWHERE = "elsewhere:"
"""How the idempotency keys of labels begin that people gave in another program."""
MAX_KEY = Label._meta.get_field("idempotency_key").max_length or 64


def validate_value(project: Project, value: Any, *, item: int) -> Value:
    """The canonical form of a label's value (annotation.common.value_reader) of this item.

    Raises InputError where it is no label of the project, or where people may not write one so; one that is
    not permanent where the request has had too much read before.
    """
    kind = TASK_TYPES[project.task_type]
    canonical, reason = reader_of(project)(value)
    if canonical is None and reason != MISSING:
        sentence = kind.refusal(value, reason)
    elif canonical is None:
        words = _("%(shown)s is no answer.") if value else _("There is no answer yet.")
        sentence = words % {"shown": quoted(value)}
    elif not (sentence := kind.typed_problem(value) or _misfit(kind, canonical, item)):
        return canonical
    again = getattr(reason, "code", "") == SPENT_CODE
    raise InputError(sentence, where="value", permanent=not again)


def _misfit(kind: TaskType, value: Value, item: int) -> str:
    """Why the value is not one of this item's image, in a sentence."""
    size = sizes_of([item]).get(item) if kind.has_size else None
    why = misfit(kind, value, size) if size else None
    return for_reader(why) if why else ""


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


def sent_key(key: str) -> str:
    """One that a page or a program sent: it may not look like those of labels from another program."""
    if key.startswith(GIVEN_ELSEWHERE):
        raise InputError(
            _("A key that begins with “%(begin)s” is this server's own; send a random one.")
            % {"begin": GIVEN_ELSEWHERE},
            where="idempotency_key",
        )
    return check_idempotency_key(key)


def usable_lead_time(lead_time_ms: int | None) -> int | None:
    """The measured time; None where a clock that jumped made it senseless: no reason to refuse a label."""
    return lead_time_ms if lead_time_ms is not None and 0 <= lead_time_ms <= MAX_LEAD_TIME_MS else None
