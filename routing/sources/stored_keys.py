"""Encrypting all that is stored as a secret anew, after the keys of the server were changed."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from annotation.errors import InputError
from annotation.models import AuthenticatorApp, Connection, Webhook
from annotation.outside.secrets import reencrypt
from routing.models import Source


@dataclass(frozen=True)
class Rotation:
    """`lost` are "project/source", "project/connection", "project/webhook" or "app of NAME" whose key or
    secret no longer opens; it is left as it was.
    """

    rotated: int
    lost: tuple[str, ...]


def rotate_stored_keys() -> Rotation:
    """Each stored key under the first key of the server. May run beside everything else, and again."""
    lost: list[str] = []
    rotated = 0
    for model, field in (
        (Webhook, "secret"),
        (Webhook, "old_secret"),
        (Connection, "secret"),
        (Source, "api_key"),
    ):
        rows = model._default_manager.exclude(**{field: ""}).select_related("project")
        rotated += _rotate(rows, field, lost)
    rotated += _rotate(AuthenticatorApp.objects.select_related("user"), "secret", lost)
    return Rotation(rotated, tuple(dict.fromkeys(lost)))


def _rotate(rows: QuerySet[Any], field: str, lost: list[str]) -> int:
    """How many keys in `field` were encrypted anew; the names of the others are added to `lost`."""
    rotated = 0
    for row in rows.order_by("pk").iterator():
        stored = getattr(row, field)
        try:
            encrypted = reencrypt(stored)
        except InputError:
            lost.append(_name_of(row))
            continue
        # Not over a key that somebody entered in the meantime, which is under the first key already.
        rotated += rows.filter(**{"pk": row.pk, field: stored}).update(**{field: encrypted})
    return rotated


def _name_of(row: Any) -> str:
    if isinstance(row, AuthenticatorApp):
        return f"app of {row.user.username}"
    name = f"webhook {row.pk}" if isinstance(row, Webhook) else row.name
    return f"{row.project.slug}/{name}"
