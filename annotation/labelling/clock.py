"""What time it is for leases."""

from datetime import datetime

from django.db import connection
from django.utils import timezone


def queue_time() -> datetime:
    """The time by the database's clock. Several web servers have a clock each, and by one that is fast the
    leases that another one gives would end early.

    An SQLite file is used on one computer, which has one clock.
    """
    if connection.vendor == "sqlite":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")  # now() would be when the transaction began
        now: datetime = cursor.fetchone()[0]
    return now
