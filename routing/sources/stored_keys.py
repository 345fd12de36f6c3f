"""Encrypting all that is stored as a secret anew, after the keys of the server were changed."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from annotation.errors import InputError
from annotation.models import Connection, Webhook
from annotation.outside.secrets import encrypt_anew
from routing.models import Source


@dataclass(frozen=True)
class Rotation:
    """`lost` are "project/source", "project/connection" or "project/webhook" whose key or secret no longer
    opens; it is left as it was.
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
        rotated += _rotate(model._default_manager.exclude(**{field: ""}), field, lost)
    return Rotation(rotated, tuple(dict.fromkeys(lost)))


def _rotate(rows: QuerySet[Any], field: str, lost: list[str]) -> int:
    """How many keys in `field` were encrypted anew; the names of the others are added to `lost`."""
    rotated = 0
    for row in rows.select_related("project").order_by("pk").iterator():
        stored = getattr(row, field)
        try:
            encrypted = encrypt_anew(stored)
        except InputError:
            name = f"webhook {row.pk}" if isinstance(row, Webhook) else row.name
            lost.append(f"{row.project.slug}/{name}")
            continue
        # Not over a key that somebody entered in the meantime, which is under the first key already.
        rotated += rows.filter(**{"pk": row.pk, field: stored}).update(**{field: encrypted})
    return rotated
