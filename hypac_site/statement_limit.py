"""No statement of a web request keeps the database at work for longer than HYPAC_REQUEST_STATEMENT_SECONDS.

Web processes alone ask for it (hypac_site.wsgi, hypac_site.asgi): jobs, commands and migrations take as long
as they need. What a page limits further it does itself (annotation.common.query_timeout).
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

# Of the machine that runs SQLite's statements; some milliseconds' worth.
STEPS = 100_000


def limit_statements() -> None:
    """Have every connection that this process opens from now on end statements that take longer."""
    seconds = settings.HYPAC_REQUEST_STATEMENT_SECONDS
    if seconds <= 0:
        return
    database = settings.DATABASES["default"]
    if database["ENGINE"] == "django.db.backends.postgresql":
        options = database["OPTIONS"].get("options", "")
        if "statement_timeout" not in options:  # an address that names its own goes first
            # As the connection's default: what one transaction sets for itself ends with it.
            database["OPTIONS"]["options"] = f"{options} -c statement_timeout={seconds * 1000}".strip()
    elif database["ENGINE"] == "django.db.backends.sqlite3":
        connection_created.connect(_watch, dispatch_uid="statement_limit")


class _Start(threading.local):
    """When the statement began that this thread's connection is at."""

    moment = 0.0


_start = _Start()


def _note_start(execute: Callable[..., Any], *arguments: Any) -> Any:
    _start.moment = time.monotonic()
    return execute(*arguments)


def _watch(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    """SQLite looks at no clock by itself: it asks now and then whether to go on."""
    _start.moment = time.monotonic()
    most = settings.HYPAC_REQUEST_STATEMENT_SECONDS
    # One that was closed and is opened again has it already.
    if _note_start not in connection.execute_wrappers:
        connection.execute_wrappers.append(_note_start)
    connection.connection.set_progress_handler(lambda: time.monotonic() - _start.moment > most, STEPS)


def was_ended(error: BaseException) -> bool:
    """Whether the database ended a statement because its time was over."""
    if not isinstance(error, OperationalError):
        return False
    cause = error.__cause__
    # 57014: query_canceled
    return getattr(cause, "sqlstate", None) == "57014" or str(cause) == "interrupted"


def gave_way(error: BaseException) -> bool:
    """Whether the database undid a transaction as others were at the same rows: nothing of it was stored."""
    if not isinstance(error, OperationalError):
        return False
    cause = error.__cause__
    # 40P01: deadlock_detected; 40001: serialization_failure
    return getattr(cause, "sqlstate", None) in ("40P01", "40001") or str(cause) == "database is locked"
