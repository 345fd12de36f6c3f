"""The clock of the database, by which hosts whose own clocks differ agree on what time it is."""

from datetime import datetime, timedelta

from django.db import connection
from django.db.models.expressions import Combinable
from django.db.models.functions import Now
from django.utils import timezone


def seconds_ago(seconds: float) -> Combinable:
    """A moment by the clock of the database. Heartbeats are written and judged by it alone: the clocks of two
    hosts differ, and one that goes a minute wrong would take jobs from workers that live.
    """
    return Now() - timedelta(seconds=seconds)


def database_time() -> datetime:
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
