"""What people send: checked before anything is stored."""

from typing import Any

from annotation.errors import InputError
from annotation.models import Label, Project

MAX_COMMENT = 2000
MAX_LEAD_TIME_MS = 2**31 - 1
MAX_KEY = Label._meta.get_field("idempotency_key").max_length or 64


def validate_value(project: Project, value: Any) -> str:
    """The canonical form of a label's value: for a single choice the key of the choice.

    Raises InputError where it is no label of the project.
    """
    if isinstance(value, str) and value and project.choices.filter(key=value).exists():
        return value
    shown = repr(value) if len(repr(value)) <= 100 else repr(value)[:100] + "..."
    raise InputError(f"{shown} is not one of this project's labels. Reload the page.", where="value")


def check_comment(comment: str) -> str:
    if len(comment) > MAX_COMMENT:
        raise InputError(
            f"The comment has {len(comment):,} characters; at most {MAX_COMMENT:,} are kept.", where="comment"
        )
    if "\0" in comment:
        raise InputError("The comment contains a NUL character.", where="comment")
    return comment


def check_idempotency_key(key: str) -> str:
    if not 1 <= len(key) <= MAX_KEY or not key.isprintable():
        raise InputError(
            "Send a random key of 1 to 64 characters, a new one for every answer.", where="idempotency_key"
        )
    return key


def usable_lead_time(lead_time_ms: int | None) -> int | None:
    """The measured time; None where a clock that jumped made it senseless: no reason to refuse a label."""
    return lead_time_ms if lead_time_ms is not None and 0 <= lead_time_ms <= MAX_LEAD_TIME_MS else None
