"""A large project for benchmarks/bulk.py: two models whose answers are recorded, and what people do in it."""

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from runner import analyze

LABELS = ("cat", "dog", "emu")
TEXT = (
    "Item {} has a text of some length. "
    + "It goes on for a while, as texts do that people are asked about. " * 2
)
# Items are made in groups of so many, each from a seed of its own, so that the truth needs no memory.
GROUP = 50_000
LEAD_TIMES = 60_000


class Facts(NamedTuple):
    """Of one group of items: indices into LABELS, and uncertainties."""

    true: Any
    answers: tuple[Any, Any]
    u: tuple[Any, Any]


@lru_cache(1)
def facts(group: int) -> Facts:
    """The first source errs at u with 0.4 u, the second with 0.1 u; few digits make ties."""
    random = np.random.default_rng(group)
    u = np.round(random.random(GROUP) ** 2, 4)
    true = random.integers(0, 200, GROUP) // 99
    first, second = (
        np.where(random.random(GROUP) < share * u, (true + 1) % len(LABELS), true) for share in (0.4, 0.1)
    )
    return Facts(true, (first, second), (u, np.round(u / 4, 4)))


class Truth(dict[str, str]):
    """The true label of an item by its name; asked in the order of positions, it makes each group once."""

    def __missing__(self, name: str) -> str:
        group, place = divmod(int(name.removeprefix("t")), GROUP)
        return LABELS[facts(group).true[place]]


def plan_of(size: int) -> dict[str, Any]:
    rates = {"epsilon": Decimal("0.02"), "alpha": Decimal("0.05"), "p": Decimal("0.9")}
    return {**rates, "m": min(3000, size // 4), "entropy": 1}


def make(size: int) -> Any:
    from annotation.common.bulk import copy_rows
    from annotation.models import Item
    from testbed.factories import add_member, make_project
    from testbed.worlds import World, add_recorded

    project = make_project(choices=LABELS, human_cost=Decimal("0.1"), currency="USD")
    project.columns = ["text", "model1", "confidence1", "model2", "confidence2"]
    project.save(update_fields=["columns"])
    for number, cost in enumerate(("0.0001", "0.001"), start=1):
        add_recorded(project, number, cost)
    copy_rows(
        Item,
        ("project", "external_id", "position", "text", "fields", "data", "content_hash"),
        ((project.pk, f"t{place}", place, *content) for place, content in enumerate(contents(size))),
    )
    analyze("annotation_item")
    return World(project, project.created_by, [add_member(project) for _ in range(2)], Truth())


def contents(size: int) -> Iterator[tuple[Any, ...]]:
    """Text, fields, data and hash of every item."""
    from annotation.imports.rows import text_hash

    for start in range(0, size, GROUP):
        group = facts(start // GROUP)
        lists = [values.tolist()[: size - start] for values in (*group.answers, *group.u)]
        for place, (one, two, u_one, u_two) in enumerate(zip(*lists, strict=True), start):
            text = TEXT.format(place)
            data = {"text": text, "model1": LABELS[one], "confidence1": f"{1 - u_one:.4f}"}
            data |= {"model2": LABELS[two], "confidence2": f"{1 - u_two:.4f}"}
            yield text, [], data, text_hash(text if place % 100 != 1 else TEXT.format(place - 1))


def half_labelled(size: int) -> Any:
    """Such a project with a run that has been routed, in which people are at work.

    A tenth of what the run asks them is labelled, and in another batch two people labelled a tenth of all
    items each: of one in ten of these they differ, and a reviewer still has to decide. One item in a thousand
    is flagged, one in a hundred has a twin, one in ten an entry in the audit trail.
    """
    from django.db.models import F

    from annotation.common.bulk import copy_rows
    from annotation.labelling import queue
    from annotation.models import AuditEvent, Comment, Item, Settlement, WorkItem

    world = make(size)
    project, manager = world.project, world.manager
    run = world.routed(**plan_of(size))
    by_place = WorkItem.objects.annotate(place=F("item__position") % 100).filter(batch=run.routed_batch)
    nobody_can = by_place.filter(place=0).values("pk")
    WorkItem.objects.filter(pk__in=nobody_can).update(state=WorkItem.State.UNLABELABLE)
    answer(world, by_place.filter(place__in=range(1, 11)))
    ids = list(Item.objects.filter(project=project).order_by("position").values_list("pk", flat=True))
    batch = queue.create_batch(
        project=project, item_ids=ids[3::10], blind=False, priority=1, entropy=1, overlap=2
    )
    answer(world, WorkItem.objects.filter(batch=batch))
    agreed = ((batch.pk, ids[n], world.truth[f"t{n}"]) for n in range(3, size, 10) if n % 100 != 3)
    copy_rows(Settlement, ("batch", "item", "value", "method"), ((*row, "majority") for row in agreed))
    copy_rows(
        Comment,
        ("item", "author", "text", "is_flag"),
        ((one, manager.pk, "odd", True) for one in ids[::1000]),
    )
    copy_rows(
        AuditEvent,
        ("project", "actor", "action", "target"),
        ((project.pk, manager.pk, "work.asked_again", f"item:{one}") for one in ids[::10]),
    )
    analyze()
    return world


def answer(world: Any, work: Any) -> None:
    """What people leave behind who label these; the second of two says something else of one in a hundred."""
    from annotation.common.bulk import copy_rows
    from annotation.models import Label, WorkItem

    rows = list(work.order_by("item__position").values_list("pk", "item", "item__position", "slot"))
    WorkItem.objects.filter(pk__in=work.values("pk")).update(state=WorkItem.State.DONE)
    people = [annotator.pk for annotator in world.annotators]
    copy_rows(
        Label,
        ("item", "work_item", "annotator", "value", "idempotency_key", "lead_time_ms"),
        (
            (
                item,
                pk,
                people[(place // 10 + slot) % 2],
                "emu" if slot and place % 100 == 3 else world.truth[f"t{place}"],
                f"bulk-{pk}",
                1000 + place * 31 % LEAD_TIMES,
            )
            for pk, item, place, slot in rows
        ),
    )
