"""In which order people get the items that a run routed to them, as a manager chooses.

The calibration set stays in the order of its draw. Where later items or people are audited, the order stays
by chance, too: hard items first would raise false alarms, and an order would tell which items are audited.
"""

from dataclasses import dataclass, field
from typing import Any

from django.db import models, transaction
from django.db.models import CharField, F, OuterRef, Subquery, TextField, Value
from django.db.models.functions import MD5, Cast, Concat
from django.utils.translation import gettext as _, gettext_lazy

from annotation.common import audit
from annotation.errors import ConflictError, InputError, Refusal
from annotation.labelling.work_order import place_by
from annotation.models import AuditEvent, User, WorkItem
from routing.common.states import State
from routing.core import sampling
from routing.models import PoolItem, Prediction, Run
from routing.visibility import output_is_open

CHANGED = "run.work_ordered"


class Order(models.TextChoices):
    RANDOM = "random", gettext_lazy("By chance")
    UNCERTAIN = "uncertain", gettext_lazy("What the first model is least sure of first")
    CLASS = "class", gettext_lazy("By the label that the first model gives")
    NAME = "name", gettext_lazy("By name")


BY_MODELS = (Order.UNCERTAIN, Order.CLASS)


@dataclass(frozen=True)
class WorkOrder:
    """`now` is the order that holds, `choices` those that can be chosen; `objection` says why none can be."""

    now: Order
    choices: list[Order]
    objection: Refusal = field(default_factory=Refusal)


def work_order(run: Run) -> WorkOrder | None:
    """None while people do not label what the run routed to them."""
    if run.state != State.LABELLING or run.routed_batch_id is None:
        return None
    event = AuditEvent.objects.filter(project=run.project, action=CHANGED, target=f"run:{run.number}").first()
    now = Order(event.data["order"]) if event else Order.RANDOM
    if objection := _objection(run):
        return WorkOrder(now, [], objection)
    offered = [one for one in Order if one not in BY_MODELS or not _hides_models(run)]
    return WorkOrder(now, offered)


def set_work_order(*, run: Run, user: User | None, order: str) -> int:
    """Give the open work of a routed run another order; returns how many requests for a label that were.

    Raises InputError for an order that there is not, ConflictError where the run has none to choose.
    """
    with transaction.atomic():
        run = (
            Run.objects.select_for_update(of=("self",), no_key=True).select_related("project").get(pk=run.pk)
        )
        found = work_order(run)
        if found is None:
            raise ConflictError(
                _("Run %(run)s has no routed items that people label now.") % {"run": run.number},
                code="no_routed_items",
            )
        if found.objection:
            raise ConflictError(found.objection, code=found.objection.code)
        if order not in found.choices:
            raise InputError(
                _("Choose one of these: %(orders)s.") % {"orders": ", ".join(found.choices)}, where="order"
            )
        work = WorkItem.objects.filter(batch=run.routed_batch_id, state__in=WorkItem.UNFINISHED)
        count = place_by(work, _keys(run, Order(order)))
        audit.record(
            project=run.project,
            actor=user,
            action=CHANGED,
            target=f"run:{run.number}",
            data={"order": order, "items": count},
        )
    return count


def _objection(run: Run) -> Refusal:
    if run.reference != Run.Reference.PERSON:
        return Refusal(
            _(
                "The order stays by chance: people have to label these items as they labelled the "
                "calibration set, and an audit of them holds in no other order."
            ),
            "order_by_chance",
        )
    if not run.by_people and run.target == Run.Target.POPULATION:
        return Refusal(
            _("The order stays by chance: another one would tell which later items are audited."),
            "order_by_chance",
        )
    return Refusal()


def _hides_models(run: Run) -> bool:
    """Where an order would say what a model said while people label blind, or there is no model."""
    return run.by_people or not output_is_open(run.project)


def _keys(run: Run, order: Order) -> list[Any]:
    salt = Value(f"{sampling.new_entropy()}-")
    chance = MD5(Concat(salt, Cast("item_id", CharField()), output_field=TextField()))
    if order == Order.UNCERTAIN:
        pool = PoolItem.objects.filter(run=run, item=OuterRef("item"))
        return [Subquery(pool.values("u")[:1]).desc(nulls_last=True), chance]
    if order == Order.CLASS:
        first = run.run_sources.get(position=1)
        said = Prediction.objects.filter(
            source=first.source_id, fingerprint=first.fingerprint, item=OuterRef("item")
        )
        value = Subquery(said.annotate(text=Cast("value", TextField())).values("text")[:1])
        return [value.asc(nulls_last=True), chance]
    if order == Order.NAME:
        return [F("item__external_id").asc()]
    return [chance]
