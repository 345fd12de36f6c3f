"""Taking back, correcting, and the life of a batch."""

import itertools
from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.errors import ConflictError, NotAllowedError
from annotation.labelling import queue
from annotation.labelling.queries import annotator_pace, waiting_for
from annotation.models import Label, Skip, WorkItem

pytestmark = pytest.mark.database

State = WorkItem.State


def state_of(task: queue.LeasedItem) -> str:
    return WorkItem.objects.get(pk=task.work_item.pk).state


class TestUndo:
    def test_the_last_label_comes_back_to_be_corrected(self, desk, bare_port) -> None:
        heard = []
        bare_port.label_stored = lambda label, replaced: heard.append((label, replaced))
        desk.submit(desk.claim(), "dog")
        last = desk.submit(desk.claim(), "dog")
        held = desk.claim()
        back = queue.undo(project=desk.project, user=desk.ann)
        assert (back.correcting, back.item, back.token) == (last, last.item, "")
        new = queue.correct(user=desk.ann, label_id=last.pk, value="cat", idempotency_key="c")
        assert (new.version, new.supersedes, new.value) == (2, last, "cat")
        assert heard[-1] == (new, last)
        assert not held.work_item.labels.exists()
        newest = Label.objects.filter(superseded_by__isnull=True).order_by("id")
        assert list(newest.values_list("value", flat=True)) == ["dog", "cat"]
        assert annotator_pace(desk.project, desk.ann).total == 2
        assert desk.claim().work_item == held.work_item

    def test_further_back(self, desk) -> None:
        first, second = desk.submit(desk.claim()), desk.submit(desk.claim())
        assert queue.undo(project=desk.project, user=desk.ann).correcting == second
        assert queue.undo(project=desk.project, user=desk.ann, before=second.pk).correcting == first
        assert queue.undo(project=desk.project, user=desk.ann, before=first.pk) is None

    def test_a_skip_is_taken_back_and_the_item_held_again(self, desk) -> None:
        desk.submit(desk.claim())
        skipped = desk.claim()
        desk.skip(skipped)
        other = desk.claim()
        back = queue.undo(project=desk.project, user=desk.ann)
        assert (back.work_item, back.correcting) == (skipped.work_item, None)
        assert state_of(other) == State.OPEN
        assert desk.claim().work_item == skipped.work_item
        desk.submit(back)

    def test_a_skipped_item_that_somebody_has_stays_with_them(self, make_desk) -> None:
        desk = make_desk(items=1)
        desk.skip(desk.claim(desk.ann))
        held = desk.claim(desk.ben)
        with pytest.raises(ConflictError, match="gone to somebody else"):
            queue.undo(project=desk.project, user=desk.ann)
        assert Skip.objects.get().cleared_at is None
        desk.submit(held, user=desk.ben)

    def test_nothing_to_take_back(self, desk) -> None:
        assert queue.undo(project=desk.project, user=desk.ann) is None


class TestWaiting:
    def test_counts_what_this_person_can_get(self, make_desk) -> None:
        desk = make_desk(items=5)
        assert waiting_for(desk.project, desk.ann) == 5
        held = desk.claim(desk.ann)
        others = desk.claim(desk.ben)
        assert waiting_for(desk.project, desk.ann) == 4
        desk.skip(held)
        assert waiting_for(desk.project, desk.ann) == 3
        desk.submit(desk.claim(desk.ann))
        assert waiting_for(desk.project, desk.ann) == 2
        desk.expire(others)
        assert waiting_for(desk.project, desk.ann) == 3
        queue.withdraw_batch(batch=desk.batch)
        assert waiting_for(desk.project, desk.ann) == 0


class TestCorrect:
    def test_sent_twice_it_makes_one_version(self, desk) -> None:
        label = desk.submit(desk.claim(), "dog")
        arguments = {"user": desk.ann, "label_id": label.pk, "value": "cat", "idempotency_key": "c"}
        assert queue.correct(**arguments) == queue.correct(**arguments)
        assert Label.objects.count() == 2
        with pytest.raises(ConflictError, match="corrected already"):
            queue.correct(**{**arguments, "idempotency_key": "d"})

    def test_no_change_makes_no_version(self, desk) -> None:
        label = desk.submit(desk.claim(), "dog")
        same = queue.correct(user=desk.ann, label_id=label.pk, value="dog", idempotency_key="c")
        assert same == label
        assert Label.objects.count() == 1

    def test_only_by_the_person_who_gave_it(self, desk) -> None:
        label = desk.submit(desk.claim())
        with pytest.raises(NotAllowedError):
            queue.correct(user=desk.ben, label_id=label.pk, value="dog", idempotency_key="c")

    def test_blindness_holds_until_the_batch_is_locked(self, make_desk, bare_port) -> None:
        desk = make_desk(items=1)
        label = desk.submit(desk.claim(), "dog")
        bare_port.blind_objection = lambda project, user: "You have seen predictions."
        arguments = {"user": desk.ann, "label_id": label.pk, "value": "cat", "idempotency_key": "c"}
        with pytest.raises(NotAllowedError):
            queue.correct(**arguments)
        queue.lock_batch(batch=desk.batch)
        assert queue.correct(**arguments).version == 2  # what rests on it hears of it


class TestBatch:
    def test_progress_and_lock(self, desk) -> None:
        for _ in range(2):
            desk.submit(desk.claim())
        task = desk.claim()
        progress = queue.batch_progress(desk.batch)
        assert (progress.open, progress.leased, progress.done, progress.finished) == (0, 1, 2, False)
        with pytest.raises(ConflictError, match="1 items still wait"):
            queue.lock_batch(batch=desk.batch)
        desk.batch.refresh_from_db()
        assert desk.batch.locked_at is None
        desk.submit(task)
        assert queue.batch_progress(desk.batch).finished
        locked_at = queue.lock_batch(batch=desk.batch).locked_at
        assert locked_at is not None
        assert queue.lock_batch(batch=desk.batch).locked_at == locked_at

    def test_a_lock_is_not_before_a_label_that_it_locks(self, make_desk, monkeypatch) -> None:
        desk = make_desk(items=1)
        label = desk.submit(desk.claim())
        earlier = label.created_at - timedelta(hours=1)  # the clock of another server
        monkeypatch.setattr(timezone, "now", lambda: earlier)
        assert queue.lock_batch(batch=desk.batch).locked_at == label.created_at

    def test_withdrawing_leaves_labels_and_counts_nothing_more(self, desk) -> None:
        desk.submit(desk.claim())
        queue.withdraw_batch(batch=desk.batch)
        progress = queue.batch_progress(desk.batch)
        assert (progress.done, progress.total, progress.finished) == (1, 1, True)
        assert queue.claim(project=desk.project, user=desk.ann) is None

    def test_every_item_comes_out_once(self, make_desk) -> None:
        desk = make_desk(items=25)
        people = itertools.cycle((desk.ann, desk.ben))
        for user in itertools.islice(people, 25):
            desk.submit(desk.claim(user), user=user)
        assert Label.objects.values("item").distinct().count() == Label.objects.count() == 25
