"""What an annotator gets is the same, byte for byte, for an item of the audit of later items and for one that
goes to people.
"""

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib import admin
from django.test import RequestFactory

from annotation.labelling import queue
from annotation.labelling.comments import add_comment
from annotation.models import Skip, WorkItem
from annotation.permissions import access_to
from routing.items.changes import CHANGES
from routing.items.history import item_history
from routing.items.table import item_rows
from routing.models import AuditedItem
from routing.runs.later.audit import later_audit_state
from routing.visibility import view_permission
from tests.routing.runs.test_expert_blindness import LABEL, Desk
from tests.routing.runs.test_later_audit import a_run, take

pytestmark = [pytest.mark.django_db, pytest.mark.costly, pytest.mark.long]


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


def test_whoever_sees_what_models_say_cannot_list_what_is_audited() -> None:
    world, run = a_run()
    world.arrive(40)
    take(world, run)
    access = access_to(world.manager, world.project.slug)
    audit = run.later_audit_batch
    asked = set(audit.work_items.values_list("item__external_id", flat=True))
    work = audit.work_items.first()
    add_comment(item=work.item, author=world.annotators[0], text="?", is_flag=True, work_item=work)

    def found(**filters: str) -> set[str]:
        return {row.external_id for row in item_rows(world.project, access, filters=filters, size=200).rows}

    def rows_of_admin() -> int:
        request = RequestFactory().get("/")
        return admin.site.get_model_admin(AuditedItem).get_queryset(request).count()

    for user in world.annotators:
        Skip.objects.create(work_item=work, user=user)
    assert queue.stuck_items(world.project).filter(item=work.item).exists()
    for filters in ({"stage": "waiting"}, {"stage": "stuck"}, {"flag": "open"}):
        assert not asked & found(**filters), filters
    history = item_history(world.project, access, work.item_id)
    assert (history.skips, history.comments) == ([], [])
    assert rows_of_admin() == later_audit_state(run).audited < 40
    permission = view_permission(world.project, access)
    assert not permission.work().filter(batch=audit).exists()
    # What a person may be asked in place of a model tells nothing, either.
    concerned = CHANGES["ask_people"].concerns(permission, world.project.items.all())
    assert asked <= set(concerned.values_list("external_id", flat=True))
    Skip.objects.all().delete()
    world.label()
    assert permission.work().filter(batch=audit).count() == len(asked)
    assert len(item_history(world.project, access, work.item_id).comments) == 1
    assert rows_of_admin() == 40
