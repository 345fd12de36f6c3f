"""The clock of the database, by which hosts whose own clocks differ agree on how long ago something was."""

from datetime import timedelta

from django.db.models.expressions import Combinable
from django.db.models.functions import Now


def seconds_ago(seconds: float) -> Combinable:
    """A moment by the clock of the database. Heartbeats are written and judged by it alone: the clocks of two
    hosts differ, and one that goes a minute wrong would take jobs from workers that live.
    """
    return Now() - timedelta(seconds=seconds)
