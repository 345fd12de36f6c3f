"""Whether this host can read the stored keys of model servers (see annotation.checks)."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.db import DatabaseError

from annotation.checks import HOSTS
from annotation.errors import InputError
from annotation.outside.secrets import decrypt
from routing.models import Source


@register(HOSTS, deploy=True)
def check_stored_keys(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """An Error where a key opens on no account: HYPAC_ENCRYPTION_KEYS or DJANGO_SECRET_KEY is another one."""
    if "default" not in (databases or ()):
        return []
    try:
        stored = list(Source.objects.exclude(api_key="").order_by("pk").values_list("pk", "api_key"))
    except DatabaseError:
        return []  # no such table yet
    lost = [str(pk) for pk, key in stored if not _opens(key)]
    if not lost:
        return []
    return [
        Error(
            f"This host cannot read the stored keys of {len(lost)} of {len(stored)} sources "
            f"({', '.join(lost[:10])}): jobs that need them fail here.",
            hint="HYPAC_ENCRYPTION_KEYS, or DJANGO_SECRET_KEY where those are not set, must be the same on "
            "every host.",
            id="hypac.E003",
        )
    ]


def _opens(key: str) -> bool:
    try:
        decrypt(key)
    except InputError:
        return False
    return True
