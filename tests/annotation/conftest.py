from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from annotation.jobs import jobs, kinds
from annotation.labelling import queue
from annotation.labelling.queue import LeasedItem
from annotation.models import Item, Job, Label, Project, User, WorkBatch, WorkItem
from testbed.factories import add_member, make_items, make_project


@dataclass
class Desk:
    """A project with a batch of work and two people who may label."""

    project: Project
    items: list[Item]
    batch: WorkBatch
    ann: User
    ben: User
    keys: Iterator[str] = field(default_factory=lambda: map(str, range(10_000)))

    def claim(self, user: User | None = None) -> LeasedItem:
        task = queue.claim(project=self.project, user=user or self.ann)
        assert task is not None
        return task

    def submit(
        self, task: LeasedItem, value: str = "cat", *, user: User | None = None, key: str = ""
    ) -> Label:
        return queue.submit(
            user=user or self.ann,
            work_item_id=task.work_item.pk,
            token=task.token,
            value=value,
            idempotency_key=key or next(self.keys),
        )

    def skip(self, task: LeasedItem, *, user: User | None = None, reason: str = "unclear") -> None:
        queue.skip(user=user or self.ann, work_item_id=task.work_item.pk, token=task.token, reason=reason)

    def expire(self, task: LeasedItem) -> None:
        """As if the lease had run out a second ago."""
        WorkItem.objects.filter(pk=task.work_item.pk).update(
            lease_expires_at=timezone.now() - timedelta(seconds=1)
        )


@pytest.fixture
def make_desk(db) -> Callable[..., Desk]:
    def make(*, items: int = 3, blind: bool = True, owner_labels: bool = False) -> Desk:
        project = make_project()
        if not owner_labels:  # an owner may label, too, and would keep items from being stuck
            project.memberships.update(role="viewer")
        rows = make_items(project, items)
        batch = queue.create_batch(
            project=project, item_ids=[item.pk for item in rows], blind=blind, priority=1, entropy=7
        )
        return Desk(project, rows, batch, add_member(project), add_member(project))

    return make


@pytest.fixture
def desk(make_desk) -> Desk:
    return make_desk()


@pytest.fixture
def nudged(monkeypatch) -> list[int]:
    """Ids of the jobs that were announced to workers."""
    sent: list[int] = []
    monkeypatch.setattr(jobs, "message_workers", lambda task, pk, queue: sent.append(pk))
    return sent


@pytest.fixture
def make_job(monkeypatch, nudged) -> Callable[..., Job]:
    """A queued job of a kind of its own, done by `handler`."""
    monkeypatch.setattr(kinds, "KINDS", {})

    def make(handler: Any = lambda context: None, **options: Any) -> Job:
        fields = {name: options.pop(name) for name in ("unique_key", "project") if name in options}
        jobs.register("test", handler, title="Test", **options)
        fields.setdefault("project", make_project())
        return jobs.enqueue(kind_name="test", params={"n": 3}, **fields)

    return make
