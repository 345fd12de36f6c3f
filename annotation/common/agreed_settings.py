"""Settings that have to be the same on every host: `migrate` notes a fingerprint of each in the database, and
each host compares its own (annotation.checks).

A fingerprint is an HMAC under DJANGO_SECRET_KEY, which the database does not hold: whoever has the database
alone cannot try what a password may be. So where that key is another one nothing else can be compared.
"""

import json
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connections
from django.utils.crypto import constant_time_compare, salted_hmac

from annotation.models import AgreedSettings

SECRET_KEY = "DJANGO_SECRET_KEY"  # noqa: S105
# A worker may have keys of its own to the same bucket.
_OF_STORE = {
    "HYPAC_S3_BUCKET": "bucket_name",
    "HYPAC_S3_ENDPOINT": "endpoint_url",
    "HYPAC_S3_PREFIX": "location",
}
_NAMES = (
    *("HYPAC_ENCRYPTION_KEYS", "HYPAC_MAIL_URL", "HYPAC_MAIL_FROM", "HYPAC_ADDRESS", "HYPAC_PRIVATE_HOSTS"),
    *("HYPAC_HUB_ENDPOINT", "HYPAC_LOSSES", "HYPAC_EMBEDDINGS_URL", "HYPAC_EMBEDDINGS_MODEL"),
    *("HYPAC_EMBEDDINGS_KEY", "HYPAC_MAX_UPLOAD_BYTES", "HYPAC_MAX_IMPORT_ROWS", "HYPAC_MAX_CELL_CHARACTERS"),
    *("HYPAC_MAX_IMAGE_BYTES", "HYPAC_MAX_IMAGE_PIXELS", "HYPAC_MAX_INPUT_RATIO", "HYPAC_MAX_UNPACKED_BYTES"),
    *("HYPAC_MAX_IMPORT_CHARACTERS", "HYPAC_MAX_IMPORT_SECONDS", "HYPAC_COOKIE_PREFIX"),
)


def note_after_migrate(using: str = "default", plan: Any = None, **_: Any) -> None:
    """Receiver of `post_migrate`, which a flush sends, too, without a plan."""
    if using == "default" and plan is not None:  # no copy that is being made
        note()


def note() -> None:
    """From now on all hosts are to have what this one has."""
    if AgreedSettings._meta.db_table in connections["default"].introspection.table_names():
        AgreedSettings.objects.update_or_create(pk=1, defaults={"fingerprints": fingerprints()})


def differing() -> list[str]:
    """Names of the settings that this process has otherwise than where `migrate` last ran."""
    try:
        noted = AgreedSettings.objects.filter(pk=1).values_list("fingerprints", flat=True).first()
    except DatabaseError:
        return []  # no such table yet
    if not noted:
        return []
    mine = fingerprints()
    # What only one of two versions knows is no difference.
    found = [name for name in mine if name in noted and not constant_time_compare(mine[name], noted[name])]
    return [SECRET_KEY] if SECRET_KEY in found else found


def fingerprints() -> dict[str, str]:
    """By the name of a setting, of what it is in this process."""
    store = settings.STORAGES["default"].get("OPTIONS", {})
    values = {SECRET_KEY: "", **{name: store.get(option) for name, option in _OF_STORE.items()}}
    values |= {name: getattr(settings, name) for name in _NAMES}
    return {name: _fingerprint(name, value) for name, value in values.items()}


def _fingerprint(name: str, value: Any) -> str:
    said = json.dumps(value, default=str, sort_keys=True)
    return salted_hmac(f"hypac agreed settings {name}", said, algorithm="sha256").hexdigest()
