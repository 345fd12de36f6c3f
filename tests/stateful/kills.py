"""Ends a piece of work between two statements, as `kill -9` of its process would."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

# How a transaction ends: a process that is gone leaves that to the database.
ENDS = ("ROLLBACK", "RELEASE")


class KilledError(BaseException):
    """No handler catches it: whoever is killed handles nothing."""


@contextmanager
def killed_before(statement: int) -> Iterator[None]:
    """Within, the `statement`-th statement (from 0) and all that follow do not reach the database.

    What was committed before stays, an open transaction is rolled back. The block is left in any case.
    """
    seen = 0

    def count(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal seen
        if not sql.startswith(ENDS):
            seen += 1
            if seen > statement:
                raise KilledError
        return execute(sql, params, many, context)

    try:
        with connection.execute_wrapper(count):
            yield
    except KilledError:
        pass
