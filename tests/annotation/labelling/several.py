"""A batch in which several people answer about an item, and these people."""

from decimal import Decimal
from typing import Any

from annotation.common.value_reader import Value
from annotation.labelling import queue
from annotation.labelling.labels_of_record import disagreements, has_record, record_values
from annotation.models import Item, Label, Settlement, User, WorkBatch
from testbed.factories import add_member, make_items, make_project


class SeveralDesk:
    """A batch with overlap and the people who label it."""

    def __init__(
        self, *, items: int = 1, overlap: int = 3, people: int = 3, share: str = "1", blind: bool = True
    ) -> None:
        self.project = make_project(choices=("cat", "dog", "emu"))
        self.project.memberships.update(role="viewer")
        self.items = make_items(self.project, items)
        self.people = [add_member(self.project) for _ in range(people)]
        self.reviewer = add_member(self.project, "viewer")
        self.batch = queue.create_batch(
            project=self.project,
            item_ids=[item.pk for item in self.items],
            blind=blind,
            priority=1,
            entropy=11,
            overlap=overlap,
            overlap_share=Decimal(share),
        )
        self.keys = 0

    def answer(self, *values: str) -> list[Label]:
        """One person after the other labels the next item: the one there is, mostly."""
        return [self.submit(user, value) for user, value in zip(self.people, values, strict=False)]

    def submit(self, user: User, value: str) -> Label:
        task = queue.claim(project=self.project, user=user)
        assert task is not None
        self.keys += 1
        return queue.submit(
            user=user,
            work_item_id=task.work_item.pk,
            token=task.token,
            value=value,
            idempotency_key=f"k{self.keys}",
        )

    def correct(self, label: Label, value: str) -> Label:
        self.keys += 1
        return queue.correct(
            user=label.annotator, label_id=label.pk, value=value, idempotency_key=f"k{self.keys}"
        )

    def skip(self, user: User) -> None:
        task = queue.claim(project=self.project, user=user)
        assert task is not None
        queue.skip(user=user, work_item_id=task.work_item.pk, token=task.token, reason="unclear")

    def adjudicate(self, value: str, *, actor: User | None = None, **more: Any) -> Settlement:
        batch = WorkBatch.objects.get(pk=self.batch.pk)
        return queue.adjudicate(
            batch=batch, item=self.items[0], actor=actor or self.reviewer, value=value, **more
        )

    def record(self, item: Item | None = None) -> Value | None:
        item = item or self.items[0]
        found = record_values(self.project, [item.pk]).get(item.pk)
        stored = self.project.items.filter(has_record(self.project, item="pk"), pk=item.pk).exists()
        assert stored == (found is not None)
        return found and found.value

    @property
    def waiting(self) -> list[int]:
        return list(disagreements(self.project, self.reviewer).values_list("item", flat=True))
