"""A project in the middle of a run for benchmarks/load.py, and what its database says afterwards."""

from collections.abc import Collection

from runner import analyze

MODELLED = 200
TEXT = "Item {} has a text of some two hundred characters. " + "It goes on for a while. " * 6


def make(size: int, people: int, password: str) -> tuple[str, list[str], int]:
    """A run whose thresholds send `size` items to people: slug, names of the annotators, the batch's id.

    Answers to it go the whole way: they are paid, and each asks whether the run is complete.
    """
    from django.contrib.auth.hashers import make_password
    from django.db import connection

    from annotation.labelling import queue
    from annotation.models import User, WorkItem
    from routing.models import Run
    from testbed.factories import add_member, make_items
    from testbed.worlds import make_world

    world = make_world(MODELLED)
    run = world.routed(m=80)
    waiting = WorkItem.objects.filter(batch__project=world.project, state=WorkItem.State.OPEN)
    waiting.update(state=WorkItem.State.WITHDRAWN)
    items = make_items(world.project, [TEXT.format(number) for number in range(size)])
    item_ids = [item.pk for item in items]
    batch = queue.create_batch(project=world.project, item_ids=item_ids, blind=False, priority=5, entropy=1)
    Run.objects.filter(pk=run.pk).update(routed_batch=batch, state=Run.State.LABELLING)
    secret = make_password(password)  # which takes its time, once
    names = [f"{world.project.slug}-{number}" for number in range(people)]
    for name in names:
        add_member(world.project, user=User.objects.create(username=name, password=secret))
    analyze()
    connection.close()
    return world.project.slug, names, batch.pk


def doubled(batch: int) -> int:
    """Items of the batch with more labels than work items that are done, or two from one person."""
    from django.db.models import Count

    from annotation.models import Label, WorkItem

    labels = Label.objects.filter(work_item__batch=batch, version=1)
    done = WorkItem.objects.filter(batch=batch, state=WorkItem.State.DONE).count()
    by_one = labels.values("item", "annotator").annotate(n=Count("pk")).filter(n__gt=1).count()
    by_slot = labels.values("work_item").annotate(n=Count("pk")).filter(n__gt=1).count()
    return by_one + by_slot + abs(labels.count() - done)


def lost(keys: Collection[str]) -> int:
    """How many of these answers have no label."""
    from annotation.models import Label

    return len(set(keys) - set(Label.objects.values_list("idempotency_key", flat=True)))
