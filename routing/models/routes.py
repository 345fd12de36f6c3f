from django.db import models
from django.db.models import Q

from annotation.models import Item
from routing.models.runs import Run


class Route(models.Model):
    """Which source the thresholds give an item to, before unusable answers are passed on."""

    # Routes are made of the rows of the pool, in one statement, and deleted with their run. The keys of those
    # rows hold run and item; to check them again, item by item, took two thirds of the time of the routing.
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="routes", db_index=False, db_constraint=False
    )
    item = models.ForeignKey(Item, on_delete=models.RESTRICT, related_name="+", db_constraint=False)
    position = models.PositiveSmallIntegerField(help_text="1 to S; S is people.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "item"], name="route_once"),
            models.CheckConstraint(condition=Q(position__gte=1), name="route_position_from_1"),
        ]
        indexes = [models.Index(fields=["run", "position", "item"], name="route_by_position")]

    def __str__(self) -> str:
        return f"Item {self.item_id} to source {self.position}"
