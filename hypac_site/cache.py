"""The cache that web processes share, which pages can do without."""

import logging
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

# After a failure Redis is left alone for so long: not each page shall wait for it.
PAUSE_SECONDS = 5.0


def _soft(method: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    original = getattr(RedisCache, method)

    @wraps(original)
    def tried(self: "SoftRedisCache", *args: Any, **kwargs: Any) -> Any:
        if time.monotonic() < self.paused_until:
            return otherwise(*args, **kwargs)
        try:
            return original(self, *args, **kwargs)
        except RedisError as error:
            self.paused_until = time.monotonic() + PAUSE_SECONDS
            log.warning("The cache cannot be reached (%s); pages go on without it.", type(error).__name__)
            return otherwise(*args, **kwargs)

    return tried


class SoftRedisCache(RedisCache):
    """Django's, but while Redis cannot be reached nothing is found in it and nothing is kept, and no page
    fails. Limits that are counted here do not hold meanwhile; log-in attempts are counted in the database.
    """

    paused_until = 0.0

    add = _soft("add", lambda *args, **kwargs: True)
    get = _soft("get", lambda key, default=None, version=None: default)
    set = _soft("set", lambda *args, **kwargs: None)
    touch = _soft("touch", lambda *args, **kwargs: False)
    delete = _soft("delete", lambda *args, **kwargs: False)
    get_many = _soft("get_many", lambda *args, **kwargs: {})
    set_many = _soft("set_many", lambda data, *args, **kwargs: list(data))
    delete_many = _soft("delete_many", lambda *args, **kwargs: None)
    has_key = _soft("has_key", lambda *args, **kwargs: False)
    clear = _soft("clear", lambda *args, **kwargs: False)
