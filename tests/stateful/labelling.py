"""People who label through the queue, with leases that may have passed to others meanwhile."""

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from annotation.errors import ConflictError, HypacError
from annotation.labelling import queue
from annotation.models import Label, User, WorkItem
from routing.models import Run
from tests.stateful.invariants import Invariants, State

CHOICES = ("cat", "dog", "emu")
PEOPLE = 3
people = st.integers(0, PEOPLE - 1)


@dataclass(frozen=True)
class Held:
    """What somebody was given to label once; they may hold it no longer."""

    user: User
    work_item: int
    token: str


class Labelling(Invariants):
    """`answers` says who answered last about an item, and what; `held` what was given to people."""

    people: list[User]
    held: list[Held]
    answers: dict[str, tuple[str, str]]
    keys: int

    @rule(person=people, ahead=st.booleans())
    def claim(self, person: int, ahead: bool) -> None:
        user = self.people[person]
        try:
            if ahead:
                tasks = queue.claim_ahead(project=self.project, user=user)
            else:
                tasks = [task for task in [queue.claim(project=self.project, user=user)] if task]
        except HypacError:
            assert not self.project.memberships.get(user=user).is_active
            return
        self.held += [Held(user, task.work_item.pk, task.token) for task in tasks]

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0), answer=st.sampled_from(CHOICES), twice=st.booleans())
    def submit(self, which: int, answer: str, twice: bool) -> None:
        """With a lease that may have passed to somebody else since."""
        held = self.held.pop(which % len(self.held))
        stands = self._stands(held)
        name = WorkItem.objects.values_list("item__external_id", flat=True).get(pk=held.work_item)
        answer = self.submit_as(held.user, name, answer)
        before = Label.objects.filter(work_item=held.work_item).count()
        self.keys += 1
        sent = {
            "user": held.user,
            "work_item_id": held.work_item,
            "token": held.token,
            "value": answer,
            "idempotency_key": f"key-{self.keys}-of-{self.project.pk}",
        }
        try:
            label = queue.submit(**sent)
        except ConflictError:
            assert not stands, "an answer was refused though its lease stood"
            assert Label.objects.filter(work_item=held.work_item).count() == before
            return
        assert stands, "an answer was taken though its lease had passed on"
        if twice:
            assert queue.submit(**sent) == label
        assert Label.objects.filter(work_item=held.work_item).count() == before + 1
        self._answered(label)

    def submit_as(self, user: User, name: str, drawn: str) -> str:
        """What somebody says of an item, where `drawn` is the answer that the machine drew."""
        return drawn

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0), gives_back=st.booleans())
    def skip(self, which: int, gives_back: bool) -> None:
        held = self.held.pop(which % len(self.held))
        work = {"user": held.user, "work_item_id": held.work_item, "token": held.token}
        stands = self._stands(held)
        if gives_back:
            assert queue.release(**work) == stands
            return
        try:
            queue.skip(**work, reason="unclear")
        except ConflictError:
            assert not stands
        else:
            assert stands

    @rule(person=people, answer=st.sampled_from(CHOICES))
    def undo_and_correct(self, person: int, answer: str) -> None:
        """The last answer comes back: a skipped item to be labelled after all, or a label to be corrected."""
        user = self.people[person]
        try:
            task = queue.undo(project=self.project, user=user)
        except HypacError:
            return
        if task is None:
            return
        if task.correcting is None:
            self.held.append(Held(user, task.work_item.pk, task.token))
            return
        self.keys += 1
        old, locked = task.correcting, task.work_item.batch.locked_at is not None
        key = f"key-{self.keys}-of-{self.project.pk}"
        label = queue.correct(user=user, label_id=old.pk, value=answer, idempotency_key=key)
        if label != old:
            assert label.supersedes_id == old.pk
            self._answered(label)
            if locked:
                self.touched |= set(
                    Run.objects.filter(calibration_batch=task.work_item.batch).values_list("pk", flat=True)
                )

    def _stands(self, held: Held) -> bool:
        return WorkItem.objects.filter(
            pk=held.work_item, state=State.LEASED, leased_to=held.user, lease_token=held.token
        ).exists()

    def _answered(self, label: Label) -> None:
        self.answers[label.item.external_id] = (label.annotator.username, label.value)
