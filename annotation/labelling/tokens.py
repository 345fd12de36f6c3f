"""Tokens of leases: they tell who was given an item when the lease has long passed to others."""

import secrets

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

HALF = 16
"""Characters of the random half, and of the seal behind it."""


def new_token(work_item_id: int, user_id: int) -> str:
    nonce = secrets.token_hex(HALF // 2)
    return nonce + _seal(nonce, work_item_id, user_id, settings.SECRET_KEY)


def was_given(token: str, *, work_item_id: int, user_id: int) -> bool:
    """Whether this person was given this item with this token, at whatever time."""
    nonce, seal = token[:HALF], token[HALF:]
    return any(
        constant_time_compare(seal, _seal(nonce, work_item_id, user_id, key))
        for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    )


def _seal(nonce: str, work_item_id: int, user_id: int, key: str | bytes) -> str:
    value = f"{nonce}:{work_item_id}:{user_id}"
    return salted_hmac("annotation.queue.lease", value, secret=key, algorithm="sha256").hexdigest()[:HALF]
