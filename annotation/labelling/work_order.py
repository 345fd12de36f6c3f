"""The order in which a batch's work is given out, where somebody chooses it."""

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import F, QuerySet, Window
from django.db.models.functions import DenseRank

from annotation.models import WorkItem


def place_by(work: QuerySet[WorkItem], keys: Sequence[Any]) -> int:
    """Give these work items the places 1, 2, ... by `keys`, all of one item the same; in one statement,
    however many there are. Returns how many work items that were.
    """
    rank = Window(DenseRank(), order_by=[*keys, F("item_id").asc()])
    select, params = (
        work.order_by().annotate(work=F("pk"), place=rank).values("work", "place").query.sql_with_params()
    )
    quote = connection.ops.quote_name
    table, key, order = quote(WorkItem._meta.db_table), quote("id"), quote("order")
    with connection.cursor() as cursor:
        # Names come from the model, values go in as parameters.
        cursor.execute(
            f"UPDATE {table} SET {order} = places.place FROM ({select}) AS places "  # noqa: S608
            f"WHERE {table}.{key} = places.work",
            params,
        )
        return int(cursor.rowcount)
