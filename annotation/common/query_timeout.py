"""Queries that somebody waits for: ended by the database after a time."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction

# A page looks single rows up, most of them in memory. PostgreSQL's usual price of such a look-up, made for
# disks that turn, lets it read whole tables instead as soon as there are some thousand.
LOOK_UPS = {"random_page_cost": "1.1", "work_mem": "64MB"}


class TookTooLongError(Exception):
    """The database was stopped at a query because its time was over."""


@contextmanager
def limit_query_time(seconds: float, **settings: str) -> Iterator[None]:
    """On PostgreSQL each query inside may take so long, and these settings of the server hold. SQLite has no
    such limit.

    What is inside is one transaction. Raises TookTooLongError; the connection can be used after it.
    """
    if connection.vendor != "postgresql":
        yield
        return
    inside = connection.in_atomic_block
    wanted = {"statement_timeout": f"{max(1, round(seconds * 1000))}ms"} | LOOK_UPS | settings
    try:
        with transaction.atomic():
            _set(wanted)
            yield
            if inside:  # they would hold until the transaction around this one ends
                # For the limit of web requests that is the connection's own (hypac_site.statement_limit).
                _set(dict.fromkeys(wanted))
    except OperationalError as error:
        # 57014: query_canceled
        if getattr(error.__cause__, "sqlstate", None) != "57014":
            raise
        raise TookTooLongError from error


def _set(wanted: dict[str, str | None] | dict[str, str]) -> None:
    with connection.cursor() as cursor:
        # Names are from this program.
        cursor.execute(
            "; ".join(
                f"SET LOCAL {name} = {'DEFAULT' if value is None else repr(value)}"
                for name, value in wanted.items()
            )
        )
