"""What an annotator gets is the same, byte for byte, for an item of the audit of later items and for one that
goes to people.
"""

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

from annotation.models import WorkItem
from tests.routing.runs.test_expert_blindness import LABEL, Desk
from tests.routing.runs.test_later_audit import a_run, take

pytestmark = [pytest.mark.django_db, pytest.mark.database, pytest.mark.costly]


class LaterDesk(Desk):
    """Of an annotator to whom nothing is assigned."""

    def waiting(self) -> int:
        batches = (self.run.routed_batch_id, self.run.later_audit_batch_id)
        return WorkItem.objects.filter(batch__in=batches, state__in=WorkItem.UNFINISHED).count()


def test_pages_and_answers_are_the_same_for_the_audit_and_for_other_items(client) -> None:
    world, run = a_run("0.5")
    annotator = world.annotators[0]
    world.annotators = [annotator]
    world.arrive(150)
    take(world, run)
    here = SimpleNamespace(expert=annotator, world=world)
    desk = LaterDesk(here, client, run)
    seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
    by_page: dict[str, list[dict[str, Any]]] = defaultdict(list)
    while task := desk.task():
        kind = "audit" if task.work_item.batch_id == run.later_audit_batch_id else "people"
        same = world.truth[task.item.external_id] == LABEL
        if not same or desk.labelled() < 6 or desk.waiting() < 5:
            world.label(limit=1)
        elif len(seen[kind]) < 2 and len(seen[kind]) <= len(by_page[kind]):
            seen[kind].append(desk.looks(task))
        elif len(by_page[kind]) < 2:
            by_page[kind].append(desk.looks_at_page(task))
        else:
            world.label(limit=1)
    for looks in (seen, by_page):
        assert set(looks) == {"audit", "people"}
        first = looks["people"][0]
        for other in (*looks["people"], *looks["audit"]):
            assert {
                name for name in first.keys() | other.keys() if first.get(name) != other.get(name)
            } == set()
